//! `[[dns64.upstream]]`: where questions go.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;

use super::context::Dns64Context;
use super::domain_name::Name;
use super::listening::Listening;
use super::pem;
use super::prefixes::TranslatorContext;
use crate::domain_name::is_domain_name;
use crate::fault::{Place, Report};
use crate::schema::UPSTREAM;
use crate::section::Reader;
use crate::value::Value;
use crate::word::words;

words! {
    /// Transport of an upstream's queries.
    Transport {
        /// By UDP, and by TCP what was truncated.
        Udp = "udp",
        /// By TCP (RFC 7766).
        Tcp = "tcp",
        /// By TLS (RFC 7858).
        Tls = "tls",
        /// By HTTPS (RFC 8484).
        Https = "https",
    }
}

impl Transport {
    /// The port where it is usually served.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls => 853,
            Self::Https => 443,
        }
    }

    /// Whether the upstream proves who it is.
    #[must_use]
    pub const fn is_secured(self) -> bool {
        matches!(self, Self::Tls | Self::Https)
    }
}

/// An upstream, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Upstream {
    /// Its own address and port; [`Upstream::endpoint`] says where packets go.
    pub address: SocketAddr,
    /// Transport of its queries.
    pub transport: Transport,
    /// The name in its certificate; set with TLS and HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path of its URI; there with HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Certificates of trusted authorities, as PEM; `None`: the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The prefix through which an IPv4 upstream is queried over IPv6.
    #[serde(serialize_with = "through", skip_serializing_if = "Option::is_none")]
    pub through: Option<Rfc6052>,
    /// It is used only for these names and names below them; empty: for all names that no other upstream has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Name>,
}

fn through<S: Serializer>(value: &Option<Rfc6052>, serializer: S) -> Result<S::Ok, S::Error> {
    crate::text::optional_prefix(value, serializer)
}

impl Upstream {
    /// Where packets go: its own address, or the IPv6 address that represents it.
    #[must_use]
    pub fn endpoint(&self) -> SocketAddr {
        match (self.through, self.address.ip()) {
            (Some(prefix), IpAddr::V4(address)) => {
                SocketAddr::new(prefix.embed_any(address).into(), self.address.port())
            }
            (_, _) => self.address,
        }
    }

    fn read(
        row: &Reader,
        translation: &TranslatorContext,
        own: Option<&[Rfc6052]>,
        listening: Option<&Listening>,
        context: &mut Dns64Context,
    ) -> Option<Self> {
        let transport: Option<Transport> =
            row.value("transport", context.report).and_then(|v| v.word(context.report));
        let port = transport.map_or(53, Transport::port);
        let address = row.value("address", context.report).and_then(|v| {
            let address = v.socket_at(port, context.report)?;
            check_address(address, &v.place, listening, context).then_some(address)
        });
        let name = read_name(row, transport, context.report);
        let path = read_path(row, transport, context.report);
        let ca = match row.value("ca", context.report) {
            None => Some(None),
            Some(v) => read_ca(&v, transport, context),
        };
        let through = match row.value("through", context.report) {
            None => Some(None),
            Some(v) => read_through(&v, translation, own, address, context.report).map(Some),
        };
        let names = Name::read_all(row.value("names", context.report), context.report);
        Some(Self {
            address: address?,
            transport: transport?,
            name: name?,
            path: path?,
            ca: ca?,
            through: through?,
            names: names?,
        })
    }

    /// Whether it is the same server, asked about some of the same names.
    fn repeats(&self, other: &Self) -> bool {
        let both = self.names.is_empty() && other.names.is_empty();
        (self.endpoint(), self.transport, &self.name, &self.path)
            == (other.endpoint(), other.transport, &other.name, &other.path)
            && (both || self.names.iter().any(|name| other.names.contains(name)))
    }
}

/// All upstreams.
pub(super) fn read_all(
    section: &Reader,
    translation: &TranslatorContext,
    own: Option<&[Rfc6052]>,
    listening: Option<&Listening>,
    context: &mut Dns64Context,
) -> Option<Vec<Upstream>> {
    let rows = section.sections("upstream", &UPSTREAM, context.report);
    if rows.is_empty() {
        // A missing key, or a value that is not a table, is reported where the key is read.
        if section.value("upstream", context.report).is_some_and(|v| v.items().is_empty()) {
            let key = format!("{}.upstream", section.place().key).into();
            let place = Place { key, ..section.place().clone() };
            context.report.fault(&place, "is empty; write at least one DNS server");
        }
        return None;
    }
    let mut upstreams: Vec<(Option<Upstream>, Place)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let one = Upstream::read(row, translation, own, listening, context);
        if let Some(one) = &one {
            let same = upstreams.iter().find(|(other, _)| other.as_ref().is_some_and(|o| o.repeats(one)));
            if let Some((_, place)) = same {
                let there = place.seen_from(row.place());
                context.report.fault(row.place(), format!("is the same as another ({there}); remove one"));
            }
        }
        upstreams.push((one, row.place().clone()));
    }
    let upstreams: Vec<Upstream> = upstreams.into_iter().map(|(one, _)| one).collect::<Option<_>>()?;
    if !upstreams.is_empty() && upstreams.iter().all(|it| !it.names.is_empty()) {
        let what = "every upstream has names: other names are answered with SERVFAIL";
        context.report.warn(section.place(), what);
    }
    Some(upstreams)
}

