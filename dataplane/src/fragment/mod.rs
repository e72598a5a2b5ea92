//! Fragments (RFC 791 §3.2, RFC 8200 §4.5): reassembled where a NAT needs the whole packet (RFC 6146 §3.4), made where a link is too small.
//! GSO packets are cut into segments first, and segments are joined to GSO packets.

mod fragmentation;
mod held;
mod holders;
mod joining;
mod mates;
mod reassembly;
mod segmentation;

pub use fragmentation::{fragment4, fragment6};
pub use held::Whole;
pub use holders::Sharing;
pub use joining::Joining;
pub use mates::Mates;
pub use reassembly::{Admission, Displaced, Expired, FRAGMENT_MIN, FragmentLimits, Reassembly, Refused};
pub use segmentation::GsoPacket;

#[cfg(test)]
mod tests;
