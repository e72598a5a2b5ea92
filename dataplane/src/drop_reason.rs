//! The one closed list of reasons for which a packet is dropped: the error type of everything that can fail per packet.
//!
//! From this list come the enum, the counters, the metrics' help texts, the ICMP errors and the table in `docs/drops.md`.

/// The ICMP error that a drop provokes, if the sender may be told (RFC 1812 §4.3.2.7, RFC 4443 §2.4 e).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Type and code towards an IPv4 sender.
    pub icmpv4: Option<(u8, u8)>,
    /// Type and code towards an IPv6 sender.
    pub icmpv6: Option<(u8, u8)>,
}

macro_rules! answer {
    (silent) => {
        Answer { icmpv4: None, icmpv6: None }
    };
    (icmpv4($t4:literal, $c4:literal)) => {
        Answer { icmpv4: Some(($t4, $c4)), icmpv6: None }
    };
    (icmpv6($t6:literal, $c6:literal)) => {
        Answer { icmpv4: None, icmpv6: Some(($t6, $c6)) }
    };
    (icmpv4($t4:literal, $c4:literal) icmpv6($t6:literal, $c6:literal)) => {
        Answer { icmpv4: Some(($t4, $c4)), icmpv6: Some(($t6, $c6)) }
    };
}

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $name:ident => $($answer:ident $(($t:literal, $c:literal))?)+,)+) => {
        /// Why a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl DropReason {
            /// Every reason, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The reason's name: counter name and metric label.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// What it means, in a sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }

            /// The ICMP error that tells the sender.
            pub const fn answer(self) -> Answer {
                match self { $(Self::$name => answer!($($answer $(($t, $c))?)+),)+ }
            }
        }
    };
}

