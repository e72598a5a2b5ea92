//! Values of the engine, put into words.

use super::backend::MechanismKind;
use sixway_dataplane::Counters;
use sixway_dataplane::drop_reason::Answer;
use sixway_wire::protocol;

/// A protocol's name; `any` for all of them.
pub(super) fn protocol(number: Option<u8>) -> String {
    match number {
        None => "any".into(),
        Some(protocol::TCP) => "tcp".into(),
        Some(protocol::UDP) => "udp".into(),
        Some(protocol::ICMPV4 | protocol::ICMPV6) => "icmp".into(),
        Some(number) => number.to_string(),
    }
}

/// Frames that passed all mechanisms of a kind.
pub(super) fn passed(counters: &Counters, kind: MechanismKind) -> u64 {
    match kind {
        MechanismKind::Nat64 => counters.nat64_v4_to_v6 + counters.nat64_v6_to_v4,
        MechanismKind::Siit => counters.siit_v4_to_v6 + counters.siit_v6_to_v4,
        MechanismKind::SixToFour => counters.six_to_four_encap + counters.six_to_four_decap,
        MechanismKind::SixRd => counters.six_rd_encap + counters.six_rd_decap,
        MechanismKind::Configured => counters.configured_encap + counters.configured_decap,
        MechanismKind::Isatap => counters.isatap_encap + counters.isatap_decap,
    }
}

/// What the sender of a dropped packet is told.
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
        (None, None) => "silence".into(),
        (Some(one), Some(other)) if one == other => format!("ICMP {one}, rate-limited"),
        (Some(one), Some(other)) => format!("ICMP {one}, ICMPv6 {other}, rate-limited"),
        (Some(one), None) => format!("ICMP {one}, rate-limited; silence in IPv6"),
        (None, Some(one)) => format!("ICMPv6 {one}, rate-limited; silence in IPv4"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::DropReason;

    #[test]
    fn every_answer_has_a_name() {
        for reason in DropReason::ALL {
            assert!(!answer(reason.answer()).contains("error"), "{reason:?}");
        }
        assert_eq!(answer(DropReason::HopLimitExceeded.answer()), "ICMP time exceeded, rate-limited");
        assert_eq!(answer(DropReason::PacketTooBig.answer()), "ICMP too big, rate-limited");
        assert_eq!(answer(DropReason::Igmp.answer()), "silence");
    }
}
