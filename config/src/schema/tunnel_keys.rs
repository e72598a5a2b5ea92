//! The rows of the schema: tunnels of IPv6 in IPv4.

use super::key::{Absent, Key, Kind, Section, Times, key};

/// This end of a tunnel, for the mechanisms that call it `address`.
pub(crate) const LOCAL: &[Key] = &[
    key(
        "address",
        Kind::Address4,
        Absent::Means("the address of `interface`"),
        "Local end of the tunnel: an IPv4 address of this host.",
    ),
    key(
        "interface",
        Kind::Text,
        Absent::Means("set `address` instead"),
        "Local end of the tunnel: the IPv4 address of this interface; the tunnel follows changes of it. Set either this or `address`.",
    ),
];

/// How much of a packet goes in whole (RFC 4213 §3.2).
const MTU: &[Key] = &[key(
    "mtu",
    Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
    Absent::Default("1280"),
    "Tunnel MTU in octets: a number up to `tun.mtu`, whatever the path (RFC 4213 §3.2.1), or `\"dynamic\"`, the path MTU to the remote end (§3.2.2).",
)];

/// Keys that every tunnel has: its outer header (RFC 4213 §3).
pub(crate) const OUTER_HEADER: &[Key] = &[
    key(
        "ttl",
        Kind::IntegerOr { word: "copy", min: 1, max: 255 },
        Absent::Default("64"),
        "TTL or hop limit of the outer header; `\"copy\"`: copied from the inner packet (RFC 4213 §3.3, RFC 2473 §6.3).",
    ),
    key(
        "traffic_class",
        Kind::IntegerOr { word: "copy", min: 0, max: 255 },
        Absent::Default("\"copy\""),
        "DSCP of the outer header, in the upper six bits: copied from the inner packet, or this value (RFC 2983 §4.1).",
    ),
    key(
        "ecn",
        Kind::Choice(&["normal", "compatibility"]),
        Absent::Default("\"compatibility\""),
        "ECN field of the outer header: `\"normal\"` copies it, for a remote end that follows RFC 6040; `\"compatibility\"` clears it (RFC 6040 §4.1). Decapsulation always follows RFC 6040 §4.2.",
    ),
    key(
        "outer_fragments",
        Kind::Choice(&["allowed", "never"]),
        Absent::Default("\"allowed\""),
        "Tunnel packets larger than the next link's MTU: fragmented, or dropped with a Packet Too Big to the sender.",
    ),
    key(
        "clamp_mss",
        Kind::Boolean,
        Absent::Default("true"),
        "Lower the MSS option of TCP SYNs to what the tunnel's MTU allows.",
    ),
];

