//! Mechanisms that need nothing of the configuration but a section, and nothing of the host but routes. A new one is a file beside this, a
//! line in [`Others`], in [`Others::read`] and in [`Others::all`], and its section among those of the schema.

mod ip_in_ip;
mod npt66;

use std::net::IpAddr;

use serde::Serialize;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_wire::Prefix6;

use super::fault::Report;
use super::load::{default_name, too_many};
use super::reach::SourceRule;
use super::routes::Route;
use super::schema::Section;
use super::section::Reader;
use super::tunnels::Around;

use ip_in_ip::IpInIp;
use npt66::Npt66;

pub(super) use ip_in_ip::IP_IN_IP;
pub(super) use npt66::NPT66;

/// Such a mechanism.
pub trait Other {
    /// What it is called.
    fn name(&self) -> &str;
    /// What its engine is built from.
    fn engine(&self) -> MechanismConfig;
    /// What it serves, in words.
    fn serves(&self) -> String;
    /// What is routed into the device by its destination.
    fn routes(&self) -> Vec<Route>;
    /// What is routed into the device by its source, and to which destinations it is not.
    fn inside_sources(&self) -> Option<(Prefix6, &[Prefix6])> {
        None
    }
    /// The addresses at which tunnels end, which this host must not have on an interface.
    fn local(&self) -> Option<IpAddr> {
        None
    }
    /// Whether hosts with IPv4 addresses send packets to it.
    fn serves_ipv4(&self) -> bool;
    /// The same of IPv6.
    fn serves_ipv6(&self) -> bool;
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Others {
    /// Prefix translators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    npt66: Vec<Npt66>,
    /// Tunnels of IP in IP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ip_in_ip: Vec<IpInIp>,
}

/// A mechanism that can be read; `before` are those of its kind above it.
trait FromSection: Other + Sized {
    fn read(section: &Reader, default_name: String, before: &[Option<Self>], around: Around) -> Option<Self>;
}

impl Others {
    /// Reads all sections.
    pub(super) fn read<'a>(
        sections: impl Fn(&'static Section, &mut Report) -> Vec<Reader<'a>>,
        mut around: Around,
    ) -> Option<Self> {
        let npt66 = read_all(&NPT66, sections(&NPT66, around.report), &mut around);
        let ip_in_ip = read_all(&IP_IN_IP, sections(&IP_IN_IP, around.report), &mut around);
        Some(Self { npt66: npt66?, ip_in_ip: ip_in_ip? })
    }

    /// All of them, in the order of the configuration.
    pub fn all(&self) -> Vec<&dyn Other> {
        let npt66 = self.npt66.iter().map(|it| it as &dyn Other);
        npt66.chain(self.ip_in_ip.iter().map(|it| it as &dyn Other)).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Whether packets of hosts with IPv4 addresses come to any of them.
    pub(super) fn serve_ipv4(&self) -> bool {
        self.all().into_iter().any(Other::serves_ipv4)
    }

    /// The same of IPv6.
    pub(super) fn serve_ipv6(&self) -> bool {
        self.all().into_iter().any(Other::serves_ipv6)
    }

    /// Whether any of them is routed to by an IPv4 address.
    pub(super) fn are_reached_by_ipv4(&self) -> bool {
        self.all().into_iter().flat_map(Other::routes).any(|route| matches!(route, Route::V4(_)))
    }

    /// The same of IPv6.
    pub(super) fn are_reached_by_ipv6(&self) -> bool {
        self.all().into_iter().flat_map(Other::routes).any(|route| matches!(route, Route::V6(_)))
    }

    /// The addresses at which tunnels end, with the tunnels' names.
    pub fn locals(&self) -> Vec<(&str, IpAddr)> {
        self.all().into_iter().filter_map(|it| Some((it.name(), it.local()?))).collect()
    }

    /// What is routed by its source.
    pub(super) fn source_rules(&self) -> Vec<SourceRule> {
        let mut rules = Vec::new();
        for (from, except) in self.all().into_iter().filter_map(Other::inside_sources) {
            let own = except.iter().copied().chain([from]);
            rules.extend(own.map(|to| SourceRule { from, except: Some(to) }));
            rules.push(SourceRule { from, except: None });
        }
        rules
    }
}

fn read_all<M: FromSection>(
    schema: &'static Section,
    written: Vec<Reader>,
    around: &mut Around,
) -> Option<Vec<M>> {
    let Around { mtu, host, .. } = *around;
    too_many(&written, around.report);
    let mut read: Vec<Option<M>> = Vec::with_capacity(written.len());
    for (index, section) in written.iter().enumerate() {
        let name = default_name(schema.name, index, written.len());
        let inner = Around { index, mtu, host, claims: around.claims, report: around.report };
        let one = M::read(section, name, &read, inner);
        if let Some(one) = &one
            && read.iter().flatten().any(|other| other.name() == one.name())
        {
            let what = format!("another has the name {} already; write a name of its own", one.name());
            around.report.fault(section.place(), what);
        }
        read.push(one);
    }
    read.into_iter().collect()
}
