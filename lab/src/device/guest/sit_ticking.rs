//! Linux' 6to4 relay in a guest whose ticks do not stop while it is idle: the other guests' CPU time by ticks misses work that begins and ends there.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use super::sit::six_to_four_device;
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{Task, TaskKind};
use crate::failure::Result;
use crate::results::Machine;
use std::sync::LazyLock;

/// `sit` in a guest that is started with `nohz=off`.
pub struct GuestSitTicking;

static CARD: LazyLock<Card> = LazyLock::new(|| {
    card("linux-sit-ticking", "Linux' sit in a guest whose ticks do not stop (nohz=off)", &["ip"])
});

impl Device for GuestSitTicking {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Relay6to4]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        let is_uml = Kind::chosen() == Kind::Uml;
        let why = is_uml.then(|| "User-Mode Linux has no command line here: use --guest qemu".to_owned());
        cannot_run(&CARD, here).or(why)
    }

    fn version(&self) -> Result<String> {
        Ok(format!("{}, nohz=off", Kind::chosen().version()?))
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let address = task.relay_6to4(CARD.name)?.address;
        let script = six_to_four_device(address, address, None);
        Ok(Box::new(Hosted::start_with(place, &["sit"], "nohz=off", &script)?))
    }
}
