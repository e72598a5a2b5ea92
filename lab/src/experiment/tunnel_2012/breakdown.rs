//! The parts of the tunnel's overhead, and the cost of its maintenance: the authors left both for later.

use crate::device::find;
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, NATIVE6, Renewal, Target};
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::measure::Capture;
use crate::results::Unit;
use std::time::{Duration, Instant};

/// Background of a loaded path, in bits a second, and octets of its packets.
const LOAD: (f64, usize) = (20e6, 1_400);

/// Packets a second of the stream in one direction: a device that is not loaded processes each by itself.
const PACED: f64 = 1_000.0;

/// Where the time of a round trip through the tunnel goes that is not native IPv6's: CPU time of the routers' programs (encapsulation, decapsulation, system
/// calls), crossing (waiting for these programs), and queueing (what background adds).
pub fn breakdown(at_work: &AtWork, data: usize, count: u16, sheet: &mut Sheet) -> Result<()> {
    let tunnel = at_work.way().target();
    for target in [tunnel, NATIVE6] {
        at_work.is_reached(target, data)?;
    }
    let (idle, cost, spent) = at_work.metered(|| at_work.echo(tunnel, data, count))?;
    let native = at_work.echo(NATIVE6, data, count)?;
    let loaded = |target: Target| -> Result<Outcome> {
        let background = at_work.background(target, LOAD.1, LOAD.0)?;
        let outcome = at_work.echo(target, data, count)?;
        background.end()?;
        Ok(outcome)
    };
    let (loaded_tunnel, loaded_native) = (loaded(tunnel)?, loaded(NATIVE6)?);
    sheet.tester(cost);
    let mean = |outcome: &Outcome| outcome.latency.mean() / 1e6;
    let overhead = mean(&idle) - mean(&native);
    let processing = spent.as_secs_f64() * 1e3 / idle.answered.max(1) as f64;
    for (name, value) in [
        ("overhead", overhead),
        ("processing", processing),
        ("crossing", overhead - processing),
        ("queueing", mean(&loaded_tunnel) - mean(&idle)),
        ("queueing-natively", mean(&loaded_native) - mean(&native)),
    ] {
        sheet.value(name, value, Unit::Milliseconds);
    }
    one_way(at_work, data, count, sheet)?;
    sheet.value("answered", idle.answered as f64, Unit::Count);
    sheet.value("answered-loaded", loaded_tunnel.answered as f64, Unit::Count);
    Ok(())
}

/// CPU time of the router that encapsulates a packet, and of the one that decapsulates it: with a stream in one direction each does one of both.
fn one_way(at_work: &AtWork, data: usize, count: u16, sheet: &mut Sheet) -> Result<()> {
    let Some(before) = at_work.spent_by_each()? else { return Ok(()) };
    let outcome = at_work.paced(at_work.way().target(), data, PACED, u64::from(count))?;
    let after = at_work.spent_by_each()?.unwrap_or_default();
    let names = [("encapsulation", outcome.sent), ("decapsulation", outcome.answered)];
    for ((name, packets), (after, before)) in names.into_iter().zip(after.into_iter().zip(before)) {
        let each = after.saturating_sub(before).as_secs_f64() * 1e3 / packets.max(1) as f64;
        sheet.value(name, each, Unit::Milliseconds);
    }
    Ok(())
}

/// How long the tunnel takes to be created, refreshed and deleted at both ends, and its packets when it is unused.
pub fn life(at_work: &mut AtWork, device: &str, idle: Duration, sheet: &mut Sheet) -> Result<()> {
    let device = find(device).ok_or_else(|| Failure::Unexpected(format!("no device is named {device}")))?;
    let (_, cost, _) = at_work.metered(|| at_work.echo(at_work.way().target(), 56, 5))?;
    sheet.tester(cost);
    let renewal = at_work.renew(device)?;
    note_life(renewal, at_work.restart()?, sheet);
    let capture = Capture::start(at_work.network(), "b", "in0", "ip proto 41")?;
    let (start, before) = (Instant::now(), at_work.spent()?);
    std::thread::sleep(idle);
    let spent = at_work.spent()?.saturating_sub(before);
    let cores = spent.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9);
    sheet.value("idle-packets", capture.end()?.len() as f64, Unit::Count);
    sheet.value("idle-cpu", cores, Unit::Cores);
    Ok(())
}

/// The times of a tunnel's life.
fn note_life(Renewal { deletion, creation }: Renewal, refresh: Duration, sheet: &mut Sheet) {
    for (name, time) in [("creation", creation), ("refresh", refresh), ("deletion", deletion)] {
        sheet.value(name, time.as_secs_f64() * 1e3, Unit::Milliseconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_of_a_life_has_its_name() {
        let mut sheet = Sheet::new(std::path::PathBuf::new());
        let [deletion, creation, refresh] = [1, 20, 300].map(Duration::from_millis);
        note_life(Renewal { deletion, creation }, refresh, &mut sheet);
        let value = |name: &str| sheet.values()[name].value;
        assert_eq!(["deletion", "creation", "refresh"].map(value), [1.0, 20.0, 300.0]);
    }
}
