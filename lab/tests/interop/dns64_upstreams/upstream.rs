//! Upstreams that mean no good, and an honest one: threads that answer at sockets of the host "server".

use super::message::{A, AAAA, Asked, LIE, wire};
use crate::free_address::bound;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::namespace::Namespace;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How an upstream answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// What is right.
    Honest,
    /// What is right, so much later.
    Slow(Duration),
    /// Nothing.
    Silent,
    /// Another question's answer.
    WrongQuestion,
    /// The number of another message.
    WrongId,
    /// What is right, with records of a victim's in addition.
    Poisoning,
    /// Two names that are aliases of each other.
    CnameLoop,
    /// TC over UDP, what is right over TCP.
    Truncating,
    /// TC over TCP as well.
    TruncatingForEver,
    /// 10,000 wrong replies a second to the first question, then what is right.
    Flooding,
    /// TC over UDP; the connection is half closed when the question has come.
    HalfClosing,
    /// TC over UDP; the reply's first half over TCP, and then nothing.
    HalfReply,
    /// TC over UDP; over TCP the connection is closed behind each reply, which is right.
    Closing,
    /// TC over UDP; over TCP two right replies at a time, the later one first.
    Unordered,
    /// TC over UDP; over TCP a lie with another number before what is right.
    Chattering,
    /// TC over UDP; the connection is reset when the question has come.
    Resetting,
    /// TC over UDP; connections are taken and never read.
    Deaf,
    /// TC over UDP; octets without end over TCP.
    Endless,
    /// The question comes back in lower case, by UDP.
    Lowering,
    /// FORMERR to queries with an OPT record.
    WithoutEdns,
    /// Nothing to queries with an OPT record.
    DeafToEdns,
    /// Replies have no question.
    Questionless,
    /// TC over UDP, and nothing listens on TCP.
    WithoutTcp,
    /// Octets that are not a DNS message.
    Rubbish,
    /// Refuses each question.
    Refusing,
}

/// One at work. It ends when this is dropped.
pub struct Upstream {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

const TICK: Duration = Duration::from_millis(50);

impl Upstream {
    /// Listens on a host, at port 53 of an address that it has.
    pub fn start(host: &Namespace, address: &str, manner: Manner) -> Result<Self> {
        let at = SocketAddr::new(
            address.parse().map_err(|_| Failure::Unexpected(format!("{address} is not an address")))?,
            53,
        );
        let asking = || format!("listening at {at}");
        let udp = host.enter(|| bound(|| UdpSocket::bind(at)))?.asking(asking)?;
        let tcp = host.enter(|| bound(|| TcpListener::bind(at)))?.asking(asking)?;
        udp.set_read_timeout(Some(TICK)).asking(asking)?;
        tcp.set_nonblocking(true).asking(asking)?;
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let udp = (udp, Arc::clone(&stop), Arc::clone(&asked));
        let tcp = (tcp, Arc::clone(&stop), Arc::clone(&asked));
        let mut threads = vec![std::thread::spawn(move || serve_datagrams(&udp.0, &udp.1, &udp.2, manner))];
        if manner != Manner::WithoutTcp {
            threads.push(std::thread::spawn(move || serve_streams(&tcp.0, &tcp.1, &tcp.2, manner)));
        }
        Ok(Self { stop, asked, threads })
    }

