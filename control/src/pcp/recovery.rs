//! What survives a restart, and how clients learn of what did not (RFC 6887 §14.2).

use super::map::NewMapping;
use super::mapping::Mapping;
use super::nat::{ControlledNat, Suggested};
use super::result_code::ResultCode;
use super::server::Server;
use core::time::Duration;
use sixway_dataplane::Instant;

/// A mapping of an earlier server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptMapping {
    /// The mapping; its `expires` says nothing.
    pub mapping: Mapping,
    /// Seconds until it ends.
    pub remaining: u32,
}

/// What became of the mappings of an earlier server.
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
    /// The mappings, for the next server.
    pub fn kept(&self, now: Instant) -> Vec<KeptMapping> {
        let kept =
            |mapping: &Mapping| KeptMapping { mapping: mapping.clone(), remaining: mapping.remaining(now) };
        self.mappings.iter().map(kept).collect()
    }

    /// Makes mappings of an earlier server again, with the same external endpoints if the NAT has them. If some are not as they were, the Epoch Time
    /// begins again, and the clients of those that moved get mapping updates.
    pub fn restore(&mut self, kept: Vec<KeptMapping>, nat: &mut dyn ControlledNat, now: Instant) -> Restored {
        let mut restored = Restored::default();
        for KeptMapping { mapping, remaining } in kept {
            let before = (mapping.external, mapping.size);
            let key = (mapping.transport, mapping.internal);
            match self.restore_one(mapping, remaining, nat, now) {
                Ok(after) if after == before => restored.same += 1,
                Ok(_) => {
                    restored.moved += 1;
                    if self.mappings.get(key).is_some_and(|mapping| mapping.nonce.is_some()) {
                        self.updates.begin(key, now);
                    }
                }
                Err(_) => restored.lost += 1,
            }
        }
        if restored.moved + restored.lost > 0 {
            self.reset_epoch(now);
        }
        restored
    }

    fn restore_one(
        &mut self,
        mapping: Mapping,
        remaining: u32,
        nat: &mut dyn ControlledNat,
        now: Instant,
    ) -> Result<(sixway_wire::Endpoint4, u16), ResultCode> {
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
            filters: mapping.filters.clone(),
        };
        let (opened, size) = self.open(&new, nat)?;
        if opened.is_static {
            return Err(ResultCode::NotAuthorized);
        }
        // A file that was changed by hand keeps nothing for ever.
        let most = self.settings.lifetimes.most.max(Duration::from_secs(opened.used_for.into()));
        let expires = now + Duration::from_secs(remaining.into()).min(most);
        self.remember(Mapping { external: opened.external, size, expires, ..mapping });
        Ok((opened.external, size))
    }

    /// Whether a client might ask for this mapping with the settings as they are.
    fn may_still_be(&self, mapping: &Mapping) -> bool {
        self.settings.map
            && (mapping.nonce.is_some() || self.settings.nat_pmp)
            && (!mapping.is_third_party || self.settings.may_speak_for_others(mapping.client.ip()))
    }

    /// The NAT has other external addresses: makes all mappings again.
    pub fn reopen(&mut self, nat: &mut dyn ControlledNat, now: Instant) -> Restored {
        let kept = self.kept(now);
        for KeptMapping { mapping, .. } in &kept {
            self.end((mapping.transport, mapping.internal), nat);
        }
        self.restore(kept, nat, now)
    }
}
