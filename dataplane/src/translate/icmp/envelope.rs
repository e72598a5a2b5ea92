//! The IP header of a translated ICMP error.

/// Addresses and hop limit of the packet that a translated error becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<Address> {
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// TTL or Hop Limit, counted down already; 0 is refused with [`crate::DropReason::HopLimitExceeded`].
    pub hops: u8,
}
