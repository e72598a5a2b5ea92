//! TAYGA (Debian's package): stateless translation in user space, and with this kernel's masquerade behind it a NAT64 for many hosts, as in the
//! paper of 2014.

use super::card::{Card, Realm};
use super::contract::{Device, Running};
use super::kernel::{Masquerade, connections, delete_connections, memory_of_connections};
use super::needs::Needs;
use super::place::Place;
use super::program::Program;
use super::task::{Siit, Task, TaskKind};
use crate::failure::{Asking as _, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::programs;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(5);

/// TAYGA alone.
pub struct Tayga;

/// TAYGA and masquerade.
pub struct SharingTayga;

const TAYGA: Card = Card {
    name: "tayga",
    what: "TAYGA, stateless",
    realm: Realm::Here,
    needs: Needs { programs: &["ip", "tayga"], ..Needs::NAMESPACE },
};

const SHARING: Card = Card {
    name: "tayga-masquerade",
    what: "TAYGA, with this kernel's masquerade",
    realm: Realm::Here,
    needs: Needs { programs: &["ip", "tayga", "nft"], ..Needs::NAMESPACE },
};

/// Addresses of hosts between TAYGA and masquerade (the paper's), and those of TAYGA itself, which no experiment has.
const BETWEEN: &str = "172.16.0.0/12";
const OWN: &str = "198.19.255.1";
const OWN6: &str = "2001:db8:ffff::fd";
const LINK: &str = "nat64";

impl Device for Tayga {
    fn card(&self) -> &Card {
        &TAYGA
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Siit]
    }

    fn version(&self) -> Result<String> {
        version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        Ok(Box::new(start(place, task.siit(TAYGA.name)?, Vec::new())?))
    }
}

impl Device for SharingTayga {
    fn card(&self) -> &Card {
        &SHARING
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Nat64]
    }

    fn has_pool(&self) -> bool {
        false
    }

    fn version(&self) -> Result<String> {
        version()
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let task = task.nat64(SHARING.name)?;
        let rules = Masquerade::new(place, &[BETWEEN.to_owned()], &task.pool)?.apply(place)?;
        let siit =
            Siit { prefix: task.prefix.clone(), hosts: Vec::new(), dynamic_pool: Some(BETWEEN.to_owned()) };
        Ok(Box::new(
            start(place, &siit, vec![rules])?
                .counting(connections, memory_of_connections)
                .forgetting(delete_connections),
        ))
    }
}

/// By its package: the program has no option for it.
fn version() -> Result<String> {
    let query = ["-W", "-f", "TAYGA ${Version}", "tayga"];
    let said = Command::new("dpkg-query").args(query).output().asking(|| "dpkg-query".to_owned())?;
    match said.status.success() {
        true => Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned()),
        false => Ok(format!("TAYGA at {}", programs::require("tayga")?.display())),
    }
}

fn start(place: &Place, task: &Siit, mut commands: Vec<String>) -> Result<Program> {
    place.network.forwards(place.host)?;
    let text = configuration(place, task);
    commands.push(format!("tayga --nodetach -c - <<END\n{text}END"));
    let file = place.network.file(&format!("{}.tayga", place.host), &text)?;
    let host = place.network.host(place.host)?;
    let mut make = command("tayga")?;
    make.arg("--mktun").arg("-c").arg(&file);
    host.run(make, SHORT)?.succeeded()?;
    host.ip(&format!("link set {LINK} up"))?;
    let hosts = task.hosts.iter().map(|(four, _)| format!("{four}/32"));
    let routes = hosts.chain(task.dynamic_pool.clone()).chain([task.prefix.clone()]);
    let routes: String = routes.map(|route| format!("route add {route} dev {LINK}\n")).collect();
    let mut add = command("ip")?;
    add.arg("-batch").arg(place.network.file(&format!("{}.routes", place.host), &routes)?);
    host.run(add, SHORT)?.succeeded()?;
    let launch = move |place: &Place| {
        let mut tayga = command("tayga")?;
        tayga.arg("--nodetach").arg("-c").arg(&file);
        let process = place.network.start(place.host, tayga)?;
        // It opens the device last.
        let host = place.network.host(place.host)?;
        interrupt::wait_until(SHORT, "tayga's device", || {
            place.network.with_process(process, |process| process.must_run())??;
            Ok(!host.ip(&format!("link show {LINK}"))?.contains("NO-CARRIER"))
        })?;
        Ok(process)
    };
    Program::start(place, commands, Box::new(launch))
}

fn configuration(place: &Place, task: &Siit) -> String {
    let mut text = format!("tun-device {LINK}\nipv4-addr {OWN}\nprefix {}\n", task.prefix);
    if task.prefix != "64:ff9b::/96" {
        writeln!(text, "ipv6-addr {OWN6}").ok();
    }
    for (four, six) in &task.hosts {
        writeln!(text, "map {four} {six}").ok();
    }
    if let Some(pool) = &task.dynamic_pool {
        writeln!(text, "dynamic-pool {pool}\ndata-dir {}", place.network.folder().display()).ok();
    }
    text
}
