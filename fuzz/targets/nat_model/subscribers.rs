//! What the model knows of subscribers: limits (RFC 6888 REQ-4, REQ-5), rates, and whose port blocks are whose (RFC 6888 §5).

use super::model::{Model, POOL, SECOND, Session};
use super::settings::{BLOCK, Giving, ceil};
use sixway_dataplane::DropReason;
use sixway_dataplane::nat::NatProtocol;
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A subscriber with this number or more is bound by its share.
const FEW: usize = 64;

/// The time at which the next event would come if they came evenly: a refused packet may have counted or not.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    least: u64,
    most: u64,
}

impl Due {
    const fn accepts(due: u64, step: u64, now: u64) -> bool {
        let due = due.saturating_sub(now);
        due + step <= SECOND
    }

    /// Whether an event of `limit` a second must be refused, and whether it may be. It came, or it was refused.
    fn takes(&mut self, limit: u32, is_taken: bool, now: u64) -> (bool, bool) {
        let Some(step) = SECOND.checked_div(limit.into()) else { return (false, false) };
        let over = (!Self::accepts(self.least, step, now), !Self::accepts(self.most, step, now));
        if is_taken {
            self.least = self.least.max(now) + step;
            self.most = self.most.min((now + SECOND).saturating_sub(step)).max(now) + step;
        } else {
            // It came before the limit that it is over, or after.
            if Self::accepts(self.most, step, now) {
                self.most = self.most.max(now) + step;
            }
        }
        over
    }
}

/// A port block of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) address: Ipv4Addr,
    pub(crate) first: u16,
    pub(crate) subscriber: u128,
    /// Since when none of its ports is used.
    pub(crate) idle_since: Option<u64>,
}

impl Block {
    fn holds(&self, outside: Endpoint4) -> bool {
        self.address == outside.address && (self.first..=self.first + (BLOCK - 1)).contains(&outside.port)
    }

    fn ports(&self) -> impl Iterator<Item = Endpoint4> {
        let Self { address, first, .. } = *self;
        (first..=first + (BLOCK - 1)).map(move |port| Endpoint4::new(address, port))
    }
}

/// Of all subscribers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscribers {
    /// New sessions, and new bindings.
    rates: BTreeMap<u128, [Due; 2]>,
    /// In the order in which they were given.
    pub(crate) blocks: Vec<Block>,
    /// Whether an address was ever drained: blocks may be returned in another order then.
    pub(crate) has_drained: bool,
}

impl Subscribers {
    /// The address of a subscriber's blocks.
    pub(crate) fn block_address(&self, subscriber: u128) -> Option<Ipv4Addr> {
        self.blocks.iter().find(|block| block.subscriber == subscriber).map(|block| block.address)
    }

    /// A subscriber without hosts and blocks is forgotten.
    pub(crate) fn forget(&mut self, has_hosts: impl Fn(u128) -> bool) {
        let blocks = &self.blocks;
        self.rates.retain(|one, _| has_hosts(*one) || blocks.iter().any(|block| block.subscriber == *one));
    }
}

impl Model {
    fn is_of(&self, subscriber: u128) -> impl Fn(&&Session) -> bool {
        let family = self.settings.family;
        move |s| s.inside.is_some_and(|inside| family.subscriber(inside.address) == subscriber)
    }

    fn is_known(&self, subscriber: u128) -> bool {
        self.bindings.iter().any(|b| self.subscriber(b.inside.address) == subscriber)
            || self.subscribers.block_address(subscriber).is_some()
    }

    /// Sessions of a subscriber: from inside or answered, and from outside.
    pub(crate) fn sessions_of(&self, subscriber: u128) -> (usize, usize) {
        let all = self.sessions.iter().filter(self.is_of(subscriber)).count();
        let outside = self.sessions.iter().filter(self.is_of(subscriber)).filter(|s| s.from_outside).count();
        (all - outside, outside)
    }

