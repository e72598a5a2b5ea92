//! Names of hosts whose IPv4 addresses are leased.

use std::net::Ipv6Addr;

use serde::Serialize;
use sixway_wire::Prefix6;

use crate::dns64::Name;
use crate::fault::Report;
use crate::schema::FOUR_OVER_SIX_NAMES;
use crate::section::Reader;
use crate::text;
use crate::value::Value;

/// A host that is found by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedHost {
    /// Its name.
    pub name: Name,
    /// Its end of the tunnel.
    #[serde(serialize_with = "text::one")]
    pub host: Ipv6Addr,
}

/// Reads those of a concentrator with these clients; `clients` is `None`: the section could not be read, or is a host's.
pub(crate) fn read_names(
    section: &Reader,
    host_address: impl Fn(&Value, &mut Report) -> Option<Ipv6Addr>,
    clients: Option<&[Prefix6]>,
    report: &mut Report,
) -> Option<Vec<NamedHost>> {
    let (mut all, mut whole): (Vec<NamedHost>, bool) = (Vec::new(), true);
    for one in section.sections("names", &FOUR_OVER_SIX_NAMES, report) {
        let name = one.value("name", report).map(|v| (Name::read(&v, report), v.place));
        let host = one.value("host", report).map(|v| (host_address(&v, report), v.place));
        let (Some((Some(name), place)), Some((Some(host), at))) = (name, host) else {
            whole = false;
            continue;
        };
        if all.iter().any(|other| other.name == name) {
            report.fault(&place, format!("{} has two hosts; remove one of them", name.as_str()));
        }
        if clients.is_some_and(|clients| !clients.iter().any(|prefix| prefix.contains(host))) {
            report.fault(&at, format!("{host} is not within clients; add its prefix there"));
        }
        all.push(NamedHost { name, host });
    }
    whole.then_some(all)
}
