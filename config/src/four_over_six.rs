//! `[[four_over_six]]`: public IPv4 addresses leased to hosts over IPv6 (RFC 7040).

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use sixway_dataplane::engine::TunnelConfig;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::four_over_six::{
    Binding, ConcentratorConfig, FourOverSixConfig, HostEndConfig, Role,
};
use sixway_dataplane::source_check::is_martian6;
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::Owner;
use crate::encapsulation::Encapsulation;
use crate::fault::Report;
use crate::leased_names::{NamedHost, read_names};
use crate::mechanism::{FromSection, Mechanism};
use crate::route::Route;
use crate::schema::{FOUR_OVER_SIX, FOUR_OVER_SIX_STATIC};
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::unicast::is_unicast;
use crate::value::Value;
use crate::word::words;

words! {
    /// Which end of the tunnels this gateway is.
    FourOverSixRole {
        /// The end that leases addresses to hosts.
        Concentrator = "concentrator",
        /// The end that takes a lease.
        Host = "host",
    }
}

/// Keys of a concentrator, and of a host.
const OF_CONCENTRATOR: [&str; 11] = [
    "addresses",
    "pool",
    "clients",
    "relays",
    "client_prefix",
    "leases_per_client",
    "max_leases",
    "lease_time",
    "queries_per_second",
    "listen",
    "kea_leases",
];
const OF_HOST: [&str; 7] =
    ["local", "concentrator", "servers", "server_lease_file", "address", "idle", "destinations"];

/// One end of tunnels, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FourOverSix {
    /// Its name.
    pub name: String,
    /// Which end, with its keys.
    #[serde(flatten)]
    pub end: FourOverSixEnd,
    /// The file with the leases; `None`: the default file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_file: Option<PathBuf>,
    /// How many more tunnels a packet may enter.
    #[serde(serialize_with = "limit")]
    pub encapsulation_limit: Option<u8>,
    /// How packets are encapsulated.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
    /// Static addresses of hosts.
    #[serde(rename = "static", skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<StaticLease>,
    /// Hosts that are found by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamedHost>,
}

/// Which end, with its keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum FourOverSixEnd {
    /// A concentrator.
    Concentrator(Concentrator),
    /// A host.
    Host(HostEnd),
}

/// A concentrator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Concentrator {
    /// Its IPv6 addresses, at which hosts' tunnels end.
    #[serde(serialize_with = "text::many")]
    pub addresses: Vec<Ipv6Addr>,
    /// The addresses to lease.
    #[serde(serialize_with = "text::many")]
    pub pool: Vec<Prefix4>,
    /// Prefixes of the hosts.
    #[serde(serialize_with = "text::many")]
    pub clients: Vec<Prefix6>,
    /// Relay agents that are trusted.
    #[serde(serialize_with = "text::many")]
    pub relays: Vec<Prefix6>,
    /// Bits of a client's prefix.
    pub client_prefix: u8,
    /// Maximum number of addresses of a client.
    pub leases_per_client: u32,
    /// Maximum number of bindings.
    pub max_leases: u32,
    /// How long a lease lasts.
    #[serde(serialize_with = "text::as_duration")]
    pub lease_time: Duration,
    /// Queries of a client a second; 0: no limit.
    pub queries_per_second: u32,
    /// Where DHCPv4 over DHCPv6 is served.
    #[serde(serialize_with = "text::many")]
    pub listen: Vec<Ipv6Addr>,
    /// Kea's leases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kea_leases: Option<PathBuf>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostEnd {
    /// This end.
    #[serde(serialize_with = "text::one")]
    pub local: Ipv6Addr,
    /// The other end.
    #[serde(serialize_with = "text::one")]
    pub concentrator: Ipv6Addr,
    /// DHCP servers.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Ipv6Addr>,
    /// The file to which the DHCPv6 client writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_lease_file: Option<PathBuf>,
    /// Its static address, instead of a lease.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub address: Option<Prefix4>,
    /// The lease is released after this time without packets; `None`: never.
    #[serde(serialize_with = "idle")]
    pub idle: Option<Duration>,
    /// What is routed into the tunnel.
    #[serde(serialize_with = "text::many")]
    pub destinations: Vec<Prefix4>,
}

/// A static address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StaticLease {
    /// The host.
    #[serde(serialize_with = "text::one")]
    pub host: Ipv6Addr,
    /// Its address or prefix.
    #[serde(serialize_with = "text::one")]
    pub ipv4: Prefix4,
}

