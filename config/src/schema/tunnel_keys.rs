//! The rows of the schema: tunnels of IPv6 in IPv4.

use super::{Absent, Key, Kind, Section, Times, key};

/// This end of a tunnel, for the mechanisms that call it `address`.
const LOCAL: &[Key] = &[
    key(
        "address",
        Kind::Address4,
        Absent::Means("that of `interface`"),
        "This end: an IPv4 address that this host has.",
    ),
    key(
        "interface",
        Kind::Text,
        Absent::Means("`address` is written"),
        "This end: the IPv4 address of this interface, followed when it changes. Either this or `address` is written.",
    ),
];

/// How much of a packet goes in whole (RFC 4213 §3.2).
const MTU: &[Key] = &[key(
    "mtu",
    Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
    Absent::Default("1280"),
    "Octets of IPv6 packet that go in whole: a number up to `tun.mtu`, whatever the path (RFC 4213 §3.2.1), or what the IPv4 path is found to carry (§3.2.2).",
)];

/// Keys that every tunnel has: its outer header (RFC 4213 §3).
pub(in super::super) const OUTER_HEADER: &[Key] = &[
    key(
        "ttl",
        Kind::IntegerOr { word: "copy", min: 1, max: 255 },
        Absent::Default("64"),
        "TTL or hop limit of the outer header; `\"copy\"`: that of the packet inside (RFC 4213 §3.3, RFC 2473 §6.3).",
    ),
    key(
        "traffic_class",
        Kind::IntegerOr { word: "copy", min: 0, max: 255 },
        Absent::Default("\"copy\""),
        "DSCP of the outer header, in the upper six bits: that of the packet inside, or of this value (RFC 2983 §4.1).",
    ),
    key(
        "ecn",
        Kind::Choice(&["normal", "compatibility"]),
        Absent::Default("\"compatibility\""),
        "What goes into the ECN field of the outer header: `\"normal\"` copies it, for an other end that follows RFC 6040; `\"compatibility\"` clears it (RFC 6040 §4.1). What comes out is always as RFC 6040 §4.2 says.",
    ),
    key(
        "outer_fragments",
        Kind::Choice(&["allowed", "never"]),
        Absent::Default("\"allowed\""),
        "A tunnel packet larger than the next link: it may be cut, or it is refused and its sender told what would fit.",
    ),
    key(
        "clamp_mss",
        Kind::Boolean,
        Absent::Default("true"),
        "Lower the MSS option of TCP SYNs to what the tunnel's MTU carries.",
    ),
];

