//! The messages between sender and receiver of an open loop, and the receiver's account: loss, order, latency and jitter from the stamps.

use super::arrivals::{Arrival, Arrivals};
use super::clock;
use super::jitter::Jitter;
use super::outcome::{LOST_AFTER, Outcome};
use super::stamp::Stamp;
use super::variation::Differences;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Packets that may be under way; of older ones it is not known how late they were sent.
const UNDER_WAY: usize = 1 << 17;

/// What the sender tells the receiver.
pub(super) struct Told {
    /// For each of the last packets, how long after its due time it was sent (nanoseconds).
    lateness: Vec<AtomicU32>,
    /// How many packets were sent, once the last one was; and when.
    sent: AtomicU64,
    ended: AtomicU64,
    /// One more than the number of the last one that was due.
    due: AtomicU32,
}

const STILL_SENDING: u64 = u64::MAX;

impl Told {
    pub(super) fn new() -> Self {
        let lateness = (0..UNDER_WAY).map(|_| AtomicU32::new(0)).collect();
        let (sent, ended) = (AtomicU64::new(STILL_SENDING), AtomicU64::new(0));
        Self { lateness, sent, ended, due: AtomicU32::new(0) }
    }

    /// A packet is sent this long after its due time.
    pub(super) fn sends(&self, sequence: u32, lateness: u64) {
        let lateness = u32::try_from(lateness).unwrap_or(u32::MAX);
        self.lateness[sequence as usize % UNDER_WAY].store(lateness, Ordering::Relaxed);
        self.due.store(sequence.saturating_add(1), Ordering::Relaxed);
    }

    /// This many were sent, and no other will be.
    pub(super) fn ends(&self, sent: u64) {
        self.ended.store(clock::now(), Ordering::Relaxed);
        self.sent.store(sent, Ordering::Release);
    }

    /// Whether there is nothing to wait for: all have come, or the time of the last ones is over.
    pub(super) fn is_over(&self, came: u64) -> bool {
        let sent = self.sent.load(Ordering::Acquire);
        let limit = || self.ended.load(Ordering::Relaxed) + clock::nanoseconds(LOST_AFTER);
        sent != STILL_SENDING && (came >= sent || clock::now() > limit())
    }

    fn lateness_of(&self, sequence: u32) -> u64 {
        self.lateness[sequence as usize % UNDER_WAY].load(Ordering::Relaxed).into()
    }
}

/// The receiver's account.
pub(super) struct Account<'a> {
    told: &'a Told,
    arrivals: Arrivals,
    jitter: Vec<Jitter>,
    differences: Differences,
    outcome: Outcome,
    last: u64,
    silence: u64,
}

impl<'a> Account<'a> {
    pub(super) fn new(told: &'a Told, flows: u16) -> Self {
        Self {
            told,
            arrivals: Arrivals::new(flows, u32::MAX),
            jitter: vec![Jitter::default(); flows.into()],
            differences: Differences::new(),
            outcome: Outcome::default(),
            last: 0,
            silence: 0,
        }
    }

    /// Notes a payload that has come; those of others are ignored.
    pub(super) fn note(&mut self, payload: &[u8], now: u64) {
        let Some(stamp) = Stamp::read(payload) else { return };
        match self.arrivals.note(stamp.flow, stamp.sequence) {
            Arrival::Unknown => return,
            Arrival::Again => {
                self.outcome.duplicated += 1;
                return;
            }
            Arrival::Behind => self.outcome.reordered += 1,
            Arrival::Next => {}
        }
        let sent = stamp.due + self.told.lateness_of(stamp.sequence);
        self.outcome.answer_due(stamp.due, sent, now);
        self.differences.note(now.saturating_sub(sent));
        if let Some(jitter) = self.jitter.get_mut(usize::from(stamp.flow)) {
            jitter.note(sent, now);
        }
        if self.last > 0 {
            self.silence = self.silence.max(now.saturating_sub(self.last));
        }
        self.last = self.last.max(now);
    }

    /// How many different ones have come.
    pub(super) const fn came(&self) -> u64 {
        self.arrivals.count()
    }

    /// Loss is not in it: that needs the number of what was sent. The time of the last arrival is 0 if there was none.
    pub(super) fn end(mut self) -> (Outcome, u64) {
        self.outcome.jitter = self.jitter.iter().filter_map(Jitter::nanoseconds).reduce(f64::max);
        self.outcome.mean_jitter = self.jitter.iter().filter_map(Jitter::mean).reduce(f64::max);
        self.outcome.variation = self.differences.variation();
        // What has not come since the last one came, is part of a silence, too.
        let end = self.told.ended.load(Ordering::Relaxed);
        let after = if self.last > 0 { end.saturating_sub(self.last) } else { 0 };
        self.outcome.silence = Duration::from_nanos(self.silence.max(after));
        self.outcome.last_lost = self.arrivals.last_missing(self.told.due.load(Ordering::Relaxed));
        (self.outcome, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_accounted_for_by_their_stamps() {
        let told = Told::new();
        let mut account = Account::new(&told, 1);
        let octets = |sequence, due| Stamp { flow: 0, sequence, due }.octets();
        told.sends(0, 40);
        account.note(&octets(0, 1_000), 1_100);
        account.note(&octets(2, 3_000), 3_100);
        account.note(&octets(1, 2_000), 3_200);
        account.note(&octets(1, 2_000), 3_300);
        account.note(b"a packet of somebody else's", 9_000);
        assert_eq!(account.came(), 3);
        assert!(!told.is_over(3), "the sender has not ended");
        told.ends(4);
        assert!(!told.is_over(3) && told.is_over(4));
        let (outcome, last) = account.end();
        assert_eq!((outcome.answered, outcome.reordered, outcome.duplicated, last), (3, 1, 1, 3_200));
        assert_eq!((outcome.latency.min(), outcome.service.min()), (100, 60));
        assert!(outcome.jitter.is_some() && outcome.mean_jitter.is_some());
        assert_eq!(outcome.last_lost, None);
    }

    #[test]
    fn the_last_lost_packet_and_the_longest_silence_are_known() {
        let told = Told::new();
        let mut account = Account::new(&told, 1);
        (0..6).for_each(|sequence| told.sends(sequence, 0));
        for (sequence, now) in [(0, 1_000), (1, 2_000), (3, 7_000), (5, 9_000)] {
            account.note(&Stamp { flow: 0, sequence, due: now }.octets(), now);
        }
        let (outcome, _) = account.end();
        assert_eq!((outcome.silence, outcome.last_lost), (Duration::from_nanos(5_000), Some(4)));
        // One came, and then none until the end of sending.
        let mut account = Account::new(&told, 1);
        account.note(&Stamp { flow: 0, sequence: 0, due: 1_000 }.octets(), 1_000);
        told.ends(6);
        assert!(account.end().0.silence > Duration::from_nanos(5_000));
    }
}
