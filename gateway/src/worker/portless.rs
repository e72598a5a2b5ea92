//! Sessions and static bindings of protocols without ports, as entries.

use super::translator::{BindingEntry, SessionEntry};
use crate::admin::Filter;
use sixway_dataplane::Instant;
use sixway_dataplane::direction::Direction;
use sixway_dataplane::stateful::WithoutPorts;
use sixway_wire::{Endpoint4, Endpoint6};

/// Adds the sessions of `slots` places from `slot` on. Returns where to continue; `None` at the end.
pub(super) fn sessions(
    of: &dyn WithoutPorts,
    (mechanism, filter): (u16, &Filter),
    (slot, slots, now): (u32, u32, Instant),
    rows: &mut Vec<SessionEntry>,
) -> Option<u32> {
    let mut found = Vec::new();
    let next = of.sessions(slot, slots, now, &mut found);
    let both = |counts: [u64; 2]| Some((counts[Direction::Out as usize], counts[Direction::In as usize]));
    let entries = found.iter().map(|row| SessionEntry {
        mechanism,
        protocol: row.protocol,
        softwire: None,
        inside: Some(Endpoint6::new(row.inside.to_ipv6_mapped(), 0)),
        outside: Endpoint4::new(row.outside, 0),
        remote: Endpoint4::new(row.remote, 0),
        state: "open",
        idle: Some(row.idle),
        ends_in: row.ends_in,
        packets: both(row.packets),
        octets: both(row.octets),
        offloaded: false,
    });
    rows.extend(
        entries.filter(|row| filter.admits_session(row.protocol, row.inside, row.outside, row.remote)),
    );
    next
}

/// The same for static bindings.
pub(super) fn bindings(
    of: &dyn WithoutPorts,
    (mechanism, filter): (u16, &Filter),
    (slot, slots): (u32, u32),
    rows: &mut Vec<BindingEntry>,
) -> Option<u32> {
    let mut found = Vec::new();
    let next = of.bindings(slot, slots, &mut found);
    let admitted = found.iter().filter_map(|row| {
        let inside = Endpoint6::new(row.inside.to_ipv6_mapped(), 0);
        let outside = Endpoint4::new(row.outside, 0);
        filter.admits_binding(row.protocol, inside, outside).then_some(BindingEntry {
            mechanism,
            protocol: Some(row.protocol),
            softwire: None,
            inside,
            outside,
            kind: "static",
            sessions: 0,
            server: None,
        })
    });
    rows.extend(admitted);
    next
}
