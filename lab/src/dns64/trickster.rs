//! An upstream of ill will or ill health: what it does to a question is written in the name's first label.

use crate::failure::{Asking as _, Result};
use crate::topology::Network;
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, MessageBuilder, Name, Ttl};
use domain::rdata::{A, Ns, Soa};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a name's A record truly is; there is no AAAA record.
pub const TRUTH: Ipv4Addr = Ipv4Addr::new(45, 64, 0, 9);
/// What lies claim.
pub const LIE: Ipv4Addr = Ipv4Addr::new(45, 66, 66, 66);
/// Replies before the right one to a name that floods.
const FLOOD: u16 = 5_000;

/// What is done to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    /// A right answer.
    Honest,
    /// The same, after 1.2 s.
    Slow,
    /// Forged replies first: another ID, another question, another port.
    Liar,
    /// Thousands of replies with other IDs first.
    Flood,
    /// Cut short over UDP (TC); whole over TCP.
    Truncating,
    /// SERVFAIL.
    Failing,
    /// A referral to itself (RFC 2308 §2.2 distinguishes it from an empty answer).
    Referring,
    /// Octets that are not a DNS message.
    Garbage,
    /// Nothing.
    Silent,
}

impl Trick {
    /// All of them, those after which a resolver may think the upstream dead at the end.
    pub const ALL: [Self; 9] = [
        Self::Honest,
        Self::Slow,
        Self::Liar,
        Self::Flood,
        Self::Truncating,
        Self::Failing,
        Self::Referring,
        Self::Garbage,
        Self::Silent,
    ];

    /// A name that is treated so.
    pub fn name(self, number: u32) -> String {
        format!("{}-{number}.test", format!("{self:?}").to_lowercase())
    }

    /// Whether the truth is available in the end.
    pub const fn answers(self) -> bool {
        matches!(self, Self::Honest | Self::Slow | Self::Liar | Self::Flood | Self::Truncating)
    }

    fn of(name: &str) -> Self {
        let first = name.split('-').next().unwrap_or_default().to_lowercase();
        let found = Self::ALL.into_iter().find(|trick| format!("{trick:?}").to_lowercase() == first);
        found.unwrap_or(Self::Honest)
    }
}

/// One at work; it ends with this value.
pub struct Trickster {
    ended: Arc<AtomicBool>,
}

impl Trickster {
    /// Answers at port 53 of the host "server", over UDP and TCP.
    pub fn start(network: &Network) -> Result<Self> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2)), 53);
        let host = network.host("server")?;
        let (socket, stranger, listener) = host
            .enter(|| {
                Ok::<_, std::io::Error>((
                    UdpSocket::bind(address)?,
                    UdpSocket::bind((address.ip(), 0))?,
                    TcpListener::bind(address)?,
                ))
            })?
            .asking(|| format!("listening at {address}"))?;
        let wait = Some(Duration::from_millis(100));
        socket.set_read_timeout(wait).asking(|| "setting a time to wait".to_owned())?;
        listener.set_nonblocking(true).asking(|| "not waiting for connections".to_owned())?;
        let ended = Arc::new(AtomicBool::new(false));
        let (flag, socket) = (Arc::clone(&ended), Arc::new(socket));
        let stranger = Arc::new(stranger);
        std::thread::spawn(move || datagrams(&flag, &socket, &stranger));
        let flag = Arc::clone(&ended);
        std::thread::spawn(move || connections(&flag, &listener));
        Ok(Self { ended })
    }
}

