//! A device on another machine.

use super::environment::environment;
use super::interfaces::Lent;
use super::recipe::{Environment, Recipe};
use super::request::Request;
use crate::device::card::{Card, Realm};
use crate::device::contract::{Device, Running};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::device::reading::{CpuReading, CpuSource, MemoryReading};
use crate::device::task::{Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::measure::ClockOffset;
use crate::results::Machine;
use std::cell::Cell;
use std::time::Duration;

/// A device on another machine.
pub struct Remote {
    request: Request,
    card: Card,
    tasks: Vec<TaskKind>,
}

impl Remote {
    /// The devices of a request: plain forwarding of that machine is one of its own, to which the other is compared.
    ///
    /// # Errors
    /// The recipe does not say what it can do.
    pub fn of(request: &Request) -> Result<Vec<Self>> {
        let about = request.recipe.run("about", &Environment::new())?;
        let value = |key: &str| {
            about.get(key).cloned().ok_or_else(|| {
                Failure::Unexpected(format!("{} does not say {key}", request.recipe.file.display()))
            })
        };
        let names = value("tasks")?;
        let tasks = names.split(',').map(|name| {
            let kind = TaskKind::ALL.iter().copied().find(|kind| kind.key() == name);
            kind.ok_or_else(|| {
                Failure::Unexpected(format!("{}: no task {name:?}", request.recipe.file.display()))
            })
        });
        let tasks = tasks.collect::<Result<Vec<_>>>()?;
        let (plain, others): (Vec<_>, Vec<_>) =
            tasks.into_iter().partition(|task| *task == TaskKind::Forward);
        let what = value("what")?;
        let device = |name: String, what: String, tasks: Vec<TaskKind>| {
            // It is named on the command line, and there as long as the process.
            let (name, what) = (leaked(name), leaked(what));
            let card = Card { name, what, realm: Realm::Remote, needs: Needs::NAMESPACE };
            (!tasks.is_empty()).then(|| Self { request: request.clone(), card, tasks })
        };
        let all = [
            device(request.name.clone(), what.clone(), others),
            device(format!("{}-plain", request.name), format!("forwarding by {what}"), plain),
        ];
        Ok(all.into_iter().flatten().collect())
    }
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl Device for Remote {
    fn card(&self) -> &Card {
        &self.card
    }

    fn tasks(&self) -> &[TaskKind] {
        &self.tasks
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        if let Some(lacking) = self.card.needs.lacking(here) {
            return Some(lacking);
        }
        if let Some(missing) = self.request.here.iter().find(|interface| !interface.exists()) {
            return Some(format!("there is no interface {}", missing.name()));
        }
        match self.request.recipe.run("why_not", &Environment::new()) {
            Ok(mut said) => said.remove("why"),
            Err(failure) => Some(failure.to_string()),
        }
    }

    fn version(&self) -> Result<String> {
        let mut said = self.request.recipe.run("version", &Environment::new())?;
        Ok(said.remove("version").unwrap_or_default())
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        if !self.tasks.contains(&task.kind()) {
            return Err(Failure::Unexpected(format!("{} cannot be {}", self.card.name, task.kind().text())));
        }
        let given = environment(place, task, &self.request.there)?;
        let ends = [&place.inside, &place.outside];
        let lend = |(interface, links): (&super::interfaces::Interface, &Vec<&'static str>)| {
            if links.is_empty() {
                return Err(Failure::Unexpected(
                    "a remote device has a link inside and one outside".to_owned(),
                ));
            }
            interface.lend(&place.network, place.host, links)
        };
        let lent = self.request.here.iter().zip(ends).map(lend).collect::<Result<Vec<_>>>()?;
        let recipe = self.request.recipe.clone();
        // Dropped, it ends what a start that failed left.
        let mut started =
            Started { recipe, given, first: None, last: Cell::default(), _place: place.clone(), _lent: lent };
        started.recipe.run("start", &started.given)?;
        started.first = started.clock()?;
        Ok(Box::new(started))
    }
}

/// A remote device at work.
struct Started {
    recipe: Recipe,
    given: Environment,
    /// How far its clock was ahead when it started, and when it was read last.
    first: Option<ClockOffset>,
    last: Cell<Option<ClockOffset>>,
    // Interfaces come back before the network ends.
    _lent: Vec<Lent>,
    _place: Place,
}

impl Started {
    /// The clock in words, compared with the start if it was read since.
    fn clock_text(&self) -> Option<String> {
        let (first, last) = (self.first?, self.last.get()?);
        let drift =
            first.drift(&last).map_or(String::new(), |drift| format!(", drift {:.1} ppm", drift * 1e6));
        Some(format!(
            "# its clock is {} ns ahead, give or take {} ns{drift}",
            last.ahead,
            last.within.as_nanos()
        ))
    }
}

impl Running for Started {
    fn restart(&mut self) -> Result<()> {
        self.recipe.run("restart", &self.given).map(drop)
    }

    /// Of the whole machine.
    fn cpu(&self) -> Result<CpuReading> {
        let said = self.recipe.run("cpu", &self.given)?;
        let spent = said.get("busy_ns").and_then(|text| text.parse().ok()).map(Duration::from_nanos);
        let spent = spent.ok_or_else(|| Failure::Unexpected("the recipe does not say busy_ns".to_owned()))?;
        Ok(CpuReading::of(spent, CpuSource::Machine))
    }

    /// Recipes tell what the whole machine uses.
    fn memory(&self) -> Result<MemoryReading> {
        let said = self.recipe.run("memory", &self.given)?;
        let octets = said.get("octets").and_then(|text| text.parse().ok());
        Ok(octets.map_or(MemoryReading::NotMeasurable("its recipe does not tell it"), |octets| {
            MemoryReading::Uncertain(octets, "of the whole machine, whatever it does")
        }))
    }

    fn counters(&self) -> Result<Vec<(String, u64)>> {
        let said = self.recipe.run("counters", &self.given)?;
        Ok(said.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect())
    }

    fn clock(&self) -> Result<Option<ClockOffset>> {
        let offset = self.recipe.clock_offset(&self.given)?;
        self.last.set(offset);
        Ok(offset)
    }

    fn commands(&self) -> Vec<String> {
        let given = self.given.iter().map(|(name, value)| format!("{name}={value:?}"));
        let start =
            format!("{} sh {} start", given.collect::<Vec<_>>().join(" "), self.recipe.file.display());
        [start].into_iter().chain(self.clock_text()).collect()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Err(failure) = self.recipe.run("stop", &self.given) {
            eprintln!("{failure}");
        }
    }
}
