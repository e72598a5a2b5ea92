//! An ISATAP host in a guest: Linux' tunnel, and Debian's `isatapd`, which asks the routers of its list.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{Task, TaskKind};
use crate::failure::Result;
use crate::results::Machine;
use std::sync::LazyLock;

/// `isatapd` in a guest.
pub struct GuestIsatapd;

static CARD: LazyLock<Card> =
    LazyLock::new(|| card("isatapd", "isatapd and Linux' sit in a guest", &["ip", "isatapd"]));

impl Device for GuestIsatapd {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::IsatapHost]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        cannot_run(&CARD, here)
    }

    fn version(&self) -> Result<String> {
        Kind::chosen().version()
    }

    /// A host that forwards does not listen to advertisements.
    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let task = task.isatap_host(CARD.name)?;
        let link = place.outside.first().copied().unwrap_or_default();
        let script = format!(
            "echo 0 >/proc/sys/net/ipv6/conf/all/forwarding\necho 1 >/proc/sys/net/ipv6/conf/default/accept_ra\n\
             isatapd --name is0 --link {link} --daemon --pid /run/isatapd.pid --check-dns 0 {}\n",
            task.router
        );
        Ok(Box::new(Hosted::start(place, &["sit"], &script)?))
    }
}
