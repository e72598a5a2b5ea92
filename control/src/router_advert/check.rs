//! The limits of each setting, with their clauses.

use super::contents;
use super::settings::{AdvertisedPrefix, Link, Setting, Settings, SettingsFault};
use crate::isatap;
use crate::neighbour_discovery::{Pref64, ScaledLifetime, is_link_local};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::Prefix6;
use std::collections::BTreeSet;

/// RFC 8200 §5: no IPv6 link has a smaller MTU.
const MIN_MTU: u16 = 1_280;
/// How many packets one advertisement may be split into (RFC 4861 §6.2.3).
pub const MAX_PARTS: usize = 3;
const MAX_PREFIXES: usize = 16;
/// RFC 4191 §4: more SHOULD NOT be sent.
const MAX_ROUTES: usize = 17;
const MAX_DNS: usize = 8;
const MAX_PREF64: usize = 4;
/// RFC 8910 §2.3: a longer URI SHOULD NOT be given.
const MAX_URI: usize = 255;
/// RFC 4861 §10: MAX_FINAL_RTR_ADVERTISEMENTS.
const MAX_GOODBYES: u8 = 3;

/// Collects what is wrong.
struct Faults(Vec<SettingsFault>);

impl Faults {
    fn say(&mut self, setting: Setting, wrong: bool, why: impl Into<String>) {
        if wrong {
            self.0.push(SettingsFault { setting, entry: None, why: why.into() });
        }
    }

    fn entry(&mut self, setting: Setting, entry: usize, wrong: bool, why: impl Into<String>) {
        if wrong {
            self.0.push(SettingsFault { setting, entry: Some(entry), why: why.into() });
        }
    }

    fn at_most(&mut self, setting: Setting, count: usize, most: usize, what: &str) {
        self.say(
            setting,
            count > most,
            format!("{count} {what}; at most {most} can be advertised on a link"),
        );
    }

    fn no_twins(&mut self, setting: Setting, prefixes: impl Iterator<Item = Prefix6>) {
        let mut seen = BTreeSet::new();
        for (entry, prefix) in prefixes.enumerate() {
            self.entry(setting, entry, !seen.insert(prefix), format!("{prefix} appears twice"));
        }
    }
}

impl Settings {
    /// Everything that is wrong with these settings on this link, all faults together; empty if they are valid.
    pub fn faults(&self, link: &Link) -> Vec<SettingsFault> {
        let mut faults = Faults(Vec::new());
        of_link(&mut faults, self, link);
        of_times(&mut faults, self);
        of_prefixes(&mut faults, self);
        of_options(&mut faults, self);
        if faults.0.is_empty() {
            let parts = contents::most_parts(self, link);
            let why = format!(
                "needs {parts:?} packets of the link's MTU; one advertisement may use at most {MAX_PARTS}"
            );
            faults.say(Setting::Everything, parts.is_none_or(|parts| parts > MAX_PARTS), why);
        }
        faults.0
    }
}

fn of_link(faults: &mut Faults, settings: &Settings, link: &Link) {
    match link {
        Link::Multicast { address, .. } => faults.say(
            Setting::Link,
            !is_link_local(*address),
            format!("{address} is not link-local, and advertisements come from a link-local address (RFC 4861 §4.2)"),
        ),
        Link::Isatap { local, .. } => faults.say(Setting::Link, !is_unicast(*local), format!("{local} is not a unicast address")),
    }
    let most = link.mtu();
    faults.say(
        Setting::Link,
        most < MIN_MTU,
        format!("an MTU of {most} is below 1,280, the minimum of IPv6 (RFC 8200 §5)"),
    );
    if let Some(mtu) = settings.mtu {
        faults.say(
            Setting::Mtu,
            mtu < MIN_MTU,
            format!("{mtu} is below 1,280, the minimum of IPv6 (RFC 8200 §5)"),
        );
        faults.say(Setting::Mtu, mtu > most, format!("{mtu} exceeds the link's MTU, {most}"));
    }
}

fn is_unicast(address: Ipv4Addr) -> bool {
    !address.is_multicast() && !address.is_unspecified() && !address.is_broadcast() && !address.is_loopback()
}

