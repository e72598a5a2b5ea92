//! The address rules of an AFTR: which B4s are clients, which inner addresses may pass, and where packets go.

use super::config::AFTR_ADDRESS;
use crate::drop_reason::DropReason;
use crate::identity::Identity;
use crate::nat::{Inside, Mechanism, Outside, Softwire, SoftwireHost, Softwires};
use crate::parse::{Addresses, Packet};
use crate::source_check::{self, is_martian4, is_martian6};
use crate::stateful::{AddressPolicy, Remotes};
use crate::translate::address::rfc6052::refuse_link_local;
use crate::verdict::PolicyId;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Endpoint4, Prefix4, Prefix6};

/// RFC 6333 §5.7: addresses of AFTRs and B4s; no host outside has one.
const SOFTWIRE_ADDRESSES: u32 = 0xc000_0000;

/// What its answers follow from.
#[derive(Clone, Debug)]
pub struct AddressRules {
    /// Its identity.
    pub(super) identity: Identity,
    /// Its IPv6 addresses.
    pub(super) addresses: Vec<Ipv6Addr>,
    /// Prefixes of the B4s.
    pub(super) clients: Vec<Prefix6>,
    /// Sources of the hosts behind softwires.
    pub(super) inside: Vec<Prefix4>,
    /// The first prefix of them as address and mask, if no martian is in it: most sources are.
    pub(super) usual: Option<(u32, u32)>,
    /// Remote addresses without sessions.
    pub(super) remotes: Remotes,
    /// Options of the translation, and of the softwires.
    pub(super) policy: PolicyId,
}

/// The translation of a packet. The header of its softwire is looked up when the outcome is known.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// It goes out.
    Out {
        /// Its new source.
        outside: Endpoint4,
        /// Its destination.
        remote: Endpoint4,
        /// It comes back.
        is_hairpin: bool,
    },
    /// It goes into a softwire.
    In {
        /// The softwire, and its new destination.
        inside: Softwire,
        /// Its source.
        remote: Endpoint4,
    },
    /// It was stored.
    Held,
}

impl AddressRules {
    /// Refuses inner packets that may not leave a softwire: RFC 6333 §11 requires that other sources are dropped. The gateway is a router on their
    /// way, which the outer header does not show.
    #[inline(always)]
    pub(super) fn check_inner(&self, inner: &Packet) -> Result<(), DropReason> {
        let Addresses::V4 { source, destination } = inner.addresses else {
            return Err(DropReason::NoTunnel);
        };
        let is_usual = self.usual.is_some_and(|(prefix, mask)| source.to_bits() & mask == prefix);
        if !is_usual || is_martian4(destination) {
            self.check_addresses(inner, source)?;
        }
        if inner.hops <= 1 && destination != AFTR_ADDRESS {
            return Err(DropReason::HopLimitExceeded);
        }
        if inner.source_route {
            return Err(DropReason::SourceRoute);
        }
        Ok(())
    }

    #[inline(never)]
    fn check_addresses(&self, inner: &Packet, source: Ipv4Addr) -> Result<(), DropReason> {
        source_check::check(inner)?;
        if self.is_inside(source) { Ok(()) } else { Err(DropReason::SourceNotInTunnel) }
    }

    /// Whether a host behind a softwire may have this address.
    #[inline(always)]
    pub(super) fn is_inside(&self, host: Ipv4Addr) -> bool {
        self.inside.iter().any(|prefix| prefix.contains(host))
    }

    /// Whether a B4 may have this address.
    pub(super) fn is_client(&self, b4: Ipv6Addr) -> bool {
        !is_martian6(b4)
            && !self.addresses.contains(&b4)
            && self.clients.iter().any(|prefix| prefix.contains(b4))
    }

    /// The number of one of its addresses.
    #[inline(always)]
    pub(super) fn number_of(&self, address: Ipv6Addr) -> u8 {
        self.addresses.iter().position(|own| *own == address).unwrap_or_default() as u8
    }

    /// The address with this number.
    #[inline(always)]
    pub(super) fn address(&self, number: u8) -> Option<&Ipv6Addr> {
        self.addresses.get(usize::from(number)).or(self.addresses.first())
    }
}

/// The prefix that sources of hosts behind softwires are compared with first.
pub(super) fn usual_inside(inside: &[Prefix4]) -> Option<(u32, u32)> {
    let first = inside.first()?;
    // Martians are whole networks of eight bits.
    let is_of_hosts = first.length() >= 8 && !is_martian4(first.address());
    is_of_hosts.then(|| (first.address().to_bits(), first.mask()))
}

/// Whether it is an address of AFTRs and B4s alone.
pub(super) const fn is_of_softwires(address: Ipv4Addr) -> bool {
    address.to_bits() & 0xffff_fff8 == SOFTWIRE_ADDRESSES
}

impl Mechanism<Softwire> for AddressRules {
    type Outcome = Outcome;

    #[inline(always)]
    fn outward(&self, Outside(outside): Outside<Endpoint4>, remote: Endpoint4, is_hairpin: bool) -> Outcome {
        Outcome::Out { outside, remote, is_hairpin }
    }

    #[inline(always)]
    fn inward(&self, Inside(inside): Inside<Softwire>, remote: Endpoint4) -> Outcome {
        let endpoint = inside.endpoint;
        Outcome::In { inside: Softwire { endpoint, ..inside }, remote }
    }

    fn held(&self) -> Outcome {
        Outcome::Held
    }

    fn may_go_out(&self, _inside: Inside<Softwire>, remote: Ipv4Addr) -> Result<(), DropReason> {
        refuse_link_local(remote)?;
        if is_of_softwires(remote) {
            return Err(DropReason::NoMechanism);
        }
        self.remotes.refuse_destination(remote)
    }

    fn may_come_in(&self, remote: Ipv4Addr) -> Result<(), DropReason> {
        refuse_link_local(remote)?;
        if is_of_softwires(remote) {
            return Err(DropReason::MartianSource);
        }
        self.remotes.refuse_excluded(remote)
    }

    fn may_go_on(&self, inside: Inside<Softwire>, remote: Ipv4Addr) -> bool {
        let host = inside.0.endpoint.address;
        let is_refused = !self.is_inside(host) || is_martian4(host) || is_martian4(remote);
        !is_refused && self.may_come_in(remote).and_then(|()| self.remotes.refuse_own(remote)).is_ok()
    }
}

impl AddressPolicy<Softwire> for AddressRules {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn is_host(&self, host: SoftwireHost) -> bool {
        self.is_inside(host.address)
    }

    fn takes_site(&self, b4: Ipv6Addr) -> bool {
        self.is_client(b4)
    }

    fn local_end(&self, inside: Softwire, names: &Softwires) -> Option<Ipv6Addr> {
        names.ends(inside.id).and_then(|(_, local)| self.address(local).copied())
    }

    fn set_local_end(&self, inside: Softwire, local: Ipv6Addr, names: &mut Softwires) {
        if self.addresses.contains(&local) {
            names.set_local(inside.id, self.number_of(local));
        }
    }

    fn set_host4(&mut self, host4: &[Ipv4Addr]) {
        self.remotes.set_host4(host4);
    }

    type WithoutPorts = ();
}
