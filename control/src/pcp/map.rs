//! MAP requests (RFC 6887 §11.3, §15.1), and sets of ports (RFC 7753 §4.2, §4.4).

use super::filter;
use super::mapping::{Internal, Mapping, Nonce, Transport};
use super::mappings::Key;
use super::message::{CLIENT_PORT, MAX_PAYLOAD, SERVER_PORT};
use super::nat::{ControlledNat, ExistingKind, Opened, Refusal, Suggested, Wanted};
use super::quota::Exceeded;
use super::request::MapRequest;
use super::response::{self, Failure};
use super::result_code::ResultCode;
use super::server::{Arrival, Server};
use core::net::IpAddr;
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;

/// The lifetime of static mappings (§11.3).
const FOREVER: u32 = u32::MAX;
/// How often another external port is tried, if the NAT assigns one that must not be mapped.
const TRIES: usize = 4;

/// The external port and address of a mapping, and the size and first internal port of its set; `None`: no mapping.
type Given = (Option<(u16, Endpoint4)>, Option<(u16, u16)>);

/// A mapping that is wanted and not made yet.
pub(super) struct NewMapping {
    pub(super) transport: Transport,
    pub(super) internal: Internal,
    pub(super) size: u16,
    pub(super) suggested: Suggested,
    pub(super) exactly: bool,
    /// Whether its companion port is kept (RFC 6886 §3.3).
    pub(super) companion: bool,
    pub(super) filters: Vec<filter::Filter>,
}

impl Server {
    pub(super) fn map(
        &mut self,
        request: &MapRequest,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        if !self.settings.map {
            return Err(ResultCode::NotAuthorized.into());
        }
        let (client, payload) = (arrival.from, arrival.payload);
        let host = self.host(client.ip(), request.third_party, nat)?;
        // Nothing may be changed for a response that is too long (§7.3).
        if self
            .map_response(request, payload, (None, request.port_set.map(|it| (it.size, 0))), (0, now))
            .len()
            > MAX_PAYLOAD
        {
            return Err(ResultCode::MalformedRequest.into());
        }
        if request.lifetime == 0 {
            return self.unmap(request, (host, payload), nat, now);
        }
        let transport = Transport::of(request.protocol).filter(|_| request.port != 0);
        let transport = transport.ok_or(ResultCode::UnsuppProtocol)?;
        let internal = Internal { address: host, port: request.port };
        let size = request.port_set.map_or(1, |set| set.size).min(self.settings.max_port_set.max(1));
        let known = self.mappings.overlapping(transport, internal, size);
        self.authorize(&known, Some(request.nonce), now)?;
        let sizes = known.iter().filter_map(|key| self.mappings.get(*key)).map(|it| u32::from(it.size));
        let ports = sizes.sum::<u32>().max(size.into());
        // Each port is work for the NAT.
        self.rates.charge(self.settings.subscriber(client.ip()), ports.saturating_sub(1), now);
        if known.is_empty() {
            return self.make(request, (transport, internal, size), arrival, nat, now);
        }
        self.renew(&known, request, arrival, nat, now)
    }

    /// Whether a nonce is that of all these mappings (§11.3). Mappings by NAT-PMP have none.
    pub(super) fn authorize(&self, keys: &[Key], nonce: Option<Nonce>, now: Instant) -> Result<(), Failure> {
        let foreign = keys.iter().filter_map(|key| self.mappings.get(*key));
        let foreign = foreign.filter(|mapping| mapping.nonce.is_some() && mapping.nonce != nonce);
        let lifetime = foreign.map(|mapping| mapping.remaining(now)).max();
        lifetime.map_or(Ok(()), |lifetime| Err(Failure { result: ResultCode::NotAuthorized, lifetime }))
    }

