//! Ten million sessions of NAT44: what they take in memory, and how long one step of expiry, and of `sixway show sessions`, keeps a worker from its
//! packets.

use super::cpu_time::undisturbed;
use super::established::{Established, Translation, resident_octets};
use super::nat44::FourToFour;
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::terminal::median;
use sixway_dataplane::nat::{Selection, UDP_DEFAULT};
use sixway_dataplane::stateful::Stateful as _;
use sixway_wire::Endpoint4;
use std::time::{Duration, Instant};

const SESSIONS: u32 = 10_000_000;
/// With `--quick`.
const FEW: u32 = 100_000;
/// Entries that one step of `show` examines, as in the gateway.
const ROWS: u32 = 512;
/// Octets that a session may take.
const OCTETS: f64 = 200.0;

/// Measures it, once.
pub fn measure(options: &Options) -> Result<Section> {
    options.say("memory: NAT44, ten million sessions");
    let sessions = if options.quick { FEW } else { SESSIONS };
    let before = resident_octets()?;
    // Each of them is translated in both directions and checked.
    let mut flows = Established::<FourToFour>::make(sessions, 24, sessions)?;
    // The benchmark's own list of outside endpoints is not the engine's.
    let lists = u64::from(sessions) * size_of::<Endpoint4>() as u64;
    let resident = resident_octets()?.saturating_sub(before + lists);
    let reserved = FourToFour::reserved(flows.machine.engine());
    let mut figures: Vec<_> = [("resident", resident as f64), ("reserved", reserved as f64)]
        .map(|(name, octets)| {
            Figure::new(format!("memory of a session, {name}"), "octets", vec![octets / f64::from(sessions)])
                .to_reach(Target::AtMost(OCTETS))
        })
        .into();
    figures.extend(pauses("a step of show, 512 entries", &show(&mut flows)?));
    figures.extend(pauses("a step of expiry, 64 sessions", &expire(&mut flows)?));
    Ok(Section {
        title: "Ten million sessions of NAT44, in memory",
        how: format!(
            "{sessions} sessions, each with a binding of its own. Steps in which the thread lost the CPU are not counted."
        ),
        figures,
        skipped: Vec::new(),
    })
}

fn pauses(name: &str, steps: &[f64]) -> [Figure; 3] {
    let most = steps.iter().copied().fold(0.0, f64::max);
    [
        Figure::new(format!("{name}: median"), "µs", vec![median(steps)]),
        Figure::new(format!("{name}: the longest"), "µs", vec![most]),
        Figure::new(format!("{name}: steps"), "", vec![steps.len() as f64]),
    ]
}

/// The steps of one `show sessions`, in microseconds.
fn show(flows: &mut Established<FourToFour>) -> Result<Vec<f64>> {
    let now = flows.machine.now();
    let mut steps = Vec::new();
    let mut seen = 0;
    for nat44 in flows.machine.engine().nat44() {
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            interrupt::check()?;
            let mut rows = Vec::with_capacity(ROWS as usize);
            let (took, is_undisturbed) = undisturbed(|| {
                cursor = nat44.sessions(from, ROWS, &Selection::default(), now, &mut rows);
            })?;
            seen += rows.len() as u64;
            steps.extend(is_undisturbed.then_some(took.as_nanos() as f64 / 1_000.0));
        }
    }
    if seen == u64::from(flows.sessions) {
        return Ok(steps);
    }
    Err(Failure::Unexpected(format!("{seen} rows of {} sessions", flows.sessions)))
}

/// The steps in which all of them end.
fn expire(flows: &mut Established<FourToFour>) -> Result<Vec<f64>> {
    flows.machine.advance(UDP_DEFAULT + Duration::from_secs(10));
    let mut steps = Vec::new();
    let start = Instant::now();
    while flows.machine.engine().stateful().any(|one| one.occupancy().sessions > 0) {
        interrupt::check()?;
        let (took, is_undisturbed) = flows.machine.tick()?;
        steps.extend(is_undisturbed.then_some(took.as_nanos() as f64 / 1_000.0));
        if start.elapsed() > Duration::from_secs(300) {
            break;
        }
    }
    Ok(steps)
}
