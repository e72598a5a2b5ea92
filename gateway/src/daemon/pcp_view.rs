//! The state of the PCP server, for other threads.

use crate::view::{CountedRow, PcpMappingRow, PcpRow};
use sixway_control::pcp::{Counts, Ignored, Internal, Mapping, ResultCode, Server, Transport};
use sixway_dataplane::Instant;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// Mappings that are shown.
const SHOWN: usize = 1_000;

/// The counter of [faults](super::pcp_faults).
const FAULTS: &str = "faults";

/// The state of the PCP server.
#[derive(Debug, Default)]
pub(super) struct PcpView(Mutex<PcpRow>);

impl PcpView {
    /// Updates the state, once a second.
    pub(super) fn note(
        &self,
        server: &Server,
        most: u32,
        listeners: (Vec<String>, Vec<String>),
        faults: u64,
        now: Instant,
    ) {
        let (mappings, ports, peers) = server.sizes();
        let row = PcpRow {
            interfaces: listeners.0,
            waits: listeners.1,
            epoch: server.epoch(now),
            mappings: mappings as u64,
            ports: ports.into(),
            max_mappings: most.into(),
            peers: peers as u64,
            table: server.mappings().take(SHOWN).map(|mapping| mapping_row(mapping, now)).collect(),
            ..counted(server.counts(), faults)
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = row;
    }

    /// The server does not run currently.
    pub(super) fn note_fault(&self, faults: u64, why: String) {
        let mut row = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (row.interfaces, row.waits) = (Vec::new(), vec![why]);
        if let Some(counter) = row.counters.iter_mut().find(|counter| counter.name == FAULTS) {
            counter.value = faults;
        }
    }

    /// The row of the admin API.
    pub(super) fn row(&self) -> PcpRow {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn counted(counts: &Counts, faults: u64) -> PcpRow {
    let row = |name: &str, help: &str, value| CountedRow { name: name.into(), help: help.into(), value };
    let result = |code: &ResultCode| row(code.name(), "RFC 6887 §7.4", counts.of(*code));
    let ignored = |reason: &Ignored| row(reason.name(), help(*reason), counts.ignored(*reason));
    PcpRow {
        results: ResultCode::ALL.iter().map(result).collect(),
        ignored: Ignored::ALL.iter().map(ignored).collect(),
        counters: vec![
            row("nat_pmp", "Requests by NAT-PMP that were answered.", counts.nat_pmp),
            row("expired", "Mappings that ended since they were not renewed.", counts.expired),
            row("announced", "Announcements and mapping updates that were sent.", counts.announced),
            row(FAULTS, "Restarts of the server after a fault.", faults),
        ],
        ..PcpRow::default()
    }
}

const fn help(reason: Ignored) -> &'static str {
    match reason {
        Ignored::Short => "Shorter than a header.",
        Ignored::NotRequest => "A response.",
        Ignored::NotInside => "From an address that no translator serves.",
        Ignored::Rate => "The subscriber was over its rate.",
        Ignored::TotalRate => "All subscribers together were over their rate.",
    }
}

fn mapping_row(mapping: &Mapping, now: Instant) -> PcpMappingRow {
    PcpMappingRow {
        protocol: match mapping.transport {
            Transport::Tcp => "tcp".into(),
            Transport::Udp => "udp".into(),
        },
        inside: endpoint(mapping.internal),
        outside: mapping.external.to_string(),
        ports: mapping.size,
        ends_in: mapping.remaining(now),
        by: if mapping.nonce.is_some() { "pcp".into() } else { "nat-pmp".into() },
        filters: mapping.filters.len(),
    }
}

fn endpoint(Internal { address, port }: Internal) -> String {
    let address: IpAddr = address;
    SocketAddr::new(address, port).to_string()
}