    /// Renews mappings; one response for each (RFC 7753 §4.4.1).
    fn renew(
        &mut self,
        known: &[Key],
        request: &MapRequest,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let mut renewed = Vec::new();
        for mapping in known.iter().filter_map(|key| self.mappings.get(*key)) {
            let filters = filter::apply(&mapping.filters, &request.filters, &self.settings.prefixes64);
            let filters = filters.ok_or(ResultCode::ExcessiveRemotePeers)?;
            let Suggested { address, port } = request.suggested;
            let is_other = port != mapping.external.port
                || address.is_some_and(|address| address != mapping.external.address)
                || request.is_impossible;
            if request.prefer_failure && is_other {
                return Err(ResultCode::CannotProvideExternal.into());
            }
            renewed.push(Mapping {
                nonce: Some(request.nonce),
                filters,
                client: arrival.from,
                asked_at: arrival.at.cloned(),
                is_third_party: request.third_party.is_some(),
                prefers_failure: request.prefer_failure,
                ..mapping.clone()
            });
        }
        let mut responses = Vec::new();
        for mapping in renewed {
            let lifetime = self.settings.lifetimes.grant(request.lifetime);
            let mapping = self.refresh(mapping, lifetime, nat, now)?;
            let port = request.port.max(mapping.internal.port);
            let external = mapping.ports().find(|(internal, _)| internal.port == port);
            // Of a set, the response has the first external port (RFC 7753 §4.2).
            let external = if mapping.size > 1 {
                mapping.external
            } else {
                external.map_or(mapping.external, |it| it.1)
            };
            let set = (mapping.size, mapping.internal.port);
            let lifetime = mapping.remaining(now);
            responses.push(self.map_response(
                request,
                arrival.payload,
                (Some((port, external)), Some(set)),
                (lifetime, now),
            ));
        }
        Ok(responses)
    }

