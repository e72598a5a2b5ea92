//! `[[siit]]`: stateless translation (RFC 7915) by prefix (RFC 6052), by table (RFC 7757) and from a dynamic pool.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sixway_dataplane::translate::address::eam::{Eam, EamErrorKind, EamTable};
use sixway_dataplane::translate::address::eam_file::parse_eam_file;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::{Claims, Owner};
use crate::fault::{Place, Report};
use crate::pool::read_addresses;
use crate::schema::EAM;
use crate::section::Reader;
use crate::text;
use crate::translation::Translation;
use crate::translator_prefix::{read_prefix, read_prefixes4};
use crate::unicast::is_unicast;
use crate::value::Value;
use crate::word::{self, words, words_of};

pub use sixway_dataplane::mechanism::siit::Hairpinning;

words_of! {
    Hairpinning {
        Intrinsic = "intrinsic",
        Simple = "simple",
        Off = "off",
    }
}

words! {
    /// The side of the EAMs that is routed to the gateway.
    EamRoutes {
        /// The IPv4 side: the IPv6 addresses are those of hosts (RFC 7755).
        Ipv4 = "ipv4",
        /// The IPv6 side: the IPv4 addresses are those of hosts (RFC 7756).
        Ipv6 = "ipv6",
        /// Neither.
        None = "none",
    }
}

/// An explicit address mapping, as the configuration writes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EamRow {
    /// The IPv4 side.
    #[serde(serialize_with = "text::one")]
    pub ipv4: Prefix4,
    /// The IPv6 side.
    #[serde(serialize_with = "text::one")]
    pub ipv6: Prefix6,
}

/// A SIIT, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Siit {
    /// Its name.
    pub name: String,
    /// The translation prefix.
    #[serde(serialize_with = "text::optional_prefix", skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Rfc6052>,
    /// IPv4 addresses that the prefix does not represent.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub exclude_ipv4: Vec<Prefix4>,
    /// A file with further mappings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eam_file: Option<PathBuf>,
    /// The side of the mappings that is routed to the gateway.
    pub eam_routes: EamRoutes,
    /// How mapped hosts reach one another.
    #[serde(serialize_with = "word::serialize")]
    pub hairpinning: Hairpinning,
    /// Sources of ICMP errors from routers that cannot be translated.
    #[serde(serialize_with = "text::many")]
    pub icmp_source_pool: Vec<Prefix4>,
    /// Addresses for hosts without a mapping.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub dynamic_pool: Option<Prefix4>,
    /// When an address of the dynamic pool is released.
    #[serde(serialize_with = "text::as_duration")]
    pub dynamic_lifetime: Duration,
    /// Until when it is kept for its host.
    #[serde(serialize_with = "text::as_duration")]
    pub dynamic_remembered: Duration,
    /// Maximum number of its addresses that an IPv6 /64 has at a time, at each worker; 0: no limit.
    pub dynamic_hosts_per_subscriber: u32,
    /// The file that keeps the dynamic pool's addresses.
    pub dynamic_state: PathBuf,
    /// The choices of RFC 7915.
    #[serde(flatten)]
    pub translation: Translation,
    /// The mappings written in the configuration.
    pub eam: Vec<EamRow>,
    /// Every mapping, of the configuration and of `eam_file`.
    #[serde(skip)]
    pub mappings: Mappings,
}

/// A table of mappings, shared by those that use it.
#[derive(Clone)]
pub struct Mappings(Arc<EamTable>);

impl Mappings {
    /// The table.
    pub fn table(&self) -> Arc<EamTable> {
        Arc::clone(&self.0)
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Its rows.
    pub fn iter(&self) -> impl Iterator<Item = Eam> + '_ {
        self.0.iter()
    }
}

impl PartialEq for Mappings {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().eq(other.0.iter())
    }
}

impl fmt::Debug for Mappings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mappings", self.0.len())
    }
}

