//! Routing by source (`ip -6 rule`): what comes from inside of a mechanism goes into the device whatever its destination, but for the
//! site's own destinations. The rules outlive the device and are recorded; the route that they lead to is in a table of the device's
//! own and vanishes with it.

use super::kernel::{Refusal, ask};
use super::route_mark::RouteMark;
use crate::config::SourceRule;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::RouteHeader;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};
use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;

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
    table: u32,
}

impl Recorded {
    /// The rule of the device of this index.
    pub fn of(rule: &SourceRule, device: u32) -> Self {
        let except = rule.except.map(|prefix| prefix.to_string());
        Self { from: rule.from.to_string(), except, table: TABLES + device }
    }

    /// The rule again.
    pub fn rule(&self) -> Option<SourceRule> {
        let except = match &self.except {
            Some(prefix) => Some(prefix.parse().ok()?),
            None => None,
        };
        Some(SourceRule { from: self.from.parse().ok()?, except })
    }

    fn message(&self, mark: RouteMark) -> Option<RuleMessage> {
        let SourceRule { from, except } = self.rule()?;
        let mut message = RuleMessage::default();
        message.header.family = AddressFamily::Inet6;
        message.header.action = RuleAction::ToTable;
        message.header.src_len = from.length();
        message.attributes.push(RuleAttribute::Source(from.address().into()));
        message.attributes.push(RuleAttribute::Protocol(mark.protocol()));
        match except {
            Some(to) => {
                message.header.dst_len = to.length();
                message.header.table = RouteHeader::RT_TABLE_MAIN;
                message.attributes.push(RuleAttribute::Destination(to.address().into()));
                message.attributes.push(RuleAttribute::Priority(EXCEPTIONS));
            }
            None => {
                message.attributes.push(RuleAttribute::Table(self.table));
                message.attributes.push(RuleAttribute::Priority(CLAIMS));
            }
        }
        Some(message)
    }

    /// Adds it. One that is there already is taken for ours.
    pub fn add(&self, mark: RouteMark) -> Result<(), Refusal> {
        let Some(message) = self.message(mark) else { return Err(Refusal::Absent) };
        let request = |handle: Handle| async move {
            let mut add = handle.rule().add();
            *add.message_mut() = message;
            add.execute().await
        };
        there(ask(request)?.map_err(|error| Refusal::of(&error)))
    }

    /// Removes it. Whether it was there.
    pub fn remove(&self, mark: RouteMark) -> bool {
        let Some(message) = self.message(mark) else { return false };
        ask(|handle: Handle| async move { handle.rule().del(message).execute().await })
            .is_ok_and(|outcome| outcome.is_ok())
    }
}

/// Routes everything that is looked up in the device's table into the device.
pub(super) fn route_all(device: u32, mark: RouteMark) -> Result<(), Refusal> {
    let message = RouteMessageBuilder::<Ipv6Addr>::new()
        .table_id(TABLES + device)
        .output_interface(device)
        .protocol(mark.protocol())
        .build();
    there(
        ask(|handle: Handle| async move { handle.route().add(message).execute().await })?
            .map_err(|error| Refusal::of(&error)),
    )
}

fn there(outcome: Result<(), Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(Refusal::Exists) => Ok(()),
        outcome => outcome,
    }
}

/// Those of the rules that the kernel has.
pub(super) fn present(
    rules: &[SourceRule],
    device: u32,
    mark: RouteMark,
) -> Result<Vec<SourceRule>, Refusal> {
    let request = |handle: Handle| async move {
        handle.rule().get(IpVersion::V6).execute().try_collect::<Vec<_>>().await
    };
    let found = ask(request)?.map_err(|error| Refusal::of(&error))?;
    let is_there = |rule: &&SourceRule| {
        let Some(wanted) = Recorded::of(rule, device).message(mark) else { return false };
        found.iter().any(|one| {
            (one.header.src_len, one.header.dst_len) == (wanted.header.src_len, wanted.header.dst_len)
                && wanted.attributes.iter().all(|attribute| one.attributes.contains(attribute))
        })
    };
    Ok(rules.iter().filter(is_there).cloned().collect())
}
