//! The counters of a link: plain numbers, one set for each link or queue.

macro_rules! link_counters {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal,)+) => {
        /// Counters of one link or of one queue of it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct LinkCounters {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl LinkCounters {
            /// Every counter: its name, what it counts, its value.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($name, concat!($($doc,)+).trim_ascii(), self.$field),)+].into_iter()
            }

            /// Adds another link's counters.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

link_counters! {
    /// Frames received.
    received = "received",
    /// Octets of the frames received, IP header included.
    received_octets = "received_octets",
    /// GSO packets among the frames received.
    received_gso = "received_gso",
    /// Frames sent.
    sent = "sent",
    /// Octets of the frames sent, IP header included.
    sent_octets = "sent_octets",
    /// GSO packets among the frames sent, not segmented here.
    sent_gso = "sent_gso",
    /// Frames not sent because the link had no room (EAGAIN, ENOBUFS, ENOMEM).
    no_room = "no_room",
    /// Frames not sent because the kernel refused them (EINVAL, EIO when the device is down, and others).
    refused = "refused",
    /// Received frames whose offload header contradicts the packet; the packet itself is used.
    inconsistent_header = "inconsistent_header",
    /// Checksums completed here, because the engine or the kernel does not accept partial ones.
    checksums_finished = "checksums_finished",
    /// GSO packets segmented here, because the kernel cannot.
    gso_segmented = "gso_segmented",
    /// Frames that were longer than the buffer and were truncated.
    truncated = "truncated",
    /// Packets lost because a socket buffer was full (SO_RXQ_OVFL).
    overflowed = "overflowed",
    /// UDP GSO packets dropped because the kernel did not report the length of their datagrams.
    boundaries_lost = "boundaries_lost",
    /// Messages dropped because their ICMP checksum is wrong.
    damaged = "damaged",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_and_explain_themselves() {
        let mut sum = LinkCounters { received: 2, no_room: 1, ..LinkCounters::default() };
        sum.add(&LinkCounters { received: 3, ..LinkCounters::default() });
        let named: Vec<_> =
            sum.named().filter(|(_, _, value)| *value != 0).map(|(name, _, v)| (name, v)).collect();
        assert_eq!(named, [("received", 5), ("no_room", 1)]);
        assert!(sum.named().all(|(_, help, _)| help.ends_with('.')));
    }
}
