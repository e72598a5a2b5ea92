//! `role = "b4"`: the customer's end of a softwire (RFC 6333 §5, RFC 6334).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::b4::B4Config;
use sixway_dataplane::mechanism::ds_lite::{AFTR_ADDRESS, DsLiteConfig};
use sixway_dataplane::source_check::is_martian6;
use sixway_dataplane::translate::HeaderByte;
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_wire::{Prefix4, Prefix6};

use super::role::DsLiteRole;
use crate::claims::Owner;
use crate::domain_name::is_domain_name;
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report, did_you_mean};
use crate::host::HostFacts;
use crate::interface_name::{NO_INTERFACE, is_interface_name};
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::value::Value;

/// Metric of the default route into the device: native IPv4 has precedence (RFC 6333 §5.6).
pub const ROUTE_METRIC: u32 = 30_000;

/// How the AFTR is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AftrAt {
    /// It has this address.
    Address(Ipv6Addr),
    /// The DNS knows its addresses.
    Name(String),
}

impl AftrAt {
    /// From an address or a name; `None`: neither.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        // A name of digits alone is a mistyped address.
        let is_name = is_domain_name(text) && text.bytes().any(|b| b.is_ascii_alphabetic());
        is_name.then(|| Self::Name(text.to_owned()))
    }
}

impl Serialize for AftrAt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Address(address) => serializer.collect_str(address),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

/// This end of the softwire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum B4Local {
    /// A configured address.
    Address(Ipv6Addr),
    /// The prefix of an interface, and this identifier.
    Interface(String, u64),
}

impl B4Local {
    /// The address at the moment; `None`: the interface has none.
    pub fn now(&self, now: &Surroundings) -> Option<Ipv6Addr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Interface(name, identifier) => {
                let network = now.global_ipv6_of(name)?.to_bits() >> 64 << 64;
                Some(Ipv6Addr::from_bits(network | u128::from(*identifier)))
            }
        }
    }

    /// The interface whose prefix is followed.
    pub fn followed_interface(&self) -> Option<&str> {
        match self {
            Self::Address(_) => None,
            Self::Interface(name, _) => Some(name),
        }
    }
}

impl Serialize for B4Local {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Address(address) => map.serialize_entry("local", &format_args!("{address}"))?,
            Self::Interface(name, identifier) => {
                map.serialize_entry("interface", name)?;
                let identifier = Ipv6Addr::from_bits((*identifier).into());
                map.serialize_entry("identifier", &format_args!("{identifier}"))?;
            }
        }
        map.end()
    }
}

/// A B4, resolved.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct B4 {
    /// Its name.
    pub name: String,
    role: DsLiteRole,
    /// The AFTR, if it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aftr: Option<AftrAt>,
    /// Where a DHCPv6 client writes the AFTR's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aftr_lease_file: Option<PathBuf>,
    /// Prefixes that the AFTR's addresses must be in; none: any.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub aftr_within: Vec<Prefix6>,
    /// Name servers that resolve its name; none: those of the host.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<Ipv6Addr>,
    /// This end.
    #[serde(flatten)]
    pub local: B4Local,
    /// Prefixes of the hosts behind this end.
    #[serde(serialize_with = "text::many")]
    pub inside: Vec<Prefix4>,
    /// This host's IPv4 address on the device.
    #[serde(serialize_with = "text::one")]
    pub ipv4_address: Ipv4Addr,
    /// How many more tunnels a packet may enter.
    #[serde(serialize_with = "limit")]
    pub encapsulation_limit: Option<u8>,
    /// How packets are encapsulated.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

fn limit<S: Serializer>(limit: &Option<u8>, serializer: S) -> Result<S::Ok, S::Error> {
    match limit {
        Some(limit) => serializer.serialize_u8(*limit),
        None => serializer.serialize_str("none"),
    }
}

