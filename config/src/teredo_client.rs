//! `[teredo_client]`: IPv6 for this host behind an IPv4 NAT (RFC 4380 §5.2, RFC 6081).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::teredo::{TeredoConfig, TeredoRole};
use sixway_dataplane::translate::address::non_global::non_global;
use sixway_dataplane::tunnel::address::embedded::is_public;
use sixway_wire::teredo::TEREDO_PREFIX;

use crate::claims::Owner;
use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::local_address::LocalAddress;
use crate::mechanism::{FromSection, Mechanism};
use crate::route::Route;
use crate::schema::{TEREDO_CLIENT, TEREDO_CLIENT_SERVER};
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::text;
use crate::tunnel_context::TunnelContext;
use crate::unicast::is_unicast;
use crate::value::Value;

/// RFC 4380 §5.1.1: a client identifier has one octet for its length.
const LONGEST_ID: usize = 255;

/// A client, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TeredoClient {
    /// Its name.
    pub name: String,
    /// The IPv4 address of its socket.
    #[serde(flatten)]
    pub local: LocalAddress,
    /// Its UDP port; 0: the kernel chooses one, which is kept.
    pub port: u16,
    /// The servers, in the order in which they are tried.
    pub servers: Vec<TeredoClientServer>,
    /// Teredo Refresh Interval.
    #[serde(serialize_with = "text::as_duration")]
    pub interval: Duration,
    /// Whether to determine a longer interval (RFC 4380 §5.2.7).
    pub learn_interval: bool,
    /// Whether to work behind a symmetric NAT (RFC 6081 §5.2).
    pub symmetric: bool,
    /// Spare ports whose mapped ports are predicted (RFC 6081 §5.4, §5.5).
    pub prediction_ports: u16,
    /// Whether to look for clients of the same link (RFC 4380 §5.2.8).
    pub local_discovery: bool,
    /// The client identifier for secure qualification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The file with the secret that its server knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    /// Maximum number of peers.
    pub max_peers: u32,
    /// Whether unsolicited packets to its address are dropped.
    pub firewall: bool,
}

/// A server of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TeredoClientServer {
    /// The address that clients' addresses contain.
    #[serde(serialize_with = "text::one")]
    pub address: Ipv4Addr,
    /// Its second address.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub secondary: Option<Ipv4Addr>,
}

impl TeredoClient {
    /// The address of its socket at the moment; `None`: this host does not have it.
    pub fn address(&self, now: &Surroundings) -> Option<Ipv4Addr> {
        self.local.now(now).filter(|address| now.holder(*address).is_some())
    }

    /// Its IPv6 address at the moment.
    pub fn in_use(&self, now: &Surroundings) -> Option<Ipv6Addr> {
        now.teredo.filter(|_| self.address(now).is_some())
    }
}

impl TeredoClientServer {
    fn read(row: &Reader, host: &HostFacts, report: &mut Report) -> Option<Self> {
        let address = row.value("address", report).and_then(|v| read_address(&v, host, report));
        let secondary = match row.value("secondary", report) {
            None => {
                let what = "symmetric NATs are not recognised, and nobody can reach this client behind one; write the server's second address";
                report.warn(row.place(), format!("has no secondary: {what}"));
                Some(None)
            }
            Some(v) => {
                let secondary = read_address(&v, host, report);
                if secondary.is_some() && secondary == address {
                    report.fault(&v.place, "is also the address; write the server's second address");
                }
                secondary.map(Some)
            }
        };
        Some(Self { address: address?, secondary: secondary? })
    }
}

/// The address of a server.
fn read_address(value: &Value, host: &HostFacts, report: &mut Report) -> Option<Ipv4Addr> {
    let address = value.address4(report)?;
    if !is_unicast(address) {
        report.fault(&value.place, "is not a valid host address; write a server's unicast address");
        return None;
    }
    if let Some(own) = host.addresses.iter().find(|own| own.address == IpAddr::V4(address)) {
        let what = "a server sees no NAT in front of its own host; write another host's address";
        report.fault(&value.place, format!("is this host's own address ({}): {what}", own.interface));
        return None;
    }
    if !is_public(address) {
        let purpose = non_global(address).map_or("no host's", |row| row.purpose);
        let what = "the addresses of its clients cannot be reached from the Internet";
        report.warn(&value.place, format!("is not global ({purpose}): {what}"));
    }
    Some(address)
}

