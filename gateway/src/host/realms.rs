//! Realms on the host: a TUN device of each, and a routing table with a default route into the device. Without the device, the realm's other
//! destinations are unreachable: inside addresses never leave untranslated. Routes to the inside hosts are the operator's.
//!
//! Rules (`ip rule`) lead what comes in by the realm's interfaces or by this device to the table. In a VRF the kernel's own rule does, and the
//! device belongs to the VRF as the interfaces do.

use super::error::HostError;
use super::forwarding::Setting;
use super::guard::{Guard, Watched};
use super::kernel::{Refusal, has_default_into};
use super::realm_rules::{self, RealmDevice, RealmRule, add_default, add_last_resort};
use super::record::Record;
use super::route::RouteError;
use super::route_mark::RouteMark;
use super::vrf::{NoVrf, Vrf, enslave, master_of, vrf};
use crate::config::{KERNEL_TABLES, RealmRouting};
use sixway_dataplane::frame::Realm;
use sixway_link::{Persistence, Tun, TunConfig, TunQueue, interface};
use sixway_wire::Prefix4;
use std::time::Instant;

/// A realm, as it is to be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealmPlan {
    /// Its name.
    pub name: String,
    /// Its number in the engines.
    pub number: u16,
    /// The device's name.
    pub device: String,
    /// The routing table, or the VRF that has it.
    pub routing: RealmRouting,
    /// Interfaces by which packets of inside hosts come in; none in a VRF, which has its own.
    pub interfaces: Vec<String>,
    /// Prefixes of the inside hosts.
    pub inside: Vec<Prefix4>,
}

/// The devices of the realms.
#[derive(Debug, Default)]
pub(super) struct RealmDevices {
    realms: Vec<SetUp>,
    /// Until the workers take them.
    queues: Vec<TunQueue>,
}

/// A realm that is set up.
#[derive(Debug)]
struct SetUp {
    plan: RealmPlan,
    device: RealmDevice,
    mtu: u32,
    persistence: Persistence,
    /// The VRF that the device belongs to.
    joined: Option<Vrf>,
    /// Why it belongs to none.
    trouble: Option<VrfTrouble>,
}

/// Why a realm is not in its VRF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VrfTrouble {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub advice: String,
}

impl RealmPlan {
    fn rules(&self) -> Vec<RealmRule> {
        let RealmRouting::Table(table) = self.routing else { return Vec::new() };
        let interfaces = self.interfaces.iter().chain([&self.device]);
        interfaces.map(|one| RealmRule { interface: one.clone(), table }).collect()
    }

    fn vrf(&self) -> Option<&str> {
        match &self.routing {
            RealmRouting::Table(_) => None,
            RealmRouting::Vrf(name) => Some(name),
        }
    }
}

impl RealmDevices {
    /// Sets up a realm. `config` is how the main device was opened.
    pub fn add(
        &mut self,
        plan: &RealmPlan,
        (config, mtu, queue_length): (TunConfig, u32, u32),
        settings: Vec<Setting>,
        record: &mut Record,
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
        let index = interface::index(&tun.name).map_err(device)?;
        let persistence = tun.persistence().map_err(device)?;
        let mut realm = SetUp {
            plan: plan.clone(),
            device: RealmDevice { name: tun.name.clone(), index },
            mtu,
            persistence,
            joined: None,
            trouble: None,
        };
        if let (RealmRouting::Table(_), true, Ok(Some(_))) = (&plan.routing, adopted, master_of(index)) {
            // The configuration before this one had it in a VRF.
            let what = || format!("{} out of its VRF", tun.name);
            enslave(index, None).map_err(|refusal| refused(what(), &refusal))?;
        }
        interface::set_up(&tun.name, true).map_err(device)?;
        match &plan.routing {
            RealmRouting::Table(table) => route(*table, index, adopted, record.route_mark())?,
            RealmRouting::Vrf(name) => {
                // One that is absent may appear later; others have to be mended first.
                if let Err(fault @ (NoVrf::Unsupported | NoVrf::OtherKind)) = vrf(name) {
                    let advice = fault.advice(name);
                    return Err(HostError::Vrf(plan.name.clone(), fault.what(name), advice));
                }
                realm.follow(name, &self.tables(), record)?;
                if let Some(trouble) = &realm.trouble {
                    tracing::warn!("{}: {trouble}; its hosts are not translated", plan.name);
                }
            }
        }
        self.realms.push(realm);
        self.queues.extend(tun.queues);
        Ok(())
    }

    /// The devices as they are recorded.
    pub fn recorded(&self) -> Vec<RealmDevice> {
        self.realms.iter().map(|realm| realm.device.clone()).collect()
    }

    /// Lets the devices outlive the process, or not.
    pub fn persist(&self, persist: bool) -> Result<(), HostError> {
        let mut realms = self.realms.iter();
        realms.try_for_each(|SetUp { device, persistence, .. }| {
            persistence.set(persist).map_err(|error| HostError::Device(device.name.clone(), error))
        })
    }

