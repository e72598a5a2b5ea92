//! The paper's own programs: a file by FTP, and D-ITG.

use super::smoothing::{SMOOTHED, smoothed};
use crate::experiment::sheet::Sheet;
use crate::experiment::three_routers::{AtWork, NATIVE4, NATIVE6};
use crate::failure::Result;
use crate::load::Outcome;
use crate::probe::{DitgLoad, ditg, fetch_file, serve_file};
use crate::results::Unit;
use std::time::Duration;

/// Octets of the file at scale 1: the paper's 20,000 buffers.
const FILE: f64 = 20_000.0 * 3_072.0;
/// Packets a second of D-ITG, which it keeps.
const RATE: f64 = 500.0;

/// A file by FTP on all three ways: its octets over the time of the whole session.
pub fn ftp(at_work: &AtWork, scale: f64, sheet: &mut Sheet) -> Result<()> {
    let octets = (FILE * scale).clamp(200_000.0, FILE) as u64;
    serve_file(at_work.network(), "server", octets)?;
    let fetch = |name: &str, address, sheet: &mut Sheet| -> Result<()> {
        let (came, seconds) = fetch_file(at_work.network(), "client", address)?;
        sheet.value(name, came as f64 * 8.0 / seconds.max(1e-9), Unit::BitsPerSecond);
        sheet.value(&format!("{name}-octets"), came as f64, Unit::Octets);
        Ok(())
    };
    let tunnel = at_work.way().target().address;
    let (_, cost, _) = at_work.metered(|| {
        fetch("tunnel", tunnel, sheet)?;
        Ok(Outcome::default())
    })?;
    sheet.tester(cost);
    fetch("ipv6", NATIVE6.address, sheet)?;
    fetch("ipv4", NATIVE4.address, sheet)?;
    sheet.value("file", octets as f64, Unit::Octets);
    sheet.command(format!("curl ftp://[{tunnel}]/file"));
    Ok(())
}

/// D-ITG's round trips over TCP, and over UDP if that is wanted, through the tunnel and over native IPv6 and IPv4, at one rate.
pub fn by_ditg(
    at_work: &AtWork,
    data: usize,
    (scale, has_udp): (f64, bool),
    sheet: &mut Sheet,
) -> Result<()> {
    let time = Duration::from_secs_f64((60.0 * scale).clamp(0.2, 60.0));
    let run = |name: &str, address, is_tcp, sheet: &mut Sheet| -> Result<f64> {
        let load = DitgLoad { is_tcp, payload: data, per_second: RATE, time };
        let report = ditg(at_work.network(), ("client", "server"), address, load)?;
        let name = format!("{name}-{}", if is_tcp { "tcp" } else { "udp" });
        sheet.value(&name, report.mean, Unit::Milliseconds);
        for (of, a) in SMOOTHED {
            if let Some(last) = smoothed(&report.times, a) {
                sheet.value(&format!("{name}-{of}"), last, Unit::Milliseconds);
            }
        }
        sheet.value(&format!("{name}-packets"), report.packets as f64, Unit::Count);
        sheet.value(&format!("{name}-rate"), report.per_second, Unit::PerSecond);
        Ok(report.mean)
    };
    let tunnel = at_work.way().target().address;
    let transports: &[bool] = if has_udp { &[false, true] } else { &[true] };
    let mut through = Vec::new();
    let (_, cost, _) = at_work.metered(|| {
        for is_tcp in transports {
            through.push(run("tunnel", tunnel, *is_tcp, sheet)?);
        }
        Ok(Outcome::default())
    })?;
    sheet.tester(cost);
    for (time, is_tcp) in through.into_iter().zip(transports) {
        let native = run("ipv6", NATIVE6.address, *is_tcp, sheet)?;
        // As UDP, a full run has it.
        if has_udp {
            run("ipv4", NATIVE4.address, *is_tcp, sheet)?;
        }
        let name = if *is_tcp { "overhead-tcp" } else { "overhead-udp" };
        sheet.value(name, time - native, Unit::Milliseconds);
    }
    sheet.command(format!("ITGSend -a {tunnel} -m rttm -T UDP|TCP -c {data} -C {RATE:.0}"));
    Ok(())
}
