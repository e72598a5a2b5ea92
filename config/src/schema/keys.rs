//! The rows of the schema: the gateway itself and the translators.

use super::key::{Absent, Key, Kind, Section, Times, key};
use super::stateful_keys::{
    allow_own, exclude_ipv4, exempt_subscribers, filtering, ftp_alg, port_timeouts, static_bindings, timeouts,
};

use sixway_dataplane::nat::{LARGEST_BLOCK, MOST_BLOCKS};

const DAY: u64 = 86_400;
pub(super) const YEAR: u64 = 365 * DAY;
pub(super) const TRUE: Absent = Absent::Default("true");
const FALSE: Absent = Absent::Default("false");

/// The fewest flows that the fast path can have room for.
pub(crate) const LEAST_FLOWS: u64 = 1_024;
/// The most flows.
pub(crate) const MOST_FLOWS: u64 = 16 << 20;

/// `[gateway]`.
pub(crate) static GATEWAY: Section = Section {
    name: "gateway",
    times: Times::Once,
    groups: &[&[
        key(
            "name",
            Kind::Text,
            Absent::Default("\"sixway\""),
            "Name of the gateway in logs and in `sixway show`.",
        ),
        key(
            "ipv4_address",
            Kind::Address4,
            Absent::Means("no ICMP errors are sent"),
            "The gateway's own IPv4 address: the source of its ICMP errors (RFC 7915 §4.4).",
        ),
        key(
            "ipv6_address",
            Kind::Address6,
            Absent::Means("no ICMPv6 errors are sent"),
            "The gateway's own IPv6 address: the source of its ICMPv6 errors (RFC 7915 §5.4).",
        ),
        key(
            "workers",
            Kind::IntegerOr { word: "auto", min: 1, max: 64 },
            Absent::Default("\"auto\""),
            "Number of worker threads; `\"auto\"`: one for each CPU.",
        ),
        key(
            "busy_poll",
            Kind::Duration { min: 0, max: 1 },
            Absent::Default("\"0 s\""),
            "A worker polls its queues for this time after a packet before it sleeps, such as `\"200 us\"`. Packets that come in this time wait less; \
             the worker's CPU is busy meanwhile.",
        ),
        key(
            "icmp_errors_per_second",
            Kind::Integer { min: 0, max: 1_000_000 },
            Absent::Default("1000"),
            "Maximum ICMP errors per second, all workers together (RFC 4443 §2.4 f); 0 disables.",
        ),
        key(
            "admin_socket",
            Kind::Path,
            Absent::Means("`/run/sixway/NAME.sock`"),
            "Unix socket of the admin API (HTTP and JSON), which `sixway show` uses.",
        ),
        key(
            "admin_group",
            Kind::Text,
            Absent::Means("no group"),
            "A group whose members have read access to the gateway through the admin socket (`sixway show`).",
        ),
        key(
            "metrics",
            Kind::Socket,
            Absent::Means("disabled"),
            "Address and port that serve `/metrics` for Prometheus.",
        ),
        key(
            "log",
            Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
            Absent::Default("\"info\""),
            "Least severe log level; addresses of hosts are logged only at `debug` and below.",
        ),
        key(
            "log_format",
            Kind::Choice(&["text", "json"]),
            Absent::Default("\"text\""),
            "Format of log messages on standard error.",
        ),
    ]],
};

/// `[tun]`.
pub(crate) static TUN: Section = Section {
    name: "tun",
    times: Times::Once,
    groups: &[&[
        key("name", Kind::Text, Absent::Default("\"sixway0\""), "The device's name, at most 15 characters."),
        key(
            "mtu",
            Kind::Integer { min: 1_280, max: 65_535 },
            Absent::Default("1500"),
            "MTU of the device in octets, for packets in both directions (minimum: RFC 8200 §5).",
        ),
        key(
            "queues",
            Kind::IntegerOr { word: "auto", min: 1, max: 64 },
            Absent::Default("\"auto\""),
            "Number of queues of the device; `\"auto\"`: one for each worker.",
        ),
        key(
            "queue_length",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("10000"),
            "Length of each queue in packets (`txqueuelen`); the kernel drops further packets.",
        ),
        key(
            "super_frames",
            Kind::Boolean,
            TRUE,
            "Exchange TCP and UDP GSO packets of up to 64 KiB with the kernel, as far as it supports them.",
        ),
        key(
            "routes",
            Kind::Routes,
            Absent::Default("\"auto\""),
            "Routes into the device. `\"auto\"`: the routes that the mechanisms need, see [Routes](#routes). A list may contain `\"auto\"` and further prefixes.",
        ),
    ]],
};

