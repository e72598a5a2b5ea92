//! `[teredo_server]`: a Teredo server (RFC 4380 §5.3).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sixway_wire::teredo::{TEREDO_PORT, is_global_unicast};

use crate::fault::Report;
use crate::host::HostFacts;
use crate::local_address::own_addresses;
use crate::ports::Ports;
use crate::schema::TEREDO_SERVER_CLIENT;
use crate::section::Reader;
use crate::text;
use crate::unicast::is_unicast;
use crate::value::Value;

/// The fewest octets of a secret.
const SHORTEST_SECRET: usize = 16;
/// RFC 4380 §5.1.1: its length is one octet.
const LONGEST_ID: usize = 255;

/// A Teredo server, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TeredoServer {
    /// Its address.
    #[serde(serialize_with = "text::one")]
    pub address: Ipv4Addr,
    /// Its second address.
    #[serde(serialize_with = "text::optional", skip_serializing_if = "Option::is_none")]
    pub secondary: Option<Ipv4Addr>,
    /// Whether echo messages go to native hosts.
    pub native: bool,
    /// Whether also to those in networks of this host.
    pub own_networks: bool,
    /// Whether only clients with a secret qualify.
    pub required: bool,
    /// Datagrams a second of one source.
    pub source_rate: u32,
    /// Datagrams a second to one destination.
    pub destination_rate: u32,
    /// Datagrams a second in all.
    pub total_rate: u32,
    /// Clients with a secret.
    #[serde(rename = "client", skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<TeredoServerClient>,
}

/// A client with a secret.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TeredoServerClient {
    /// Its identifier.
    pub id: String,
    /// The file with the secret.
    pub secret_file: PathBuf,
    /// Whether the client needs another identifier and secret.
    pub retired: bool,
    /// The secret.
    #[serde(skip)]
    pub secret: Secret,
}

/// A secret: it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Its octets.
    pub fn octets(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl TeredoServer {
    pub(crate) fn read(
        section: &Reader,
        host: &HostFacts,
        read_file: &mut dyn FnMut(&Path) -> io::Result<String>,
        report: &mut Report,
    ) -> Option<Self> {
        let address = section.value("address", report).and_then(|v| own_address(&v, host, report));
        let secondary = match section.value("secondary", report) {
            None => Some(None),
            Some(v) => {
                let secondary = own_address(&v, host, report);
                if secondary.is_some() && secondary == address {
                    report.fault(&v.place, "is the same as address; write another address of this host");
                }
                secondary.map(Some)
            }
        };
        let native = section.value("native", report).and_then(|v| v.boolean(report));
        let own_networks = section.value("own_networks", report).and_then(|v| v.boolean(report));
        let written = section.sections("client", &TEREDO_SERVER_CLIENT, report);
        let mut clients: Vec<Option<TeredoServerClient>> = Vec::with_capacity(written.len());
        for row in &written {
            let client = TeredoServerClient::read(row, read_file, report);
            let same = |other: &TeredoServerClient| client.as_ref().is_some_and(|it| it.id == other.id);
            if clients.iter().flatten().any(same) {
                report.fault(row.place(), "another client has this id; each client needs its own");
            }
            clients.push(client);
        }
        let required = match section.value("required", report) {
            None => Some(!written.is_empty()),
            Some(v) => {
                let required = v.boolean(report);
                if required == Some(true) && written.is_empty() {
                    let what = "no client could qualify: there is no teredo_server.client";
                    report.fault(&v.place, format!("{what}; add one, or remove this key"));
                }
                required
            }
        };
        let mut rate = |key| section.value(key, report).and_then(|v| v.integer(report));
        let rates = [rate("source_rate"), rate("destination_rate"), rate("total_rate")];
        if let (Some(_), Some(None)) = (address, secondary) {
            let what = "clients that ask for an answer from a second address get none, which delays their start by some seconds, and clients cannot recognise a symmetric NAT";
            report
                .warn(section.place(), format!("has no secondary: {what}; add another address of this host"));
        }
        let [source_rate, destination_rate, total_rate] = rates;
        Some(Self {
            address: address?,
            secondary: secondary?,
            native: native?,
            own_networks: own_networks?,
            required: required?,
            source_rate: source_rate?,
            destination_rate: destination_rate?,
            total_rate: total_rate?,
            clients: clients.into_iter().collect::<Option<_>>()?,
        })
    }

    /// Its addresses.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        std::iter::once(self.address).chain(self.secondary)
    }

    /// What it exposes and to whom it answers, in words.
    pub fn exposes(&self) -> String {
        let addresses: Vec<String> = self.addresses().map(|it| format!("{it}:{TEREDO_PORT}")).collect();
        let whom = match (self.required, self.clients.len()) {
            (true, 1) => "1 client with a secret".to_owned(),
            (true, clients) => format!("{clients} clients with a secret"),
            (false, _) => "any IPv4 host".to_owned(),
        };
        let native = match (self.native, self.own_networks) {
            (false, _) => "nothing to native hosts",
            (true, false) => "echo messages to native hosts",
            (true, true) => "echo messages to native hosts, also of this host's networks",
        };
        format!("UDP {} · serves {whom} · forwards bubbles of any IPv4 host, {native}", addresses.join(", "))
    }
}

