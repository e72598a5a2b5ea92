//! The realms' settings in the kernel in addition to their devices: rules (`ip rule`) and routes, as they are set and recorded. In a VRF
//! there are no rules: the kernel's own leads to its table.

use super::kernel::{Refusal, ask, remove_link};
use super::links::tun_of;
use super::route_mark::RouteMark;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Before the rules of other mechanisms: what comes in by an interface of a realm is the realm's, whatever its source.
const RULES: u32 = 6_290;

/// A rule as it is recorded: what comes in by an interface is routed by a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RealmRule {
    pub interface: String,
    pub table: u32,
}

/// A device that outlives the process, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RealmDevice {
    pub name: String,
    pub index: u32,
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

    /// Adds it. One that exists is taken for ours.
    pub fn add(&self, mark: RouteMark) -> Result<(), Refusal> {
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

    /// Whether it is among those that the kernel has.
    pub fn is_among(&self, present: &[RuleMessage], mark: RouteMark) -> bool {
        let wanted = self.message(mark);
        let has_all =
            |one: &RuleMessage| wanted.attributes.iter().all(|attribute| one.attributes.contains(attribute));
        present.iter().any(has_all)
    }
}

impl RealmDevice {
    /// Whether it still exists.
    pub fn exists(&self) -> bool {
        tun_of(self.index).is_some()
    }

    /// Removes the default route of a table into it.
    pub fn remove_default(&self, table: u32, mark: RouteMark) {
        let message = into_device(table, self.index, mark);
        let _gone = ask(|handle: Handle| async move { handle.route().del(message).execute().await });
    }

    /// Removes the device; its name if it was there. It may have been renamed.
    pub fn remove(&self) -> Option<String> {
        tun_of(self.index).filter(|_| remove_link(self.index).is_ok())
    }
}

/// Routes everything that is looked up in a table into the device of this index.
pub(super) fn add_default(table: u32, device: u32, mark: RouteMark) -> Result<(), Refusal> {
    add_route(into_device(table, device, mark))
}

/// Makes the rest of a table unreachable.
pub(super) fn add_last_resort(table: u32, mark: RouteMark) -> Result<(), Refusal> {
    there(add_route(unreachable(table, mark)))
}

/// Removes the last resort of a table, which outlives the device.
pub(super) fn remove_last_resort(table: u32, mark: RouteMark) {
    let message = unreachable(table, mark);
    let _gone = ask(|handle: Handle| async move { handle.route().del(message).execute().await });
}

/// The IPv4 rules that the kernel has.
pub(super) fn present() -> Result<Vec<RuleMessage>, Refusal> {
    let request =
        |handle: Handle| async move { handle.rule().get(IpVersion::V4).execute().try_collect().await };
    ask(request)?.map_err(|error| Refusal::of(&error))
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