/// `[pool]`.
pub(crate) static POOL: Section = Section {
    name: "pool",
    times: Times::Several,
    groups: &[&[
        key(
            "name",
            Kind::Text,
            Absent::Fault,
            "Name of the pool, referenced by `nat64.pool` or `nat44.pool`.",
        ),
        key(
            "addresses",
            Kind::Prefixes4,
            Absent::Means("set `interface` instead"),
            "Outside IPv4 addresses, 65,536 at most. They must be routed to the gateway, and must not be used otherwise unless they are `shared`.",
        ),
        key(
            "interface",
            Kind::Text,
            Absent::Means("set `addresses` instead"),
            "Instead of `addresses`, with `shared = true`: the pool has the current address of this interface (DHCP, PPP). A change of the address causes a reload.",
        ),
        key(
            "ports",
            Kind::Ports,
            Absent::Default("\"1024-65535\""),
            "Ports and ICMP identifiers for bindings: numbers and ranges, separated by commas. Static bindings may use other ports, unless the addresses are `shared` or also in other pools (with different ports).",
        ),
        key(
            "shared",
            Kind::Boolean,
            Absent::Default("false"),
            "Whether the addresses are this host's own; the host keeps all other ports. See [below](#this-hosts-own-address).",
        ),
        key(
            "proxy_arp",
            Kind::Boolean,
            Absent::Default("false"),
            "Whether this host answers ARP requests for the addresses, if they are in the network of one of its interfaces and no router has a route for them: `ip neigh add proxy` for each, 1,024 at most.",
        ),
        key(
            "draining",
            Kind::Prefixes4,
            Absent::Means("none"),
            "Addresses of the pool that are not given to more inside hosts, so that they can be removed when they are no longer in use. See [draining](mechanisms/pools.md#draining).",
        ),
        key(
            "alarm_at",
            Kind::Integer { min: 1, max: 100 },
            Absent::Means("80, or 1 more than `alarm_clear`"),
            "An alarm is raised when this percentage of the pool's ports of a protocol, or of its mechanism's sessions or bindings, is in use. See [alarms](mechanisms/pools.md#alarms).",
        ),
        key(
            "alarm_clear",
            Kind::Integer { min: 0, max: 99 },
            Absent::Means("10 less than `alarm_at`"),
            "The alarm is cleared when the percentage is at most this. The difference avoids frequent changes of the alarm.",
        ),
    ]],
};

/// Keys that every translating mechanism has (RFC 7915).
pub(super) const TRANSLATION: &[Key] = &[
    key(
        "translate_non_global",
        Kind::Boolean,
        Absent::Default("false"),
        "Whether the well-known prefix `64:ff9b::/96` may embed non-global IPv4 addresses, contrary to RFC 6052 §3.1. Other prefixes always may.",
    ),
    key(
        "udp_zero_checksum",
        Kind::Choice(&["compute", "drop"]),
        Absent::Default("\"compute\""),
        "UDP packets without a checksum, of both families: compute the checksum, or drop the packet (RFC 7915 §4.5, RFC 6146 §3.4). A fragment of IPv6 without a checksum is translated without one, which IPv4 allows.",
    ),
    key(
        "lowest_ipv6_mtu",
        Kind::Integer { min: 1_280, max: 65_535 },
        Absent::Default("1280"),
        "IPv4 packets with DF=0 become IPv6 packets of at most this size in octets (RFC 7915 §4.1).",
    ),
    key(
        "traffic_class",
        Kind::IntegerOr { word: "copy", min: 0, max: 255 },
        Absent::Default("\"copy\""),
        "Traffic Class of IPv6 packets: copied from the IPv4 TOS, or this value (RFC 7915 §4.1).",
    ),
    key(
        "tos",
        Kind::IntegerOr { word: "copy", min: 0, max: 255 },
        Absent::Default("\"copy\""),
        "TOS of IPv4 packets: copied from the IPv6 Traffic Class, or this value (RFC 7915 §5.1).",
    ),
    CLAMP_MSS,
];