/// `[six_to_four]`.
pub(in super::super) static SIX_TO_FOUR: Section = Section {
    name: "six_to_four",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`six_to_four`; of several, `six_to_four-1`, `six_to_four-2`, …"),
                "What it is called in `sixway show`, in metrics and by `router_advertisement`.",
            ),
            key(
                "role",
                Kind::Choice(&["relay", "router", "host"]),
                Absent::Fault,
                "A relay between 6to4 sites and native IPv6, the router of a site, or a single host (RFC 3056 §1.1).",
            ),
        ],
        LOCAL,
        &[
            key(
                "nat_address",
                Kind::Address4,
                Absent::Means("this end's own address"),
                "The IPv4 address that stands in the 6to4 prefix where a NAT before this host changes its own: that NAT hands protocol 41 to this host (RFC 3056 §5.8).",
            ),
            key(
                "relay",
                Kind::Address4,
                Absent::Means("only 6to4 destinations are reached"),
                "The relay that packets to native IPv6 go to, for routers and hosts. With it there is a default route into the device.",
            ),
            key(
                "native_sources",
                Kind::Addresses4Or("any"),
                Absent::Default("\"any\""),
                "The relays that packets from native IPv6 are accepted from, by routers and hosts: the way back is often another relay's (RFC 3964 §1).",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[six_rd]`.
pub(in super::super) static SIX_RD: Section = Section {
    name: "six_rd",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`six_rd`; of several, `six_rd-1`, `six_rd-2`, …"),
                "What it is called in `sixway show`, in metrics and by `router_advertisement`.",
            ),
            key(
                "role",
                Kind::Choice(&["customer_edge", "border_relay"]),
                Absent::Fault,
                "A customer's router, or the provider's way to the rest of IPv6 (RFC 5969 §3).",
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
                "IPv4MaskLen: so many leading bits are the same in all customers' IPv4 addresses, and left out of their prefixes (RFC 5969 §7.1.1).",
            ),
            key(
                "ipv4_common",
                Kind::Prefix4,
                Absent::Means("the leading bits of this end's address"),
                "These bits, where a border relay has an address outside of its customers'; as long as `ipv4_mask_length`.",
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
                Absent::Means("only those of 6to4, 192.88.99.0/24"),
                "Where relays of other tunnels in the provider's network are: a border relay takes nothing from there and sends nothing there (RFC 5969 §12).",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[tunnel]`.
pub(in super::super) static TUNNEL: Section = Section {
    name: "tunnel",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`tunnel`; of several, `tunnel-1`, `tunnel-2`, …"),
                "What it is called in `sixway show` and in metrics.",
            ),
            key(
                "local",
                Kind::Address4,
                Absent::Means("that of `interface`"),
                "This end: an IPv4 address that this host has.",
            ),
            key(
                "interface",
                Kind::Text,
                Absent::Means("`local` is written"),
                "This end: the IPv4 address of this interface, followed when it changes. Either this or `local` is written.",
            ),
            key(
                "remote",
                Kind::Text,
                Absent::Fault,
                "The other end: an IPv4 address, or a name that the DNS knows, asked again each `remote_refresh`. It is never learnt from packets.",
            ),
            key(
                "remote_refresh",
                Kind::Duration { min: 5, max: 86_400 },
                Absent::Default("\"1 min\""),
                "How often the DNS is asked for a `remote` that is a name.",
            ),
            key(
                "remote_within",
                Kind::Prefixes4,
                Absent::Means("anywhere"),
                "Where the name may lead: other answers of the DNS are not taken.",
            ),
            key(
                "prefixes",
                Kind::Prefixes6,
                Absent::Fault,
                "What is behind the other end: it is routed into the tunnel. `\"::/0\"` for a way to the rest of IPv6.",
            ),
            key(
                "strict_sources",
                Kind::Boolean,
                Absent::Default("true"),
                "Take only packets whose inner source lies within `prefixes` (RFC 4213 §3.6).",
            ),
            key(
                "ipv6_address",
                Kind::Address6,
                Absent::Means("none"),
                "An IPv6 address that this host gets on the device, to speak through the tunnel itself.",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[isatap]`.
pub(in super::super) static ISATAP: Section = Section {
    name: "isatap",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`isatap`; of several, `isatap-1`, `isatap-2`, …"),
                "What it is called in `sixway show`, in metrics and by `router_advertisement`.",
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
                Absent::Means("a host learns it"),
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
                "MinRouterSolicitInterval: a host asks the same router again no sooner (RFC 5214 §8.3.4).",
            ),
            key(
                "locators",
                Kind::Prefixes4,
                Absent::Means("anywhere"),
                "The site's IPv4 networks: nothing comes from elsewhere or goes there (RFC 6324 §3.1).",
            ),
        ],
        MTU,
        OUTER_HEADER,
    ],
};

/// `[tunnels]`.
pub(in super::super) static TUNNELS: Section = Section {
    name: "tunnels",
    times: Times::Once,
    groups: &[&[
        key(
            "steering",
            Kind::Choice(&["auto", "on", "off"]),
            Absent::Default("\"auto\""),
            "Whether an eBPF program brings protocol 41 from the interfaces into the device. `\"auto\"`: where the kernel allows it; else, and with `\"off\"`, it comes through raw sockets. `shared` pools cannot be without.",
        ),
        key(
            "interfaces",
            Kind::Texts,
            Absent::Means(
                "the interface that has the tunnel's or pool's address; all but `lo` if that is `lo`",
            ),
            "The interfaces that protocol 41, and the ports of `shared` pools, are steered from.",
        ),
    ]],
};