/// Checks a server together with a pool that has this host's own address.
pub(crate) fn check(
    server: &TeredoServer,
    shared: Vec<(Ipv4Addr, Ports)>,
    section: &Reader,
    report: &mut Report,
) {
    for (address, ports) in shared {
        if server.addresses().any(|own| own == address) && ports.contain(TEREDO_PORT) {
            let what = format!("port {TEREDO_PORT} of {address} belongs to a pool, too");
            report.fault(section.place(), format!("{what}; leave the port out of pool.ports"));
        }
    }
}

/// An address of this host that is reachable from the Internet.
fn own_address(value: &Value, host: &HostFacts, report: &mut Report) -> Option<Ipv4Addr> {
    let address = value.address4(report)?;
    if !is_unicast(address) || !is_global_unicast(address) {
        let what = "is not a global unicast address, and a Teredo server answers no others (RFC 4380 §5.3.1)";
        report.fault(&value.place, format!("{what}; write a public address of this host"));
        return None;
    }
    let is_own = host.addresses.iter().any(|own| own.address == IpAddr::V4(address));
    if !is_own && !host.addresses.is_empty() {
        let own = own_addresses(host);
        let mend = format!("add it (ip address add {address}/32 dev INTERFACE), or write one of {own}");
        report.fault(&value.place, format!("this host does not have this address; {mend}"));
        return None;
    }
    Some(address)
}

impl TeredoServerClient {
    fn read(
        row: &Reader,
        read_file: &mut dyn FnMut(&Path) -> io::Result<String>,
        report: &mut Report,
    ) -> Option<Self> {
        let id = row.value("id", report).and_then(|v| {
            let id = v.text(report)?;
            if id.is_empty() || id.len() > LONGEST_ID {
                report.fault(&v.place, format!("must have 1 to {LONGEST_ID} octets; write a shorter name"));
                return None;
            }
            Some(id)
        });
        let file = row.value("secret_file", report).and_then(|v| {
            let path = v.path(report)?;
            let text = match read_file(&path) {
                Ok(text) => text,
                Err(error) => {
                    report.fault(&v.place, format!("cannot be read: {error}"));
                    return None;
                }
            };
            let secret = text.strip_suffix('\n').unwrap_or(&text);
            let secret = secret.strip_suffix('\r').unwrap_or(secret);
            if secret.len() < SHORTEST_SECRET || secret.contains('\n') {
                let what = format!("must contain one line of at least {SHORTEST_SECRET} characters");
                report.fault(&v.place, format!("{what}; make one: openssl rand -hex 20"));
                return None;
            }
            Some((path, Secret(secret.to_owned())))
        });
        let retired = row.value("retired", report).and_then(|v| v.boolean(report));
        let (secret_file, secret) = file?;
        Some(Self { id: id?, secret_file, retired: retired?, secret })
    }
}