/// TCP's segments fit the device.
pub(super) const CLAMP_MSS: Key = key(
    "clamp_mss",
    Kind::Boolean,
    TRUE,
    "Lower the MSS option of TCP SYNs to what the device's MTU allows.",
);

/// The pool of a stateful translator.
pub(super) const POOL_NAME: Key =
    key("pool", Kind::Text, Absent::Fault, "Name of the pool whose addresses the inside hosts share.");

/// The bound on its sessions.
pub(super) const MAX_SESSIONS: Key = key(
    "max_sessions",
    Kind::Integer { min: 1_024, max: 64 << 20 },
    Absent::Default("1048576"),
    "Maximum number of sessions, all workers together; about 300 octets of memory each. When the table is full, new sessions are refused and existing ones stay.",
);

/// The bound on its bindings.
pub(super) const MAX_BINDINGS: Key = key(
    "max_bindings",
    Kind::Integer { min: 1_024, max: 64 << 20 },
    Absent::Default("1048576"),
    "Maximum number of bindings, all workers together. When the table is full, new bindings are refused and existing ones stay.",
);

/// The bound on ports in quarantine.
pub(super) const MAX_QUARANTINED: Key = key(
    "max_quarantined_ports",
    Kind::Integer { min: 0, max: 64 << 20 },
    Absent::Default("1048576"),
    "Maximum number of ports in quarantine, all workers together (RFC 6888 REQ-8); about 60 octets of memory each. When it is reached, the port that has been in quarantine longest leaves early.",
);

/// The limits of one subscriber (RFC 6888 REQ-4, REQ-5).
pub(super) const SUBSCRIBER_KEYS: &[Key] = &[
    key(
        "max_bindings_per_subscriber",
        LIMIT,
        NO_LIMIT_SET,
        "Maximum number of bindings of one subscriber, static bindings not counted (RFC 6888 REQ-4); 0: no limit.",
    ),
    key("max_tcp_bindings_per_subscriber", LIMIT, NO_LIMIT_SET, "The same of its TCP bindings; 0: no limit."),
    key("max_udp_bindings_per_subscriber", LIMIT, NO_LIMIT_SET, "The same of its UDP bindings; 0: no limit."),
    key(
        "max_icmp_bindings_per_subscriber",
        LIMIT,
        NO_LIMIT_SET,
        "The same of its ICMP bindings; 0: no limit.",
    ),
    key(
        "max_sessions_per_subscriber",
        LIMIT,
        NO_LIMIT_SET,
        "Maximum number of sessions that one subscriber has opened or answered (RFC 6888 REQ-5); packets from outside may create a quarter as many in addition. 0: no limit.",
    ),
    key(
        "max_new_bindings_per_second",
        LIMIT,
        NO_LIMIT_SET,
        "Maximum number of new bindings of one subscriber a second (RFC 6888 REQ-4 c); 0: no limit.",
    ),
    key(
        "max_new_sessions_per_second",
        LIMIT,
        NO_LIMIT_SET,
        "Maximum number of new sessions of one subscriber a second, from inside (RFC 6888 REQ-5 b); 0: no limit.",
    ),
    key(
        "exempt_destinations",
        Kind::Prefixes4,
        Absent::Means("none"),
        "Remote IPv4 addresses. Sessions with these do not count towards a subscriber's limits, for example those with the operator's DNS servers.",
    ),
    key(
        "block_size",
        Kind::Integer { min: 0, max: LARGEST_BLOCK as u64 },
        Absent::Default("0"),
        "Ports of a port block: a power of two from 64 to 16384. A subscriber then gets ports in blocks, at one address and of all protocols, and the event log has a record for each block instead of one for each binding (RFC 6888 §5). Blocks are made of the pool's ports from 1024 on; others serve static bindings only. 0: no blocks; with `deterministic`, the largest possible blocks.",
    ),
    key(
        "max_blocks_per_subscriber",
        Kind::Integer { min: 1, max: MOST_BLOCKS as u64 },
        Absent::Default("4"),
        "Maximum number of port blocks of one subscriber. It gets another block when all of its ports of a protocol are in use.",
    ),
    key(
        "block_idle_timeout",
        Kind::Duration { min: 0, max: YEAR },
        Absent::Default("\"10 min\""),
        "A subscriber's port block is returned when none of its ports has been in use, or in quarantine, for this time.",
    ),
    key(
        "deterministic",
        Kind::Boolean,
        Absent::Default("false"),
        "Give each subscriber of `inside` one port block by a formula (RFC 7422), so that `sixway nat who` answers from the configuration and nothing is logged. All subscribers' blocks must fit into the pool.",
    ),
];

