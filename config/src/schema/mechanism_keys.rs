//! The keys of `[[npt66]]` and `[[ip_in_ip]]`.

use super::key::{Absent, Kind, Section, Times, key};
use super::tunnel_keys::OUTER_HEADER;

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
