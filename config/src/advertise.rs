//! Router advertisements from the configuration and this host's current addresses.

use std::net::Ipv6Addr;
use std::time::Duration;

use sixway_control::neighbour_discovery::{INFINITY, Preference};
use sixway_control::router_advert::{
    AdvertisedPref64, AdvertisedPrefix as Prefix, AdvertisedRoute as Advertised, Link, Setting, Settings,
    SettingsFault, Solicited,
};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::Prefix6;

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::isatap::{Isatap, IsatapRole};
use crate::router_advertisement::{
    AdvertisedPrefix, AdvertisedRoute, Lifetime, Pref64, RouterAdvertisement, RouterPreference,
};
use crate::surroundings::Surroundings;

/// NAT64 prefixes in an advertisement.
const MOST_PREF64: usize = 4;

/// Bits of a link's prefix (RFC 4291 §2.5.1).
const SUBNET: u8 = 64;

impl Config {
    /// The contents of the advertisements on a link.
    pub fn advertised(&self, it: &RouterAdvertisement, now: &Surroundings) -> Settings {
        let lifetime = Some(seconds(it.pref64_lifetime));
        let pref64 = self.pref64(it.pref64, &self.hosts_of(it, now)).into_iter();
        let pref64 = pref64.map(|prefix| AdvertisedPref64 { prefix, lifetime });
        Settings {
            max_interval: short(it.max_interval),
            min_interval: Some(short(it.min_interval)),
            router_lifetime: Some(short(it.router_lifetime)),
            preference: preference(it.preference),
            managed: it.managed,
            other: it.other,
            hop_limit: it.hop_limit,
            reachable_time: milliseconds(it.reachable_time),
            retrans_timer: milliseconds(it.retransmit_timer),
            mtu: it.mtu,
            prefixes: self.advertised_prefixes(it, now),
            routes: it.routes.iter().map(route).collect(),
            dns_servers: it.rdnss.clone().unwrap_or_else(|| self.dns64_servers(it, now)),
            // The names were checked when they were read.
            dns_search: it.dnssl.iter().filter_map(|name| name.parse().ok()).collect(),
            dns_lifetime: Some(lifetime_of(it.dns_lifetime)),
            pref64: pref64.collect(),
            captive_portal: it.captive_portal.clone(),
            solicited: Solicited::default(),
            goodbyes: u8::from(it.goodbye),
        }
    }

    /// The prefixes that an ISATAP router advertises: the configured ones, else the site's prefix.
    pub fn advertised_over(&self, isatap: &Isatap, now: &Surroundings) -> Option<Settings> {
        if isatap.role != IsatapRole::Router {
            return None;
        }
        let mut written = self.router_advertisements.iter();
        let written = written.find(|it| it.over.as_deref() == Some(&*isatap.name));
        Some(written.map_or_else(
            || {
                Settings {
                    prefixes: isatap.prefix.map(Prefix::lasting).into_iter().collect(),
                    pref64: self
                        .pref64(Pref64::Auto, isatap.prefix.as_slice())
                        .into_iter()
                        .map(|prefix| AdvertisedPref64 { prefix, lifetime: None })
                        .collect(),
                    ..Settings::default()
                }
            },
            |it| self.advertised(it, now),
        ))
    }

    fn advertised_prefixes(&self, it: &RouterAdvertisement, now: &Surroundings) -> Vec<Prefix> {
        let written: Vec<Prefix> =
            it.prefixes.iter().filter_map(|row| self.advertised_prefix(row, now)).collect();
        if !written.is_empty() {
            return written;
        }
        let over = self.isatap.iter().find(|isatap| it.over.as_deref() == Some(&*isatap.name));
        over.and_then(|isatap| isatap.prefix).map(Prefix::lasting).into_iter().collect()
    }

    /// Networks of a link's hosts, as far as known: the advertised prefixes, else the networks of the gateway's own addresses on the link.
    pub(crate) fn hosts_of(&self, it: &RouterAdvertisement, now: &Surroundings) -> Vec<Prefix6> {
        let told: Vec<Prefix6> = self.advertised_prefixes(it, now).iter().map(|row| row.prefix).collect();
        if !told.is_empty() {
            return told;
        }
        let own = it.interface.as_deref().into_iter().flat_map(|interface| now.ipv6_of(interface));
        let mut networks: Vec<Prefix6> =
            own.filter(|own| !own.is_unicast_link_local()).map(|own| Prefix6::holding(own, SUBNET)).collect();
        networks.sort_unstable();
        networks.dedup();
        networks
    }

