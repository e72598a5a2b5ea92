//! Sixway's stateless translation with an IPv4 address for each host, and this kernel's masquerade behind it: what TAYGA does.

use super::configuration::configuration;
use super::device::ON_TUN;
use crate::device::card::{Card, Realm};
use crate::device::contract::{Device, Running};
use crate::device::kernel::{Masquerade, connections, memory_of_connections};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::device::program::Program;
use crate::device::task::{Siit, Task, TaskKind};
use crate::failure::Result;
use crate::gateway::run_sixway_on;
use crate::results::Machine;

/// Sixway's stateless translation and masquerade.
pub struct StatelessAndMasquerade;

const CARD: Card = Card {
    name: "sixway-stateless",
    what: "Sixway's stateless translation, with masquerade",
    realm: Realm::Here,
    needs: Needs { programs: &["ip", "nft"], ..Needs::NAMESPACE },
};

/// Addresses of hosts between translator and masquerade, as many as TAYGA had in the paper.
const BETWEEN: &str = "172.16.0.0/12";

/// Masquerade sees tracked packets only, and the fast path's rules would exclude them.
const TRACKED: &str = "\n[fastpath]\nmode = \"off\"\n";

impl Device for StatelessAndMasquerade {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Nat64]
    }

    fn has_pool(&self) -> bool {
        false
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        CARD.needs.lacking(here).or_else(|| ON_TUN.cannot_run(here))
    }

    fn version(&self) -> Result<String> {
        ON_TUN.version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let task = task.nat64(CARD.name)?;
        place.network.forwards(place.host)?;
        let masquerade = Masquerade::new(place, &[BETWEEN.to_owned()], &task.pool)?;
        let rules = masquerade.apply(place)?;
        let siit =
            Siit { prefix: task.prefix.clone(), hosts: Vec::new(), dynamic_pool: Some(BETWEEN.to_owned()) };
        let configuration = configuration(place, &Task::Siit(siit))? + TRACKED;
        let commands = vec![rules, format!("sixway run -c - <<END\n{configuration}END")];
        let launch = move |place: &Place| run_sixway_on(&place.network, place.host, &configuration);
        Ok(Box::new(
            Program::start(place, commands, Box::new(launch))?.counting(connections, memory_of_connections),
        ))
    }
}