impl B4 {
    pub(super) fn read(section: &Reader, default_name: String, context: TunnelContext) -> Option<Self> {
        let TunnelContext { mtu, host, claims, report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let aftr = section.value("aftr", report).map(|v| read_aftr(&v, host, report));
        let lease = section.value("aftr_lease_file", report).map(|v| v.path(report));
        if aftr.is_none() && lease.is_none() && !section.misspells(&["aftr", "aftr_lease_file"]) {
            let what = "has no AFTR; write aftr = \"aftr.example\" as given by the provider, or aftr_lease_file (RFC 6334)";
            report.fault(section.place(), what);
        }
        let within = section.value("aftr_within", report);
        if let (Some(Some(AftrAt::Address(_))), None, Some(v)) = (&aftr, &lease, &within) {
            report.fault(&v.place, "applies only to an AFTR that is a name; remove it");
        }
        let aftr_within = read_list(within, |item, report| item.prefix6(report), report);
        let name_servers = section.value("name_servers", report);
        let name_servers = read_list(name_servers, |item, report| item.address6(report), report);
        let local = read_local(section, host, report);
        if let Some((B4Local::Address(address), place)) = &local {
            claims.v6(Prefix6::holding(*address, 128), Owner::TunnelEnd, place);
        }
        if let Some(Some(AftrAt::Address(address))) = &aftr {
            claims.v6(Prefix6::holding(*address, 128), Owner::OuterEnd, section.place());
        }
        claims.v4(Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0), Owner::WayOut, section.place());
        let inside = match section.value("inside", report) {
            None => Some(DsLiteConfig::inside_by_default()),
            written => read_list(written, |item, report| item.prefix4(report), report),
        };
        let ipv4_address =
            section.value("ipv4_address", report).and_then(|v| read_ipv4(&v, inside.as_deref(), report));
        let encapsulation_limit =
            section.value("encapsulation_limit", report).and_then(|v| v.integer_or(report));
        let encapsulation = Encapsulation::read(section, mtu, report);
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: DsLiteRole::B4,
            aftr: aftr.map_or(Some(None), |aftr| aftr.map(Some))?,
            aftr_lease_file: lease.map_or(Some(None), |lease| lease.map(Some))?,
            aftr_within: aftr_within?,
            name_servers: name_servers?,
            local: local?.0,
            inside: inside?,
            ipv4_address: ipv4_address?,
            encapsulation_limit: encapsulation_limit?,
            encapsulation: encapsulation?,
        })
    }

    /// The AFTR's address at the moment.
    pub fn aftr_now(&self, now: &Surroundings) -> Option<Ipv6Addr> {
        match (&self.aftr, now.aftrs.get(&self.name)) {
            (_, Some(found)) => Some(*found),
            (Some(AftrAt::Address(address)), None) => Some(*address),
            (Some(AftrAt::Name(_)) | None, None) => None,
        }
    }

    /// The tunnel at the moment; `None` as long as this end has no address.
    pub(crate) fn engine(&self, now: &Surroundings) -> Option<MechanismConfig> {
        let local = self.local.now(now)?;
        let policy = TunnelPolicy {
            encapsulation_limit: self.encapsulation_limit,
            // RFC 6333 §7.1, RFC 2983 §3.1: if the DSCP is copied into the outer header, it is also copied out of it.
            copies_dscp_out: self.encapsulation.traffic_class == HeaderByte::Copy,
            ..self.encapsulation.engine()
        };
        let remote = self.aftr_now(now).filter(|aftr| *aftr != local);
        Some(B4Config { local, remote, inside: self.inside.clone(), policy }.into())
    }
}

fn read_list<T>(
    list: Option<Value>,
    read: impl Fn(&Value, &mut Report) -> Option<T>,
    report: &mut Report,
) -> Option<Vec<T>> {
    let Some(list) = list else { return Some(Vec::new()) };
    let items = list.items();
    // All of them, so that every fault is reported.
    let read: Vec<Option<T>> = items.iter().map(|item| read(item, report)).collect();
    read.into_iter().collect()
}

