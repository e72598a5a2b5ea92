//! State of the previous process: flows in the fast path, sessions handed over, and ports without a session. Such ports are quarantined:
//! remote hosts may still send to their former users.

use super::port_ledger::{Ledger, MOST_ADDRESSES};
use super::predecessor::Predecessor;
use super::start::Start;
use super::takeover;
use crate::config::Config;
use crate::show::plural;
use crate::worker::Clock;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::NatProtocol;
use sixway_link::BlockMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// RFC 6888 REQ-8: the least time before a port is given again.
const HOLD_DOWN: Duration = Duration::from_secs(120);

/// The ports in use when the previous process ended.
pub(super) struct PreviousPorts(Option<Ledger>);

/// Creates the ledger that this gateway's engines keep, and returns the previous one.
pub(super) fn begin_ledger(start: &Start<'_>, engines: &mut [Engine]) -> PreviousPorts {
    let path = file(start.directory, &start.config.gateway.name);
    let before = Ledger::open(&path);
    if !start.config.is_offloaded() {
        return PreviousPorts(before);
    }
    let addresses = start.config.pool_prefixes();
    match Ledger::create(&path, &addresses) {
        Ok(Some(ledger)) => {
            for engine in engines {
                engine.set_port_ledger(Box::new(ledger.clone()));
            }
        }
        Ok(None) => tracing::warn!(
            "the pools have more than {MOST_ADDRESSES} addresses: after a crash, ports are not quarantined and may be reused immediately"
        ),
        Err(error) => tracing::warn!(
            "after a crash, ports are not quarantined and may be reused immediately: {}: {error}",
            path.display()
        ),
    }
    PreviousPorts(before)
}

/// Restores the sessions handed over, then those that `restore` makes, and quarantines the other ports. Flows in the fast path must be sessions
/// again before.
/// How many sessions there were, and how many continue.
pub(super) fn settle(
    start: &Start<'_>,
    from: &Predecessor,
    given: PreviousPorts,
    engines: &mut [Engine],
    clock: Clock,
    restore: impl FnOnce(&mut [Engine]),
) -> (u64, u64) {
    let sessions = takeover::take_over(start, from, engines, clock);
    restore(engines);
    let Some(ledger) = given.0 else { return sessions };
    let mut kept = 0;
    ledger.each(|protocol, outside| {
        let until = clock.now() + hold_down(start.config, protocol);
        kept += u64::from(engines.iter_mut().any(|engine| engine.quarantine(protocol, outside, until)));
    });
    if kept > 0 {
        tracing::info!("{} quarantined: their sessions were lost", plural(kept, "port"));
    }
    sessions
}

/// Steers the port blocks of restored sessions to their workers.
pub(super) fn steer(engines: &mut [Engine], blocks: &BlockMap) {
    let Some(engine) = engines.first_mut() else { return };
    let Some(size) = engine.stateful().next().map(|translator| translator.ports_per_block()) else { return };
    for block in 0..=u16::MAX / size {
        let index = engine.steering_index(block * size);
        let Some((translator, _)) = engine.stateful_at(index) else { return };
        let owner = translator.worker_of_block(block * size);
        if let Err(error) = blocks.set(block.into(), owner.0) {
            tracing::warn!(
                "packets are not steered to the workers that own their port blocks: {error}; forwarding between workers costs throughput"
            );
            return;
        }
    }
}

/// Where the ledger is.
fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.ports"))
}

/// As long as a session that is silent, or closing.
fn hold_down(config: &Config, protocol: NatProtocol) -> Duration {
    let nat64 = config.nat64.iter().map(|nat64| &nat64.timeouts);
    let all = nat64.chain(config.nat44s().map(|nat44| &nat44.timeouts.with_ports));
    let all = all.chain(config.aftrs().map(|aftr| &aftr.timeouts));
    let times = all.map(|timeouts| match protocol {
        NatProtocol::Tcp => timeouts.tcp_closing,
        NatProtocol::Udp => timeouts.udp_default,
        NatProtocol::Icmp => timeouts.icmp_default,
    });
    times.max().unwrap_or_default().max(HOLD_DOWN)
}
