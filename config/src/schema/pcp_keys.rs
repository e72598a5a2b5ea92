//! The keys of `[pcp]`.

use super::key::{Absent, Kind, Section, Times, key};

/// The keys of `[pcp]`.
pub(crate) static PCP: Section = Section {
    name: "pcp",
    times: Times::Once,
    groups: &[&[
        key(
            "interfaces",
            Kind::Texts,
            Absent::FaultSuch("[\"eth1\"]"),
            "Interfaces on which requests of inside hosts arrive. Requests on other interfaces are not received.",
        ),
        key(
            "lease_file",
            Kind::Path,
            Absent::Means("leases are not followed"),
            "The file in which dnsmasq keeps the DHCP leases of inside hosts (`dhcp-leasefile`). When a lease ends, or another host has the address, its mappings end (RFC 6887 §15).",
        ),
        key(
            "anycast",
            Kind::Boolean,
            Absent::Default("true"),
            "Give this host's loopback interface the addresses at which clients find any PCP server (RFC 7723), while the gateway runs: 192.0.0.9 with a [nat44], 2001:1::1 with a [nat64].",
        ),
        key(
            "map",
            Kind::Boolean,
            Absent::Default("true"),
            "Answer MAP requests, and mapping requests of NAT-PMP.",
        ),
        key("peer", Kind::Boolean, Absent::Default("true"), "Answer PEER requests."),
        key(
            "nat_pmp",
            Kind::Boolean,
            Absent::Default("true"),
            "Answer NAT-PMP (RFC 6886), too. Its mappings are not protected by a nonce.",
        ),
        key(
            "third_party",
            Kind::Networks,
            Absent::Means("none"),
            "Inside clients that may make mappings for other inside hosts (THIRD_PARTY). Only for managed clients in a network where sources cannot be forged.",
        ),
        key(
            "min_lifetime",
            Kind::Duration { min: 1, max: 86_400 },
            Absent::Default("\"2 min\""),
            "The shortest lifetime of a mapping by PCP (RFC 6887 §15).",
        ),
        key(
            "max_lifetime",
            Kind::Duration { min: 120, max: 604_800 },
            Absent::Default("\"24 h\""),
            "The longest lifetime of a mapping without renewal.",
        ),
        key(
            "max_mappings",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("65536"),
            "Maximum number of ports in mappings, together with outbound mappings by PEER. They count to the translators' limits, too.",
        ),
        key(
            "mappings_per_subscriber",
            Kind::Integer { min: 1, max: 65_536 },
            Absent::Default("128"),
            "The same of a subscriber: an IPv4 address, or an IPv6 prefix of `subscriber_bits`.",
        ),
        key(
            "subscriber_bits",
            Kind::Integer { min: 32, max: 128 },
            Absent::Default("64"),
            "Length of the prefix that belongs to one IPv6 subscriber.",
        ),
        key(
            "max_port_set",
            Kind::Integer { min: 1, max: 1_024 },
            Absent::Default("32"),
            "Maximum number of ports that one request maps (PORT_SET, RFC 7753). 1 disables sets.",
        ),
        key(
            "requests_per_second",
            Kind::Integer { min: 1, max: 100_000 },
            Absent::Default("20"),
            "Requests a second of one subscriber; a burst may be three times as long. Further requests are discarded.",
        ),
    ]],
};
