//! Plain forwarding by the guest's kernel: what other devices in guests are compared with.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{Task, TaskKind};
use crate::failure::Result;
use crate::results::Machine;
use std::sync::LazyLock;

/// Forwarding in a guest.
pub struct GuestForwarding;

static CARD: LazyLock<Card> =
    LazyLock::new(|| card("guest-plain", "forwarding by a guest's kernel", &["ip"]));

impl Device for GuestForwarding {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Forward]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        cannot_run(&CARD, here)
    }

    fn version(&self) -> Result<String> {
        Kind::chosen().version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        task.forward(CARD.name)?;
        Ok(Box::new(Hosted::start(place, &[], "")?))
    }
}
