//! `sixway trace` and `sixway replay`: what the gateway does with a packet, and why, without a packet being sent and without a change.
//!
//! The packet goes through an engine of this process's own, made from the same configuration, with those sessions of the running gateway
//! that concern it. So the answer is given by the very code that forwards.
//!
//! ```text
//!     packet.rs     the packet that is asked about
//!     words.rs      any packet in words
//!     offline.rs    an engine apart, sessions that are copied into it, and what it does with a packet
//!     leases.rs     leases that the packet concerns
//!     state.rs      what else the running gateway has learnt
//!     replay.rs     a capture through such an engine
//! ```

mod leases;
mod offline;
mod packet;
mod replay;
mod state;
mod words;

pub use leases::{holder, note_own};
pub use offline::{Fate, Offline};
pub use packet::{Asked, Kind};
pub use replay::{Replayed, replay};
pub use state::{in_softwire, note_ends};
pub use words::{Detail, described, in_words};
