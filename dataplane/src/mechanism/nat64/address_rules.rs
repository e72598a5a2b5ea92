//! The address rules of NAT64: the prefix, permitted addresses (RFC 6146 §3.5, RFC 6052 §3.1), and the translation (RFC 6146 §3.6).

use crate::drop_reason::DropReason;
use crate::identity::Identity;
use crate::nat::{Inside, Mechanism, Outside};
use crate::source_check::{is_martian4, is_martian6};
use crate::stateful::{AddressPolicy, Remotes};
use crate::translate::address::rfc6052::{Rfc6052, refuse_link_local};
use crate::verdict::{Decision, Edit, Next, PolicyId};
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Endpoint6, Prefix6};

/// What its answers follow from.
#[derive(Clone, Debug)]
pub struct AddressRules {
    /// The translation prefix, Pref64::/n.
    pub(super) prefix: Rfc6052,
    /// Prefixes whose hosts may create bindings; empty: any.
    pub(super) inside: Vec<Prefix6>,
    /// Prefixes of the gateway's other NAT64s: no host has an address under one.
    pub(super) other_prefixes: Vec<Prefix6>,
    /// Remote addresses without sessions.
    pub(super) remotes: Remotes,
    /// Translation options.
    pub(super) policy: PolicyId,
}

impl AddressRules {
    /// RFC 6146 §3.5: a source under the prefix, or another NAT64's, would make hairpins loop.
    pub(super) fn refuse_own_source(&self, source: Ipv6Addr) -> Result<(), DropReason> {
        if self.is_image(source) { Err(DropReason::SourceInTranslationPrefix) } else { Ok(()) }
    }

    pub(super) fn is_inside(&self, source: Ipv6Addr) -> bool {
        self.inside.is_empty() || self.inside.iter().any(|prefix| prefix.contains(source))
    }

    /// Whether the address represents an IPv4 one.
    fn is_image(&self, address: Ipv6Addr) -> bool {
        self.prefix.contains(address) || self.other_prefixes.iter().any(|prefix| prefix.contains(address))
    }
}

impl Mechanism<Endpoint6> for AddressRules {
    type Outcome = Decision;

    #[inline(always)]
    fn outward(&self, outside: Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool) -> Decision {
        let next = if is_hairpin { Next::Again } else { Next::Leave };
        let edit = Edit::Translate6To4 { source: outside.0, destination: remote, keep_ports: false };
        Decision::edit(edit, self.policy, next)
    }

    #[inline(always)]
    fn inward(&self, inside: Inside<Endpoint6>, remote: Endpoint4) -> Decision {
        let source = Endpoint6::new(self.prefix.embed_any(remote.address), remote.port);
        let edit = Edit::Translate4To6 { source, destination: inside.0, keep_ports: false };
        Decision::edit(edit, self.policy, Next::Leave)
    }

    fn held(&self) -> Decision {
        Decision::keep(Next::Held)
    }

    fn may_go_out(&self, inside: Inside<Endpoint6>, remote: Ipv4Addr) -> Result<(), DropReason> {
        self.refuse_own_source(inside.0.address)?;
        if !self.is_inside(inside.0.address) {
            return Err(DropReason::SourceNotInside);
        }
        refuse_link_local(remote)?;
        self.prefix.permit(remote)?;
        self.remotes.refuse_destination(remote)?;
        if is_martian4(remote) { Err(DropReason::MartianDestination) } else { Ok(()) }
    }

    /// A remote that has no address inside must not create a session.
    fn may_come_in(&self, remote: Ipv4Addr) -> Result<(), DropReason> {
        refuse_link_local(remote)?;
        self.remotes.refuse_excluded(remote)?;
        self.prefix.permit(remote)
    }

    fn may_go_on(&self, inside: Inside<Endpoint6>, remote: Ipv4Addr) -> bool {
        let host = inside.0.address;
        let is_refused =
            self.is_image(host) || !self.is_inside(host) || is_martian6(host) || is_martian4(remote);
        !is_refused && self.may_come_in(remote).and_then(|()| self.remotes.refuse_own(remote)).is_ok()
    }
}

impl AddressPolicy<Endpoint6> for AddressRules {
    fn identity(&self) -> Identity {
        Identity::of_nat64(self.prefix.prefix())
    }

    fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        self.remotes.set_host4(host4);
    }

    type WithoutPorts = ();
}
