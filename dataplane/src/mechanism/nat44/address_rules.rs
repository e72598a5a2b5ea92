//! The address rules of NAT44: inside hosts, permitted addresses, and the new addresses (RFC 3022 §4.1).

use super::own_tunnels::OwnTunnels;
use super::portless::PortlessSessions;
use crate::drop_reason::DropReason;
use crate::frame::Realm;
use crate::identity::Identity;
use crate::nat::{Inside, Mechanism, Outside};
use crate::source_check::is_martian4;
use crate::stateful::{AddressPolicy, Remotes};
use crate::translate::address::rfc6052::refuse_link_local;
use crate::tunnel::ends::Ends4;
use crate::verdict::{Decision, Edit, Next, PolicyId};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use sixway_wire::{Endpoint4, Prefix4};

/// What its answers follow from.
#[derive(Clone, Debug)]
pub struct AddressRules {
    /// The device that inside hosts are behind.
    pub(super) realm: Realm,
    /// Its identity.
    pub(super) identity: Identity,
    /// Prefixes of the inside hosts.
    pub(super) inside: Vec<Prefix4>,
    /// Remote addresses without sessions.
    pub(super) remotes: Remotes,
    /// Options of the translation.
    pub(super) policy: PolicyId,
    /// This gateway's own tunnels.
    pub(super) own_tunnels: OwnTunnels,
}

impl AddressRules {
    /// Whether the host is inside: a packet from it goes out.
    #[inline(always)]
    pub(super) fn is_inside(&self, host: Ipv4Addr) -> bool {
        self.inside.iter().any(|prefix| prefix.contains(host))
    }

    /// Whether an ICMP error comes from inside: it quotes a packet to this destination. Its own source does not say so: a router outside
    /// may have an address that inside hosts have, too.
    #[inline]
    pub(super) fn is_error_from_inside(&self, quoted_destination: Ipv4Addr) -> bool {
        self.is_inside(quoted_destination)
    }
}

impl Mechanism<Endpoint4> for AddressRules {
    type Outcome = Decision;

    #[inline(always)]
    fn outward(&self, outside: Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool) -> Decision {
        let next = if is_hairpin { Next::Again } else { Next::Leave };
        let edit = Edit::Renumber4 { source: outside.0, destination: remote, keep_ports: false };
        Decision::edit(edit, self.policy, next)
    }

    #[inline(always)]
    fn inward(&self, inside: Inside<Endpoint4>, remote: Endpoint4) -> Decision {
        let edit = Edit::Renumber4 { source: remote, destination: inside.0, keep_ports: false };
        Decision::edit(edit, self.policy, Next::Leave)
    }

    fn held(&self) -> Decision {
        Decision::keep(Next::Held)
    }

    fn may_go_out(&self, _inside: Inside<Endpoint4>, remote: Ipv4Addr) -> Result<(), DropReason> {
        // Addresses that are valid nowhere were refused before, with the rest of the packet's.
        refuse_link_local(remote)?;
        self.remotes.refuse_destination(remote)
    }

    fn may_come_in(&self, remote: Ipv4Addr) -> Result<(), DropReason> {
        refuse_link_local(remote)?;
        self.remotes.refuse_excluded(remote)
    }

    fn may_go_on(&self, inside: Inside<Endpoint4>, remote: Ipv4Addr) -> bool {
        let is_refused =
            !self.is_inside(inside.0.address) || is_martian4(inside.0.address) || is_martian4(remote);
        !is_refused && self.may_come_in(remote).and_then(|()| self.remotes.refuse_own(remote)).is_ok()
    }
}

impl AddressPolicy<Endpoint4> for AddressRules {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn is_host(&self, host: Ipv4Addr) -> bool {
        self.is_inside(host)
    }

    fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        self.remotes.set_host4(host4);
    }

    fn set_tunnel_ends(&mut self, ends: &Ends4) {
        self.own_tunnels.set_ends(ends);
    }

    type WithoutPorts = PortlessSessions;
}
