//! `[nat46]`: IPv4 hosts reach IPv6-only servers by name.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use serde::Serialize;
use sixway_control::dns64::Wire;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::nat46::{MappingSettings, Nat46Config, Sharing};
use sixway_dataplane::source_check::is_martian6;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::Owner;
use crate::dns64::Name;
use crate::fault::Report;
use crate::mechanism::{FromSection, Mechanism};
use crate::route::Route;
use crate::schema::NAT46_STATIC;
use crate::section::Reader;
use crate::text;
use crate::translation::Translation;
use crate::translator_prefix::read_prefix;
use crate::tunnel_context::TunnelContext;
use crate::unicast::is_unicast;
use crate::word::{self, words_of};

words_of! {
    Sharing {
        Client = "client",
        All = "shared",
    }
}

/// A static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StaticMapping {
    /// The address of the pool.
    #[serde(serialize_with = "text::one")]
    pub address: Ipv4Addr,
    /// The server that it represents.
    #[serde(serialize_with = "text::one")]
    pub server: Ipv6Addr,
}

/// A NAT46, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nat46 {
    /// Its name.
    pub name: String,
    /// Hosts that may use it.
    #[serde(serialize_with = "text::many")]
    pub clients: Vec<Prefix4>,
    /// Addresses that represent servers.
    #[serde(serialize_with = "text::one")]
    pub pool: Prefix4,
    /// The prefix of the clients' IPv6 addresses.
    #[serde(serialize_with = "prefix_as_text")]
    pub prefix: Rfc6052,
    /// Servers that names may lead to.
    #[serde(serialize_with = "text::many")]
    pub servers: Vec<Prefix6>,
    /// Names for which no mapping is created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_names: Vec<Name>,
    /// The clients of a mapping.
    #[serde(serialize_with = "word::serialize")]
    pub mappings: Sharing,
    /// The longest TTL of an answer.
    #[serde(serialize_with = "text::as_duration")]
    pub ttl: Duration,
    /// Maximum number of mappings.
    pub max_mappings: u32,
    /// The same of one client.
    pub max_mappings_per_client: u32,
    /// Options of RFC 7915.
    #[serde(flatten)]
    pub translation: Translation,
    /// Mappings that always exist.
    #[serde(rename = "static", skip_serializing_if = "Vec::is_empty")]
    pub static_mappings: Vec<StaticMapping>,
}

fn prefix_as_text<S: serde::Serializer>(prefix: &Rfc6052, serializer: S) -> Result<S::Ok, S::Error> {
    text::one(&prefix.prefix(), serializer)
}

impl Nat46 {
    /// These names in wire form.
    pub fn excluded(&self) -> Vec<Wire> {
        self.exclude_names.iter().map(Name::wire).collect()
    }

    /// The settings of its mappings that do not depend on other sections.
    pub(crate) fn settings(&self) -> MappingSettings {
        MappingSettings {
            pool: self.pool,
            excluded: Vec::new(),
            statics: self.static_mappings.iter().map(|it| (it.address, it.server)).collect(),
            clients: self.clients.clone(),
            servers: self.servers.clone(),
            not_servers: vec![self.prefix.prefix()],
            sharing: self.mappings,
            max_mappings: self.max_mappings,
            max_per_client: self.max_mappings_per_client,
            by_name: true,
        }
    }
}

