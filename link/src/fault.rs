//! A wrapper that adds faults to a link: it loses, duplicates, reorders, corrupts, truncates and delays packets. For tests; the same seed
//! gives the same faults.

use crate::{Link, LinkCounters};
use sixway_dataplane::{Frame, Offload};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

/// How probable each fault is for a packet, from 0 (never) to 1 (always). They are independent of one another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The packet is lost.
    pub drop: f64,
    /// The packet comes twice.
    pub duplicate: f64,
    /// The packet overtakes the previous one, if that is still queued.
    pub reorder: f64,
    /// One bit is turned.
    pub corrupt: f64,
    /// The packet loses its end.
    pub truncate: f64,
    /// The packet, and what follows it, waits for up to eight calls: of [`Link::receive`], or of [`Link::flush`] for packets
    /// sent.
    pub delay: f64,
}

/// How often each fault happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Packets that met the faults.
    pub packets: u64,
    /// Packets lost.
    pub dropped: u64,
    /// Packets doubled.
    pub duplicated: u64,
    /// Packets that overtook another.
    pub reordered: u64,
    /// Packets with a bit turned.
    pub corrupted: u64,
    /// Packets cut.
    pub truncated: u64,
    /// Packets delayed.
    pub delayed: u64,
}

/// A link with faults in both directions.
#[derive(Debug)]
pub struct Faulty<L> {
    link: L,
    received: Direction,
    sent: Direction,
    frame: Frame,
}

impl<L: Link> Faulty<L> {
    /// Wraps `link`: `received` befalls what it receives, `sent` what is sent through it.
    pub fn new(link: L, received: Faults, sent: Faults, seed: u64) -> Self {
        let frame = Frame::with_capacity(sixway_dataplane::frame::MAX_PACKET);
        let (received, sent) = (Direction::new(received, seed), Direction::new(sent, !seed));
        Self { link, received, sent, frame }
    }

    /// What befell the packets received and those sent.
    pub const fn faults(&self) -> (FaultCounters, FaultCounters) {
        (self.received.counters, self.sent.counters)
    }

    /// The link without its faults.
    pub const fn inner(&mut self) -> &mut L {
        &mut self.link
    }

    fn send_due(&mut self) -> io::Result<()> {
        while let Some((packet, offload)) = self.sent.due() {
            self.frame.fill(&packet, offload);
            self.link.send(&mut self.frame)?;
        }
        Ok(())
    }
}

impl<L: Link> Link for Faulty<L> {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let count = self.link.receive(frames)?;
        self.received.time += 1;
        for frame in &frames[..count] {
            self.received.pass(frame.bytes().to_vec(), frame.offload);
        }
        let mut filled = 0;
        for frame in frames {
            let Some((packet, offload)) = self.received.due() else { break };
            frame.fill(&packet, offload);
            filled += 1;
        }
        Ok(filled)
    }

    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.sent.pass(frame.bytes().to_vec(), frame.offload);
        self.send_due()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sent.time += 1;
        self.send_due()?;
        self.link.flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.poll_fd()
    }

    fn counters(&self) -> &LinkCounters {
        self.link.counters()
    }
}

/// One direction: queued packets, each with the call from which on it may be delivered.
#[derive(Debug)]
struct Direction {
    faults: Faults,
    random: Random,
    time: u64,
    waiting: VecDeque<(u64, Vec<u8>, Offload)>,
    counters: FaultCounters,
}

impl Direction {
    fn new(faults: Faults, seed: u64) -> Self {
        let waiting = VecDeque::new();
        Self { faults, random: Random(seed), time: 0, waiting, counters: FaultCounters::default() }
    }