/// The context for reading a SIIT.
pub(crate) struct SiitContext<'r> {
    pub index: usize,
    /// The gateway's name.
    pub gateway: &'r str,
    pub mtu: Option<u16>,
    /// Where dynamic pools keep their state.
    pub states: &'r mut Vec<(PathBuf, Place)>,
    pub read_file: &'r mut dyn FnMut(&Path) -> std::io::Result<String>,
    pub claims: &'r mut Claims,
    pub report: &'r mut Report,
}

/// The directory of the files of dynamic pools.
const STATE_DIRECTORY: &str = "/var/lib/sixway";

/// The default file of the dynamic pool of a SIIT: one for each gateway and each SIIT. The first one's name
/// does not depend on how many there are. No gateway's name has a colon.
fn default_state(gateway: &str, index: usize) -> PathBuf {
    let number = if index == 0 { String::new() } else { format!(":{}", index + 1) };
    PathBuf::from(format!("{STATE_DIRECTORY}/{gateway}{number}.state"))
}

/// More RFC 6791 sources than this are a mistake in a prefix length.
const MAX_ICMP_SOURCES: u64 = 1_024;
/// RFC 6791 §3.1: errors should not come from addresses of RFC 1918 and RFC 6598.
const PRIVATE: [Prefix4; 4] = [
    Prefix4::holding(Ipv4Addr::new(10, 0, 0, 0), 8),
    Prefix4::holding(Ipv4Addr::new(172, 16, 0, 0), 12),
    Prefix4::holding(Ipv4Addr::new(192, 168, 0, 0), 16),
    Prefix4::holding(Ipv4Addr::new(100, 64, 0, 0), 10),
];

impl Siit {
    /// The prefix, if packets to it are for this translator. Where the mappings' IPv4 addresses are those of hosts (RFC 7756), the prefix is that of
    /// another translator: what was translated to it would be translated back, and so on, until its hop limit is exhausted. Hosts with addresses of
    /// `dynamic_pool` send to it all the same.
    pub fn routed_prefix(&self) -> Option<Prefix6> {
        let is_elsewhere = self.eam_routes == EamRoutes::Ipv6 && self.dynamic_pool.is_none();
        Some(self.prefix.filter(|_| !is_elsewhere)?.prefix())
    }

    /// The addresses of `icmp_source_pool`, one by one.
    pub fn icmp_sources(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.icmp_source_pool
            .iter()
            .flat_map(|p| (p.address().to_bits()..=p.last().to_bits()).map(Ipv4Addr::from_bits))
    }

