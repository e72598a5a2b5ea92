//! Realms on the host: a TUN device of each, rules (`ip rule`) that route what comes in by the realm's interfaces or by this device by the
//! realm's table, and in that table a default route into the device. Without the device, the realm's other destinations are unreachable:
//! inside addresses never leave untranslated. Routes to the inside hosts are the operator's.

use super::error::HostError;
use super::forwarding::Setting;
use super::kernel::{Refusal, has_default_into};
use super::realm_rules::{RealmDevice, RealmRule, add_default, add_last_resort};
use super::record::Record;
use super::route::RouteError;
use super::route_mark::RouteMark;
use sixway_dataplane::frame::Realm;
use sixway_link::{Persistence, Tun, TunConfig, TunQueue, interface};
use sixway_wire::Prefix4;

/// A realm, as it is to be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealmPlan {
    /// Its number in the engines.
    pub number: u16,
    /// The device's name.
    pub device: String,
    /// The routing table's number.
    pub table: u32,
    /// Interfaces by which packets of inside hosts come in.
    pub interfaces: Vec<String>,
    /// Prefixes of the inside hosts.
    pub inside: Vec<Prefix4>,
}

/// The devices of the realms.
#[derive(Debug, Default)]
pub(super) struct RealmDevices {
    devices: Vec<(RealmDevice, Persistence)>,
    /// Until the workers take them.
    queues: Vec<TunQueue>,
}

impl RealmPlan {
    fn rules(&self) -> Vec<RealmRule> {
        let interfaces = self.interfaces.iter().chain([&self.device]);
        interfaces.map(|one| RealmRule { interface: one.clone(), table: self.table }).collect()
    }
}

impl RealmDevices {
    /// Sets up a realm. `config` is how the main device was opened.
    pub fn add(
        &mut self,
        plan: &RealmPlan,
        (config, mtu, queue_length): (TunConfig, u32, u32),
        settings: Vec<Setting>,
        mark: RouteMark,
    ) -> Result<(), HostError> {
        let device = |error| HostError::Device(plan.device.clone(), error);
        let adopted = config.persist;
        let tun = Tun::open(&TunConfig { name: plan.device.clone(), realm: Realm(plan.number), ..config })
            .map_err(device)?;
        for (path, value) in settings {
            let is_ipv6 = path.components().any(|part| part.as_os_str() == "ipv6");
            match (is_ipv6, path.ends_with("disable_ipv6")) {
                // A kernel without IPv6 lacks the setting.
                (true, true) => drop(std::fs::write(&path, "1")),
                (true, false) => {}
                (false, _) => {
                    std::fs::write(&path, value).map_err(|error| HostError::Setting(path, error))?;
                }
            }
        }
        interface::set_mtu(&tun.name, mtu).map_err(device)?;
        interface::set_queue_length(&tun.name, queue_length).map_err(device)?;
        interface::set_up(&tun.name, true).map_err(device)?;
        let index = interface::index(&tun.name).map_err(device)?;
        route(plan, index, adopted, mark)?;
        let persistence = tun.persistence().map_err(device)?;
        self.devices.push((RealmDevice { name: tun.name, index }, persistence));
        self.queues.extend(tun.queues);
        Ok(())
    }

    /// The devices as they are recorded.
    pub fn recorded(&self) -> Vec<RealmDevice> {
        self.devices.iter().map(|(device, _)| device.clone()).collect()
    }

    /// Lets the devices outlive the process, or not.
    pub fn persist(&self, persist: bool) -> Result<(), HostError> {
        let mut devices = self.devices.iter();
        devices.try_for_each(|(device, persistence)| {
            persistence.set(persist).map_err(|error| HostError::Device(device.name.clone(), error))
        })
    }

    /// The queues, for the workers.
    pub fn take_queues(&mut self) -> Vec<TunQueue> {
        std::mem::take(&mut self.queues)
    }
}

/// Rules and unreachable routes of the realms, in place of those that a previous process made. No table has a default route into the device of
/// another realm at any time, and what a rule leads to is unreachable until its realm has a device.
pub(super) fn prepare(plans: &[RealmPlan], record: &mut Record) -> Result<(), HostError> {
    for old in record.inherited_realms() {
        if !plans.iter().any(|plan| plan.device == old.name) {
            old.remove();
        }
    }
    let wanted: Vec<RealmRule> = plans.iter().flat_map(RealmPlan::rules).collect();
    record.remove_realm_defaults_but(&wanted);
    record.realm_rules(&wanted).map_err(HostError::Record)?;
    let mark = record.route_mark();
    for plan in plans {
        let what = format!("unreachable route of table {}", plan.table);
        add_last_resort(plan.table, mark).map_err(|refusal| refused(what, &refusal))?;
        for rule in plan.rules() {
            rule.add(mark).map_err(|refusal| refused(format!("rule for {}", rule.interface), &refusal))?;
        }
    }
    record.keep_realm_rules(&wanted).map_err(HostError::Record)
}

fn refused(what: String, refusal: &Refusal) -> HostError {
    HostError::Route(RouteError::Kernel(what, refusal.to_string()))
}

fn route(plan: &RealmPlan, device: u32, adopted: bool, mark: RouteMark) -> Result<(), HostError> {
    let what = format!("default route of table {}", plan.table);
    let is_ours = || has_default_into(plan.table, device, mark).unwrap_or(false);
    match add_default(plan.table, device, mark) {
        Err(Refusal::Exists) if adopted && is_ours() => Ok(()),
        Err(Refusal::Exists) => {
            let mend = format!("another one exists; remove it (see: ip route show table {})", plan.table);
            Err(refused(what, &Refusal::Other(mend)))
        }
        outcome => outcome.map_err(|refusal| refused(what, &refusal)),
    }
}
