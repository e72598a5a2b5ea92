//! PEER requests (RFC 6887 §12.3).

use super::mapping::{Internal, Transport};
use super::nat::{ControlledNat, Refusal, WantedPeer};
use super::quota::Exceeded;
use super::request::PeerRequest;
use super::response::{self, Failure};
use super::result_code::ResultCode;
use super::server::Server;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Endpoint4;

impl Server {
    pub(super) fn peer(
        &mut self,
        request: &PeerRequest,
        (client, payload): (SocketAddr, &[u8]),
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        if !self.settings.peer {
            return Err(ResultCode::NotAuthorized.into());
        }
        let host = self.host(client.ip(), request.third_party, nat)?;
        let transport = Transport::of(request.protocol).ok_or(ResultCode::UnsuppProtocol)?;
        let remote = self.remote(host, request.remote).ok_or(ResultCode::MalformedRequest)?;
        if request.is_impossible {
            return Err(ResultCode::CannotProvideExternal.into());
        }
        let internal = Internal { address: host, port: request.port };
        let remote = Endpoint4::new(remote, request.remote_port);
        let (key, subscriber) = ((transport, internal, remote), self.settings.subscriber(host));
        match self.peers.get(key) {
            Some((nonce, until)) if nonce != request.nonce => {
                let lifetime = u32::try_from(until.since(now).as_secs()).unwrap_or(u32::MAX);
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
        if self.peers.remember(key, request.nonce, now + Duration::from_secs(lifetime.into())) {
            self.quota.add(subscriber, 1);
        }
        let mut octets = response::peer(payload, (request.port, external), lifetime, self.epoch(now));
        if let Some(host) = request.third_party {
            response::third_party(&mut octets, host);
        }
        Ok(vec![octets])
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
