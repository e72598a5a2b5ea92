//! The rows of the schema: router advertisements.

use super::{Absent, Kind, Section, Times, key};

const DAY: u64 = 86_400;
const FOREVER: u64 = 0xffff_fffe;
const FALSE: Absent = Absent::Default("false");
const PREFERENCES: Kind = Kind::Choice(&["low", "medium", "high"]);

/// `[router_advertisement]`.
pub(in super::super) static ROUTER_ADVERTISEMENT: Section = Section {
    name: "router_advertisement",
    times: Times::Several,
    groups: &[&[
        key(
            "interface",
            Kind::Text,
            Absent::Means("`over` is written"),
            "The interface whose hosts are told. Either this or `over` is written.",
        ),
        key(
            "over",
            Kind::Text,
            Absent::Means("`interface` is written"),
            "The name of the `[isatap]` router whose hosts are told when they ask.",
        ),
        key(
            "max_interval",
            Kind::Duration { min: 4, max: 1_800 },
            Absent::Default("\"10 min\""),
            "MaxRtrAdvInterval: the longest time between two advertisements (RFC 4861 §6.2.1).",
        ),
        key(
            "min_interval",
            Kind::Duration { min: 3, max: 1_350 },
            Absent::Means("a third of `max_interval`, 3 s at least"),
            "MinRtrAdvInterval: the shortest; at most three quarters of `max_interval`.",
        ),
        key(
            "router_lifetime",
            Kind::Duration { min: 0, max: 9_000 },
            Absent::Means("three times `max_interval`"),
            "AdvDefaultLifetime: so long a host keeps this as a default router; 0: it is none.",
        ),
        key("preference", PREFERENCES, Absent::Default("\"medium\""), "As a default router (RFC 4191 §2.2)."),
        key("managed", Kind::Boolean, FALSE, "AdvManagedFlag: addresses are to be had by DHCPv6."),
        key("other", Kind::Boolean, FALSE, "AdvOtherConfigFlag: other settings are to be had by DHCPv6."),
        key(
            "hop_limit",
            Kind::Integer { min: 0, max: 255 },
            Absent::Default("64"),
            "AdvCurHopLimit: what hosts put into their packets; 0: nothing is said.",
        ),
        key(
            "mtu",
            Kind::Integer { min: 1_280, max: 65_535 },
            Absent::Means("nothing is said"),
            "AdvLinkMTU, where hosts do not know the link's.",
        ),
        key(
            "reachable_time",
            Kind::Duration { min: 0, max: 3_600 },
            Absent::Default("\"0 s\""),
            "AdvReachableTime: how long a neighbour counts as reachable; 0: nothing is said.",
        ),
        key(
            "retransmit_timer",
            Kind::Duration { min: 0, max: 3_600 },
            Absent::Default("\"0 s\""),
            "AdvRetransTimer: between two neighbour solicitations; 0: nothing is said.",
        ),
        key(
            "prefixes",
            Kind::Tables(&ADVERTISED_PREFIX),
            Absent::Means("none; over ISATAP, that of `[isatap]`"),
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
            Absent::Means("the addresses on `interface` that `[dns64]` listens at, port 53; `[]`: none"),
            "Recursive DNS servers (RFC 8106 §5.1).",
        ),
        key("dnssl", Kind::Texts, Absent::Means("none"), "DNS search list (RFC 8106 §5.2)."),
        key(
            "dns_lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: FOREVER },
            Absent::Means("three times `max_interval`"),
            "How long `rdnss` and `dnssl` hold.",
        ),
        key(
            "captive_portal",
            Kind::Text,
            Absent::Means("nothing is said"),
            "URI of the captive portal's API (RFC 8910 §2.3).",
        ),
        key(
            "pref64",
            Kind::Prefix6Or(&["auto", "none"]),
            Absent::Default("\"auto\""),
            "The NAT64 prefix that hosts are told (RFC 8781); `\"auto\"`: what `[dns64]` makes addresses with, else the prefix of the first `[nat64]`, else of the first `[siit]` with one.",
        ),
        key(
            "pref64_lifetime",
            Kind::Duration { min: 0, max: 65_528 },
            Absent::Means("three times `max_interval`"),
            "How long it holds; it is rounded up to whole 8 s (RFC 8781 §4.1).",
        ),
        key(
            "goodbye",
            Kind::Boolean,
            Absent::Default("true"),
            "Say at the end that this is a default router no more (RFC 4861 §6.2.5); `false` where another router takes over in its name.",
        ),
    ]],
};

/// `router_advertisement.prefixes`.
pub(in super::super) static ADVERTISED_PREFIX: Section = Section {
    name: "router_advertisement.prefixes",
    times: Times::Several,
    groups: &[&[
        key("prefix", Kind::Prefix6, Absent::Means("`from` is written"), "The prefix, as it is."),
        key(
            "from",
            Kind::Text,
            Absent::Means("`prefix` is written"),
            "The name of a 6to4 router or 6rd customer edge whose delegated prefix it is part of; it follows the IPv4 address.",
        ),
        key(
            "subnet",
            Kind::Integer { min: 0, max: u32::MAX as u64 },
            Absent::Default("0"),
            "The number of the /64 within that prefix.",
        ),
        key(
            "on_link",
            Kind::Boolean,
            Absent::Default("true"),
            "AdvOnLinkFlag: its addresses are on the link.",
        ),
        key(
            "autonomous",
            Kind::Boolean,
            Absent::Default("true"),
            "AdvAutonomousFlag: hosts make addresses of it (RFC 4862).",
        ),
        key(
            "valid_lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: FOREVER },
            Absent::Means("30 d; of one with `from`, 90 min (RFC 9096 §4)"),
            "AdvValidLifetime: how long addresses of it may be used.",
        ),
        key(
            "preferred_lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: FOREVER },
            Absent::Means("7 d; of one with `from`, 45 min (RFC 9096 §4); at most `valid_lifetime`"),
            "AdvPreferredLifetime: how long they are used for new connections.",
        ),
    ]],
};

/// `router_advertisement.routes`.
pub(in super::super) static ADVERTISED_ROUTE: Section = Section {
    name: "router_advertisement.routes",
    times: Times::Several,
    groups: &[&[
        key("prefix", Kind::Prefix6, Absent::Fault, "The destinations."),
        key(
            "preference",
            PREFERENCES,
            Absent::Default("\"medium\""),
            "Against other routers' (RFC 4191 §2.1).",
        ),
        key(
            "lifetime",
            Kind::DurationOr { word: "infinite", min: 0, max: 30 * DAY },
            Absent::Means("three times `max_interval`"),
            "How long it holds.",
        ),
    ]],
};
