//! From the files to a [`Config`], or to every fault in them.

use std::io;
use std::path::Path;

use sixway_dataplane::mechanism::table::Kind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::claims::Claims;
use crate::config::{Config, MAX_EAM_ROUTES, eam_routes};
use crate::configured_tunnel::ConfiguredTunnel;
use crate::divided_pools;
use crate::dns64::{self, Dns64, Translators};
use crate::document::Document;
use crate::ds_lite::{self, Aftr, DsLite};
use crate::event_log::EventLog;
use crate::fast_path::FastPath;
use crate::fault::{Faults, Place, Report, Warning};
use crate::gateway::{Fragments, Gateway, Tun};
use crate::host::HostFacts;
use crate::inside;
use crate::isatap::{Isatap, IsatapRole};
use crate::mechanism_sections::{default_name, too_many};
use crate::mechanisms::Mechanisms;
use crate::nat44::{self, Nat44};
use crate::nat46_check;
use crate::nat64::{self, Nat64};
use crate::own_tunnels;
use crate::pcp::{self, Pcp};
use crate::pool::{Pool, ReadPool};
use crate::portless_tunnels;
use crate::private_networks;
use crate::realm::{self, Realm};
use crate::route::Route;
use crate::router_advertisement::{Names, RouterAdvertisement};
use crate::schema::{self, SECTIONS, Section};
use crate::section::{Reader, readers, unknown_section};
use crate::siit::{self, Siit};
use crate::six_rd::{SixRd, SixRdRole};
use crate::six_to_four::{SixToFour, SixToFourRole};
use crate::surroundings::Surroundings;
use crate::teredo_check;
use crate::teredo_server::{self, TeredoServer};
use crate::tracked_pool;
use crate::tunnel_context::TunnelContext;
use crate::tunnels::{self, TunnelSummary, Tunnels};

/// A gateway has at least one of these sections.
fn sections_of_mechanisms() -> impl Iterator<Item = &'static str> {
    // The kinds of one section follow each other.
    let mut sections: Vec<&str> = Kind::ALL.iter().map(|kind| kind.section()).collect();
    sections.dedup();
    sections.into_iter().chain(["teredo_client", "teredo_server", "realm", "router_advertisement", "dns64"])
}

impl Config {
    /// Reads and checks the text of a configuration file; `read_file` reads the files that it names.
    ///
    /// # Errors
    /// Every fault in the text and in those files.
    pub fn parse(
        file: &str,
        text: &str,
        host: &HostFacts,
        read_file: &mut dyn FnMut(&Path) -> io::Result<String>,
    ) -> Result<(Self, Vec<Warning>), Faults> {
        let mut report = Report::default();
        let document = Document::new(file, text);
        let config = match document.parse(&mut report) {
            Some((table, broken)) if !broken.is_any() => {
                read(&document, &table, host, read_file, &mut report)
            }
            Some((table, broken)) => {
                let mut further = Report::default();
                let _ = read(&document, &table, host, read_file, &mut further);
                report.take_faults(further, |place, message| broken.leaves(place, message));
                None
            }
            None => None,
        };
        let (warnings, faults) = report.finish(file);
        match (config, faults) {
            (Some(config), None) => Ok((config, warnings)),
            (_, Some(faults)) => Err(faults),
            (None, None) => Err(Faults::of_file(file, "cannot be parsed")),
        }
    }
}

/// The document's sections, found by name.
struct Sections<'a> {
    document: &'a Document,
    table: &'a DeTable<'a>,
}

