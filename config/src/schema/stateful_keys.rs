//! Keys that `[nat64]` and `[nat44]` both have, with words or a kind of their own.

use super::key::{Absent, Key, Kind, Section, key};

/// Remote addresses of a stateful translator that have no sessions.
pub(super) const fn exclude_ipv4(meaning: &'static str) -> Key {
    key("exclude_ipv4", Kind::Prefixes4, Absent::Means("none"), meaning)
}

/// The host's own addresses that inside hosts of a stateful translator may reach.
pub(super) const fn allow_own(meaning: &'static str) -> Key {
    key("allow_own", Kind::Prefixes4, Absent::Means("none"), meaning)
}

/// The filtering of a stateful translator.
pub(super) const fn filtering(meaning: &'static str) -> Key {
    let behaviours =
        Kind::Choice(&["endpoint-independent", "address-dependent", "address-and-port-dependent"]);
    key("filtering", behaviours, Absent::Default("\"endpoint-independent\""), meaning)
}

/// The static bindings of a stateful translator.
pub(super) const fn static_bindings(rows: &'static Section) -> Key {
    key("static", Kind::Tables(rows), Absent::Means("none"), "Static bindings, for servers inside.")
}

/// Subscribers without limits.
pub(super) const fn exempt_subscribers(prefixes: Kind) -> Key {
    key(
        "exempt_subscribers",
        prefixes,
        Absent::Means("none"),
        "Inside prefixes of subscribers without limits.",
    )
}

/// The timeouts of a stateful translator.
pub(super) const fn timeouts(section: &'static Section) -> Key {
    key("timeouts", Kind::Table(section), Absent::Means("defaults"), "Session timeouts.")
}

/// Timeouts for certain remote ports.
pub(super) const fn port_timeouts(rows: &'static Section) -> Key {
    key(
        "port",
        Kind::Tables(rows),
        Absent::Means("none"),
        "Other timeouts for sessions with specific remote ports; the first matching row applies (RFC 4787 REQ-5 a).",
    )
}

/// Whether control connections of FTP are read.
pub(super) const fn ftp_alg(help: &'static str) -> Key {
    key("ftp_alg", Kind::Boolean, Absent::Default("false"), help)
}
