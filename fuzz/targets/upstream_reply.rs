//! Any octets are a reply to a question or none; whatever upstreams send, at any time, every question has one outcome in time, every exchange
//! ends once, and what is given out as a reply is one to the question.
//!
//! The input is a row of arrivals: what happens (an octet), how much time passed before (an octet, hundredths of a second), the length (two
//! octets), and the message. Its ID and its question are made right if the first octet says so, since no fuzzer would find them.

use sixway_control::Instant;
use sixway_control::dns64::upstream::{DEADLINE, Number, Question, Upstreams};
use sixway_control::dns64::{Exchange, Failure, Transmit, Upstream};
use std::collections::BTreeMap;
use std::time::Duration;

const NAME: &[u8] = b"\x03www\x07example\0";
const QUESTION_END: usize = 12 + NAME.len() + 4;
const QUESTIONS: usize = 12;

const ASK: u8 = 1;
const DNSSEC: u8 = 2;
const LAST: u8 = 4;
const RIGHT_ID: u8 = 8;
const RIGHT_QUESTION: u8 = 16;
const FAILURE: u8 = 32;

pub fn run(octets: &[u8]) {
    let mut gateway = Gateway::new();
    let mut rest = octets;
    while let Some(([what, pause, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, behind) = behind.split_at(length);
        gateway.pass(Duration::from_millis(10) * u32::from(*pause));
        gateway.happens(*what, message);
        rest = behind;
    }
    gateway.pass(Duration::from_secs(10));
    assert!(gateway.waiting.is_empty(), "a question was forgotten");
}

struct Gateway {
    now: Instant,
    upstreams: Upstreams,
    open: BTreeMap<Exchange, Transmit>,
    waiting: BTreeMap<Number, Instant>,
}

impl Gateway {
    fn new() -> Self {
        let now = Instant::from_secs(1_000);
        let upstreams = [true, false].map(|datagrams| Upstream { names: Vec::new(), datagrams });
        Self {
            now,
            upstreams: Upstreams::new(&upstreams, [7; 32], QUESTIONS, now),
            open: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    fn happens(&mut self, what: u8, message: &[u8]) {
        if what & ASK != 0 {
            let dnssec = what & DNSSEC != 0;
            let question = Question { dnssec_ok: dnssec, dnssec_needed: dnssec, ..Question::new(NAME, 28) };
            self.waiting.insert(self.upstreams.ask(self.now, &question), self.now);
            self.poll();
        }
        let arrives = if what & LAST == 0 { self.open.first_key_value() } else { self.open.last_key_value() };
        let Some((exchange, sent)) = arrives.map(|(exchange, sent)| (*exchange, sent)) else { return };
        if what & FAILURE != 0 {
            let failures = [Failure::Unreachable, Failure::Closed, Failure::Untrusted, Failure::Malformed];
            self.open.remove(&exchange);
            self.upstreams.handle_reply(self.now, exchange, Err(failures[usize::from(what >> 6)]));
            return self.poll();
        }
        let mut reply = message.to_vec();
        if what & RIGHT_ID != 0 && reply.len() >= 2 {
            reply[..2].copy_from_slice(&sent.message[..2]);
        }
        // A probe's question is shorter.
        let end = QUESTION_END.min(sent.message.len());
        if what & RIGHT_QUESTION != 0 && reply.len() >= end {
            reply[12..end].copy_from_slice(&sent.message[12..end]);
        }
        self.upstreams.handle_reply(self.now, exchange, Ok(&reply));
        self.poll();
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..10_000 {
            match self.upstreams.poll_timeout().filter(|due| *due <= end) {
                Some(due) => {
                    self.now = self.now.max(due);
                    self.upstreams.handle_timeout(self.now);
                    self.poll();
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("it never sleeps");
    }

    fn poll(&mut self) {
        while let Some(sent) = self.upstreams.poll_transmit() {
            assert!(self.open.insert(sent.exchange, sent).is_none(), "an exchange began twice");
        }
        while let Some(exchange) = self.upstreams.poll_cancel() {
            assert!(self.open.remove(&exchange).is_some(), "an exchange ended twice");
        }
        while let Some((number, outcome)) = self.upstreams.poll_outcome() {
            let asked = self.waiting.remove(&number).expect("a question had two outcomes");
            assert!(self.now - asked <= DEADLINE, "too late");
            if let Ok(reply) = outcome {
                assert!(reply.message[12..QUESTION_END - 4].eq_ignore_ascii_case(NAME), "another name");
                assert!(reply.message[2] & 0xfa == 0x80, "no reply, or a truncated one");
            }
        }
        while self.upstreams.poll_event().is_some() {}
        assert_eq!(self.upstreams.open(), self.open.len());
        assert!(self.open.len() <= 2 * QUESTIONS);
    }
}
