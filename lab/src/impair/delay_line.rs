//! Packets that wait: each for its time, and some until others have passed. It is pure: time is an argument, in nanoseconds.

use super::impairment::Impairment;
use crate::load::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A packet that is reordered waits until this many later ones have passed,
const BEHIND: u32 = 3;
/// or for this time, if they do not come.
const LONGEST: u64 = 20_000_000;

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The packet.
    pub packet: Vec<u8>,
    /// How long it waited.
    pub waited: u64,
    /// Whether a packet that came later has left before.
    pub reordered: bool,
}

/// One direction of a link.
#[derive(Debug)]
pub struct DelayLine {
    impairment: Impairment,
    random: Random,
    /// By the time at which they leave.
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Those that wait for others.
    held: Vec<Held>,
    number: u64,
    /// One more than the number of the latest packet that has left.
    next: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    leaves: u64,
    number: u64,
    came: u64,
    packet: Vec<u8>,
}

#[derive(Debug)]
struct Held {
    waiting: Waiting,
    behind: u32,
}

impl DelayLine {
    /// An empty one.
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        let (waiting, held) = (BinaryHeap::new(), Vec::new());
        Self { impairment, random: Random(seed), waiting, held, number: 0, next: 0 }
    }

    /// Takes a packet.
    pub fn take(&mut self, packet: Vec<u8>, now: u64) {
        let spread = if self.impairment.jitter > 0.0 { self.random.normal() } else { 0.0 };
        let delay = ((self.impairment.delay + spread * self.impairment.jitter) * 1e6).max(0.0) as u64;
        let waiting = Waiting { leaves: now + delay, number: self.number, came: now, packet };
        self.number += 1;
        if self.random.happens(self.impairment.reorder) {
            self.held.push(Held { waiting, behind: BEHIND });
        } else {
            self.waiting.push(Reverse(waiting));
        }
    }

    /// The next packet whose time has come.
    pub fn release(&mut self, now: u64) -> Option<Released> {
        let free = |held: &Held| held.waiting.leaves <= now && held.behind == 0;
        let over = |held: &Held| held.waiting.leaves + LONGEST <= now;
        if let Some(at) = self.held.iter().position(|held| free(held) || over(held)) {
            let held = self.held.remove(at);
            return Some(self.leave(held.waiting, now));
        }
        let Reverse(first) = self.waiting.peek()?;
        if first.leaves > now {
            return None;
        }
        let Reverse(waiting) = self.waiting.pop()?;
        for held in self.held.iter_mut().filter(|held| held.waiting.number < waiting.number) {
            held.behind = held.behind.saturating_sub(1);
        }
        Some(self.leave(waiting, now))
    }

    /// When to check again, if there is anything to wait for.
    pub fn next_time(&self) -> Option<u64> {
        let held = self.held.iter().map(|held| match held.behind {
            0 => held.waiting.leaves,
            _ => held.waiting.leaves + LONGEST,
        });
        self.waiting.peek().map(|Reverse(first)| first.leaves).into_iter().chain(held).min()
    }

    fn leave(&mut self, waiting: Waiting, now: u64) -> Released {
        let reordered = waiting.number < self.next;
        self.next = self.next.max(waiting.number + 1);
        Released { packet: waiting.packet, waited: now.saturating_sub(waiting.came), reordered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends packets one millisecond apart, and looks as often as it has to.
    fn all(impairment: Impairment, count: u16) -> Vec<(u16, Released)> {
        let mut line = DelayLine::new(impairment, 7);
        let mut out = Vec::new();
        let mut now = 0;
        for number in 0..count {
            let comes = u64::from(number) * MS;
            while let Some(time) = line.next_time().filter(|time| *time <= comes) {
                now = time.max(now);
                while let Some(released) = line.release(now) {
                    out.push(released);
                }
            }
            now = comes;
            line.take(number.to_be_bytes().to_vec(), now);
        }
        while let Some(time) = line.next_time() {
            now = time.max(now);
            while let Some(released) = line.release(now) {
                out.push(released);
            }
        }
        let number = |released: &Released| u16::from_be_bytes([released.packet[0], released.packet[1]]);
        out.into_iter().map(|released| (number(&released), released)).collect()
    }

    #[test]
    fn without_impairment_packets_leave_as_they_came() {
        let out = all(Impairment::default(), 100);
        let as_they_came = |(at, (number, it)): (usize, &(u16, Released))| {
            usize::from(*number) == at && it.waited == 0 && !it.reordered
        };
        assert!(out.len() == 100 && out.iter().enumerate().all(as_they_came));
    }

    #[test]
    fn a_delay_is_that_of_every_packet_and_keeps_their_order() {
        let out = all(Impairment { delay: 2.5, ..Impairment::default() }, 100);
        assert_eq!(out.len(), 100);
        assert!(out.iter().all(|(_, released)| released.waited == 2_500_000 && !released.reordered));
    }

    #[test]
    fn jitter_has_its_mean_and_deviation() {
        let out = all(Impairment { delay: 50.0, jitter: 4.0, ..Impairment::default() }, 20_000);
        let times: Vec<f64> = out.iter().map(|(_, released)| released.waited as f64 / 1e6).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let sd = (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64).sqrt();
        assert!((mean - 50.0).abs() < 0.1 && (sd - 4.0).abs() < 0.1, "{mean} {sd}");
        assert!(out.iter().any(|(_, released)| released.reordered), "packets overtake others");
    }

    #[test]
    fn a_packet_that_is_reordered_leaves_behind_three_later_ones_and_none_is_lost() {
        let out = all(Impairment { reorder: 0.02, ..Impairment::default() }, 10_000);
        assert_eq!(out.len(), 10_000);
        let mut numbers: Vec<_> = out.iter().map(|(number, _)| *number).collect();
        let late: Vec<_> = out.iter().filter(|(_, released)| released.reordered).collect();
        assert!((150..250).contains(&late.len()), "{}", late.len());
        assert!(late.iter().all(|(_, released)| (3 * MS..=LONGEST).contains(&released.waited)));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 10_000);
    }

    #[test]
    fn a_packet_does_not_wait_for_ever_for_others() {
        let mut line = DelayLine::new(Impairment { reorder: 1.0, ..Impairment::default() }, 1);
        line.take(vec![1], 5);
        assert_eq!((line.release(5), line.next_time()), (None, Some(5 + LONGEST)));
        assert!(line.release(5 + LONGEST).is_some_and(|released| !released.reordered));
        assert_eq!(line.next_time(), None);
    }
}
