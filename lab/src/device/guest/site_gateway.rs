//! A whole Linux site gateway in a guest: `sit`, NAT by nftables, and radvd, as the paper of 2012 had it.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use super::sit::six_to_four_device;
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{SiteGateway, Task, TaskKind};
use crate::failure::Result;
use crate::packet::six_to_four;
use crate::results::Machine;
use std::sync::LazyLock;

/// A Linux site gateway in a guest.
pub struct GuestSiteGateway;

static CARD: LazyLock<Card> = LazyLock::new(|| {
    card("linux-site-gateway", "Linux' sit, nftables and radvd in a guest", &["ip", "nft", "radvd"])
});

impl Device for GuestSiteGateway {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::SiteGateway, TaskKind::Nat44]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        let without_nat = Kind::chosen() == Kind::Uml;
        let why =
            without_nat.then(|| "Debian's User-Mode Linux has no NAT of nftables: --guest qemu".to_owned());
        why.or_else(|| cannot_run(&CARD, here))
    }

    fn version(&self) -> Result<String> {
        Kind::chosen().version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let script = match task {
            Task::Nat44(task) => nat(place, &task.inside, task.pool.first().map(String::as_str)),
            other => site(place, other.site_gateway(CARD.name)?)?,
        };
        let modules = &["sit", "nft_chain_nat", "nft_masq", "nft_nat"];
        Ok(Box::new(Hosted::start(place, modules, &script)?))
    }
}

/// Behind an address of its own, or that of the outside link.
fn nat(place: &Place, inside: &[String], address: Option<&str>) -> String {
    let (inside, links) = (inside.join(", "), place.outside.join(", "));
    let to = address.map_or_else(|| "masquerade".to_owned(), |address| format!("snat to {address}"));
    format!(
        "nft -f - <<END\ntable ip site {{\n  chain leaving {{\n    type nat hook postrouting priority srcnat\n    \
         ip saddr {{ {inside} }} oifname {{ {links} }} {to}\n  }}\n}}\nEND\n"
    )
}

fn site(place: &Place, task: &SiteGateway) -> Result<String> {
    let lan = place.inside.first().copied().unwrap_or_default();
    let outside = task.nat.map(|nat| nat.to_string());
    let site = task.nat.unwrap_or(task.address);
    let [a, b, c, ..] = six_to_four(site, 1).segments();
    let prefix = format!("{a:x}:{b:x}:{c:x}:1::/64");
    let text = format!(
        "interface {lan} {{ AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; prefix {prefix} {{ }}; }};\n"
    );
    let file = place.network.file(&format!("{}.radvd", place.host), &text)?;
    let tunnel = six_to_four_device(task.address, site, Some(task.relay));
    Ok(format!(
        "{}{tunnel}radvd -C {} -p /run/radvd.pid -m none -u root\n",
        nat(place, &task.inside, outside.as_deref()),
        file.display()
    ))
}
