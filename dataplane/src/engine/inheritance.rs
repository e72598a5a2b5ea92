//! Sessions of another process, before the workers run: one worker has to own both ends of each.
//!
//! The other process had its workers, too: sessions connect hosts and blocks of the same worker, never of two workers.
//! So each connected group goes to one worker here. Where the key is the same, that is the worker of the hosts, and the blocks that had
//! moved move there again. Where it is not, it is the worker of most of the blocks, and hosts that belong elsewhere stay with them.

use super::Engine;
use crate::identity::Identity;
use crate::nat::{Inside, NatProtocol, Outside};
use crate::stateful::Stateful;
use crate::verdict::WorkerId;
use core::net::Ipv6Addr;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;

/// Both ends of a session.
pub type SessionEnds = (Inside<Endpoint6>, NatProtocol, Outside<Endpoint4>);

/// Hosts and blocks that sessions connect.
#[derive(Default)]
struct Group {
    hosts: Vec<Ipv6Addr>,
    /// Each by its first port.
    blocks: Vec<u16>,
}

impl Engine {
    /// Makes one worker own both ends of each of these sessions, as far as it can be done: blocks without a taken port move, and hosts
    /// that have nothing elsewhere.
    pub fn unite(engines: &mut [Self], mechanism: Identity, sessions: impl IntoIterator<Item = SessionEnds>) {
        let Some((first, [_, ..])) = engines.split_first_mut() else { return };
        let mut of_translator = BTreeMap::<usize, Vec<SessionEnds>>::new();
        for ends in sessions {
            if let Some(index) = first.stateful_index(mechanism, ends.2.0) {
                of_translator.entry(index).or_default().push(ends);
            }
        }
        for (index, sessions) in of_translator {
            let nats = engines.iter_mut().filter_map(|engine| engine.stateful().nth(index));
            unite_in(nats.collect(), sessions);
        }
    }
}

/// The same in one translator, of which each worker has a share.
fn unite_in(mut nats: Vec<&mut dyn Stateful>, sessions: Vec<SessionEnds>) {
    if !nats[0].blocks_move() {
        return;
    }
    // The sessions of static bindings are where these are.
    let is_dynamic = |(_, protocol, outside): &SessionEnds| nats[0].gives(*protocol, *outside);
    let size = nats[0].ports_per_block();
    for group in groups(sessions.into_iter().filter(is_dynamic), size) {
        let worker = worker_of(&group, &nats);
        for port in group.blocks {
            let owner = usize::from(nats[0].worker_of_block(port).0);
            let moved = nats.get_mut(owner).and_then(|nat| nat.give_spare(port, worker));
            if let Some(moved) = moved {
                nats.iter_mut().for_each(|nat| {
                    nat.block_moved(moved);
                });
            }
        }
        for host in group.hosts {
            let owner = nats[0].worker_of_inside(host);
            if owner != worker && !nats.iter().any(|nat| nat.has_host(host)) {
                nats.iter_mut().for_each(|nat| nat.except(host, worker));
            }
        }
    }
}

/// The groups that these sessions connect, with blocks of this size.
fn groups(sessions: impl IntoIterator<Item = SessionEnds>, size: u16) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let (mut of_host, mut of_block) = (BTreeMap::new(), BTreeMap::new());
    for (inside, _, outside) in sessions {
        let (host, port) = (inside.0.address, outside.0.port / size * size);
        let known = of_host.get(&host).copied().or_else(|| of_block.get(&port).copied());
        let into = known.unwrap_or_else(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        if of_host.insert(host, into).is_none() {
            groups[into].hosts.push(host);
        }
        match of_block.get(&port).copied() {
            None => {
                of_block.insert(port, into);
                groups[into].blocks.push(port);
            }
            Some(other) if other != into => {
                // The smaller one becomes part of the other.
                let size = |group: usize| groups[group].hosts.len() + groups[group].blocks.len();
                let (from, into) = if size(other) < size(into) { (other, into) } else { (into, other) };
                let Group { hosts, blocks } = std::mem::take(&mut groups[from]);
                of_host.extend(hosts.iter().map(|host| (*host, into)));
                of_block.extend(blocks.iter().map(|port| (*port, into)));
                groups[into].hosts.extend(hosts);
                groups[into].blocks.extend(blocks);
            }
            Some(_) => {}
        }
    }
    groups.retain(|group| !group.hosts.is_empty());
    groups
}

/// The worker for a group: that of a block which cannot move or of a host that has bindings; else that of all hosts; else that of most blocks.
fn worker_of(group: &Group, nats: &[&mut dyn Stateful]) -> WorkerId {
    let owner = |port: &u16| nats[0].worker_of_block(*port);
    let is_fixed =
        |port: &&u16| nats.get(usize::from(owner(port).0)).is_some_and(|nat| !nat.is_spare(**port));
    if let Some(port) = group.blocks.iter().find(is_fixed) {
        return owner(port);
    }
    let hosts = || group.hosts.iter().map(|host| nats[0].worker_of_inside(*host));
    let is_bound = |host: &&Ipv6Addr| nats.iter().any(|nat| nat.has_host(**host));
    if let Some(host) = group.hosts.iter().find(is_bound) {
        return nats[0].worker_of_inside(*host);
    }
    let first = hosts().next().unwrap_or_default();
    if hosts().all(|worker| worker == first) {
        return first;
    }
    let mut blocks = BTreeMap::<u8, usize>::new();
    group.blocks.iter().for_each(|port| *blocks.entry(owner(port).0).or_default() += 1);
    blocks.into_iter().max_by_key(|(_, count)| *count).map_or(first, |(worker, _)| WorkerId(worker))
}
