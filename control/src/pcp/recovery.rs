//! The state that survives a restart, and how clients are notified of lost state (RFC 6887 §14.2).

use super::map::NewMapping;
use super::mapping::{Internal, Mapping, Nonce, Transport};
use super::nat::{ControlledNat, Suggested, WantedPeer};
use super::peers::{self, Peer};
use super::result_code::ResultCode;
use super::server::Server;
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::{Endpoint4, Prefix4};

/// What the next server is to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The Epoch Time.
    pub epoch: u32,
    /// The external addresses; `None`: not known.
    pub external: Option<Vec<Prefix4>>,
    /// The mappings.
    pub mappings: Vec<KeptMapping>,
    /// The outbound mappings by PEER.
    pub peers: Vec<KeptPeer>,
}

/// A mapping of an earlier server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptMapping {
    /// The mapping; its `expires` says nothing.
    pub mapping: Mapping,
    /// Seconds until it ends.
    pub remaining: u32,
}

/// An outbound mapping by PEER of an earlier server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPeer {
    /// The transport protocol.
    pub transport: Transport,
    /// The inside endpoint.
    pub internal: Internal,
    /// The remote endpoint.
    pub remote: Endpoint4,
    /// The outside endpoint.
    pub external: Endpoint4,
    /// The nonce of its owner.
    pub nonce: Nonce,
    /// Seconds until it is removed.
    pub remaining: u32,
}

/// The outcome of the mappings of an earlier server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Those with the same external endpoints.
    pub same: usize,
    /// Those with others.
    pub moved: usize,
    /// Those that could not be made again.
    pub lost: usize,
}

impl Server {
    /// What the next server is to know.
    pub fn kept(&self, now: Instant) -> Kept {
        let mapping =
            |mapping: &Mapping| KeptMapping { mapping: mapping.clone(), remaining: mapping.remaining(now) };
        let peer = |(key, peer): (&peers::Key, &Peer)| {
            let ((transport, internal, remote), Peer { nonce, external, .. }) = (*key, *peer);
            KeptPeer { transport, internal, remote, external, nonce, remaining: peer.remaining(now) }
        };
        Kept {
            epoch: self.epoch(now),
            external: Some(self.settings.external.clone()),
            mappings: self.mappings.iter().map(mapping).collect(),
            peers: self.peers.iter().map(peer).collect(),
        }
    }

    /// Makes mappings of an earlier server again, with the same external endpoints if the NAT has them. If some are not as they were, or if the NAT
    /// has other external addresses (§8.5), the Epoch Time begins again. The clients of mappings that moved get mapping updates, and those that want
    /// no other external endpoint an error.
    pub fn restore(&mut self, kept: Kept, nat: &mut dyn ControlledNat, now: Instant) -> Restored {
        let mut restored = Restored::default();
        for KeptMapping { mapping, remaining } in kept.mappings {
            let before = (mapping.external, mapping.size);
            let key = (mapping.transport, mapping.internal);
            let wants_no_other = mapping.prefers_failure && mapping.nonce.is_some();
            let lost = wants_no_other.then(|| mapping.clone());
            match self.restore_one(mapping, remaining, nat, now) {
                Ok(after) if after == before => restored.same += 1,
                Ok(_) => {
                    restored.moved += 1;
                    if self.mappings.get(key).is_some_and(|mapping| mapping.nonce.is_some()) {
                        self.updates.begin(key, now);
                    }
                }
                Err(why) => {
                    restored.lost += 1;
                    if let Some(lost) = lost.filter(|_| why == ResultCode::CannotProvideExternal) {
                        self.updates.begin_lost(lost, now);
                    }
                }
            }
        }
        for peer in kept.peers.into_iter().filter(|peer| peer.remaining > 0) {
            match self.restore_peer(peer, nat, now) {
                Some(external) if external == peer.external => restored.same += 1,
                Some(_) => restored.moved += 1,
                None => restored.lost += 1,
            }
        }
        let is_elsewhere = kept.external.is_some_and(|external| external != self.settings.external);
        if restored.moved + restored.lost > 0 || is_elsewhere {
            self.reset_epoch(now);
        }
        restored
    }

    /// The session that PEER made or manages, with its external endpoint: the one that was handed over, or one that is made again (§10.4).
    fn restore_peer(
        &mut self,
        kept: KeptPeer,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Option<Endpoint4> {
        let KeptPeer { transport, internal, remote, external, nonce, .. } = kept;
        self.quota.left(self.settings.subscriber(internal.address)).ok()?;
        if !self.settings.peer || !nat.serves(internal.address) {
            return None;
        }
        let (address, port) = (Some(external.address), external.port);
        let wanted = WantedPeer { transport, internal, remote, address, port };
        let (external, lifetime) = nat.peer(&wanted).ok()?;
        let expires = now + Duration::from_secs(lifetime.into());
        self.remember_peer((transport, internal, remote), Peer { nonce, external, expires });
        Some(external)
    }

    fn restore_one(
        &mut self,
        mapping: Mapping,
        remaining: u32,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<(Endpoint4, u16), ResultCode> {
        let Mapping { transport, internal, external, size, .. } = mapping;
        if remaining == 0
            || !self.may_still_be(&mapping)
            || internal.port == 0
            || size == 0
            || !self.mappings.overlapping(transport, internal, size).is_empty()
            || !nat.serves(internal.address)
        {
            return Err(ResultCode::NotAuthorized);
        }
        let new = NewMapping {
            transport,
            internal,
            size,
            suggested: Suggested { address: Some(external.address), port: external.port },
            exactly: mapping.prefers_failure,
            companion: mapping.nonce.is_none(),
            filters: mapping.filters.clone(),
        };
        let (opened, size) = self.open(&new, nat)?;
        if opened.is_static {
            return Err(ResultCode::NotAuthorized);
        }
        // An entry of a modified file still expires.
        let most = self.settings.lifetimes.most.max(Duration::from_secs(opened.used_for.into()));
        let expires = now + Duration::from_secs(remaining.into()).min(most);
        self.remember(Mapping { external: opened.external, size, expires, ..mapping });
        Ok((opened.external, size))
    }

    /// Whether a client may request this mapping with the current settings.
    fn may_still_be(&self, mapping: &Mapping) -> bool {
        self.settings.map
            && (mapping.nonce.is_some() || self.settings.nat_pmp)
            && (!mapping.is_third_party || self.settings.may_speak_for_others(mapping.client.ip()))
    }

    /// Restarts after a fault of the server: restores its mappings, at the NAT as well. The Epoch Time begins again, since state may be missing
    /// (§8.5). Counters are kept.
    pub fn begin_again(&mut self, seed: u64, nat: &mut dyn ControlledNat, now: Instant) -> Restored {
        let kept = self.kept(now);
        let counts = self.counts;
        *self = Self::new(self.settings.clone(), 0, seed, now);
        self.counts = counts;
        let restored = self.restore(kept, nat, now);
        self.reset_epoch(now);
        restored
    }
}
