//! The addresses to which clients send queries.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;

use super::context::Dns64Context;
use super::pem::{self, Pem};
use crate::fault::{Place, Report};
use crate::section::Reader;
use crate::value::Value;

/// The addresses to which clients send queries; at least one in all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listening {
    /// By UDP and TCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<SocketAddr>,
    /// By TLS (RFC 7858).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen_tls: Vec<SocketAddr>,
    /// By HTTPS (RFC 8484).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen_https: Vec<SocketAddr>,
    /// The certificate chain for both, as PEM; set if either is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its private key, as PEM; set if either is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

impl Listening {
    pub(super) fn read(section: &Reader, context: &mut Dns64Context) -> Option<Self> {
        let mut taken: Vec<(SocketAddr, Place)> = Vec::new();
        let mut read = |name: &str, port: u16| match section.value(name, context.report) {
            None => Some(Vec::new()),
            Some(value) => {
                let items = value.items();
                let sockets: Vec<SocketAddr> =
                    items.iter().filter_map(|item| read_socket(item, port, &mut taken, context)).collect();
                (sockets.len() == items.len()).then_some(sockets)
            }
        };
        let (listen, tls, https) = (read("listen", 53), read("listen_tls", 853), read("listen_https", 443));
        let secured = [&tls, &https].into_iter().any(|list| list.as_ref().is_none_or(|l| !l.is_empty()));
        let certificate = read_pem(section, "certificate", pem::CERTIFICATE, secured, context);
        let key = read_pem(section, "key", pem::KEY, secured, context);
        if let (Some(Some(certificate)), Some(Some(key))) = (&certificate, &key) {
            pem::check_pair(certificate, key, context.report);
        }
        let path = |pem: Option<Pem>| pem.map(|pem| pem.path);
        let (listen, listen_tls, listen_https) = (listen?, tls?, https?);
        if listen.is_empty() && listen_tls.is_empty() && listen_https.is_empty() {
            let such = such_address(context).map_or("[2001:db8:1::1]:53".into(), |such| such.to_string());
            let place =
                Place { key: format!("{}.listen", section.place().key).into(), ..section.place().clone() };
            context
                .report
                .fault(&place, format!("is missing; write listen = [\"{such}\"], an address of this host"));
            return None;
        }
        Some(Self { listen, listen_tls, listen_https, certificate: path(certificate?), key: path(key?) })
    }

    /// Every address, with UDP, TLS and HTTPS.
    pub fn all(&self) -> impl Iterator<Item = SocketAddr> {
        self.listen.iter().chain(&self.listen_tls).chain(&self.listen_https).copied()
    }

    /// Reports a wildcard address without a list of allowed clients (RFC 5358 §4).
    pub(super) fn require_allow(&self, section: &Reader, report: &mut Report) {
        let Some(any) = self.all().find(|it| it.ip().is_unspecified()) else { return };
        let what = "is every address of this host, those towards the Internet too; write your clients' prefixes, such as \
                    allow = [\"2001:db8:1::/64\"]";
        let place = Place { key: format!("{}.allow", section.place().key).into(), ..section.place().clone() };
        report.fault(&place, format!("is missing: {any} {what}"));
    }

    /// Whether packets to this address arrive here.
    pub(super) fn hears(&self, to: SocketAddr, context: &Dns64Context) -> bool {
        let own = |address: IpAddr| {
            address.is_loopback() || context.host.addresses.iter().any(|own| own.address == address)
        };
        self.all().any(|it| {
            let any = it.ip().is_unspecified() && it.is_ipv6() == to.is_ipv6() && own(to.ip());
            it.port() == to.port() && (it.ip() == to.ip() || any)
        })
    }
}

/// An address of this host to which clients can send queries.
fn such_address(context: &Dns64Context) -> Option<SocketAddr> {
    let global = |address: &IpAddr| match address {
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    };
    let mut addresses = context.host.addresses.iter().map(|own| own.address);
    addresses.find(global).map(|address| SocketAddr::new(address, 53))
}

fn read_socket(
    item: &Value,
    port: u16,
    taken: &mut Vec<(SocketAddr, Place)>,
    context: &mut Dns64Context,
) -> Option<SocketAddr> {
    let socket = item.socket_at(port, context.report)?;
    if let Some(what) = unusable(socket) {
        context.report.fault(&item.place, format!("{socket} {what}"));
        return None;
    }
    if let Some((_, place)) = taken.iter().find(|(other, _)| *other == socket) {
        let there = place.seen_from(&item.place);
        context.report.fault(&item.place, format!("{socket} is already used ({there}); write another port"));
    }
    if context.metrics == Some(socket) {
        context
            .report
            .fault(&item.place, format!("{socket} is already used by gateway.metrics; write another port"));
    }
    taken.push((socket, item.place.clone()));
    Some(socket)
}

/// What is wrong with an address to listen at, on any host.
fn unusable(socket: SocketAddr) -> Option<&'static str> {
    match socket.ip() {
        _ if socket.port() == 0 => Some("port 0 is not valid; write 1 to 65535"),
        address if address.is_multicast() => Some("is a multicast address; write an address of this host"),
        IpAddr::V4(address) if address.is_broadcast() => {
            Some("is a broadcast address; write an address of this host")
        }
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Some("is an IPv4-mapped address; write it as IPv4")
        }
        IpAddr::V6(address) if address.is_unicast_link_local() && scope(socket) == 0 => {
            Some("is link-local and needs an interface; append its number, such as [fe80::1%2]:53")
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

fn scope(socket: SocketAddr) -> u32 {
    match socket {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(socket) => socket.scope_id(),
    }
}

/// A file in PEM. `Some(None)`: it is not written and not needed.
fn read_pem(
    section: &Reader,
    name: &str,
    mark: &str,
    needed: bool,
    context: &mut Dns64Context,
) -> Option<Option<Pem>> {
    let Some(value) = section.value(name, context.report) else {
        if needed {
            let key = format!("{}.{name}", section.place().key).into();
            let place = Place { key, ..section.place().clone() };
            let what = format!(
                "is missing, for listen_tls and listen_https; write {name} = \"/etc/sixway/{name}.pem\""
            );
            context.report.fault(&place, what);
            return None;
        }
        return Some(None);
    };
    let path = value.path(context.report)?;
    if !needed {
        let what = "has no effect without listen_tls or listen_https; set one of them, or remove this";
        context.report.warn(&value.place, what);
        return Some(Some(Pem { path, place: value.place, text: None }));
    }
    let text = pem::read(&path, mark, &value.place, context.read_file, context.report);
    Some(Some(Pem { path, place: value.place, text }))
}
