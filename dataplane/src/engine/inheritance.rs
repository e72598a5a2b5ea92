//! Sessions of another process, before the workers run: one worker has to own both ends of each.

use super::Engine;
use crate::mechanism::identity::Identity;
use crate::nat::{Inside, NatProtocol, Outside};
use sixway_wire::{Endpoint4, Endpoint6};

impl Engine {
    /// Makes one of the engines own both ends of a session, as long as none of them has worked: the outside endpoint's block goes to the
    /// host's worker if no port of it is taken; else the host goes to the block's worker if it has nothing elsewhere. Whether one owns both.
    pub fn unite(
        engines: &mut [Self],
        mechanism: Identity,
        inside: Inside<Endpoint6>,
        (protocol, outside): (NatProtocol, Outside<Endpoint4>),
    ) -> bool {
        let at = |engine: &mut Self| engine.nat64().iter().position(|nat64| nat64.identity() == mechanism);
        let Some(at) = engines.first_mut().and_then(at) else { return false };
        let Some(any) = engines.first_mut().and_then(|engine| engine.nat64().get(at)) else { return false };
        let host = any.ownership().worker_of_inside(inside.0.address);
        let block = any.ownership().worker_of_outside(protocol, outside.0);
        if host == block {
            return true;
        }
        let mut nats: Vec<_> = engines.iter_mut().filter_map(|one| one.nat64().get_mut(at)).collect();
        let given =
            nats.get_mut(usize::from(block.0)).and_then(|nat64| nat64.give_spare(outside.0.port, host));
        if let Some(moved) = given {
            for nat64 in nats {
                nat64.block_moved(moved);
            }
            return true;
        }
        let is_elsewhere = nats.get(usize::from(host.0)).is_none_or(|nat64| nat64.has_host(inside.0.address));
        !is_elsewhere && nats.iter_mut().all(|nat64| nat64.except(inside.0.address, block))
    }
}