fn of_times(faults: &mut Faults, settings: &Settings) {
    let max = settings.max_interval;
    let range = format!("{max} s; must be 4 to 1,800 s (RFC 4861 §6.2.1)");
    faults.say(Setting::MaxInterval, !(4..=1_800).contains(&max), range);
    if let Some(min) = settings.min_interval {
        let wrong = min < 3 || u32::from(min) * 4 > u32::from(max) * 3;
        let why = format!(
            "{min} s; must be 3 s to three quarters of the maximum interval, {max} s (RFC 4861 §6.2.1)"
        );
        faults.say(Setting::MinInterval, wrong, why);
    }
    if let Some(lifetime) = settings.router_lifetime {
        let wrong = lifetime != 0 && !(max..=9_000).contains(&lifetime);
        let why = format!(
            "{lifetime} s; must be 0, or from the maximum interval, {max} s, to 9,000 s (RFC 4861 §6.2.1)"
        );
        faults.say(Setting::RouterLifetime, wrong, why);
    }
    let why = "must be at most 3,600,000 ms (RFC 4861 §6.2.1)";
    faults.say(Setting::ReachableTime, settings.reachable_time > 3_600_000, why);
    let why = "at most 3 (RFC 4861 §10, MAX_FINAL_RTR_ADVERTISEMENTS)";
    faults.say(Setting::Goodbyes, settings.goodbyes > MAX_GOODBYES, why);
}

fn of_prefixes(faults: &mut Faults, settings: &Settings) {
    faults.at_most(Setting::Prefixes, settings.prefixes.len(), MAX_PREFIXES, "prefixes");
    faults.no_twins(Setting::Prefixes, settings.prefixes.iter().map(|entry| entry.prefix));
    for (at, AdvertisedPrefix { prefix, valid, preferred, .. }) in settings.prefixes.iter().enumerate() {
        let link_local = prefix.overlaps(isatap::LINK_LOCAL);
        faults.entry(
            Setting::Prefixes,
            at,
            link_local,
            "the link-local prefix cannot be advertised (RFC 4861 §6.2.1)",
        );
        let multicast = prefix.address().is_multicast();
        faults.entry(Setting::Prefixes, at, multicast, format!("{prefix} is multicast"));
        let why = format!(
            "the preferred lifetime, {preferred} s, exceeds the valid lifetime, {valid} s (RFC 4861 §6.2.1)"
        );
        faults.entry(Setting::Prefixes, at, preferred > valid, why);
    }
}

fn of_options(faults: &mut Faults, settings: &Settings) {
    faults.at_most(Setting::Routes, settings.routes.len(), MAX_ROUTES, "routes (RFC 4191 §4)");
    faults.no_twins(Setting::Routes, settings.routes.iter().map(|entry| entry.prefix));
    faults.at_most(Setting::DnsServers, settings.dns_servers.len(), MAX_DNS, "servers");
    for (at, server) in settings.dns_servers.iter().enumerate() {
        let wrong = server.is_multicast() || *server == Ipv6Addr::UNSPECIFIED;
        faults.entry(
            Setting::DnsServers,
            at,
            wrong,
            format!("{server} is not a unicast address (RFC 8106 §5.3.1)"),
        );
    }
    faults.at_most(Setting::DnsSearch, settings.dns_search.len(), MAX_DNS, "names");
    faults.at_most(Setting::Pref64, settings.pref64.len(), MAX_PREF64, "NAT64 prefixes");
    faults.no_twins(Setting::Pref64, settings.pref64.iter().map(|entry| entry.prefix));
    for (at, entry) in settings.pref64.iter().enumerate() {
        if let Err(error) = Pref64::new(entry.prefix, ScaledLifetime::ZERO) {
            faults.entry(Setting::Pref64, at, true, error.to_string());
        }
    }
    if let Some(uri) = &settings.captive_portal {
        let wrong =
            uri.is_empty() || uri.len() > MAX_URI || !uri.bytes().all(|octet| octet.is_ascii_graphic());
        let why = "must be a URI of 1 to 255 ASCII characters (RFC 8910 §2.3)";
        faults.say(Setting::CaptivePortal, wrong, why);
    }
}
