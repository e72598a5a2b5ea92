//! `[nat44]`: the traditional NAT (RFC 3022, RFC 4787).

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::Serialize;
use sixway_dataplane::nat::StateLimits;
use sixway_wire::Prefix4;

use crate::claims::{Claims, Owner};
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::interface_name::{InterfaceList, NO_FORWARDED, read_interfaces};
use crate::limits::{self, InsidePrefix as _, Subscribers};
use crate::nat44_static::Nat44Statics;
use crate::nat64::{Filtering, find_pool};
use crate::pool::ReadPool;
use crate::portless::PortlessLimits;
use crate::schema::{NAT44_PORT_TIMEOUT, NAT44_TIMEOUTS};
use crate::section::Reader;
use crate::source_rule::{Network, SourceRule};
use crate::static_rules::StaticRules;
use crate::surroundings::Surroundings;
use crate::text;
use crate::timeouts::Timeouts;
use crate::translator_prefix::read_prefixes4;
use crate::word;

/// A NAT44, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nat44 {
    /// Its name.
    pub name: String,
    /// Prefixes of the inside hosts.
    #[serde(serialize_with = "text::many")]
    pub inside: Vec<Prefix4>,
    /// Interfaces by which their packets come in; empty: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// Destinations on the way to which nothing is translated.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Prefix4>,
    /// Remote IPv4 addresses with which sessions are not allowed.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub exclude_ipv4: Vec<Prefix4>,
    /// This host's IPv4 addresses that inside hosts may create sessions to.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub allow_own: Vec<Prefix4>,
    /// The name of its pool.
    pub pool: String,
    /// The remote hosts that may send through a binding.
    #[serde(serialize_with = "word::serialize")]
    pub filtering: Filtering,
    /// Limits of the tables of all workers together; those of a subscriber, an IPv4 address, apply at each worker.
    #[serde(flatten, serialize_with = "limits::serialize")]
    pub limits: StateLimits,
    /// The subscribers: their prefix length.
    #[serde(flatten)]
    pub subscribers: Subscribers<Prefix4>,
    /// Whether the MSS of TCP SYNs is lowered to what fits.
    pub clamp_mss: bool,
    /// Whether tunnel packets of this gateway with a source that is inside are translated, too; never with a realm's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub translate_own_tunnels: bool,
    /// Whether control connections of FTP are read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ftp_alg: bool,
    /// How many sessions of protocols without ports there may be.
    #[serde(flatten)]
    pub portless: PortlessLimits,
    /// When a silent session ends.
    pub timeouts: Nat44Timeouts,
    /// Bindings that are always there.
    #[serde(rename = "static")]
    pub static_bindings: Nat44Statics,
}

/// When a silent session ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nat44Timeouts {
    /// Of protocols with ports.
    #[serde(flatten)]
    pub with_ports: Timeouts,
    /// Of protocols without.
    #[serde(serialize_with = "text::as_duration")]
    pub portless: Duration,
}

impl Nat44Timeouts {
    fn read(section: &Reader, report: &mut Report) -> Option<Self> {
        let with_ports = Timeouts::read(section, &NAT44_PORT_TIMEOUT, report);
        let portless = section.value("portless", report).and_then(|v| v.duration(report));
        Some(Self { with_ports: with_ports?, portless: portless? })
    }
}

/// The context for reading a NAT44.
pub(crate) struct Nat44Context<'r, 'p> {
    pub device: Option<&'p str>,
    /// The number of the realm that it is of.
    pub realm: Option<usize>,
    pub host: &'p HostFacts,
    pub pools: &'p [ReadPool],
    /// Which pools are taken, and where.
    pub taken: &'r mut Vec<(String, Place)>,
    pub claims: &'r mut Claims,
    pub report: &'r mut Report,
}

