//! The keys of `[log]`.

use super::key::{Absent, Kind, Section, Times, key};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// `[log]`.
pub(crate) static LOG: Section = Section {
    name: "log",
    times: Times::Once,
    groups: &[&[
        key(
            "events",
            Kind::Choices(&["bindings", "each-binding", "sessions", "destinations", "limits"]),
            Absent::Means("`[\"bindings\", \"limits\"]`"),
            "What is logged: bindings (port blocks instead, where subscribers have such: `block_size`), each binding also in port blocks, sessions (without the remote endpoint), destinations (sessions with it; needs `\"sessions\"`; see RFC 6888 REQ-12), and exhausted limits and pools.",
        ),
        key("file", Kind::Table(&LOG_FILE), Absent::Means("none"), "A file of JSON lines."),
        key(
            "syslog",
            Kind::Tables(&LOG_SYSLOG),
            Absent::Means("none"),
            "Syslog servers (RFC 5424), 8 at most.",
        ),
        key(
            "ipfix",
            Kind::Tables(&LOG_IPFIX),
            Absent::Means("none"),
            "IPFIX collectors (RFC 7011, RFC 8158), 8 at most.",
        ),
        key(
            "spool",
            Kind::Path,
            Absent::Default("\"/var/lib/sixway/spool\""),
            "Directory of the spool files: events for servers and collectors that cannot be reached.",
        ),
        key(
            "spool_size",
            Kind::Size { min: MIB, max: 16 * GIB },
            Absent::Default("\"64 MiB\""),
            "Maximum size of the spool of each server or collector; further events are lost for it, counted, and the number is logged.",
        ),
    ]],
};

/// `[log.file]`.
pub(crate) static LOG_FILE: Section = Section {
    name: "log.file",
    times: Times::Once,
    groups: &[&[
        key(
            "path",
            Kind::Path,
            Absent::FaultSuch("\"/var/log/sixway/events.jsonl\""),
            "The file. Full ones are renamed: a dot and a number are appended. `sixway nat who` reads them all.",
        ),
        key(
            "mode",
            Kind::Text,
            Absent::Default("\"0640\""),
            "Permissions of the files, in octal; without write permission for others.",
        ),
        key("owner", Kind::Text, Absent::Means("the process's user"), "Owner of the files."),
        key("group", Kind::Text, Absent::Means("the process's group"), "Group of the files."),
        key(
            "rotate_size",
            Kind::Size { min: MIB, max: GIB },
            Absent::Default("\"128 MiB\""),
            "Size at which a file is full, 700,000 events or so.",
        ),
        key(
            "rotate_keep",
            Kind::Integer { min: 1, max: 100_000 },
            Absent::Default("100"),
            "Full files that are kept; the oldest is removed.",
        ),
    ]],
};

/// `[[log.syslog]]`.
pub(crate) static LOG_SYSLOG: Section = Section {
    name: "log.syslog",
    times: Times::Several,
    groups: &[&[
        key(
            "server",
            Kind::Server,
            Absent::Fault,
            "Address of the server; the usual port is 514, that of TLS 6514.",
        ),
        key(
            "transport",
            Kind::Choice(&["udp", "tcp", "tls"]),
            Absent::Default("\"udp\""),
            "UDP (RFC 5426), TCP with counted octets (RFC 6587 §3.4.1), or TLS (RFC 5425).",
        ),
        key(
            "name",
            Kind::Text,
            Absent::Means("required with TLS"),
            "The name that the server's certificate must have.",
        ),
        key(
            "ca",
            Kind::Path,
            Absent::Means("the system's"),
            "PEM file with certificates of trusted authorities, for TLS.",
        ),
        key(
            "facility",
            Kind::Choice(&[
                "daemon", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
            ]),
            Absent::Default("\"local0\""),
            "Facility of the messages (RFC 5424 §6.2.1); their severity is informational, or warning for lost events and exhausted resources.",
        ),
    ]],
};

/// `[[log.ipfix]]`.
pub(crate) static LOG_IPFIX: Section = Section {
    name: "log.ipfix",
    times: Times::Several,
    groups: &[&[
        key("collector", Kind::Server, Absent::Fault, "Address of the collector; the usual port is 4739."),
        key(
            "transport",
            Kind::Choice(&["udp", "tcp"]),
            Absent::Default("\"udp\""),
            "UDP (RFC 7011 §10.3) or TCP (§10.4).",
        ),
        key(
            "observation_domain",
            Kind::Integer { min: 0, max: 0xffff_ffff },
            Absent::Default("1"),
            "Observation Domain ID of the messages (RFC 7011 §3.1).",
        ),
    ]],
};