const LIMIT: Kind = Kind::Integer { min: 0, max: 64 << 20 };
const NO_LIMIT_SET: Absent = Absent::Default("0");

/// `[nat64]`.
pub(crate) static NAT64: Section = Section {
    name: "nat64",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`nat64`; with several sections `nat64-1`, `nat64-2`, …"),
                "Name in `sixway show` and in metrics.",
            ),
            key(
                "prefix",
                Kind::Prefix6,
                Absent::FaultSuch("\"64:ff9b::/96\""),
                "Pref64::/n, which embeds IPv4 addresses (RFC 6052 §2.2): 32, 40, 48, 56, 64 or 96 bits long.",
            ),
            key(
                "inside",
                Kind::Prefixes6,
                Absent::Means("any host"),
                "Prefixes whose hosts may create sessions; packets of others are dropped (`SourceNotInside`). Without it, any host that can send to `prefix` can use the pool. Required in a gateway that is also a 6to4 relay or a 6rd border relay, through which the whole Internet can.",
            ),
            exclude_ipv4(
                "IPv4 addresses to and from which no sessions are created (`ExcludedIpv4`; RFC 6888 REQ-6), such as private networks that inside hosts must not reach. The DNS64 synthesises no AAAA records for them.",
            ),
            allow_own(
                "This host's own IPv4 addresses that inside hosts may create sessions to. Without it, they cannot reach services of this host through `prefix` (`DestinationIsHost`). Addresses of the pool need not be listed.",
            ),
            key(
                "reverse_path",
                Kind::Choice(&["strict", "loose", "off"]),
                Absent::Default("\"off\""),
                "Check the source of packets to `prefix` in the packet filter: `\"strict\"` drops packets whose source is not routed to the interface on which they arrived, `\"loose\"` packets without any route to the source (RFC 3704 §2). Otherwise, hosts can evade `max_bindings_per_subscriber` with forged sources. Needs nft.",
            ),
            POOL_NAME,
            filtering(
                "Who may send through a binding: anyone, only addresses that the inside host has sent to, or only addresses and ports (RFC 6146 §3.5).",
            ),
            static_bindings(&STATIC),
            MAX_SESSIONS,
            MAX_BINDINGS,
            MAX_QUARANTINED,
            key(
                "subscriber_prefix_length",
                Kind::Integer { min: 32, max: 128 },
                Absent::Default("64"),
                "Length of the IPv6 prefix of one subscriber, such as 56 if each customer has a /56. Limits apply to all of its hosts together.",
            ),
            exempt_subscribers(Kind::Prefixes6),
            ftp_alg(
                "Read control connections of FTP to port 21: `EPSV` becomes `PASV` and `EPRT` becomes `PORT` for IPv4 servers, which may connect to the host (RFC 6384).",
            ),
            timeouts(&TIMEOUTS),
        ],
        SUBSCRIBER_KEYS,
        TRANSLATION,
    ],
};