    /// Dynamic bindings of a subscriber by protocol.
    pub(crate) fn bindings_of(&self, subscriber: u128) -> [usize; 3] {
        let mut count = [0; 3];
        let dynamic = self.bindings.iter().filter(|b| !b.is_static);
        dynamic
            .filter(|b| self.subscriber(b.inside.address) == subscriber)
            .for_each(|b| count[b.protocol as usize] += 1);
        count
    }

    /// Which limits and shares a packet from inside is over.
    pub(crate) fn over_limits(&self, protocol: NatProtocol, host: Ipv6Addr, binds: bool) -> Vec<DropReason> {
        let subscriber = self.subscriber(host);
        if !self.is_known(subscriber) {
            return Vec::new();
        }
        let limits = self.settings.limits;
        let is_over = |limit: u32, has: usize| limit > 0 && has >= limit as usize;
        let has_share = |has: usize, left: usize| has < FEW || has / 8 <= left;
        let (sessions, _) = self.sessions_of(subscriber);
        let bindings = self.bindings_of(subscriber);
        let all: usize = bindings.iter().sum();
        let left = (
            self.settings.most_sessions() - self.sessions.len(),
            self.settings.most_bindings() - self.bindings.len(),
        );
        let is_over_any = is_over(limits.sessions, sessions)
            || binds
                && (is_over(limits.bindings, all)
                    || is_over(limits.bindings_of[protocol as usize], bindings[protocol as usize]));
        // Who is exempt has shares all the same.
        let is_limited = is_over_any && !self.settings.is_exempt(subscriber);
        let is_shared = !has_share(sessions, left.0) || binds && !has_share(all, left.1);
        let limit = is_limited.then_some(DropReason::SubscriberLimit);
        limit.into_iter().chain(is_shared.then_some(DropReason::SubscriberShare)).collect()
    }

    /// Whether a packet from inside that needs a session, and perhaps a binding, is over a rate, and whether it may be. It was taken or refused.
    pub(crate) fn over_rates(&mut self, host: Ipv6Addr, binds: bool, is_taken: bool) -> (bool, bool) {
        let subscriber = self.subscriber(host);
        if self.settings.is_exempt(subscriber) || !self.is_known(subscriber) && !is_taken {
            return (false, false);
        }
        let limits = self.settings.limits;
        let now = self.now;
        let [sessions, bindings] = self.subscribers.rates.entry(subscriber).or_default();
        let one = sessions.takes(limits.new_sessions_per_second, is_taken, now);
        let other = match binds {
            true => bindings.takes(limits.new_bindings_per_second, is_taken, now),
            false => (false, false),
        };
        (one.0 || other.0, one.1 || other.1)
    }

    /// Whether packets from outside may make one more session of a host.
    pub(crate) fn may_open_from_outside(&self, host: Ipv6Addr) -> bool {
        let (inside, outside) = self.sessions_of(self.subscriber(host));
        let is_exempt = self.settings.is_exempt(self.subscriber(host));
        let limit = if is_exempt { 0 } else { self.settings.limits.sessions as usize };
        let part = (limit / 4).max(1);
        let most = self.settings.most_sessions();
        let from_outside = self.sessions.iter().filter(|session| session.from_outside).count();
        let left = (most - self.sessions.len(), most - most / 4 - from_outside);
        let has_share = |has: usize, left: usize| has < FEW || has / 8 <= left;
        (limit == 0 || outside < part && inside + outside < limit + part)
            && has_share(inside + outside, left.0)
            && has_share(outside, left.1)
    }

    /// Bound or quarantined ports of a block.
    fn taken(&self, block: &Block, protocol: NatProtocol) -> usize {
        let bound =
            self.bindings.iter().filter(|b| !b.is_static && b.protocol == protocol && block.holds(b.outside));
        let quarantined =
            self.quarantined.iter().filter(|q| q.protocol == protocol && block.holds(q.outside));
        bound.count() + quarantined.count()
    }

