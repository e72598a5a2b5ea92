//! Checks of the NAT46 against other sections, and the addresses that its mappings must not use.

use sixway_dataplane::mechanism::nat46::MappingSettings;
use sixway_wire::{Prefix4, Prefix6};

use crate::config::Config;
use crate::fault::Report;
use crate::nat46::Nat46;
use crate::route::Route;
use crate::section::{Reader, place_of};

impl Config {
    /// The NAT46.
    pub fn nat46(&self) -> Option<&Nat46> {
        self.others.nat46()
    }

    /// The settings of its mappings: without this gateway's own address, and without servers under prefixes of its translators.
    pub fn mapping_settings(&self) -> Option<MappingSettings> {
        let nat46 = self.nat46()?;
        let settings = nat46.settings();
        let own4 = self.gateway.ipv4_address.map(|own| Prefix4::holding(own, 32));
        let own6 = self.gateway.ipv6_address.map(|own| Prefix6::holding(own, 128));
        let nat64 = self.nat64.iter().map(|it| it.prefix.prefix());
        let siit = self.siit.iter().filter_map(|it| Some(it.prefix?.prefix()));
        Some(MappingSettings {
            excluded: own4.into_iter().collect(),
            not_servers: settings.not_servers.iter().copied().chain(nat64).chain(siit).chain(own6).collect(),
            by_name: self.dns64.is_some(),
            ..settings
        })
    }
}

/// Reports what is missing in the NAT46 or in the sections that it needs.
pub(crate) fn check(config: &Config, section: &Reader, report: &mut Report) {
    let Some(nat46) = config.nat46() else { return };
    for mapping in &nat46.static_mappings {
        let place = place_of(section, "static");
        if config.gateway.ipv4_address == Some(mapping.address) {
            let what = "packets to it belong to the gateway; choose another address of the pool";
            report.fault(&place, format!("{} is gateway.ipv4_address: {what}", mapping.address));
        }
        if config.gateway.ipv6_address == Some(mapping.server) {
            let what = "this is the gateway itself; write another server, or remove the mapping";
            report.fault(&place, format!("{} is gateway.ipv6_address: {what}", mapping.server));
        }
        let nat64 = config.nat64.iter().map(|it| (it.prefix, &it.name));
        let siit = config.siit.iter().filter_map(|it| Some((it.prefix?, &it.name)));
        if let Some((prefix, name)) = nat64.chain(siit).find(|(prefix, _)| prefix.contains(mapping.server)) {
            let what = "it is the image of an IPv4 address; write that server's own IPv6 address, or remove the mapping";
            let of = prefix.prefix();
            report.fault(&place, format!("{} is under {of} of {name}: {what}", mapping.server));
        }
    }
    if nat46.servers.is_empty() && nat46.static_mappings.is_empty() {
        let what = "no name leads to a server; write their prefixes, or remove the key for all global unicast addresses";
        report.warn(
            &place_of(section, "servers"),
            format!("is empty, and there are no static mappings: {what}"),
        );
    } else if nat46.servers.is_empty() && config.dns64.is_some() {
        let what = "no name leads to a server, only static mappings are used";
        report.warn(&place_of(section, "servers"), format!("is empty: {what}"));
    }
    match &config.dns64 {
        None if nat46.static_mappings.is_empty() => {
            let what =
                "no name leads to a server; write a [dns64] that the clients query, or static mappings";
            report.warn(section.place(), format!("has neither a [dns64] nor static mappings: {what}"));
        }
        None => {}
        Some(dns64) => {
            if dns64.listening.all().all(|at| at.is_ipv6() && !at.ip().is_unspecified()) {
                let what =
                    "the clients, which have no IPv6, cannot query it; add an IPv4 address to dns64.listen";
                report.warn(section.place(), format!("[dns64] listens on IPv6 addresses alone: {what}"));
            }
            if let Some(allow) = &dns64.allow {
                let is_held = |client: &Prefix4| {
                    allow.v4.iter().any(|it| it.length() <= client.length() && it.overlaps(*client))
                };
                for client in nat46.clients.iter().filter(|client| !is_held(client)) {
                    let what = "their queries are refused; add it there, or remove it here";
                    report.warn(
                        &place_of(section, "clients"),
                        format!("dns64.allow does not contain {client}: {what}"),
                    );
                }
            }
        }
    }
    let routes = config.routes();
    let is_routed4 = |it: &Route| matches!(it, Route::V4(to) if to.length() <= nat46.pool.length() && to.overlaps(nat46.pool));
    let prefix = nat46.prefix.prefix();
    let is_routed6 =
        |it: &Route| matches!(it, Route::V6(to) if to.length() <= prefix.length() && to.overlaps(prefix));
    let mend = "no packet for it reaches the gateway; add it to tun.routes, or \"auto\"";
    if !routes.iter().any(is_routed4) {
        report.warn(
            &place_of(section, "pool"),
            format!("{} is not routed into the device: {mend}", nat46.pool),
        );
    }
    if !routes.iter().any(is_routed6) {
        report.warn(&place_of(section, "prefix"), format!("{prefix} is not routed into the device: {mend}"));
    }
}
