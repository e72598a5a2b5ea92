//! The keys of `[[ds_lite]]`: those of both roles, and those of one.

use super::key::{Absent, Key, Kind, Section, Times, key};
use super::keys::{
    MAX_BINDINGS, MAX_QUARANTINED, MAX_SESSIONS, PORT_TIMEOUT_KEYS, STATIC_OUTSIDE, STATIC_PROTOCOL,
    SUBSCRIBER_KEYS, TIMEOUT_KEYS,
};
use super::stateful_keys::{
    allow_own, exclude_ipv4, exempt_subscribers, filtering, port_timeouts, static_bindings, timeouts,
};
use super::tunnel_keys::OUTER_HEADER;

/// The keys of both roles.
const BOTH: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Absent::Means("`ds_lite`; with several sections `ds_lite-1`, `ds_lite-2`, …"),
        "Name in `sixway show` and in metrics.",
    ),
    key(
        "role",
        Kind::Choice(&["aftr", "b4"]),
        Absent::Fault,
        "The provider's `\"aftr\"`, at which all softwires end, or the customer's `\"b4\"` (RFC 6333 §4).",
    ),
    key(
        "inside",
        Kind::Prefixes4,
        Absent::Means("10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and 192.0.0.0/29"),
        "IPv4 networks of the hosts behind a B4: packets with other inner addresses are dropped (RFC 6333 §11).",
    ),
];

/// The keys of `role = "b4"`. None may be required by the schema: a section of the other role does not have them.
pub(crate) const B4_KEYS: &[Key] = &[
    key(
        "aftr",
        Kind::Text,
        Absent::Means("set `aftr_lease_file` instead"),
        "B4: the AFTR, an IPv6 address or a DNS name. The AAAA records of a name are queried over IPv6, and again after their TTL (RFC 6334 §5). Set this, `aftr_lease_file` or both: then the lease has precedence.",
    ),
    key(
        "aftr_lease_file",
        Kind::Path,
        Absent::Means("set `aftr` instead"),
        "B4: a file in which the DHCPv6 client writes its lease, with the AFTR-Name option (number 64, RFC 6334). It is read again when it changes. The formats of dhclient, of hooks of dhcpcd and odhcp6c, and a line with only a name are known.",
    ),
    key(
        "aftr_within",
        Kind::Prefixes6,
        Absent::Means("anywhere"),
        "B4: networks that the AFTR's name may resolve to; other addresses are ignored.",
    ),
    key(
        "name_servers",
        Kind::Addresses6,
        Absent::Means("those of `/etc/resolv.conf` that are IPv6 or loopback addresses"),
        "B4: DNS servers that resolve the AFTR's name. IPv4 servers would be behind the tunnel (RFC 6333 §5.5).",
    ),
    key(
        "local",
        Kind::Address6,
        Absent::Means("an address in the network of `interface`"),
        "B4: this end of the softwire, an IPv6 address that is routed to this host but not configured on any of its interfaces.",
    ),
    key(
        "interface",
        Kind::Text,
        Absent::Means("set `local` instead"),
        "B4: this end of the softwire has the /64 prefix of this interface's newest global IPv6 address and `identifier`; it follows changes of the prefix, and this host answers neighbour solicitations for it on that interface. Set either this or `local`.",
    ),
    key(
        "identifier",
        Kind::Address6,
        Absent::Default("\"::b4\""),
        "B4: interface identifier of this end, the last 64 bits of its address, with `interface`.",
    ),
    key(
        "ipv4_address",
        Kind::Address4,
        Absent::Default("\"192.0.0.2\""),
        "B4: IPv4 address of this host on the device, for its own packets and ICMP errors, within 192.0.0.0/29 (RFC 6333 §5.7) or private.",
    ),
    key(
        "encapsulation_limit",
        Kind::IntegerOr { word: "none", min: 0, max: 255 },
        Absent::Default("\"none\""),
        "B4: how many more tunnels a packet may enter (RFC 2473 §6.6); `\"none\"`: the option is not added, so that the outer header has the 40 octets of RFC 6333 §5.3.",
    ),
];

