//! What the engine counts. Plain numbers, one set for each worker; whoever shows them adds the workers up.

use crate::drop_reason::DropReason;
use crate::mechanism::table::{Kind, Way};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal,)+) => {
        /// Counters of one engine.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $field: u64,)+
            /// Frames that passed the mechanisms of a [`Kind`], by [`Way`].
            pub passed: [[u64; 2]; Kind::COUNT],
            /// Frames dropped, by [`DropReason`].
            pub dropped: [u64; DropReason::COUNT],
        }

        impl Default for Counters {
            fn default() -> Self {
                Self { $($field: 0,)+ passed: [[0; 2]; Kind::COUNT], dropped: [0; DropReason::COUNT] }
            }
        }

        impl Counters {
            /// Every counter but the drops: its name, what it counts, its value.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                let fixed = [$(($name, concat!($($doc,)+).trim_ascii(), self.$field),)+];
                fixed.into_iter().chain(self.of_mechanisms())
            }

            /// Adds another engine's counters.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)+
                for (mine, theirs) in self.passed.as_flattened_mut().iter_mut().zip(other.passed.as_flattened()) {
                    *mine += theirs;
                }
                for (mine, theirs) in self.dropped.iter_mut().zip(other.dropped) {
                    *mine += theirs;
                }
            }
        }
    };
}

counters! {
    /// Frames received from links.
    received = "received",
    /// Frames taken over from other workers.
    taken_over = "taken_over",
    /// Frames forwarded.
    forwarded = "forwarded",
    /// Frames that became the gateway's own answer (echo replies, errors from inside tunnels for the senders).
    answered = "answered",
    /// Frames left to the host.
    punted = "punted",
    /// Frames given to the gateway's own control protocols.
    to_control = "to_control",
    /// Frames handed over to other workers.
    handed_over = "handed_over",
    /// Frames that were joined to another, and went on as one with it: fragments of a packet that was handed over, held or left to the host,
    /// segments of a super-frame. What they were joined to is counted there as one.
    merged = "merged",
    /// Frames held: fragments that wait for the rest of their packet (a gauge).
    held = "held",
    /// Packets as a wire would carry them: a super-frame counts once for each of its segments, what was cut once for each piece.
    packets = "packets",
    /// Octets of the frames and pieces forwarded, IP header included.
    octets = "octets",
    /// ICMP errors made.
    icmp_errors_made = "icmp_errors.made",
    /// ICMP errors not made because of the rate limit.
    icmp_errors_limited = "icmp_errors.limited",
    /// ICMP errors not made because the gateway has no address of that family.
    icmp_errors_unsourced = "icmp_errors.unsourced",
    /// TCP probes made: silent connections asked whether they live (RFC 6146 §3.5.2.2).
    tcp_probes_made = "tcp_probes.made",
    /// Segments made: super-frames cut because their segments are too large for the next link, but may be fragmented.
    segments_made = "segments.made",
    /// Fragments made.
    fragments_made = "fragments.made",
    /// Packets reassembled from fragments.
    reassembled = "fragments.reassembled",
    /// Packets out of tunnels with a combination of ECN fields that nobody sends and that is always potentially dangerous, dropped ones
    /// included (RFC 6040 §4.2, "(!!!)").
    ecn_dangerous = "tunnels.ecn_dangerous",
    /// Packets out of tunnels with a combination of ECN fields that nobody sends and that is possibly dangerous (RFC 6040 §4.2, "(!)").
    ecn_possibly_dangerous = "tunnels.ecn_possibly_dangerous",
    /// Errors from inside tunnels that taught what a path carries (RFC 4213 §3.2.2).
    path_mtus_learnt = "tunnels.path_mtus.learnt",
    /// Errors from inside tunnels that asked for less than a path carries at least (68 octets; 576 for IPv4 in IPv4, 1,280 for IPv6), or for more than
    /// was thought (RFC 1191 §3).
    path_mtus_refused = "tunnels.path_mtus.refused",
    /// Errors from inside tunnels that were passed on to the senders (RFC 4213 §3.4, RFC 2473 §8).
    tunnel_errors_relayed = "tunnels.errors_relayed",
    /// Frames joined to the super-frame of another.
    super_frames_joined = "super_frames.joined",
    /// Bindings made.
    bindings_made = "nat64.bindings.made",
    /// Bindings ended.
    bindings_ended = "nat64.bindings.ended",
    /// Sessions made.
    sessions_made = "nat64.sessions.made",
    /// Sessions ended.
    sessions_ended = "nat64.sessions.ended",
    /// Sessions that were given to the fast path.
    flows_offloaded = "flows.offloaded",
    /// Sessions that were ripe for the fast path and could not be given to it: it has no room, or too many are on their way.
    flows_offload_refused = "flows.offload_refused",
    /// Sessions that moved to the fast path without a quiet point, after half a second: packets may have overtaken one another.
    flows_moved_unquietly = "flows.moved_unquietly",
    /// Sessions taken back from the fast path, because of a SYN, FIN or RST or because they were silent.
    flows_taken_back = "flows.taken_back",
    /// Flows that the fast path carried on without a gateway, and that became sessions again.
    flows_adopted = "flows.adopted",
}

impl Counters {
    /// A frame passed a mechanism.
    #[inline(always)]
    pub const fn pass(&mut self, kind: Kind, way: Way) {
        self.passed[kind as usize][way as usize] += 1;
    }

    /// Frames that passed the mechanisms of a kind.
    pub fn passed_total(&self, kind: Kind) -> u64 {
        self.passed[kind as usize].iter().sum()
    }

    /// The counters of the mechanisms: name, what it counts, value.
    fn of_mechanisms(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let ways = Kind::ALL.iter().flat_map(|kind| [(*kind, Way::In), (*kind, Way::Out)]);
        ways.map(|(kind, way)| (kind.counter(way), kind.help(way), self.passed[kind as usize][way as usize]))
    }

    /// Frames dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

macro_rules! conservation {
    ($received:ident $(+ $taken:ident)* = $left:ident $(+ $kept:ident)*; dropped) => {
        impl Counters {
            /// The conservation of frames, as an equation of counters: the documents quote it.
            pub const CONSERVATION: &str = concat!(
                stringify!($received), $(" + ", stringify!($taken),)* " = ",
                stringify!($left), $(" + ", stringify!($kept),)* " + dropped",
            );

            /// Whether [`Counters::CONSERVATION`] holds.
            pub fn frames_are_conserved(&self) -> bool {
                self.$received $(+ self.$taken)* == self.$left $(+ self.$kept)* + self.dropped_total()
            }
        }
    };
}

conservation!(
    received + taken_over = forwarded + answered + punted + to_control + handed_over + held + merged; dropped
);
