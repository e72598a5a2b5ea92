//! The rows of the schema: the gateway itself and the translators.

use super::{Absent, Key, Kind, Section, Times, key};
use crate::fast_path::{LEAST_FLOWS, MOST_FLOWS};

const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;
const TRUE: Absent = Absent::Default("true");

/// `[gateway]`.
pub(in super::super) static GATEWAY: Section = Section {
    name: "gateway",
    times: Times::Once,
    groups: &[&[
        key(
            "name",
            Kind::Text,
            Absent::Default("\"sixway\""),
            "What the gateway calls itself in logs and in `sixway show`.",
        ),
        key(
            "ipv4_address",
            Kind::Address4,
            Absent::Means("ICMP errors towards IPv4 are not sent"),
            "The gateway's own IPv4 address: the source of the ICMP errors that it makes (RFC 7915 §4.4).",
        ),
        key(
            "ipv6_address",
            Kind::Address6,
            Absent::Means("ICMP errors towards IPv6 are not sent"),
            "The gateway's own IPv6 address: the source of the ICMPv6 errors that it makes (RFC 7915 §5.4).",
        ),
        key(
            "workers",
            Kind::IntegerOr { word: "auto", min: 1, max: 64 },
            Absent::Default("\"auto\""),
            "Threads that translate; `\"auto\"` is one for each CPU.",
        ),
        key(
            "icmp_errors_per_second",
            Kind::Integer { min: 0, max: 1_000_000 },
            Absent::Default("1000"),
            "At most so many ICMP errors are made in a second, all workers together (RFC 4443 §2.4 f); 0: none are made.",
        ),
        key(
            "admin_socket",
            Kind::Path,
            Absent::Means("`/run/sixway/NAME.sock`"),
            "The Unix socket that `sixway show` asks (HTTP and JSON).",
        ),
        key(
            "metrics",
            Kind::Socket,
            Absent::Means("no metrics are served"),
            "Where Prometheus finds `/metrics`.",
        ),
        key(
            "log",
            Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
            Absent::Default("\"info\""),
            "The least important message that is logged; hosts' addresses appear from `debug` on.",
        ),
        key(
            "log_format",
            Kind::Choice(&["text", "json"]),
            Absent::Default("\"text\""),
            "How a message is written to standard error.",
        ),
    ]],
};

/// `[tun]`.
pub(in super::super) static TUN: Section = Section {
    name: "tun",
    times: Times::Once,
    groups: &[&[
        key("name", Kind::Text, Absent::Default("\"sixway0\""), "The device's name, at most 15 characters."),
        key(
            "mtu",
            Kind::Integer { min: 1_280, max: 65_535 },
            Absent::Default("1500"),
            "Octets of IP packet that the device carries; packets towards either side are kept to it (RFC 8200 §5 for the floor).",
        ),
        key(
            "queues",
            Kind::IntegerOr { word: "auto", min: 1, max: 64 },
            Absent::Default("\"auto\""),
            "Queues of the device; `\"auto\"` is one for each worker.",
        ),
        key(
            "queue_length",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("10000"),
            "Packets that wait in each queue before the kernel drops (`txqueuelen`).",
        ),
        key(
            "super_frames",
            Kind::Boolean,
            TRUE,
            "Take and give TCP and UDP super-frames of up to 64 KiB, as far as the kernel can.",
        ),
        key(
            "routes",
            Kind::Routes,
            Absent::Default("\"auto\""),
            "Routes into the device. `\"auto\"`: what the mechanisms need, see [Routes](#routes). A list may hold `\"auto\"` and further prefixes.",
        ),
    ]],
};

/// `[pool]`.
pub(in super::super) static POOL: Section = Section {
    name: "pool",
    times: Times::Several,
    groups: &[&[
        key("name", Kind::Text, Absent::Fault, "What `nat64.pool` calls it."),
        key(
            "addresses",
            Kind::Prefixes4,
            Absent::Fault,
            "The outside IPv4 addresses, 65,536 at most. They are routed to the gateway and belong to nothing else, unless they are `shared`.",
        ),
        key(
            "ports",
            Kind::Ports,
            Absent::Default("\"1024-65535\""),
            "The ports and ICMP identifiers that bindings get: numbers and ranges, separated by commas. Static bindings may use others, unless the addresses are `shared`.",
        ),
        key(
            "shared",
            Kind::Boolean,
            Absent::Default("false"),
            "Whether the addresses are this host's own, which keeps all ports but these. See [below](#this-hosts-own-address).",
        ),
    ]],
};