    fn advertised_prefix(&self, row: &AdvertisedPrefix, now: &Surroundings) -> Option<Prefix> {
        let delegated = || self.subnet(row.from.as_deref()?, row.subnet, now);
        Some(Prefix {
            prefix: row.prefix.or_else(delegated)?,
            on_link: row.on_link,
            autonomous: row.autonomous,
            valid: lifetime_of(row.valid_lifetime),
            preferred: lifetime_of(row.preferred_lifetime),
            ends: None,
        })
    }

    /// The DNS64's addresses for hosts on the link, if it listens there.
    pub(crate) fn dns64_servers(&self, it: &RouterAdvertisement, now: &Surroundings) -> Vec<Ipv6Addr> {
        let found = self.dns64.as_ref().zip(it.interface.as_deref());
        found.map(|(dns64, interface)| dns64.servers_on(interface, now)).unwrap_or_default()
    }

    /// NAT64 prefixes for these hosts: those that a DNS64 synthesises addresses with; if that is not known, the prefixes for most hosts.
    fn pref64(&self, choice: Pref64, hosts: &[Prefix6]) -> Vec<Prefix6> {
        match (choice, &self.dns64) {
            (Pref64::None, _) => Vec::new(),
            (Pref64::Prefix(prefix), _) => vec![prefix],
            (Pref64::Auto, Some(dns64)) => {
                let own = dns64.prefixes_for(hosts).unwrap_or(&dns64.prefixes);
                own.iter().take(MOST_PREF64).map(Rfc6052::prefix).collect()
            }
            (Pref64::Auto, None) => {
                let nat64 = self.nat64.first().map(|nat64| nat64.prefix);
                let siit = || self.siit.iter().find_map(|siit| siit.prefix);
                nat64.or_else(siit).map(|prefix| prefix.prefix()).into_iter().collect()
            }
        }
    }

    /// Reports values that no advertisement can contain, on any link.
    pub(crate) fn check_advertisement(&self, it: &RouterAdvertisement, place: &Place, report: &mut Report) {
        let address = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let link = Link::Multicast { address, link_layer: Some([2, 0, 0, 0, 0, 1]), mtu: u16::MAX };
        for fault in self.advertised(it, &Surroundings::default()).faults(&link) {
            let SettingsFault { setting, entry, why } = fault;
            let entry = entry.map(|entry| format!("[{entry}]")).unwrap_or_default();
            let key = key(setting).map(|key| format!(".{key}{entry}")).unwrap_or_default();
            let place = Place { key: format!("{}{key}", place.key).into(), ..place.clone() };
            report.fault(&place, why);
        }
    }
}

/// What the configuration calls it.
fn key(setting: Setting) -> Option<&'static str> {
    match setting {
        Setting::Link => Some("interface"),
        Setting::MaxInterval => Some("max_interval"),
        Setting::MinInterval => Some("min_interval"),
        Setting::RouterLifetime => Some("router_lifetime"),
        Setting::ReachableTime => Some("reachable_time"),
        Setting::Mtu => Some("mtu"),
        Setting::Prefixes => Some("prefixes"),
        Setting::Routes => Some("routes"),
        Setting::DnsServers => Some("rdnss"),
        Setting::DnsSearch => Some("dnssl"),
        Setting::Pref64 => Some("pref64"),
        Setting::CaptivePortal => Some("captive_portal"),
        Setting::Goodbyes => Some("goodbye"),
        Setting::Everything => None,
    }
}

fn route(row: &AdvertisedRoute) -> Advertised {
    let lifetime = Some(lifetime_of(row.lifetime));
    Advertised { prefix: row.prefix, preference: preference(row.preference), lifetime }
}

fn preference(written: RouterPreference) -> Preference {
    match written {
        RouterPreference::Low => Preference::Low,
        RouterPreference::Medium => Preference::Medium,
        RouterPreference::High => Preference::High,
    }
}

fn lifetime_of(written: Lifetime) -> u32 {
    match written {
        Lifetime::Infinite => INFINITY,
        Lifetime::For(time) => seconds(time),
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(INFINITY)
}

fn short(time: Duration) -> u16 {
    u16::try_from(time.as_secs()).unwrap_or(u16::MAX)
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
