//! Linux' tunnels of IPv6 in IPv4, in a guest: `sit`.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{Configured, IsatapRouter, Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::packet::six_to_four;
use crate::results::Machine;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// Linux' `sit` in a guest.
pub struct GuestSit;

static CARD: LazyLock<Card> = LazyLock::new(|| card("linux-sit", "Linux' sit in a guest", &["ip", "radvd"]));

impl Device for GuestSit {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[
            TaskKind::Relay6to4,
            TaskKind::Router6to4,
            TaskKind::Host6to4,
            TaskKind::Configured,
            TaskKind::IsatapRouter,
        ]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        cannot_run(&CARD, here)
    }

    fn version(&self) -> Result<String> {
        Kind::chosen().version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        Ok(Box::new(Hosted::start(place, &["sit"], &script(place, task)?)?))
    }
}

fn script(place: &Place, task: &Task) -> Result<String> {
    match task {
        Task::Relay6to4(task) => Ok(six_to_four_device(task.address, task.address, None)),
        Task::Router6to4(task) => {
            Ok(six_to_four_device(task.address, task.nat.unwrap_or(task.address), Some(task.relay)))
        }
        Task::Host6to4(task) => Ok(six_to_four_device(task.address, task.address, Some(task.relay))),
        Task::Configured(task) => Ok(configured(task)),
        Task::IsatapRouter(task) => isatap(place, task),
        Task::Forward(_)
        | Task::Nat64(_)
        | Task::Siit(_)
        | Task::Clat(_)
        | Task::Nat44(_)
        | Task::Nat46(_)
        | Task::Dns64(_)
        | Task::IpInIp(_)
        | Task::IsatapHost(_)
        | Task::SiteGateway(_)
        | Task::Aftr(_)
        | Task::B4(_)
        | Task::Concentrator(_)
        | Task::LeasingHost(_)
        | Task::TeredoRelay(_)
        | Task::TeredoServer(_)
        | Task::TeredoClient(_) => {
            Err(Failure::Unexpected(format!("{} cannot be {}", CARD.name, task.kind().text())))
        }
    }
}

/// A device of 6to4 with this local address and the prefix of that one, and a way to native IPv6 if a relay is named.
pub fn six_to_four_device(local: Ipv4Addr, prefix: Ipv4Addr, relay: Option<Ipv4Addr>) -> String {
    let mut script = format!(
        "ip tunnel add six mode sit remote any local {local} ttl 64\n\
         ip address add {}/16 dev six nodad\nip link set six up\n",
        six_to_four(prefix, 1)
    );
    if let Some(relay) = relay {
        writeln!(script, "ip -6 route add default via ::{relay} dev six").ok();
    }
    script
}

fn configured(task: &Configured) -> String {
    let mut script = format!(
        "ip tunnel add fixed mode sit remote {} local {} ttl 64\nip link set fixed up\n",
        task.remote, task.local
    );
    for prefix in &task.prefixes {
        writeln!(script, "ip -6 route add {prefix} dev fixed").ok();
    }
    script
}

fn isatap(place: &Place, task: &IsatapRouter) -> Result<String> {
    let [a, b, c, d, ..] = network_of(&task.prefix)?.segments();
    let text =
        format!("interface is0 {{ AdvSendAdvert on; UnicastOnly on; prefix {} {{ }}; }};\n", task.prefix);
    let file = place.network.file(&format!("{}.radvd", place.host), &text)?;
    Ok(format!(
        "ip tunnel add is0 mode isatap local {0} ttl 64\n\
         ip address add {a:x}:{b:x}:{c:x}:{d:x}:0:5efe:{0}/64 dev is0 nodad\nip link set is0 up\n\
         radvd -C {1} -p /run/radvd.pid -m none -u root\n",
        task.address,
        file.display()
    ))
}

fn network_of(prefix: &str) -> Result<Ipv6Addr> {
    let address = prefix.split('/').next().and_then(|text| text.parse().ok());
    address.ok_or_else(|| Failure::Unexpected(format!("{prefix:?} is not an IPv6 prefix")))
}
