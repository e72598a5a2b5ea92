//! Names of IPv6-only servers, which lead IPv4 clients to addresses of a NAT46's pool.

use super::policy::Names;
use super::settings::Wire;
use crate::Instant;
use arrayvec::ArrayVec;
use sixway_dataplane::mechanism::nat46::{MappingRefused, Mappings};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Servers of a name that a client gets addresses for: a second one for when the first does not answer; addresses of the pool are scarce.
pub const MOST_SERVERS: usize = 2;

/// Addresses of a name that are examined: an answer of 64 KiB has more.
const MOST_LOOKED_AT: usize = 64;

/// The addresses that one answer has.
pub type MappedAddresses = ArrayVec<Ipv4Addr, MOST_SERVERS>;

/// Names and the mappings that they lead to.
#[derive(Clone, Debug)]
pub struct NameMappings {
    /// The mappings, which the workers that translate see immediately.
    pub table: Arc<Mappings>,
    /// Names at or below these lead to no mapping.
    pub excluded: Vec<Wire>,
    /// The longest TTL of an answer, in seconds.
    pub longest_ttl: u32,
}

/// The same, ready for queries.
#[derive(Clone, Debug)]
pub(super) struct MappedNames {
    table: Arc<Mappings>,
    excluded: Names<()>,
    pub(super) longest_ttl: u32,
}

impl MappedNames {
    pub(super) fn new(names: NameMappings) -> Self {
        let NameMappings { table, excluded, longest_ttl } = names;
        let mut ready = Self { table, excluded: Names::default(), longest_ttl };
        for name in &excluded {
            ready.excluded.insert(&name.0, ());
        }
        ready
    }

    /// The client, if this name, in lower-case wire form, may lead it to a mapping.
    pub(super) fn client(&self, client: IpAddr, name: &[u8]) -> Option<Ipv4Addr> {
        let IpAddr::V4(client) = client.to_canonical() else { return None };
        let settings = self.table.settings();
        let leads = settings.by_name && settings.is_client(client);
        (leads && self.excluded.longest(name).is_none()).then_some(client)
    }

    /// The servers among these that the client may be led to: first those that it has mappings for.
    pub(super) fn servers(
        &self,
        client: Ipv4Addr,
        addresses: impl Iterator<Item = Ipv6Addr>,
    ) -> ArrayVec<Ipv6Addr, MOST_SERVERS> {
        let (mut known, mut others) =
            (ArrayVec::<_, MOST_SERVERS>::new(), ArrayVec::<_, MOST_SERVERS>::new());
        for server in addresses.take(MOST_LOOKED_AT) {
            if known.is_full() {
                break;
            }
            let list = if self.table.knows(client, server) { &mut known } else { &mut others };
            if self.leads_to(server) && !list.contains(&server) {
                let _ = list.try_push(server);
            }
        }
        known.into_iter().chain(others).take(MOST_SERVERS).collect()
    }

    fn leads_to(&self, server: Ipv6Addr) -> bool {
        self.table.is_static(server) || self.table.settings().is_server(server)
    }

    /// Whether a name, in wire form, is at or below one that leads to no mapping: the end of a chain, too.
    pub(super) fn excludes(&self, name: &[u8]) -> bool {
        self.excluded.longest(&name.to_ascii_lowercase()).is_some()
    }

    /// Addresses that represent these servers for the client, in an answer with a TTL of `ttl` seconds; the client's address is `proven` if
    /// it came by a stream.
    ///
    /// # Errors
    /// The reason why it is missing.
    pub(super) fn map(
        &self,
        client: Ipv4Addr,
        servers: &[Ipv6Addr],
        (ttl, proven): (u32, bool),
        now: Instant,
    ) -> Result<MappedAddresses, MappingRefused> {
        let mut mapped = MappedAddresses::new();
        let mut refused = MappingRefused::NotServer;
        for server in servers.iter().take(MOST_SERVERS) {
            match self.table.map_for(client, *server, (ttl, proven), now) {
                Ok(address) => mapped.push(address),
                Err(why) => refused = why,
            }
        }
        if mapped.is_empty() { Err(refused) } else { Ok(mapped) }
    }

    /// The server that an address represents for a client, and for how many seconds one may say so.
    pub(super) fn server(&self, client: IpAddr, address: Ipv4Addr, now: Instant) -> Option<(Ipv6Addr, u32)> {
        let IpAddr::V4(client) = client.to_canonical() else { return None };
        if !self.table.settings().pool.contains(address) || !self.table.settings().is_client(client) {
            return None;
        }
        let server = self.table.server_of(client, address, now)?;
        let certain = self.table.certain_for(client, address, now).unwrap_or(u32::MAX);
        Some((server, certain.min(self.longest_ttl)))
    }
}