    fn is_unused(&self, block: &Block) -> bool {
        NatProtocol::ALL.iter().all(|protocol| self.taken(block, *protocol) == 0)
    }

    /// Notes since when blocks are unused.
    pub(crate) fn look_at_blocks(&mut self) {
        let unused: Vec<bool> = self.subscribers.blocks.iter().map(|block| self.is_unused(block)).collect();
        let now = ceil(self.now);
        for (block, is_unused) in self.subscribers.blocks.iter_mut().zip(unused) {
            block.idle_since = is_unused.then(|| block.idle_since.unwrap_or(now));
        }
    }

    fn blocks_of(&self, subscriber: u128) -> Vec<Block> {
        self.subscribers.blocks.iter().filter(|block| block.subscriber == subscriber).copied().collect()
    }

    /// Free ports of a block.
    fn is_any_free(&self, block: &Block, protocol: NatProtocol) -> bool {
        block.ports().any(|outside| self.may_be_given(protocol, outside))
    }

    /// Free blocks of an address.
    fn free_blocks(&self, address: Ipv4Addr) -> Vec<Block> {
        let block = |first| Block { address, first, subscriber: 0, idle_since: None };
        let is_given = |block: &Block| {
            self.subscribers.blocks.iter().any(|it| it.address == address && it.first == block.first)
        };
        self.settings.blocks().into_iter().map(block).filter(|block| !is_given(block)).collect()
    }

    /// The blocks that a subscriber may get for a host, of which some are to be returned by another one before.
    fn new_blocks(&self, host: Ipv6Addr) -> Vec<Block> {
        let subscriber = self.subscriber(host);
        let count = self.blocks_of(subscriber).len();
        match self.settings.giving {
            Giving::Single => Vec::new(),
            Giving::Deterministic => {
                let mapped = self.settings.mapping().and_then(|mapping| mapping.block_of(host));
                let all = POOL.into_iter().flat_map(|address| self.free_blocks(address));
                all.filter(|block| mapped == Some((block.address, block.first))).collect()
            }
            Giving::Blocks { most, .. } if count >= most as usize => Vec::new(),
            Giving::Blocks { .. } => {
                let addresses = self.addresses(host);
                let free: Vec<Block> =
                    addresses.iter().flat_map(|address| self.free_blocks(*address)).collect();
                if count > 0 {
                    // The last block of an address is for those without any.
                    let reserved = usize::from(self.settings.blocks().len() > 1);
                    return if free.len() > reserved { free } else { Vec::new() };
                }
                if !free.is_empty() {
                    return free;
                }
                let unused = self
                    .subscribers
                    .blocks
                    .iter()
                    .filter(|block| block.idle_since.is_some() && addresses.contains(&block.address));
                let first = unused.clone().filter_map(|block| block.idle_since).min();
                let is_first = |block: &&Block| self.subscribers.has_drained || block.idle_since == first;
                unused.filter(is_first).copied().collect()
            }
        }
    }

    /// Why an inside endpoint can get no port, and whether that is sure.
    pub(crate) fn without_port_in_blocks(
        &self,
        protocol: NatProtocol,
        inside: Endpoint6,
    ) -> (bool, Vec<DropReason>) {
        let own = self.blocks_of(self.subscriber(inside.address));
        let new = self.new_blocks(inside.address);
        if own.iter().chain(&new).any(|block| self.is_any_free(block, protocol)) {
            return (true, Vec::new());
        }
        let is_quarantined = |block: &&Block| {
            self.quarantined.iter().any(|q| q.protocol == protocol && block.holds(q.outside))
        };
        if own.last().as_ref().is_some_and(is_quarantined) {
            return (true, Vec::new());
        }
        let most = match self.settings.giving {
            Giving::Blocks { most, .. } => most as usize,
            Giving::Single | Giving::Deterministic => 1,
        };
        let reason = if own.len() >= most { DropReason::SubscriberLimit } else { DropReason::PortPoolEmpty };
        (!own.iter().any(|block| is_quarantined(&block)), vec![reason])
    }

