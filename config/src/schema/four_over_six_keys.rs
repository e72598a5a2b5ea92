//! The keys of `[[four_over_six]]`.

use super::key::{Absent, Kind, Section, Times, key};
use super::tunnel_keys::OUTER_HEADER;

/// The keys of `[[four_over_six]]`.
pub(crate) static FOUR_OVER_SIX: Section = Section {
    name: "four_over_six",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means(
                    "`four_over_six`; with several sections `four_over_six-1`, `four_over_six-2`, …",
                ),
                "Name in `sixway show` and in metrics.",
            ),
            key(
                "role",
                Kind::Choice(&["concentrator", "host"]),
                Absent::FaultSuch("\"concentrator\""),
                "`\"concentrator\"`: leases IPv4 addresses to hosts (RFC 7040's border relay). `\"host\"`: takes a lease when it needs one (RFC 7040's customer edge).",
            ),
            key(
                "addresses",
                Kind::Addresses6,
                Absent::Means("required for a concentrator"),
                "Concentrator: its IPv6 addresses, at which hosts' tunnels end. They are routed to this host, but not configured on any of its interfaces.",
            ),
            key(
                "pool",
                Kind::Prefixes4,
                Absent::Means("required for a concentrator"),
                "Concentrator: the IPv4 addresses to lease, and those of `static`.",
            ),
            key(
                "clients",
                Kind::Prefixes6,
                Absent::Means("required for a concentrator"),
                "Concentrator: the IPv6 prefixes of hosts, whose queries are answered.",
            ),
            key(
                "relays",
                Kind::Prefixes6,
                Absent::Means("none: messages of relay agents are refused"),
                "Concentrator: the IPv6 prefixes of relay agents, which are trusted about the host that a query came from. No other host may have these addresses.",
            ),
            key(
                "client_prefix",
                Kind::Integer { min: 32, max: 128 },
                Absent::Default("56"),
                "Concentrator: length of a client's prefix. Limits count for a client.",
            ),
            key(
                "leases_per_client",
                Kind::Integer { min: 1, max: 65_536 },
                Absent::Default("4"),
                "Concentrator: maximum number of addresses of a client.",
            ),
            key(
                "max_leases",
                Kind::Integer { min: 1, max: 4_194_304 },
                Absent::Default("65536"),
                "Concentrator: maximum number of bindings, static ones included.",
            ),
            key(
                "lease_time",
                Kind::Duration { min: 60, max: 31_536_000 },
                Absent::Default("\"1 h\""),
                "Concentrator: how long a lease lasts. Hosts renew it after half of this time.",
            ),
            key(
                "queries_per_second",
                Kind::Integer { min: 0, max: 1_000_000 },
                Absent::Default("10"),
                "Concentrator: maximum number of DHCP queries of a client a second; 0 disables the limit.",
            ),
            key(
                "listen",
                Kind::Addresses6,
                Absent::Default("\"::\""),
                "Concentrator: addresses of this host at which DHCPv4 over DHCPv6 is served (RFC 7341), at UDP port 547; an empty list disables the server.",
            ),
            key(
                "kea_leases",
                Kind::Path,
                Absent::Means("leases of the own server"),
                "Concentrator: lease file of a Kea DHCPv4 server (CSV), whose leases become bindings; `listen` must be empty then.",
            ),
            key(
                "lease_file",
                Kind::Path,
                Absent::Means("`/var/lib/sixway/`, the gateway's name, `-`, `name` and `.leases`"),
                "File in which leases survive a restart.",
            ),
            key(
                "local",
                Kind::Address6,
                Absent::Means("required for a host"),
                "Host: its IPv6 address for the tunnel. It is routed to this host, but not configured on any of its interfaces.",
            ),
            key(
                "concentrator",
                Kind::Address6,
                Absent::Means("required for a host"),
                "Host: IPv6 address of the concentrator.",
            ),
            key(
                "servers",
                Kind::Addresses6,
                Absent::Means("set `server_lease_file` or `address` instead"),
                "Host: IPv6 addresses of the DHCP 4o6 servers (RFC 7341). `ff02::1:2` means those on the link towards the concentrator.",
            ),
            key(
                "server_lease_file",
                Kind::Path,
                Absent::Means("the addresses of `servers`"),
                "Host: a file in which the DHCPv6 client writes its lease, with the DHCP 4o6 Server Address option (number 88, RFC 7341). It is read again when it changes. Without the option no lease is taken; if it is empty, servers are queried by multicast. The formats of dhclient, of hooks of dhcpcd and odhcp6c, and a line with only addresses are known.",
            ),
            key(
                "address",
                Kind::Prefix4,
                Absent::Means("an address is leased from `servers`"),
                "Host: the static IPv4 address, or prefix, of this host.",
            ),
            key(
                "idle",
                Kind::DurationOr { word: "never", min: 10, max: 31_536_000 },
                Absent::Default("\"5 min\""),
                "Host: the lease is released after this time without packets; `\"never\"`: it is taken at the start and kept.",
            ),
            key(
                "destinations",
                Kind::Prefixes4,
                Absent::Default("\"0.0.0.0/0\""),
                "Host: IPv4 destinations that are routed into the tunnel.",
            ),
            key(
                "static",
                Kind::Tables(&FOUR_OVER_SIX_STATIC),
                Absent::Means("none"),
                "Concentrator: static addresses of hosts.",
            ),
            key(
                "names",
                Kind::Tables(&FOUR_OVER_SIX_NAMES),
                Absent::Means("none"),
                "Concentrator: names of hosts. The DNS service answers a query for A with the host's leased address, and leases one if it has none.",
            ),
            key(
                "encapsulation_limit",
                Kind::IntegerOr { word: "none", min: 0, max: 255 },
                Absent::Default("4"),
                "How many more tunnels a packet may enter (RFC 2473 §6.6); `\"none\"`: the option is not added, which saves 8 octets.",
            ),
            key(
                "mtu",
                Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
                Absent::Default("\"dynamic\""),
                "Tunnel MTU in octets: a number up to `tun.mtu`, or `\"dynamic\"`, the path MTU to the remote end (RFC 2473 §6.7).",
            ),
        ],
        OUTER_HEADER,
    ],
};

/// The keys of `[[four_over_six.static]]`.
pub(crate) static FOUR_OVER_SIX_STATIC: Section = Section {
    name: "four_over_six.static",
    times: Times::Several,
    groups: &[&[
        key("host", Kind::Address6, Absent::Fault, "The host's IPv6 address: its end of the tunnel."),
        key(
            "ipv4",
            Kind::Prefix4,
            Absent::Fault,
            "The IPv4 address that it has; or a prefix, for a network behind the host.",
        ),
    ]],
};

/// The keys of `[[four_over_six.names]]`.
pub(crate) static FOUR_OVER_SIX_NAMES: Section = Section {
    name: "four_over_six.names",
    times: Times::Several,
    groups: &[&[
        key("name", Kind::Text, Absent::Fault, "The name. Names below it are not included."),
        key("host", Kind::Address6, Absent::Fault, "The host's IPv6 address: its end of the tunnel."),
    ]],
};
