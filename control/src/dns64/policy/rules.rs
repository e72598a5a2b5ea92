//! The settings' rules, made ready: found by name or by client, each with its sets of addresses.

use super::clients::Clients;
use super::names::Names;
use super::ranges::Addresses;
use crate::dns64::settings::{self, Family, Synthesis};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{IpAddr, Ipv4Addr};

/// A rule, made ready.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// `None`: all clients.
    clients: Option<Addresses>,
    /// `None`: however they ask.
    over: Option<Family>,
    /// `None`: all A records.
    addresses: Option<Addresses>,
    pub(super) synthesis: Synthesis,
    /// Empty: the settings'.
    pub(super) prefixes: Vec<Rfc6052>,
    pub(super) hide_a: bool,
}

impl Rule {
    fn new(rule: &settings::Rule) -> Self {
        let clients = Addresses::new(&rule.clients4, &rule.clients6);
        let addresses = Addresses::new(&rule.addresses, &[]);
        Self {
            clients: (!clients.is_empty()).then_some(clients),
            over: rule.over,
            addresses: (!addresses.is_empty()).then_some(addresses),
            synthesis: rule.synthesis,
            prefixes: rule.prefixes.clone(),
            hide_a: rule.hide_a,
        }
    }

    fn admits(&self, client: IpAddr) -> bool {
        let is_over = self.over.is_none_or(|over| (over == Family::Ipv4) == client.is_ipv4());
        is_over && self.clients.as_ref().is_none_or(|clients| clients.contains(client))
    }
}

/// All rules, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Places of the rules that hold at a name or above it, ascending; of those with names.
    named: Names<u32>,
    lists: Vec<Box<[u32]>>,
    /// Places of the rules without names but with clients.
    clients: Clients,
    /// Places of the rules without either, ascending.
    others: Vec<u32>,
    /// There are rules with addresses.
    by_address: bool,
}

impl Rules {
    pub(super) fn new(rules: &[settings::Rule]) -> Self {
        let mut made = Self { rules: rules.iter().map(Rule::new).collect(), ..Self::default() };
        made.by_address = made.rules.iter().any(|rule| rule.addresses.is_some());
        for (place, rule) in (0..).zip(rules).filter(|(_, rule)| rule.names.is_empty()) {
            if rule.clients4.is_empty() && rule.clients6.is_empty() {
                made.others.push(place);
            } else {
                made.clients.insert(place, &rule.clients4, &rule.clients6);
            }
        }
        made.named_from(rules);
        made
    }

    /// Each name that is written gets the list of all rules that it is at or below, so that one lookup finds them.
    fn named_from(&mut self, rules: &[settings::Rule]) {
        let mut written: Names<Vec<u32>> = Names::default();
        for (at, rule) in (0..).zip(rules) {
            for name in &rule.names {
                match written.at_mut(&name.0) {
                    Some(list) => list.push(at),
                    None => drop(written.insert(&name.0, vec![at])),
                }
            }
        }
        let mut places = hashbrown::HashMap::with_hasher(foldhash::fast::FixedState::default());
        for name in rules.iter().flat_map(|rule| &rule.names) {
            let mut list: Vec<u32> = written.above(&name.0).flatten().copied().collect();
            list.sort_unstable();
            list.dedup();
            let place = *places.entry(list).or_insert_with_key(|list| {
                self.lists.push(list.as_slice().into());
                u32::try_from(self.lists.len() - 1).unwrap_or(u32::MAX)
            });
            self.named.insert(&name.0, place);
        }
    }

    /// The rules with names that the name is at or below.
    pub(super) fn for_name(&self, name: &[u8]) -> &[u32] {
        let list = self.named.longest(name).and_then(|place| self.lists.get(*place as usize));
        list.map_or(&[], |list| list)
    }

    /// Different lists of rules that names have.
    #[cfg(test)]
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Whether rules with addresses exist.
    pub(super) fn by_address(&self) -> bool {
        self.by_address
    }

    /// The first rule without addresses that holds for the client, and its place.
    pub(super) fn first(&self, named: &[u32], client: IpAddr) -> Option<(u32, &Rule)> {
        self.first_of(named, client, |rule| rule.addresses.is_none())
    }

    /// As [`Self::first`], of the rules without names.
    pub(super) fn first_unnamed(&self, client: IpAddr) -> Option<&Rule> {
        self.first(&[], client).map(|(_, rule)| rule)
    }

    /// The first rule that holds for the client and for an A record with this address.
    pub(super) fn first_for(&self, named: &[u32], client: IpAddr, address: Ipv4Addr) -> Option<&Rule> {
        let holds =
            |rule: &Rule| rule.addresses.as_ref().is_none_or(|addresses| addresses.contains4(address));
        self.first_of(named, client, holds).map(|(_, rule)| rule)
    }

    /// The rules with addresses that hold for the client before the place `end`.
    pub(super) fn with_addresses<'a>(
        &'a self,
        named: &'a [u32],
        client: IpAddr,
        end: u32,
    ) -> impl Iterator<Item = &'a Rule> {
        let places = self.lists_for(named, client).flatten().filter(move |place| **place < end);
        let rules = places.filter_map(|place| self.rules.get(*place as usize));
        rules.filter(move |rule| rule.addresses.is_some() && rule.admits(client))
    }

    /// Places of all rules that may hold, ascending in each list.
    fn lists_for<'a>(&'a self, named: &'a [u32], client: IpAddr) -> impl Iterator<Item = &'a [u32]> {
        [named, &self.others].into_iter().chain(self.clients.lists(client))
    }

    fn first_of(&self, named: &[u32], client: IpAddr, holds: impl Fn(&Rule) -> bool) -> Option<(u32, &Rule)> {
        let mut first = None;
        if self.rules.is_empty() {
            return first;
        }
        for list in self.lists_for(named, client) {
            let before = first.map_or(u32::MAX, |(place, _)| place);
            let mut rules = list.iter().take_while(|place| **place < before);
            let found = rules.find_map(|place| {
                let rule = self.rules.get(*place as usize)?;
                (holds(rule) && rule.admits(client)).then_some((*place, rule))
            });
            first = found.or(first);
        }
        first
    }
}
