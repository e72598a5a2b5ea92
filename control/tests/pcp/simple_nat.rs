//! A NAT with one external address, as simple as can be: a list of bindings.

use core::net::{IpAddr, Ipv4Addr};
use sixway_control::pcp::{
    Closed, ControlledNat, Existing, ExistingKind, Filter, Internal, Opened, Refusal, Transport, Wanted,
    WantedPeer,
};
use sixway_wire::Endpoint4;

#[derive(Clone, Debug)]
pub struct Binding {
    pub transport: Transport,
    pub internal: Internal,
    pub external: u16,
    pub kind: ExistingKind,
    pub filters: Vec<Filter>,
    /// Whether the companion is kept for the host.
    pub companion: bool,
    /// Seconds for which sessions keep it.
    pub used_for: u32,
}

#[derive(Clone, Debug)]
pub struct SimpleNat {
    pub bindings: Vec<Binding>,
    pub ports: core::ops::RangeInclusive<u16>,
    pub address: Ipv4Addr,
    pub next: u16,
    pub has_address: bool,
    /// Refuses everything with this.
    pub refuses: Option<Refusal>,
}

impl SimpleNat {
    pub const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    pub fn new() -> Self {
        Self {
            bindings: Vec::new(),
            ports: 1_024..=65_535,
            address: Ipv4Addr::new(192, 0, 2, 1),
            next: 20_000,
            has_address: true,
            refuses: None,
        }
    }

    pub fn add(&mut self, transport: Transport, host: &str, port: u16, external: u16, kind: ExistingKind) {
        let internal = Internal { address: host.parse().unwrap(), port };
        let (filters, used_for) = (Vec::new(), if kind == ExistingKind::Dynamic { 200 } else { 0 });
        let companion = false;
        self.bindings.push(Binding { transport, internal, external, kind, filters, companion, used_for });
    }

    pub fn of(&self, transport: Transport, host: &str, port: u16) -> Option<&Binding> {
        let internal = Internal { address: host.parse().unwrap(), port };
        self.bindings.iter().find(|it| it.transport == transport && it.internal == internal)
    }

    /// Whether a host cannot have a port, alone or with its companion.
    fn is_taken(&self, transport: Transport, port: u16, host: IpAddr, companion: bool) -> bool {
        self.bindings.iter().filter(|it| it.external == port).any(|it| {
            let is_others = it.internal.address != host;
            it.transport == transport || is_others && (it.companion || companion)
        })
    }

    fn choose(&mut self, transport: Transport, wanted: &Wanted<'_>) -> Result<u16, Refusal> {
        if !self.has_address {
            return Err(Refusal::NoExternal);
        }
        let is_here = wanted.address.is_none_or(|address| address == self.address);
        let host = wanted.internal.address;
        let is_taken = |nat: &Self, port| nat.is_taken(transport, port, host, wanted.companion);
        if is_here && self.ports.contains(&wanted.port) && !is_taken(self, wanted.port) {
            return Ok(wanted.port);
        }
        if wanted.exactly {
            return Err(Refusal::ExternalTaken);
        }
        for _ in 0..=u16::MAX {
            let port = self.next;
            self.next = if port >= *self.ports.end() { *self.ports.start() } else { port + 1 };
            if self.ports.contains(&port) && !is_taken(self, port) {
                return Ok(port);
            }
        }
        Err(Refusal::Full)
    }
}

impl ControlledNat for SimpleNat {
    fn serves(&self, host: IpAddr) -> bool {
        match host {
            IpAddr::V4(host) => host.octets()[..2] == [192, 168],
            IpAddr::V6(host) => host.segments()[..2] == [0x2001, 0xdb8],
        }
    }

    fn open(&mut self, wanted: &Wanted<'_>) -> Result<Opened, Refusal> {
        if let Some(refusal) = self.refuses {
            return Err(refusal);
        }
        let Wanted { transport, internal, filters, .. } = *wanted;
        let found = self.bindings.iter().position(|it| it.transport == transport && it.internal == internal);
        let at = match found {
            Some(at) => {
                let (kind, port) = (self.bindings[at].kind, self.bindings[at].external);
                if wanted.exactly
                    && (port != wanted.port || wanted.address.is_some_and(|it| it != self.address))
                {
                    return Err(Refusal::ExternalTaken);
                }
                if kind == ExistingKind::Dynamic {
                    self.bindings[at].kind = ExistingKind::Explicit;
                }
                at
            }
            None => {
                let external = self.choose(transport, wanted)?;
                let kind = ExistingKind::Explicit;
                let filters = Vec::new();
                let (companion, used_for) = (false, 0);
                let made = Binding { transport, internal, external, kind, filters, companion, used_for };
                self.bindings.push(made);
                self.bindings.len() - 1
            }
        };
        let address = self.address;
        let binding = &mut self.bindings[at];
        binding.filters = filters.to_vec();
        binding.companion = wanted.companion;
        Ok(Opened {
            external: Endpoint4::new(address, binding.external),
            is_static: binding.kind == ExistingKind::Static,
            used_for: binding.used_for,
        })
    }

    fn close(&mut self, transport: Transport, internal: Internal) -> Closed {
        let found = self.bindings.iter().position(|it| it.transport == transport && it.internal == internal);
        let Some(at) = found.filter(|at| self.bindings[*at].kind == ExistingKind::Explicit) else {
            return Closed::default();
        };
        let used_for = self.bindings[at].used_for;
        self.bindings[at].companion = false;
        if used_for == 0 {
            self.bindings.remove(at);
        } else {
            self.bindings[at].kind = ExistingKind::Dynamic;
        }
        Closed { used_for }
    }

    fn end_host(&mut self, host: IpAddr) {
        self.bindings.retain(|it| it.internal.address != host || it.kind == ExistingKind::Static);
    }

    fn find(&mut self, transport: Transport, internal: Internal) -> Option<Existing> {
        let found = self.bindings.iter().find(|it| it.transport == transport && it.internal == internal)?;
        Some(Existing { external: Endpoint4::new(self.address, found.external), kind: found.kind })
    }

    fn has_static(&mut self, transport: Transport, host: IpAddr) -> bool {
        let mut of_host = self.bindings.iter().filter(|it| it.internal.address == host);
        of_host.any(|it| it.transport == transport && it.kind == ExistingKind::Static)
    }

    fn peer(&mut self, wanted: &WantedPeer) -> Result<(Endpoint4, u32), Refusal> {
        let WantedPeer { transport, internal, remote, address, port } = *wanted;
        if remote.address.is_loopback() {
            return Err(Refusal::RemoteInvalid);
        }
        if let Some(found) = self.find(transport, internal) {
            return Ok((found.external, 300));
        }
        let exactly = port != 0;
        let companion = false;
        let wanted = Wanted { transport, internal, address, port, exactly, companion, filters: &[] };
        let external = self.choose(transport, &wanted)?;
        let (kind, filters, used_for) = (ExistingKind::Dynamic, Vec::new(), 240);
        self.bindings.push(Binding { transport, internal, external, kind, filters, companion, used_for });
        Ok((Endpoint4::new(self.address, external), 240))
    }

    fn external_address(&mut self, _: IpAddr) -> Option<Ipv4Addr> {
        self.has_address.then_some(self.address)
    }
}
