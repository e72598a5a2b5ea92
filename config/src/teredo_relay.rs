//! `[[teredo_relay]]`: a relay between native IPv6 and Teredo clients (RFC 4380 §5.4).

use std::net::Ipv6Addr;

use serde::Serialize;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::teredo::{RelayConfig, TeredoConfig, TeredoRole};
use sixway_dataplane::source_check::is_martian6;
use sixway_dataplane::translate::address::non_global::non_global;
use sixway_dataplane::tunnel::address::embedded::is_public;
use sixway_wire::teredo::TEREDO_PREFIX;
use sixway_wire::{Endpoint4, Prefix6};

use crate::claims::Owner;
use crate::fault::{Place, Report};
use crate::local_address::LocalAddress;
use crate::mechanism::{FromSection, Mechanism};
use crate::route::Route;
use crate::schema::TEREDO_RELAY;
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::value::Value;

/// A relay, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TeredoRelay {
    /// Its name.
    pub name: String,
    /// Its IPv4 address.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// Its UDP port.
    pub port: u16,
    /// The source of its bubbles.
    #[serde(serialize_with = "text::one")]
    pub ipv6_address: Ipv6Addr,
    /// Networks that clients reach through it; empty: all.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub serves: Vec<Prefix6>,
    /// Maximum number of clients.
    pub max_peers: u32,
}

impl TeredoRelay {
    /// The local endpoint of its UDP socket at the moment; `None`: it has no address.
    pub fn end(&self, now: &Surroundings) -> Option<Endpoint4> {
        Some(Endpoint4::new(self.local.now(now)?, self.port))
    }

    /// What it exposes and to whom it answers, in words.
    pub fn exposes(&self) -> String {
        let address = self.local.found.map_or_else(|| "its address".to_owned(), |it| it.to_string());
        format!(
            "UDP {address}:{} · takes packets of any IPv4 host · forwards what Teredo clients send to {}, and back",
            self.port,
            self.whom()
        )
    }

    /// The networks that it serves, in words.
    pub fn whom(&self) -> String {
        match &self.serves[..] {
            [] => "anybody".into(),
            listed => listed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }
}

/// The IPv6 address of a relay.
fn read_address(value: &Value, report: &mut Report) -> Option<Ipv6Addr> {
    let address = value.address6(report)?;
    if is_martian6(address) || address.is_unicast_link_local() || TEREDO_PREFIX.contains(address) {
        report.fault(
            &value.place,
            "cannot be the source of bubbles; write a global address that is routed to this host",
        );
        return None;
    }
    if address.to_bits() >> 121 == 0xfc >> 1 {
        let what = "clients elsewhere drop its bubbles, or cannot answer; write a global address";
        report.warn(&value.place, format!("is not global (unique local, RFC 4193): {what}"));
    }
    Some(address)
}

fn read_served(value: Value, report: &mut Report) -> Option<Vec<Prefix6>> {
    let mut whole = true;
    let mut all = Vec::new();
    for item in value.items() {
        match item.prefix6(report) {
            Some(prefix) if TEREDO_PREFIX.length() <= prefix.length() && TEREDO_PREFIX.overlaps(prefix) => {
                let what = "is a prefix of clients, which reach each other without a relay; remove it";
                report.fault(&item.place, format!("{prefix} {what}"));
                whole = false;
            }
            Some(prefix) => all.push(prefix),
            None => whole = false,
        }
    }
    whole.then_some(all)
}

/// Reports an address to which clients cannot send.
fn check_local(local: &LocalAddress, place: &Place, report: &mut Report) {
    let Some(address) = local.found.filter(|address| !is_public(*address)) else { return };
    let which = match local.followed_interface() {
        Some(_) => format!("has {address}, which is"),
        None => "is".to_owned(),
    };
    let purpose = non_global(address).map_or("no host's", |row| row.purpose);
    let what = "clients in other networks cannot reach a relay there; use an address of the Internet";
    report.warn(place, format!("{which} not global ({purpose}): {what}"));
}

impl FromSection for TeredoRelay {
    fn read(
        section: &Reader,
        default_name: String,
        before: &[Option<Self>],
        context: TunnelContext,
    ) -> Option<Self> {
        let TunnelContext { index, host, claims, report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let local = LocalAddress::read(section, "address", host, report);
        let port = section.value("port", report).and_then(|v| v.integer::<u16>(report));
        let ipv6_address = section.value("ipv6_address", report).and_then(|v| read_address(&v, report));
        let serves = section.value("serves", report).map(|v| read_served(v, report));
        let max_peers = section.value("max_peers", report).and_then(|v| v.integer(report));
        if let (Some((local, place)), Some(port)) = (&local, port) {
            check_local(local, place, report);
            let mut others = before.iter().flatten();
            let same = |other: &&Self| other.local.source == local.source && other.port == port;
            if let Some(other) = others.find(same) {
                let what = "a socket cannot be opened twice; write another address or port";
                report.fault(place, format!("and port {port} are those of {}, too: {what}", other.name));
            }
        }
        // All relays reach the same clients.
        if index == 0 {
            claims.v6(TEREDO_PREFIX, Owner::Prefix(TEREDO_RELAY.name, 0), section.place());
        }
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            local: local?.0,
            port: port?,
            ipv6_address: ipv6_address?,
            serves: serves.unwrap_or(Some(Vec::new()))?,
            max_peers: max_peers?,
        })
    }
}

impl Mechanism for TeredoRelay {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        let relay = RelayConfig { address: self.ipv6_address, serves: self.serves.clone() };
        let config = TeredoConfig::new(TeredoRole::Relay(relay));
        TeredoConfig { max_peers: self.max_peers, ..config }.into()
    }

    fn serves(&self) -> String {
        format!("relay {TEREDO_PREFIX} ⇄ {}", self.whom())
    }

    fn routes(&self) -> Vec<Route> {
        vec![Route::V6(TEREDO_PREFIX)]
    }

    fn serves_ipv4(&self) -> bool {
        false
    }

    fn serves_ipv6(&self) -> bool {
        true
    }
}