/// `[six_to_four]`.
pub(crate) static SIX_TO_FOUR: Section = Section {
    name: "six_to_four",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`six_to_four`; with several sections `six_to_four-1`, `six_to_four-2`, …"),
                "Name in `sixway show`, in metrics and for `router_advertisement`.",
            ),
            key(
                "role",
                Kind::Choice(&["relay", "router", "host"]),
                Absent::Fault,
                "`\"relay\"` between 6to4 sites and native IPv6, `\"router\"` of a site, or single `\"host\"` (RFC 3056 §1.1).",
            ),
        ],
        LOCAL,
        &[
            key(
                "nat_address",
                Kind::Address4,
                Absent::Means("the local address"),
                "Outer IPv4 address of the NAT in front of this host, if that NAT forwards protocol 41 to this host. The 6to4 prefix is derived from it (RFC 3056 §5.8).",
            ),
            key(
                "relay",
                Kind::Address4,
                Absent::Means("only 6to4 destinations are reachable"),
                "Relay for packets to native IPv6, for routers and hosts. It adds a default route into the device.",
            ),
            key(
                "native_sources",
                Kind::Addresses4Or("any"),
                Absent::Default("\"any\""),
                "Relays from which routers and hosts accept packets of native IPv6: the return path often uses another relay (RFC 3964 §1).",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[six_rd]`.
pub(crate) static SIX_RD: Section = Section {
    name: "six_rd",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`six_rd`; with several sections `six_rd-1`, `six_rd-2`, …"),
                "Name in `sixway show`, in metrics and for `router_advertisement`.",
            ),
            key(
                "role",
                Kind::Choice(&["customer_edge", "border_relay"]),
                Absent::Fault,
                "The router of a customer, or the provider's relay to the rest of IPv6 (RFC 5969 §3).",
            ),
            key(
                "prefix",
                Kind::Prefix6,
                Absent::FaultSuch("\"2001:db8::/32\""),
                "6rdPrefix with 6rdPrefixLen (RFC 5969 §7.1.1).",
            ),
            key(
                "ipv4_mask_length",
                Kind::Integer { min: 0, max: 32 },
                Absent::Default("0"),
                "IPv4MaskLen: number of leading bits that all customers' IPv4 addresses have in common; they are left out of the delegated prefixes (RFC 5969 §7.1.1).",
            ),
            key(
                "ipv4_common",
                Kind::Prefix4,
                Absent::Means("the leading bits of the local address"),
                "These common bits, if the border relay's own address is not within them; its length is `ipv4_mask_length`.",
            ),
        ],
        LOCAL,
        &[
            key(
                "border_relays",
                Kind::Addresses4,
                Absent::Means("none, for a border relay"),
                "6rdBRIPv4Address: the border relays of a customer's domain; packets to other destinations go to the first (RFC 5969 §7.1.1).",
            ),
            key(
                "other_relays",
                Kind::Prefixes4,
                Absent::Means("only the 6to4 anycast network, 192.88.99.0/24"),
                "Networks of relays of other tunnels in the provider's network: a border relay accepts no packets from there and sends none there (RFC 5969 §12).",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[tunnel]`.
pub(crate) static TUNNEL: Section = Section {
    name: "tunnel",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`tunnel`; with several sections `tunnel-1`, `tunnel-2`, …"),
                "Name in `sixway show` and in metrics.",
            ),
            key(
                "local",
                Kind::Address4,
                Absent::Means("the address of `interface`"),
                "Local end of the tunnel: an IPv4 address of this host.",
            ),
            key(
                "interface",
                Kind::Text,
                Absent::Means("set `local` instead"),
                "Local end of the tunnel: the IPv4 address of this interface; the tunnel follows changes of it. Set either this or `local`.",
            ),
            key(
                "remote",
                Kind::Text,
                Absent::Fault,
                "Remote end of the tunnel: an IPv4 address, or a DNS name, which is resolved again each `remote_refresh`. It is never learnt from packets.",
            ),
            key(
                "remote_refresh",
                Kind::Duration { min: 5, max: 86_400 },
                Absent::Default("\"1 min\""),
                "How often a `remote` that is a name is resolved.",
            ),
            key(
                "remote_within",
                Kind::Prefixes4,
                Absent::Means("anywhere"),
                "Networks that the name may resolve to; other addresses are ignored.",
            ),
            key(
                "prefixes",
                Kind::Prefixes6,
                Absent::Fault,
                "Prefixes behind the remote end: they are routed into the tunnel. Use `\"::/0\"` for a default route.",
            ),
            key(
                "strict_sources",
                Kind::Boolean,
                Absent::Default("true"),
                "Accept only packets whose inner source address is within `prefixes` (RFC 4213 §3.6).",
            ),
            key(
                "ipv6_address",
                Kind::Address6,
                Absent::Means("none"),
                "IPv6 address of this host on the device, for its own traffic through the tunnel.",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[isatap]`.
pub(crate) static ISATAP: Section = Section {
    name: "isatap",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`isatap`; with several sections `isatap-1`, `isatap-2`, …"),
                "Name in `sixway show`, in metrics and for `router_advertisement`.",
            ),
            key(
                "role",
                Kind::Choice(&["router", "host"]),
                Absent::Fault,
                "An advertising router or a host of an ISATAP site (RFC 5214 §8).",
            ),
        ],
        LOCAL,
        &[
            key(
                "prefix",
                Kind::Prefix6,
                Absent::Means("learnt, by a host"),
                "The site's prefix, 64 bits long, which a router advertises (RFC 5214 §8.3.2).",
            ),
            key(
                "potential_routers",
                Kind::Addresses4,
                Absent::Means("none, for a router"),
                "A host's potential router list (RFC 5214 §8.3.1).",
            ),
            key(
                "min_solicit_interval",
                Kind::Duration { min: 4, max: 86_400 },
                Absent::Means("2 min, for a host"),
                "MinRouterSolicitInterval: minimum time between two solicitations to the same router (RFC 5214 §8.3.4).",
            ),
            key(
                "locators",
                Kind::Prefixes4,
                Absent::Means("anywhere"),
                "The site's IPv4 networks: packets from other networks are dropped, and none are sent there (RFC 6324 §3.1).",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[tunnels]`.
pub(crate) static TUNNELS: Section = Section {
    name: "tunnels",
    times: Times::Once,
    groups: &[&[
        key(
            "steering",
            Kind::Choice(&["auto", "on", "off"]),
            Absent::Default("\"auto\""),
            "Whether an eBPF program steers protocol 41 from the interfaces into the device. `\"auto\"`: where the kernel supports it; otherwise, and with `\"off\"`, packets arrive through raw sockets. `shared` pools require steering.",
        ),
        key(
            "interfaces",
            Kind::Texts,
            Absent::Means(
                "the interface that has the tunnel's or pool's address; all but `lo` if that is `lo`",
            ),
            "Interfaces from which protocol 41 and the ports of `shared` pools are steered.",
        ),
    ]],
};
