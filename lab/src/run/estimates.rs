//! Whether the experiments' estimates are true: what the cells of a series took on average in a quick run of all experiments, on a quiet machine with
//! two CPUs.

use super::plan::plan;
use crate::device;
use crate::experiment;
use crate::results::{Asked, Cell};

/// Experiment, series, and seconds of a cell: `run all --quick` of 2026-11-27. `udp`, `ditg`, `dns64`, `tunnel`, and those in frames that the kernel makes, were measured
/// alone, with other programs at work.
const TOOK: &[(&str, &str, f64)] = &[
    ("relay-2013", "icmp", 0.76),
    ("nat64-2014", "icmp", 1.43),
    ("nat64-2014", "udp", 4.1),
    ("nat64-2014", "http-1", 0.72),
    ("nat64-2014", "http-8", 0.95),
    ("nat64-2014", "vpn-1", 1.0),
    ("tunnel-2012", "flow", 0.89),
    ("tunnel-2012", "rtt", 0.75),
    ("tunnel-2012", "tcp", 0.58),
    ("tunnel-2012", "udp", 1.24),
    ("tunnel-2012", "breakdown", 0.54),
    ("tunnel-2012", "life", 1.47),
    ("tunnel-2012", "ftp", 0.59),
    ("tunnel-2012", "ditg", 2.95),
    ("gateway-2012", "outer", 0.72),
    ("gateway-2012", "connection", 1.20),
    ("gateway-2012", "web", 1.20),
    ("gateway-2012", "call", 2.05),
    ("gateway-2012", "rtt", 0.68),
    ("gateway-2012", "cpu", 0.61),
    ("mechanisms-2006", "configured", 0.59),
    ("mechanisms-2006", "6to4", 0.58),
    ("mechanisms-2006", "isatap", 0.80),
    ("mechanisms-2006", "ds-lite", 0.60),
    ("mechanisms-2006", "teredo", 0.49),
    ("mechanisms-2006", "hops", 0.91),
    ("mechanisms-2006", "start", 1.98),
    ("mechanisms-2006", "control", 2.02),
    ("rfc8219", "throughput", 4.88),
    ("rfc8219", "frames", 14.44),
    ("rfc8219", "frame-loss", 1.31),
    ("rfc8219", "latency", 3.22),
    ("rfc8219", "connections", 1.99),
    ("rfc8219", "establishment", 5.95),
    ("rfc8219", "tear-down", 2.57),
    ("rfc8219", "capacity", 2.18),
    ("rfc8219", "sessions", 15.41),
    ("rfc8219", "native", 3.94),
    ("rfc8219", "dns64", 10.08),
    ("overload", "udp", 1.16),
    ("overload", "tunnel", 1.42),
    ("tester", "bare-udp", 0.19),
    ("tester", "bare-paced", 0.15),
    ("tester", "bare-transactions", 0.18),
    ("tools", "agreement", 0.77),
];

#[test]
fn estimates_are_what_a_run_took() {
    let asked = Asked { scale: 0.002, repeats: 1, quick: true, pin: true, ..Asked::default() };
    let all = device::all();
    let (mut estimated, mut measured) = (0.0, 0.0);
    for (name, series, took) in TOOK {
        let experiment = experiment::find(name).unwrap();
        let cells: Vec<Cell> = plan(&[experiment], &all, &asked).unwrap();
        let cells: Vec<_> = cells.iter().filter(|cell| cell.series == *series).collect();
        let sum: f64 = cells.iter().map(|cell| experiment.seconds(cell, &asked)).sum();
        let each = sum / cells.len() as f64;
        assert!((0.6..1.7).contains(&(each / took)), "{name} {series}: {each:.2} s, and it took {took:.2} s");
        estimated += sum;
        measured += took * cells.len() as f64;
    }
    assert!((0.85..1.25).contains(&(estimated / measured)), "{estimated:.0} s, and it took {measured:.0} s");
}