/// The timeouts of a stateful translator.
pub(super) const TIMEOUT_KEYS: &[Key] = &[
    key(
        "udp_default",
        Kind::Duration { min: 120, max: YEAR },
        Absent::Default("\"5 min\""),
        "UDP_DEFAULT: timeout of a UDP session (RFC 6146 §4); at least UDP_MIN, 2 min.",
    ),
    key(
        "tcp_est",
        Kind::Duration { min: 7_200, max: YEAR },
        Absent::Default("\"2 h\""),
        "TCP_EST: timeout of an established TCP session (RFC 6146 §4). TCP_TRANS is added to it, which gives the 2 h 4 min of RFC 5382 §5.",
    ),
    key(
        "tcp_trans",
        Kind::Duration { min: 240, max: YEAR },
        Absent::Default("\"4 min\""),
        "TCP_TRANS: timeout of a TCP session that is opening or closing, was reset, or did not answer after TCP_EST (RFC 6146 §4).",
    ),
    key(
        "tcp_opening",
        Kind::Duration { min: 10, max: YEAR },
        Absent::Means("`tcp_trans`"),
        "Timeout of a TCP session that is opening: less than 4 min frees ports earlier during scans (RFC 7857 §2.1).",
    ),
    key(
        "tcp_closing",
        Kind::Duration { min: 240, max: YEAR },
        Absent::Means("`tcp_trans`"),
        "Timeout of a TCP session that is closing, was reset, or did not answer after TCP_EST (RFC 7857 §2.1).",
    ),
    key(
        "tcp_incoming_syn",
        Kind::Duration { min: 6, max: 600 },
        Absent::Default("\"6 s\""),
        "TCP_INCOMING_SYN: how long a SYN from outside is stored in case the inside host opens the connection too (RFC 6146 §3.5.2.2).",
    ),
    key(
        "icmp_default",
        Kind::Duration { min: 60, max: YEAR },
        Absent::Default("\"60 s\""),
        "ICMP_DEFAULT: timeout of an ICMP query session (RFC 6146 §4).",
    ),
    key(
        "quarantine",
        Kind::Duration { min: 0, max: DAY },
        Absent::Default("\"2 min\""),
        "How long a UDP port or ICMP identifier is not given to another subscriber after its binding has ended, so that late answers do not reach the wrong host (RFC 6888 REQ-8); `\"0 s\"`: disabled. TCP ports, except those of mappings by PCP, and all ports with a `filtering` other than `\"endpoint-independent\"` are exempt. When no other port is free, the port that has been in quarantine longest is given early (`nat.quarantines.cut_short`).",
    ),
];

/// `[nat64.timeouts]`.
pub(crate) static TIMEOUTS: Section = Section {
    name: "nat64.timeouts",
    times: Times::Once,
    groups: &[TIMEOUT_KEYS, &[port_timeouts(&PORT_TIMEOUT)]],
};

/// `nat64.timeouts.port`.
pub(crate) static PORT_TIMEOUT: Section =
    Section { name: "nat64.timeouts.port", times: Times::Several, groups: &[PORT_TIMEOUT_KEYS] };

/// A timeout of certain ports.
pub(super) const PORT_TIMEOUT_KEYS: &[Key] = &[
    key(
        "protocol",
        Kind::Choice(&["tcp", "udp"]),
        Absent::Fault,
        "Which sessions: `\"udp\"`, or `\"tcp\"` for established ones.",
    ),
    key("ports", Kind::Ports, Absent::Fault, "Remote ports: numbers and ranges, separated by commas."),
    key(
        "timeout",
        Kind::Duration { min: 10, max: YEAR },
        Absent::Fault,
        "Their timeout: for UDP at least 10 s for ports below 1024 and 2 min for others, for TCP at least 2 h.",
    ),
];

/// Its outside endpoint.
pub(super) const STATIC_OUTSIDE: Key =
    key("outside", Kind::Endpoint4, Absent::Fault, "An address of the pool, with a port from 1 to 65535.");

/// The protocol of a static binding.
pub(super) const STATIC_PROTOCOL: Key = key(
    "protocol",
    Kind::Choice(&["tcp", "udp", "icmp"]),
    Absent::Fault,
    "Protocol; for `\"icmp\"` the ports are query identifiers.",
);

/// `nat64.static`.
pub(crate) static STATIC: Section = Section {
    name: "nat64.static",
    times: Times::Several,
    groups: &[&[
        STATIC_PROTOCOL,
        key("inside", Kind::Endpoint6, Absent::Fault, "The host inside and its port."),
        STATIC_OUTSIDE,
    ]],
};

