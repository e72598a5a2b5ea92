//! The trailers of a bubble (RFC 6081 §4.1).

use crate::drop_reason::DropReason;
use sixway_wire::teredo::{Trailer, Trailers};

/// The nonce of a bubble (RFC 6081 §4.2).
pub(super) type BubbleNonce = [u8; 4];

/// The trailers of a bubble that are used here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BubbleTrailers<'a> {
    pub(super) nonce: Option<BubbleNonce>,
    /// Further endpoints of the sender (§4.3).
    pub(super) alternates: &'a [[u8; 6]],
    /// The sender asks for a direct bubble (§4.4).
    pub(super) solicits: bool,
    /// The port that the sender predicts its NAT to use (§4.5); 0: none.
    pub(super) random_port: u16,
}

impl<'a> BubbleTrailers<'a> {
    /// Reads them; of several of a kind the last.
    pub(super) fn read(octets: &'a [u8]) -> Result<Self, DropReason> {
        let mut read = Self::default();
        for trailer in Trailers::new(octets) {
            match trailer.map_err(|_| DropReason::TeredoUnexpected)? {
                Trailer::Nonce(nonce) => read.nonce = Some(nonce),
                Trailer::AlternateAddresses(list) => read.alternates = list,
                Trailer::Solicitation => read.solicits = true,
                Trailer::RandomPort(port) => read.random_port = port,
                Trailer::Advertisement => {}
            }
        }
        Ok(read)
    }
}
