//! Realms on the host: a TUN device of each, rules (`ip rule`) that route what comes in by the realm's interfaces or by this device by the
//! realm's table, and in that table a default route into the device. Without the device, the realm's other destinations are unreachable:
//! inside addresses never leave untranslated. Routes to the inside hosts are the operator's.

use super::error::HostError;
use super::forwarding::device_settings;
use super::kernel::{Refusal, ask, remove_link};
use super::links::tun_of;
use super::record::Record;
use super::route::RouteError;
use super::route_mark::RouteMark;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, RouteMessageBuilder};
use serde::{Deserialize, Serialize};
use sixway_dataplane::frame::Realm;
use sixway_link::{Persistence, Tun, TunConfig, TunQueue, interface};
use sixway_wire::Prefix4;
use std::net::Ipv4Addr;
use std::path::Path;

/// Before the rules of other mechanisms: what comes in by an interface of a realm is the realm's, whatever its source.
const RULES: u32 = 6_290;

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

/// A rule as it is recorded: what comes in by an interface is routed by a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RealmRule {
    interface: String,
    table: u32,
}

/// A device that outlives the process, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RealmDevice {
    name: String,
    index: u32,
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

impl RealmRule {
    fn message(&self, mark: RouteMark) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Iifname(self.interface.clone()),
            RuleAttribute::Table(self.table),
            RuleAttribute::Priority(RULES),
            RuleAttribute::Protocol(mark.protocol()),
        ];
        message
    }

    fn add(&self, mark: RouteMark) -> Result<(), Refusal> {
        let message = self.message(mark);
        let request = |handle: Handle| async move {
            let mut add = handle.rule().add();
            *add.message_mut() = message;
            add.execute().await
        };
        there(ask(request)?.map_err(|error| Refusal::of(&error)))
    }

    /// Removes it. Whether it was there.
    pub fn remove(&self, mark: RouteMark) -> bool {
        let message = self.message(mark);
        ask(|handle: Handle| async move { handle.rule().del(message).execute().await })
            .is_ok_and(|outcome| outcome.is_ok())
    }

    /// Whether both lead to the same table.
    pub fn shares_table(&self, other: &Self) -> bool {
        self.table == other.table
    }

    /// Removes the last resort of its table, which outlives the device.
    pub fn remove_last_resort(&self, mark: RouteMark) {
        let message = unreachable(self.table, mark);
        let _gone = ask(|handle: Handle| async move { handle.route().del(message).execute().await });
    }
}

impl RealmDevice {
    /// Whether it is the device of this realm.
    pub fn is_of(&self, realm: &RealmPlan) -> bool {
        self.name == realm.device
    }

    /// Removes the device; its name if it was there. It may have been renamed.
    pub fn remove(&self) -> Option<String> {
        tun_of(self.index).filter(|_| remove_link(self.index).is_ok())
    }
}

impl RealmDevices {
    /// Sets up a realm. `config` is how the main device was opened.
    pub fn add(
        &mut self,
        plan: &RealmPlan,
        config: TunConfig,
        mtu: u32,
        record: &mut Record,
    ) -> Result<(), HostError> {
        let device = |error| HostError::Device(plan.device.clone(), error);
        let adopted = config.persist;
        let tun = Tun::open(&TunConfig { name: plan.device.clone(), realm: Realm(plan.number), ..config })
            .map_err(device)?;
        for (path, value) in device_settings(Path::new(super::device::SETTINGS), &tun.name) {
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
        interface::set_up(&tun.name, true).map_err(device)?;
        let index = interface::index(&tun.name).map_err(device)?;
        route(plan, index, adopted, record)?;
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

/// Removes what a previous process set up for realms that are no more.
pub(super) fn remove_others(plans: &[RealmPlan], record: &mut Record) -> Result<(), HostError> {
    for old in record.inherited_realms() {
        if !plans.iter().any(|plan| plan.device == old.name) {
            old.remove();
        }
    }
    let wanted: Vec<RealmRule> = plans.iter().flat_map(RealmPlan::rules).collect();
    record.keep_realm_rules(&wanted).map_err(HostError::Record)
}

/// The table has its routes before a rule leads there.
fn route(plan: &RealmPlan, device: u32, adopted: bool, record: &mut Record) -> Result<(), HostError> {
    let mark = record.route_mark();
    let rules = plan.rules();
    record.realm_rules(&rules).map_err(HostError::Record)?;
    let refused =
        |what: String, refusal: &Refusal| HostError::Route(RouteError::Kernel(what, refusal.to_string()));
    let what = format!("default route of table {}", plan.table);
    match add_route(into_device(plan.table, device, mark)) {
        Err(Refusal::Exists) if adopted => {}
        Err(Refusal::Exists) => {
            let mend = format!("another one exists; remove it (see: ip route show table {})", plan.table);
            return Err(refused(what, &Refusal::Other(mend)));
        }
        outcome => outcome.map_err(|refusal| refused(what.clone(), &refusal))?,
    }
    there(add_route(unreachable(plan.table, mark))).map_err(|refusal| refused(what, &refusal))?;
    for rule in &rules {
        rule.add(mark).map_err(|refusal| refused(format!("rule for {}", rule.interface), &refusal))?;
    }
    Ok(())
}

fn add_route(message: RouteMessage) -> Result<(), Refusal> {
    ask(|handle: Handle| async move { handle.route().add(message).execute().await })?
        .map_err(|error| Refusal::of(&error))
}

fn into_device(table: u32, device: u32, mark: RouteMark) -> RouteMessage {
    let builder = RouteMessageBuilder::<Ipv4Addr>::new().table_id(table);
    builder.output_interface(device).protocol(mark.protocol()).build()
}

fn unreachable(table: u32, mark: RouteMark) -> RouteMessage {
    let builder = RouteMessageBuilder::<Ipv4Addr>::new().table_id(table);
    let mut message = builder.kind(RouteType::Unreachable).protocol(mark.protocol()).build();
    message.attributes.push(RouteAttribute::Priority(u32::MAX));
    message
}

fn there(outcome: Result<(), Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(Refusal::Exists) => Ok(()),
        outcome => outcome,
    }
}
