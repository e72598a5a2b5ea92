//! The rows of the schema: router advertisements.

use super::key::{Absent, Kind, Section, Times, key};

const DAY: u64 = 86_400;
const FOREVER: u64 = 0xffff_fffe;
const FALSE: Absent = Absent::Default("false");
const PREFERENCES: Kind = Kind::Choice(&["low", "medium", "high"]);

/// `[router_advertisement]`.
pub(crate) static ROUTER_ADVERTISEMENT: Section = Section {
    name: "router_advertisement",
    times: Times::Several,
    groups: &[&[
        key(
            "interface",
            Kind::Text,
            Absent::Means("set `over` instead"),
            "The interface on which router advertisements are sent. Set either this or `over`.",
        ),
        key(
            "over",
            Kind::Text,
            Absent::Means("set `interface` instead"),
            "The name of the `[isatap]` router that answers the solicitations of its hosts. Set either this or `interface`.",
        ),
        key(
            "max_interval",
            Kind::Duration { min: 4, max: 1_800 },
            Absent::Default("\"10 min\""),
            "MaxRtrAdvInterval: maximum time between two unsolicited advertisements (RFC 4861 §6.2.1).",
        ),
        key(
            "min_interval",
            Kind::Duration { min: 3, max: 1_350 },
            Absent::Means("a third of `max_interval`, at least 3 s"),
            "MinRtrAdvInterval: minimum time between two unsolicited advertisements; at most three quarters of `max_interval`.",
        ),
        key(
            "router_lifetime",
            Kind::Duration { min: 0, max: 9_000 },
            Absent::Means("three times `max_interval`"),
            "AdvDefaultLifetime: how long hosts keep this default router; 0: not a default router.",
        ),
        key(
            "preference",
            PREFERENCES,
            Absent::Default("\"medium\""),
            "Default router preference (RFC 4191 §2.2).",
        ),
        key(
            "managed",
            Kind::Boolean,
            FALSE,
            "AdvManagedFlag: addresses are available via DHCPv6 (RFC 4861 §4.2).",
        ),
        key("other", Kind::Boolean, FALSE, "AdvOtherConfigFlag: other settings are available via DHCPv6."),
        key(
            "hop_limit",
            Kind::Integer { min: 0, max: 255 },
            Absent::Default("64"),
            "AdvCurHopLimit: the hop limit that hosts use in their packets; 0: unspecified.",
        ),
        key(
            "mtu",
            Kind::Integer { min: 1_280, max: 65_535 },
            Absent::Means("not advertised"),
            "AdvLinkMTU: the MTU of the link, where hosts cannot know it.",
        ),
        key(
            "reachable_time",
            Kind::Duration { min: 0, max: 3_600 },
            Absent::Default("\"0 s\""),
            "AdvReachableTime: how long hosts consider a neighbour reachable; 0: unspecified.",
        ),
        key(
            "retransmit_timer",
            Kind::Duration { min: 0, max: 3_600 },
            Absent::Default("\"0 s\""),
            "AdvRetransTimer: time between two neighbour solicitations; 0: unspecified.",
        ),
        key(
            "prefixes",
            Kind::Tables(&ADVERTISED_PREFIX),
            Absent::Means("none; with `over`, the prefix of `[isatap]`"),
            "Prefixes of the link.",
        ),
        key(
            "routes",
            Kind::Tables(&ADVERTISED_ROUTE),
            Absent::Means("none"),
            "More specific routes through this router (RFC 4191 §2.3).",
        ),
        key(
            "rdnss",
            Kind::Addresses6,
            Absent::Means("the addresses on `interface` where `[dns64]` listens on port 53; `[]`: none"),
            "Recursive DNS servers (RFC 8106 §5.1).",
        ),
        key("dnssl", Kind::Texts, Absent::Means("none"), "DNS search list (RFC 8106 §5.2)."),
        key(
            "dns_lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: FOREVER },
            Absent::Means("three times `max_interval`"),
            "Lifetime of `rdnss` and `dnssl`.",
        ),
        key(
            "captive_portal",
            Kind::Text,
            Absent::Means("not advertised"),
            "URI of the captive portal's API (RFC 8910 §2.3).",
        ),
        key(
            "pref64",
            Kind::Prefix6Or(&["auto", "none"]),
            Absent::Default("\"auto\""),
            "The NAT64 prefix to advertise (RFC 8781). `\"auto\"`: the prefix that `[dns64]` synthesises with, else the prefix of the first `[nat64]`, else of the first `[siit]` that has one.",
        ),
        key(
            "pref64_lifetime",
            Kind::Duration { min: 0, max: 65_528 },
            Absent::Means("three times `max_interval`"),
            "Lifetime of `pref64`; rounded up to a multiple of 8 s (RFC 8781 §4.1).",
        ),
        key(
            "goodbye",
            Kind::Boolean,
            Absent::Default("true"),
            "Send a final advertisement with router lifetime 0 when the gateway stops (RFC 4861 §6.2.5). Set `false` where another router takes over with the same address.",
        ),
    ]],
};

/// `router_advertisement.prefixes`.
pub(crate) static ADVERTISED_PREFIX: Section = Section {
    name: "router_advertisement.prefixes",
    times: Times::Several,
    groups: &[&[
        key("prefix", Kind::Prefix6, Absent::Means("set `from` instead"), "A fixed prefix."),
        key(
            "from",
            Kind::Text,
            Absent::Means("set `prefix` instead"),
            "The name of a 6to4 router or 6rd customer edge whose delegated prefix contains this prefix. The prefix follows the IPv4 address.",
        ),
        key(
            "subnet",
            Kind::Integer { min: 0, max: u32::MAX as u64 },
            Absent::Default("0"),
            "The number of the /64 within the delegated prefix.",
        ),
        key(
            "on_link",
            Kind::Boolean,
            Absent::Default("true"),
            "AdvOnLinkFlag: addresses of the prefix are on the link.",
        ),
        key(
            "autonomous",
            Kind::Boolean,
            Absent::Default("true"),
            "AdvAutonomousFlag: hosts configure addresses from the prefix (RFC 4862).",
        ),
        key(
            "valid_lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: FOREVER },
            Absent::Means("30 d; with `from`, 90 min (RFC 9096 §4)"),
            "AdvValidLifetime: how long addresses of the prefix are valid.",
        ),
        key(
            "preferred_lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: FOREVER },
            Absent::Means("7 d; with `from`, 45 min (RFC 9096 §4); at most `valid_lifetime`"),
            "AdvPreferredLifetime: how long addresses of the prefix are used for new connections.",
        ),
    ]],
};

/// `router_advertisement.routes`.
pub(crate) static ADVERTISED_ROUTE: Section = Section {
    name: "router_advertisement.routes",
    times: Times::Several,
    groups: &[&[
        key("prefix", Kind::Prefix6, Absent::Fault, "The destinations."),
        key(
            "preference",
            PREFERENCES,
            Absent::Default("\"medium\""),
            "Preference of the route compared with other routers' routes (RFC 4191 §2.1).",
        ),
        key(
            "lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: 30 * DAY },
            Absent::Means("three times `max_interval`"),
            "Lifetime of the route.",
        ),
    ]],
};