    /// Questions that came to it.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

fn serve_datagrams(socket: &UdpSocket, stop: &AtomicBool, asked: &AtomicU64, manner: Manner) {
    let mut room = [0; 4_096];
    let mut later: std::collections::VecDeque<(Instant, Vec<u8>, SocketAddr)> = Default::default();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        while later.front().is_some_and(|(due, ..)| *due <= now) {
            if let Some((_, reply, client)) = later.pop_front() {
                socket.send_to(&reply, client).ok();
            }
        }
        let patience = later.front().map_or(TICK, |(due, ..)| due.saturating_duration_since(now).min(TICK));
        socket.set_read_timeout(Some(patience.max(Duration::from_millis(1)))).ok();
        let Ok((length, client)) = socket.recv_from(&mut room) else { continue };
        let Some(question) = Asked::read(&room[..length]) else { continue };
        let before = asked.fetch_add(1, Ordering::Relaxed);
        if manner == Manner::Flooding && before == 0 {
            flood(socket, &question, client, stop);
        }
        if let Some(reply) = datagram(&question, manner) {
            match manner {
                Manner::Slow(time) => later.push_back((Instant::now() + time, reply, client)),
                _ => drop(socket.send_to(&reply, client)),
            }
        }
    }
}

/// 10,000 guesses at the number of the query, in a second.
fn flood(socket: &UdpSocket, question: &Asked, client: SocketAddr, stop: &AtomicBool) {
    let start = Instant::now();
    for sent in 0..10_000_u32 {
        let mut guess = lie(question);
        let id = question.id.wrapping_add(1 + (sent % 65_000) as u16);
        guess[..2].copy_from_slice(&id.to_be_bytes());
        socket.send_to(&guess, client).ok();
        let due = Duration::from_micros(u64::from(sent) * 100);
        if let Some(early) = due.checked_sub(start.elapsed()).filter(|early| early.as_millis() > 1) {
            std::thread::sleep(early);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn datagram(question: &Asked, manner: Manner) -> Option<Vec<u8>> {
    match manner {
        Manner::Honest | Manner::Slow(_) | Manner::Flooding => Some(question.honest()),
        Manner::Silent => None,
        Manner::Lowering => Some(question.in_lower_case().honest()),
        Manner::WithoutEdns if question.extended => {
            Some(Asked { extended: false, ..question.clone() }.reply(1).done())
        }
        Manner::DeafToEdns if question.extended => None,
        Manner::WithoutEdns | Manner::DeafToEdns => Some(question.honest()),
        Manner::Questionless => Some(question.without_question()),
        Manner::WrongQuestion | Manner::WrongId | Manner::Poisoning => Some(forged(question, manner)),
        Manner::CnameLoop => Some(around(question)),
        Manner::Truncating
        | Manner::TruncatingForEver
        | Manner::HalfClosing
        | Manner::HalfReply
        | Manner::Closing
        | Manner::Unordered
        | Manner::Chattering
        | Manner::Resetting
        | Manner::Deaf
        | Manner::Endless
        | Manner::WithoutTcp => Some(question.reply(0).truncated().done()),
        Manner::Rubbish => Some(question.id.to_be_bytes().into_iter().chain([0xff; 200]).collect()),
        Manner::Refusing => Some(question.reply(5).done()),
    }
}

fn lie(question: &Asked) -> Vec<u8> {
    match question.kind {
        AAAA => question.reply(0).answer(AAAA, &LIE.to_ipv6_mapped().octets()).done(),
        _ => question.reply(0).answer(A, &LIE.octets()).done(),
    }
}

fn forged(question: &Asked, manner: Manner) -> Vec<u8> {
    let mut reply = match manner {
        Manner::WrongQuestion => {
            let mut other = wire("another.test");
            other.extend([0, A as u8, 0, 1]);
            lie(&Asked { question: other, kind: A, ..question.clone() })
        }
        Manner::Poisoning => return poisoned(question),
        _ => lie(question),
    };
    if manner == Manner::WrongId {
        reply[0] ^= 0x55;
    }
    reply
}

/// The name of a third party.
pub const VICTIM: &str = "bank.victim.test";

fn poisoned(question: &Asked) -> Vec<u8> {
    if question.name.ends_with("victim.test") {
        return question.reply(2).done();
    }
    if question.kind != A {
        return question.honest();
    }
    let number: Option<u16> = question.name.split(['-', '.']).nth(1).and_then(|digits| digits.parse().ok());
    let four: std::net::Ipv4Addr = match number {
        Some(number) => std::net::Ipv4Addr::from(0x2d40_0000 | u32::from(number)),
        None => return question.honest(),
    };
    let reply = question.reply(0).answer(A, &four.octets()).answer_of(VICTIM, A, &LIE.octets());
    let reply = reply.authority_of("victim.test", 2, &wire("ns.evil.test"));
    reply.additional_of(VICTIM, A, &LIE.octets()).additional_of("ns.evil.test", A, &LIE.octets()).done()
}

fn around(question: &Asked) -> Vec<u8> {
    let other = match question.name.strip_prefix("again.") {
        Some(name) => name.to_owned(),
        None => format!("again.{}", question.name),
    };
    let back = wire(&question.name);
    question.reply(0).answer(5, &wire(&other)).answer_of(&other, 5, &back).done()
}

fn serve_streams(listener: &TcpListener, stop: &Arc<AtomicBool>, asked: &Arc<AtomicU64>, manner: Manner) {
    let mut threads = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                let (stop, asked) = (Arc::clone(stop), Arc::clone(asked));
                threads.push(std::thread::spawn(move || {
                    converse(stream, &stop, &asked, manner);
                }));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// One connection, one question after the other. `None`: it is over.
fn converse(mut stream: TcpStream, stop: &AtomicBool, asked: &AtomicU64, manner: Manner) -> Option<()> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(TICK)).ok()?;
    stream.set_nodelay(true).ok()?;
    let mut held: Option<Vec<u8>> = None;
    loop {
        if manner == Manner::Deaf {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
            }
            return None;
        }
        let question = hear(&mut stream, stop)?;
        asked.fetch_add(1, Ordering::Relaxed);
        let right = framed(&question.honest());
        match manner {
            Manner::Silent => {}
            Manner::HalfClosing => stream.shutdown(Shutdown::Write).ok()?,
            Manner::Slow(time) => {
                std::thread::sleep(time);
                stream.write_all(&right).ok()?;
            }
            Manner::Honest | Manner::Truncating | Manner::Flooding | Manner::Lowering => {
                stream.write_all(&right).ok()?
            }
            Manner::HalfReply => stream.write_all(&right[..right.len() / 2]).ok()?,
            Manner::Closing => {
                stream.write_all(&right).ok()?;
                return None;
            }
            Manner::Unordered => match held.take() {
                None => {
                    held = Some(right);
                    // None may follow.
                    stream.set_read_timeout(Some(TICK)).ok()?;
                    if stream.peek(&mut [0]).is_err() {
                        stream.write_all(&held.take()?).ok()?;
                    }
                }
                Some(earlier) => stream.write_all(&[right, earlier].concat()).ok()?,
            },
            Manner::Chattering => {
                let mut guess = lie(&question);
                guess[0] ^= 0x55;
                stream.write_all(&[framed(&guess), right].concat()).ok()?;
            }
            Manner::Resetting => {
                setsockopt(&stream, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).ok()?;
                return None;
            }
            Manner::Endless => {
                while !stop.load(Ordering::Relaxed) {
                    stream.write_all(&[0xff; 16_384]).ok()?;
                }
            }
            other => stream.write_all(&framed(&datagram(&question, other)?)).ok()?,
        }
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

fn hear(stream: &mut TcpStream, stop: &AtomicBool) -> Option<Asked> {
    let mut length = [0; 2];
    fill(stream, &mut length, stop)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    fill(stream, &mut message, stop)?;
    Asked::read(&message)
}

fn fill(stream: &mut TcpStream, room: &mut [u8], stop: &AtomicBool) -> Option<()> {
    let mut at = 0;
    while at < room.len() {
        match stream.read(&mut room[at..]) {
            Ok(0) => return None,
            Ok(more) => at += more,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
        if stop.load(Ordering::Relaxed) {
            return None;
        }
    }
    Some(())
}