    /// A packet meets its faults and waits to be released.
    fn pass(&mut self, mut packet: Vec<u8>, offload: Offload) {
        let (faults, counters, random) = (self.faults, &mut self.counters, &mut self.random);
        counters.packets += 1;
        if random.happens(faults.drop) {
            counters.dropped += 1;
            return;
        }
        if random.happens(faults.truncate) {
            counters.truncated += 1;
            packet.truncate(random.below(packet.len()));
        }
        if random.happens(faults.corrupt) && !packet.is_empty() {
            counters.corrupted += 1;
            let at = random.below(packet.len());
            packet[at] ^= 1 << random.below(8);
        }
        let mut due = self.time;
        if random.happens(faults.delay) {
            counters.delayed += 1;
            due += 1 + random.below(8) as u64;
        }
        if random.happens(faults.duplicate) {
            counters.duplicated += 1;
            self.waiting.push_back((due, packet.clone(), offload));
        }
        self.waiting.push_back((due, packet, offload));
        if random.happens(faults.reorder) && self.waiting.len() > 1 {
            counters.reordered += 1;
            self.waiting.swap(self.waiting.len() - 2, self.waiting.len() - 1);
        }
    }

    /// The next packet, if its time has come.
    fn due(&mut self) -> Option<(Vec<u8>, Offload)> {
        let (due, ..) = self.waiting.front()?;
        if *due > self.time {
            return None;
        }
        self.waiting.pop_front().map(|(_, packet, offload)| (packet, offload))
    }
}

/// SplitMix64: enough for tests, the same everywhere.
#[derive(Clone, Copy, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn happens(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % (bound as u64).max(1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    /// What arrives of 1,000 numbered packets.
    fn arrivals(faults: Faults, seed: u64) -> (Vec<Vec<u8>>, FaultCounters) {
        let (mut near, far) = Memory::pair(10_000);
        let mut far = Faulty::new(far, faults, Faults::default(), seed);
        let mut frames: Vec<_> = (0..64).map(|_| Frame::with_capacity(100)).collect();
        let mut arrived = Vec::new();
        for number in 0..1_000_u32 {
            near.send(&mut Frame::holding(&[number.to_be_bytes(); 5].concat())).unwrap();
            if number % 32 == 31 {
                let count = far.receive(&mut frames).unwrap();
                arrived.extend(frames[..count].iter().map(|frame| frame.bytes().to_vec()));
            }
        }
        for _ in 0..100 {
            let count = far.receive(&mut frames).unwrap();
            arrived.extend(frames[..count].iter().map(|frame| frame.bytes().to_vec()));
        }
        (arrived, far.faults().0)
    }

    #[test]
    fn without_faults_everything_arrives_in_order() {
        let (arrived, counters) = arrivals(Faults::default(), 1);
        assert!(arrived.iter().enumerate().all(|(n, packet)| packet[..4] == (n as u32).to_be_bytes()));
        assert_eq!(
            (arrived.len(), counters),
            (1_000, FaultCounters { packets: 1_000, ..FaultCounters::default() })
        );
    }

    #[test]
    fn packets_are_conserved_whatever_befalls_them() {
        let faults =
            Faults { drop: 0.1, duplicate: 0.1, reorder: 0.1, corrupt: 0.1, truncate: 0.1, delay: 0.1 };
        for seed in 0..20 {
            let (arrived, counters) = arrivals(faults, seed);
            assert_eq!(arrived.len() as u64, counters.packets - counters.dropped + counters.duplicated);
            let happened = [
                counters.dropped,
                counters.duplicated,
                counters.reordered,
                counters.corrupted,
                counters.truncated,
                counters.delayed,
            ];
            assert!(happened.iter().all(|times| (40..200).contains(times)), "{counters:?}");
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_faults() {
        let faults = Faults { drop: 0.5, corrupt: 0.5, ..Faults::default() };
        assert_eq!(arrivals(faults, 7), arrivals(faults, 7));
        assert_ne!(arrivals(faults, 7).0, arrivals(faults, 8).0);
    }

    #[test]
    fn what_is_sent_meets_faults_too_and_delayed_packets_leave_with_later_flushes() {
        let (near, far) = Memory::pair(100);
        let faults = Faults { delay: 1.0, duplicate: 1.0, ..Faults::default() };
        let mut near = Faulty::new(near, Faults::default(), faults, 3);
        near.send(&mut Frame::holding(b"late")).unwrap();
        assert_eq!(far.waiting(), 0);
        for _ in 0..8 {
            near.flush().unwrap();
        }
        assert_eq!(far.waiting(), 2);
    }
}