impl Nat44 {
    pub(crate) fn read(section: &Reader, context: Nat44Context) -> Option<Self> {
        let Nat44Context { device, realm, host, pools, taken, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        // This gateway's own tunnels end at addresses of the main device's.
        let translate_own_tunnels = match realm {
            None => section.value("translate_own_tunnels", report).and_then(|v| v.boolean(report)),
            Some(_) => Some(false),
        };
        let ends = translate_own_tunnels == Some(true);
        let inside = section.value("inside", report).and_then(|v| {
            let (place, items) = (v.place.clone(), v.items());
            if items.is_empty() {
                report.fault(
                    &place,
                    "is empty; write the prefixes of your hosts, such as [\"192.168.1.0/24\"]",
                );
            }
            for item in &items {
                if let Some(prefix) = item.prefix4(&mut Report::default()) {
                    claims.v4(prefix, realm.map_or(Owner::Inside { ends }, Owner::InRealm), &item.place);
                }
            }
            items.iter().map(|item| item.prefix4(report)).collect::<Option<Vec<_>>>()
        });
        let until = "packets of inside hosts are not translated until it appears";
        let interfaces = match section.value("interfaces", report) {
            None => Some(Vec::new()),
            Some(v) => {
                let list = InterfaceList { device, host, refused: NO_FORWARDED, until };
                read_interfaces(v, list, |_| None, report)
            }
        };
        let pool = section.value("pool", report).and_then(|v| {
            let name = v.text(report)?;
            let pool = find_pool(&name, pools, taken, &v.place, report);
            Some((name, pool))
        });
        let except = read_prefixes4(section, "except", report);
        let exclude_ipv4 = read_prefixes4(section, "exclude_ipv4", report);
        let allow_own = read_prefixes4(section, "allow_own", report);
        let filtering = section.value("filtering", report).and_then(|v| v.word(report));
        let limits = limits::read(section, report);
        let exempt = read_prefixes4(section, "exempt_subscribers", report);
        let known_pool = pool.as_ref().and_then(|(_, pool)| *pool);
        let mapped = inside.as_ref().map(|inside| inside.iter().map(|it| it.mapped()).collect());
        let subscribers = Subscribers::read(section, exempt, (mapped, known_pool), report);
        let clamp_mss = section.value("clamp_mss", report).and_then(|v| v.boolean(report));
        let ftp_alg = section.value("ftp_alg", report).and_then(|v| v.boolean(report));
        let timeouts = match &section.sections("timeouts", &NAT44_TIMEOUTS, report)[..] {
            [written, ..] => Nat44Timeouts::read(written, report),
            [] => Nat44Timeouts::read(&section.child("timeouts", &NAT44_TIMEOUTS), report),
        };
        let portless = PortlessLimits::read(section, known_pool, report);
        // Another realm may have a network of a realm.
        if realm.is_none() {
            warn_of_uplinks(section, (inside.as_deref(), interfaces.as_deref()), host, report);
        }
        // The inside hosts may be unknown, which was reported.
        let anyone = [Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0)];
        let inside4 = Some(inside.as_deref().unwrap_or(&anyone));
        let rules = StaticRules { prefix: None, inside4, pool: known_pool };
        let static_bindings = Nat44Statics::read(section, &rules, report);
        let (pool, _) = pool?;
        Some(Self {
            name: name.unwrap_or_else(|| Some("nat44".into()))?,
            inside: inside?,
            interfaces: interfaces?,
            except: except?,
            exclude_ipv4: exclude_ipv4?,
            allow_own: allow_own?,
            pool,
            filtering: filtering?,
            limits: limits?,
            subscribers: subscribers?,
            clamp_mss: clamp_mss?,
            translate_own_tunnels: translate_own_tunnels?,
            ftp_alg: ftp_alg?,
            portless: portless?,
            timeouts: timeouts?,
            static_bindings,
        })
    }

    /// The interfaces that lead to the inside hosts: those that are written, else those with an address in `inside`.
    pub(crate) fn inner_interfaces(&self, now: &Surroundings) -> Vec<String> {
        match &self.interfaces[..] {
            [] => now.holders_in(&self.inside).map(str::to_owned).collect(),
            named => named.to_vec(),
        }
    }

    /// What the kernel routes into the device by source: the site's own destinations are excepted.
    pub(crate) fn source_rules(&self) -> Vec<SourceRule> {
        let interfaces: Vec<Option<&String>> =
            if self.interfaces.is_empty() { vec![None] } else { self.interfaces.iter().map(Some).collect() };
        let mut rules = Vec::new();
        for (from, interface) in
            self.inside.iter().flat_map(|from| interfaces.iter().map(move |it| (from, it)))
        {
            let rule = |except: Option<Prefix4>| SourceRule {
                from: Network::V4(*from),
                except: except.map(Network::V4),
                interface: interface.cloned(),
            };
            rules.extend(self.inside.iter().chain(&self.except).map(|to| rule(Some(*to))));
            rules.push(rule(None));
        }
        rules
    }
}

/// Warns of interfaces outside whose network is one of `inside` (RFC 4787 REQ-7): hosts there cannot be reached, and their packets
/// are taken for those of inside hosts.
fn warn_of_uplinks(
    section: &Reader,
    (inside, interfaces): (Option<&[Prefix4]>, Option<&[String]>),
    host: &HostFacts,
    report: &mut Report,
) {
    let (Some(inside), Some(interfaces)) = (inside, interfaces.filter(|list| !list.is_empty())) else {
        return;
    };
    for own in host.addresses.iter().filter(|own| !interfaces.contains(&own.interface)) {
        let IpAddr::V4(address) = own.address else { continue };
        let network = Prefix4::holding(address, own.length);
        if address.is_loopback() || !inside.iter().any(|prefix| prefix.overlaps(network)) {
            continue;
        }
        let Some(v) = section.value("inside", report) else { return };
        let what = format!(
            "contains addresses of {network} at {}, which is not one of `interfaces`: inside hosts cannot reach these; use other addresses inside, or add the interface",
            own.interface
        );
        report.warn(&v.place, what);
    }
}
