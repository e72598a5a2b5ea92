//! The keys of `[teredo_server]`.

use super::key::{Absent, Kind, Section, Times, key};

/// The keys of `[teredo_server]`.
pub(crate) static TEREDO_SERVER: Section = Section {
    name: "teredo_server",
    times: Times::Once,
    groups: &[&[
        key(
            "address",
            Kind::Address4,
            Absent::FaultSuch("\"192.0.2.1\""),
            "Address of the server: a global unicast address of this host. It is part of the addresses of all its clients.",
        ),
        key(
            "secondary",
            Kind::Address4,
            Absent::Means("only one address"),
            "A second global unicast address of this host, usually the next one: many clients query `address` + 1. Clients use it to find out which kind of NAT they are behind.",
        ),
        key(
            "native",
            Kind::Boolean,
            Absent::Default("true"),
            "Forward ICMPv6 echo messages of clients to native IPv6 hosts. Clients use them to find a relay for each host; without them, they reach other Teredo clients only.",
        ),
        key(
            "own_networks",
            Kind::Boolean,
            Absent::Default("false"),
            "With `native`: forward them also to this host's own IPv6 addresses and to hosts in IPv6 networks of its interfaces. These packets pass the packet filter's output chain, not its forward chain.",
        ),
        key(
            "client",
            Kind::Tables(&TEREDO_SERVER_CLIENT),
            Absent::Means("none"),
            "Clients with a secret, for secure qualification (RFC 4380 §5.2.2).",
        ),
        key(
            "required",
            Kind::Boolean,
            Absent::Means("`true` if there is a `client`, else `false`"),
            "Only clients with a secret qualify. If `false`, others do, too.",
        ),
        key(
            "source_rate",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("20"),
            "Datagrams a second from one IPv4 address, and from one `client`; a burst may be three times as long. All clients behind one NAT have one address.",
        ),
        key(
            "destination_rate",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Default("50"),
            "Datagrams a second that are forwarded to one IPv4 address; a burst may be twice as long. It limits the packets that a victim of forged packets gets.",
        ),
        key(
            "total_rate",
            Kind::Integer { min: 3, max: 10_000_000 },
            Absent::Default("50000"),
            "Datagrams a second from all addresses together. One third of it is reserved for solicitations of a `client`.",
        ),
    ]],
};

/// `teredo_server.client`.
pub(crate) static TEREDO_SERVER_CLIENT: Section = Section {
    name: "teredo_server.client",
    times: Times::Several,
    groups: &[&[
        key("id", Kind::Text, Absent::FaultSuch("\"alice\""), "Client identifier, up to 255 octets."),
        key(
            "secret_file",
            Kind::Path,
            Absent::FaultSuch("\"/etc/sixway/teredo/alice\""),
            "File with the client's secret: one line of at least 16 characters.",
        ),
        key(
            "retired",
            Kind::Boolean,
            Absent::Default("false"),
            "The client qualifies, and the confirmation octet of the answer says that it needs another identifier and secret.",
        ),
    ]],
};