/// Keys that every translating mechanism has (RFC 7915).
const TRANSLATION: &[Key] = &[
    key(
        "translate_non_global",
        Kind::Boolean,
        Absent::Default("false"),
        "Whether the well-known prefix `64:ff9b::/96` may stand before IPv4 addresses that are not global, against RFC 6052 §3.1. Other prefixes always may.",
    ),
    key(
        "udp_zero_checksum",
        Kind::Choice(&["compute", "drop"]),
        Absent::Default("\"compute\""),
        "IPv4 UDP packets without a checksum: compute it, or drop them (RFC 7915 §4.5, RFC 6146 §3.4).",
    ),
    key(
        "lowest_ipv6_mtu",
        Kind::Integer { min: 1_280, max: 65_535 },
        Absent::Default("1280"),
        "IPv4 packets that may be fragmented become IPv6 packets of at most so many octets (RFC 7915 §4.1).",
    ),
    key(
        "traffic_class",
        Kind::IntegerOr { word: "copy", min: 0, max: 255 },
        Absent::Default("\"copy\""),
        "Traffic Class of IPv6 packets: the IPv4 one's TOS, or this value (RFC 7915 §4.1).",
    ),
    key(
        "tos",
        Kind::IntegerOr { word: "copy", min: 0, max: 255 },
        Absent::Default("\"copy\""),
        "TOS of IPv4 packets: the IPv6 one's Traffic Class, or this value (RFC 7915 §5.1).",
    ),
    key(
        "clamp_mss",
        Kind::Boolean,
        TRUE,
        "Lower the MSS option of TCP SYNs to what the device's MTU carries.",
    ),
];

/// `[nat64]`.
pub(in super::super) static NAT64: Section = Section {
    name: "nat64",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`nat64`; of several, `nat64-1`, `nat64-2`, …"),
                "What it is called in `sixway show` and in metrics.",
            ),
            key(
                "prefix",
                Kind::Prefix6,
                Absent::Fault,
                "Pref64::/n, which stands before IPv4 addresses (RFC 6052 §2.2): 32, 40, 48, 56, 64 or 96 bits long.",
            ),
            key(
                "pool",
                Kind::Text,
                Absent::Fault,
                "The name of the pool whose addresses the inside hosts share.",
            ),
            key(
                "filtering",
                Kind::Choice(&["endpoint-independent", "address-dependent"]),
                Absent::Default("\"endpoint-independent\""),
                "Who may answer through a binding: anyone, or only addresses that the inside host has sent to (RFC 6146 §3.5).",
            ),
            key(
                "static",
                Kind::Tables(&STATIC),
                Absent::Means("none"),
                "Bindings that are always there, for servers inside.",
            ),
            key(
                "max_sessions",
                Kind::Integer { min: 1_024, max: 64 << 20 },
                Absent::Default("1048576"),
                "Sessions in all; about 300 octets of memory each. When full, new ones are refused and live ones stay.",
            ),
            key(
                "max_bindings",
                Kind::Integer { min: 1_024, max: 64 << 20 },
                Absent::Default("1048576"),
                "Bindings in all. When full, new ones are refused and live ones stay.",
            ),
            key(
                "max_bindings_per_subscriber",
                Kind::Integer { min: 0, max: 64 << 20 },
                Absent::Default("0"),
                "Bindings that one subscriber, an IPv6 /64, may have at each worker, static ones not counted (RFC 6888 REQ-4); 0: no limit.",
            ),
            key(
                "timeouts",
                Kind::Table(&TIMEOUTS),
                Absent::Means("the defaults of each"),
                "When a silent session ends.",
            ),
        ],
        TRANSLATION,
    ],
};

