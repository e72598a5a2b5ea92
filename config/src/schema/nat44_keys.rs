//! The keys of `[nat44]`.

use super::key::{Absent, Key, Kind, Section, Times, key};
use super::keys::{
    CLAMP_MSS, MAX_BINDINGS, MAX_QUARANTINED, MAX_SESSIONS, POOL_NAME, PORT_TIMEOUT_KEYS, SUBSCRIBER_KEYS,
    TIMEOUT_KEYS, YEAR,
};
use super::stateful_keys::{
    allow_own, exclude_ipv4, exempt_subscribers, filtering, ftp_alg, port_timeouts, static_bindings, timeouts,
};

/// `[nat44]`.
pub(crate) static NAT44: Section = Section {
    name: "nat44",
    times: Times::Once,
    groups: &[
        &[
            key("name", Kind::Text, Absent::Means("`nat44`"), "Name in `sixway show` and in metrics."),
            key(
                "inside",
                Kind::Prefixes4,
                Absent::FaultSuch("[\"192.168.1.0/24\"]"),
                "Prefixes of the inside hosts. Packets with these sources are routed into the device by policy rules, except those to `inside` and `except`.",
            ),
            key(
                "interfaces",
                Kind::Texts,
                Absent::Means("any, and this host's own packets with a source in `inside`"),
                "Interfaces on which packets of inside hosts arrive: the policy rules then apply only to these.",
            ),
            key(
                "except",
                Kind::Prefixes4,
                Absent::Means("none"),
                "Destinations that inside hosts reach with their own addresses, such as another site behind a VPN.",
            ),
            key(
                "translate_own_tunnels",
                Kind::Boolean,
                Absent::Default("false"),
                "Translate packets of this gateway's own tunnels, too, if their local end is an address in `inside`: IPv6 in IPv4 and IPv4 in IPv4. Their remote ends see an address of the pool.",
            ),
        ],
        NAT44_KEYS,
        SUBSCRIBER_KEYS,
    ],
};

/// The keys that `[nat44]` and `[[realm]]` have in common, in addition to those of subscribers.
pub(super) const NAT44_KEYS: &[Key] = &[
    exclude_ipv4("IPv4 addresses to and from which no sessions are created (`ExcludedIpv4`)."),
    allow_own(
        "This host's own IPv4 addresses that inside hosts may create sessions to through the translator. Usually the kernel delivers packets to them itself.",
    ),
    POOL_NAME,
    filtering(
        "Who may send through a binding: anyone, only addresses that the inside host has sent to, or only addresses and ports (RFC 4787 §5).",
    ),
    static_bindings(&NAT44_STATIC),
    MAX_SESSIONS,
    MAX_BINDINGS,
    MAX_QUARANTINED,
    key(
        "subscriber_prefix_length",
        Kind::Integer { min: 8, max: 32 },
        Absent::Default("32"),
        "Length of the IPv4 prefix of one subscriber. Limits apply to all of its hosts together.",
    ),
    exempt_subscribers(Kind::Prefixes4),
    key(
        "max_portless_sessions",
        Kind::Integer { min: 0, max: 16 << 20 },
        Absent::Default("16384"),
        "Maximum number of sessions of protocols without ports (GRE, ESP, IPv4 and IPv6 in IPv4), all workers together; 0: these protocols need static bindings.",
    ),
    key(
        "max_portless_sessions_per_subscriber",
        Kind::Integer { min: 0, max: 16 << 20 },
        Absent::Default("64"),
        "Maximum number of these sessions of one subscriber (an IPv4 address) at each worker, so that one host cannot use up the table; 0: no limit.",
    ),
    ftp_alg(
        "Read control connections of FTP to port 21: addresses in `PORT` and `EPRT` become those of the pool, and the server may connect to them.",
    ),
    CLAMP_MSS,
    timeouts(&NAT44_TIMEOUTS),
];

/// `[nat44.timeouts]`.
pub(crate) static NAT44_TIMEOUTS: Section = Section {
    name: "nat44.timeouts",
    times: Times::Once,
    groups: &[TIMEOUT_KEYS, &[PORTLESS_TIMEOUT, port_timeouts(&NAT44_PORT_TIMEOUT)]],
};

/// `nat44.timeouts.port`.
pub(crate) static NAT44_PORT_TIMEOUT: Section =
    Section { name: "nat44.timeouts.port", times: Times::Several, groups: &[PORT_TIMEOUT_KEYS] };

/// How long sessions without ports live.
const PORTLESS_TIMEOUT: Key = key(
    "portless",
    Kind::Duration { min: 120, max: YEAR },
    Absent::Default("\"5 min\""),
    "Timeout of a session of a protocol without ports; at least 2 min, as for UDP (RFC 4787 REQ-5).",
);

/// `nat44.static`.
pub(crate) static NAT44_STATIC: Section = Section {
    name: "nat44.static",
    times: Times::Several,
    groups: &[&[
        key(
            "protocol",
            Kind::Choice(&["tcp", "udp", "icmp", "gre", "esp", "ipv6", "ipip"]),
            Absent::Fault,
            "Protocol; for `\"icmp\"` the ports are query identifiers. `\"gre\"`, `\"esp\"`, `\"ipv6\"` (protocol 41) and `\"ipip\"` (protocol 4) have no ports: all their packets to the outside address go to the host.",
        ),
        key("inside", Kind::Endpoint4OrAddress, Absent::Fault, "The host inside and its port."),
        key(
            "outside",
            Kind::Endpoint4OrAddress,
            Absent::Fault,
            "An address of the pool, with a port from 1 to 65535.",
        ),
    ]],
};
