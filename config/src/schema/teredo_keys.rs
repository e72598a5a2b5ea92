//! The keys of Teredo's relay.

use super::key::{Absent, Kind, Section, Times, key};
use super::tunnel_keys::LOCAL;

/// `[teredo_relay]`.
pub(crate) static TEREDO_RELAY: Section = Section {
    name: "teredo_relay",
    times: Times::Several,
    groups: &[
        &[key(
            "name",
            Kind::Text,
            Absent::Means("`teredo_relay`; with several sections `teredo_relay-1`, `teredo_relay-2`, …"),
            "Name in `sixway show` and in metrics.",
        )],
        LOCAL,
        &[
            key(
                "port",
                Kind::Integer { min: 1, max: 65_535 },
                Absent::Default("3544"),
                "UDP port of the relay. Clients learn it from its bubbles; no other program of this host may have it.",
            ),
            key(
                "ipv6_address",
                Kind::Address6,
                Absent::FaultSuch("\"2001:db8::1\""),
                "Source of the bubbles that ask a client for an answer: an IPv6 address that is routed to this host (RFC 4380 §5.4.1).",
            ),
            key(
                "serves",
                Kind::Prefixes6,
                Absent::Means("all except Teredo clients"),
                "IPv6 networks that clients can reach through this relay. Packets from clients to other networks are dropped (RFC 4380 §5.4.2).",
            ),
            key(
                "max_peers",
                Kind::Integer { min: 1, max: 1_000_000 },
                Absent::Default("100000"),
                "Maximum number of clients in the table. When it is full, clients that did not answer, or are idle, are removed first.",
            ),
        ],
    ],
};
