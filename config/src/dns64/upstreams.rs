//! `dns64.upstream` as a whole: sections, or the host's own DNS servers.

use std::net::SocketAddr;
use std::ops::Deref;

use serde::{Serialize, Serializer};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;

use super::context::Dns64Context;
use super::listening::Listening;
use super::prefixes::TranslatorContext;
use super::upstream::{self, Transport, Upstream};
use crate::fault::Place;
use crate::section::Reader;

/// The word for the host's own DNS servers.
const SYSTEM: &str = "system";
/// Maximum number of the host's servers that are queried: a resolver library reads 3.
const MOST: usize = 8;

/// Where questions go; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstreams {
    all: Vec<Upstream>,
    are_the_systems: bool,
}

impl Upstreams {
    /// Whether they are the host's own DNS servers, which may change.
    #[must_use]
    pub fn are_the_systems(&self) -> bool {
        self.are_the_systems
    }

    /// Those of sections, or the host's own.
    pub(super) fn read(
        section: &Reader,
        translation: &TranslatorContext,
        own: Option<&[Rfc6052]>,
        listening: Option<&Listening>,
        context: &mut Dns64Context,
    ) -> Option<Self> {
        if let Some(upstreams) = Self::of_the_system(section, listening, context) {
            return upstreams;
        }
        let all = upstream::read_all(section, translation, own, listening, context)?;
        Some(Self { all, are_the_systems: false })
    }

    /// The host's own servers, if the section asks for them; `Some(None)`: with a fault.
    fn of_the_system(
        section: &Reader,
        listening: Option<&Listening>,
        context: &mut Dns64Context,
    ) -> Option<Option<Self>> {
        if !section.is_word("upstream", SYSTEM) {
            return None;
        }
        let is_own = |server: &SocketAddr| {
            listening.is_some_and(|it| it.hears(*server, context)) || context.own.contains(&server.ip())
        };
        let servers: Vec<SocketAddr> = context.host.resolvers.to_vec();
        let all: Vec<Upstream> =
            servers.iter().filter(|server| !is_own(server)).take(MOST).map(|server| at(*server)).collect();
        if all.is_empty() {
            let key = format!("{}.upstream", section.place().key).into();
            let place = Place { key, ..section.place().clone() };
            let what = match servers.is_empty() {
                true => {
                    "\"system\": /etc/resolv.conf has no nameserver; write the servers here: [{ address = \"192.0.2.53\" }]"
                }
                false => {
                    "\"system\": /etc/resolv.conf has no nameserver but this DNS64 itself; write the servers here: [{ address = \"192.0.2.53\" }]"
                }
            };
            context.report.fault(&place, what);
            return Some(None);
        }
        Some(Some(Self { all, are_the_systems: true }))
    }
}

fn at(address: SocketAddr) -> Upstream {
    Upstream {
        address,
        transport: Transport::Udp,
        name: None,
        path: None,
        ca: None,
        through: None,
        names: Vec::new(),
    }
}

impl Deref for Upstreams {
    type Target = [Upstream];

    fn deref(&self) -> &[Upstream] {
        &self.all
    }
}

impl Serialize for Upstreams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.are_the_systems {
            true => serializer.serialize_str(SYSTEM),
            false => self.all.serialize(serializer),
        }
    }
}
