//! One million flows in the fast path: their memory, and the CPU time for them, idle and in use.

use super::column::Column;
use super::content::Content;
use super::patterns::{MANY, many};
use super::scene::Scene;
use super::settings::{FLOWS, Mode, nat64};
use crate::bench::{Figure, Section, Target};
use crate::failure::{Asking as _, Failure, Result};
use crate::fast_path::shown;
use crate::interrupt::pause;
use crate::probe::cpu::process_cpu;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// UDP_MIN (RFC 6146 §4): the shortest lifetime that a session of UDP may have. Before it has passed the engine reads of every flow when it was last
/// used.
const LIFETIME: Duration = Duration::from_secs(120);
/// Each flow has a packet every 20 s, so that none expires.
const PER_SECOND: u32 = MANY / 20;
/// With fewer it would be another measurement.
const LEAST: u64 = MANY as u64 / 100 * 99;

/// Flows that there is room for: of a table that they nearly fill, one flow in 150 is refused, and what the engine spends on its packets would count.
const ROOM: u32 = MANY + MANY / 2;

/// NAT64 with the fast path in the driver, this room and that lifetime.
pub fn configuration() -> String {
    let few = nat64(Mode::Xdp, Some(2));
    let many = few.replace(&format!("flows = {FLOWS}\n"), &format!("flows = {ROOM}\n"));
    format!("{many}\n[nat64.timeouts]\nudp_default = \"2 min\"\n")
}

/// Begins all flows of a scene.
///
/// # Errors
/// The fast path has fewer than 99 % of them when they have been sent often enough.
pub fn install(scene: &Rc<Scene>) -> Result<()> {
    in_turn(scene)?.settle(8)?;
    match installed(scene)? {
        LEAST.. => Ok(()),
        few => Err(Failure::Unexpected(format!("only {few} of {MANY} flows came to the fast path"))),
    }
}

fn in_turn(scene: &Rc<Scene>) -> Result<Column> {
    Column::new("all flows in turn", Rc::clone(scene), "client", many(false), Content::by_nat64())
}

/// Flows in the fast path, as the gateway reports.
fn installed(scene: &Scene) -> Result<u64> {
    let said = shown(&scene.network)?;
    let flows = said["summary"]["flows"].as_u64();
    flows
        .ok_or_else(|| Failure::Unexpected(format!("the gateway did not report the number of flows: {said}")))
}

/// Looks at the gateway of a column whose flows were installed: `rest` without a packet, then, unless there is no time for it, in use for as long as a
/// session lives.
pub fn run(column: &Column, rest: Duration, quick: bool) -> Result<Section> {
    let scene = &column.scene;
    let process = scene.process.ok_or_else(|| Failure::Unexpected("the kernel has no process".to_owned()))?;
    let mut skipped = Vec::new();
    let before = installed(scene)?;
    let mut costs = vec![keeping("without a packet", process, rest, || pause(rest))?];
    if quick {
        skipped.push(format!("what keeping them in use costs: it takes {} s", LIFETIME.as_secs()));
    } else {
        let mut sender = in_turn(scene)?;
        let work = || sender.trickle(PER_SECOND, LIFETIME);
        costs.push(keeping("in use, a whole lifetime", process, LIFETIME, work)?);
    }
    let there = before.min(installed(scene)?) as f64 / 1e3;
    let there =
        Figure::new("flows in the fast path", "k", vec![there]).to_reach(Target::AtLeast(LEAST as f64 / 1e3));
    let memory = [
        Figure::new("maps", "MB", vec![maps(process)? as f64 / 1e6]),
        Figure::new("the process (VmRSS)", "MB", vec![resident(process)? as f64 / 1e6]),
    ];
    let figures = [there].into_iter().chain(costs).chain(memory).collect();
    Ok(Section { title: "One million flows", how: how(rest), figures, skipped })
}

fn how(rest: Duration) -> String {
    format!(
        "The gateway's process with {MANY} UDP flows of NAT64 in the fast path: {} s without packets, and {} s (the session lifetime) with {PER_SECOND} packets \
         a second, so that the last use of every flow is read and none expires. Flows: as the gateway reports before and after, \
         whichever is lower; capacity {ROOM}. Maps: memlock of /proc/PID/fdinfo.",
        rest.as_secs_f64(),
        LIFETIME.as_secs()
    )
}

/// The gateway's CPU time while `work` runs.
fn keeping(how: &str, process: u32, time: Duration, work: impl FnOnce() -> Result<()>) -> Result<Figure> {
    let before = process_cpu(process)?;
    work()?;
    let spent = process_cpu(process)?.saturating_sub(before);
    let share = spent.as_secs_f64() / time.as_secs_f64() * 100.0;
    let name = format!("CPU time of maintaining them, {how}");
    Ok(Figure::new(name, "% of a core", vec![share]).to_reach(Target::AtMost(2.0)))
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
    fn there_is_more_room_than_flows() {
        assert!(configuration().contains("flows = 1500000\n"), "{}", configuration());
    }

    #[test]
    fn figures_of_a_map_are_read() {
        let text = "pos:\t0\nmap_type:\t2\nmemlock:\t4096\nmap_id:\t77\n";
        assert_eq!(
            (number(text, "memlock:"), number(text, "map_id:"), number(text, "x:")),
            (Some(4_096), Some(77), None)
        );
    }
}
