//! The keys of `[[realm]]`.

use super::key::{Absent, Kind, Section, Times, key};
use super::keys::SUBSCRIBER_KEYS;
use super::nat44_keys::NAT44_KEYS;

/// `[[realm]]`.
pub(crate) static REALM: Section = Section {
    name: "realm",
    times: Times::Several,
    groups: &[
        &[
            key(
                "name",
                Kind::Text,
                Absent::Fault,
                "Name in `sixway show`, in metrics and in the event log. Sessions continue after a reload or takeover in the realm of the same name.",
            ),
            key(
                "inside",
                Kind::Prefixes4,
                Absent::FaultSuch("[\"10.0.0.0/8\"]"),
                "Prefixes of the inside hosts. Other realms, and `[nat44]`, may have the same.",
            ),
            key(
                "interfaces",
                Kind::Texts,
                Absent::Means("required with `table`; with `vrf`, those of the VRF"),
                "Interfaces on which packets of inside hosts arrive: each belongs to one realm, and all packets that arrive there are routed by `table`.",
            ),
            key(
                "table",
                Kind::Integer { min: 1, max: 4_294_967_294 },
                Absent::Means("required without `vrf`"),
                "Number of the routing table of the realm, with your routes to the inside hosts. Sixway adds a default route into the device of the realm, and policy rules for `interfaces` and for this device.",
            ),
            key(
                "vrf",
                Kind::Text,
                Absent::Means("none"),
                "Instead of `table` and `interfaces`: name of a VRF of the kernel, with the interfaces of the inside hosts and your routes to them. The device of the realm is put into it, and its table gets a default route into the device. You create the VRF; Sixway does not create or remove it.",
            ),
            key(
                "device",
                Kind::Text,
                Absent::Means("`tun.name`, a hyphen and `name`"),
                "Name of the TUN device of the realm; at most 15 octets.",
            ),
            key(
                "except",
                Kind::Prefixes4,
                Absent::Means("none"),
                "Destinations that are not translated: `table` needs routes to them.",
            ),
        ],
        NAT44_KEYS,
        SUBSCRIBER_KEYS,
    ],
};
