//! The keys of `[nat46]`, `[[npt66]]` and `[[ip_in_ip]]`.

use super::key::{Absent, Kind, Section, Times, key};
use super::keys::TRANSLATION;
use super::tunnel_keys::OUTER_HEADER;

/// The keys of `[nat46]`.
pub(crate) static NAT46: Section = Section {
    name: "nat46",
    times: Times::Once,
    groups: &[
        &[
            key("name", Kind::Text, Absent::Means("`nat46`"), "Name in `sixway show` and in metrics."),
            key(
                "clients",
                Kind::Prefixes4,
                Absent::FaultSuch("[\"10.0.0.0/8\"]"),
                "IPv4 hosts that may use it: they get addresses of the pool for names of IPv6-only servers, and only their packets are translated.",
            ),
            key(
                "pool",
                Kind::Prefix4,
                Absent::FaultSuch("\"192.168.46.0/24\""),
                "Addresses that represent IPv6 servers. The clients must route them to this machine; they are not used otherwise.",
            ),
            key(
                "prefix",
                Kind::Prefix6,
                Absent::FaultSuch("\"2001:db8:46::/96\""),
                "Prefix of the clients' IPv6 addresses (RFC 6052), which servers see. It must be routed to this machine, and belong to no other mechanism.",
            ),
            key(
                "servers",
                Kind::Prefixes6,
                Absent::Default("\"2000::/3\""),
                "IPv6 addresses that names may lead to. Unique local addresses (fc00::/7) must be listed explicitly, so that names of the Internet do not lead into your own networks.",
            ),
            key(
                "exclude_names",
                Kind::Texts,
                Absent::Means("none"),
                "Clients get no address of the pool for these names and names below them. For example FTP servers: FTP's messages contain addresses.",
            ),
            key(
                "static",
                Kind::Tables(&NAT46_STATIC),
                Absent::Means("none"),
                "Mappings that always exist, for all clients and without a query.",
            ),
            key(
                "mappings",
                Kind::Choice(&["client", "shared"]),
                Absent::Default("\"client\""),
                "Who uses a mapping. `\"client\"`: the client that queried; different clients may have different servers at one address. `\"shared\"`: all clients, for clients that query through their own resolver, so that the gateway cannot know which client a query is for.",
            ),
            key(
                "ttl",
                Kind::Duration { min: 1, max: 3_600 },
                Absent::Default("\"2 min\""),
                "The longest TTL of such an answer. A mapping is live for the TTL and 30 s, and as long as its client sends; its address then rests for the TTL and 2 min.",
            ),
            key(
                "max_mappings",
                Kind::Integer { min: 16, max: 16 << 20 },
                Absent::Default("65536"),
                "Maximum number of mappings, resting ones included; about 100 octets of memory each. When the table is full, new ones are refused and existing ones stay.",
            ),
            key(
                "max_mappings_per_client",
                Kind::Integer { min: 1, max: 16 << 20 },
                Absent::Default("1024"),
                "Maximum number of mappings of one client. If a client has its own pool of more than 128 addresses, it uses at most half of it.",
            ),
        ],
        TRANSLATION,
    ],
};

/// `nat46.static`.
pub(crate) static NAT46_STATIC: Section = Section {
    name: "nat46.static",
    times: Times::Several,
    groups: &[&[
        key("address", Kind::Address4, Absent::FaultSuch("\"192.168.46.80\""), "An address of the pool."),
        key(
            "server",
            Kind::Address6,
            Absent::FaultSuch("\"2001:db8:80::80\""),
            "The server that it represents.",
        ),
    ]],
};

/// The keys of `[[npt66]]`.
pub(crate) static NPT66: Section = Section {
    name: "npt66",
    times: Times::Several,
    groups: &[&[
        key(
            "name",
            Kind::Text,
            Absent::Means("`npt66`; with several sections `npt66-1`, `npt66-2`, …"),
            "Name in `sixway show` and in metrics.",
        ),
        key(
            "inside",
            Kind::Prefix6,
            Absent::FaultSuch("\"fd01:203:405::/48\""),
            "The site's own prefix, at most 64 bits long.",
        ),
        key(
            "outside",
            Kind::Prefix6,
            Absent::FaultSuch("\"2001:db8:1::/48\""),
            "The prefix that replaces it outside. The shorter of the two is extended with zeros (RFC 6296 §3.1).",
        ),
        key(
            "except",
            Kind::Prefixes6,
            Absent::Means("only `inside`"),
            "Further destinations that the site reaches with its own addresses: packets to them are not translated.",
        ),
    ]],
};

/// The keys of `[[ip_in_ip]]`.
pub(crate) static IP_IN_IP: Section = Section {
    name: "ip_in_ip",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Means("`ip_in_ip`; with several sections `ip_in_ip-1`, `ip_in_ip-2`, …"),
                "Name in `sixway show` and in metrics.",
            ),
            key(
                "local",
                Kind::Address,
                Absent::FaultSuch("\"2001:db8::1\""),
                "Local end of the tunnel: an address that is routed to this host but not configured on any of its interfaces. Tunnels may share it, and it may be the gateway's own address.",
            ),
            key(
                "remote",
                Kind::Address,
                Absent::FaultSuch("\"2001:db8:7::1\""),
                "Remote end of the tunnel, of the same address family.",
            ),
            key(
                "prefixes",
                Kind::Networks,
                Absent::FaultSuch("[\"10.7.0.0/16\", \"2001:db8:70::/48\"]"),
                "Prefixes behind the remote end: they are routed into the tunnel, longest prefix first. Between IPv4 ends only IPv4 prefixes.",
            ),
            key(
                "strict_sources",
                Kind::Boolean,
                Absent::Default("true"),
                "Accept only packets whose inner source address is within `prefixes`.",
            ),
            key(
                "encapsulation_limit",
                Kind::IntegerOr { word: "none", min: 0, max: 255 },
                Absent::Default("4"),
                "How many more tunnels a packet may enter, if it does not have the option itself (RFC 2473 §6.6); `\"none\"`: the option is not added, which saves 8 octets. Only with IPv6 ends.",
            ),
            key(
                "mtu",
                Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
                Absent::Default("\"dynamic\""),
                "Tunnel MTU in octets: a number up to `tun.mtu`, or `\"dynamic\"`, the path MTU to the remote end (RFC 2473 §6.7, RFC 2003 §5.1).",
            ),
        ],
        OUTER_HEADER,
    ],
};