    pub(crate) fn read(section: &Reader, default_name: String, context: SiitContext) -> Option<Self> {
        let SiitContext { index, gateway, mtu, states, read_file, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let translation = Translation::read(section, mtu, report);
        let non_global = translation.as_ref().is_some_and(|t| t.translate_non_global);
        let prefix = section.value("prefix", report).map(|v| {
            let prefix = read_prefix(&v, non_global, report)?;
            claims.v6(prefix.prefix(), Owner::Siit(index), &v.place);
            Some(prefix)
        });
        let exclude_ipv4 = read_prefixes4(section, "exclude_ipv4", report);
        let hairpinning = section.value("hairpinning", report).and_then(|v| v.word(report));
        let eam_routes: Option<EamRoutes> = section.value("eam_routes", report).and_then(|v| v.word(report));
        let owner = |routed| Owner::Eam(index, eam_routes == Some(routed));
        let (owner4, owner6) = (owner(EamRoutes::Ipv4), owner(EamRoutes::Ipv6));
        let mut table = Table { owner4, owner6, claims, report };
        let eam = table.read_inline(section);
        let eam_file = section.value("eam_file", table.report).map(|v| {
            let path = v.path(table.report)?;
            Some((table.read_file(&path, &v.place, read_file), path))
        });
        let Table { claims, report, .. } = table;
        let icmp_source_pool = read_icmp_sources(section, index, claims, report);
        let dynamic_pool =
            section.value("dynamic_pool", report).map(|v| read_dynamic_pool(&v, index, claims, report));
        let dynamic_lifetime = section.value("dynamic_lifetime", report).and_then(|v| v.duration(report));
        let dynamic_remembered = section.value("dynamic_remembered", report).and_then(|v| {
            let remembered = v.duration(report)?;
            if let Some(lifetime) = dynamic_lifetime.filter(|lifetime| remembered < *lifetime) {
                let lifetime = text::duration(lifetime);
                report.fault(
                    &v.place,
                    format!("is less than dynamic_lifetime, {lifetime}; raise it, or lower dynamic_lifetime"),
                );
            }
            Some(remembered)
        });
        let dynamic_hosts_per_subscriber =
            section.value("dynamic_hosts_per_subscriber", report).and_then(|v| v.integer(report));
        let state = read_dynamic_state(section, default_state(gateway, index), report);
        let dynamic_state = state.map(|(path, here)| {
            if dynamic_pool.is_some() {
                claim_state(&path, here, states, report);
            }
            path
        });
        if prefix.is_none() && eam.is_empty() && eam_file.is_none() {
            let alone = match dynamic_pool.is_some() {
                true => " (dynamic_pool alone does not translate IPv4 destinations)",
                false => "",
            };
            report
                .fault(section.place(), format!("has no prefix, eam or eam_file; write at least one{alone}"));
        }
        let (rows, eam_file) = match eam_file {
            Some(read) => read.map(|(rows, path)| (rows, Some(path)))?,
            None => (Vec::new(), None),
        };
        let rows = eam.iter().map(|row| (row.ipv4, row.ipv6)).chain(rows);
        let table = EamTable::new(rows).map_err(|errors| {
            // Faults of single rows are reported with their lines.
            for error in errors.iter().filter(|error| error.kind == EamErrorKind::TooMany) {
                report.fault(section.place(), error.to_string());
            }
        });
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            prefix: prefix.map_or(Some(None), |prefix| prefix.map(Some))?,
            exclude_ipv4: exclude_ipv4?,
            eam_file,
            eam_routes: eam_routes?,
            hairpinning: hairpinning?,
            icmp_source_pool: icmp_source_pool?,
            dynamic_pool: dynamic_pool.map_or(Some(None), |pool| pool.map(Some))?,
            dynamic_lifetime: dynamic_lifetime?,
            dynamic_remembered: dynamic_remembered?,
            dynamic_hosts_per_subscriber: dynamic_hosts_per_subscriber?,
            dynamic_state: dynamic_state?,
            translation: translation?,
            eam,
            mappings: Mappings(Arc::new(table.ok()?)),
        })
    }
}

/// `icmp_source_pool`; empty without the key (RFC 6791 §3.1).
fn read_icmp_sources(
    section: &Reader,
    index: usize,
    claims: &mut Claims,
    report: &mut Report,
) -> Option<Vec<Prefix4>> {
    let Some(v) = section.value("icmp_source_pool", report) else { return Some(Vec::new()) };
    let place = v.place.clone();
    let pool = read_addresses(v.items(), Owner::IcmpSource(index), claims, report)?;
    let count: u64 = pool.iter().map(|p| 1_u64 << (32 - p.length())).sum();
    if count > MAX_ICMP_SOURCES {
        report.fault(
            &place,
            format!(
                "contains {} addresses; write at most {}",
                text::grouped(count),
                text::grouped(MAX_ICMP_SOURCES)
            ),
        );
    }
    if let Some(private) = pool.iter().find(|pool| PRIVATE.iter().any(|net| net.overlaps(**pool))) {
        let what = "networks that filter source addresses drop these ICMP errors; write public addresses";
        report.warn(&place, format!("{private} is private (RFC 6791 §3.1): {what}"));
    }
    (count <= MAX_ICMP_SOURCES).then_some(pool)
}