/// `[siit]`.
pub(crate) static SIIT: Section = Section {
    name: "siit",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`siit`; with several sections `siit-1`, `siit-2`, …"),
                "Name in `sixway show` and in metrics.",
            ),
            key(
                "prefix",
                Kind::Prefix6,
                Absent::Means("addresses without a mapping are not translated"),
                "Translation prefix for addresses without an explicit mapping (RFC 6052 §2.2): 32, 40, 48, 56, 64 or 96 bits long.",
            ),
            key(
                "exclude_ipv4",
                Kind::Prefixes4,
                Absent::Means("none"),
                "IPv4 addresses that `prefix` does not represent: packets to and from them are dropped (`ExcludedIpv4`), except between addresses with an explicit mapping. The DNS64 synthesises no AAAA records for them. With this key, the fast path leaves stateless mechanisms to the engine.",
            ),
            key("eam", Kind::Tables(&EAM), Absent::Means("none"), "Explicit address mappings (RFC 7757)."),
            key(
                "eam_file",
                Kind::Path,
                Absent::Means("none"),
                "File with further mappings, one per line; a relative path starts at the configuration's directory. See [eam_file](#eam_file).",
            ),
            key(
                "eam_routes",
                Kind::Choice(&["ipv4", "ipv6", "none"]),
                Absent::Default("\"ipv4\""),
                "The side of the mappings that is routed into the device: `\"ipv4\"` if the IPv6 addresses belong to real hosts (RFC 7755), `\"ipv6\"` if the IPv4 addresses do (RFC 7756).",
            ),
            key(
                "hairpinning",
                Kind::Choice(&["intrinsic", "simple", "off"]),
                Absent::Default("\"intrinsic\""),
                "How two hosts with explicit mappings reach each other by their mapped addresses (RFC 7757 §4.2).",
            ),
            key(
                "icmp_source_pool",
                Kind::Prefixes4,
                Absent::Means("`gateway.ipv4_address`"),
                "Source addresses for ICMP errors from IPv6 routers whose addresses cannot be translated (RFC 6791).",
            ),
            key(
                "dynamic_pool",
                Kind::Prefix4,
                Absent::Means("hosts without a mapping are not translated"),
                "Each new IPv6 host gets an IPv4 address from this prefix.",
            ),
            key(
                "dynamic_lifetime",
                Kind::Duration { min: 1, max: YEAR },
                Absent::Default("\"2 h 4 min\""),
                "Idle time after which an address of `dynamic_pool` is released.",
            ),
            key(
                "dynamic_remembered",
                Kind::Duration { min: 0, max: 10 * YEAR },
                Absent::Default("\"14 days\""),
                "Idle time for which a released address stays reserved for its host, as long as other addresses are free; at least `dynamic_lifetime`.",
            ),
            key(
                "dynamic_hosts_per_subscriber",
                Kind::Integer { min: 0, max: 16 << 20 },
                Absent::Default("0"),
                "Maximum number of addresses of `dynamic_pool` for one subscriber (an IPv6 /64) at each worker, released ones not counted; 0: no limit.",
            ),
            key(
                "dynamic_state",
                Kind::Path,
                Absent::Means(
                    "`/var/lib/sixway/NAME.state`; of further `[[siit]]`, `NAME:2.state`, `NAME:3.state`, …",
                ),
                "File that keeps the addresses of `dynamic_pool` across restarts. NAME is `gateway.name`.",
            ),
        ],
        TRANSLATION,
    ],
};

/// `siit.eam`.
pub(crate) static EAM: Section = Section {
    name: "siit.eam",
    times: Times::Several,
    groups: &[&[
        key("ipv4", Kind::Prefix4, Absent::Fault, "The IPv4 side; without a length, one address."),
        key(
            "ipv6",
            Kind::Prefix6,
            Absent::FaultSuch("\"2001:db8:1::/125\""),
            "The IPv6 side; it must have at least as many suffix bits as the IPv4 side (RFC 7757 §3.2).",
        ),
    ]],
};

