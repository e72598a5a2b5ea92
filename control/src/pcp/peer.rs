//! PEER requests (RFC 6887 §12.3).

use super::mapping::{Internal, Transport};
use super::nat::{ControlledNat, Refusal, WantedPeer};
use super::peers::{Key, Peer};
use super::quota::Exceeded;
use super::request::PeerRequest;
use super::response::{self, Failure};
use super::result_code::ResultCode;
use super::server::{Arrival, Server};
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;

impl Server {
    pub(super) fn peer(
        &mut self,
        request: &PeerRequest,
        arrival: &Arrival<'_>,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        if !self.settings.peer {
            return Err(ResultCode::NotAuthorized.into());
        }
        let host = self.host(arrival.from.ip(), request.third_party, nat)?;
        let transport = Transport::of(request.protocol).ok_or(ResultCode::UnsuppProtocol)?;
        let remote = self.remote(host, request.remote).ok_or(ResultCode::MalformedRequest)?;
        if request.is_impossible {
            return Err(ResultCode::CannotProvideExternal.into());
        }
        let internal = Internal { address: host, port: request.port };
        let remote = Endpoint4::new(remote, request.remote_port);
        let (key, subscriber) = ((transport, internal, remote), self.settings.subscriber(host));
        match self.peers.get(key) {
            Some(peer) if peer.nonce != request.nonce => {
                let lifetime = peer.remaining(now);
                return Err(Failure { result: ResultCode::NotAuthorized, lifetime });
            }
            Some(_) => {}
            None => {
                self.quota.left(subscriber).map_err(|exceeded| match exceeded {
                    Exceeded::Subscriber => ResultCode::UserExQuota,
                    Exceeded::Total => ResultCode::NoResources,
                })?;
            }
        }
        let wanted = WantedPeer {
            transport,
            internal,
            remote,
            address: request.suggested.address,
            port: request.suggested.port,
        };
        let (external, lifetime) = nat.peer(&wanted).map_err(Refusal::result)?;
        let expires = now + Duration::from_secs(lifetime.into());
        self.remember_peer(key, Peer { nonce: request.nonce, external, expires });
        let mut octets = response::peer(arrival.payload, (request.port, external), lifetime, self.epoch(now));
        if let Some(host) = request.third_party {
            response::third_party(&mut octets, host);
        }
        Ok(vec![octets])
    }

    /// Puts an outbound mapping into the table.
    pub(super) fn remember_peer(&mut self, key: Key, peer: Peer) {
        self.changes += 1;
        if self.peers.remember(key, peer) {
            let (_, internal, _) = key;
            self.quota.add(self.settings.subscriber(internal.address), 1);
        }
    }

    /// The remote host as the NAT knows it; a client names it as it sees it (§12.1).
    fn remote(&self, host: IpAddr, remote: IpAddr) -> Option<Ipv4Addr> {
        match (host, remote) {
            (IpAddr::V4(_), IpAddr::V4(remote)) => Some(remote),
            (IpAddr::V6(_), IpAddr::V6(remote)) => {
                let prefix = self.settings.prefixes64.iter().find(|prefix| prefix.contains(remote))?;
                prefix.extract(remote).ok()
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
        }
    }
}
