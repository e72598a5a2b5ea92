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
use std::collections::BTreeSet;
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
/// One is not written as it should be or has the name of another device, its recipe fails, or this was called before.
pub fn add_remote(requests: &[String]) -> Result<()> {
    let requests = requests.iter().map(|text| Request::parse(text)).collect::<Result<Vec<_>>>()?;
    have_names_of_their_own(&requests)?;
    let devices = requests.iter().map(Remote::of).collect::<Result<Vec<_>>>()?;
    let added = REMOTE.set(devices.into_iter().flatten().collect());
    added.map_err(|_| Failure::Unexpected("remote devices were named before".to_owned()))
}

/// Results name a device by its name only.
fn have_names_of_their_own(requests: &[Request]) -> Result<()> {
    let mut taken: BTreeSet<String> = KNOWN.iter().map(|device| device.card().name.to_owned()).collect();
    for Request { name, .. } in requests {
        for own in [name.clone(), format!("{name}-plain")] {
            if !taken.insert(own.clone()) {
                return Err(Failure::Unexpected(format!(
                    "--remote {name}=…: a device {own} exists: choose another name, such as my-{name}"
                )));
            }
        }
    }
    Ok(())
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

    #[test]
    fn each_device_has_a_name_of_its_own_and_a_task() {
        let names: BTreeSet<_> = all().iter().map(|device| device.card().name).collect();
        assert_eq!(names.len(), all().len());
        assert!(all().iter().all(|device| !device.tasks().is_empty()));
    }

    #[test]
    fn a_remote_device_has_a_name_that_no_other_has() {
        let request = |name: &&str| {
            Request::parse(&format!("{name}=script:r.sh,inside=a,outside=b,inside-there=c,outside-there=d"))
                .unwrap()
        };
        let said = |names: &[&str]| {
            let requests: Vec<_> = names.iter().map(request).collect();
            have_names_of_their_own(&requests).map_err(|failure| failure.to_string())
        };
        assert_eq!(said(&["bsd", "my-freebsd-stf"]), Ok(()));
        let known = "--remote freebsd-stf=…: a device freebsd-stf exists: choose another name, such as my-freebsd-stf";
        assert_eq!(said(&["bsd", "freebsd-stf"]), Err(known.to_owned()));
        assert!(said(&["bsd", "bsd"]).is_err_and(|said| said.starts_with("--remote bsd=…: ")));
        assert!(said(&["guest"]).is_err_and(|said| said.contains("a device guest-plain exists")));
        assert!(said(&["bsd-plain", "bsd"]).is_err());
    }
}
