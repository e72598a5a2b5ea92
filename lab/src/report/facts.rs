//! Facts about a whole run: the machine, the devices, the noise, and how to repeat it.

use super::figure::figure;
use crate::results::{Asked, Header, Results, Sample, Unit};

/// The machine in one line.
pub(super) fn machine(header: &Header) -> String {
    let machine = &header.machine;
    let below = if machine.virtualised { " (virtual)" } else { "" };
    let governor = machine.governor.as_deref().unwrap_or("not visible");
    format!(
        "{} × {}{below}, {} MiB, Linux {}, clock {}, frequency governor {governor}, load {} at the start",
        machine.cpus, machine.cpu, machine.memory_mb, machine.kernel, machine.clock, machine.load
    )
}

/// When and with which lab.
pub(super) fn version(header: &Header) -> String {
    let commit = header.commit.as_deref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    format!("{}, lab {}{commit}", header.started, header.lab)
}

/// How many cells are measured.
pub(super) fn progress(results: &Results) -> String {
    let measured = results.samples.iter().filter(|sample| sample.failed.is_none()).count();
    let why = results.header.minutes.map(|minutes| format!(" within {minutes} minutes")).unwrap_or_default();
    format!("{measured} of {} cells are measured{why}", results.header.plan.len())
}

/// The control's range: how different the same work took.
pub(super) fn noise(samples: &[Sample]) -> String {
    let controls = || samples.iter().filter_map(|sample| sample.control);
    let (low, high) = (controls().fold(f64::INFINITY, f64::min), controls().fold(0.0, f64::max));
    let share =
        crate::analyse::noise(samples).map(|noise| format!(" (standard deviation {:.1} %)", noise * 100.0));
    match low.is_finite() {
        true => format!(
            "a fixed piece of work took {} to {} ms between the measurements{}",
            figure(low, Unit::Milliseconds),
            figure(high, Unit::Milliseconds),
            share.unwrap_or_default()
        ),
        false => "not measured".to_owned(),
    }
}

/// The command that repeats an experiment.
pub(super) fn command(name: &str, asked: &Asked) -> String {
    let mut words = vec![format!("sixway-lab run {name}")];
    // A quick run divides the scale by ten.
    let scale = if asked.quick { asked.scale * 10.0 } else { asked.scale };
    words.push(format!("--scale {scale} --repeats {}", asked.repeats));
    if asked.quick {
        words.push("--quick".to_owned());
    }
    if !asked.devices.is_empty() {
        words.push(format!("--devices {}", asked.devices.join(",")));
    }
    words.extend(asked.set.iter().map(|(key, value)| format!("--set {key}={value}")));
    if !asked.pin {
        words.push("--no-pin".to_owned());
    }
    words.join(" ")
}
