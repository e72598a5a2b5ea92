//! The rows of the schema: DNS64.

use super::{Absent, Kind, Section, Times, key};

const DAY: u64 = 86_400;
const TRUE: Absent = Absent::Default("true");
const FALSE: Absent = Absent::Default("false");

/// `[dns64]`.
pub(in super::super) static DNS64: Section = Section {
    name: "dns64",
    times: Times::Once,
    groups: &[
        &[
            key(
                "listen",
                Kind::Sockets(53),
                Absent::Means("`listen_tls` or `listen_https` is written"),
                "Addresses of this host where clients ask, by UDP and TCP.",
            ),
            key(
                "listen_tls",
                Kind::Sockets(853),
                Absent::Means("none"),
                "Addresses where they ask by TLS (RFC 7858).",
            ),
            key(
                "listen_https",
                Kind::Sockets(443),
                Absent::Means("none"),
                "Addresses where they ask by HTTPS, at the path `/dns-query` (RFC 8484).",
            ),
            key(
                "certificate",
                Kind::Path,
                Absent::Means("neither TLS nor HTTPS is served"),
                "The certificate for both, with its chain, as PEM.",
            ),
            key(
                "key",
                Kind::Path,
                Absent::Means("neither TLS nor HTTPS is served"),
                "Its private key, as PEM.",
            ),
            key(
                "upstream",
                Kind::Tables(&UPSTREAM),
                Absent::FaultSuch("[{ address = \"192.0.2.53\" }]"),
                "The servers that questions go to.",
            ),
        ],
        &[
            key(
                "prefix",
                Kind::Prefixes6,
                Absent::Means("that of the first `[nat64]`, else of the first `[siit]` with one"),
                "Pref64::/n of the AAAA records that are made (RFC 6147 §5.2). With several, each A record becomes as many AAAA records.",
            ),
            key(
                "translated_elsewhere",
                Kind::Boolean,
                FALSE,
                "Whether another box translates the prefixes; else a translator here must have them.",
            ),
            key(
                "translate_non_global",
                Kind::Boolean,
                Absent::Means("as the translator here has it; `false` if there is none"),
                "Whether AAAA records with `64:ff9b::/96` are made of IPv4 addresses that are not global, against RFC 6052 §3.1.",
            ),
            key(
                "exclude",
                Kind::Prefixes6,
                Absent::Default("\"::ffff:0:0/96\""),
                "AAAA records within these count as absent (RFC 6147 §5.1.4).",
            ),
            key(
                "rule",
                Kind::Tables(&RULE),
                Absent::Means("none"),
                "Exceptions for clients, names and addresses; the first that matches decides.",
            ),
            key(
                "allow",
                Kind::Networks,
                Absent::Means(
                    "the networks of the interfaces with the listening addresses, what `[router_advertisement]` gives to hosts there, `fe80::/10` and this host itself",
                ),
                "Clients that may ask; others are refused.",
            ),
            key(
                "synthesised_ttl",
                Kind::Choice(&["negative", "a"]),
                Absent::Default("\"negative\""),
                "TTL of the AAAA records that are made: the least of the A record's and that of the answer that there is no AAAA record (RFC 6147 §5.1.7), or the A record's, as unbound and pdns-recursor have it. After a failure of AAAA it is 10 minutes at most.",
            ),
            key(
                "reverse",
                Kind::NameOr(&["cname", "ptr", "off"]),
                Absent::Default("\"cname\""),
                "PTR of addresses within the prefixes (RFC 6147 §5.3.1): a CNAME to the name under `in-addr.arpa`, that name's records themselves, nothing special, or this name for all of them.",
            ),
            key(
                "reverse_ttl",
                Kind::Duration { min: 0, max: 7 * DAY },
                Absent::Default("\"10 min\""),
                "TTL of the CNAME, or of the name.",
            ),
            key(
                "ipv4only_arpa",
                Kind::Choice(&["local", "upstream"]),
                Absent::Default("\"local\""),
                "Who answers for `ipv4only.arpa`, by which hosts find the prefix (RFC 7050, RFC 8880 §7.1).",
            ),
            key(
                "minimal_any",
                Kind::Boolean,
                TRUE,
                "Answer queries of type ANY with one record (RFC 8482 §4.2).",
            ),
            key(
                "parallel",
                Kind::Boolean,
                TRUE,
                "Ask for A at the same time as for AAAA (RFC 6147 §5.1.8); never when answers are validated.",
            ),
            key("dnssec", Kind::Table(&DNSSEC), Absent::Means("the defaults of each"), "DNSSEC."),
        ],
        BOUNDS,
    ],
};

/// The bounds of `[dns64]`.
const BOUNDS: &[super::Key] = &[
    key(
        "udp_payload",
        Kind::Integer { min: 512, max: 4_096 },
        Absent::Default("1232"),
        "The largest answer by UDP, in octets; larger ones are truncated, and the client asks by TCP (RFC 6891 §6.2.3).",
    ),
    key(
        "cache",
        Kind::Size { min: 1 << 20, max: 64 << 30 },
        Absent::Default("\"64 MiB\""),
        "Memory of the cache. When full, what was not asked for lately makes way.",
    ),
    key(
        "threads",
        Kind::Integer { min: 1, max: 64 },
        Absent::Default("1"),
        "Threads that answer; each has its part of the cache.",
    ),
    key(
        "max_ttl",
        Kind::Duration { min: 1, max: 7 * DAY },
        Absent::Default("\"1 d\""),
        "The longest TTL that is believed.",
    ),
    key(
        "max_negative_ttl",
        Kind::Duration { min: 1, max: DAY },
        Absent::Default("\"3 h\""),
        "The longest that the absence of a name or record is believed (RFC 2308 §5).",
    ),
    key(
        "stale",
        Kind::DurationOr { word: "off", min: 30, max: 30 * DAY },
        Absent::Default("\"1 d\""),
        "So long after their end records are given out when no upstream answers (RFC 8767).",
    ),
    key("prefetch", Kind::Boolean, TRUE, "Ask again for what was asked for shortly before its end."),
    key(
        "waiting",
        Kind::Integer { min: 16, max: 1_000_000 },
        Absent::Default("10000"),
        "Queries that may wait for upstreams; further ones are answered with SERVFAIL.",
    ),
    key(
        "queries_per_second",
        Kind::Integer { min: 1, max: 1_000_000 },
        Absent::Means("no limit"),
        "Queries of one client, an IPv6 /64 or an IPv4 address; further ones are refused.",
    ),
    key(
        "burst",
        Kind::Integer { min: 1, max: 1_000_000 },
        Absent::Means("twice `queries_per_second`"),
        "So many of them may come at once.",
    ),
    key(
        "query_log",
        Kind::Boolean,
        FALSE,
        "Log each query: client, name, type and outcome. It shows what people look at.",
    ),
];