    /// The queues, for the workers.
    pub fn take_queues(&mut self) -> Vec<TunQueue> {
        std::mem::take(&mut self.queues)
    }

    /// Why realms are not in their VRFs, each with its name.
    pub fn troubles(&self) -> Vec<(String, VrfTrouble)> {
        let troubled =
            self.realms.iter().filter_map(|realm| Some((realm.plan.name.clone(), realm.trouble.clone()?)));
        troubled.collect()
    }

    /// Puts devices into VRFs that appeared, and restores what other programs changed; with `all`, rules and routes are compared, too.
    pub fn inspect(&mut self, (record, guard): (&mut Record, &mut Guard), all: bool, now: Instant) {
        for index in 0..self.realms.len() {
            let tables = self.tables();
            let Some(realm) = self.realms.get_mut(index) else { return };
            let is_there =
                interface::find(&realm.device.name).is_ok_and(|there| there == Some(realm.device.index));
            // The worker that reads it ends.
            if !is_there {
                continue;
            }
            let all = guard.link((&realm.device.name, realm.mtu), now) || all;
            let before = realm.trouble.clone();
            let outcome = match &realm.plan.routing {
                RealmRouting::Table(_) if all => realm.restore(record.route_mark(), guard, now),
                RealmRouting::Table(_) => Ok(()),
                RealmRouting::Vrf(name) if all || realm.is_moved(name) => {
                    let name = name.clone();
                    realm.restore_in(&name, &tables, (record, guard), now)
                }
                RealmRouting::Vrf(_) => Ok(()),
            };
            if let Err(error) = outcome {
                let advice = "restart the gateway if this stays".into();
                realm.trouble = Some(VrfTrouble { what: error.to_string(), advice });
            }
            if realm.trouble != before {
                match (&realm.trouble, realm.joined) {
                    (Some(trouble), _) => {
                        tracing::error!("{}: {trouble}; its hosts are not translated", realm.plan.name)
                    }
                    (None, Some(vrf)) => tracing::info!("{}: in its VRF ({vrf})", realm.plan.name),
                    (None, None) => tracing::info!("{}: as configured again", realm.plan.name),
                }
            }
        }
    }

    /// The tables of the realms, with the numbers of the realms.
    fn tables(&self) -> Vec<(u16, u32)> {
        let table = |realm: &SetUp| match realm.plan.routing {
            RealmRouting::Table(table) => Some(table),
            RealmRouting::Vrf(_) => realm.joined.map(|vrf| vrf.table),
        };
        self.realms.iter().filter_map(|realm| Some((realm.plan.number, table(realm)?))).collect()
    }
}

impl SetUp {
    /// Whether the VRF is another one than the device was put into, or changed its state: that is asked each second, and costs little.
    fn is_moved(&self, name: &str) -> bool {
        let index = interface::find(name).ok().flatten();
        let is_up = || interface::is_up(name).unwrap_or(false);
        match self.joined {
            Some(vrf) => index != Some(vrf.index) || vrf.is_up != is_up(),
            None => index.is_some(),
        }
    }

    /// Puts the device into the VRF and routes there, if that is possible now; else says why not.
    fn follow(&mut self, name: &str, taken: &[(u16, u32)], record: &mut Record) -> Result<(), HostError> {
        let trouble = |what: String, advice: String| Some(VrfTrouble { what, advice });
        let found = match vrf(name) {
            Ok(found) => found,
            Err(fault) => {
                (self.joined, self.trouble) = (None, trouble(fault.what(name), fault.advice(name)));
                return Ok(());
            }
        };
        let table = found.table;
        let is_taken = taken.iter().any(|(other, one)| *one == table && *other != self.plan.number);
        if is_taken || KERNEL_TABLES.contains(&table) {
            let what = if is_taken { "which another realm has" } else { "which is the kernel's" };
            let advice = format!("create {name} with a table of its own");
            (self.joined, self.trouble) =
                (None, trouble(format!("VRF {name} has table {table}, {what}"), advice));
            return Ok(());
        }
        let mark = record.route_mark();
        record.vrf_table(table).map_err(HostError::Record)?;
        let what = format!("unreachable route of table {table}");
        add_last_resort(table, mark).map_err(|refusal| refused(what, &refusal))?;
        let device = &self.device;
        let is_in = master_of(device.index).is_ok_and(|master| master == Some(found.index));
        if !is_in {
            let what = format!("{} into VRF {name}", device.name);
            enslave(device.index, Some(found.index)).map_err(|refusal| refused(what, &refusal))?;
        }
        route(table, device.index, true, mark)?;
        self.joined = Some(found);
        self.trouble = match found.is_up {
            true => None,
            false => trouble(format!("VRF {name} is down"), format!("ip link set {name} up")),
        };
        Ok(())
    }

