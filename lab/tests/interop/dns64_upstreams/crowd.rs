//! Many questions at the same time from one socket, each counted: what it was answered with, and whether it was answered once.

use super::message::{four, name, query, right, synthesised};
use domain::base::iana::Rcode;
use domain::base::{Message, Rtype};
use domain::rdata::Aaaa;
use nix::sys::socket::{setsockopt, sockopt};
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::Namespace;
use std::net::{Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

/// A query is answered within 5 s in every case; the rest is for a machine with other work.
const PATIENCE: Duration = Duration::from_secs(20);
/// Sent between two looks at what has come, so that no socket overflows.
const AT_ONCE: u32 = 50;

/// What became of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// With what is right.
    pub right: u32,
    /// With SERVFAIL.
    pub failed: u32,
    /// With a made address where there is a real one: AAAA records could not be had, A records could (RFC 6147 §5.1.2).
    pub made: u32,
    /// With anything else.
    pub wrong: Vec<String>,
    /// Not at all.
    pub unanswered: u32,
    /// More than once.
    pub twice: u32,
    /// The longest time that one took.
    pub longest: Duration,
}

impl Crowd {
    /// Asks for AAAA records of names of these numbers, at most `window` at a time.
    pub fn ask(host: &Namespace, server: &str, numbers: std::ops::Range<u16>, window: u32) -> Result<Self> {
        let socket =
            host.enter(|| UdpSocket::bind("[::]:0"))?.asking(|| "opening a UDP socket".to_owned())?;
        setsockopt(&socket, sockopt::RcvBufForce, &(8 << 20)).ok();
        socket.connect((server, 53)).asking(|| format!("connecting to {server}"))?;
        let short = Some(Duration::from_millis(2));
        socket.set_read_timeout(short).asking(|| "setting a time to wait".to_owned())?;
        Asking { socket, sent: vec![None; 65_536], open: 0, last: Instant::now(), crowd: Self::default() }
            .all(numbers, window)
    }

    /// Answers of either kind.
    pub fn answered(&self) -> u32 {
        self.right + self.failed + self.made + self.wrong.len() as u32
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Query {
    Open(Instant),
    Answered,
}

struct Asking {
    socket: UdpSocket,
    sent: Vec<Option<Query>>,
    open: u32,
    last: Instant,
    crowd: Crowd,
}

impl Asking {
    fn all(mut self, mut numbers: std::ops::Range<u16>, window: u32) -> Result<Crowd> {
        loop {
            interrupt::check()?;
            let room = window.saturating_sub(self.open).min(AT_ONCE);
            for number in numbers.by_ref().take(room as usize) {
                self.socket.send(&query(number, &name(number))).asking(|| "asking".to_owned())?;
                self.sent[usize::from(number)] = Some(Query::Open(Instant::now()));
                self.open += 1;
            }
            self.hear();
            if self.open == 0 && numbers.is_empty() {
                break;
            }
            if self.last.elapsed() > PATIENCE {
                break;
            }
        }
        // Answers that come twice.
        std::thread::sleep(Duration::from_millis(200));
        self.hear();
        self.crowd.unanswered = self.open + numbers.len() as u32;
        Ok(self.crowd)
    }

    fn hear(&mut self) {
        let mut room = [0; 4_096];
        while let Ok(length) = self.socket.recv(&mut room) {
            self.last = Instant::now();
            self.take(&room[..length]);
        }
    }

    fn take(&mut self, octets: &[u8]) {
        let Ok(message) = Message::from_octets(octets) else {
            return self.crowd.wrong.push(format!("no message: {octets:02x?}"));
        };
        let number = message.header().id();
        match self.sent[usize::from(number)].replace(Query::Answered) {
            Some(Query::Open(since)) => {
                self.open -= 1;
                self.crowd.longest = self.crowd.longest.max(since.elapsed());
            }
            Some(Query::Answered) => return self.crowd.twice += 1,
            None => {
                return self.crowd.wrong.push(format!("an answer with number {number}, which was not asked"));
            }
        }
        let (code, addresses) = (message.header().rcode(), addresses(message));
        let expected: Vec<_> = right(number).into_iter().collect();
        let rcode = if expected.is_empty() { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        match code {
            Rcode::SERVFAIL => self.crowd.failed += 1,
            code if code == rcode && addresses == expected => self.crowd.right += 1,
            Rcode::NOERROR if !expected.is_empty() && addresses == [synthesised(four(number))] => {
                self.crowd.made += 1
            }
            code => self.crowd.wrong.push(format!("{}: {code} {addresses:?}", name(number))),
        }
    }
}

fn addresses(message: Message<&[u8]>) -> Vec<Ipv6Addr> {
    let Ok(answer) = message.answer() else { return Vec::new() };
    let records = answer.flatten().filter(|record| record.rtype() == Rtype::AAAA);
    records.filter_map(|record| Some(record.to_record::<Aaaa>().ok()??.data().addr())).collect()
}