/// `dns64.upstream`.
pub(in super::super) static UPSTREAM: Section = Section {
    name: "dns64.upstream",
    times: Times::Several,
    groups: &[&[
        key(
            "address",
            Kind::Server,
            Absent::Fault,
            "Where it is; the port is 53, with TLS 853 and with HTTPS 443, unless it is written.",
        ),
        key(
            "transport",
            Kind::Choice(&["udp", "tcp", "tls", "https"]),
            Absent::Default("\"udp\""),
            "How it is asked. By UDP, truncated replies are fetched by TCP.",
        ),
        key(
            "name",
            Kind::Text,
            Absent::Means("`transport` is neither `\"tls\"` nor `\"https\"`"),
            "The name that its certificate must have.",
        ),
        key(
            "path",
            Kind::Text,
            Absent::Means("`/dns-query`, with HTTPS"),
            "The path of its URI (RFC 8484 §4.1).",
        ),
        key(
            "ca",
            Kind::Path,
            Absent::Means("the system's"),
            "Certificates of the authorities that are trusted to vouch for it, as PEM.",
        ),
        key(
            "through",
            Kind::Prefix6Or(&["nat64"]),
            Absent::Means("it is asked at its own address"),
            "An IPv4 upstream is asked by IPv6, through the translator of this prefix; `\"nat64\"`: the first `[nat64]`, else the prefix of `[dns64]`.",
        ),
        key(
            "names",
            Kind::Texts,
            Absent::Means("all that no other upstream has"),
            "It is asked about these names and those below them only; the longest that matches decides.",
        ),
    ]],
};

/// `dns64.rule`.
pub(in super::super) static RULE: Section = Section {
    name: "dns64.rule",
    times: Times::Several,
    groups: &[&[
        key("clients", Kind::Networks, Absent::Means("all"), "It holds for these clients."),
        key("names", Kind::Texts, Absent::Means("all"), "It holds for these names and those below them."),
        key(
            "addresses",
            Kind::Prefixes4,
            Absent::Means("all"),
            "It holds for A records with these addresses; it is judged for each record.",
        ),
        key(
            "synthesis",
            Kind::Choice(&["normal", "never", "always"]),
            Absent::Default("\"normal\""),
            "Whether AAAA records are made: where there are none, never, or always, whatever AAAA records there are.",
        ),
        key("prefix", Kind::Prefixes6, Absent::Means("`dns64.prefix`"), "They are made with these prefixes."),
        key(
            "a_records",
            Kind::Choice(&["pass", "hide"]),
            Absent::Default("\"pass\""),
            "Whether A records are given out; `\"hide\"` for clients that shall use IPv6 only.",
        ),
    ]],
};

/// `[dns64.dnssec]`.
pub(in super::super) static DNSSEC: Section = Section {
    name: "dns64.dnssec",
    times: Times::Once,
    groups: &[&[
        key(
            "validate",
            Kind::Boolean,
            FALSE,
            "Validate answers here (RFC 6147 §5.5). The upstreams must pass on DNSSEC records.",
        ),
        key(
            "trust_anchor",
            Kind::Path,
            Absent::Means("the root's keys of 2017 and 2024"),
            "A file with the DS or DNSKEY records that are believed at first.",
        ),
        key(
            "trust_anchor_state",
            Kind::PathOr("off"),
            Absent::Means("`/var/lib/sixway/NAME.trust-anchor`"),
            "The file that keeps the keys that have come since (RFC 5011); `\"off\"`: they are not followed. NAME is `gateway.name`.",
        ),
        key(
            "insecure",
            Kind::Texts,
            Absent::Means("none"),
            "Names at and below which nothing is validated: negative trust anchors (RFC 7646).",
        ),
        key(
            "trust_upstream_ad",
            Kind::Boolean,
            FALSE,
            "Believe the AD bit of upstreams; only where the way to them is safe (RFC 6840 §5.8).",
        ),
        key(
            "checking_disabled",
            Kind::Choice(&["synthesise", "pass_on"]),
            Absent::Default("\"synthesise\""),
            "What clients with CD=1 and DO=0 get: AAAA records made of what was not validated, or what the upstream said.",
        ),
        key(
            "dnssec_ok",
            Kind::Choice(&["synthesise", "pass_on"]),
            Absent::Default("\"synthesise\""),
            "What clients with CD=0 and DO=1 get: AAAA records, or what the upstream said with its proofs, where it is secure (RFC 6147 §5.5).",
        ),
        key(
            "ad_without_do",
            Kind::Boolean,
            FALSE,
            "Set the AD bit for clients that set AD and not DO (RFC 6840 §5.8), against RFC 6147 §5.5.",
        ),
    ]],
};