impl FromSection for Nat46 {
    fn read(
        section: &Reader,
        default_name: String,
        _before: &[Option<Self>],
        context: TunnelContext,
    ) -> Option<Self> {
        let TunnelContext { mtu, claims, report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let translation = Translation::read(section, mtu, report);
        let non_global = translation.as_ref().is_some_and(|it| it.translate_non_global);
        let clients = section.value("clients", report).and_then(|v| {
            let place = v.place.clone();
            let read: Option<Vec<Prefix4>> = v.items().iter().map(|item| item.prefix4(report)).collect();
            if read.as_ref().is_some_and(Vec::is_empty) {
                report.fault(&place, "is empty, so no host could use it; write your IPv4 hosts' prefixes");
            }
            read
        });
        let pool = section.value("pool", report).and_then(|v| {
            let pool = v.prefix4(report)?;
            if !is_unicast(pool.address()) || !is_unicast(pool.last()) || pool.length() < 8 {
                report.fault(
                    &v.place,
                    "is not a prefix of unicast addresses; write a prefix of 8 bits or more",
                );
                return None;
            }
            claims.v4(pool, Owner::Nat46Pool, &v.place);
            if let Some(both) = clients.iter().flatten().find(|it| it.overlaps(pool)) {
                let what = "an address cannot be a client's and represent a server; choose another pool";
                report.fault(&v.place, format!("{pool} overlaps {both} of nat46.clients: {what}"));
            }
            Some(pool)
        });
        let prefix = section.value("prefix", report).and_then(|v| {
            let prefix = read_prefix(&v, non_global, report)?;
            claims.v6(prefix.prefix(), Owner::Prefix("nat46", 0), &v.place);
            let refused = clients.iter().flatten().find(|it| prefix.permit(it.address()).is_err() || prefix.permit(it.last()).is_err());
            if let Some(refused) = refused {
                let what = "clients there would have no IPv6 image; write a prefix of your own network, which is routed to this machine";
                report.fault(&v.place, format!("is the well-known prefix, and {refused} of nat46.clients is not global (RFC 6052 §3.1): {what}"));
            }
            Some(prefix)
        });
        let servers = section.value("servers", report).and_then(|v| {
            let items = v.items();
            items.iter().map(|item| item.prefix6(report)).collect::<Option<Vec<Prefix6>>>()
        });
        let exclude_names = Name::read_all(section.value("exclude_names", report), report);
        let mappings = section.value("mappings", report).and_then(|v| v.word(report));
        let ttl = section.value("ttl", report).and_then(|v| v.duration(report));
        let max_mappings = section.value("max_mappings", report).and_then(|v| v.integer(report));
        let max_mappings_per_client =
            section.value("max_mappings_per_client", report).and_then(|v| v.integer(report));
        let static_mappings = read_static(section, pool, prefix, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            clients: clients?,
            pool: pool?,
            prefix: prefix?,
            servers: servers?,
            exclude_names: exclude_names?,
            mappings: mappings?,
            ttl: ttl?,
            max_mappings: max_mappings?,
            max_mappings_per_client: max_mappings_per_client?,
            translation: translation?,
            static_mappings: static_mappings?,
        })
    }
}

fn read_static(
    section: &Reader,
    pool: Option<Prefix4>,
    prefix: Option<Rfc6052>,
    report: &mut Report,
) -> Option<Vec<StaticMapping>> {
    let (mut read, mut whole): (Vec<StaticMapping>, bool) = (Vec::new(), true);
    for row in section.sections("static", &NAT46_STATIC, report) {
        let address = row.value("address", report).and_then(|v| {
            let address = v.address4(report)?;
            if let Some(pool) = pool.filter(|pool| !pool.contains(address)) {
                report.fault(
                    &v.place,
                    format!("{address} is not in nat46.pool, {pool}; choose one that is, or another pool"),
                );
            } else if read.iter().any(|other| other.address == address) {
                report.fault(
                    &v.place,
                    format!("{address} already represents another server; choose another address"),
                );
            }
            Some(address)
        });
        let server = row.value("server", report).and_then(|v| {
            let server = v.address6(report)?;
            let is_image = prefix.is_some_and(|prefix| prefix.contains(server));
            if read.iter().any(|other| other.server == server) {
                let what = "its packets can have only one source; remove one of the two";
                report.fault(&v.place, format!("{server} already has a static mapping: {what}"));
            }
            if is_martian6(server) || is_image || server.to_ipv4().is_some() {
                report.fault(&v.place, format!("{server} is not a server's address; write an IPv6 unicast address outside nat46.prefix"));
            }
            Some(server)
        });
        match address.zip(server) {
            Some((address, server)) => read.push(StaticMapping { address, server }),
            None => whole = false,
        }
    }
    whole.then_some(read)
}

impl Mechanism for Nat46 {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        Nat46Config {
            prefix: self.prefix,
            mappings: self.settings(),
            table: None,
            policy: self.translation.engine(),
        }
        .into()
    }

    fn serves(&self) -> String {
        let clients: Vec<String> = self.clients.iter().map(Prefix4::to_string).collect();
        let statics = match self.static_mappings.len() {
            0 => String::new(),
            1 => " · 1 static mapping".into(),
            count => format!(" · {count} static mappings"),
        };
        let shared = match self.mappings {
            Sharing::Client => "",
            Sharing::All => ", shared",
        };
        format!("{} as {} ⇄ pool {}{shared}{statics}", clients.join(", "), self.prefix.prefix(), self.pool)
    }

    fn routes(&self) -> Vec<Route> {
        vec![Route::V4(self.pool), Route::V6(self.prefix.prefix())]
    }

    fn serves_ipv4(&self) -> bool {
        true
    }

    fn serves_ipv6(&self) -> bool {
        true
    }
}
