//! Sixway in a guest, on a TUN device or with the fast path at tc ingress: so that it is compared with the guest's own tunnels and translators on
//! the same kernel.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::sixway::{ON_TUN as ON_THIS_KERNEL, configuration};
use crate::device::task::{Task, TaskKind};
use crate::failure::Result;
use crate::results::Machine;
use crate::sixway::sixway;
use std::sync::LazyLock;

/// Sixway in a guest.
pub struct GuestSixway {
    card: &'static LazyLock<Card>,
    has_fast_path: bool,
}

static ON_TUN: LazyLock<Card> =
    LazyLock::new(|| card("sixway-in-guest", "Sixway on a TUN device in a guest", &["ip"]));
static AT_TC: LazyLock<Card> =
    LazyLock::new(|| card("sixway-tc-in-guest", "Sixway, fast path at tc ingress, in a guest", &["ip"]));

/// On a TUN device.
pub const IN_GUEST: GuestSixway = GuestSixway { card: &ON_TUN, has_fast_path: false };

/// With the fast path at tc ingress.
pub const AT_TC_IN_GUEST: GuestSixway = GuestSixway { card: &AT_TC, has_fast_path: true };

/// Room for this number of flows: a guest has little memory.
const FLOWS: u32 = 1 << 16;

impl Device for GuestSixway {
    fn card(&self) -> &Card {
        self.card
    }

    fn tasks(&self) -> &[TaskKind] {
        &[
            TaskKind::Relay6to4,
            TaskKind::Router6to4,
            TaskKind::Configured,
            TaskKind::SiteGateway,
            TaskKind::Siit,
            TaskKind::Nat64,
            TaskKind::Nat44,
        ]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        cannot_run(self.card, here).or_else(|| sixway().err().map(|failure| failure.to_string()))
    }

    fn version(&self) -> Result<String> {
        Ok(format!("{}, {}", Kind::chosen().version()?, ON_THIS_KERNEL.version()?))
    }

    /// What it says goes to a file that the guest writes; it is ready when it says so.
    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let links: Vec<_> = place.links().collect();
        let fast_path = format!(
            "\n[fastpath]\nmode = \"tc\"\ninterfaces = {links:?}\nflows = {FLOWS}\nforward_syn = true\n"
        );
        let text = configuration(place, task)? + if self.has_fast_path { &fast_path } else { "" };
        let file = place.network.file(&format!("{}-inside.toml", place.host), &text)?;
        let script = format!(
            "mkdir -p /run/sixway\nsysctl -q -w net.ipv4.ip_local_port_range='1024 4999'\n\
             {} run -c {} >/run/sixway.log 2>&1 &\n\
             for tenth in $(seq 250); do grep -q ready /run/sixway.log && break; sleep 0.1; done\n\
             grep -q ready /run/sixway.log || {{ cat /run/sixway.log >&2; exit 1; }}\n",
            sixway()?.display(),
            file.display()
        );
        let modules = &["tun", "cls_bpf", "sch_ingress"];
        Ok(Box::new(Hosted::start(place, modules, &script)?))
    }
}
