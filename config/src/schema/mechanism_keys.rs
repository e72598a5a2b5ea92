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
            Absent::Means("`npt66`; of several, `npt66-1`, `npt66-2`, …"),
            "What it is called in `sixway show` and in metrics.",
        ),
        key(
            "inside",
            Kind::Prefix6,
            Absent::FaultSuch("\"fd01:203:405::/48\""),
            "The prefix of the site's own addresses, at most 64 bits long.",
        ),
        key(
            "outside",
            Kind::Prefix6,
            Absent::FaultSuch("\"2001:db8:1::/48\""),
            "The prefix that the outside sees in its place. The shorter of the two is extended with zeros (RFC 6296 §3.1).",
        ),
        key(
            "except",
            Kind::Prefixes6,
            Absent::Means("none but `inside`"),
            "Further destinations that the site reaches under its own addresses: nothing is translated on the way there.",
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
                Absent::Means("`ip_in_ip`; of several, `ip_in_ip-1`, `ip_in_ip-2`, …"),
                "What it is called in `sixway show` and in metrics.",
            ),
            key(
                "local",
                Kind::Address,
                Absent::FaultSuch("\"2001:db8::1\""),
                "This end: an address that is routed to this host and is on none of its interfaces. Tunnels may share it, and it may be the gateway's own.",
            ),
            key(
                "remote",
                Kind::Address,
                Absent::FaultSuch("\"2001:db8:7::1\""),
                "The other end, of the same family.",
            ),
            key(
                "prefixes",
                Kind::Networks,
                Absent::FaultSuch("[\"10.7.0.0/16\", \"2001:db8:70::/48\"]"),
                "What is behind the other end: it is routed into the tunnel, the longest prefix first. Between IPv4 ends only IPv4 prefixes.",
            ),
            key(
                "strict_sources",
                Kind::Boolean,
                Absent::Default("true"),
                "Take only packets whose inner source lies within `prefixes`.",
            ),
            key(
                "encapsulation_limit",
                Kind::IntegerOr { word: "none", min: 0, max: 255 },
                Absent::Default("4"),
                "How many more tunnels a packet may enter, if it does not say so itself (RFC 2473 §6.6); `\"none\"`: no such option, and 8 octets less. Only with IPv6 ends.",
            ),
            key(
                "mtu",
                Kind::IntegerOr { word: "dynamic", min: 1_280, max: 65_515 },
                Absent::Default("\"dynamic\""),
                "Octets of packet that go in whole: a number up to `tun.mtu`, or what the path to the other end is found to carry (RFC 2473 §6.7, RFC 2003 §5.1).",
            ),
        ],
        OUTER_HEADER,
    ],
};