fn limit<S: serde::Serializer>(limit: &Option<u8>, serializer: S) -> Result<S::Ok, S::Error> {
    match limit {
        Some(limit) => serializer.serialize_u8(*limit),
        None => serializer.serialize_str("none"),
    }
}

fn idle<S: serde::Serializer>(idle: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match idle {
        Some(idle) => text::as_duration(idle, serializer),
        None => serializer.serialize_str("never"),
    }
}

/// A list of values; `None`: one of them cannot be read.
fn list<T>(
    section: &Reader,
    key: &str,
    report: &mut Report,
    read: impl Fn(&Value, &mut Report) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(value) = section.value(key, report) else { return Some(Vec::new()) };
    let mut whole = true;
    let mut all = Vec::new();
    for item in value.items() {
        match read(&item, report) {
            Some(one) => all.push(one),
            None => whole = false,
        }
    }
    whole.then_some(all)
}

/// Reports a missing key that this role requires.
fn missing(section: &Reader, key: &str, such: &str, report: &mut Report) {
    report.fault(section.place(), format!("{key} is missing; write {key} = {such}"));
}

/// A host's IPv6 address.
fn host_address(value: &Value, report: &mut Report) -> Option<Ipv6Addr> {
    let address = value.address6(report)?;
    if is_martian6(address) || address.is_unicast_link_local() {
        report.fault(
            &value.place,
            "is not a valid host address; write a unicast address that is not link-local",
        );
        return None;
    }
    Some(address)
}

fn read_concentrator(
    section: &Reader,
    before: &[Option<FourOverSix>],
    context: &mut TunnelContext,
) -> Option<FourOverSixEnd> {
    let TunnelContext { index, claims, report, .. } = context;
    let owner = Owner::Prefix(FOUR_OVER_SIX.name, *index);
    let addresses = list(section, "addresses", report, |item, report| {
        let address = host_address(item, report)?;
        Some((address, item.place.clone()))
    });
    let taken = |address: &Ipv6Addr| {
        let mut others = before.iter().flatten();
        others.find(|other| other.concentrator().is_some_and(|it| it.addresses.contains(address)))
    };
    for (address, place) in addresses.iter().flatten() {
        claims.v6(Prefix6::holding(*address, 128), Owner::TunnelEnd, place);
        if let Some(other) = taken(address) {
            let what = "a tunnel packet to it could belong to either; write another address";
            report.fault(place, format!("is an address of {}, too; {what}", other.name));
        }
    }
    let pool = list(section, "pool", report, |item, report| {
        let prefix = item.prefix4(report)?;
        if !is_unicast(prefix.address()) || !is_unicast(prefix.last()) || prefix.length() < 8 {
            report
                .fault(&item.place, "is not a prefix of unicast addresses; write a prefix of 8 bits or more");
            return None;
        }
        Some((prefix, item.place.clone()))
    });
    for (prefix, place) in pool.iter().flatten() {
        claims.v4(*prefix, owner.clone(), place);
    }
    let clients = list(section, "clients", report, |item, report| item.prefix6(report));
    let relays = list(section, "relays", report, |item, report| item.prefix6(report));
    let client_prefix = section.value("client_prefix", report).and_then(|v| v.integer(report));
    let leases_per_client = section.value("leases_per_client", report).and_then(|v| v.integer(report));
    let max_leases = section.value("max_leases", report).and_then(|v| v.integer(report));
    let lease_time = section.value("lease_time", report).and_then(|v| v.duration(report));
    let queries_per_second = section.value("queries_per_second", report).and_then(|v| v.integer(report));
    let listen = section.value("listen", report);
    let listen_at = listen.as_ref().map(|v| (v.place.clone(), v.is_written()));
    let listen = list(section, "listen", report, |item, report| item.address6(report));
    let kea = section.value("kea_leases", report).map(|v| v.path(report));
    if addresses.as_ref().is_some_and(Vec::is_empty) {
        missing(section, "addresses", "[\"2001:db8:c::1\"], the IPv6 addresses of the concentrator", report);
    }
    if addresses.as_ref().is_some_and(|addresses| addresses.len() > 256) {
        report.fault(section.place(), "addresses has more than 256 addresses; write at most 256");
    }
    if pool.as_ref().is_some_and(Vec::is_empty) {
        missing(section, "pool", "[\"192.0.2.0/24\"], the IPv4 addresses to lease", report);
    }
    if clients.as_ref().is_some_and(Vec::is_empty) {
        missing(section, "clients", "[\"2001:db8::/32\"], the IPv6 prefixes of the hosts", report);
    }
    let mut listen = listen?;
    if let (Some(Some(_)), Some((place, is_written))) = (&kea, listen_at) {
        if is_written && !listen.is_empty() {
            report.fault(&place, "and kea_leases are written; with Kea's leases, write listen = []");
        }
        listen.clear();
    }
    let concentrator = Concentrator {
        addresses: addresses?.into_iter().map(|(address, _)| address).collect(),
        pool: pool?.into_iter().map(|(prefix, _)| prefix).collect(),
        clients: clients?,
        relays: relays?,
        client_prefix: client_prefix?,
        leases_per_client: leases_per_client?,
        max_leases: max_leases?,
        lease_time: lease_time?,
        queries_per_second: queries_per_second?,
        listen,
        kea_leases: match kea {
            Some(path) => Some(path?),
            None => None,
        },
    };
    check_clients(&concentrator, section, report);
    Some(FourOverSixEnd::Concentrator(concentrator))
}

