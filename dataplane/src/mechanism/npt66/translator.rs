//! The prefix translator: outbound and inbound.

use super::prefixes::{Prefixes, Unmapped};
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::Ingress;
use crate::instant::Instant;
use crate::kind::Kind;
use crate::mechanism::contract::{
    self, Arrival, Build, BuildContext, Claims, InsideClaim, Mechanism, Quotes,
};
use crate::parse::{Addresses, QuotedTuple, Transport};
use crate::verdict::{Decision, Edit, Next, PolicyId, Quoted};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::net::Ipv6Addr;
use sixway_wire::{Endpoint6, Prefix6};

/// Configuration of one prefix translator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Npt66Config {
    /// The prefixes.
    pub prefixes: Prefixes,
    /// Destinations that the site reaches under its inside addresses: nothing is translated on the way there.
    pub except: Vec<Prefix6>,
    /// Where the site's packets come in; `None`: anywhere.
    pub ingress: Option<Ingress>,
}

/// A prefix translator.
pub struct Npt66 {
    prefixes: Prefixes,
    ingress: Option<Ingress>,
    policy: PolicyId,
}

impl Npt66 {
    /// From the site. To the outside prefix means to the site again: a hairpin (§4.3).
    #[inline(always)]
    fn outward(
        &self,
        arrival: &Arrival<'_>,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        if self.ingress.is_some_and(|only| only != arrival.ingress()) {
            return Err(DropReason::SourceUnmapped);
        }
        let image = self.prefixes.to_outside(source).map_err(reason(DropReason::SourceUnmapped))?;
        let next = if self.prefixes.outside().contains(destination) { Next::Again } else { Next::Leave };
        // An error of the site quotes what came in: its destination is the site's.
        let quoted = match arrival.quoted {
            Some(QuotedTuple::V6 { source, destination, .. }) => {
                let image = match self.prefixes.inside().contains(destination.address) {
                    true => self
                        .prefixes
                        .to_outside(destination.address)
                        .map_err(|_| DropReason::QuoteUnusable)?,
                    false => destination.address,
                };
                Some(effects.quoted(quote(source, Endpoint6::new(image, destination.port))))
            }
            Some(QuotedTuple::V4 { .. }) | None => None,
        };
        let edit = Edit::Renumber6 { source: image, destination, neutral: true };
        Ok(Decision { quoted, ..Decision::edit(edit, self.policy, next) })
    }

    /// To the site.
    #[inline(always)]
    fn inward(
        &self,
        arrival: &Arrival<'_>,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        // No one outside has such an address, and hairpins do not leave the gateway.
        if !arrival.again && self.prefixes.outside().contains(source) {
            return Err(DropReason::SourceUnmapped);
        }
        let image = self.prefixes.to_inside(destination).map_err(reason(DropReason::DestinationUnmapped))?;
        // An error to the site quotes what the site has sent.
        let quoted = match arrival.quoted {
            Some(QuotedTuple::V6 { source, destination, .. }) => {
                if !self.prefixes.outside().contains(source.address) {
                    return Err(DropReason::QuoteUnusable);
                }
                let image = self.prefixes.to_inside(source.address).map_err(|_| DropReason::QuoteUnusable)?;
                Some(effects.quoted(quote(Endpoint6::new(image, source.port), destination)))
            }
            Some(QuotedTuple::V4 { .. }) | None => None,
        };
        let edit = Edit::Renumber6 { source, destination: image, neutral: true };
        Ok(Decision { quoted, ..Decision::edit(edit, self.policy, Next::Leave) })
    }
}

const fn quote(source: Endpoint6, destination: Endpoint6) -> Quoted {
    Quoted::V6 { source, destination, keep_ports: true }
}

/// Why a packet is dropped whose address has no image.
fn reason(no_word: DropReason) -> impl Fn(Unmapped) -> DropReason {
    move |unmapped| match unmapped {
        Unmapped::NoWord => no_word,
        Unmapped::ZeroIdentifier => DropReason::ZeroInterfaceIdentifier,
    }
}

impl contract::Configured for Npt66Config {
    fn claims(&self) -> Claims {
        let mut except = self.except.clone();
        except.push(self.prefixes.inside());
        let inside = InsideClaim { sources: self.prefixes.inside(), ingress: self.ingress, except };
        Claims { destinations6: vec![self.prefixes.outside()], inside6: vec![inside], ..Claims::default() }
    }
}

impl Build for Npt66Config {
    type State = Npt66;
    type Fault = Infallible;

    fn build(&self, policy: PolicyId, _context: &BuildContext) -> Result<Npt66, Infallible> {
        Ok(Npt66 { prefixes: self.prefixes, ingress: self.ingress, policy })
    }
}

impl Mechanism for Npt66 {
    const KIND: Kind = Kind::Npt66;
    const KEEPS_FAMILY: bool = true;
    const TURNS_AROUND: bool = true;
    const QUOTES: Quotes = Quotes::Addresses;
    type Probe = ();
    const NO_PROBE: () = ();

    #[inline(always)]
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        (): &(),
        _now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason> {
        let Addresses::V6 { source, destination } = arrival.packet.addresses else {
            return Err(DropReason::NoMechanism);
        };
        // Without its quote the error would be useless.
        if matches!(arrival.packet.transport, Transport::IcmpError { .. }) && arrival.quoted.is_none() {
            return Err(DropReason::IcmpFragment);
        }
        if self.prefixes.inside().contains(source) {
            self.outward(arrival, (source, destination), effects)
        } else if self.prefixes.outside().contains(destination) {
            self.inward(arrival, (source, destination), effects)
        } else {
            Err(DropReason::NoMechanism)
        }
    }
}