/// Secure qualification needs both keys.
fn read_secret(section: &Reader, report: &mut Report) -> Option<Option<(String, PathBuf)>> {
    let id = section.value("client_id", report).map(|v| (v.text(report), v.place));
    let file = section.value("secret_file", report).map(|v| (v.path(report), v.place));
    let alone = |place: &Place, other: &str, report: &mut Report| {
        report.fault(place, format!("has no effect without {other}; write both, or remove it"));
        None
    };
    match (id, file) {
        (None, None) => Some(None),
        (Some((_, place)), None) => alone(&place, "secret_file", report),
        (None, Some((_, place))) => alone(&place, "client_id", report),
        (Some((id, place)), Some((file, _))) => {
            let id = id?;
            if id.len() > LONGEST_ID {
                report.fault(&place, format!("is longer than {LONGEST_ID} octets; write a shorter one"));
                return None;
            }
            Some(Some((id, file?)))
        }
    }
}

/// Ports are predicted only behind a symmetric NAT.
fn read_prediction(section: &Reader, symmetric: Option<bool>, report: &mut Report) -> Option<u16> {
    let value = section.value("prediction_ports", report)?;
    let ports = value.integer::<u16>(report)?;
    if ports > 0 && symmetric == Some(false) {
        report.fault(&value.place, "has no effect with symmetric = false; remove one of the two");
    }
    Some(ports)
}

impl FromSection for TeredoClient {
    fn read(
        section: &Reader,
        default_name: String,
        _before: &[Option<Self>],
        context: TunnelContext,
    ) -> Option<Self> {
        let TunnelContext { host, claims, report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let local = LocalAddress::read(section, "address", host, report);
        let port = section.value("port", report).and_then(|v| v.integer::<u16>(report));
        // A missing list is reported here.
        let _ = section.value("servers", report);
        let rows = section.sections("servers", &TEREDO_CLIENT_SERVER, report);
        let servers: Vec<_> = rows.iter().map(|row| TeredoClientServer::read(row, host, report)).collect();
        let servers: Option<Vec<TeredoClientServer>> = servers.into_iter().collect();
        for (at, row) in rows.iter().enumerate() {
            let same = |all: &Vec<TeredoClientServer>| {
                all[..at].iter().any(|other| other.address == all[at].address)
            };
            if servers.as_ref().is_some_and(same) {
                report.fault(row.place(), "is written twice; remove one of the two");
            }
        }
        let interval = section.value("interval", report).and_then(|v| v.duration(report));
        let learn_interval = section.value("learn_interval", report).and_then(|v| v.boolean(report));
        let symmetric = section.value("symmetric", report).and_then(|v| v.boolean(report));
        let prediction_ports = read_prediction(section, symmetric, report);
        let local_discovery = section.value("local_discovery", report).and_then(|v| v.boolean(report));
        let secret = read_secret(section, report);
        let max_peers = section.value("max_peers", report).and_then(|v| v.integer(report));
        let firewall = section.value("firewall", report).and_then(|v| v.boolean(report));
        claims.v6(TEREDO_PREFIX, Owner::Prefix(TEREDO_CLIENT.name, 0), section.place());
        let (client_id, secret_file) = secret?.unzip();
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            local: local?.0,
            port: port?,
            servers: servers?,
            interval: interval?,
            learn_interval: learn_interval?,
            symmetric: symmetric?,
            prediction_ports: prediction_ports?,
            local_discovery: local_discovery?,
            client_id,
            secret_file,
            max_peers: max_peers?,
            firewall: firewall?,
        })
    }
}

impl Mechanism for TeredoClient {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        let config = TeredoConfig::new(TeredoRole::Client);
        let servers = self.servers.iter().flat_map(|it| [Some(it.address), it.secondary]).flatten().collect();
        TeredoConfig { max_peers: self.max_peers, servers, ..config }.into()
    }

    fn serves(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(|server| server.address.to_string()).collect();
        format!("client of {}", servers.join(", "))
    }

    /// They follow from its address: see [`crate::config::Config::reach`].
    fn routes(&self) -> Vec<Route> {
        Vec::new()
    }

    fn serves_ipv4(&self) -> bool {
        false
    }

    /// Only this host, by an address of its own.
    fn serves_ipv6(&self) -> bool {
        false
    }
}
