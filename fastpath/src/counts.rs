//! The programs' counters: packets and octets forwarded in the kernel, and packets passed to the engine, by cause.

use crate::layout::{COUNTERS, Counter, PASSED};
use sixway_dataplane::direction::Direction;
use sixway_dataplane::mechanism::table::Kind;

/// Why a packet was not forwarded in the kernel: its name in metrics and output, and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The name.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
}

const fn cause(name: &'static str, help: &'static str) -> Cause {
    Cause { name, help }
}

/// All causes, in the order of the counters: `PASS_…` of `bpf/layout.h`, then `LOST`.
pub const CAUSES: [Cause; COUNTERS - PASSED] = [
    cause("not_ours", "no rule of the gateway's is for it"),
    cause("no_flow", "its flow is the engine's: new, not offloaded, or there was no room"),
    cause("moving", "its flow is moving to the fast path; the engine still has packets of it"),
    cause(
        "flags",
        "a TCP packet of a session with SYN, FIN or RST (except SYN/ACKs that are forwarded), or a SYN that is left to the engine (see fastpath.forward_syn)",
    ),
    cause("fragment", "a fragment"),
    cause("options", "IPv4 options or IPv6 extension headers"),
    cause("hops", "its hop limit ends here"),
    cause("too_big", "the result exceeds the MTU of its path"),
    cause("protocol", "a transport protocol or ICMP message that the engine translates"),
    cause("source", "its source is not one that the mechanism takes"),
    cause("no_next_hop", "the kernel does not know the result's next hop yet, or there are too many"),
    cause("no_device", "the result leaves by a device that cannot be sent by"),
    cause("changed", "its flow was removed at this moment"),
    cause("malformed", "its headers contradict each other or the frame"),
    cause("kernel", "the kernel would not route it to the gateway, or could not make room for it"),
    cause("lost", "lost: something failed after its first octet was changed"),
];

/// All counters, summed over the processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// As the programs number them.
    pub values: [Counter; COUNTERS],
}

impl Default for Counts {
    fn default() -> Self {
        Self { values: [Counter::zero(); COUNTERS] }
    }
}

impl Counts {
    /// What the mechanisms of a kind forwarded: [`Direction::Out`] and [`Direction::In`].
    pub fn of(&self, kind: Kind) -> [Counter; 2] {
        [Direction::Out, Direction::In]
            .map(|direction| self.values[2 * usize::from(kind.number()) + direction as usize])
    }

    /// What was forwarded, by kind of mechanism: [`Direction::Out`], [`Direction::In`].
    pub fn carried(&self) -> impl Iterator<Item = (Kind, Counter, Counter)> {
        Kind::ALL.iter().map(|kind| {
            let [out, back] = self.of(*kind);
            (*kind, out, back)
        })
    }

    /// What was left to the kernel, and with it the engine. Octets are of IP packets, zero where none was read.
    pub fn passed(&self) -> impl Iterator<Item = (Cause, Counter)> {
        CAUSES.into_iter().zip(self.values[PASSED..].iter().copied()).take(CAUSES.len() - 1)
    }

    /// Dropped because a helper failed after the packet had been changed.
    pub fn lost(&self) -> Counter {
        self.values[COUNTERS - 1]
    }

    /// Adds what one processor counted.
    #[cfg_attr(not(feature = "ebpf"), allow(dead_code, reason = "nothing is counted then"))]
    pub(crate) fn add(&mut self, number: usize, share: Counter) {
        let value = &mut self.values[number];
        value.packets = value.packets.wrapping_add(share.packets);
        value.octets = value.octets.wrapping_add(share.octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of a kind of name in the header: "#define PASS_NO_FLOW (PASSED + 1)".
    fn defined(prefix: &str) -> Vec<(String, String)> {
        let header = include_str!("../bpf/layout.h");
        let lines = header.lines().filter_map(|line| line.strip_prefix("#define "));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        pairs
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_lowercase(), value.to_owned())))
            .collect()
    }

    #[test]
    fn every_cause_of_the_header_has_its_name_here() {
        let named =
            |(number, cause): (usize, &Cause)| (cause.name.to_owned(), format!("(PASSED + {number})"));
        let wanted: Vec<_> =
            CAUSES[..15].iter().enumerate().map(|(number, cause)| named((number, cause))).collect();
        assert_eq!(defined("PASS_"), wanted);
        assert_eq!(defined("LOST"), [(String::new(), "(PASSED + 15)".to_owned())]);
    }

    #[test]
    fn carried_packets_are_under_their_mechanism() {
        let mut counts = Counts::default();
        counts.add(2, Counter { packets: 1, octets: 10 });
        counts.add(2, Counter { packets: 1, octets: 10 });
        counts.add(13, Counter { packets: 3, octets: 4 });
        counts.add(PASSED + 1, Counter { packets: 5, octets: 6 });
        let carried: Vec<_> = counts.carried().collect();
        assert_eq!(counts.of(Kind::Nat64), [Counter { packets: 2, octets: 20 }, Counter::zero()]);
        assert_eq!(counts.of(Kind::Isatap), [Counter::zero(), Counter { packets: 3, octets: 4 }]);
        assert!(carried.contains(&(Kind::Isatap, Counter::zero(), Counter { packets: 3, octets: 4 })));
        assert_eq!(carried.len(), Kind::COUNT);
        assert_eq!(
            counts.passed().nth(1).map(|(cause, value)| (cause.name, value.packets)),
            Some(("no_flow", 5))
        );
        assert_eq!(counts.lost(), Counter::zero());
    }
}
