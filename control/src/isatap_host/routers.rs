//! The potential router list (RFC 5214 §8.1), and the default router that is chosen of it (RFC 4861 §6.3.6, RFC 4191 §3.2).

use super::reachability::Detection;
use super::solicitation::Solicitation;
use crate::neighbour_discovery::Preference;
use crate::random::Random;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_dataplane::Instant;

/// How many potential routers are kept; further ones are ignored.
pub const MAX_ROUTERS: usize = 16;

/// An entry of the potential router list, and of the default router list while it has a lifetime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router {
    /// V4ADDR(i).
    pub(super) address: Ipv4Addr,
    /// The source of its advertisements.
    pub(super) link_local: Option<Ipv6Addr>,
    /// Until when it is a default router; `None`: not a default router.
    pub(super) until: Option<Instant>,
    pub(super) preference: Preference,
    pub(super) mtu: Option<u32>,
    pub(super) hop_limit: Option<u8>,
    pub(super) solicitation: Solicitation,
    pub(super) detection: Detection,
    /// Its probes were not answered, and nothing has confirmed it since.
    pub(super) failed: bool,
}

impl Router {
    fn new(address: Ipv4Addr, now: Instant, random: &mut Random) -> Self {
        Self {
            address,
            link_local: None,
            until: None,
            preference: Preference::Medium,
            mtu: None,
            hop_limit: None,
            solicitation: Solicitation::new(now, random),
            detection: Detection::new(),
            failed: false,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Routers {
    list: Vec<Router>,
    /// The default router in use.
    chosen: Option<Ipv4Addr>,
}

impl Routers {
    /// Takes a new list; what is known of routers that stay is kept.
    pub(super) fn replace(&mut self, now: Instant, addresses: &[Ipv4Addr], random: &mut Random) {
        let mut list: Vec<Router> = Vec::new();
        for address in addresses {
            if list.len() < MAX_ROUTERS && !list.iter().any(|router| router.address == *address) {
                let known = self.list.iter().find(|router| router.address == *address).copied();
                list.push(known.unwrap_or_else(|| Router::new(*address, now, random)));
            }
        }
        self.list = list;
    }

    pub(super) fn list(&self) -> &[Router] {
        &self.list
    }

    pub(super) fn list_mut(&mut self) -> &mut [Router] {
        &mut self.list
    }

    pub(super) fn find(&mut self, address: Ipv4Addr) -> Option<&mut Router> {
        self.list.iter_mut().find(|router| router.address == address)
    }

    pub(super) fn chosen(&self) -> Option<&Router> {
        self.list.iter().find(|router| Some(router.address) == self.chosen)
    }

    pub(super) fn chosen_mut(&mut self) -> Option<&mut Router> {
        let chosen = self.chosen?;
        self.find(chosen)
    }

    /// Chooses again, after `given_up` has failed if one has; whether the choice is another.
    ///
    /// Routers that have not failed come first, among them the preferred ones, among them the one in use. If all have failed, they take
    /// turns, so that all of them are probed.
    pub(super) fn choose(&mut self, now: Instant, given_up: Option<Ipv4Addr>) -> bool {
        for router in &mut self.list {
            router.until = router.until.filter(|until| *until > now);
        }
        let able = || self.list.iter().filter(|router| router.until.is_some());
        let rank = |router: &&Router| (router.preference, Some(router.address) == self.chosen);
        // The last of equals is taken by max_by_key: from behind, it is the first of the list.
        let best = able().rev().filter(|router| !router.failed).max_by_key(rank);
        let in_use = able().find(|router| Some(router.address) == self.chosen);
        let chosen = match (best, in_use) {
            (Some(best), _) => Some(best.address),
            (None, Some(in_use)) if given_up != Some(in_use.address) => Some(in_use.address),
            (None, _) => self.next_able(),
        };
        core::mem::replace(&mut self.chosen, chosen) != chosen
    }

    /// The next default router behind the one in use, around the list.
    fn next_able(&self) -> Option<Ipv4Addr> {
        let at =
            self.list.iter().position(|router| Some(router.address) == self.chosen).map_or(0, |at| at + 1);
        let (before, behind) = self.list.split_at(at.min(self.list.len()));
        behind.iter().chain(before).find(|router| router.until.is_some()).map(|router| router.address)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let of = |router: &Router| {
            let times = [Some(router.solicitation.due()), router.detection.due(), router.until];
            times.into_iter().flatten().min()
        };
        self.list.iter().filter_map(of).min()
    }
}
