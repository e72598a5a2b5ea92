//! NAT-PMP (RFC 6886), the predecessor of PCP, with version 0 on the same port.
//!
//! ```text
//!     | Vers = 0      | OP = x        | Reserved                      |        | Vers = 0      | OP = 128 + x  | Result Code           |
//!     | Internal Port                 | Suggested External Port       |        | Seconds Since Start of Epoch                          |
//!     | Requested Port Mapping Lifetime in Seconds                    |        | Internal Port         | Mapped External Port          |
//!                                                                              | Port Mapping Lifetime in Seconds                      |
//! ```
//!
//! A request has no nonce: mappings with one are refused to it, and its own mappings are protected only by its source address.

use super::counts::Ignored;
use super::map::NewMapping;
use super::mapping::{Internal, Mapping, Transport};
use super::message::{RESPONSE, take};
use super::nat::{ControlledNat, ExistingKind, Suggested};
use super::nat_pmp_message::{EXTERNAL_ADDRESS, Outcome, header};
use super::response::Failure;
use super::result_code::ResultCode;
use super::server::{Arrival, Server};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use sixway_dataplane::Instant;

const MAP_UDP: u8 = 1;
const MAP_TCP: u8 = 2;
/// Octets of a mapping request.
const MAP_LENGTH: usize = 12;

/// A mapping request.
#[derive(Clone, Copy, Debug)]
struct MapRequest {
    transport: Transport,
    internal: Internal,
    suggested: u16,
    lifetime: u32,
}

impl Server {
    /// The response to a request of an inside host.
    pub(super) fn nat_pmp(
        &mut self,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<u8>, Ignored> {
        let (client, payload) = (arrival.from.ip(), arrival.payload);
        let epoch = self.epoch(now);
        let opcode = *payload.get(1).ok_or(Ignored::Short)?;
        let transport = match opcode {
            EXTERNAL_ADDRESS => {
                let address = nat.external_address(client);
                let outcome = if address.is_some() { Outcome::Success } else { Outcome::NetworkFailure };
                let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED);
                return Ok([header(opcode, outcome, epoch), address.octets().to_vec()].concat());
            }
            MAP_UDP => Transport::Udp,
            MAP_TCP => Transport::Tcp,
            _ => return Ok(unsupported(payload)),
        };
        let request = parse(payload, transport, client).ok_or(Ignored::Short)?;
        let mapped = if !self.settings.map {
            Err(ResultCode::NotAuthorized)
        } else if request.lifetime == 0 {
            self.nat_pmp_unmap(&request, nat, now).map(|()| (0, 0))
        } else {
            self.nat_pmp_map(&request, arrival, nat, now)
        };
        let result = mapped.as_ref().err().copied().unwrap_or(ResultCode::Success);
        let (external, lifetime) = mapped.unwrap_or_default();
        let mut octets = header(opcode, Outcome::of(result), epoch);
        octets.extend(request.internal.port.to_be_bytes());
        octets.extend(external.to_be_bytes());
        octets.extend(lifetime.to_be_bytes());
        Ok(octets)
    }

    /// Makes or renews a mapping: its external port, and the lifetime.
    fn nat_pmp_map(
        &mut self,
        request: &MapRequest,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<(u16, u32), ResultCode> {
        let MapRequest { transport, internal, suggested, lifetime } = *request;
        if internal.port == 0 {
            return Err(ResultCode::MalformedRequest);
        }
        let lifetime = self.settings.lifetimes.grant_at_most(lifetime);
        let known = self.mappings.overlapping(transport, internal, 1);
        let failed = |failure: Failure| failure.result;
        self.authorize(&known, None, now).map_err(failed)?;
        if let Some(mapping) = known.first().and_then(|key| self.mappings.get(*key)).cloned() {
            let mapping = Mapping { client: arrival.from, asked_at: arrival.at.cloned(), ..mapping };
            let mapping = self.refresh(mapping, lifetime, nat, now).map_err(failed)?;
            return Ok((mapping.external.port, mapping.remaining(now)));
        }
        let new = NewMapping {
            transport,
            internal,
            size: 1,
            suggested: Suggested { address: self.settings.external_address, port: suggested },
            exactly: false,
            companion: true,
            filters: Vec::new(),
        };
        let (opened, size) = self.open(&new, nat)?;
        if !opened.is_static {
            self.remember(Mapping {
                transport,
                internal,
                external: opened.external,
                size,
                nonce: None,
                expires: now + Duration::from_secs(lifetime.into()),
                filters: Vec::new(),
                client: arrival.from,
                asked_at: arrival.at.cloned(),
                is_third_party: false,
                prefers_failure: false,
            });
        }
        Ok((opened.external.port, lifetime))
    }

    /// Deletes a mapping, or with port 0 all of a protocol (§3.4).
    fn nat_pmp_unmap(
        &mut self,
        request: &MapRequest,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<(), ResultCode> {
        let MapRequest { transport, internal, .. } = *request;
        if internal.port == 0 {
            let all = self.mappings.of_host(transport, internal.address);
            let (own, foreign): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|key| self.authorize(&[*key], None, now).is_ok());
            for key in own {
                self.end(key, nat);
            }
            let is_left = !foreign.is_empty() || nat.has_static(transport, internal.address);
            return if is_left { Err(ResultCode::NotAuthorized) } else { Ok(()) };
        }
        let known = self.mappings.overlapping(transport, internal, 1);
        self.authorize(&known, None, now).map_err(|failure| failure.result)?;
        let existing = if known.is_empty() { nat.find(transport, internal) } else { None };
        if existing.is_some_and(|existing| existing.kind == ExistingKind::Static) {
            return Err(ResultCode::NotAuthorized);
        }
        for key in known {
            self.end(key, nat);
        }
        Ok(())
    }
}

fn parse(payload: &[u8], transport: Transport, client: IpAddr) -> Option<MapRequest> {
    let mut rest = payload.get(4..MAP_LENGTH)?;
    let port = u16::from_be_bytes(take(&mut rest)?);
    let suggested = u16::from_be_bytes(take(&mut rest)?);
    let lifetime = u32::from_be_bytes(take(&mut rest)?);
    Some(MapRequest { transport, internal: Internal { address: client, port }, suggested, lifetime })
}

/// The whole request with another opcode and a result code (§3.5).
fn unsupported(payload: &[u8]) -> Vec<u8> {
    let mut octets = payload.to_vec();
    octets.truncate(super::message::MAX_PAYLOAD);
    octets.resize(octets.len().max(4), 0);
    octets[1] |= RESPONSE;
    let [high, low] = (Outcome::UnsupportedOpcode as u16).to_be_bytes();
    (octets[2], octets[3]) = (high, low);
    octets
}
