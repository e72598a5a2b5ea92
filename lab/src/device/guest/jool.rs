//! Jool in a guest: NAT64 and stateless translation as modules of its kernel, with Debian's packages.

use super::hosted::Hosted;
use super::kind::{Kind, cannot_run, card};
use crate::device::card::Card;
use crate::device::contract::{Device, Running};
use crate::device::place::Place;
use crate::device::task::{Nat64, Siit, Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::guest;
use crate::results::Machine;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Jool in a guest.
pub struct GuestJool;

static CARD: LazyLock<Card> = LazyLock::new(|| card("jool", "Jool in a guest", &["ip", "jool", "jool_siit"]));

impl Device for GuestJool {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Nat64, TaskKind::Siit]
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        let of_another_kernel = Kind::chosen() == Kind::Uml;
        let uml =
            || of_another_kernel.then(|| "its modules are for Debian's kernel: --guest qemu".to_owned());
        let built = || (!guest::has_module("jool")).then(|| "needs its modules: make jool".to_owned());
        cannot_run(&CARD, here).or_else(uml).or_else(built)
    }

    fn version(&self) -> Result<String> {
        Ok(format!("Jool of Debian's package, {}", Kind::chosen().version()?))
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let (module, script): (&'static [&'static str], _) = match task {
            Task::Siit(task) => (&["jool_siit"], stateless(task)?),
            other => (&["jool"], stateful(other.nat64(CARD.name)?)?),
        };
        Ok(Box::new(Hosted::start(place, module, &script)?))
    }
}

/// All ports of the pool's addresses, which are routed here and are not the guest's own.
fn stateful(task: &Nat64) -> Result<String> {
    if task.sessions.is_some() {
        return Err(Failure::Unexpected("Jool has no limit of sessions".to_owned()));
    }
    if task.pool.is_empty() {
        return Err(Failure::Unexpected("Jool is to have addresses of its own".to_owned()));
    }
    let mut script = format!("jool instance add lab --netfilter --pool6 {}\n", task.prefix);
    for address in &task.pool {
        for protocol in ["tcp", "udp", "icmp"] {
            writeln!(script, "jool -i lab pool4 add --{protocol} {address} 1-65535").ok();
        }
    }
    Ok(script)
}

fn stateless(task: &Siit) -> Result<String> {
    if task.dynamic_pool.is_some() {
        return Err(Failure::Unexpected("Jool lends no addresses: name the hosts".to_owned()));
    }
    let mut script = format!("jool_siit instance add lab --netfilter --pool6 {}\n", task.prefix);
    for (four, six) in &task.hosts {
        writeln!(script, "jool_siit -i lab eamt add {six}/128 {four}/32").ok();
    }
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_of_the_pool_has_all_ports_of_each_protocol() {
        let pool = vec!["203.0.113.1".to_owned(), "203.0.113.2".to_owned()];
        let task = Nat64 { prefix: "64:ff9b::/96".to_owned(), pool, sessions: None };
        let script = stateful(&task).unwrap();
        assert!(script.starts_with("jool instance add lab --netfilter --pool6 64:ff9b::/96\n"), "{script}");
        assert_eq!(script.lines().count(), 7);
        assert!(script.ends_with("jool -i lab pool4 add --icmp 203.0.113.2 1-65535\n"), "{script}");
        assert!(stateful(&Nat64 { pool: Vec::new(), ..task.clone() }).is_err());
        assert!(stateful(&Nat64 { sessions: Some(40_000), ..task }).is_err());
    }
}