drop_reasons! {
    // Parsing: what reaches us is no packet, or lies about its lengths.
    /// Shorter than its headers, or than its header says.
    Truncated => silent,
    /// Neither IPv4 nor IPv6.
    NotIp => silent,
    /// The IPv4 header length or Total Length contradicts itself (RFC 1812 §5.2.2).
    BadIpv4Length => silent,
    /// The IPv4 header checksum is wrong (RFC 1812 §5.2.2).
    BadIpv4Checksum => silent,
    /// An IPv6 extension header is cut short, or there are too many of them (RFC 8200 §4).
    BadExtensionHeader => silent,
    /// The transport header is cut short (RFC 9293 §3.1, RFC 768).
    TransportTruncated => silent,
    /// A super-frame whose description does not fit its octets.
    BadSuperFrame => silent,
    /// The buffer has no room in front for the headers to be added.
    NoHeadroom => silent,

    // Classification and source checks.
    /// No mechanism owns the destination, and the gateway is no router for it.
    NoMechanism => icmpv4(3, 0) icmpv6(1, 0),
    /// The source address is no host's: unspecified, loopback, multicast, broadcast, class E (RFC 1812 §5.3.7, RFC 4291 §2.5).
    MartianSource => silent,
    /// The destination is multicast, loopback or unspecified: nothing that unicast translation carries (RFC 7915 §1.2).
    MartianDestination => silent,
    /// A packet to the gateway's own address that is not an echo request.
    ToGateway => icmpv4(3, 2) icmpv6(1, 4),
    /// The hop limit ran out here (RFC 1812 §5.3.1, RFC 8200 §3).
    HopLimitExceeded => icmpv4(11, 0) icmpv6(3, 0),
    /// The packet came back to the gateway more often than its mechanisms nest.
    NestingLimit => silent,
    /// The ring to the worker that owns the packet is full.
    HandoverFull => silent,

    // Translation (RFC 7915).
    /// An IPv4 source route that has not run out (RFC 7915 §4.1).
    SourceRoute => icmpv4(3, 5),
    /// A routing header with segments left (RFC 7915 §5.1); the error points at Segments Left.
    RoutingHeader => icmpv6(4, 0),
    /// An extension header behind the Fragment header, which IPv4 cannot carry (RFC 7915 §5.1.1).
    ExtensionAfterFragment => icmpv6(1, 1),
    /// The packet, translated or in its tunnel, is larger than the next link's MTU and may not be fragmented (RFC 7915 §4.1, §5.1; RFC 2473 §7).
    PacketTooBig => icmpv4(3, 4) icmpv6(2, 0),
    /// The translated packet is larger than an IPv4 packet can be.
    TooLongForIpv4 => silent,
    /// A UDP packet without checksum, which the policy drops (RFC 7915 §4.5).
    UdpChecksumZero => icmpv4(3, 13),
    /// A fragment of a UDP packet without checksum, which a stateless translator cannot compute (RFC 7915 §4.5).
    UdpChecksumZeroFragment => icmpv4(3, 13),
    /// A UDP length that contradicts the packet, so that no checksum can be computed (RFC 768).
    BadUdpLength => silent,
    /// The source address has no mapping (RFC 7915 §6, RFC 7757 §3.3, RFC 6296 §3.2).
    SourceUnmapped => icmpv4(3, 13) icmpv6(1, 1),
    /// The destination address has no mapping.
    DestinationUnmapped => icmpv4(3, 1) icmpv6(1, 3),
    /// A non-global IPv4 address with the well-known prefix (RFC 6052 §3.1).
    NonGlobalWithWellKnownPrefix => icmpv4(3, 13) icmpv6(1, 1),
    /// Octet u of an address under a prefix shorter than 96 bits is not zero (RFC 6052 §2.2).
    OctetUNotZero => silent,
    /// The dynamic pool has no address left to give to a new host.
    DynamicPoolEmpty => icmpv6(1, 3),
    /// An ICMP message of a type that has no counterpart in the other family (RFC 7915 §4.2, §5.2), or to the gateway itself that is no echo request.
    IcmpUntranslatable => silent,
    /// A fragmented ICMP message, whose checksum cannot be translated (RFC 7915 §1.2).
    IcmpFragment => silent,
    /// An ICMP message whose checksum is wrong.
    BadIcmpChecksum => silent,
    /// An ICMP error whose quoted packet cannot be read or translated (RFC 7915 §4.3, §5.3).
    QuoteUnusable => silent,
    /// An ICMP error about an ICMP error (RFC 7915 §4.3, RFC 6146 §3.4).
    QuoteIsIcmpError => silent,
    /// IGMP is silently dropped (RFC 7915 §4.2).
    Igmp => silent,
    /// A protocol that the other family would read as its own header.
    ProtocolUntranslatable => silent,

    /// An address to be translated by NPTv6 whose interface identifier is all zeros (RFC 6296 §3.7); the error points at it.
    ZeroInterfaceIdentifier => icmpv6(4, 0),

    // Tunnels (RFC 4213).
    /// A tunnel packet between two addresses that no tunnel has for its ends (RFC 4213 §3.6), or of a family that the tunnel has no prefix of.
    NoTunnel => silent,
    /// A packet in a tunnel from or to an address of this host, or from or to an IPv6 address in which one stands, or from
    /// one relay to another: it would run in a circle (RFC 6324 §3, RFC 5969 §12). Or an IPv4 tunnel packet of this host that is routed into a further
    /// tunnel (RFC 2003 §3.2), as when its remote end is routed into the device.
    TunnelLoop => silent,
    /// What the outer header says is inside is not there: another IP version, or nothing (RFC 4213 §3.6).
    InnerNotIpv6 => silent,
    /// The outer IPv4 source is not the one embedded in the inner IPv6 source (RFC 3964 §5.2, RFC 5969 §9.2, RFC 5214 §7.3).
    SpoofedEmbeddedSource => silent,
    /// An IPv4 address embedded in an IPv6 one is no host's: networks 0 and 127, multicast, class E, or the broadcast address of
    /// an attached network (RFC 3964 §5.3.1).
    EmbeddedNotUnicast => silent,
    /// An IPv4 address embedded in an IPv6 one is private, shared or link-local, and means nothing where the tunnel goes
    /// (RFC 3056 §9, RFC 3964 §5.3.1).
    EmbeddedNotPublic => silent,
    /// An inner source that is not the tunnel's own kind, from an outer source that is none of its relays, border relays or
    /// routers (RFC 3964 §5.2, RFC 5969 §9.2, RFC 5214 §7.3).
    SourceNotRelay => silent,
    /// An inner source that is not behind the tunnel's remote end: spoofed, of this side, or the gateway's own address (RFC 4213 §3.6, RFC 5969
    /// §9.2).
    SourceNotInTunnel => silent,
    /// An inner destination outside the site at which the tunnel ends (RFC 3964 §3.1, RFC 5969 §9.2).
    DestinationNotInSite => silent,
    /// A packet from one 6to4 site to another through a relay, which the two do not need (RFC 3964 §3.2, §4.2).
    BetweenSites => silent,
    /// A packet into a tunnel whose source the other end would refuse, for it is not one of this site's (RFC 3964 §5.1,
    /// RFC 5969 §9.2).
    SourceNotOfSite => silent,
    /// A native destination, and no relay, border relay or router is known that would take the packet there.
    NoRelay => icmpv6(1, 0),
    /// No IPv4 address stands in a destination on the tunnel's link, or none that may be there (RFC 5214 §7.1, RFC 6324 §3.1.2).
    NoLocator => icmpv6(1, 3),
    /// The other end of the tunnel has not yet been heard of.
    NoRemote => icmpv4(3, 1) icmpv6(1, 3),
    /// A packet that fits the tunnel only in fragments, which the operator forbids. A smaller MTU would not help the sender (RFC 8200 §5), or
    /// it did not set DF.
    OuterTooBig => icmpv4(3, 1) icmpv6(1, 3),
    /// A packet that may enter no further tunnel, by the Tunnel Encapsulation Limit that it bears (RFC 2473 §4.1.1).
    EncapsulationLimit => icmpv6(4, 0),
    /// An ICMP error from inside a tunnel about a packet that was not sent through it (RFC 4213 §3.4).
    ErrorAboutNothingSent => silent,

    /// The outer header tells of congestion, and the transport inside would not hear of it (RFC 6040 §4.2).
    InnerNotEct => silent,
    /// An ICMP error from inside a tunnel that no sender can or need be told of: too little is quoted, it is about an ICMP error,
    /// or it concerns the tunnel alone (RFC 4213 §3.4). What it tells of the path is learnt all the same.
    ErrorForTunnelAlone => silent,

    // NATs (RFC 6146, RFC 4787, RFC 6888). RFC 6888 REQ-11 B: whom no mapping can be made for is told code 1, Host Unreachable.
    /// A protocol other than TCP, UDP and ICMP (RFC 6146 §3.4).
    ProtocolUnsupported => icmpv4(3, 2) icmpv6(1, 4),
    /// An IPv6 source under the prefix of one of the gateway's NAT64s: a hairpinning loop (RFC 6146 §3.5).
    SourceInTranslationPrefix => silent,
    /// An IPv4 source out of the NAT64's own pool, from outside: nobody there has it, and hairpins turn around within.
    SourceInPool => silent,
    /// No binding for this outside address and port, and none may be made from outside (RFC 6146 §3.5.1).
    NoBinding => icmpv4(3, 1),
    /// No session that lets this remote address in (RFC 6146 §3.5.1, address-dependent filtering).
    Filtered => icmpv4(3, 13),
    /// A TCP packet, not a SYN, that belongs to no session (RFC 6146 §3.5.2.2).
    NoSession => silent,
    /// An inbound SYN without binding, stored to see whether it is a simultaneous open (RFC 6146 §3.5.2.2), or refused for
    /// want of room.
    InboundSyn => icmpv4(3, 3),
    /// A packet from outside of a connection whose SYN is stored, waiting for a SYN from inside (RFC 6146 §3.5.2.2, V4 INIT).
    SynAwaitsInside => silent,
    /// The pool has no port left for a new binding (RFC 6146 §3.5.1.1, RFC 6888 REQ-11).
    PortPoolEmpty => icmpv4(3, 1) icmpv6(1, 3),
    /// The sender's network (an IPv6 /64) or IPv4 address has as many bindings, or addresses of the dynamic pool, as one subscriber
    /// may have (RFC 6888 REQ-4, REQ-11).
    SubscriberLimit => icmpv4(3, 1) icmpv6(1, 3),
    /// The table of bindings is full; live ones are never evicted.
    BindingTableFull => icmpv4(3, 1) icmpv6(1, 3),
    /// The table of sessions is full; live ones are never evicted.
    SessionTableFull => icmpv4(3, 1) icmpv6(1, 3),
    /// Packets from outside made three quarters of all sessions that there may be: the rest is kept for hosts inside
    /// (RFC 6146 §3.5.1, §5.3).
    OutsideSessionsFull => icmpv4(3, 1) icmpv6(1, 3),
    /// An ICMP error about a packet that belongs to no session.
    NoSessionForError => silent,

    // Fragments.
    /// A fragment that contradicts those before it: overlapping, or beyond the end (RFC 5722 §4, RFC 3128).
    FragmentOverlap => silent,
    /// A fragment that was held already (RFC 8200 §4.5); its packet is not harmed.
    FragmentDuplicate => silent,
    /// A fragment whose length or offset no packet can have, or a first fragment too short for its transport header.
    BadFragment => silent,
    /// The memory for fragments is used up.
    FragmentMemory => silent,
    /// Fragments whose packet did not become complete in time (RFC 6146 §4, FRAGMENT_MIN).
    FragmentTimeout => icmpv4(11, 1) icmpv6(3, 1),
    /// More frames to send beside the batch than the outbox holds.
    OutboxFull => silent,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_its_own_index_and_explains_itself() {
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
            assert!(reason.help().ends_with('.'), "{} has no sentence", reason.name());
        }
        assert_eq!(size_of::<DropReason>(), 1);
        assert_eq!(size_of::<Result<(), DropReason>>(), 1);
    }
}
