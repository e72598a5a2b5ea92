//! Calls between two telephones, one after the other.

use super::media::talk;
use super::sip::{Dialog, Kind, Message, answer, read};
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::load::clock;
use crate::load::ends::{Ends, join, on, udp_socket};
use crate::load::outcome::{Histogram, Outcome, histogram};
use nix::poll::{PollFd, PollFlags, poll};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// RFC 3261 §17.1.1.1: T1, 500 ms. A request without an answer is sent again after it, and then after twice the time.
const T1: Duration = Duration::from_millis(500);
/// A call that is not set up after this time has failed: requests were sent after 0, 0.5, 1.5 and 3.5 s.
const LIMIT: Duration = Duration::from_secs(4);

/// Calls from one host to another.
#[derive(Clone, Copy)]
pub struct Calls<'a> {
    /// The hosts.
    pub ends: Ends<'a>,
    /// The caller's address, as it writes it into its messages.
    pub caller: IpAddr,
    /// The other telephone and its port for SIP, as the caller writes it.
    pub target: SocketAddr,
    /// Its address and port, as it knows itself.
    pub callee: SocketAddr,
    /// How many calls.
    pub calls: u32,
    /// How long both talk in each call; zero for the set-up alone.
    pub talk: Duration,
}

/// The outcome of calls.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// Calls that were set up.
    pub made: u64,
    /// Calls that were not.
    pub failed: u64,
    /// From the first INVITE of a call to the answer 200.
    pub setup: Histogram,
    /// Audio from the caller. With translators that do not change messages, audio may not arrive though calls are set up.
    pub up: Outcome,
    /// Audio to the caller.
    pub down: Outcome,
}

impl Calls<'_> {
    /// Makes the calls.
    ///
    /// # Errors
    /// A socket is refused, or a signal has come. A call that fails is counted.
    pub fn run(&self) -> Result<CallReport> {
        let phones = Phones {
            caller: udp_socket(self.ends.client, SocketAddr::new(self.caller, 0))?,
            callee: udp_socket(self.ends.server, self.callee)?,
            caller_audio: udp_socket(self.ends.client, SocketAddr::new(self.caller, 0))?,
            callee_audio: udp_socket(self.ends.server, SocketAddr::new(self.callee.ip(), 0))?,
            target: self.target,
            core: self.ends.core,
        };
        phones.run(self.calls, self.talk)
    }
}

struct Phones {
    caller: UdpSocket,
    callee: UdpSocket,
    caller_audio: UdpSocket,
    callee_audio: UdpSocket,
    target: SocketAddr,
    core: Option<usize>,
}

/// Where the callee was asked to send audio, by the call's number.
type Heard = Mutex<Option<(u32, SocketAddr)>>;

impl Phones {
    fn run(&self, calls: u32, time: Duration) -> Result<CallReport> {
        let (ended, heard) = (AtomicBool::new(false), Heard::default());
        std::thread::scope(|scope| {
            let answering = scope.spawn(|| on(self.core, || self.answer(&ended, &heard)));
            let report = on_thread(scope, self.core, || self.call(calls, time, &heard));
            ended.store(true, Ordering::Relaxed);
            join(answering)?;
            report
        })
    }

    fn call(&self, calls: u32, time: Duration, heard: &Heard) -> Result<CallReport> {
        let own = self.caller.local_addr().asking(|| "a telephone's address".to_owned())?;
        let audio = self.caller_audio.local_addr().asking(|| "a telephone's address".to_owned())?;
        let mut report = CallReport {
            made: 0,
            failed: 0,
            setup: histogram(),
            up: Outcome::default(),
            down: Outcome::default(),
        };
        for number in 0..calls {
            interrupt::check()?;
            let dialog = Dialog { number, caller: own, callee: self.target };
            let start = clock::now();
            let invite = dialog.request(Kind::Invite, Some(audio));
            let Some(accepted) = self.transact(&invite, (number, true))? else {
                report.failed += 1;
                continue;
            };
            report.made += 1;
            report.setup.saturating_record(clock::now() - start);
            self.say(&dialog.request(Kind::Ack, None));
            if !time.is_zero() {
                let (up, down) = self.talk(number, time, accepted.audio, heard)?;
                report.up.add(&up);
                report.down.add(&down);
            }
            self.transact(&dialog.request(Kind::Bye, None), (number, false))?;
        }
        Ok(report)
    }

