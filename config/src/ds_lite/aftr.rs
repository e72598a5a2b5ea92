//! `role = "aftr"`: the provider's end of all softwires (RFC 6333 §6).

use std::net::Ipv6Addr;

use serde::Serialize;
use sixway_wire::Prefix6;

use crate::section::Reader;
use crate::text;
use crate::tunnel_context::TunnelContext;

/// An AFTR, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aftr {
    /// What it is called.
    pub name: String,
    role: super::DsLiteRole,
    /// Its IPv6 addresses, at which softwires end.
    #[serde(serialize_with = "text::many")]
    pub addresses: Vec<Ipv6Addr>,
    /// Where its B4s are.
    #[serde(serialize_with = "text::many")]
    pub clients: Vec<Prefix6>,
}

impl Aftr {
    pub(super) fn read(section: &Reader, default_name: String, context: TunnelContext) -> Option<Self> {
        let TunnelContext { report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let addresses = section
            .value("addresses", report)
            .map(|v| v.items().iter().map(|item| item.address6(report)).collect::<Option<Vec<_>>>());
        let clients = section
            .value("clients", report)
            .map(|v| v.items().iter().map(|item| item.prefix6(report)).collect::<Option<Vec<_>>>());
        report.fault(section.place(), "role = \"aftr\" is not available; write role = \"b4\"");
        Some(Self {
            name: name.unwrap_or(Some(default_name))?,
            role: super::DsLiteRole::Aftr,
            addresses: addresses??,
            clients: clients??,
        })
    }
}
