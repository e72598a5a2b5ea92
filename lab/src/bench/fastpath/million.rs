//! One million flows in the fast path: what they take, and what keeping them costs.

use super::column::Column;
use super::small::MANY;
use crate::bench::{Figure, Section, Target};
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt::pause;
use crate::probe::cpu::process_cpu;
use std::collections::BTreeMap;
use std::time::Duration;

/// Looks at the gateway of a column whose flows were installed, for so long.
pub fn run(column: &Column, time: Duration) -> Result<Section> {
    let process =
        column.scene.process.ok_or_else(|| Failure::Unexpected("the kernel has no process".to_owned()))?;
    let before = process_cpu(process)?;
    pause(time)?;
    let spent = process_cpu(process)?.saturating_sub(before);
    let share = spent.as_secs_f64() / time.as_secs_f64() * 100.0;
    Ok(Section {
        title: "One million flows",
        how: format!(
            "The gateway's process with {MANY} UDP flows of NAT64 in the fast path, {} s without a packet. Maps: what /proc/PID/fdinfo calls memlock.",
            time.as_secs_f64()
        ),
        figures: vec![
            Figure::new("CPU time of keeping them", "% of a core", vec![share]).to_reach(Target::AtMost(2.0)),
            Figure::new("maps", "MB", vec![maps(process)? as f64 / 1e6]),
            Figure::new("the process (VmRSS)", "MB", vec![resident(process)? as f64 / 1e6]),
        ],
        skipped: Vec::new(),
    })
}

/// Octets of all maps that a process has open, each once.
fn maps(process: u32) -> Result<u64> {
    let folder = format!("/proc/{process}/fdinfo");
    let entries = std::fs::read_dir(&folder).asking(|| format!("reading {folder}"))?;
    let texts = entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let each: BTreeMap<u64, u64> =
        texts.filter_map(|text| Some((number(&text, "map_id:")?, number(&text, "memlock:")?))).collect();
    Ok(each.values().sum())
}

fn resident(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).asking(|| format!("reading {path}"))?;
    number(&text, "VmRSS:")
        .map(|kilobytes| kilobytes * 1_024)
        .ok_or_else(|| Failure::Unexpected(format!("no VmRSS in {path}")))
}

fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_map_are_read() {
        let text = "pos:\t0\nmap_type:\t2\nmemlock:\t4096\nmap_id:\t77\n";
        assert_eq!(
            (number(text, "memlock:"), number(text, "map_id:"), number(text, "x:")),
            (Some(4_096), Some(77), None)
        );
    }
}
