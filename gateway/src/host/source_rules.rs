//! Routing by source (`ip rule`): packets from inside are routed into the device whatever their destination, except for the site's own
//! destinations. The rules outlive the device and are recorded; the route that they lead to is in a table of the device's own and
//! vanishes with it. What is left there is an unreachable route.

use super::kernel::{self, Refusal, ask};
use super::route_mark::RouteMark;
use crate::config::{Network, SourceRule};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteAttribute, RouteHeader, RouteMessage, RouteType};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Rules are asked before those of the main table (32766); exceptions before all others.
const EXCEPTIONS: u32 = 6_296;
const CLAIMS: u32 = 6_297;
/// Tables are numbered from here on, by device.
const TABLES: u32 = 6_296_000;

/// A rule as the kernel has it and as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recorded {
    from: String,
    except: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    table: u32,
}

impl Recorded {
    /// The rule of the device of this index.
    pub fn of(rule: &SourceRule, device: u32) -> Self {
        let except = rule.except.map(|prefix| prefix.to_string());
        let interface = rule.interface.clone();
        Self { from: rule.from.to_string(), except, interface, table: TABLES + device }
    }

    /// The rule again.
    pub fn rule(&self) -> Option<SourceRule> {
        let except = match &self.except {
            Some(prefix) => Some(prefix.parse().ok()?),
            None => None,
        };
        Some(SourceRule { from: self.from.parse().ok()?, except, interface: self.interface.clone() })
    }

    fn message(&self, mark: RouteMark) -> Option<RuleMessage> {
        let SourceRule { from, except, interface } = self.rule()?;
        let mut message = RuleMessage::default();
        let (address, length) = parts(from);
        message.header.family = family(from);
        message.header.action = RuleAction::ToTable;
        message.header.src_len = length;
        message.attributes.push(RuleAttribute::Source(address));
        message.attributes.extend(interface.map(RuleAttribute::Iifname));
        message.attributes.push(RuleAttribute::Protocol(mark.protocol()));
        match except {
            Some(to) => {
                let (address, length) = parts(to);
                message.header.dst_len = length;
                message.header.table = RouteHeader::RT_TABLE_MAIN;
                message.attributes.push(RuleAttribute::Destination(address));
                message.attributes.push(RuleAttribute::Priority(EXCEPTIONS));
            }
            None => {
                message.attributes.push(RuleAttribute::Table(self.table));
                message.attributes.push(RuleAttribute::Priority(CLAIMS));
            }
        }
        Some(message)
    }

    /// Adds it. An existing one is treated as ours.
    pub fn add(&self, mark: RouteMark) -> Result<(), Refusal> {
        let Some(message) = self.message(mark) else { return Err(Refusal::Absent) };
        let request = |handle: Handle| async move {
            let mut add = handle.rule().add();
            *add.message_mut() = message;
            add.execute().await
        };
        there(ask(request)?.map_err(|error| Refusal::of(&error)))
    }

    /// Whether both lead to the same table, in the same family.
    pub fn shares_table(&self, other: &Self) -> bool {
        let family_of = |one: &Self| one.rule().map(|rule| family(rule.from));
        self.table == other.table && family_of(self) == family_of(other)
    }

    /// Removes the last resort of its table, which outlives the device. If it is gone already, that is not an error.
    pub fn remove_last_resort(&self, mark: RouteMark) {
        let Some(rule) = self.rule() else { return };
        let message = unreachable(rule.from, self.table, mark);
        let _gone = ask(|handle: Handle| async move { handle.route().del(message).execute().await });
    }

    /// Removes it. Whether it was there.
    pub fn remove(&self, mark: RouteMark) -> bool {
        let Some(message) = self.message(mark) else { return false };
        ask(|handle: Handle| async move { handle.rule().del(message).execute().await })
            .is_ok_and(|outcome| outcome.is_ok())
    }
}

/// Routes everything of the rule's family that is looked up in the device's table into the device; without the device, it is unreachable:
/// inside addresses never leave untranslated by the main table's default route.
pub(super) fn route_all(rule: &SourceRule, device: u32, mark: RouteMark) -> Result<(), Refusal> {
    let table = TABLES + device;
    for message in [into_device(rule.from, device, mark), unreachable(rule.from, table, mark)] {
        there(
            ask(|handle: Handle| async move { handle.route().add(message).execute().await })?
                .map_err(|error| Refusal::of(&error)),
        )?;
    }
    Ok(())
}

fn into_device(network: Network, device: u32, mark: RouteMark) -> RouteMessage {
    let (table, protocol) = (TABLES + device, mark.protocol());
    match network {
        Network::V4(_) => RouteMessageBuilder::<Ipv4Addr>::new()
            .table_id(table)
            .output_interface(device)
            .protocol(protocol)
            .build(),
        Network::V6(_) => RouteMessageBuilder::<Ipv6Addr>::new()
            .table_id(table)
            .output_interface(device)
            .protocol(protocol)
            .build(),
    }
}

/// The last resort of a table.
fn unreachable(network: Network, table: u32, mark: RouteMark) -> RouteMessage {
    let (kind, protocol) = (RouteType::Unreachable, mark.protocol());
    let mut message = match network {
        Network::V4(_) => {
            RouteMessageBuilder::<Ipv4Addr>::new().table_id(table).kind(kind).protocol(protocol).build()
        }
        Network::V6(_) => {
            RouteMessageBuilder::<Ipv6Addr>::new().table_id(table).kind(kind).protocol(protocol).build()
        }
    };
    message.attributes.push(RouteAttribute::Priority(u32::MAX));
    message
}

fn parts(network: Network) -> (IpAddr, u8) {
    match network {
        Network::V4(prefix) => (prefix.address().into(), prefix.length()),
        Network::V6(prefix) => (prefix.address().into(), prefix.length()),
    }
}

const fn family(network: Network) -> AddressFamily {
    match network {
        Network::V4(_) => AddressFamily::Inet,
        Network::V6(_) => AddressFamily::Inet6,
    }
}

fn there(outcome: Result<(), Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(Refusal::Exists) => Ok(()),
        outcome => outcome,
    }
}

/// Those of the rules that the kernel has, with the route that they lead to.
pub(super) fn present(
    rules: &[SourceRule],
    device: u32,
    mark: RouteMark,
) -> Result<Vec<SourceRule>, Refusal> {
    let mut there = Vec::new();
    for (version, family_of) in [(IpVersion::V4, AddressFamily::Inet), (IpVersion::V6, AddressFamily::Inet6)]
    {
        let of_family: Vec<_> = rules.iter().filter(|rule| family(rule.from) == family_of).collect();
        if of_family.is_empty() || !kernel::has_table(family_of, TABLES + device, mark)? {
            continue;
        }
        let request = |handle: Handle| async move {
            handle.rule().get(version).execute().try_collect::<Vec<_>>().await
        };
        let found = ask(request)?.map_err(|error| Refusal::of(&error))?;
        let is_there = |rule: &&SourceRule| {
            let Some(wanted) = Recorded::of(rule, device).message(mark) else { return false };
            found.iter().any(|one| {
                (one.header.src_len, one.header.dst_len) == (wanted.header.src_len, wanted.header.dst_len)
                    && wanted.attributes.iter().all(|attribute| one.attributes.contains(attribute))
                    && one.attributes.iter().any(|it| matches!(it, RuleAttribute::Iifname(_)))
                        == rule.interface.is_some()
            })
        };
        there.extend(of_family.into_iter().filter(is_there).cloned());
    }
    Ok(there)
}