    /// Both talk, each to where the other's message said.
    fn talk(
        &self,
        number: u32,
        time: Duration,
        accepted: Option<SocketAddr>,
        heard: &Heard,
    ) -> Result<(Outcome, Outcome)> {
        let asked = *heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let asked = asked.filter(|(of, _)| *of == number).map(|(_, audio)| audio);
        std::thread::scope(|scope| {
            let how = (time, self.core);
            let up =
                scope.spawn(move || talk((&self.caller_audio, accepted), &self.callee_audio, how, number));
            let down =
                scope.spawn(move || talk((&self.callee_audio, asked), &self.caller_audio, how, !number));
            let (up, down) = (join(up), join(down));
            Ok((up?, down?))
        })
    }

    fn say(&self, message: &str) {
        // What is not sent counts as lost, and is sent again.
        self.caller.send_to(message.as_bytes(), self.target).ok();
    }

    /// Sends a request until its final answer comes; `None` if none does, or another one than 200.
    fn transact(&self, request: &str, (number, is_invite): (u32, bool)) -> Result<Option<Message>> {
        let start = clock::now();
        let (mut wait, mut next) = (clock::nanoseconds(T1), start);
        let end = start + clock::nanoseconds(LIMIT);
        loop {
            interrupt::check()?;
            let now = clock::now();
            if now >= end {
                return Ok(None);
            }
            if now >= next {
                self.say(request);
                next = now + wait;
                wait *= 2;
            }
            for message in messages(&self.caller, (next - now) / 1_000_000)? {
                match (message.0.kind, message.0.number == number) {
                    (Kind::Answer(200, of), true) if of == is_invite => return Ok(Some(message.0)),
                    (Kind::Answer(300.., of), true) if of == is_invite => return Ok(None),
                    _ => {}
                }
            }
        }
    }

    /// The telephone that is called: it rings, and accepts.
    fn answer(&self, ended: &AtomicBool, heard: &Heard) -> Result<()> {
        let audio = self.callee_audio.local_addr().asking(|| "a telephone's address".to_owned())?;
        while !ended.load(Ordering::Relaxed) {
            for (message, text, from) in messages(&self.callee, 20)? {
                let answers = match message.kind {
                    Kind::Invite => {
                        let asked = message.audio.map(|audio| (message.number, audio));
                        *heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = asked;
                        vec![answer(&text, (180, "Ringing"), None), answer(&text, (200, "OK"), Some(audio))]
                    }
                    Kind::Bye => vec![answer(&text, (200, "OK"), None)],
                    Kind::Ack | Kind::Answer(..) => Vec::new(),
                };
                for answer in answers {
                    self.callee.send_to(answer.as_bytes(), from).ok();
                }
            }
        }
        Ok(())
    }
}

/// The messages that come within this time, at least one millisecond: as soon as there is one.
fn messages(socket: &UdpSocket, milliseconds: u64) -> Result<Vec<(Message, String, SocketAddr)>> {
    let mut one = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match poll(&mut one, milliseconds.clamp(1, 100) as u16) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error).asking(|| "waiting for a message of SIP".to_owned()),
    }
    let mut all = Vec::new();
    let mut octets = [0; 4_096];
    while let Ok((length, from)) = socket.recv_from(&mut octets) {
        let text = String::from_utf8_lossy(&octets[..length]).into_owned();
        all.extend(read(&text).map(|message| (message, text, from)));
    }
    Ok(all)
}

/// Does work in a thread on a CPU, and waits for it.
fn on_thread<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    core: Option<usize>,
    work: impl FnOnce() -> Result<T> + Send + 'scope,
) -> Result<T> {
    scope
        .spawn(move || on(core, work))
        .join()
        .unwrap_or_else(|_| Err(Failure::Unexpected("a telephone panicked".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ends::with_room;

    fn phones() -> Phones {
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            with_room(&socket).unwrap();
            socket
        };
        let callee = open();
        let target = callee.local_addr().unwrap();
        Phones { caller: open(), callee, caller_audio: open(), callee_audio: open(), target, core: None }
    }

    #[test]
    fn calls_are_set_up_and_audio_passes_both_ways() {
        let report = phones().run(2, Duration::from_millis(200)).unwrap();
        assert_eq!((report.made, report.failed, report.setup.len()), (2, 0, 2));
        for way in [&report.up, &report.down] {
            assert_eq!((way.sent, way.answered, way.lost), (20, 20, 0));
            assert!(way.jitter.is_some() && way.latency.len() == 20);
        }
        assert_eq!(phones().run(5, Duration::ZERO).unwrap().made, 5);
    }

    #[test]
    fn a_telephone_that_does_not_answer_is_called_four_times() {
        let mut phones = phones();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        silent.set_nonblocking(true).unwrap();
        phones.target = silent.local_addr().unwrap();
        let report = phones.run(1, Duration::ZERO).unwrap();
        assert_eq!((report.made, report.failed), (0, 1));
        let came = std::iter::from_fn(|| silent.recv(&mut [0; 2_048]).ok()).count();
        assert_eq!(came, 4);
    }
}
