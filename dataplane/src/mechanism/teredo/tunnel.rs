//! A relay or a client as the engine knows it.

use super::config::{TeredoChange, TeredoConfig, TeredoRole};
use super::row::{PeerRow, TeredoRow};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{Arrival, Build, BuildContext, Mechanism};
use crate::parse::{Packet, QuotedTuple};
use crate::verdict::{Decision, PolicyId, WorkerId};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::Ipv6Addr;
use sixway_wire::Endpoint4;

/// A relay or a client. The first worker has all of its peers.
pub struct Teredo {
    role: TeredoRole,
    local: Option<Endpoint4>,
    policy: PolicyId,
}

impl Teredo {
    /// Where its UDP packets come in.
    pub const fn local(&self) -> Option<Endpoint4> {
        self.local
    }

    /// Its policy.
    pub(crate) const fn policy(&self) -> PolicyId {
        self.policy
    }

    /// Applies a change.
    pub(crate) fn change(&mut self, change: &TeredoChange, _now: Instant) {
        if let TeredoChange::Local(local, _) = change {
            self.local = *local;
        }
    }

    /// What is known of a peer.
    pub fn peer(&self, _address: Ipv6Addr, _now: Instant) -> Option<PeerRow> {
        None
    }

    /// Some peers, from this position on, and the next position, if there are more.
    pub fn peers(&self, _from: u32, _most: usize, _now: Instant) -> (Vec<PeerRow>, Option<u32>) {
        (Vec::new(), None)
    }

    /// The whole.
    pub fn row(&self) -> TeredoRow {
        TeredoRow::default()
    }
}

impl Build for TeredoConfig {
    type State = Teredo;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, _context: &BuildContext) -> Result<Teredo, Infallible> {
        Ok(Teredo { role: self.role.clone(), local: None, policy })
    }
}

impl Mechanism for Teredo {
    const KIND: Kind = Kind::Teredo;
    const COUNTS_HOP: bool = false;
    type Probe = ();
    const NO_PROBE: () = ();

    fn decide(
        &mut self,
        _arrival: &Arrival<'_>,
        (): &(),
        _now: Instant,
        _effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        match self.role {
            TeredoRole::Relay(_) | TeredoRole::Client => Err(DropReason::NoRemote),
        }
    }

    fn worker_of(&self, _packet: &Packet, _quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        Some(WorkerId(0))
    }
}
