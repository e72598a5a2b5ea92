//! All devices. A new one is a line here.

use super::contract::Device;
use super::guest::{
    AT_TC_IN_GUEST, GuestForwarding, GuestIp6tnl, GuestIsatapd, GuestJool, GuestSit, GuestSitTicking,
    GuestSiteGateway, IN_GUEST,
};
use super::kernel::{KernelForwarding, KernelMasquerade};
use super::miredo::Miredo;
use super::published::{BARE_PC, FREEBSD_STF, IOS, NETBSD_STF, PF};
use super::remote::{Remote, Request};
use super::resolver::{BIND, RECURSOR, UNBOUND};
use super::sixway::{AT_TC, AT_TC_POLLING, AT_XDP, AT_XDP_POLLING, ON_TUN, POLLING, StatelessAndMasquerade};
use super::tayga::{SharingTayga, Tayga};
use crate::failure::{Failure, Result};
use std::sync::OnceLock;

/// Those that every lab knows.
const KNOWN: &[&dyn Device] = &[
    &ON_TUN,
    &AT_TC,
    &AT_XDP,
    &POLLING,
    &AT_TC_POLLING,
    &AT_XDP_POLLING,
    &StatelessAndMasquerade,
    &KernelForwarding,
    &KernelMasquerade,
    &Tayga,
    &SharingTayga,
    &Miredo,
    &UNBOUND,
    &BIND,
    &RECURSOR,
    &GuestForwarding,
    &GuestSit,
    &GuestSitTicking,
    &GuestIp6tnl,
    &GuestIsatapd,
    &GuestJool,
    &GuestSiteGateway,
    &IN_GUEST,
    &AT_TC_IN_GUEST,
    &FREEBSD_STF,
    &NETBSD_STF,
    &PF,
    &BARE_PC,
    &IOS,
];

/// Those that were named on the command line, on other machines.
static REMOTE: OnceLock<Vec<Remote>> = OnceLock::new();

/// Adds devices on other machines to the list, before it is examined; see [`Request`] for how they are written.
///
/// # Errors
/// One is not written as it should be, its recipe fails, or this was called before.
pub fn add_remote(requests: &[String]) -> Result<()> {
    let requests = requests.iter().map(|text| Request::parse(text)).collect::<Result<Vec<_>>>()?;
    let devices = requests.iter().map(Remote::of).collect::<Result<Vec<_>>>()?;
    let added = REMOTE.set(devices.into_iter().flatten().collect());
    added.map_err(|_| Failure::Unexpected("remote devices were named before".to_owned()))
}

/// All devices, in the order of lists and tables.
pub fn all() -> Vec<&'static dyn Device> {
    let remote = REMOTE.get().into_iter().flatten().map(|device| device as &dyn Device);
    KNOWN.iter().copied().chain(remote).collect()
}

/// The device of this name.
pub fn find(name: &str) -> Option<&'static dyn Device> {
    all().into_iter().find(|device| device.card().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_device_has_a_name_of_its_own_and_a_task() {
        let names: BTreeSet<_> = all().iter().map(|device| device.card().name).collect();
        assert_eq!(names.len(), all().len());
        assert!(all().iter().all(|device| !device.tasks().is_empty()));
    }
}