    /// As [`Self::follow`], unless another program takes the device out of the VRF again and again.
    fn restore_in(
        &mut self,
        name: &str,
        taken: &[(u16, u32)],
        (record, guard): (&mut Record, &mut Guard),
        now: Instant,
    ) -> Result<(), HostError> {
        let Some(before) = self.joined.filter(|before| vrf(name).is_ok_and(|now| now.index == before.index))
        else {
            return self.follow(name, taken, record);
        };
        let is_in = master_of(self.device.index).is_ok_and(|master| master == Some(before.index));
        let lost = |what: &str| format!("{what} of {}", self.device.name);
        let is_routed = is_in && self.is_routed(before.table, record.route_mark());
        let what = lost("VRF");
        match is_in {
            true => guard.intact(&what),
            false if !guard.may_restore(Watched::Device, &what, &format!("it was not in {name}"), now) => {
                return Ok(());
            }
            false => {}
        }
        let what = lost("default route");
        match is_routed {
            true => guard.intact(&what),
            // It went with the membership.
            false if !is_in => {}
            false if !guard.may_restore(Watched::Route, &what, &format!("table {}", before.table), now) => {
                return Ok(());
            }
            false => {}
        }
        self.follow(name, taken, record)
    }

    fn is_routed(&self, table: u32, mark: RouteMark) -> bool {
        // What the kernel does not say is taken for right.
        has_default_into(table, self.device.index, mark).unwrap_or(true)
    }

    /// Restores rules and routes that are gone.
    fn restore(&mut self, mark: RouteMark, guard: &mut Guard, now: Instant) -> Result<(), HostError> {
        let RealmRouting::Table(table) = self.plan.routing else { return Ok(()) };
        let Ok(present) = realm_rules::present() else { return Ok(()) };
        let rules = self.plan.rules();
        let lost: Vec<&RealmRule> = rules.iter().filter(|rule| !rule.is_among(&present, mark)).collect();
        let what = format!("rules of realm {}", self.plan.name);
        let named: Vec<&str> = lost.iter().map(|rule| rule.interface.as_str()).collect();
        if lost.is_empty() {
            guard.intact(&what);
        } else if guard.may_restore(Watched::Rule, &what, &named.join(", "), now) {
            for rule in lost {
                rule.add(mark)
                    .map_err(|refusal| refused(format!("rule for {}", rule.interface), &refusal))?;
            }
        }
        let unreachable = format!("unreachable route of table {table}");
        add_last_resort(table, mark).map_err(|refusal| refused(unreachable, &refusal))?;
        let what = format!("default route of realm {}", self.plan.name);
        if self.is_routed(table, mark) {
            guard.intact(&what);
        } else if guard.may_restore(Watched::Route, &what, &format!("table {table}"), now) {
            route(table, self.device.index, true, mark)?;
        }
        self.trouble = None;
        Ok(())
    }
}

impl std::fmt::Display for VrfTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.what, self.advice)
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
    let in_vrf = |plan: &RealmPlan| Some((plan.device.clone(), vrf(plan.vrf()?).ok()?.table));
    let in_vrfs: Vec<(String, u32)> = plans.iter().filter_map(in_vrf).collect();
    let in_vrfs: Vec<(&str, u32)> = in_vrfs.iter().map(|(device, table)| (device.as_str(), *table)).collect();
    record.keep_vrf_tables(&in_vrfs).map_err(HostError::Record)?;
    let wanted: Vec<RealmRule> = plans.iter().flat_map(RealmPlan::rules).collect();
    record.remove_realm_defaults_but(&wanted);
    record.realm_rules(&wanted).map_err(HostError::Record)?;
    let mark = record.route_mark();
    for rule in &wanted {
        let what = format!("unreachable route of table {}", rule.table);
        add_last_resort(rule.table, mark).map_err(|refusal| refused(what, &refusal))?;
        rule.add(mark).map_err(|refusal| refused(format!("rule for {}", rule.interface), &refusal))?;
    }
    record.keep_realm_rules(&wanted).map_err(HostError::Record)
}

fn refused(what: String, refusal: &Refusal) -> HostError {
    HostError::Route(RouteError::Kernel(what, refusal.to_string()))
}

fn route(table: u32, device: u32, adopted: bool, mark: RouteMark) -> Result<(), HostError> {
    let what = format!("default route of table {table}");
    let is_ours = || has_default_into(table, device, mark).unwrap_or(false);
    match add_default(table, device, mark) {
        Err(Refusal::Exists) if adopted && is_ours() => Ok(()),
        Err(Refusal::Exists) => {
            let mend = format!("another one exists; remove it (see: ip route show table {table})");
            Err(refused(what, &Refusal::Other(mend)))
        }
        outcome => outcome.map_err(|refusal| refused(what, &refusal)),
    }
}
