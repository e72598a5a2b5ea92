//! From a worker to the log: a bounded ring for each of its translators. A full one loses events, and counts them.

use rtrb::{Consumer, Producer, RingBuffer};
use sixway_dataplane::Instant;
use sixway_dataplane::nat::{EventSink, NatEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Events that a ring holds: at a hundred thousand in a second, those of half a second.
pub(super) const RING: usize = 65_536;

/// An event and its time.
pub(super) type Timed = (Instant, NatEvent);

/// The worker's end.
struct RingSink {
    ring: Producer<Timed>,
    lost: Arc<AtomicU64>,
    wants: Wants,
}

/// The events that the log accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wants {
    pub(super) sessions: bool,
    /// Each binding, also where subscribers have port blocks.
    pub(super) each_binding: bool,
}

/// The log's end.
pub(super) struct RingEnd {
    ring: Consumer<Timed>,
    lost: Arc<AtomicU64>,
    /// The translator's name.
    pub(super) translator: Arc<str>,
}

/// A ring for a translator, of this size.
pub(super) fn ring(translator: Arc<str>, size: usize, wants: Wants) -> (Box<dyn EventSink>, RingEnd) {
    let (producer, consumer) = RingBuffer::new(size);
    let lost = Arc::new(AtomicU64::new(0));
    let sink = RingSink { ring: producer, lost: Arc::clone(&lost), wants };
    (Box::new(sink), RingEnd { ring: consumer, lost, translator })
}

impl EventSink for RingSink {
    fn wants_sessions(&self) -> bool {
        self.wants.sessions
    }

    fn wants_bindings_in_blocks(&self) -> bool {
        self.wants.each_binding
    }

    fn record(&mut self, at: Instant, event: NatEvent) {
        if self.ring.push((at, event)).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}

impl RingEnd {
    /// The next event.
    pub(super) fn next(&mut self) -> Option<Timed> {
        self.ring.pop().ok()
    }

    /// Events that wait.
    pub(super) fn backlog(&self) -> usize {
        self.ring.slots()
    }

    /// Events lost since the last call.
    pub(super) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::nat::{BindingEvent, Inside, NatProtocol, Outside};
    use sixway_wire::{Endpoint4, Endpoint6};

    fn event(port: u16) -> NatEvent {
        NatEvent::BindingCreated(BindingEvent {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), port)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port)),
            is_static: false,
        })
    }

    #[test]
    fn a_full_ring_loses_the_newest_and_counts_them_once() {
        let (mut sink, mut end) = ring("nat64".into(), 3, Wants { sessions: true, each_binding: false });
        assert!(sink.wants_sessions() && !sink.wants_bindings_in_blocks());
        for port in 0..5 {
            sink.record(Instant(port.into()), event(port));
        }
        assert_eq!((end.take_lost(), end.take_lost()), (2, 0));
        assert_eq!(end.next(), Some((Instant(0), event(0))));
        sink.record(Instant(9), event(9));
        let rest: Vec<Timed> = std::iter::from_fn(|| end.next()).collect();
        assert_eq!(rest, [(Instant(1), event(1)), (Instant(2), event(2)), (Instant(9), event(9))]);
    }
}