fn check_address(
    address: SocketAddr,
    place: &Place,
    listening: Option<&Listening>,
    context: &mut Dns64Context,
) -> bool {
    let ip = address.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    let link_local =
        matches!(address, SocketAddr::V6(it) if it.ip().is_unicast_link_local() && it.scope_id() == 0);
    let what = if address.port() == 0 {
        "port 0 is not valid; write 1 to 65535"
    } else if ip.is_unspecified() || ip.is_multicast() || broadcast {
        "is not a valid server address; write a unicast address"
    } else if link_local {
        "is link-local and needs an interface; append its number, such as [fe80::1%2]:53"
    } else if listening.is_some_and(|it| it.hears(address, context)) {
        "is where this DNS64 itself listens: queries would loop; write another server"
    } else {
        return true;
    };
    context.report.fault(place, format!("{address} {what}"));
    false
}

fn read_name(row: &Reader, transport: Option<Transport>, report: &mut Report) -> Option<Option<String>> {
    let secured = transport.is_some_and(Transport::is_secured);
    let Some(value) = row.value("name", report) else {
        if secured {
            let place = Place { key: format!("{}.name", row.place().key).into(), ..row.place().clone() };
            report.fault(
                &place,
                "is missing: it is compared with the certificate; write name = \"dns.example\"",
            );
            return None;
        }
        return Some(None);
    };
    let name = value.text(report)?;
    if !secured && transport.is_some() {
        report.fault(
            &value.place,
            "applies only to certificates; set transport = \"tls\" or \"https\", or remove it",
        );
    }
    if !is_domain_name(&name) && name.parse::<IpAddr>().is_err() {
        report.fault(&value.place, "is not a valid server name; write one such as dns.example");
        return None;
    }
    Some(Some(name))
}

fn read_path(row: &Reader, transport: Option<Transport>, report: &mut Report) -> Option<Option<String>> {
    let https = transport == Some(Transport::Https);
    let Some(value) = row.value("path", report) else { return Some(https.then(|| "/dns-query".to_owned())) };
    let path = value.text(report)?;
    let plain = path.bytes().all(|b| b.is_ascii_graphic() && !b"{}#\"<>\\^`|".contains(&b));
    if !path.starts_with('/') || !plain {
        report.fault(&value.place, "is not a valid path; write one such as /dns-query");
        return None;
    }
    if !https && transport.is_some() {
        report.fault(&value.place, "applies only to HTTPS; set transport = \"https\", or remove it");
    }
    Some(Some(path))
}

fn read_ca(
    value: &Value,
    transport: Option<Transport>,
    context: &mut Dns64Context,
) -> Option<Option<PathBuf>> {
    let path = value.path(context.report)?;
    if transport.is_some_and(Transport::is_secured) {
        let text = pem::read(&path, pem::CERTIFICATE, &value.place, context.read_file, context.report);
        if let Some(text) = text {
            pem::check_authorities(&text, &value.place, context.report);
        }
    } else if transport.is_some() {
        let what = "applies only to certificates; set transport = \"tls\" or \"https\", or remove it";
        context.report.fault(&value.place, what);
    }
    Some(Some(path))
}

fn read_through(
    value: &Value,
    translation: &TranslatorContext,
    own: Option<&[Rfc6052]>,
    address: Option<SocketAddr>,
    report: &mut Report,
) -> Option<Rfc6052> {
    let prefix = match value.is_word("nat64") {
        // Without one, that of [dns64] was found missing already.
        true => translation.translators.first_nat64().or_else(|| own?.first().copied())?,
        false => {
            let written = crate::translator_prefix::read_prefix(value, false, report)?;
            if !translation.elsewhere && translation.translators.lack(written.prefix()) {
                let what = "queries through it get no answer, unless another machine translates it (translated_elsewhere = true)";
                let prefix = written.prefix();
                report
                    .warn(&value.place, format!("no translator of this gateway has prefix {prefix}; {what}"));
            }
            translation.translators.find(written.prefix()).unwrap_or(written)
        }
    };
    match address.map(|address| address.ip()) {
        Some(IpAddr::V6(_)) => {
            report.fault(
                &value.place,
                "applies only to IPv4 upstreams; this one has an IPv6 address: remove it",
            );
        }
        Some(IpAddr::V4(address)) if prefix.permit(address).is_err() => {
            let what = "is not globally reachable, and 64:ff9b::/96 must not represent it (RFC 6052 §3.1); set translate_non_global = true \
                        in the translator's section, or use another prefix";
            report.fault(&value.place, format!("{address} {what}"));
        }
        Some(IpAddr::V4(_)) | None => {}
    }
    Some(prefix)
}
