//! This end of a tunnel: an IPv4 address of this host, or that of an interface, whatever it is at the moment.

use std::net::{IpAddr, Ipv4Addr};

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::fault::{Place, Report, did_you_mean};
use crate::host::HostFacts;
use crate::interface_name::{NO_INTERFACE, is_interface_name};
use crate::section::Reader;
use crate::surroundings::Surroundings;
use crate::unicast::is_unicast;

/// Where the address comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalSource {
    /// It was written.
    Address(Ipv4Addr),
    /// It is this interface's, and followed.
    Interface(String),
}

/// This end of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The section's key for a fixed address.
    key: &'static str,
    /// Where the address comes from.
    pub source: LocalSource,
    /// The address when the configuration was read; `None`: the interface had none.
    pub found: Option<Ipv4Addr>,
    /// The interface that had it then, as far as it is known.
    pub holder: Option<String>,
}

impl LocalAddress {
    /// Reads `key` or `interface`, and returns the place of the one that is set.
    pub(crate) fn read(
        section: &Reader,
        key: &'static str,
        host: &HostFacts,
        report: &mut Report,
    ) -> Option<(Self, Place)> {
        let address = section.value(key, report);
        let interface = section.value("interface", report);
        match (address, interface) {
            (None, None) => {
                let what = format!("has no address; write {key} = \"192.0.2.1\" or interface = \"eth0\"");
                report.fault(section.place(), what);
                None
            }
            (address, interface) => {
                let fixed = address.map(|v| (v.address4(report), v.place));
                let followed = interface.map(|v| (v.text(report), v.place));
                match (fixed, followed) {
                    (Some(_), Some((_, place))) => {
                        report.fault(&place, format!("cannot be combined with {key}; remove one"));
                        None
                    }
                    (Some((fixed, place)), None) => fixed
                        .and_then(|fixed| Self::fixed(key, fixed, &place, host, report))
                        .map(|it| (it, place)),
                    (None, Some((name, place))) => {
                        name.and_then(|name| Some((Self::followed(key, name, &place, host, report)?, place)))
                    }
                    (None, None) => None,
                }
            }
        }
    }

    fn fixed(
        key: &'static str,
        address: Ipv4Addr,
        place: &Place,
        host: &HostFacts,
        report: &mut Report,
    ) -> Option<Self> {
        if !is_unicast(address) {
            report.fault(place, "is not a valid host address; write a unicast address");
            return None;
        }
        let holder = host.addresses.iter().find(|own| own.address == IpAddr::V4(address));
        if holder.is_none() && !host.addresses.is_empty() {
            let own = own_addresses(host);
            let mend = format!("add it (ip address add {address}/32 dev INTERFACE), or write one of {own}");
            report.fault(place, format!("this host does not have this address; {mend}"));
            return None;
        }
        let holder = holder.map(|own| own.interface.clone());
        Some(Self { key, source: LocalSource::Address(address), found: Some(address), holder })
    }

    fn followed(
        key: &'static str,
        name: String,
        place: &Place,
        host: &HostFacts,
        report: &mut Report,
    ) -> Option<Self> {
        if !is_interface_name(&name) {
            report.fault(place, NO_INTERFACE);
            return None;
        }
        let found = Surroundings::of(&host.addresses).ipv4_of(&name);
        if found.is_none() && !host.addresses.is_empty() {
            let names = host.addresses.iter().map(|own| &*own.interface);
            let near = did_you_mean(&name, names).filter(|near| *near != name);
            let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            report.warn(place, format!("has no IPv4 address yet; the tunnel starts when it has one{near}"));
        }
        Some(Self { key, source: LocalSource::Interface(name.clone()), found, holder: Some(name) })
    }

    /// The address at the moment; `None`: the interface has none.
    pub fn now(&self, surroundings: &Surroundings) -> Option<Ipv4Addr> {
        match &self.source {
            LocalSource::Address(address) => Some(*address),
            LocalSource::Interface(name) => surroundings.ipv4_of(name),
        }
    }

    /// The interface that is followed.
    pub fn followed_interface(&self) -> Option<&str> {
        match &self.source {
            LocalSource::Address(_) => None,
            LocalSource::Interface(name) => Some(name),
        }
    }
}

/// Some of this host's addresses, in words.
pub(crate) fn own_addresses(host: &HostFacts) -> String {
    let own = host.addresses.iter().filter_map(|own| match own.address {
        IpAddr::V4(address) if is_unicast(address) => Some(format!("{address} ({})", own.interface)),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    });
    let own: Vec<String> = own.take(4).collect();
    if own.is_empty() { "its own".into() } else { own.join(", ") }
}

impl Serialize for LocalAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match &self.source {
            LocalSource::Address(address) => map.serialize_entry(self.key, &format_args!("{address}"))?,
            LocalSource::Interface(name) => map.serialize_entry("interface", name)?,
        }
        map.end()
    }
}
