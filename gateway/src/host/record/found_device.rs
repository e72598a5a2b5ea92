//! A TUN device that another program created (`ip tuntap add`): it is used, and left as it was found.

use crate::host::kernel::{self, Route6};
use crate::host::links::tun_state;
use crate::host::route;
use crate::host::route_mark::RouteMark;
use serde::{Deserialize, Serialize};
use sixway_link::interface;
use std::io;
use std::net::IpAddr;

/// A device as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::host) struct FoundDevice {
    name: String,
    /// A device of the same name that was made later has another.
    index: u32,
    /// Octets.
    mtu: u32,
    /// Packets that the kernel queues for it.
    queue_length: u32,
    up: bool,
    /// Its addresses.
    pub(in crate::host) addresses: Vec<IpAddr>,
}

impl FoundDevice {
    /// The persistent TUN device of this name; `None`: there is none, or the name belongs to another kind of device, which is reported when
    /// it is opened.
    ///
    /// # Errors
    /// `ResourceBusy`: a process has it open, or has just ended; or the kernel's.
    pub(in crate::host) fn of(name: &str) -> io::Result<Option<Self>> {
        let Some(index) = interface::find(name)? else { return Ok(None) };
        let Some(state) = tun_state(index) else { return Ok(None) };
        if !state.persists || state.queues > 0 {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        Ok(Some(Self {
            name: name.into(),
            index,
            mtu: interface::mtu(name)?,
            queue_length: interface::queue_length(name)?,
            up: interface::is_up(name)?,
            addresses: kernel::addresses(index).map_err(|refusal| io::Error::other(refusal.to_string()))?,
        }))
    }

    /// Leaves it as it was found. How many routes and addresses of the gateway were removed.
    pub(super) fn put_back(&self, mark: RouteMark) -> (usize, usize) {
        if !interface::index(&self.name).is_ok_and(|index| index == self.index) {
            return (0, 0);
        }
        let mut routes = 0;
        for prefix in kernel::routes4(self.index, mark).unwrap_or_default() {
            routes += usize::from(route::remove4(prefix, self.index, mark).is_ok());
        }
        for route in kernel::routes6(self.index, mark).unwrap_or_default() {
            routes += usize::from(Route6::Into(route.prefix, self.index, None).remove(mark).is_ok());
        }
        let added = kernel::addresses(self.index).unwrap_or_default().into_iter();
        let added = added.filter(|address| !self.addresses.contains(address));
        let addresses = added
            .filter(|address| kernel::remove_address(self.index, *address, kernel::whole(*address)).is_ok())
            .count();
        let set = [
            interface::set_mtu(&self.name, self.mtu),
            interface::set_queue_length(&self.name, self.queue_length),
            interface::set_up(&self.name, self.up),
        ];
        for error in set.into_iter().filter_map(Result::err) {
            tracing::warn!("{} is not as it was found: {error}", self.name);
        }
        (routes, addresses)
    }
}