/// `[nat64.timeouts]`.
pub(in super::super) static TIMEOUTS: Section = Section {
    name: "nat64.timeouts",
    times: Times::Once,
    groups: &[&[
        key(
            "udp_default",
            Kind::Duration { min: 120, max: YEAR },
            Absent::Default("\"5 min\""),
            "UDP_DEFAULT: a UDP session without packets (RFC 6146 §4); at least UDP_MIN, 2 min.",
        ),
        key(
            "tcp_est",
            Kind::Duration { min: 7_200, max: YEAR },
            Absent::Default("\"2 h\""),
            "TCP_EST: an established TCP session without packets (RFC 6146 §4); TCP_TRANS is added to it, which makes the 2 h 4 min of RFC 5382 §5.",
        ),
        key(
            "tcp_trans",
            Kind::Duration { min: 240, max: YEAR },
            Absent::Default("\"4 min\""),
            "TCP_TRANS: a TCP session that is opening, closing, was reset, or did not answer after TCP_EST (RFC 6146 §4).",
        ),
        key(
            "tcp_incoming_syn",
            Kind::Duration { min: 6, max: 600 },
            Absent::Default("\"6 s\""),
            "TCP_INCOMING_SYN: how long a SYN from outside is kept for the inside host to open as well (RFC 6146 §3.5.2.2).",
        ),
        key(
            "icmp_default",
            Kind::Duration { min: 60, max: YEAR },
            Absent::Default("\"60 s\""),
            "ICMP_DEFAULT: an ICMP query session without packets (RFC 6146 §4).",
        ),
    ]],
};

/// `nat64.static`.
pub(in super::super) static STATIC: Section = Section {
    name: "nat64.static",
    times: Times::Several,
    groups: &[&[
        key(
            "protocol",
            Kind::Choice(&["tcp", "udp", "icmp"]),
            Absent::Fault,
            "The protocol; for `\"icmp\"` the ports are identifiers of queries.",
        ),
        key("inside", Kind::Endpoint6, Absent::Fault, "The host inside and its port."),
        key(
            "outside",
            Kind::Endpoint4,
            Absent::Fault,
            "An address of the pool, and any port of it from 1 to 65535.",
        ),
    ]],
};

/// `[siit]`.
pub(in super::super) static SIIT: Section = Section {
    name: "siit",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`siit`; of several, `siit-1`, `siit-2`, …"),
                "What it is called in `sixway show` and in metrics.",
            ),
            key(
                "prefix",
                Kind::Prefix6,
                Absent::Means("addresses without a mapping are not translated"),
                "The translation prefix for addresses that no EAM holds (RFC 6052 §2.2): 32, 40, 48, 56, 64 or 96 bits long.",
            ),
            key("eam", Kind::Tables(&EAM), Absent::Means("none"), "Explicit address mappings (RFC 7757)."),
            key(
                "eam_file",
                Kind::Path,
                Absent::Means("none"),
                "A file with further mappings, one on a line; relative to the configuration's directory. See [eam_file](#eam_file).",
            ),
            key(
                "eam_routes",
                Kind::Choice(&["ipv4", "ipv6", "none"]),
                Absent::Default("\"ipv4\""),
                "The side of the EAMs that is routed to the gateway: `\"ipv4\"` where the IPv6 addresses are real hosts' (RFC 7755), `\"ipv6\"` where the IPv4 addresses are (RFC 7756).",
            ),
            key(
                "hairpinning",
                Kind::Choice(&["intrinsic", "simple", "off"]),
                Absent::Default("\"intrinsic\""),
                "How two hosts with EAMs reach one another by their mapped addresses (RFC 7757 §4.2).",
            ),
            key(
                "icmp_source_pool",
                Kind::Prefixes4,
                Absent::Means("`gateway.ipv4_address`"),
                "Source addresses of ICMP errors from IPv6 routers whose addresses cannot be translated (RFC 6791).",
            ),
            key(
                "dynamic_pool",
                Kind::Prefix4,
                Absent::Means("hosts without a mapping are not translated"),
                "Each new IPv6 host gets an IPv4 address of its own from it.",
            ),
            key(
                "dynamic_lifetime",
                Kind::Duration { min: 1, max: YEAR },
                Absent::Default("\"2 h 4 min\""),
                "An address of `dynamic_pool` is released after so long a silence.",
            ),
            key(
                "dynamic_remembered",
                Kind::Duration { min: 0, max: 10 * YEAR },
                Absent::Default("\"14 days\""),
                "A released address is kept for its host until it has been silent for so long, while others are left; at least `dynamic_lifetime`.",
            ),
            key(
                "dynamic_hosts_per_subscriber",
                Kind::Integer { min: 0, max: 16 << 20 },
                Absent::Default("0"),
                "Addresses of `dynamic_pool` that one subscriber, an IPv6 /64, may have at each worker, released ones not counted; 0: no limit.",
            ),
            key(
                "dynamic_state",
                Kind::Path,
                Absent::Means(
                    "`/var/lib/sixway/NAME.state`; of further `[[siit]]`, `NAME:2.state`, `NAME:3.state`, …",
                ),
                "The file that keeps the addresses of `dynamic_pool` across restarts. NAME is `gateway.name`.",
            ),
        ],
        TRANSLATION,
    ],
};

