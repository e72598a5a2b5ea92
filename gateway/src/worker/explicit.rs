//! The PCP server's interface to a worker's translators (RFC 6887).

use sixway_dataplane::nat::{
    BoundEndpoint, ExplicitBinding, Named, NatProtocol, NotBound, Outside, WantedOutside,
};
use sixway_dataplane::stateful::Stateful;
use sixway_dataplane::{Counters, Instant, WorkerId};
use sixway_wire::Endpoint4;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplicitRequest {
    /// Keep a binding until it is released.
    Keep(ExplicitBinding),
    /// The same with the port of the same number of the other protocol.
    KeepPair(ExplicitBinding),
    /// Whether the administrator made a binding of a host.
    HasStatic(NatProtocol, Ipv6Addr),
    /// The workers of a host and of a port's block.
    Workers(Ipv6Addr, u16),
    /// Release it.
    Release(NatProtocol, Named),
    /// The binding of an inside endpoint.
    Find(NatProtocol, Named),
    /// Open a session, as a packet from inside would.
    Open(NatProtocol, Named, Endpoint4, WantedOutside),
    /// The outside address of a host.
    Address(Ipv6Addr),
    /// End the bindings of a host that no administrator made, and their sessions, from a place on.
    End(Ipv6Addr, u32),
}

/// The outcome of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplicitAnswer {
    /// The binding.
    Bound(BoundEndpoint),
    /// It was released: seconds for which sessions keep it.
    Released(Option<u32>),
    /// The binding, if there is one.
    Found(Option<BoundEndpoint>),
    /// The session's outside endpoint, and for how many seconds it lives.
    Opened(Outside<Endpoint4>, u32),
    /// The address.
    Address(Option<Ipv4Addr>),
    /// They are these; `None`: the port cannot become that of another worker.
    Workers(Option<[WorkerId; 2]>),
    /// Whether there is one here.
    HasStatic(bool),
    /// They were ended up to here; `None`: all of them.
    Ended(Option<u32>),
    /// Why not.
    NotBound(NotBound),
}

/// Does what is wanted.
pub(super) fn answer(
    translator: &mut dyn Stateful,
    request: &ExplicitRequest,
    now: Instant,
    counters: &mut Counters,
) -> ExplicitAnswer {
    match request {
        ExplicitRequest::Keep(binding) => match translator.keep_explicit(binding, now, counters) {
            Ok(bound) => ExplicitAnswer::Bound(bound),
            Err(reason) => ExplicitAnswer::NotBound(reason),
        },
        ExplicitRequest::KeepPair(binding) => match translator.keep_with_companion(binding, now, counters) {
            Ok(bound) => ExplicitAnswer::Bound(bound),
            Err(reason) => ExplicitAnswer::NotBound(reason),
        },
        ExplicitRequest::HasStatic(protocol, host) => {
            ExplicitAnswer::HasStatic(translator.has_static_binding(*protocol, *host))
        }
        ExplicitRequest::Workers(host, port) => {
            let workers = [translator.worker_of_inside(*host), translator.worker_of_block(*port)];
            ExplicitAnswer::Workers(translator.blocks_move().then_some(workers))
        }
        ExplicitRequest::Release(protocol, named) => {
            ExplicitAnswer::Released(translator.release_explicit(*protocol, *named, now, counters))
        }
        ExplicitRequest::Find(protocol, named) => {
            ExplicitAnswer::Found(translator.bound_endpoint(*protocol, *named))
        }
        ExplicitRequest::Open(protocol, named, remote, wanted) => {
            match translator.open_by_request((*protocol, *named, *remote), *wanted, now, counters) {
                Ok((outside, lives)) => ExplicitAnswer::Opened(outside, lives),
                Err(reason) => ExplicitAnswer::NotBound(reason),
            }
        }
        ExplicitRequest::Address(host) => ExplicitAnswer::Address(translator.outside_address(*host)),
        ExplicitRequest::End(host, from) => {
            ExplicitAnswer::Ended(translator.end_bindings_of(*host, *from, now, counters))
        }
    }
}