/// `[fragments]`.
pub(crate) static FRAGMENTS: Section = Section {
    name: "fragments",
    times: Times::Once,
    groups: &[&[
        key(
            "memory",
            Kind::Size { min: 64 << 10, max: 64 << 30 },
            Absent::Default("\"8 MiB\""),
            "Memory for incomplete packets of each direction, for each worker, in octets: fragments from IPv6 and from IPv4 have separate memory. Fragments of tunnel packets have the same amount in addition. When it is full, fragments of new packets are dropped.",
        ),
        key(
            "packets",
            Kind::Integer { min: 1, max: 1 << 20 },
            Absent::Default("4096"),
            "Maximum number of incomplete packets of each direction, for each worker.",
        ),
        key(
            "packets_per_source",
            Kind::Integer { min: 1, max: 1 << 20 },
            Absent::Default("64"),
            "Maximum number of incomplete packets from one source address, for each worker, so that one sender cannot use all of them.",
        ),
        key(
            "fragments_per_packet",
            Kind::Integer { min: 32, max: 8_192 },
            Absent::Default("128"),
            "Maximum number of fragments of a packet; packets with more are dropped. 1,500 octets arrive in at most 31 fragments, over a link with an MTU of 68 octets (RFC 791 §3.2, RFC 4213 §3.6).",
        ),
        key(
            "timeout",
            Kind::Duration { min: 2, max: 120 },
            Absent::Default("\"2 s\""),
            "How long fragments wait for the rest of their packet before they are dropped; at least FRAGMENT_MIN, 2 s (RFC 6146 §4).",
        ),
    ]],
};

/// `[fastpath]`.
pub(crate) static FASTPATH: Section = Section {
    name: "fastpath",
    times: Times::Once,
    groups: &[&[
        key(
            "mode",
            Kind::Choice(&["auto", "tc", "xdp", "off"]),
            Absent::Default("\"auto\""),
            "Where the kernel forwards packets: in the driver (`\"xdp\"`) or at tc ingress (`\"tc\"`). `\"auto\"`: XDP if the driver supports it natively and the device is a physical one, else tc; if the kernel supports neither, the gateway runs without. With `\"tc\"` and `\"xdp\"` the gateway then does not start.",
        ),
        key(
            "interfaces",
            Kind::Texts,
            Absent::Means("all Ethernet devices that are up and not in a bridge or bond"),
            "Interfaces whose packets are forwarded in the kernel, 16 at most. New interfaces are attached within a second.",
        ),
        key(
            "pin_path",
            Kind::Path,
            Absent::Default("\"/run/sixway/bpf\""),
            "Directory for the BPF objects that outlive the process. If it is not on a BPF file system, one is mounted there.",
        ),
        key(
            "flows",
            Kind::IntegerOr { word: "auto", min: LEAST_FLOWS, max: MOST_FLOWS },
            Absent::Default("\"auto\""),
            "Maximum number of sessions in the fast path, 192 octets of memory each; the engine forwards the rest. `\"auto\"`: the sum of `max_sessions` of all translators, at most 262,144. That is less than the default `max_sessions` of one: set it if you expect more sessions at a time.",
        ),
        key(
            "packets",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("8"),
            "Number of packets of a session that the engine forwards before the kernel takes over.",
        ),
        key(
            "notrack",
            Kind::Boolean,
            TRUE,
            "Exclude packets that the fast path may forward from connection tracking, in both directions, with a separate nftables table. A stateful firewall that sees only half of a connection would drop its packets.",
        ),
        key(
            "forward_syn",
            Kind::Boolean,
            FALSE,
            "Also forward the TCP SYNs of tunnels and SIIT in the kernel: connections open faster, but the host's packet filter does not see them, so that it can no longer restrict who opens connections. If it is `false`, the packet filter sees each SYN and no other packet of a connection. SYNs of NAT64 and NAT44 always pass the packet filter; their SYN/ACKs to inside hosts always do so only with `notrack = false`.",
        ),
        key(
            "absence",
            Kind::Duration { min: 0, max: 7 * DAY },
            Absent::Default("\"1 h\""),
            "How long the kernel continues to forward after the process was killed, if it is not started again.",
        ),
    ]],
};