/// `siit.eam`.
pub(in super::super) static EAM: Section = Section {
    name: "siit.eam",
    times: Times::Several,
    groups: &[&[
        key("ipv4", Kind::Prefix4, Absent::Fault, "The IPv4 side; without a length, one address."),
        key(
            "ipv6",
            Kind::Prefix6,
            Absent::Fault,
            "The IPv6 side; it leaves as many suffix bits as the IPv4 side, or more (RFC 7757 §3.2).",
        ),
    ]],
};

/// `[fragments]`.
pub(in super::super) static FRAGMENTS: Section = Section {
    name: "fragments",
    times: Times::Once,
    groups: &[&[
        key(
            "memory",
            Kind::Size { min: 64 << 10, max: 64 << 30 },
            Absent::Default("\"8 MiB\""),
            "Octets of memory for fragments that wait for the rest of their packets, for each worker; those of tunnel packets have as much beside. When full, new ones are dropped.",
        ),
        key(
            "packets",
            Kind::Integer { min: 1, max: 1 << 20 },
            Absent::Default("4096"),
            "Packets that wait at a time, for each worker.",
        ),
        key(
            "packets_per_source",
            Kind::Integer { min: 1, max: 1 << 20 },
            Absent::Default("64"),
            "The same from one source address, so that no single sender takes all of it.",
        ),
        key(
            "fragments_per_packet",
            Kind::Integer { min: 32, max: 8_192 },
            Absent::Default("128"),
            "A packet of more fragments is dropped. 1,500 octets come in 31 fragments at most, by a link of 68 octets (RFC 791 §3.2, RFC 4213 §3.6).",
        ),
        key(
            "timeout",
            Kind::Duration { min: 2, max: 120 },
            Absent::Default("\"2 s\""),
            "A packet's fragments are dropped when it is not whole after so long; at least FRAGMENT_MIN, 2 s (RFC 6146 §4).",
        ),
    ]],
};

/// `[fastpath]`.
pub(in super::super) static FASTPATH: Section = Section {
    name: "fastpath",
    times: Times::Once,
    groups: &[&[
        key(
            "mode",
            Kind::Choice(&["auto", "tc", "xdp", "off"]),
            Absent::Default("\"auto\""),
            "Where the kernel carries packets on: in the driver (`\"xdp\"`) or at tc ingress. `\"auto\"`: the driver where it runs programs itself and the device is a wire, else tc; where the kernel allows neither, the gateway goes on without. With `\"tc\"` and `\"xdp\"` it does not start then.",
        ),
        key(
            "interfaces",
            Kind::Texts,
            Absent::Means("every Ethernet device that is up and belongs to no bridge or bond"),
            "The interfaces whose packets are carried on, 16 at most. They are looked at each second: those that come are taken in.",
        ),
        key(
            "pin_path",
            Kind::Path,
            Absent::Default("\"/run/sixway/bpf\""),
            "The directory of what outlives the process. If it is in no BPF file system, one is mounted there.",
        ),
        key(
            "flows",
            Kind::IntegerOr { word: "auto", min: LEAST_FLOWS, max: MOST_FLOWS },
            Absent::Default("\"auto\""),
            "Sessions that there is room for, 192 octets of memory each; the engine carries the rest. `\"auto\"`: the sum of `nat64.max_sessions`, but never more than 262,144, which is less than the default of one NAT64: who expects more sessions at a time writes how many.",
        ),
        key(
            "packets",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("8"),
            "Packets of a session that the engine carries before the kernel takes over.",
        ),
        key(
            "notrack",
            Kind::Boolean,
            TRUE,
            "Keep connection tracking off what may be carried on, in both directions, by an nftables table of the gateway's own: a firewall that sees half of a connection breaks it.",
        ),
        key(
            "absence",
            Kind::Duration { min: 0, max: 7 * DAY },
            Absent::Default("\"1 h\""),
            "How long the kernel carries on after the gateway was killed, if nobody starts it again.",
        ),
    ]],
};