fn read_dynamic_pool(v: &Value, index: usize, claims: &mut Claims, report: &mut Report) -> Option<Prefix4> {
    let pool = v.prefix4(report)?;
    if !is_unicast(pool.address()) || !is_unicast(pool.last()) || pool.length() < 8 {
        report.fault(&v.place, "is not a prefix of unicast addresses; write a prefix of 8 bits or more");
        return None;
    }
    claims.v4(pool, Owner::Dynamic(index), &v.place);
    Some(pool)
}

/// The file of `dynamic_state`, and the key it comes from.
fn read_dynamic_state(section: &Reader, default: PathBuf, report: &mut Report) -> Option<(PathBuf, Place)> {
    match section.value("dynamic_state", report) {
        Some(v) => v.path(report).map(|path| (path, v.place)),
        None => {
            let key = format!("{}.dynamic_state", section.place().key).into();
            Some((default, Place { key, ..section.place().clone() }))
        }
    }
}

/// Two translators must not write to one file: each would load the other's hosts after a restart.
fn claim_state(path: &Path, here: Place, states: &mut Vec<(PathBuf, Place)>, report: &mut Report) {
    if let Some((_, place)) = states.iter().find(|(other, _)| other == path) {
        let (other, there) = (place.path(), place.seen_from(&here));
        let what =
            format!("is already the state file of {other} ({there}); set dynamic_state to another file");
        report.fault(&here, what);
    }
    states.push((path.to_path_buf(), here));
}

/// The rows of a SIIT's table as they are read.
struct Table<'r> {
    owner4: Owner,
    owner6: Owner,
    claims: &'r mut Claims,
    report: &'r mut Report,
}

impl Table<'_> {
    fn read_inline(&mut self, section: &Reader) -> Vec<EamRow> {
        let mut rows = Vec::new();
        for row in section.sections("eam", &EAM, self.report) {
            let ipv4 = row.value("ipv4", self.report).and_then(|v| v.prefix4(self.report));
            let ipv6 = row.value("ipv6", self.report).and_then(|v| v.prefix6(self.report));
            if let (Some(ipv4), Some(ipv6)) = (ipv4, ipv6) {
                self.admit((ipv4, ipv6), row.place());
                rows.push(EamRow { ipv4, ipv6 });
            }
        }
        rows
    }

    fn read_file(
        &mut self,
        path: &Path,
        place: &Place,
        read_file: &mut dyn FnMut(&Path) -> std::io::Result<String>,
    ) -> Vec<Eam> {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(error) => {
                self.report.fault(place, format!("cannot be read: {error}"));
                return Vec::new();
            }
        };
        let mut rows = Vec::new();
        let file = Place::file(&path.to_string_lossy());
        for (line, row) in parse_eam_file(&text) {
            let place = Place { line: u32::try_from(line).unwrap_or(u32::MAX), ..file.clone() };
            match row {
                Ok(row) => {
                    self.admit(row, &place);
                    rows.push(row);
                }
                Err(error) => self.report.fault(&place, error.to_string()),
            }
        }
        rows
    }

    /// RFC 7757 §3.2: the IPv4 side must leave as many suffix bits as the IPv6 side, or fewer.
    fn admit(&mut self, (ipv4, ipv6): Eam, place: &Place) {
        let (suffix4, suffix6) = (32 - ipv4.length(), 128 - ipv6.length());
        if suffix4 > suffix6 {
            let what = "the IPv6 side must have at least as many suffix bits (RFC 7757 §3.2)";
            self.report
                .fault(place, format!("{ipv4} has {suffix4} suffix bits, {ipv6} only {suffix6}; {what}"));
        }
        self.claims.v4(ipv4, self.owner4.clone(), place);
        self.claims.v6(ipv6, self.owner6.clone(), place);
    }
}