impl<'a> Sections<'a> {
    fn all(&self, schema: &'static Section, report: &mut Report) -> Vec<Reader<'a>> {
        let written: Option<&'a Spanned<DeValue<'a>>> = self.table.get(schema.name);
        written
            .map(|written| readers(self.document, schema, written, schema.name, report))
            .unwrap_or_default()
    }

    fn one(&self, schema: &'static Section, report: &mut Report) -> Reader<'a> {
        self.all(schema, report).pop().unwrap_or_else(|| Reader::absent(self.document, schema))
    }
}

/// A configuration without mechanisms is a mistake.
fn demand_mechanism(document: &Document, table: &DeTable, report: &mut Report) {
    if sections_of_mechanisms().all(|name| table.get(name).is_none()) {
        let names: Vec<String> = sections_of_mechanisms().map(|name| format!("[{name}]")).collect();
        let names = names.join(", ");
        let what = format!("configures no mechanism; write one of the sections {names}");
        report.fault(&Place::file(document.file()), what);
    }
}

/// A section that does not exist is a mistake.
fn refuse_unknown(document: &Document, table: &DeTable, report: &mut Report) {
    for (key, _) in table {
        if !SECTIONS.iter().any(|section| section.name == &**key.get_ref()) {
            report.fault(&document.place(key.span(), key.get_ref()), unknown_section(key.get_ref()));
        }
    }
}

fn read<'a>(
    document: &'a Document,
    table: &'a DeTable<'a>,
    host: &HostFacts,
    read_file: &mut dyn FnMut(&Path) -> io::Result<String>,
    report: &mut Report,
) -> Option<Config> {
    refuse_unknown(document, table, report);
    let (sections, mut claims) = (Sections { document, table }, Claims::default());
    let gateway = Gateway::read(&sections.one(&schema::GATEWAY, report), host, &mut claims, report);
    let tun = Tun::read(&sections.one(&schema::TUN, report), report);
    let fragments = Fragments::read(&sections.one(&schema::FRAGMENTS, report), report);
    let pools = read_pools(sections.all(&schema::POOL, report), host, &mut claims, report);
    let mtu = tun.as_ref().map(|tun| tun.mtu);

    let device = tun.as_ref().map(|tun| &*tun.name);
    let mut taken = Vec::new();
    let nat64 = read_nat64(&sections, mtu, (&pools, &mut taken), &mut claims, report);
    let nat44 = read_nat44(&sections, (device, host), (&pools, &mut taken), &mut claims, report);
    let realms = read_realms(&sections, (device, host), (&pools, &mut taken), &mut claims, report);
    let (mut siit, mut states) = (Vec::new(), Vec::new());
    let written = sections.all(&schema::SIIT, report);
    too_many(&written, report);
    for (index, section) in written.iter().enumerate() {
        let context = siit::SiitContext {
            index,
            gateway: gateway.as_ref().map_or("", |gateway| &gateway.name),
            mtu,
            states: &mut states,
            read_file,
            claims: &mut claims,
            report,
        };
        siit.push(Siit::read(section, default_name("siit", index, written.len()), context));
    }

    let context = TunnelContext { index: 0, mtu, host, claims: &mut claims, report };
    let others = Mechanisms::read(|schema, report| sections.all(schema, report), context);

    let ds_lite = read_ds_lite(&sections, (mtu, host), (&pools, &mut taken), &mut claims, report);
    let tunnels = read_tunnels(&sections, (device, mtu), host, &mut claims, report);
    let advertisements = read_advertisements(&sections, &tunnels, host, device, report);
    let fast_path = read_fast_path(&sections, device, host, report);
    let event_log = read_event_log(
        &sections,
        !nat64.is_empty()
            || nat44.is_some()
            || !realms.is_empty()
            || has_aftr(&ds_lite)
            || others.as_ref().is_some_and(has_concentrator),
        report,
    );
    tunnels::check_shared_pools(&pools, tunnels.section.as_ref(), report);
    let has_b4 = ds_lite.iter().flatten().any(|it| matches!(it, DsLite::B4(_)));
    let has_names =
        others.as_ref().is_some_and(|it| it.four_over_six.iter().any(|end| !end.names.is_empty()));
    let needs_no_prefix = has_b4 || has_names || table.get(schema::NAT46.name).is_some();
    let translators = Translators::of(&nat64, &siit, needs_no_prefix);
    let dns64 = read_dns64(&sections, gateway.as_ref(), &translators, host, read_file, report);
    let section = sections.all(&schema::TEREDO_SERVER, report).pop();
    let teredo_server = section.map(|section| TeredoServer::read(&section, host, read_file, report));
    let section = sections.all(&schema::PCP, report).pop();
    let pcp = section.map(|section| Pcp::read(&section, device, host, report));
    claims.host(host, device);
    claims.check(report);
    demand_mechanism(document, table, report);
    warn_of_unused(&pools, &taken, report);
    let config = Config {
        own_routes: own_routes(gateway.as_ref()?, host, device),
        gateway: gateway?,
        tun: tun?,
        fragments: fragments?,
        pools: pools.into_iter().map(|pool| pool.pool).collect::<Option<_>>()?,
        nat64: nat64.into_iter().collect::<Option<_>>()?,
        nat44: match nat44 {
            Some(read) => Some(read?),
            None => None,
        },
        realms: realms.into_iter().collect::<Option<_>>()?,
        siit: siit.into_iter().collect::<Option<_>>()?,
        others: others?,
        tunnels: tunnels.section?,
        six_to_four: tunnels.six_to_four.into_iter().collect::<Option<_>>()?,
        six_rd: tunnels.six_rd.into_iter().collect::<Option<_>>()?,
        configured_tunnels: tunnels.configured.into_iter().collect::<Option<_>>()?,
        isatap: tunnels.isatap.into_iter().collect::<Option<_>>()?,
        ds_lite: ds_lite.into_iter().collect::<Option<_>>()?,
        teredo_server: match teredo_server {
            Some(read) => Some(read?),
            None => None,
        },
        pcp: match pcp {
            Some(read) => Some(read?),
            None => None,
        },
        router_advertisements: advertisements.into_iter().collect::<Option<_>>()?,
        event_log: event_log?,
        dns64: match table.get(schema::DNS64.name) {
            Some(_) => Some(dns64?),
            None => None,
        },
        fast_path: match table.get(schema::FASTPATH.name) {
            Some(_) => Some(fast_path?),
            None => None,
        },
    };
    check_together(&config, &sections, host, report);
    warn_of_silence(&config, host, document, report);
    Some(config)
}

/// What the sections say together, once each of them is right.
fn check_together(config: &Config, sections: &Sections, host: &HostFacts, report: &mut Report) {
    let siit = sections.all(&schema::SIIT, &mut Report::default());
    for (siit, section) in config.siit.iter().zip(&siit) {
        let faults =
            siit.dynamic_pool.map(|pool| siit.dynamic(pool, &config.gateway).faults()).unwrap_or_default();
        let key = format!("{}.dynamic_pool", section.place().key).into();
        let place = Place { key, ..section.place().clone() };
        faults.iter().for_each(|fault| report.fault(&place, fault.to_string()));
    }
    let written = sections.all(&schema::ROUTER_ADVERTISEMENT, &mut Report::default());
    // What is wrong with single values is known already, in better words.
    let unknown = !report.has_faults();
    for (advertisement, section) in config.router_advertisements.iter().zip(&written).filter(|_| unknown) {
        config.check_advertisement(advertisement, section.place(), report);
    }
    if let (Some(dns64), true) = (sections.all(&schema::DNS64, &mut Report::default()).pop(), unknown) {
        config.check_dns64(&dns64, &written, host, report);
    }
    check_realms(config, sections, report);
    let mut nat44s = sections.all(&schema::NAT44, &mut Report::default());
    nat44s.truncate(usize::from(config.nat44.is_some()));
    nat44s.extend(sections.all(&schema::REALM, &mut Report::default()));
    if unknown {
        divided_pools::check_portless(config, &nat44s, report);
    }
    check_ends_of_softwires(config, sections, report);
    let relays = sections.all(&schema::TEREDO_RELAY, &mut Report::default());
    let clients = sections.all(&schema::TEREDO_CLIENT, &mut Report::default());
    teredo_check::check(config, (&relays, &clients), report);
    if let Some(section) = sections.all(&schema::NAT46, &mut Report::default()).pop() {
        nat46_check::check(config, &section, report);
    }
    if config.dns64.is_none() {
        let written = sections.all(&schema::FOUR_OVER_SIX, &mut Report::default());
        let with = config.others.four_over_six.iter().zip(&written).filter(|(it, _)| !it.names.is_empty());
        for (_, section) in with {
            let what = "names is set, but no DNS service answers queries for them; add a [dns64]";
            report.fault(section.place(), what);
        }
    }
    let written = sections.all(&schema::NAT64, &mut Report::default());
    inside::check(config, &written, report);
    if let Some(section) = sections.all(&schema::NAT44, &mut Report::default()).pop() {
        portless_tunnels::check(config, &section, report);
        own_tunnels::check(config, &section, report);
    }
    let section = sections.all(&schema::TEREDO_SERVER, &mut Report::default()).pop();
    if let (Some(section), Some(server)) = (section, &config.teredo_server) {
        teredo_server::check(server, config.shared_ports(), &section, report);
    }
    if let Some(section) = sections.all(&schema::PCP, &mut Report::default()).pop() {
        pcp::check(config.nat44.is_some() || !config.nat64.is_empty(), &section, report);
    }
    private_networks::check(config, host, &written, &siit, report);
    tracked_pool::check(config, &siit, report);
}

fn read_nat64(
    sections: &Sections,
    mtu: Option<u16>,
    (pools, taken): (&[ReadPool], &mut Vec<(String, Place)>),
    claims: &mut Claims,
    report: &mut Report,
) -> Vec<Option<Nat64>> {
    let written = sections.all(&schema::NAT64, report);
    too_many(&written, report);
    let mut all = Vec::with_capacity(written.len());
    for (index, section) in written.iter().enumerate() {
        let context = nat64::Nat64Context { index, mtu, pools, taken, claims, report };
        all.push(Nat64::read(section, default_name("nat64", index, written.len()), context));
    }
    all
}

/// `None`: there is no such section. `Some(None)`: it has faults.
fn read_nat44(
    sections: &Sections,
    (device, host): (Option<&str>, &HostFacts),
    (pools, taken): (&[ReadPool], &mut Vec<(String, Place)>),
    claims: &mut Claims,
    report: &mut Report,
) -> Option<Option<Nat44>> {
    let section = sections.all(&schema::NAT44, report).pop()?;
    let context = nat44::Nat44Context { device, realm: None, host, pools, taken, claims, report };
    Some(Nat44::read(&section, context))
}

fn read_realms(
    sections: &Sections,
    (device, host): (Option<&str>, &HostFacts),
    (pools, taken): (&[ReadPool], &mut Vec<(String, Place)>),
    claims: &mut Claims,
    report: &mut Report,
) -> Vec<Option<Realm>> {
    let written = sections.all(&schema::REALM, report);
    too_many(&written, report);
    let mut all = Vec::with_capacity(written.len());
    for (index, section) in written.iter().enumerate() {
        let realm = Some(index);
        let context = nat44::Nat44Context { device, realm, host, pools, taken, claims, report };
        all.push(Realm::read(section, context));
    }
    all
}

fn check_realms(config: &Config, sections: &Sections, report: &mut Report) {
    let written = sections.all(&schema::REALM, &mut Report::default());
    realm::check(&config.realms, (&config.nat64, config.nat44.as_ref()), &written, report);
    if let (Some(realm), true) = (written.first(), config.is_offloaded()) {
        let what = "cannot be combined with [fastpath], which does not know which device a packet belongs to";
        report.fault(realm.place(), format!("{what}; remove one of the two"));
    }
}

/// An AFTR and a concentrator tell their clients' packets by the address that they come to.
fn check_ends_of_softwires(config: &Config, sections: &Sections, report: &mut Report) {
    let written = sections.all(&schema::FOUR_OVER_SIX, &mut Report::default());
    for (end, section) in config.others.four_over_six.iter().zip(&written) {
        let Some(concentrator) = end.concentrator() else { continue };
        let mut aftrs = config.aftrs();
        let same = |aftr: &&Aftr| aftr.addresses.iter().any(|it| concentrator.addresses.contains(it));
        if let Some(aftr) = aftrs.find(same) {
            let what = "a tunnel packet to it could belong to either; write another address";
            report.fault(section.place(), format!("has an address of {}, too; {what}", aftr.name));
        }
    }
}

/// `Some(None)`: there is no such section. `None`: it has faults.
fn read_event_log(sections: &Sections, has_nat: bool, report: &mut Report) -> Option<Option<EventLog>> {
    match sections.all(&schema::LOG, report).pop() {
        Some(section) => EventLog::read(&section, has_nat, report).map(Some),
        None => Some(None),
    }
}

fn warn_of_unused(pools: &[ReadPool], taken: &[(String, Place)], report: &mut Report) {
    for (pool, name) in pools.iter().filter_map(|pool| Some((pool, pool.name.as_ref()?))) {
        if !taken.iter().any(|(other, _)| other == name) {
            let mend = format!("set nat64.pool, nat44.pool or realm.pool = \"{name}\", or remove this pool");
            report.warn(&pool.place, format!("is not used by any translator; {mend}"));
        }
    }
}

fn has_concentrator(mechanisms: &Mechanisms) -> bool {
    mechanisms.four_over_six.iter().any(|end| end.concentrator().is_some())
}

fn has_aftr(ds_lite: &[Option<DsLite>]) -> bool {
    ds_lite.iter().flatten().any(|it| matches!(it, DsLite::Aftr(_)))
}

fn read_ds_lite(
    sections: &Sections,
    (mtu, host): (Option<u16>, &HostFacts),
    (pools, taken): (&[ReadPool], &mut Vec<(String, Place)>),
    claims: &mut Claims,
    report: &mut Report,
) -> Vec<Option<DsLite>> {
    let written = sections.all(&schema::DS_LITE, report);
    too_many(&written, report);
    let mut read = Vec::with_capacity(written.len());
    for (index, section) in written.iter().enumerate() {
        let context = TunnelContext { index, mtu, host, claims, report };
        let pools = ds_lite::AftrPools { pools, taken };
        read.push(DsLite::read(section, default_name("ds_lite", index, written.len()), pools, context));
    }
    ds_lite::check_together(&read, &written, report);
    read
}

/// The tunnels as they were read.
struct ReadTunnels {
    section: Option<Tunnels>,
    six_to_four: Vec<Option<SixToFour>>,
    six_rd: Vec<Option<SixRd>>,
    configured: Vec<Option<ConfiguredTunnel>>,
    isatap: Vec<Option<Isatap>>,
}

fn read_tunnels(
    sections: &Sections,
    (device, mtu): (Option<&str>, Option<u16>),
    host: &HostFacts,
    claims: &mut Claims,
    report: &mut Report,
) -> ReadTunnels {
    let mut seen = Vec::new();
    macro_rules! read_all {
        ($schema:ident, $name:literal, $mechanism:ident, $seen:path) => {{
            let written = sections.all(&schema::$schema, report);
            too_many(&written, report);
            let mut read = Vec::with_capacity(written.len());
            for (index, section) in written.iter().enumerate() {
                let context = TunnelContext { index, mtu, host, claims, report };
                let one = $mechanism::read(section, default_name($name, index, written.len()), context);
                seen.extend(one.iter().map(|one| $seen(one, section.place())));
                read.push(one);
            }
            read
        }};
    }
    let six_to_four = read_all!(SIX_TO_FOUR, "six_to_four", SixToFour, TunnelSummary::six_to_four);
    let six_rd = read_all!(SIX_RD, "six_rd", SixRd, TunnelSummary::six_rd);
    let configured = read_all!(TUNNEL, "tunnel", ConfiguredTunnel, TunnelSummary::configured);
    let isatap = read_all!(ISATAP, "isatap", Isatap, TunnelSummary::isatap);
    let section = Tunnels::read(&sections.one(&schema::TUNNELS, report), (device, &seen), host, report);
    tunnels::check_together(&seen, report);
    if let Some(section) = &section {
        tunnels::check_kernel(&seen, section.steering, host, report);
    }
    ReadTunnels { section, six_to_four, six_rd, configured, isatap }
}

fn read_advertisements(
    sections: &Sections,
    tunnels: &ReadTunnels,
    host: &HostFacts,
    device: Option<&str>,
    report: &mut Report,
) -> Vec<Option<RouterAdvertisement>> {
    let sites = tunnels.six_to_four.iter().flatten().filter(|it| it.role == SixToFourRole::Router);
    let sites = sites.map(|it| (it.name.clone(), Some(48)));
    let edges = tunnels.six_rd.iter().flatten().filter(|it| it.role == SixRdRole::CustomerEdge);
    let edges = edges.map(|it| (it.name.clone(), Some(it.prefix.length() + 32 - it.ipv4_mask_length)));
    let delegated: Vec<(String, Option<u8>)> = sites.chain(edges).collect();
    let routers = tunnels.isatap.iter().flatten().filter(|it| it.role == IsatapRole::Router);
    let isatap: Vec<String> = routers.map(|it| it.name.clone()).collect();
    let names = Names { delegated: &delegated, isatap: &isatap, host, device };
    let written = sections.all(&schema::ROUTER_ADVERTISEMENT, report);
    let mut links: Vec<(String, Place)> = Vec::new();
    let mut subnets: Vec<(String, u32, Place)> = Vec::new();
    let read = |section: &Reader| {
        let one = RouterAdvertisement::read(section, &names, report)?;
        let link = one.interface.clone().or_else(|| one.over.clone()).unwrap_or_default();
        if let Some((_, place)) = links.iter().find(|(other, _)| *other == link) {
            let there = place.seen_from(section.place());
            report.fault(
                section.place(),
                format!("{link} already has advertisements ({there}); write one section for each link"),
            );
        }
        for row in &one.prefixes {
            let Some(from) = &row.from else { continue };
            let same = subnets.iter().find(|(other, number, _)| other == from && *number == row.subnet);
            if let Some((_, number, place)) = same {
                let there = place.seen_from(section.place());
                report.fault(
                    section.place(),
                    format!("subnet {number} of {from} is already used on a link ({there}); use a different number for each link"),
                );
            }
            subnets.push((from.clone(), row.subnet, section.place().clone()));
        }
        links.push((link, section.place().clone()));
        Some(one)
    };
    written.iter().map(read).collect()
}

fn read_dns64(
    sections: &Sections,
    gateway: Option<&Gateway>,
    translators: &Translators,
    host: &HostFacts,
    read_file: &mut dyn FnMut(&Path) -> io::Result<String>,
    report: &mut Report,
) -> Option<Dns64> {
    let section = sections.all(&schema::DNS64, report).pop()?;
    let own4 = gateway.and_then(|gateway| gateway.ipv4_address).map(Into::into);
    let own6 = gateway.and_then(|gateway| gateway.ipv6_address).map(Into::into);
    let mut context = dns64::Dns64Context {
        host,
        gateway: gateway.map_or("", |gateway| &gateway.name),
        metrics: gateway.and_then(|gateway| gateway.metrics),
        own: own4.into_iter().chain(own6).collect(),
        translators,
        read_file,
        report,
    };
    Dns64::read(&section, &mut context)
}

fn read_fast_path(
    sections: &Sections,
    device: Option<&str>,
    host: &HostFacts,
    report: &mut Report,
) -> Option<FastPath> {
    let section = sections.all(&schema::FASTPATH, report).pop()?;
    FastPath::read(&section, device, host, report)
}

fn read_pools(
    written: Vec<Reader>,
    host: &HostFacts,
    claims: &mut Claims,
    report: &mut Report,
) -> Vec<ReadPool> {
    let mut pools: Vec<ReadPool> = Vec::with_capacity(written.len());
    for (index, mut section) in written.into_iter().enumerate() {
        let pool = Pool::read(&mut section, index, host, claims, report);
        if let Some(same) = pools.iter().find(|other| other.name.is_some() && other.name == pool.name) {
            let there = same.place.seen_from(&pool.place);
            report
                .fault(&pool.place, format!("another pool has this name ({there}); choose a different name"));
        }
        pools.push(pool);
    }
    divided_pools::divide(&mut pools, host, report);
    pools
}

/// The gateway's own addresses are routed into the device, unless the host has them on another.
fn own_routes(gateway: &Gateway, host: &HostFacts, device: Option<&str>) -> Vec<Route> {
    let own4 = gateway.ipv4_address.map(|a| (a.into(), Route::V4(sixway_wire::Prefix4::holding(a, 32))));
    let own6 = gateway.ipv6_address.map(|a| (a.into(), Route::V6(sixway_wire::Prefix6::holding(a, 128))));
    let elsewhere = |address: std::net::IpAddr| {
        host.addresses.iter().any(|own| own.address == address && Some(&*own.interface) != device)
    };
    own4.into_iter().chain(own6).filter(|(address, _)| !elsewhere(*address)).map(|(_, route)| route).collect()
}

/// What will be missed: ICMP errors without a source, and routes that are too many.
fn warn_of_silence(config: &Config, host: &HostFacts, document: &Document, report: &mut Report) {
    let file = Place::file(document.file());
    let translates = config.translates();
    // Errors of tunnels of IPv6 in IPv4 go to IPv6 hosts alone.
    let own6 = config.ipv6_address(&Surroundings::of(&host.addresses));
    let v4 = translates || config.others.serve_ipv4();
    let v6 = (translates || config.has_tunnels() || config.others.serve_ipv6()) && own6.is_none();
    if config.has_nat44() && config.gateway.ipv4_address.is_none() {
        let place = Place { key: "gateway.ipv4_address".into(), ..file.clone() };
        let what =
            "a NAT must answer packets that are too large (RFC 4787 REQ-13), which it does from this address";
        report.fault(
            &place,
            format!("is missing: {what}; set it to an address that is routed to this machine"),
        );
    }
    let without = [
        ("gateway.ipv4_address", ("ICMPv4", "IPv4"), v4 && config.gateway.ipv4_address.is_none()),
        ("gateway.ipv6_address", ("ICMPv6", "IPv6"), v6),
    ];
    for (key, (icmp, family), _) in without.into_iter().filter(|(_, _, missing)| *missing) {
        let place = Place { key: key.into(), ..file.clone() };
        let what = format!("no {icmp} errors are sent, and path MTU discovery fails for {family} hosts");
        report
            .warn(&place, format!("is not set: {what}; set it to an address that is routed to this machine"));
    }
    for siit in config.siit.iter().filter(|_| config.tun.routes.auto) {
        if let Err(count) = eam_routes(siit) {
            let place = Place { key: siit.name.as_str().into(), ..file.clone() };
            let what = "no route is added; write shorter prefixes that cover them in tun.routes";
            report.warn(
                &place,
                format!("the mappings need {count} routes, more than {MAX_EAM_ROUTES}; {what}"),
            );
        }
    }
}
