//! Devices that no lab of ours has: the papers' own figures stand in their place, and recipes let others measure theirs.

use super::card::{Card, Realm};
use super::contract::{Device, Running};
use super::needs::Needs;
use super::place::Place;
use super::task::{Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::results::Machine;

/// A device of a paper.
pub struct Published {
    card: Card,
    tasks: &'static [TaskKind],
    why: &'static str,
}

const NOTHING: Needs = Needs { programs: &[], root: false, bpf: false, cpus: 1, memory_mb: 0 };

const fn published(
    [name, what]: [&'static str; 2],
    tasks: &'static [TaskKind],
    why: &'static str,
) -> Published {
    Published { card: Card { name, what, realm: Realm::Published, needs: NOTHING }, tasks, why }
}

/// FreeBSD's `stf` of 2013.
pub const FREEBSD_STF: Published = published(
    ["freebsd-stf", "FreeBSD 9.0 stf, as published in 2013"],
    &[TaskKind::Relay6to4],
    "needs a machine with FreeBSD: --remote with lab/remote/freebsd-stf.sh; the report has the paper's figures",
);

/// NetBSD's `stf` of 2013.
pub const NETBSD_STF: Published = published(
    ["netbsd-stf", "NetBSD 6.0.1 stf, as published in 2013"],
    &[TaskKind::Relay6to4],
    "needs a machine with NetBSD: --remote with lab/remote/netbsd-stf.sh; the report has the paper's figures",
);

/// OpenBSD's PF of 2014.
pub const PF: Published = published(
    ["openbsd-pf", "OpenBSD PF, as published in 2014"],
    &[TaskKind::Nat64],
    "needs a machine with OpenBSD: --remote with lab/remote/openbsd-pf-af-to.sh; the report has the paper's figures",
);

/// The program without an operating system of 2012.
pub const BARE_PC: Published = published(
    ["bare-pc", "a gateway without an operating system, as published in 2012"],
    &[TaskKind::SiteGateway, TaskKind::Router6to4],
    "its program was not published; the report has the paper's figures",
);

/// Cisco's routers of 2012.
pub const IOS: Published = published(
    ["cisco-ios", "Cisco 2821 with IOS, as published in 2012"],
    &[TaskKind::Router6to4],
    "needs a router with IOS: --remote with lab/remote/ios-6to4.sh; the report has the paper's figures",
);

impl Device for Published {
    fn card(&self) -> &Card {
        &self.card
    }

    fn tasks(&self) -> &[TaskKind] {
        self.tasks
    }

    fn cannot_run(&self, _here: &Machine) -> Option<String> {
        Some(self.why.to_owned())
    }

    fn version(&self) -> Result<String> {
        Ok(self.card.what.to_owned())
    }

    fn start(&self, _place: &Place, _task: &Task) -> Result<Box<dyn Running>> {
        Err(Failure::Unexpected(self.why.to_owned()))
    }
}