fn read_aftr(value: &Value, host: &HostFacts, report: &mut Report) -> Option<AftrAt> {
    let text = value.text(report)?;
    let Some(aftr) = AftrAt::parse(&text) else {
        let what = "is neither an IPv6 address nor a name; write one such as aftr.example or 2001:db8::a";
        report.fault(&value.place, what);
        return None;
    };
    if let AftrAt::Address(address) = aftr {
        if is_martian6(address) {
            report.fault(
                &value.place,
                "is not a valid host address; write a unicast address that is not link-local",
            );
            return None;
        }
        if let Some(held) = host.addresses.iter().find(|it| it.address == IpAddr::V6(address)) {
            let what =
                format!("is this host's own address on {}; write the address of the AFTR", held.interface);
            report.fault(&value.place, what);
        }
    }
    Some(aftr)
}

fn read_local(section: &Reader, host: &HostFacts, report: &mut Report) -> Option<(B4Local, Place)> {
    let identifier = section.value("identifier", report)?;
    let bits = identifier.address6(report)?.to_bits();
    let written = (section.value("local", report), section.value("interface", report));
    match written {
        (None, None) => {
            let what = "has no local end; write interface = \"eth0\", the interface with this host's IPv6 prefix, or local = \"2001:db8:1::b4\"";
            report.fault(section.place(), what);
            None
        }
        (Some(local), Some(interface)) => {
            let _read = local.address6(report);
            report.fault(&interface.place, "cannot be combined with local; remove one");
            None
        }
        (Some(local), None) => {
            if identifier.is_written() {
                report.fault(&identifier.place, "applies only with interface; remove it");
            }
            let address = local.address6(report)?;
            if is_martian6(address) {
                let what = "is not a valid host address; write a unicast address that is not link-local";
                report.fault(&local.place, what);
                return None;
            }
            Some((B4Local::Address(address), local.place))
        }
        (None, Some(interface)) => {
            if bits >> 64 != 0 || bits == 0 {
                let what =
                    "is not an interface identifier; write 64 bits that are not all zero, such as ::b4";
                report.fault(&identifier.place, what);
                return None;
            }
            let name = read_interface(&interface, bits as u64, host, report)?;
            Some((B4Local::Interface(name, bits as u64), interface.place))
        }
    }
}

fn read_interface(value: &Value, identifier: u64, host: &HostFacts, report: &mut Report) -> Option<String> {
    let name = value.text(report)?;
    if !is_interface_name(&name) {
        report.fault(&value.place, NO_INTERFACE);
        return None;
    }
    let local = B4Local::Interface(name.clone(), identifier).now(&Surroundings::of(&host.addresses));
    let held = |it: &&crate::host::HostAddress| local.is_some_and(|local| it.address == IpAddr::V6(local));
    if let Some(held) = host.addresses.iter().find(held) {
        let what = "the kernel would receive the tunnel's packets; write another identifier";
        report.fault(&value.place, format!("{} is this host's own address: {what}", held.address));
    }
    if local.is_none() && !host.addresses.is_empty() {
        let names = host.addresses.iter().map(|own| &*own.interface);
        let near = did_you_mean(&name, names).filter(|near| *near != name);
        let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        let what = "has no global IPv6 address yet; the tunnel starts when it has one";
        report.warn(&value.place, format!("{what}{near}"));
    }
    Some(name)
}

fn read_ipv4(value: &Value, inside: Option<&[Prefix4]>, report: &mut Report) -> Option<Ipv4Addr> {
    let address = value.address4(report)?;
    if address == AFTR_ADDRESS {
        report.fault(&value.place, "is the AFTR's; write 192.0.0.2 (RFC 6333 §5.7)");
        return None;
    }
    if inside.is_some_and(|inside| !inside.iter().any(|prefix| prefix.contains(address))) {
        let what =
            "is not in `inside`, so that its packets are dropped; write 192.0.0.2, or another of these";
        report.fault(&value.place, format!("{what} (RFC 6333 §5.7, §11)"));
        return None;
    }
    Some(address)
}
