//! A link in memory: two ends; one receives what the other sends. For tests and for analysing packets.

use crate::{Link, LinkCounters};
use sixway_dataplane::frame::{Ingress, Realm};
use sixway_dataplane::{Frame, Offload};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Queued packets, with their offload state.
type Queue = Arc<Mutex<VecDeque<(Vec<u8>, Offload)>>>;

/// One end of a link in memory.
#[derive(Debug)]
pub struct Memory {
    inbox: Queue,
    outbox: Queue,
    capacity: usize,
    counters: LinkCounters,
    realm: Realm,
}

impl Memory {
    /// Two ends of one link that holds up to `capacity` packets each way.
    pub fn pair(capacity: usize) -> (Self, Self) {
        let (one, other) = (Queue::default(), Queue::default());
        let end = |inbox, outbox| Self {
            inbox,
            outbox,
            capacity,
            counters: LinkCounters::default(),
            realm: Realm(0),
        };
        (end(one.clone(), other.clone()), end(other, one))
    }

    /// The same end, of a realm.
    pub fn in_realm(self, realm: Realm) -> Self {
        Self { realm, ..self }
    }

    /// How many packets wait to be received at this end.
    pub fn waiting(&self) -> usize {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Link for Memory {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let count = inbox.len().min(frames.len());
        for (frame, (packet, offload)) in frames.iter_mut().zip(inbox.drain(..count)) {
            frame.fill(&packet, offload);
            frame.ingress = Ingress::Device(self.realm);
            self.counters.truncated += u64::from(frame.len() < packet.len());
            self.counters.received += 1;
            self.counters.received_octets += frame.len() as u64;
            self.counters.received_gso += u64::from(offload.segments.is_some());
        }
        Ok(count)
    }

    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        if outbox.len() >= self.capacity {
            self.counters.no_room += 1;
            return Ok(());
        }
        outbox.push_back((frame.bytes().to_vec(), frame.offload));
        self.counters.sent += 1;
        self.counters.sent_octets += frame.len() as u64;
        self.counters.sent_gso += u64::from(frame.offload.segments.is_some());
        Ok(())
    }

    fn realm(&self) -> Realm {
        self.realm
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::{Checksum, SegmentKind, Segments};

    #[test]
    fn what_one_end_sends_the_other_receives_in_order_with_its_offload() {
        let (mut near, mut far) = Memory::pair(8);
        let offload = Offload {
            checksum: Checksum::Partial,
            segments: Some(Segments { size: 1_000, kind: SegmentKind::Tcp }),
            transport: 20,
        };
        near.send(&mut Frame::holding(b"first")).unwrap();
        let mut second = Frame::holding(b"second");
        second.offload = offload;
        near.send(&mut second).unwrap();
        let mut frames = [Frame::with_capacity(100), Frame::with_capacity(100), Frame::with_capacity(100)];
        assert_eq!(far.receive(&mut frames).unwrap(), 2);
        assert_eq!((frames[0].bytes(), frames[1].bytes()), (&b"first"[..], &b"second"[..]));
        assert_eq!((frames[0].offload, frames[1].offload), (Offload::default(), offload));
        assert_eq!(far.receive(&mut frames).unwrap(), 0);
        assert_eq!(far.counters().received_gso, 1);
    }

    #[test]
    fn a_full_link_counts_what_it_has_no_room_for() {
        let (mut near, far) = Memory::pair(1);
        near.send(&mut Frame::holding(b"one")).unwrap();
        near.send(&mut Frame::holding(b"two")).unwrap();
        assert_eq!(far.waiting(), 1);
        assert_eq!((near.counters().sent, near.counters().no_room), (1, 1));
    }
}
