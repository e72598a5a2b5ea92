//! `[[ip_in_ip]]`: tunnels of either family over IPv6 (RFC 2473), and of IPv4 over IPv4 (RFC 2003).

use std::net::IpAddr;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::ip_in_ip::{IpInIpConfig, IpInIpFault};
use sixway_dataplane::source_check::{is_martian4, is_martian6};
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_wire::{Prefix4, Prefix6};

use crate::claims::{Claims, Owner};
use crate::encapsulation::Encapsulation;
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::host_prefixes::{NO_HOSTS, is_of_hosts};
use crate::mechanism::{FromSection, Mechanism};
use crate::outer_end;
use crate::route::Route;
use crate::section::Reader;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::value::Value;

/// A tunnel, resolved.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct IpInIp {
    /// Its name.
    pub name: String,
    /// This end.
    #[serde(serialize_with = "text::one")]
    pub local: IpAddr,
    /// The other end.
    #[serde(serialize_with = "text::one")]
    pub remote: IpAddr,
    /// The prefixes behind the remote end.
    #[serde(serialize_with = "text::many")]
    pub prefixes: Vec<Route>,
    /// Whether inner sources must lie within them.
    pub strict_sources: bool,
    /// How many more tunnels a packet may enter; not with IPv4 ends.
    #[serde(flatten)]
    pub encapsulation_limit: EncapsulationLimit,
    /// How packets are put into the outer header.
    #[serde(flatten)]
    pub encapsulation: Encapsulation,
}

/// `encapsulation_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapsulationLimit {
    /// The ends are IPv4 addresses.
    Inapplicable,
    /// No option is written.
    None,
    /// This one.
    Some(u8),
}

impl Serialize for EncapsulationLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Inapplicable => {}
            Self::None => map.serialize_entry("encapsulation_limit", "none")?,
            Self::Some(limit) => map.serialize_entry("encapsulation_limit", limit)?,
        }
        map.end()
    }
}

impl EncapsulationLimit {
    fn read(section: &Reader, ends: Option<IpAddr>, report: &mut Report) -> Option<Self> {
        let value = section.value("encapsulation_limit", report)?;
        let limit = value.integer_or(report)?;
        if ends.is_some_and(|end| end.is_ipv4()) {
            if value.is_written() {
                report.fault(&value.place, "applies only to tunnels over IPv6; remove it");
            }
            return Some(Self::Inapplicable);
        }
        Some(limit.map_or(Self::None, Self::Some))
    }
}

/// An address of a host, and where it is written.
fn read_end(section: &Reader, key: &str, report: &mut Report) -> Option<(IpAddr, Place)> {
    let value = section.value(key, report)?;
    let address = value.address(report)?;
    let is_no_hosts = match address {
        IpAddr::V4(address) => is_martian4(address),
        IpAddr::V6(address) => is_martian6(address),
    };
    if is_no_hosts {
        report.fault(
            &value.place,
            "is not a valid host address; write a unicast address that is not link-local",
        );
        return None;
    }
    Some((address, value.place))
}

/// The other end: none of this host's own.
fn check_remote(remote: IpAddr, place: &Place, host: &HostFacts, claims: &mut Claims, report: &mut Report) {
    match remote {
        IpAddr::V4(remote) => outer_end::check(remote, place, host, claims, report),
        IpAddr::V6(remote) => claims.v6(Prefix6::holding(remote, 128), Owner::OuterEnd, place),
    }
    if let Some(held) = host.addresses.iter().find(|it| it.address == remote) {
        let what =
            format!("is this host's own address on {}; write the address of the remote end", held.interface);
        report.fault(place, what);
    }
}

fn read_prefixes(value: Value, index: usize, claims: &mut Claims, report: &mut Report) -> Option<Vec<Route>> {
    let (place, mut whole, mut prefixes) = (value.place.clone(), true, Vec::new());
    for item in value.items() {
        let Some(prefix) = item.network(report) else {
            whole = false;
            continue;
        };
        match prefix {
            Route::V4(prefix) => claims.v4(prefix, Owner::Tunnel(index), &item.place),
            Route::V6(prefix) => {
                if !is_of_hosts(prefix) {
                    report.fault(&item.place, format!("{prefix} {NO_HOSTS}"));
                }
                claims.v6(prefix, Owner::Tunnel(index), &item.place);
            }
        }
        prefixes.push(prefix);
    }
    if whole && prefixes.is_empty() {
        report.fault(&place, "is empty; write the prefixes behind the remote end, such as [\"10.7.0.0/16\"]");
    }
    whole.then_some(prefixes)
}

/// How to fix an error.
const fn mend(fault: IpInIpFault) -> &'static str {
    match fault {
        IpInIpFault::SameEnds => "write the address of the remote end as remote",
        IpInIpFault::MixedEnds => "write two addresses of one family",
        IpInIpFault::SixInFour => "use a [[tunnel]], whose local end is an address of this host",
    }
}

