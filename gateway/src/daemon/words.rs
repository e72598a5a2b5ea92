//! Values of the engine as text.

use super::fast_path_handle::FastPathState;
use crate::inside_endpoint;
use crate::view::{CarriedRow, CounterRow, FastPathRow, FastPathShare, MappingsRow, PassedRow};
use sixway_dataplane::Counters;
use sixway_dataplane::direction::Direction;
use sixway_dataplane::drop_reason::Answer;
use sixway_dataplane::mechanism::nat44::PortlessProtocol;
use sixway_dataplane::mechanism::nat46::{MappingCounts, MappingRefused};
use sixway_dataplane::mechanism::table::Kind;
use sixway_fastpath::{CAUSES, Cause, Counts};
use sixway_wire::{Endpoint4, Endpoint6, protocol};

/// A protocol's name; `any` for all of them.
pub(super) fn protocol(number: Option<u8>) -> String {
    match number {
        None => "any".into(),
        Some(protocol::TCP) => "tcp".into(),
        Some(protocol::UDP) => "udp".into(),
        Some(protocol::ICMPV4 | protocol::ICMPV6) => "icmp".into(),
        Some(number) => {
            PortlessProtocol::of(number).map_or_else(|| number.to_string(), |it| it.name().to_owned())
        }
    }
}

/// An inside endpoint; of a protocol without ports its address.
pub(super) fn inside(number: u8, endpoint: Endpoint6) -> String {
    match (PortlessProtocol::of(number), endpoint.address.to_ipv4_mapped()) {
        (Some(_), Some(address)) => address.to_string(),
        (_, _) => inside_endpoint::text(endpoint),
    }
}

/// An outside or remote endpoint; of a protocol without ports its address.
pub(super) fn end(number: u8, endpoint: Endpoint4) -> String {
    match PortlessProtocol::of(number) {
        Some(_) => endpoint.address.to_string(),
        None => endpoint.to_string(),
    }
}

/// The mappings of a NAT46 for the admin API.
pub(super) fn mappings(counts: &MappingCounts) -> MappingsRow {
    let refused = MappingRefused::ALL.iter().zip(counts.refused);
    MappingsRow {
        made: counts.made,
        ended: counts.ended,
        refused: refused.map(|(reason, count)| (reason.name().to_owned(), count)).collect(),
        addresses: counts.addresses,
        addresses_used: counts.addresses_used,
    }
}

/// Frames that passed all mechanisms of a kind.
pub(super) fn passed(counters: &Counters, kind: Kind) -> u64 {
    counters.passed_total(kind)
}

/// The fast path for the admin API.
pub(super) fn fast_path(summary: FastPathShare, seen: &FastPathState) -> FastPathRow {
    let carried = seen.counts.carried().map(|(mechanism, out, back)| CarriedRow {
        mechanism: mechanism.title().into(),
        packets_out: out.packets,
        octets_out: out.octets,
        packets_in: back.packets,
        octets_in: back.octets,
    });
    let passed =
        |cause: Cause, packets| PassedRow { cause: cause.name.into(), packets, help: cause.help.into() };
    let lost = CAUSES.last().map(|cause| passed(*cause, seen.counts.lost().packets));
    FastPathRow {
        summary,
        next_hops: seen.next_hops as u64,
        carried: carried.collect(),
        passed: seen.counts.passed().map(|(cause, count)| passed(cause, count.packets)).chain(lost).collect(),
    }
}

/// What the programs have counted, among the counters: `fastpath.nat64.out`, `fastpath.passed.flags`.
pub(super) fn fast_path_counters(seen: &FastPathState) -> Vec<CounterRow> {
    let row = |name: String, help: String, value| CounterRow { name, help, value, by_worker: Vec::new() };
    let carried = seen.counts.carried().flat_map(|(mechanism, out, back)| {
        [
            ("out", "to IPv4, to the outside or into a tunnel", out),
            ("in", "to IPv6, to the inside or out of a tunnel", back),
        ]
        .map(|(direction, whither, count)| {
            let help = format!("Packets forwarded by the fast path, {whither}.");
            row(format!("fastpath.{}.{direction}", mechanism.title()), help, count.packets)
        })
    });
    let lost = CAUSES.last().map(|cause| (*cause, seen.counts.lost()));
    let passed = seen.counts.passed().chain(lost).map(|(cause, count)| {
        let help = format!("Packets that the fast path passed to the engine: {}.", cause.help);
        match cause.name {
            "lost" => row("fastpath.lost".into(), format!("Packets {}.", cause.help), count.packets),
            name => row(format!("fastpath.passed.{name}"), help, count.packets),
        }
    });
    carried.chain(passed).collect()
}

/// Packets of all mechanisms of a kind that the fast path carried.
pub(super) fn carried(counts: &Counts, kind: Kind) -> u64 {
    counts.of(kind).iter().map(|counter| counter.packets).sum()
}

/// The same in one direction.
pub(super) fn carried_one_way(counts: &Counts, kind: Kind, direction: Direction) -> u64 {
    let [out, back] = counts.of(kind);
    match direction {
        Direction::Out => out.packets,
        Direction::In => back.packets,
    }
}

/// The ICMP error that the sender of a dropped packet gets.
pub(super) fn answer(answer: Answer) -> String {
    let icmpv4 = answer.icmpv4.map(|(kind, code)| match (kind, code) {
        (3, 4) => "too big",
        (3, _) => "unreachable",
        (11, _) => "time exceeded",
        (12, _) => "parameter problem",
        _ => "error",
    });
    let icmpv6 = answer.icmpv6.map(|(kind, _)| match kind {
        1 => "unreachable",
        2 => "too big",
        3 => "time exceeded",
        4 => "parameter problem",
        _ => "error",
    });
    match (icmpv4, icmpv6) {
        (None, None) => "none".into(),
        (Some(one), Some(other)) if one == other => format!("ICMP {one}, rate-limited"),
        (Some(one), Some(other)) => format!("ICMP {one}, ICMPv6 {other}, rate-limited"),
        (Some(one), None) => format!("ICMP {one}, rate-limited; none for IPv6"),
        (None, Some(one)) => format!("ICMPv6 {one}, rate-limited; none for IPv4"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::DropReason;

    #[test]
    fn what_the_fast_path_carried_is_its_mechanisms() {
        for kind in Kind::ALL {
            let mut counts = Counts::default();
            let place = 2 * usize::from(kind.number());
            (counts.values[place].packets, counts.values[place + 1].packets) = (3, 4);
            assert!(Kind::ALL.iter().all(|one| carried(&counts, *one) == if one == kind { 7 } else { 0 }));
        }
    }

    #[test]
    fn every_answer_has_a_name() {
        for reason in DropReason::ALL {
            assert!(!answer(reason.answer()).contains("error"), "{reason:?}");
        }
        assert_eq!(answer(DropReason::HopLimitExceeded.answer()), "ICMP time exceeded, rate-limited");
        assert_eq!(answer(DropReason::PacketTooBig.answer()), "ICMP too big, rate-limited");
        assert_eq!(answer(DropReason::Igmp.answer()), "none");
    }
}
