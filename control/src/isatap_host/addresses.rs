//! Addresses formed from advertised prefixes (RFC 4862 §5.5.3, RFC 5214 §6.2).

use super::action::HostAction;
use super::host_address::{HostAddress, NEVER, end};
use crate::neighbour_discovery::PrefixInformation;
use core::net::Ipv4Addr;
use sixway_dataplane::Instant;
use sixway_dataplane::tunnel::address::isatap;
use std::collections::VecDeque;

/// Maximum addresses of a host; further prefixes are ignored.
pub const MAX_ADDRESSES: usize = 16;
/// RFC 4862 §5.5.3 e: no advertisement shortens the remaining life of an address below this immediately, 2 h.
pub const TWO_HOURS: u32 = 7_200;
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<HostAddress>);

impl Addresses {
    /// Takes a prefix as it was advertised. Whether it was of use.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        local: Ipv4Addr,
        said: &PrefixInformation,
        actions: &mut VecDeque<HostAction>,
    ) -> bool {
        // The autonomous flag, the link-local prefix, lifetimes and lengths: RFC 4862 §5.5.3 a to d.
        let foul = said.prefix.overlaps(isatap::LINK_LOCAL) || said.prefix.address().is_multicast();
        if !said.autonomous || foul || said.preferred > said.valid || said.prefix.length() != 64 {
            return false;
        }
        let at = match self.0.iter().position(|known| known.prefix == said.prefix) {
            Some(at) => at,
            None if said.valid == 0 || self.0.len() >= MAX_ADDRESSES => return false,
            None => {
                let address = isatap::address(said.prefix, local);
                let valid = end(now, said.valid);
                self.0.push(HostAddress {
                    address,
                    prefix: said.prefix,
                    on_link: false,
                    preferred: valid,
                    valid,
                });
                self.0.len() - 1
            }
        };
        let known = &mut self.0[at];
        known.on_link |= said.on_link;
        known.preferred = end(now, said.preferred);
        let remaining = known.valid(now);
        if said.valid > TWO_HOURS || said.valid > remaining {
            known.valid = end(now, said.valid);
        } else if remaining > TWO_HOURS {
            known.valid = end(now, TWO_HOURS);
        }
        actions.push_back(HostAction::SetAddress(*known));
        true
    }

    /// Removes expired addresses.
    pub(super) fn expire(&mut self, now: Instant, actions: &mut VecDeque<HostAction>) {
        let ended = self.0.iter().filter(|known| known.valid <= now);
        actions.extend(ended.map(|known| HostAction::RemoveAddress(known.address)));
        self.0.retain(|known| known.valid > now);
    }

    /// Takes all away.
    pub(super) fn clear(&mut self, actions: &mut VecDeque<HostAction>) {
        actions.extend(self.0.drain(..).map(|known| HostAction::RemoveAddress(known.address)));
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().map(|known| known.valid).filter(|end| *end != NEVER).min()
    }

    pub(super) fn all(&self) -> &[HostAddress] {
        &self.0
    }
}
