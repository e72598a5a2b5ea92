//! Whatever clients ask and upstreams reply, at any time, each query has one answer, in time, that can be read; and who validates for himself (CD=1,
//! DO=1) is given nothing that was made here.
//!
//! The input is two octets that choose the settings, and a row of events: what happens (an octet), how much time passed before (an octet, hundredths of
//! a second; beyond 200, minutes), the length (two octets), and a message. A reply's ID and question are made right, since no fuzzer would find them:
//! its message is the flags, the counts of three sections, and the records. A reply as it is has its header too.

use domain::base::Message;
use sixway_control::Instant;
use sixway_control::dns64::query::Query;
use sixway_control::dns64::{
    Anchor, AnchorKey, Asker, Dnssec, Exchange, Failure, Heard, Outcome, Resolver, Transmit, Transport, Wire,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

#[path = "dns64_resolver/settings.rs"]
mod settings;

/// No one waits longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The start of every address that is made.
const MADE: [u8; 12] = [0x20, 0x01, 0x0d, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0];
/// Within the time of the signatures that the corpus has from `validation`.
const WALL: u64 = 1_800_000_000;

const QUERY: u8 = 0;
const REPLY: u8 = 1;
const REPLY_AS_IT_IS: u8 = 2;
/// Of the oldest exchanges and of the newest.
const NEWEST: u8 = 4;

pub fn run(octets: &[u8]) {
    let Some((choice, mut rest)) = octets.split_first_chunk() else { return };
    let mut world = World::new(u16::from_be_bytes(*choice));
    while let Some(([what, pause, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, behind) = behind.split_at(length);
        world.pass(match pause {
            0..=200 => Duration::from_millis(10) * u32::from(*pause),
            _ => Duration::from_secs(60) * u32::from(pause - 200),
        });
        world.happens(*what, message);
        world.count();
        rest = behind;
    }
    world.pass(PATIENCE);
    world.count();
    assert!(world.waiting.is_empty(), "a query was forgotten");
}

/// A query that waits: when it came, from whom, and what it is.
struct Waiting {
    since: Instant,
    transport: Transport,
    query: Vec<u8>,
}

struct World {
    now: Instant,
    resolver: Resolver<u32>,
    /// Questions on their way, the oldest first.
    open: Vec<Transmit>,
    waiting: BTreeMap<u32, Waiting>,
    tickets: u32,
    /// An upstream has said what looks like it was made.
    is_fed: bool,
    answer: Vec<u8>,
}

impl World {
    fn new(choice: u16) -> Self {
        let now = Instant::from_secs(1_000);
        let mut resolver = Resolver::new(settings::chosen(choice), [7; 32], now);
        resolver.set_wall_clock(now, WALL);
        let (open, waiting) = (Vec::new(), BTreeMap::new());
        Self { now, resolver, open, waiting, tickets: 0, is_fed: false, answer: Vec::new() }
    }

    fn happens(&mut self, what: u8, message: &[u8]) {
        if what & 3 == QUERY {
            return self.ask(what >> 2, message);
        }
        let arrives = if what & NEWEST == 0 { self.open.first() } else { self.open.last() };
        let Some(Transmit { exchange, message: sent, .. }) = arrives.cloned() else { return };
        match what & 3 {
            // Both upstreams may have been asked.
            REPLY => {
                let same = |other: &&Transmit| other.message[12..].eq_ignore_ascii_case(&sent[12..]);
                let asked: Vec<_> = self.open.iter().filter(same).cloned().collect();
                asked.iter().for_each(|one| self.hear(one.exchange, &made_right(&one.message, message)));
            }
            REPLY_AS_IT_IS => self.hear(exchange, message),
            _ => {
                let failures =
                    [Failure::Unreachable, Failure::Closed, Failure::Untrusted, Failure::Malformed];
                self.open.retain(|open| open.exchange != exchange);
                self.resolver.handle_reply(self.now, exchange, Err(failures[usize::from(what >> 6)]));
            }
        }
        self.poll();
    }

    fn hear(&mut self, exchange: Exchange, reply: &[u8]) {
        self.is_fed |= has_made(reply);
        self.resolver.handle_reply(self.now, exchange, Ok(reply));
    }

    fn ask(&mut self, from: u8, query: &[u8]) {
        let transports =
            [Transport::Udp, Transport::Tcp, Transport::Tls, Transport::Https, Transport::Inside];
        let transport = transports[usize::from(from & 7) % transports.len()];
        let clients: [IpAddr; 4] =
            ["2001:db8::1", "2001:db8:0:1::1", "192.0.2.1", "2001:db9::1"].map(|text| text.parse().unwrap());
        if from >> 5 != 0 {
            self.resolver.flush(b"\x04test\0");
        }
        self.tickets += 1;
        let asker = Asker { address: clients[usize::from(from >> 3 & 3)], transport, ticket: self.tickets };
        let mut answer = std::mem::take(&mut self.answer);
        let waiting = Waiting { since: self.now, transport, query: query.to_vec() };
        match self.resolver.handle_query(self.now, &asker, query, &mut answer) {
            Heard::Answered(outcome) => self.judge(&waiting, &answer, outcome),
            Heard::Waiting => drop(self.waiting.insert(self.tickets, waiting)),
            Heard::Ignored => assert!(query.len() < 12 || query[2] & 0x80 != 0, "a query is ignored"),
        }
        self.answer = answer;
        self.poll();
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..20_000 {
            match self.resolver.poll_timeout().filter(|due| *due <= end) {
                Some(due) => {
                    self.now = self.now.max(due);
                    self.poll();
                }
                None => {
                    self.now = end;
                    return self.poll();
                }
            }
        }
        panic!("it never sleeps");
    }

    fn poll(&mut self) {
        while let Some(sent) = self.resolver.poll_transmit(self.now) {
            assert!(self.place(sent.exchange).is_none(), "an exchange began twice");
            self.open.push(sent);
        }
        while let Some(exchange) = self.resolver.poll_cancel() {
            self.open.remove(self.place(exchange).expect("an exchange ended twice"));
        }
        let mut answer = std::mem::take(&mut self.answer);
        while let Some((asker, outcome)) = self.resolver.poll_answer(self.now, &mut answer) {
            let waiting = self.waiting.remove(&asker.ticket).expect("a query had two answers");
            assert!(self.now - waiting.since <= PATIENCE, "too late");
            self.judge(&waiting, &answer, outcome);
        }
        self.answer = answer;
        while self.resolver.poll_event().is_some() {}
    }

    fn place(&self, exchange: Exchange) -> Option<usize> {
        self.open.iter().position(|open| open.exchange == exchange)
    }

    fn judge(&self, asked: &Waiting, answer: &[u8], outcome: Outcome) {
        assert_eq!(answer[..2], asked.query[..2], "the ID");
        read(answer);
        let Ok(query) = Query::read(&asked.query) else {
            return assert_eq!(outcome, Outcome::Malformed);
        };
        let end = 12 + query.name.len() + 4;
        assert_eq!(answer[12..end], query.message[12..end], "the question");
        let payload = query.edns.map_or(512, |edns| edns.payload).clamp(512, settings::UDP_PAYLOAD);
        assert!(asked.transport != Transport::Udp || answer.len() <= payload.into(), "too long");
        let dnssec_ok = query.edns.is_some_and(|edns| edns.dnssec_ok);
        let authentic = answer[3] & 0x20 != 0;
        assert!(!authentic || dnssec_ok && !query.checking_disabled, "AD for whom it is not");
        assert!(query.edns.is_some() || answer[10..12] == [0, 0], "EDNS for whom it is not");
        if query.checking_disabled && dnssec_ok {
            assert!(!matches!(outcome, Outcome::Synthesised | Outcome::Reverse), "{outcome:?}");
            assert!(outcome == Outcome::Local || self.is_fed || !has_made(answer), "made: {outcome:?}");
        }
    }

    /// Each query has exactly one outcome, or waits.
    fn count(&self) {
        let counters = self.resolver.counters();
        let answered: u64 = counters.outcomes.iter().sum();
        assert_eq!(counters.queries, answered + self.waiting.len() as u64);
        assert_eq!((self.resolver.waiting(), counters.queries), (self.waiting.len(), self.tickets.into()));
    }
}

/// A reply to a question: its ID and question, and what the input says.
fn made_right(question: &[u8], input: &[u8]) -> Vec<u8> {
    let mut end = 12;
    while question[end] != 0 {
        end += 1 + usize::from(question[end]);
    }
    end += 5;
    let (head, records) = input.split_at(input.len().min(8));
    let mut reply = question[..end].to_vec();
    reply[2..12].fill(0);
    reply[5] = 1;
    for (at, octet) in [2, 3, 6, 7, 8, 9, 10, 11].into_iter().zip(head) {
        reply[at] = *octet;
    }
    reply.extend(records);
    reply
}

/// Whether an address that looks like it was made is there, anywhere.
fn has_made(message: &[u8]) -> bool {
    message.windows(MADE.len()).any(|octets| octets == MADE)
}

/// All records can be read, and nothing is behind them.
fn read(answer: &[u8]) {
    let message = Message::from_octets(answer).expect("it has a header");
    assert!(message.header().qr(), "no answer");
    let (_, answers, authority, additional) = message.sections().expect("its sections can be read");
    for record in answers.chain(authority).chain(additional) {
        record.expect("its records can be read");
    }
}
