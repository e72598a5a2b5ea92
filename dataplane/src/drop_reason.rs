//! Every reason to drop a packet: the error type of all code that can fail per packet.
//!
//! This list generates the enum, the counters, the metrics' help texts, the ICMP errors and the table in `docs/drops.md`.

/// The ICMP error that a drop is answered with, if any (RFC 1812 §4.3.2.7, RFC 4443 §2.4 e).
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

            /// The name of the reason: counter and metric label.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Its meaning, in a sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }

            /// The ICMP error that the sender gets.
            #[inline(always)]
            pub const fn answer(self) -> Answer {
                match self { $(Self::$name => answer!($($answer $(($t, $c))?)+),)+ }
            }
        }
    };
}

impl DropReason {
    /// Whether no sender gets an ICMP error.
    pub const fn is_silent(self) -> bool {
        matches!(self.answer(), Answer { icmpv4: None, icmpv6: None })
    }
}

drop_reasons! {
    // Parsing: not a packet, or its lengths are wrong.
    /// The packet is shorter than its headers, or than its header says.
    Truncated => silent,
    /// Neither IPv4 nor IPv6.
    NotIp => silent,
    /// The IPv4 header length or Total Length is invalid (RFC 1812 §5.2.2).
    BadIpv4Length => silent,
    /// The IPv4 header checksum is wrong (RFC 1812 §5.2.2).
    BadIpv4Checksum => silent,
    /// An IPv6 extension header is truncated, or there are too many of them (RFC 8200 §4).
    BadExtensionHeader => silent,
    /// The transport header is truncated (RFC 9293 §3.1, RFC 768).
    TransportTruncated => silent,
    /// A GSO packet that does not match its description: another protocol, a fragment, or segments without data.
    BadGso => silent,
    /// The buffer has no headroom for the headers that are added.
    NoHeadroom => silent,

    // Classification and source checks.
    /// No mechanism handles the destination.
    NoMechanism => icmpv4(3, 0) icmpv6(1, 0),
    /// The source is not a unicast address: unspecified, loopback, multicast, broadcast, class E (RFC 1812 §5.3.7, RFC 4291 §2.5);
    /// or, in a packet from outside to the pool of a realm, an address of the realm's `inside`.
    MartianSource => silent,
    /// The destination is multicast, loopback or unspecified (RFC 7915 §1.2).
    MartianDestination => silent,
    /// A packet to the gateway's own address that is not an echo request: it has no open port.
    ToGateway => icmpv4(3, 3) icmpv6(1, 4),
    /// A packet to the gateway's own address with a protocol that it does not support (RFC 1122 §3.2.2.1; RFC 8200 §4, the error points at the Next
    /// Header).
    ProtocolUnknown => icmpv4(3, 2) icmpv6(4, 1),
    /// The hop limit or TTL expired here (RFC 1812 §5.3.1, RFC 8200 §3).
    HopLimitExceeded => icmpv4(11, 0) icmpv6(3, 0),
    /// The packet passed the gateway more often than its mechanisms can nest.
    NestingLimit => silent,
    /// The ring to the worker that owns the packet is full.
    HandoverFull => silent,

    // Translation (RFC 7915).
    /// An IPv4 source route that is not exhausted (RFC 7915 §4.1).
    SourceRoute => icmpv4(3, 5),
    /// A routing header with segments left (RFC 7915 §5.1). The error points at Segments Left.
    RoutingHeader => icmpv6(4, 0),
    /// An extension header follows the Fragment header, which IPv4 cannot carry (RFC 7915 §5.1.1).
    ExtensionAfterFragment => icmpv6(1, 1),
    /// The result is larger than the MTU of the next link or tunnel and may not be fragmented (RFC 7915 §4.1, §5.1; RFC 2473 §7).
    PacketTooBig => icmpv4(3, 4) icmpv6(2, 0),
    /// The translated packet exceeds the maximum size of an IPv4 packet.
    TooLongForIpv4 => silent,
    /// A UDP packet without checksum, dropped by policy (RFC 7915 §4.5).
    UdpChecksumZero => icmpv4(3, 13),
    /// A fragment of a UDP packet without checksum: a stateless translator cannot compute it (RFC 7915 §4.5).
    UdpChecksumZeroFragment => icmpv4(3, 13),
    /// The UDP length contradicts the packet, so the checksum cannot be computed (RFC 768).
    BadUdpLength => silent,
    /// The source address has no mapping (RFC 7915 §6, RFC 7757 §3.3, RFC 6296 §3.2).
    SourceUnmapped => icmpv4(3, 13) icmpv6(1, 1),
    /// The destination address has no mapping.
    DestinationUnmapped => icmpv4(3, 1) icmpv6(1, 3),
    /// A non-global IPv4 address with the well-known prefix (RFC 6052 §3.1).
    NonGlobalWithWellKnownPrefix => icmpv4(3, 13) icmpv6(1, 1),
    /// A link-local IPv4 address with NAT64: routers do not forward it (RFC 3927 §2.7).
    LinkLocalIpv4 => silent,
    /// A new session, or a fragment, of a host that is not in `nat64.inside`; a packet from the device of a realm with a source that is not in the
    /// realm's `inside`.
    SourceNotInside => silent,
    /// A new session from IPv6 to an IPv4 address of this host that is not in `nat64.allow_own`.
    DestinationIsHost => icmpv6(1, 1),
    /// An IPv4 address in `exclude_ipv4` (RFC 6888 REQ-6).
    ExcludedIpv4 => icmpv4(3, 13) icmpv6(1, 1),
    /// Octet u of an address under a prefix shorter than 96 bits is not zero (RFC 6052 §2.2).
    OctetUNotZero => silent,
    /// The dynamic pool has no free address for a new host.
    DynamicPoolEmpty => icmpv6(1, 3),
    /// An ICMP message whose type has no counterpart in the other family (RFC 7915 §4.2, §5.2), or an ICMP query to the gateway itself that is not an
    /// echo request.
    IcmpUntranslatable => silent,
    /// A fragmented ICMP message: its checksum cannot be translated (RFC 7915 §1.2).
    IcmpFragment => silent,
    /// The ICMP checksum is wrong (RFC 5508 REQ-3).
    BadIcmpChecksum => silent,
    /// The packet quoted in an ICMP error cannot be read or translated (RFC 7915 §4.3, §5.3).
    QuoteUnusable => silent,
    /// An ICMP error about an ICMP error (RFC 7915 §4.3, RFC 6146 §3.4).
    QuoteIsIcmpError => silent,
    /// IGMP, which is not translated (RFC 7915 §4.2).
    Igmp => silent,
    /// A protocol number that the other family would read as one of its own headers.
    ProtocolUntranslatable => silent,

    /// NPTv6 cannot translate an address whose interface identifier is all zeros (RFC 6296 §3.7). The error points at the address.
    ZeroInterfaceIdentifier => icmpv6(4, 0),

    // Tunnels (RFC 4213).
    /// No tunnel is configured between these two outer addresses (RFC 4213 §3.6), or the tunnel does not carry this IP version;
    /// at an AFTR, `clients` does not contain the outer source.
    NoTunnel => silent,
    /// The packet would loop: it enters a tunnel from or to an address of this host, embeds one, goes from one relay to another (RFC 6324 §3, RFC
    /// 5969 §12), or it is an IPv4 tunnel packet of this host that is routed into another tunnel (RFC 2003 §3.2), for example because its remote end
    /// is routed into the device.
    TunnelLoop => silent,
    /// The inner packet is missing, or its IP version is not the one that the outer header announces (RFC 4213 §3.6).
    InnerNotIpv6 => silent,
    /// The outer IPv4 source is not the address embedded in the inner IPv6 source (RFC 3964 §5.2, RFC 5969 §9.2, RFC 5214 §7.3).
    SpoofedEmbeddedSource => silent,
    /// The IPv4 address embedded in an IPv6 address is not unicast: networks 0 and 127, multicast, class E, or the broadcast address of an attached
    /// network (RFC 3964 §5.3.1).
    EmbeddedNotUnicast => silent,
    /// The IPv4 address embedded in an IPv6 address is private, shared or link-local and not reachable through this tunnel (RFC 3056 §9, RFC 3964
    /// §5.3.1).
    EmbeddedNotPublic => silent,
    /// The inner source is outside the tunnel's prefix, and the outer source is not one of its relays, border relays or routers (RFC 3964 §5.2, RFC
    /// 5969 §9.2, RFC 5214 §7.3).
    SourceNotRelay => silent,
    /// The inner source is not behind the tunnel's remote end: spoofed, from this side, the gateway's own address, or under the prefix of its NAT64
    /// (RFC 4213 §3.6, RFC 5969 §9.2, RFC 6052 §5.1).
    SourceNotInTunnel => silent,
    /// The inner destination is outside the site at this end of the tunnel (RFC 3964 §3.1, RFC 5969 §9.2).
    DestinationNotInSite => silent,
    /// A packet between two 6to4 sites through a relay, which they do not need (RFC 3964 §3.2, §4.2).
    BetweenSites => silent,
    /// A packet into a tunnel whose source is outside this site: the remote end would drop it (RFC 3964 §5.1, RFC 5969 §9.2).
    SourceNotOfSite => silent,
    /// The destination is native IPv6, and no relay, border relay or router is known that forwards it.
    NoRelay => icmpv6(1, 0),
    /// The destination on the tunnel's link embeds no IPv4 address, or an invalid one (RFC 5214 §7.1, RFC 6324 §3.1.2).
    NoLocator => icmpv6(1, 3),
    /// The tunnel's remote end is not known yet.
    NoRemote => icmpv4(3, 1) icmpv6(1, 3),
    /// The IPv4 destination is not leased to any host (RFC 7040 §6).
    NoLease => icmpv4(3, 1),
    /// Too many packets wait for this host's lease: it is being requested, or no server answers.
    LeaseWaitingFull => silent,
    /// The inner source is not leased to the host that sent the tunnel packet (RFC 7040 §6), or a packet into a tunnel does not have the leased
    /// address as its source.
    SourceNotLeased => silent,
    /// The Teredo peer did not answer bubbles in the last five minutes (RFC 4380 §5.2.6), or its address contains an IPv4 address to which no packets
    /// may be sent (§5.2.4).
    TeredoUnreachable => icmpv6(1, 3),
    /// Too many packets wait for answers of Teredo peers: in total, for this peer, or from this sender.
    TeredoWaitingFull => silent,
    /// The table of Teredo peers is full of active peers, or this sender or this IPv4 address has its share of it.
    TeredoPeersFull => icmpv6(1, 3),
    /// A Teredo datagram from an endpoint that is not proven to be the sender's, or from a client to which no packet was sent (RFC 4380 §5.2.3,
    /// §5.4.2).
    TeredoNotTrusted => silent,
    /// A Teredo datagram with a header in front of the packet that only a server or a client of another server sends, or that is not for
    /// this node.
    TeredoUnexpected => silent,
    /// The packet would fit the tunnel only in fragments, which the configuration forbids. A smaller MTU would not help the sender (RFC 8200 §5), or
    /// the sender did not set DF.
    OuterTooBig => icmpv4(3, 1) icmpv6(1, 3),
    /// The Tunnel Encapsulation Limit of the packet forbids another tunnel (RFC 2473 §4.1.1).
    EncapsulationLimit => icmpv6(4, 0),
    /// An ICMP error from inside a tunnel about a packet that was not sent through it (RFC 4213 §3.4).
    ErrorNotForTunnel => silent,

    /// The outer header reports congestion, and the inner transport does not support ECN (RFC 6040 §4.2).
    InnerNotEct => silent,
    /// An ICMP error from inside a tunnel that cannot or need not be relayed to a sender: it quotes too little, is about an ICMP error, or concerns
    /// only the tunnel (RFC 4213 §3.4). The path MTU in it is still used.
    ErrorNotRelayable => silent,

    // NATs (RFC 6146, RFC 4787, RFC 6888). RFC 6888 REQ-11 B: where no mapping can be created, the answer is code 1, Host Unreachable.
    /// A protocol that is not translated: with NAT64, all except TCP, UDP and ICMP (RFC 6146 §3.4); with NAT44, all except these, GRE, ESP, IPv4 and
    /// IPv6 in IPv4. Also the last four between inside hosts.
    ProtocolUnsupported => icmpv4(3, 2) icmpv6(1, 4),
    /// An IPv6 source under the prefix of one of the gateway's NAT64s: a hairpinning loop (RFC 6146 §3.5).
    SourceInTranslationPrefix => silent,
    /// A packet from outside whose IPv4 source is in the NAT64's own pool: spoofed.
    SourceInPool => silent,
    /// No binding for this outside address and port, and none may be created from outside (RFC 6146 §3.5.1); with NAT46, the address represents no
    /// server for this client, or the client is not known to have queried for this server.
    NoBinding => icmpv4(3, 1) icmpv6(1, 0),
    /// No session admits this remote address (RFC 6146 §3.5.1, address-dependent filtering). Protocols without ports always have this
    /// filtering.
    Filtered => icmpv4(3, 13) icmpv6(1, 1),
    /// A TCP packet without session that is not a SYN (RFC 6146 §3.5.2.2).
    NoSession => silent,
    /// An inbound SYN without binding: it was stored in case of a simultaneous open and not answered in time (RFC 6146 §3.5.2.2).
    InboundSyn => icmpv4(3, 3),
    /// An inbound SYN without binding that could not be stored: there are too many, or too many sessions. An answer within 6 seconds would end a
    /// simultaneous open, so no answer is sent (RFC 5382 REQ-4 a).
    StoredSynsFull => silent,
    /// A packet from outside on a connection whose SYN is stored and waits for a SYN from inside (RFC 6146 §3.5.2.2, V4 INIT).
    SynAwaitsInside => silent,
    /// The pool has no free port for a new binding (RFC 6146 §3.5.1.1, RFC 6888 REQ-11).
    PortPoolEmpty => icmpv4(3, 1) icmpv6(1, 3),
    /// A protocol without ports: other inside hosts have sessions with this remote host at every outside address that this host could get.
    RemoteInUse => icmpv4(3, 1) icmpv6(1, 3),
    /// The sender's subscriber (an IPv6 prefix or an IPv4 address) has reached one of its limits: bindings, sessions, new ones a second, or dynamic
    /// pool addresses (RFC 6888 REQ-4, REQ-5, REQ-11).
    SubscriberLimit => icmpv4(3, 1) icmpv6(1, 3),
    /// The sender's subscriber has several times more sessions than are free, or more ports than are free at its outside address: the rest
    /// is reserved for others (RFC 6888 REQ-4).
    SubscriberShare => icmpv4(3, 1) icmpv6(1, 3),
    /// The table of bindings is full. Live bindings are never evicted.
    BindingTableFull => icmpv4(3, 1) icmpv6(1, 3),
    /// The AFTR's table of softwires is full: the B4 of a new softwire is refused (RFC 6333 §11).
    SoftwireTableFull => icmpv4(3, 1),
    /// The table of sessions is full. Live sessions are never evicted.
    SessionTableFull => icmpv4(3, 1) icmpv6(1, 3),
    /// Packets from outside created three quarters of the maximum number of sessions. The rest is reserved for inside hosts (RFC 6146 §3.5.1, §5.3).
    OutsideSessionsFull => icmpv4(3, 1) icmpv6(1, 3),
    /// An ICMP error about a packet without session, or without a mapping of a NAT46.
    NoSessionForError => silent,

    // Fragments.
    /// A fragment that overlaps an earlier one or exceeds the packet (RFC 5722 §4, RFC 3128).
    FragmentOverlap => silent,
    /// A duplicate of a fragment that is held (RFC 8200 §4.5). Its packet is not affected.
    FragmentDuplicate => silent,
    /// A fragment with an invalid length or offset, or a first fragment too short for the transport header.
    BadFragment => silent,
    /// The memory for fragments is exhausted.
    FragmentMemory => silent,
    /// A source, a subscriber, or a destination of packets from outside has its share of the memory for fragments.
    FragmentShare => silent,
    /// Reassembly timed out (RFC 6146 §4, FRAGMENT_MIN).
    FragmentTimeout => icmpv4(11, 1) icmpv6(3, 1),
    /// The outbox has no room for more frames.
    OutboxFull => silent,

    /// More packets arrive than the gateway can process, and this sender sends more than its fair share. More workers, the fast path or a faster
    /// CPU help.
    Overload => silent,
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
