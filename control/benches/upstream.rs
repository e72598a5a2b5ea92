//! What an exchange with an upstream costs: `cargo bench -p sixway-control --bench upstream`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(missing_docs)]

use sixway_control::Instant as Moment;
use sixway_control::dns64::upstream::{MAX_QUESTIONS, Question, Upstreams};
use sixway_control::dns64::{Exchange, Upstream};
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A reply with one A record, made in place.
fn answer(query: &[u8], reply: &mut Vec<u8>) {
    reply.clear();
    reply.extend_from_slice(&query[..query.len() - 11]);
    reply[2..4].copy_from_slice(&[0x81, 0x80]);
    reply[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
}

/// Time per exchange, with this many open at any time: each is answered in turn, `lost` in a hundred never.
fn measure(upstreams: usize, open: usize, lost: usize) {
    const EXCHANGES: usize = 1_000_000;
    let setting = Upstream { names: Vec::new(), datagrams: true };
    let mut now = Moment::from_secs(1);
    let mut machine = Upstreams::new(&vec![setting; upstreams], [7; 32], MAX_QUESTIONS, now);
    let mut reply = Vec::new();
    let (mut outcomes, mut exchanges, mut made) = (0_usize, 0_usize, Duration::ZERO);
    let mut waiting: VecDeque<(Exchange, Vec<u8>)> = VecDeque::with_capacity(MAX_QUESTIONS);
    let started = Instant::now();
    while exchanges < EXCHANGES {
        now = now + Duration::from_micros(5);
        if waiting.len() < open {
            let n = exchanges as u8;
            let name = [
                3,
                b'w',
                b'a' + n % 26,
                b'w',
                7,
                b'e',
                b'x',
                b'a',
                b'm',
                b'p',
                b'l',
                b'e',
                3,
                b'c',
                b'o',
                b'm',
                0,
            ];
            black_box(machine.ask(now, &Question::new(&name, 28)));
        } else if let Some((exchange, message)) = waiting.pop_front() {
            exchanges += 1;
            if exchanges % 100 >= lost {
                let making = Instant::now();
                answer(&message, &mut reply);
                made += making.elapsed();
                machine.handle_reply(now, exchange, Ok(&reply));
            }
        }
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        while let Some(transmit) = machine.poll_transmit() {
            waiting.push_back((transmit.exchange, transmit.message));
        }
        while machine.poll_cancel().is_some() {}
        while let Some(outcome) = machine.poll_outcome() {
            outcomes += usize::from(black_box(outcome).1.is_ok());
        }
    }
    let each = (started.elapsed() - made).as_nanos() as f64 / EXCHANGES as f64;
    println!(
        "{upstreams} upstreams, {open:>4} open, {lost:>2} % lost {each:>8.0} ns an exchange, {outcomes} answers"
    );
}

fn main() {
    for (upstreams, open, lost) in
        [(1, 1, 0), (1, 1_000, 0), (2, 1_000, 0), (2, 4_000, 0), (4, 1_000, 5), (16, 1_000, 0)]
    {
        measure(upstreams, open, lost);
    }
}
