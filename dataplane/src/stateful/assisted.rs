//! The gateway for applications at a stateful translator: it sees what the translator decided about packets of control connections.

use super::assistance::{Assistance, Mapper};
use super::translator::{AddressPolicy, Translator};
use crate::alg::{Ends, TcpSegment};
use crate::counters::Counters;
use crate::direction::Direction;
use crate::effects::Effects;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::nat::{InsideKey, NatProtocol, Outside};
use crate::parse::{Addresses, Packet, Transport};
use crate::verdict::{Decision, Edit, Next};
use core::net::IpAddr;
use sixway_wire::Endpoint4;

impl<I: InsideKey, P: AddressPolicy<I>> Translator<I, P> {
    /// A packet of a control connection was decided on: it may have to be rewritten before its headers are edited. Hairpins are not examined.
    pub(crate) fn assist(
        &mut self,
        (frame, packet): (&Frame, &Packet),
        decision: Decision,
        now: Instant,
        effects: &mut Effects,
    ) -> Decision {
        let (Some(edit), Next::Leave) = (decision.action.edit, decision.next) else { return decision };
        let Some((ends, direction, client)) = ends_of(edit, packet) else { return decision };
        let Some(segment) = TcpSegment::read(frame, packet) else { return decision };
        let Some(inside) = self.nat.inside_of(NatProtocol::Tcp, Outside(ends.outside)) else {
            return decision;
        };
        let subscriber = self.nat.subscriber_of(inside.0.host()).0;
        let Self { nat, assistance: Assistance { connections, expected }, .. } = self;
        // Both count, the mapper while it makes a mapping.
        let mut made = Counters::default();
        let mut mapper = Mapper { nat, expected, inside, ends, subscriber, now, counters: &mut made };
        let counters = &mut effects.counters;
        let way = (ends, direction);
        let rewrite = connections.pass(way, &segment, (client, subscriber), &mut mapper, (now, counters));
        counters.add(&made);
        let Some(rewrite) = rewrite else { return decision };
        effects.rewrite(rewrite);
        Decision { next: Next::Rewritten, ..decision }
    }

    /// Removes connections that have ended, and mappings that were not used.
    pub(crate) fn expire_assistance(&mut self, now: Instant, budget: usize, counters: &mut Counters) {
        let Self { nat, assistance: Assistance { connections, expected }, .. } = self;
        for _ in 0..budget {
            let Some(inside) = expected.next_over(now) else { break };
            nat.release_explicit(NatProtocol::Tcp, inside, now, counters);
        }
        connections.expire(now, budget, |Ends { outside, server }| {
            nat.has_session(NatProtocol::Tcp, Outside(outside), server)
        });
    }
}

/// The ends of a connection, by what a packet of it becomes; its direction; the client's address.
fn ends_of(edit: Edit, packet: &Packet) -> Option<(Ends, Direction, IpAddr)> {
    let Transport::Ports { source: from, destination: to, .. } = packet.transport else {
        return None;
    };
    Some(match (edit, packet.addresses) {
        (Edit::Translate6To4 { source, destination, .. }, Addresses::V6 { source: client, .. }) => {
            (Ends { outside: source, server: destination }, Direction::Out, client.into())
        }
        (Edit::Translate4To6 { destination: client, .. }, Addresses::V4 { source, destination }) => {
            let ends =
                Ends { outside: Endpoint4::new(destination, to), server: Endpoint4::new(source, from) };
            (ends, Direction::In, client.address.into())
        }
        // Inwards the destination changes.
        (Edit::Renumber4 { destination: client, .. }, Addresses::V4 { source, destination })
            if client.address != destination =>
        {
            let ends =
                Ends { outside: Endpoint4::new(destination, to), server: Endpoint4::new(source, from) };
            (ends, Direction::In, client.address.into())
        }
        (Edit::Renumber4 { source, destination, .. }, Addresses::V4 { source: client, .. }) => {
            (Ends { outside: source, server: destination }, Direction::Out, client.into())
        }
        _ => return None,
    })
}