impl FromSection for IpInIp {
    fn read(
        section: &Reader,
        default_name: String,
        before: &[Option<Self>],
        context: TunnelContext,
    ) -> Option<Self> {
        let TunnelContext { index, mtu, host, claims, report } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let local = read_end(section, "local", report);
        let remote = read_end(section, "remote", report);
        if let Some((address, place)) = &local {
            match address {
                IpAddr::V4(address) => claims.v4(Prefix4::holding(*address, 32), Owner::TunnelEnd, place),
                IpAddr::V6(address) => claims.v6(Prefix6::holding(*address, 128), Owner::TunnelEnd, place),
            }
        }
        let prefixes = section.value("prefixes", report);
        let prefixes = prefixes.and_then(|v| read_prefixes(v, index, claims, report));
        let strict_sources = section.value("strict_sources", report).and_then(|v| v.boolean(report));
        let limit = EncapsulationLimit::read(section, local.as_ref().map(|(local, _)| *local), report);
        let encapsulation = Encapsulation::read(section, mtu, report);
        let ((local, local_at), (remote, remote_at)) = (local?, remote?);
        let tunnel = Self {
            name: name.unwrap_or(Some(default_name))?,
            local,
            remote,
            prefixes: prefixes?,
            strict_sources: strict_sources?,
            encapsulation_limit: limit?,
            encapsulation: encapsulation?,
        };
        if let Err(fault) = tunnel.config().check() {
            let place = if fault == IpInIpFault::SixInFour { &local_at } else { &remote_at };
            report.fault(place, format!("{fault}; {}", mend(fault)));
            return None;
        }
        check_remote(remote, &remote_at, host, claims, report);
        tunnel.check_way_to_remote(&remote_at, report);
        if let Some(other) = before.iter().flatten().find(|it| (it.local, it.remote) == (local, remote)) {
            let what = "has the same two ends; write one [[ip_in_ip]] with all prefixes, or use another local address";
            report.fault(section.place(), format!("{} {what}", other.name));
        }
        Some(tunnel)
    }
}

impl IpInIp {
    fn config(&self) -> IpInIpConfig {
        let (mut prefixes4, mut prefixes6) = (Vec::new(), Vec::new());
        for prefix in &self.prefixes {
            match prefix {
                Route::V4(prefix) => prefixes4.push(*prefix),
                Route::V6(prefix) => prefixes6.push(*prefix),
            }
        }
        let encapsulation_limit = match self.encapsulation_limit {
            EncapsulationLimit::Inapplicable | EncapsulationLimit::None => None,
            EncapsulationLimit::Some(limit) => Some(limit),
        };
        IpInIpConfig {
            local: self.local,
            remote: Some(self.remote),
            prefixes4,
            prefixes6,
            strict_sources: self.strict_sources,
            policy: TunnelPolicy { encapsulation_limit, ..self.encapsulation.engine() },
        }
    }

    /// The routes into the tunnel may include its remote end.
    fn check_way_to_remote(&self, place: &Place, report: &mut Report) {
        let (whole, holding) = match self.remote {
            IpAddr::V4(remote) => {
                let whole = Prefix4::holding(remote, 32);
                let holds = |it: &&Route| matches!(it, Route::V4(prefix) if prefix.contains(remote));
                (Route::V4(whole), self.prefixes.iter().find(holds))
            }
            IpAddr::V6(remote) => {
                let whole = Prefix6::holding(remote, 128);
                let holds = |it: &&Route| matches!(it, Route::V6(prefix) if prefix.contains(remote));
                (Route::V6(whole), self.prefixes.iter().find(holds))
            }
        };
        if self.prefixes.contains(&whole) {
            let what = "the tunnel's own packets would be routed into it; remove it from prefixes";
            report.fault(place, format!("is one of prefixes: {what}"));
        } else if let Some(prefix) = holding {
            let what =
                "the tunnel's own packets need a more specific route that does not lead into the device";
            report.warn(place, format!("is within {prefix}, one of prefixes: {what}"));
        }
    }
}

impl Mechanism for IpInIp {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        self.config().into()
    }

    fn serves(&self) -> String {
        let prefixes: Vec<String> = self.prefixes.iter().map(ToString::to_string).collect();
        format!("{} ⇄ {} · {}", self.local, self.remote, prefixes.join(" · "))
    }

    fn routes(&self) -> Vec<Route> {
        let local = match self.local {
            IpAddr::V4(local) => Route::V4(Prefix4::holding(local, 32)),
            IpAddr::V6(local) => Route::V6(Prefix6::holding(local, 128)),
        };
        self.prefixes.iter().copied().chain([local]).collect()
    }

    fn locals(&self) -> Vec<IpAddr> {
        vec![self.local]
    }

    fn serves_ipv4(&self) -> bool {
        self.prefixes.iter().any(|prefix| matches!(prefix, Route::V4(_)))
    }

    fn serves_ipv6(&self) -> bool {
        self.prefixes.iter().any(|prefix| matches!(prefix, Route::V6(_)))
    }
}
