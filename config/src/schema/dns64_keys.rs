//! The rows of the schema: DNS64.

use super::key::{Absent, Kind, NO_LIMIT, Section, Times, key};

const DAY: u64 = 86_400;
const TRUE: Absent = Absent::Default("true");
const FALSE: Absent = Absent::Default("false");

/// `[dns64]`.
pub(crate) static DNS64: Section = Section {
    name: "dns64",
    times: Times::Once,
    groups: &[
        &[
            key(
                "listen",
                Kind::Sockets(53),
                Absent::Means("set `listen_tls` or `listen_https`"),
                "Addresses of this host that accept DNS queries over UDP and TCP.",
            ),
            key(
                "listen_tls",
                Kind::Sockets(853),
                Absent::Means("none"),
                "Addresses that accept DNS queries over TLS (RFC 7858).",
            ),
            key(
                "listen_https",
                Kind::Sockets(443),
                Absent::Means("none"),
                "Addresses that accept DNS queries over HTTPS, at the path `/dns-query` (RFC 8484).",
            ),
            key(
                "certificate",
                Kind::Path,
                Absent::Means("no TLS, no HTTPS"),
                "The certificate for TLS and HTTPS, with its chain, in PEM format.",
            ),
            key(
                "key",
                Kind::Path,
                Absent::Means("no TLS, no HTTPS"),
                "The private key of the certificate, in PEM format.",
            ),
            key(
                "upstream",
                Kind::Tables(&UPSTREAM),
                Absent::FaultSuch("[{ address = \"192.0.2.53\" }]"),
                "The DNS servers that queries are forwarded to. `upstream = \"system\"`: those of `/etc/resolv.conf`, except this DNS64 itself; changes of the file are applied.",
            ),
        ],
        &[
            key(
                "prefix",
                Kind::Prefixes6,
                Absent::Means("the prefix of the first `[nat64]`, else of the first `[siit]` that has one"),
                "Pref64::/n of the synthesised AAAA records (RFC 6147 §5.2). With several prefixes, each A record gives one AAAA record for each prefix.",
            ),
            key(
                "translated_elsewhere",
                Kind::Boolean,
                FALSE,
                "Whether another machine translates these prefixes. `false`: a translator of this gateway must have them.",
            ),
            key(
                "translate_non_global",
                Kind::Boolean,
                Absent::Means("the setting of this gateway's translator; `false` without one"),
                "Whether to synthesise AAAA records with `64:ff9b::/96` from IPv4 addresses that are not global, against RFC 6052 §3.1.",
            ),
            key(
                "exclude",
                Kind::Prefixes6,
                Absent::Default("\"::ffff:0:0/96\""),
                "AAAA records within these prefixes are ignored (RFC 6147 §5.1.4).",
            ),
            key(
                "exclude_private",
                Kind::Boolean,
                FALSE,
                "Synthesise no AAAA records from private, shared, loopback and link-local IPv4 addresses, nor from this host's own: names of the Internet then cannot lead hosts into private networks (DNS rebinding). If names of your own networks have such addresses, do not set it; use `nat64.exclude_ipv4` for networks that hosts must not reach.",
            ),
            key(
                "synthesise_reserved",
                Kind::Boolean,
                FALSE,
                "Synthesise AAAA records also from reserved IPv4 addresses (240.0.0.0/4), for networks that use them; not with `64:ff9b::/96` unless `translate_non_global` is set.",
            ),
            key(
                "rule",
                Kind::Tables(&RULE),
                Absent::Means("none"),
                "Exceptions by client, name and address; the first rule that matches decides.",
            ),
            key(
                "allow",
                Kind::Networks,
                Absent::Means(
                    "the networks of the interfaces with the listening addresses, what `[router_advertisement]` gives to hosts there, `fe80::/10` and this host itself",
                ),
                "Clients that may query; queries of other clients are refused.",
            ),
            key(
                "synthesised_ttl",
                Kind::Choice(&["negative", "a"]),
                Absent::Default("\"negative\""),
                "TTL of synthesised AAAA records. `\"negative\"`: the lower of the A record's TTL and that of the negative AAAA answer (RFC 6147 §5.1.7). `\"a\"`: the A record's TTL, as in unbound and pdns-recursor. At most 10 minutes after a failed AAAA query.",
            ),
            key(
                "reverse",
                Kind::NameOr(&["cname", "ptr", "off"]),
                Absent::Default("\"cname\""),
                "PTR queries for addresses within the prefixes (RFC 6147 §5.3.1): answered with a CNAME to the name under `in-addr.arpa`, with the PTR records of that name, forwarded unchanged, or answered with one fixed name.",
            ),
            key(
                "reverse_ttl",
                Kind::Duration { min: 0, max: 7 * DAY },
                Absent::Default("\"10 min\""),
                "TTL of the CNAME or of the fixed name.",
            ),
            key(
                "ipv4only_arpa",
                Kind::Choice(&["local", "upstream"]),
                Absent::Default("\"local\""),
                "Who answers queries for `ipv4only.arpa`, with which hosts discover the prefix (RFC 7050, RFC 8880 §7.1).",
            ),
            key(
                "special_names",
                Kind::Choice(&["local", "upstream"]),
                Absent::Default("\"local\""),
                "Who answers queries for names of special use (`test`, `local`, `alt`, `home.arpa`, `resolver.arpa`) and for the reverse zones of addresses that are not global (RFC 6761, RFC 6303). `\"local\"`: they do not exist, except names that an upstream has in its `names` or that are in `dnssec.insecure`.",
            ),
            key(
                "designated_name",
                Kind::Text,
                Absent::Means("no announcement"),
                "The name in the certificate. With it, hosts that query `_dns.resolver.arpa` find `listen_tls` and `listen_https` (RFC 9462). The certificate must also have the addresses of `listen`.",
            ),
            key(
                "cookie_secret",
                Kind::Path,
                Absent::Means("random, for each thread"),
                "File with the secrets of DNS cookies (RFC 7873), 32 hexadecimal digits in each line: the first is used for new cookies, all are accepted. Servers with the same address need the same file.",
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
                "Query A at the same time as AAAA (RFC 6147 §5.1.8). Not used while answers are validated.",
            ),
            key("dnssec", Kind::Table(&DNSSEC), Absent::Means("defaults"), "DNSSEC."),
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
        "Maximum size of an answer over UDP, in octets. Larger answers are truncated, and the client retries over TCP (RFC 6891 §6.2.3).",
    ),
    key(
        "cache",
        Kind::Size { min: 1 << 20, max: 64 << 30 },
        Absent::Default("\"64 MiB\""),
        "Memory of the cache. When it is full, new answers that were not queried again are evicted first.",
    ),
    key(
        "threads",
        Kind::Integer { min: 1, max: 64 },
        Absent::Default("1"),
        "Number of DNS64 threads; the cache, `waiting` and `upstream_queries` are divided between them.",
    ),
    key(
        "max_ttl",
        Kind::Duration { min: 1, max: 7 * DAY },
        Absent::Default("\"1 d\""),
        "Maximum TTL of a cached record; higher TTLs are lowered to it.",
    ),
    key(
        "max_negative_ttl",
        Kind::Duration { min: 1, max: DAY },
        Absent::Default("\"3 h\""),
        "Maximum TTL of a cached negative answer (RFC 2308 §5).",
    ),
    key(
        "stale",
        Kind::DurationOr { word: "off", min: 30, max: 30 * DAY },
        Absent::Default("\"1 d\""),
        "How long expired records are served when no upstream answers (RFC 8767).",
    ),
    key(
        "prefetch",
        Kind::Boolean,
        TRUE,
        "Refresh a cached answer shortly before it expires, if it was queried.",
    ),
    key(
        "waiting",
        Kind::Integer { min: 16, max: 1_000_000 },
        Absent::Default("10000"),
        "Maximum number of queries that wait for upstreams, shared out among clients; a query without a share gets a stale answer or SERVFAIL.",
    ),
    key(
        "upstream_queries",
        Kind::Integer { min: 64, max: 65_536 },
        Absent::Default("8192"),
        "Maximum number of names that are queried at upstreams at the same time. A client may use as many as are left free for others. Each needs up to two file descriptors.",
    ),
    key(
        "client_prefix_length",
        Kind::Integer { min: 32, max: 64 },
        Absent::Default("64"),
        "IPv6 clients whose addresses have this number of first bits in common share one client's part of every bound. A provider that assigns a /56 to each customer sets 56.",
    ),
    key(
        "queries_per_second",
        Kind::Integer { min: 1, max: 1_000_000 },
        Absent::Means(NO_LIMIT),
        "Maximum queries per second of one client (an IPv4 address, or an IPv6 prefix of `client_prefix_length`); further queries are refused.",
    ),
    key(
        "burst",
        Kind::Integer { min: 1, max: 1_000_000 },
        Absent::Means("twice `queries_per_second`"),
        "Maximum burst of queries of one client.",
    ),
    key(
        "connections",
        Kind::Integer { min: 16, max: 1_000_000 },
        Absent::Default("4096"),
        "Maximum number of client connections over TCP, TLS and HTTPS together. When all are in use, the longest idle connection of the client with the most connections is closed for a client without one.",
    ),
    key(
        "connections_per_client",
        Kind::Integer { min: 1, max: 1_000_000 },
        Absent::Means("as many as are free"),
        "Maximum number of connections of one client.",
    ),
    key(
        "idle_timeout",
        Kind::Duration { min: 2, max: 600 },
        Absent::Default("\"30 s\""),
        "A connection without a query is closed after this time (RFC 7766 §6.2.3); after 10 s at most if it never had one.",
    ),
    key(
        "handshake_timeout",
        Kind::Duration { min: 1, max: 30 },
        Absent::Default("\"5 s\""),
        "A connection that has not agreed on TLS is closed after this time.",
    ),
    key(
        "threads_by",
        Kind::Choice(&["client", "flow"]),
        Absent::Default("\"client\""),
        "With several threads, whether one thread has all queries of a client, which makes its rate and its shares exact, or the queries of each UDP flow. `\"flow\"` is for few clients with many queries, such as forwarders.",
    ),
    key(
        "hosts",
        Kind::Path,
        Absent::Means("none"),
        "A file with names and addresses of this network, in the format of `/etc/hosts`, with at most 100,000 of them. It is read again when it changes.",
    ),
    key(
        "query_log",
        Kind::Boolean,
        FALSE,
        "Log each query: client, name, type and outcome. The log contains personal data.",
    ),
];

/// `dns64.upstream`.
pub(crate) static UPSTREAM: Section = Section {
    name: "dns64.upstream",
    times: Times::Several,
    groups: &[&[
        key(
            "address",
            Kind::Server,
            Absent::Fault,
            "Address of the server. The default port is 53, with TLS 853, with HTTPS 443.",
        ),
        key(
            "transport",
            Kind::Choice(&["udp", "tcp", "tls", "https"]),
            Absent::Default("\"udp\""),
            "Transport of the queries. With UDP, truncated replies are repeated over TCP.",
        ),
        key(
            "name",
            Kind::Text,
            Absent::Means("required with TLS and HTTPS"),
            "The name that the server's certificate must have.",
        ),
        key(
            "path",
            Kind::Text,
            Absent::Means("`/dns-query`, with HTTPS"),
            "Path of the server's URI (RFC 8484 §4.1).",
        ),
        key(
            "ca",
            Kind::Path,
            Absent::Means("the system's"),
            "Certificates of the authorities that are trusted for this server, in PEM format.",
        ),
        key(
            "through",
            Kind::Prefix6Or(&["nat64"]),
            Absent::Means("queried directly"),
            "Query an IPv4 upstream over IPv6, through the translator with this prefix. `\"nat64\"`: the first `[nat64]`, else the prefix of `[dns64]`.",
        ),
        key(
            "names",
            Kind::Texts,
            Absent::Means("all names that no other upstream has"),
            "Use this upstream only for these names and names below them; the longest match decides.",
        ),
    ]],
};

/// `dns64.rule`.
pub(crate) static RULE: Section = Section {
    name: "dns64.rule",
    times: Times::Several,
    groups: &[&[
        key("clients", Kind::Networks, Absent::Means("all"), "The rule applies to these clients."),
        key(
            "over",
            Kind::Choice(&["ipv4", "ipv6"]),
            Absent::Means("either"),
            "The rule applies to queries that come over this version of IP. A client that queries over IPv4 has IPv4 and needs no synthesised AAAA records.",
        ),
        key(
            "names",
            Kind::Texts,
            Absent::Means("all"),
            "The rule applies to these names and names below them.",
        ),
        key(
            "addresses",
            Kind::Prefixes4,
            Absent::Means("all"),
            "The rule applies to A records with these addresses; each record is checked separately.",
        ),
        key(
            "synthesis",
            Kind::Choice(&["normal", "never", "always"]),
            Absent::Default("\"normal\""),
            "When to synthesise AAAA records: if a name has no AAAA record, never, or always, ignoring existing AAAA records.",
        ),
        key("prefix", Kind::Prefixes6, Absent::Means("`dns64.prefix`"), "The prefixes to synthesise with."),
        key(
            "a_records",
            Kind::Choice(&["pass", "hide"]),
            Absent::Default("\"pass\""),
            "Whether clients get A records; `\"hide\"` for clients that must use IPv6 only.",
        ),
    ]],
};

/// `[dns64.dnssec]`.
pub(crate) static DNSSEC: Section = Section {
    name: "dns64.dnssec",
    times: Times::Once,
    groups: &[&[
        key(
            "validate",
            Kind::Boolean,
            FALSE,
            "DNSSEC-validate answers here (RFC 6147 §5.5). The upstreams must return DNSSEC records.",
        ),
        key(
            "trust_anchor",
            Kind::Path,
            Absent::Means("the root zone's keys of 2017 and 2024"),
            "File with the initial trust anchors, as DS or DNSKEY records.",
        ),
        key(
            "trust_anchor_state",
            Kind::PathOr("off"),
            Absent::Means("`/var/lib/sixway/NAME.trust-anchor`"),
            "File with the trust anchors that RFC 5011 key rollovers have added; `\"off\"` disables RFC 5011. NAME is `gateway.name`.",
        ),
        key(
            "insecure",
            Kind::Texts,
            Absent::Means("none"),
            "Negative trust anchors (RFC 7646): these names and names below them are not validated.",
        ),
        key(
            "trust_upstream_ad",
            Kind::Boolean,
            FALSE,
            "Trust the AD bit of upstreams. Only for upstreams with a secure path (RFC 6840 §5.8).",
        ),
        key(
            "checking_disabled",
            Kind::Choice(&["synthesise", "pass_on"]),
            Absent::Default("\"synthesise\""),
            "Answers to clients with CD=1 and DO=0: AAAA records synthesised without validation, or the upstream's answer unchanged.",
        ),
        key(
            "dnssec_ok",
            Kind::Choice(&["synthesise", "pass_on"]),
            Absent::Default("\"synthesise\""),
            "Answers to clients with CD=0 and DO=1: synthesised AAAA records, or, if the answer is secure, the upstream's answer with its proofs (RFC 6147 §5.5).",
        ),
        key(
            "validating_clients",
            Kind::Choice(&["untouched", "unsigned"]),
            Absent::Default("\"untouched\""),
            "Answers to clients with CD=1 and DO=1: the upstream's answer, or, for names that are proven to be unsigned, synthesised AAAA records too, against RFC 6147 §5.5: for validating resolvers behind this one. Needs `validate`.",
        ),
        key(
            "ad_without_do",
            Kind::Boolean,
            FALSE,
            "Set the AD bit for clients that set AD but not DO (RFC 6840 §5.8), against RFC 6147 §5.5.",
        ),
    ]],
};
