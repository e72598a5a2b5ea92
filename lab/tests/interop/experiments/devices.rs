//! Each device at each of its tasks.

use super::scenes::{Scene, scene_of};
use crate::Interop;
use sixway_lab::device::{Device, MemoryReading, Realm, Running, TaskKind, all, find};
use sixway_lab::dns64::{Asker, Flags, Tree, cached_name, start_authority};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::probe::ping;
use sixway_lab::results::Machine;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "every_device_says_why_it_cannot_run_or_runs",
        &["sixway", "ping", "nsd", "taskset"],
        every_device,
    ),
    Interop::new("every_device_in_a_guest_says_why_it_cannot_run_or_runs", &["sixway", "ping"], every_guest),
];

/// How many networks there are at a time. Most of the time programs are waited for.
const AT_A_TIME: usize = 3;
/// The same with guests, which take CPU time all the while.
const GUESTS_AT_A_TIME: usize = 2;

fn every_device() -> Result<()> {
    each(|realm| !matches!(realm, Realm::Guest(_)), AT_A_TIME)
}

fn every_guest() -> Result<()> {
    each(|realm| matches!(realm, Realm::Guest(_)), GUESTS_AT_A_TIME)
}

fn each(takes_part: impl Fn(Realm) -> bool, at_a_time: usize) -> Result<()> {
    let here = Machine::here();
    let mut left = VecDeque::new();
    for device in all().into_iter().filter(|device| takes_part(device.card().realm)) {
        let name = device.card().name;
        match device.cannot_run(&here) {
            Some(why) => assert!(why.len() > 10, "{name}: {why:?}"),
            None => {
                assert!(!device.version()?.is_empty(), "{name}");
                let tasks = device.tasks();
                // A guest takes seconds of CPU time to boot.
                let is_tried = |number: usize| {
                    !matches!(device.card().realm, Realm::Guest(_))
                        || number == 0
                        || number + 1 == tasks.len()
                };
                let tasks = tasks.iter().enumerate().filter(|(number, _)| is_tried(*number));
                left.extend(tasks.map(|(number, task)| (device, *task, number == 0 && restarts(device))));
            }
        }
    }
    let (left, failed) = (Mutex::new(left), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some((device, task, again)) = next() {
                    if let Err(failure) = does(device, task, again) {
                        let name = device.card().name;
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(format!("{name} as {}: {failure}", task.text()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { Err(Failure::Unexpected(failed.join("\n"))) }
}

/// One guest that boots again stands for all.
fn restarts(device: &dyn Device) -> bool {
    !matches!(device.card().realm, Realm::Guest(_)) || device.is_plain()
}

/// The device does the task: packets come back, and if requested after a restart, too.
fn does(device: &dyn Device, task: TaskKind, again: bool) -> Result<()> {
    if device.card().realm == Realm::Published {
        return Ok(());
    }
    let scene = scene_of(task)?;
    if task == TaskKind::Dns64 {
        start_authority(&scene.network, &Tree::to_measure(1, 2))?;
    }
    let sixway = find("sixway").ok_or_else(|| Failure::Unexpected("there is no sixway".to_owned()))?;
    let start_others = || {
        let others = scene.others.iter().map(|(place, task)| sixway.start(place, task));
        others.collect::<Result<Vec<_>>>()
    };
    let (others, mut running) = if task == TaskKind::IsatapHost {
        let router = start_others()?;
        (router, device.start(&scene.place, &scene.task)?)
    } else {
        let running = device.start(&scene.place, &scene.task)?;
        (start_others()?, running)
    };
    works(&scene, "at its start")?;
    reads(running.as_ref())?;
    if again {
        running.restart()?;
        works(&scene, "after a restart")?;
    }
    drop(others);
    Ok(())
}

fn works(scene: &Scene, when: &str) -> Result<()> {
    if scene.task.kind() == TaskKind::Dns64 {
        return answers(scene, when);
    }
    for (from, target) in &scene.pings {
        let from = scene.network.host(from)?;
        interrupt::wait_until(Duration::from_secs(20), &format!("an answer from {target} {when}"), || {
            Ok(ping(from, target, 1, 56, Duration::ZERO).is_ok_and(|answers| answers.answered == 1))
        })?;
    }
    Ok(())
}

fn answers(scene: &Scene, when: &str) -> Result<()> {
    let task = scene.task.dns64("a DNS64")?;
    let asker = Asker::open(scene.network.host("client")?, (task.listen, 53).into())?;
    interrupt::wait_until(Duration::from_secs(20), &format!("an answer to a query {when}"), || {
        let reply = asker.ask_within(&cached_name(1), "AAAA", Flags::default(), Duration::from_millis(300));
        Ok(reply.is_ok_and(|reply| reply.data("AAAA").iter().any(|it| it.starts_with("64:ff9b::"))))
    })
}

/// What it says of itself while it runs.
fn reads(running: &dyn Running) -> Result<()> {
    assert!(!running.commands().is_empty());
    running.cpu()?;
    match running.memory()? {
        MemoryReading::Exact(octets) => assert!(octets > 100_000, "{octets}"),
        MemoryReading::Uncertain(_, why) | MemoryReading::NotMeasurable(why) => assert!(!why.is_empty()),
    }
    running.counters().map(drop)
}
