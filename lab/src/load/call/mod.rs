//! Telephone calls as load: set up by SIP, with audio as RTP carries it, both ways.

mod media;
mod phone;
mod rtp;
mod sip;

pub use phone::{CallReport, Calls};
