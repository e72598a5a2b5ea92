//! The gateway's core: a batch of packets in, a verdict for each out.
//!
//! It does no I/O, reads no clock and no random source: `now` is an argument, the seed comes in through `new`.
//! The path of a packet is `engine`; the other modules are its parts.

extern crate alloc;

mod alg;
pub mod classify;
pub mod counters;
pub mod direction;
pub mod drop_reason;
pub mod effects;
pub mod engine;
pub mod fair_share;
pub mod fragment;
pub mod frame;
pub mod identity;
pub mod instant;
pub mod kind;
pub mod limits;
pub mod mechanism;
pub mod nat;
pub mod outbox;
pub mod parse;
pub mod rates;
pub mod rewrite;
pub mod source_check;
pub mod stateful;
pub mod translate;
pub mod tunnel;
pub mod verdict;

#[cfg(test)]
mod samples;

pub use counters::Counters;
pub use drop_reason::DropReason;
pub use frame::{Checksum, Frame, Offload, SegmentKind, Segments};
pub use instant::Instant;
pub use limits::Limits;
pub use nat::offload;
pub use outbox::Outbox;
pub use verdict::{Action, Decision, Edit, MechanismId, Next, Outer, PolicyId, Quoted, Verdict, WorkerId};