/// The keys of `role = "aftr"`. None may be required by the schema: a section of the other role does not have them.
pub(crate) const AFTR_KEYS: &[Key] = &[
    key(
        "addresses",
        Kind::Addresses6,
        Absent::Means("required for an AFTR"),
        "AFTR: its IPv6 addresses, at which softwires end. They are routed to this host but not configured on any of its interfaces.",
    ),
    key(
        "clients",
        Kind::Prefixes6,
        Absent::Means("required for an AFTR"),
        "AFTR: the IPv6 networks of its B4s; packets from other sources are dropped.",
    ),
    key(
        "pool",
        Kind::Text,
        Absent::Means("required for an AFTR"),
        "AFTR: name of the pool whose addresses the hosts behind all softwires share.",
    ),
    exclude_ipv4("AFTR: IPv4 addresses to and from which no sessions are created (`ExcludedIpv4`)."),
    allow_own("AFTR: this host's own IPv4 addresses that hosts behind softwires may create sessions to."),
    filtering(
        "AFTR: who may send through a binding: anyone, only addresses that the inside host has sent to, or only addresses and ports (RFC 4787 §5).",
    ),
    key(
        "max_softwires",
        Kind::Integer { min: 16, max: 16 << 20 },
        Absent::Default("262144"),
        "AFTR: maximum number of softwires with bindings, divided among the workers (each may have up to twice its share); less than 64 octets of memory each. A subscriber has 16 at most.",
    ),
    MAX_SESSIONS,
    MAX_BINDINGS,
    MAX_QUARANTINED,
    key(
        "subscriber_prefix_length",
        Kind::Integer { min: 32, max: 128 },
        Absent::Default("56"),
        "AFTR: length of the IPv6 prefix of one subscriber, in the address of its B4. Limits apply to all hosts behind its B4s together.",
    ),
    exempt_subscribers(Kind::Prefixes6),
];

/// The keys of an AFTR's subscribers.
pub(crate) const AFTR_SUBSCRIBER_KEYS: &[Key] = SUBSCRIBER_KEYS;

/// Its tables.
const AFTR_TABLES: &[Key] = &[static_bindings(&DS_LITE_STATIC), timeouts(&DS_LITE_TIMEOUTS)];

/// `[ds_lite.timeouts]`.
pub(crate) static DS_LITE_TIMEOUTS: Section = Section {
    name: "ds_lite.timeouts",
    times: Times::Once,
    groups: &[TIMEOUT_KEYS, &[port_timeouts(&DS_LITE_PORT_TIMEOUT)]],
};

/// `ds_lite.timeouts.port`.
pub(crate) static DS_LITE_PORT_TIMEOUT: Section =
    Section { name: "ds_lite.timeouts.port", times: Times::Several, groups: &[PORT_TIMEOUT_KEYS] };

/// `ds_lite.static`.
pub(crate) static DS_LITE_STATIC: Section = Section {
    name: "ds_lite.static",
    times: Times::Several,
    groups: &[&[
        STATIC_PROTOCOL,
        key("softwire", Kind::Address6, Absent::Fault, "The address of the B4."),
        key("inside", Kind::Endpoint4, Absent::Fault, "The host behind the softwire and its port."),
        STATIC_OUTSIDE,
    ]],
};

/// How much of a packet goes in whole (RFC 2473 §6.7).
const MTU: &[Key] = &[key(
    "mtu",
    Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
    Absent::Default("\"dynamic\""),
    "Tunnel MTU in octets: a number up to `tun.mtu`, or `\"dynamic\"`, the path MTU to the remote end less the outer header (RFC 2473 §7.2). Where the network carries IPv6 packets of 1,540 octets, nothing is fragmented (RFC 6333 §5.3).",
)];

/// `[ds_lite]`.
pub(crate) static DS_LITE: Section = Section {
    name: "ds_lite",
    times: Times::Several,
    groups: &[BOTH, B4_KEYS, AFTR_KEYS, AFTR_TABLES, SUBSCRIBER_KEYS, MTU, OUTER_HEADER],
};