fn check_clients(concentrator: &Concentrator, section: &Reader, report: &mut Report) {
    let own = |prefix: &&Prefix6| concentrator.addresses.iter().any(|address| prefix.contains(*address));
    if let Some(prefix) = concentrator.clients.iter().find(own) {
        let what = "a host with that address would cause a loop; write the hosts' own prefixes";
        report.warn(
            section.place(),
            format!("clients: {prefix} contains an address of the concentrator: {what}"),
        );
    }
    let wide = |prefix: &&Prefix6| {
        concentrator
            .clients
            .iter()
            .any(|clients| prefix.length() <= clients.length() && prefix.overlaps(*clients))
    };
    if let Some(prefix) = concentrator.relays.iter().find(wide) {
        let what =
            "every client there could send queries for another client; write the relay agents' own addresses";
        report.warn(section.place(), format!("relays: {prefix} contains clients: {what}"));
    }
    let longer = concentrator.clients.iter().find(|prefix| prefix.length() > concentrator.client_prefix);
    if let Some(prefix) = longer.filter(|prefix| prefix.length() < 128) {
        let what = "two of them could share one client's limits; raise client_prefix to this length";
        report.warn(section.place(), format!("clients: {prefix} is longer than client_prefix: {what}"));
    }
}

fn read_host(section: &Reader, context: &mut TunnelContext) -> Option<FourOverSixEnd> {
    let TunnelContext { index, claims, host: facts, report, .. } = context;
    let end = |key: &str, report: &mut Report| {
        let found = section.value(key, report).map(|v| (host_address(&v, report), v.place));
        if found.is_none() {
            missing(section, key, "\"2001:db8::1\"", report);
        }
        found.and_then(|(address, place)| Some((address?, place)))
    };
    let local = end("local", report);
    let concentrator = end("concentrator", report);
    if let Some((address, place)) = &local {
        claims.v6(Prefix6::holding(*address, 128), Owner::TunnelEnd, place);
    }
    if let Some((address, place)) = &concentrator {
        claims.v6(Prefix6::holding(*address, 128), Owner::OuterEnd, place);
        if let Some(held) = facts.addresses.iter().find(|it| it.address == IpAddr::V6(*address)) {
            let what = "write the address of the concentrator";
            report.fault(place, format!("is this host's own address on {}; {what}", held.interface));
        }
    }
    let servers = list(section, "servers", report, |item, report| item.address6(report));
    let lease = section.value("server_lease_file", report).map(|v| (v.path(report), v.place));
    let address = section.value("address", report).map(|v| (v.prefix4(report), v.place));
    let idle = section.value("idle", report).and_then(|v| v.duration_or(report));
    let destinations = list(section, "destinations", report, |item, report| {
        Some((item.prefix4(report)?, item.place.clone()))
    });
    for (prefix, place) in destinations.iter().flatten() {
        claims.v4(*prefix, Owner::Tunnel(*index), place);
    }
    match (&servers, &lease) {
        (Some(servers), Some((_, place))) if !servers.is_empty() || address.is_some() => {
            let other = if address.is_some() { "address" } else { "servers" };
            report.fault(place, format!("and {other} are written; remove one of the two"));
        }
        (_, _) => {}
    }
    match (&servers, &address) {
        (Some(servers), None) if servers.is_empty() && lease.is_none() => {
            let what = "servers is missing; write the IPv6 addresses of the DHCP servers, or address = \"192.0.2.7\" for a static one";
            report.fault(section.place(), what);
        }
        (Some(servers), Some((_, place))) if !servers.is_empty() => {
            report.fault(place, "and servers are written; remove one of the two");
        }
        (_, _) => {}
    }
    let (local, concentrator) = (local?.0, concentrator?);
    if local == concentrator.0 {
        report.fault(&concentrator.1, "is the same as local; write the address of the concentrator");
    }
    Some(FourOverSixEnd::Host(HostEnd {
        local,
        concentrator: concentrator.0,
        servers: servers?,
        server_lease_file: match lease {
            Some((path, _)) => Some(path?),
            None => None,
        },
        address: match address {
            Some((address, _)) => Some(address?),
            None => None,
        },
        idle: idle?,
        destinations: destinations?.into_iter().map(|(prefix, _)| prefix).collect(),
    }))
}

