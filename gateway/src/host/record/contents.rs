//! The contents of a state file.

use super::error::RecordError;
use super::found_device::FoundDevice;
use super::persistent::{Persistent, Successor};
use super::settings::Changed;
use crate::config::{LinkAddress, ProxyNeighbour};
use crate::host::kernel;
use crate::host::namespace;
use crate::host::realm_rules::RealmRule;
use crate::host::route_mark::RouteMark;
use crate::host::source_rules::Recorded;
use serde::{Deserialize, Serialize};
use sixway_link::interface;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The contents of a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    /// The process that writes it; 0 once it has ended.
    pub(super) process: u32,
    /// The network namespace that the changes were made in, as `/proc/self/ns/net` names it.
    pub(super) namespace: String,
    /// The Unix socket of the admin API.
    pub(super) socket: Option<PathBuf>,
    /// Kernel settings changed, in order.
    pub(super) settings: Vec<Changed>,
    /// Destinations made unreachable.
    #[serde(default)]
    pub(super) unreachable: Vec<String>,
    /// IPv4 destinations that are unreachable without the device.
    #[serde(default)]
    pub(super) blackholes: Vec<String>,
    /// Addresses added on interfaces that are not ours.
    #[serde(default)]
    pub(super) addresses: Vec<AddedAddress>,
    /// Interfaces with a steering program that stays behind the process.
    #[serde(default)]
    pub(super) steered: Vec<String>,
    /// Objects that outlive the process, so that the kernel continues without it.
    #[serde(default)]
    #[serde(rename = "estate")]
    pub(super) persistent: Option<Persistent>,
    /// The protocol number of routes and rules.
    #[serde(default = "RouteMark::of_old_records")]
    pub(super) route_mark: RouteMark,
    /// Rules that route by source.
    #[serde(default)]
    pub(super) rules: Vec<Recorded>,
    /// Rules of realms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) realm_rules: Vec<RealmRule>,
    /// Tables of the VRFs of realms: the rest of them is unreachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) vrf_tables: Vec<u32>,
    /// Addresses for which this host answers ARP requests.
    #[serde(default)]
    pub(super) proxies: Vec<AddedProxy>,
    /// Whether there is a table of ours in the packet filter.
    #[serde(default)]
    pub(super) table: bool,
    /// The device, if another program created it.
    #[serde(default)]
    pub(super) found_device: Option<FoundDevice>,
}

impl Contents {
    /// Whether only the network namespace that it was written in can be cleared up.
    pub(super) fn is_of_namespace(&self) -> bool {
        !(self.settings.is_empty()
            && self.unreachable.is_empty()
            && self.blackholes.is_empty()
            && self.rules.is_empty()
            && self.realm_rules.is_empty()
            && self.vrf_tables.is_empty()
            && self.addresses.is_empty()
            && self.proxies.is_empty()
            && self.steered.is_empty()
            && self.persistent.is_none()
            && self.found_device.is_none()
            && !self.table)
    }

    /// Whether this successor continues with what exists.
    pub(super) fn goes_to(&self, successor: Option<&Successor>) -> bool {
        let Some(persistent) = self.persistent.as_ref().filter(|_| self.namespace == namespace::own()) else {
            return false;
        };
        successor.is_some_and(|successor| successor.device == persistent.device) && persistent.is_there()
    }
}

/// An address added on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AddedAddress {
    pub(super) interface: String,
    pub(super) address: IpAddr,
    pub(super) length: u8,
}

/// A proxy neighbour entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct AddedProxy {
    pub(super) interface: String,
    pub(super) address: IpAddr,
}

impl From<&ProxyNeighbour> for AddedProxy {
    fn from(it: &ProxyNeighbour) -> Self {
        Self { interface: it.interface.clone(), address: it.address }
    }
}

impl From<&AddedProxy> for ProxyNeighbour {
    fn from(it: &AddedProxy) -> Self {
        Self { interface: it.interface.clone(), address: it.address }
    }
}

impl From<&LinkAddress> for AddedAddress {
    fn from(it: &LinkAddress) -> Self {
        Self { interface: it.interface.clone(), address: it.address, length: it.length }
    }
}

impl AddedAddress {
    /// Takes it away. Whether it was there.
    pub(super) fn remove(&self) -> bool {
        let index = interface::index(&self.interface);
        index.is_ok_and(|index| kernel::remove_address(index, self.address, self.length).is_ok())
    }
}

/// Reads the file. One that was just created is empty, and gives the default.
///
/// # Errors
/// It cannot be read, or is damaged (`InvalidData`).
pub(super) fn read(mut file: &File) -> io::Result<Contents> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    if text.is_empty() {
        return Ok(Contents::default());
    }
    serde_json::from_str(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// As [`read`], with the error of a record.
pub(super) fn read_of(path: &Path, file: &File) -> Result<Contents, RecordError> {
    read(file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => RecordError::Damaged(path.into(), error),
        _ => RecordError::Io(path.into(), error),
    })
}