    /// Sets the filters and the lifetime of a mapping, which is at least as long as its sessions keep it (§15), except for one by NAT-PMP (RFC 6886
    /// §3.3). A mapping whose external endpoint is another's now ends, so that the next request makes a new one.
    pub(super) fn refresh(
        &mut self,
        mut mapping: Mapping,
        lifetime: u32,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Mapping, Failure> {
        let key = (mapping.transport, mapping.internal);
        let mut lifetime = lifetime;
        for (internal, external) in mapping.ports() {
            let wanted = Wanted {
                transport: mapping.transport,
                internal,
                address: Some(external.address),
                port: external.port,
                exactly: true,
                companion: mapping.nonce.is_none(),
                filters: &mapping.filters,
            };
            match nat.open(&wanted) {
                Ok(opened) if mapping.nonce.is_some() => lifetime = lifetime.max(opened.used_for),
                Ok(_) => {}
                Err(Refusal::ExternalTaken) if !mapping.prefers_failure => {
                    self.end(key, nat);
                    return Err(ResultCode::NoResources.into());
                }
                Err(refusal) => return Err(refusal.result().into()),
            }
        }
        mapping.expires = now + Duration::from_secs(lifetime.into());
        self.forget(key);
        self.remember(mapping.clone());
        Ok(mapping)
    }

    /// Makes a new mapping.
    fn make(
        &mut self,
        request: &MapRequest,
        (transport, internal, size): (Transport, Internal, u16),
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        if request.prefer_failure && request.is_impossible {
            return Err(ResultCode::CannotProvideExternal.into());
        }
        let filters = filter::apply(&[], &request.filters, &self.settings.prefixes64);
        let filters = filters.ok_or(ResultCode::ExcessiveRemotePeers)?;
        let new = NewMapping {
            transport,
            internal,
            size,
            suggested: request.suggested,
            exactly: request.prefer_failure,
            companion: false,
            filters,
        };
        let (opened, size) = self.open(&new, nat)?;
        let lifetime = self.settings.lifetimes.grant(request.lifetime).max(opened.used_for);
        let lifetime = if opened.is_static { FOREVER } else { lifetime };
        if !opened.is_static {
            self.remember(Mapping {
                transport,
                internal,
                external: opened.external,
                size,
                nonce: Some(request.nonce),
                expires: now + Duration::from_secs(lifetime.into()),
                filters: new.filters,
                client: arrival.from,
                asked_at: arrival.at.cloned(),
                is_third_party: request.third_party.is_some(),
                prefers_failure: request.prefer_failure,
            });
        }
        let external = Some((request.port, opened.external));
        let set = Some((size, internal.port));
        Ok(vec![self.map_response(request, arrival.payload, (external, set), (lifetime, now))])
    }

    /// Opens the ports of a mapping at the NAT, and returns their number: as many as the quota and the NAT allow, at least one.
    pub(super) fn open(
        &self,
        new: &NewMapping,
        nat: &mut dyn ControlledNat,
    ) -> Result<(Opened, u16), ResultCode> {
        let left = self.quota.left(self.settings.subscriber(new.internal.address));
        let left = match left {
            Ok(left) => left,
            // A static binding takes nothing of a quota.
            Err(exceeded) => {
                let existing = nat.find(new.transport, new.internal);
                match (existing, exceeded) {
                    (Some(existing), _) if existing.kind == ExistingKind::Static => 1,
                    (Some(_) | None, Exceeded::Subscriber) => return Err(ResultCode::UserExQuota),
                    (Some(_) | None, Exceeded::Total) => return Err(ResultCode::NoResources),
                }
            }
        };
        let opened = Self::open_first(new, nat)?;
        if opened.is_static {
            return Ok((opened, 1));
        }
        let mut size = 1;
        while u32::from(size) < left.min(new.size.into()) {
            let ports = new.internal.port.checked_add(size).zip(opened.external.port.checked_add(size));
            let Some((internal, external)) = ports else { break };
            let internal = Internal { port: internal, ..new.internal };
            let external = Endpoint4::new(opened.external.address, external);
            let before = nat.find(new.transport, internal);
            if is_reserved(new.transport, external.port)
                || before.is_some_and(|before| before.kind == ExistingKind::Static)
            {
                break;
            }
            let wanted = Wanted {
                transport: new.transport,
                internal,
                address: Some(external.address),
                port: external.port,
                exactly: true,
                companion: new.companion,
                filters: &new.filters,
            };
            if nat.open(&wanted).is_err() {
                break;
            }
            size += 1;
        }
        Ok((opened, size))
    }

    /// Opens the first port of a mapping.
    fn open_first(new: &NewMapping, nat: &mut dyn ControlledNat) -> Result<Opened, ResultCode> {
        let Suggested { address, mut port } = new.suggested;
        if is_reserved(new.transport, port) {
            if new.exactly {
                return Err(ResultCode::CannotProvideExternal);
            }
            port = 0;
        }
        let wanted = Wanted {
            transport: new.transport,
            internal: new.internal,
            address,
            port,
            exactly: new.exactly,
            companion: new.companion,
            filters: &new.filters,
        };
        let refused = |refusal: Refusal| match refusal {
            // §7.4: CANNOT_PROVIDE_EXTERNAL is only for clients that accept no other external endpoint.
            Refusal::ExternalTaken if !new.exactly => ResultCode::NoResources,
            refusal => refusal.result(),
        };
        let mut opened = nat.open(&wanted).map_err(refused);
        for _ in 1..TRIES {
            let Ok(Opened { external, is_static: false, .. }) = opened else { break };
            if !is_reserved(new.transport, external.port) {
                break;
            }
            // A binding that sessions keep stays there; a new one has another port (§11.3: not 5350 and 5351).
            nat.close(new.transport, new.internal);
            opened = nat.open(&Wanted { port: 0, ..wanted }).map_err(refused);
        }
        match opened {
            Ok(Opened { external, is_static: false, .. }) if is_reserved(new.transport, external.port) => {
                nat.close(new.transport, new.internal);
                Err(ResultCode::NoResources)
            }
            opened => opened,
        }
    }

    /// Deletes mappings (§15.1).
    fn unmap(
        &mut self,
        request: &MapRequest,
        (host, payload): (IpAddr, &[u8]),
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let internal = Internal { address: host, port: request.port };
        let size = request.port_set.map_or(1, |set| set.size);
        let transport = Transport::of(request.protocol).filter(|_| request.port != 0);
        let mut lifetime = 0;
        // There are no mappings of whole protocols.
        if let Some(transport) = transport {
            let known = self.mappings.overlapping(transport, internal, size);
            self.authorize(&known, Some(request.nonce), now)?;
            if known.is_empty() && nat.find(transport, internal).is_some() {
                return Err(ResultCode::NotAuthorized.into());
            }
            for key in known {
                lifetime = lifetime.max(self.end(key, nat));
            }
        }
        let set = request.port_set.map(|set| (set.size, request.port));
        Ok(vec![self.map_response(request, payload, (None, set), (lifetime, now))])
    }

    /// A success response, with its options.
    fn map_response(
        &self,
        request: &MapRequest,
        payload: &[u8],
        (external, set): Given,
        (lifetime, now): (u32, Instant),
    ) -> Vec<u8> {
        let mut octets = response::map(payload, external, lifetime, self.epoch(now));
        response::map_options(&mut octets, request, set);
        if request.prefix64 {
            response::prefixes64(&mut octets, &self.settings.prefixes64);
        }
        octets
    }
}

/// Whether an external port must not be mapped (§11.3).
pub(super) fn is_reserved(transport: Transport, port: u16) -> bool {
    transport == Transport::Udp && matches!(port, CLIENT_PORT | SERVER_PORT)
}
