//! The owners that held fragments are charged to, so that one owner cannot fill a table.

use crate::parse::Addresses;

/// The senders of fragments in a table that subscribers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sharing {
    /// Where the addresses of the packet are valid: those inside a softwire may be in others, too.
    pub scope: u128,
    /// The subscriber.
    pub subscriber: u128,
}

/// One that memory is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Holder {
    /// The sender: an IPv4 address, or an IPv6 /64, because one host can use as many addresses of it as it likes; or a subscriber.
    Sender(u128),
    /// A sender, which may be forged, of packets to one destination.
    Pair(u128, u128),
    /// The destination.
    Destination(u128),
}

/// The holders of a packet: the sender, or the pair and the destination.
#[derive(Clone, Copy)]
pub(super) struct Holders {
    pub(super) sender: Holder,
    pub(super) destination: Option<Holder>,
}

impl Holders {
    pub(super) fn of(addresses: Addresses, sharing: Option<Sharing>, is_by_destination: bool) -> Self {
        let (source, destination) = match addresses {
            Addresses::V4 { source, destination } => {
                (source.to_ipv6_mapped().to_bits(), destination.to_ipv6_mapped().to_bits())
            }
            Addresses::V6 { source, destination } => (source.to_bits() >> 64 << 64, destination.to_bits()),
        };
        if is_by_destination {
            let destination_holder = Holder::Destination(destination);
            return Self { sender: Holder::Pair(source, destination), destination: Some(destination_holder) };
        }
        let sender = Holder::Sender(sharing.map_or(source, |sharing| sharing.subscriber));
        Self { sender, destination: None }
    }

    /// All of them.
    pub(super) fn all(self) -> impl Iterator<Item = Holder> {
        core::iter::once(self.sender).chain(self.destination)
    }
}