    /// The real NAT has given a port: it is lawful.
    pub(crate) fn give_in_block(&mut self, protocol: NatProtocol, inside: Endpoint6, outside: Endpoint4) {
        let subscriber = self.subscriber(inside.address);
        assert!(self.settings.is_ours(outside.port) && POOL.contains(&outside.address), "{outside}");
        assert!(self.is_free(protocol, outside), "{outside} is in use");
        let own = self.blocks_of(subscriber);
        let is_any_free = own.iter().any(|block| self.is_any_free(block, protocol));
        let at = self.subscribers.blocks.iter().position(|block| block.holds(outside));
        let its = at.map(|at| self.subscribers.blocks[at]);
        if let Some(block) = its.filter(|block| block.subscriber == subscriber) {
            let quarantined = self.quarantined.iter().position(|q| q.is_of(protocol, outside));
            let Some(quarantined) = quarantined else {
                // The oldest block with a quarter of its ports free, so that others become unused.
                let roomy = own.iter().find(|it| self.taken(it, protocol) * 4 <= usize::from(BLOCK) * 3);
                let roomy = roomy.filter(|it| self.is_any_free(it, protocol));
                assert!(roomy.is_none_or(|roomy| roomy == &block), "{outside} is not of {roomy:?}: {own:?}");
                return;
            };
            let new = self.new_blocks(inside.address);
            assert!(!is_any_free && new.is_empty(), "{outside} is quarantined, and others are free");
            assert_eq!(self.quarantined.remove(quarantined).subscriber, subscriber, "{outside}");
            return;
        }
        let new = self.new_blocks(inside.address);
        let found = new.iter().find(|block| block.holds(outside));
        assert!(!is_any_free, "a new block for {outside}, and ports are free in {own:?}");
        assert!(found.is_some(), "{outside} for {inside} is not of {new:?}, and own are {own:?}");
        let may_be = |q: &super::model::Quarantined| q.protocol == protocol && q.outside == outside;
        assert!(!self.quarantined.iter().any(may_be), "{outside} was another one's lately");
        let first = outside.port / BLOCK * BLOCK;
        if let Some(returned) = at {
            self.subscribers.blocks.remove(returned);
        }
        self.subscribers.blocks.push(Block { address: outside.address, first, subscriber, idle_since: None });
    }

    /// The blocks that the real NAT says are given, each with its subscriber. Those that were returned had to be unused for long enough.
    pub(crate) fn returned(&mut self, real: &[(u128, Ipv4Addr, u16)]) {
        let idle = match self.settings.giving {
            Giving::Blocks { idle, .. } => u64::from(idle),
            Giving::Single | Giving::Deterministic => 300,
        };
        let now = self.now;
        let draining = self.draining.clone();
        let is_given = |block: &Block| real.contains(&(block.subscriber, block.address, block.first));
        for block in self.subscribers.blocks.iter().filter(|block| !is_given(block)) {
            let is_over = block.idle_since.is_some_and(|since| ceil(now) + 1 >= since + idle);
            let is_unused = block.idle_since.is_some() && self.subscribers.has_drained;
            assert!(is_over || is_unused, "{block:?} was returned at {now}, {draining:?} draining");
        }
        self.subscribers.blocks.retain(is_given);
        self.forget_subscribers();
        for block in &self.subscribers.blocks {
            let is_late = block.idle_since.is_some_and(|since| now / SECOND > since + idle + 1);
            assert!(
                !is_late || self.subscribers.has_drained,
                "{block:?} was not returned at {now} {:?} {:?} {:?} {:?}",
                self.settings,
                self.bindings,
                self.quarantined,
                self.subscribers.blocks
            );
        }
        assert_eq!(self.subscribers.blocks.len(), real.len(), "blocks: {real:?}");
    }
}