fn read_static(
    section: &Reader,
    end: Option<&FourOverSixEnd>,
    report: &mut Report,
) -> Option<Vec<StaticLease>> {
    let (mut all, mut whole): (Vec<StaticLease>, bool) = (Vec::new(), true);
    for one in section.sections("static", &FOUR_OVER_SIX_STATIC, report) {
        let host = one.value("host", report).and_then(|v| host_address(&v, report));
        let ipv4 = one.value("ipv4", report).map(|v| (v.prefix4(report), v.place));
        let (Some(host), Some((Some(ipv4), place))) = (host, ipv4) else {
            whole = false;
            continue;
        };
        if let Some(FourOverSixEnd::Concentrator(concentrator)) = end
            && !concentrator.pool.iter().any(|pool| pool.overlaps(ipv4) && pool.length() <= ipv4.length())
        {
            report.fault(&place, format!("{ipv4} is not within pool; add it there"));
        }
        if let Some(other) = all.iter().find(|other| other.ipv4.overlaps(ipv4) && other.host != host) {
            report.fault(
                &place,
                format!("{ipv4} overlaps {}, which {} has; choose another", other.ipv4, other.host),
            );
        }
        all.push(StaticLease { host, ipv4 });
    }
    whole.then_some(all)
}

/// Reports keys of the other role.
fn refuse_others(section: &Reader, role: FourOverSixRole, report: &mut Report) {
    let (keys, owner): (&[&str], _) = match role {
        FourOverSixRole::Concentrator => (&OF_HOST, "host"),
        FourOverSixRole::Host => (&OF_CONCENTRATOR, "concentrator"),
    };
    for key in keys {
        // What is wrong with the value itself does not matter.
        let written = section.value(key, &mut Report::default()).filter(Value::is_written);
        if let Some(value) = written {
            report.fault(&value.place, format!("applies only to role = \"{owner}\"; remove it"));
        }
    }
}

impl FromSection for FourOverSix {
    fn read(
        section: &Reader,
        default_name: String,
        before: &[Option<Self>],
        mut context: TunnelContext,
    ) -> Option<Self> {
        let mtu = context.mtu;
        let name = section.value("name", context.report).map(|v| v.text(context.report));
        let role =
            section.value("role", context.report).and_then(|v| v.word::<FourOverSixRole>(context.report));
        let end = role.and_then(|role| {
            refuse_others(section, role, context.report);
            match role {
                FourOverSixRole::Concentrator => read_concentrator(section, before, &mut context),
                FourOverSixRole::Host => read_host(section, &mut context),
            }
        });
        let report = context.report;
        let fixed = read_static(section, end.as_ref(), report);
        if let (Some(FourOverSixRole::Host), Some([_, ..])) = (role, fixed.as_deref()) {
            report.fault(section.place(), "static applies only to role = \"concentrator\"; remove it");
        }
        let clients = match &end {
            Some(FourOverSixEnd::Concentrator(it)) => Some(&*it.clients),
            Some(FourOverSixEnd::Host(_)) | None => None,
        };
        let names = read_names(section, host_address, clients, report);
        if let (Some(FourOverSixRole::Host), Some([_, ..])) = (role, names.as_deref()) {
            report.fault(section.place(), "names applies only to role = \"concentrator\"; remove it");
        }
        if let (Some(FourOverSixEnd::Concentrator(it)), Some([_, ..])) = (&end, names.as_deref())
            && it.kea_leases.is_some()
        {
            let what =
                "names and kea_leases are written; Kea leases no address for a name: remove one of the two";
            report.fault(section.place(), what);
        }
        let lease_file = section.value("lease_file", report).map(|v| v.path(report));
        let limit = section.value("encapsulation_limit", report).and_then(|v| v.integer_or(report));
        let encapsulation = Encapsulation::read(section, mtu, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            end: end?,
            lease_file: match lease_file {
                Some(path) => Some(path?),
                None => None,
            },
            encapsulation_limit: limit?,
            encapsulation: encapsulation?,
            fixed: fixed?,
            names: names?,
        })
    }
}

