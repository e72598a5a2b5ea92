//! Linux' tunnels over IPv6, in a guest: `ip6tnl`, also as the B4 of DS-Lite.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{B4, IpInIp, Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::results::Machine;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Linux' `ip6tnl` in a guest.
pub struct GuestIp6tnl;

static CARD: LazyLock<Card> = LazyLock::new(|| card("linux-ip6tnl", "Linux' ip6tnl in a guest", &["ip"]));

impl Device for GuestIp6tnl {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::IpInIp, TaskKind::B4]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        cannot_run(&CARD, here)
    }

    fn version(&self) -> Result<String> {
        Kind::chosen().version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        Ok(Box::new(Hosted::start(place, &["ip6_tunnel"], &script(place, task)?)?))
    }
}

fn script(place: &Place, task: &Task) -> Result<String> {
    match task {
        Task::IpInIp(task) => Ok(tunnel(task)),
        Task::B4(task) => Ok(b4(place, *task)),
        Task::Forward(_)
        | Task::Nat64(_)
        | Task::Siit(_)
        | Task::Clat(_)
        | Task::Nat44(_)
        | Task::Nat46(_)
        | Task::Dns64(_)
        | Task::Relay6to4(_)
        | Task::Router6to4(_)
        | Task::Host6to4(_)
        | Task::Configured(_)
        | Task::IsatapRouter(_)
        | Task::IsatapHost(_)
        | Task::SiteGateway(_)
        | Task::Aftr(_)
        | Task::Concentrator(_)
        | Task::LeasingHost(_)
        | Task::TeredoRelay(_)
        | Task::TeredoServer(_)
        | Task::TeredoClient(_) => {
            Err(Failure::Unexpected(format!("{} cannot be {}", CARD.name, task.kind().text())))
        }
    }
}

fn tunnel(task: &IpInIp) -> String {
    let IpInIp { local, remote, prefixes } = task;
    let mut script = format!(
        "ip address add {local}/128 dev lo nodad\n\
         ip -6 tunnel add over6 mode any local {local} remote {remote} encaplimit none hoplimit 64\n\
         ip link set over6 up\n"
    );
    for prefix in prefixes {
        writeln!(script, "ip route add {prefix} dev over6").ok();
    }
    script
}

/// Its end of the softwire is the address of the outside link.
fn b4(place: &Place, task: B4) -> String {
    let link = place.outside.first().copied().unwrap_or_default();
    format!(
        "local=$(ip -6 -o address show dev {link} scope global | awk '{{ print $4; exit }}' | cut -d/ -f1)\n\
         ip -6 tunnel add over6 mode ip4ip6 local $local remote {} encaplimit none hoplimit 64\n\
         ip address add 192.0.0.2/29 dev over6\nip link set over6 up\nip route add default dev over6\n",
        task.aftr
    )
}
