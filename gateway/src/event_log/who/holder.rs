//! The owner of an outside endpoint in a record: a binding's inside endpoint, a port block's subscriber, or the host of
//! a lease.

use crate::event_log::notice::Notice;
use crate::event_log::record::{Event, Phase};
use std::sync::Arc;

/// The holder of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// An inside endpoint, a subscriber's prefix, or a host's address.
    pub(super) inside: String,
    pub(super) translator: Arc<str>,
    pub(super) kind: &'static str,
}

impl Holder {
    /// Of an event; `None`: it is about neither.
    pub(super) fn of(event: &Event) -> Option<(Phase, Self)> {
        match event {
            Event::Binding(phase, binding) => {
                let inside = binding.who();
                let kind = if binding.is_static { "static" } else { "dynamic" };
                Some((*phase, Self { inside, translator: Arc::clone(&binding.translator), kind }))
            }
            Event::Block(phase, block) => {
                let (inside, translator) = (block.who(), Arc::clone(&block.translator));
                Some((*phase, Self { inside, translator, kind: "port block" }))
            }
            Event::Notice(Notice::Lease(lease)) => {
                let (inside, translator) = (lease.host.to_string(), Arc::clone(&lease.concentrator));
                Some((lease.phase, Self { inside, translator, kind: "lease" }))
            }
            Event::Session(..)
            | Event::Mapping(_)
            | Event::Started
            | Event::Stopped
            | Event::Lost(..)
            | Event::Limit(..)
            | Event::Notice(Notice::Alarm(_) | Notice::Subscriber { .. })
            | Event::Portless(..)
            | Event::Stepped(_) => None,
        }
    }
}