impl FourOverSix {
    /// It, if it is a concentrator.
    pub const fn concentrator(&self) -> Option<&Concentrator> {
        match &self.end {
            FourOverSixEnd::Concentrator(concentrator) => Some(concentrator),
            FourOverSixEnd::Host(_) => None,
        }
    }

    /// It, if it is a host.
    pub const fn host(&self) -> Option<&HostEnd> {
        match &self.end {
            FourOverSixEnd::Concentrator(_) => None,
            FourOverSixEnd::Host(host) => Some(host),
        }
    }

    /// The file with its leases.
    pub fn lease_path(&self, gateway: &str) -> PathBuf {
        let usual = || PathBuf::from(format!("/var/lib/sixway/{gateway}-{}.leases", self.name));
        self.lease_file.clone().unwrap_or_else(usual)
    }

    fn policy(&self) -> TunnelPolicy {
        TunnelPolicy { encapsulation_limit: self.encapsulation_limit, ..self.encapsulation.engine() }
    }

    fn config(&self, lease: Option<Prefix4>) -> FourOverSixConfig {
        let role = match &self.end {
            FourOverSixEnd::Concentrator(it) => Role::Concentrator(ConcentratorConfig {
                addresses: it.addresses.clone(),
                lent: it.pool.clone(),
                max_bindings: it.max_leases,
                client_bits: it.client_prefix,
                bindings: self
                    .fixed
                    .iter()
                    .map(|fixed| Binding { ipv4: fixed.ipv4, host: fixed.host, local: 0 })
                    .collect(),
            }),
            FourOverSixEnd::Host(it) => Role::Host(HostEndConfig {
                local: it.local,
                concentrator: it.concentrator,
                prefixes: it.destinations.clone(),
                lease,
            }),
        };
        FourOverSixConfig { role, policy: self.policy() }
    }
}

impl Mechanism for FourOverSix {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        self.config(None).into()
    }

    fn changing(&self, now: &Surroundings) -> Option<TunnelConfig> {
        let host = self.host()?;
        let leased = now.leases.get(&self.name).filter(|lease| lease.is_held);
        let lease = host.address.or_else(|| leased.map(|lease| Prefix4::holding(lease.ipv4, 32)));
        Some(self.config(lease).into())
    }

    fn serves(&self) -> String {
        let list =
            |addresses: &[Ipv6Addr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match &self.end {
            FourOverSixEnd::Concentrator(it) => {
                let pool: Vec<String> = it.pool.iter().map(ToString::to_string).collect();
                format!("concentrator {} ⇄ {}", list(&it.addresses), pool.join(", "))
            }
            FourOverSixEnd::Host(it) => {
                let what =
                    it.address.map_or_else(|| "a leased address".to_owned(), |address| address.to_string());
                format!("host {} ⇄ {} · {what}", it.local, it.concentrator)
            }
        }
    }

    fn routes(&self) -> Vec<Route> {
        let own = |address: &Ipv6Addr| Route::V6(Prefix6::holding(*address, 128));
        match &self.end {
            FourOverSixEnd::Concentrator(it) => {
                it.pool.iter().copied().map(Route::V4).chain(it.addresses.iter().map(own)).collect()
            }
            FourOverSixEnd::Host(it) => {
                it.destinations.iter().copied().map(Route::V4).chain([own(&it.local)]).collect()
            }
        }
    }

    fn locals(&self) -> Vec<IpAddr> {
        match &self.end {
            FourOverSixEnd::Concentrator(it) => it.addresses.iter().copied().map(IpAddr::V6).collect(),
            FourOverSixEnd::Host(it) => vec![IpAddr::V6(it.local)],
        }
    }

    fn address4(&self, now: &Surroundings) -> Option<std::net::Ipv4Addr> {
        let host = self.host()?;
        let leased = || now.leases.get(&self.name).map(|lease| lease.ipv4);
        host.address.map(Prefix4::address).or_else(leased)
    }

    fn serves_ipv4(&self) -> bool {
        true
    }

    fn serves_ipv6(&self) -> bool {
        false
    }
}
