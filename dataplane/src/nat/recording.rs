//! The tables report events to their event sink.

use super::binding::Binding;
use super::binding_kind::BindingKind;
use super::events::{BindingEvent, BlockEvent, EventSink, NatEvent, SessionEvent};
use super::inside_key::{InsideKey, Named};
use super::port_blocks::BlockNews;
use super::session::Session;
use super::sides::{Inside, Outside};
use super::timeouts::Clock;
use crate::instant::Instant;

/// The sink, if there is one.
#[derive(Default)]
pub(super) struct Recording {
    sink: Option<Box<dyn EventSink>>,
    sessions: bool,
    /// Whether dynamic bindings are recorded, too.
    dynamic: bool,
}

impl Recording {
    /// Records events from now on. `in_blocks`: subscribers have port blocks.
    pub(super) fn start(&mut self, sink: Box<dyn EventSink>, in_blocks: bool) {
        self.sessions = sink.wants_sessions();
        self.dynamic = !in_blocks || sink.wants_bindings_in_blocks();
        self.sink = Some(sink);
    }

    /// Something happened that the tables do not know of.
    pub(super) fn record(&mut self, at: Instant, event: NatEvent) {
        if let Some(sink) = &mut self.sink {
            sink.record(at, event);
        }
    }

    /// A binding was made.
    #[inline]
    pub(super) fn binding_created<I: InsideKey>(
        &mut self,
        binding: &Binding<I>,
        names: &I::Names,
        clock: Clock,
    ) {
        if self.sink.is_some() {
            self.binding((binding, names), clock, NatEvent::BindingCreated);
        }
    }

    /// A binding ends.
    #[inline]
    pub(super) fn binding_deleted<I: InsideKey>(
        &mut self,
        binding: &Binding<I>,
        names: &I::Names,
        clock: Clock,
    ) {
        if self.sink.is_some() {
            self.binding((binding, names), clock, NatEvent::BindingDeleted);
        }
    }

    /// These port blocks were given or returned.
    #[cold]
    pub(super) fn blocks(&mut self, news: &[BlockNews], clock: Clock) {
        let Some(sink) = &mut self.sink else { return };
        for BlockNews { is_given, subscriber: (subscriber, bits), address, first, size } in
            news.iter().copied()
        {
            let event =
                BlockEvent { subscriber: Inside(subscriber), bits, address: Outside(address), first, size };
            let of = if is_given { NatEvent::BlockAllocated } else { NatEvent::BlockReleased };
            sink.record(clock.now(), of(event));
        }
    }

    /// A session was made. One that waits for its inside endpoint is not recorded before it has it.
    #[inline]
    pub(super) fn session_created<I: InsideKey>(
        &mut self,
        session: &Session<I>,
        names: &I::Names,
        clock: Clock,
    ) {
        if self.sessions {
            self.session((session, names), clock, NatEvent::SessionCreated);
        }
    }

    /// A session ends.
    #[inline]
    pub(super) fn session_deleted<I: InsideKey>(
        &mut self,
        session: &Session<I>,
        names: &I::Names,
        clock: Clock,
    ) {
        if self.sessions {
            self.session((session, names), clock, NatEvent::SessionDeleted);
        }
    }

    #[cold]
    #[inline(never)]
    fn binding<I: InsideKey>(
        &mut self,
        (binding, names): (&Binding<I>, &I::Names),
        clock: Clock,
        of: fn(BindingEvent) -> NatEvent,
    ) {
        let (Some(sink), Some(named)) = (&mut self.sink, binding.inside.0.named(names)) else { return };
        let Named { softwire, inside } = named;
        let is_static = binding.kind() == BindingKind::Static;
        if !is_static && !self.dynamic {
            return;
        }
        let (protocol, outside) = (binding.protocol(), binding.outside);
        sink.record(clock.now(), of(BindingEvent { protocol, softwire, inside, outside, is_static }));
    }

    #[cold]
    #[inline(never)]
    fn session<I: InsideKey>(
        &mut self,
        (session, names): (&Session<I>, &I::Names),
        clock: Clock,
        of: fn(SessionEvent) -> NatEvent,
    ) {
        let (Some(sink), true) = (&mut self.sink, session.has_inside()) else { return };
        let Inside(key) = session.inside;
        let Some(Named { softwire, inside }) = key.named(names) else { return };
        let Session { protocol, outside, remote, .. } = *session;
        sink.record(clock.now(), of(SessionEvent { protocol, softwire, inside, outside, remote }));
    }
}