impl Drop for Trickster {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn datagrams(ended: &AtomicBool, socket: &Arc<UdpSocket>, stranger: &Arc<UdpSocket>) {
    let mut room = [0; 4_096];
    while !ended.load(Ordering::Relaxed) {
        let Ok((length, client)) = socket.recv_from(&mut room) else { continue };
        let Ok(question) = Message::from_octets(room[..length].to_vec()) else { continue };
        let (socket, stranger) = (Arc::clone(socket), Arc::clone(stranger));
        std::thread::spawn(move || trick(&question, client, &socket, &stranger));
    }
}

fn trick(question: &Question, client: SocketAddr, socket: &UdpSocket, stranger: &UdpSocket) {
    let Some(name) = asked(question) else { return };
    // Packets that cannot be sent are lost, as on any network.
    let say = |octets: &[u8]| socket.send_to(octets, client).map(drop).unwrap_or_default();
    let truth = answer(question, TRUTH);
    let lie = answer(question, LIE);
    let id = question.header().id();
    match Trick::of(&name) {
        Trick::Honest => say(&truth),
        Trick::Slow => {
            std::thread::sleep(Duration::from_millis(1_200));
            say(&truth);
        }
        Trick::Liar => {
            say(&with_id(&lie, id.wrapping_add(1)));
            say(&other_question(&lie));
            stranger.send_to(&lie, client).map(drop).unwrap_or_default();
            std::thread::sleep(Duration::from_millis(20));
            say(&truth);
        }
        Trick::Flood => {
            (1..FLOOD).for_each(|step| say(&with_id(&lie, id.wrapping_add(step))));
            say(&truth);
        }
        Trick::Truncating => say(&truncated(question)),
        Trick::Failing => say(&failure(question)),
        Trick::Referring => say(&referral(question)),
        Trick::Garbage => say(&[0x5a; 40]),
        Trick::Silent => {}
    }
}

fn connections(ended: &AtomicBool, listener: &TcpListener) {
    while !ended.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => drop(std::thread::spawn(move || converse(stream))),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Right answers over a stream, but to those that get none at all.
fn converse(mut stream: TcpStream) -> Option<()> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).ok()?;
        let mut octets = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut octets).ok()?;
        let question = Message::from_octets(octets).ok()?;
        let reply = match Trick::of(&asked(&question)?) {
            Trick::Silent | Trick::Garbage => continue,
            Trick::Failing => failure(&question),
            Trick::Referring => referral(&question),
            Trick::Honest | Trick::Slow | Trick::Liar | Trick::Flood | Trick::Truncating => {
                answer(&question, TRUTH)
            }
        };
        stream.write_all(&(reply.len() as u16).to_be_bytes()).ok()?;
        stream.write_all(&reply).ok()?;
    }
}

type Question = Message<Vec<u8>>;

fn asked(question: &Question) -> Option<String> {
    Some(question.sole_question().ok()?.qname().to_string())
}

fn test() -> Option<Name<Vec<u8>>> {
    "test".parse().ok()
}

/// An A record, or that there is none of that type, with the SOA of `test`.
fn answer(question: &Question, address: Ipv4Addr) -> Vec<u8> {
    let said = || {
        let asked = question.sole_question().ok()?;
        let mut builder = MessageBuilder::new_vec().start_answer(question, Rcode::NOERROR).ok()?;
        builder.header_mut().set_aa(true);
        if asked.qtype() == Rtype::A {
            builder.push((asked.qname(), 300, A::new(address))).ok()?;
            return Some(builder.finish());
        }
        let minute = Ttl::from_secs(60);
        let soa = Soa::new(test()?, test()?, 1_u32.into(), minute, minute, minute, minute);
        let mut builder = builder.authority();
        builder.push((test()?, 60, soa)).ok()?;
        Some(builder.finish())
    };
    said().unwrap_or_default()
}

fn failure(question: &Question) -> Vec<u8> {
    let said = MessageBuilder::new_vec().start_answer(question, Rcode::SERVFAIL);
    said.map(|builder| builder.finish()).unwrap_or_default()
}

fn truncated(question: &Question) -> Vec<u8> {
    let said = MessageBuilder::new_vec().start_answer(question, Rcode::NOERROR);
    said.map(|mut builder| {
        builder.header_mut().set_tc(true);
        builder.finish()
    })
    .unwrap_or_default()
}

fn referral(question: &Question) -> Vec<u8> {
    let said = || {
        let builder = MessageBuilder::new_vec().start_answer(question, Rcode::NOERROR).ok()?;
        let mut builder = builder.authority();
        builder.push((test()?, 60, Ns::new(test()?))).ok()?;
        Some(builder.finish())
    };
    said().unwrap_or_default()
}

fn with_id(reply: &[u8], id: u16) -> Vec<u8> {
    let mut other = reply.to_vec();
    other.iter_mut().zip(id.to_be_bytes()).for_each(|(octet, new)| *octet = new);
    other
}

/// The same reply to a name whose first letter is another one.
fn other_question(reply: &[u8]) -> Vec<u8> {
    let mut other = reply.to_vec();
    if let Some(letter) = other.get_mut(13) {
        *letter = b'q';
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_it_is_treated() {
        for trick in Trick::ALL {
            assert_eq!(Trick::of(&trick.name(7)), trick);
        }
        assert_eq!(Trick::of("TruncatinG-1.tEst"), Trick::Truncating);
        assert_eq!(Trick::of("ns.test"), Trick::Honest);
    }
}
