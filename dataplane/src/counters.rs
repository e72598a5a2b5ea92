//! The counters of the engine: plain numbers, one set for each worker. Readers add up the workers.

use crate::direction::Direction;
use crate::drop_reason::DropReason;
use crate::kind::Kind;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal,)+) => {
        /// Counters of one engine.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $field: u64,)+
            /// Frames that passed the mechanisms of a [`Kind`], by [`Direction`].
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
    /// Frames that became an answer of the gateway: echo replies, and errors from inside tunnels relayed to the senders.
    answered = "answered",
    /// Frames left to the host.
    punted = "punted",
    /// Frames passed to the gateway's own control protocols.
    to_control = "to_control",
    /// Frames handed over to other workers.
    handed_over = "handed_over",
    /// Frames merged into another one, which is counted once: fragments of a packet that was handed over, held or left to the host, and segments
    /// joined into a GSO packet.
    merged = "merged",
    /// Frames held: fragments that wait for the rest of their packet, stored SYNs, and packets that wait for a Teredo peer to answer (a gauge).
    held = "held",
    /// Frames for a mechanism itself that are not forwarded: bubbles of Teredo.
    absorbed = "absorbed",
    /// Packets as on the wire: a GSO packet counts once for each segment, a fragmented packet once for each fragment.
    packets = "packets",
    /// Octets forwarded, IP headers included.
    octets = "octets",
    /// ICMP errors sent.
    icmp_errors_made = "icmp_errors.made",
    /// ICMP errors suppressed by the rate limit.
    icmp_errors_limited = "icmp_errors.limited",
    /// ICMP errors about hairpinned packets, handed over to the worker that translates them for the sender.
    icmp_errors_handed_over = "icmp_errors.handed_over",
    /// ICMP errors not sent because the gateway has no address of that family.
    icmp_errors_no_source = "icmp_errors.no_source",
    /// TCP probes sent to idle connections (RFC 6146 §3.5.2.2).
    tcp_probes_made = "tcp_probes.made",
    /// Segments sent because the segments of a GSO packet exceed the MTU of the next link and may be fragmented.
    segments_made = "segments.made",
    /// Fragments sent.
    fragments_made = "fragments.made",
    /// Packets reassembled from fragments.
    reassembled = "fragments.reassembled",
    /// Decapsulated packets with an invalid, potentially dangerous combination of ECN fields, dropped ones included (RFC 6040 §4.2, "(!!!)").
    ecn_dangerous = "tunnels.ecn_dangerous",
    /// Decapsulated packets with an unused, possibly dangerous combination of ECN fields (RFC 6040 §4.2, "(!)").
    ecn_possibly_dangerous = "tunnels.ecn_possibly_dangerous",
    /// ICMP errors from inside tunnels that lowered a path MTU (RFC 4213 §3.2.2).
    path_mtus_learned = "tunnels.path_mtus.learned",
    /// ICMP errors from inside tunnels with an implausible MTU: below the minimum (68 octets; 576 for IPv4 in IPv4; 1,280 for IPv6), or above the
    /// known path MTU (RFC 1191 §3).
    path_mtus_refused = "tunnels.path_mtus.refused",
    /// ICMP errors from inside tunnels relayed to the senders (RFC 4213 §3.4, RFC 2473 §8).
    tunnel_errors_relayed = "tunnels.errors_relayed",
    /// Frames joined into a GSO packet of another frame.
    gso_joined = "gso.joined",
    /// Bindings created.
    bindings_made = "nat.bindings.made",
    /// Bindings ended.
    bindings_ended = "nat.bindings.ended",
    /// Ports given to another subscriber, or freed, before the end of their quarantine, because no other port was free or the quarantine was
    /// full.
    quarantines_cut_short = "nat.quarantines.cut_short",
    /// Sessions created.
    sessions_made = "nat.sessions.made",
    /// Sessions ended.
    sessions_ended = "nat.sessions.ended",
    /// Sessions of protocols without ports created.
    portless_made = "nat.portless.made",
    /// Sessions of protocols without ports ended.
    portless_ended = "nat.portless.ended",
    /// Control connections of FTP whose lines are read.
    ftp_connections_made = "ftp.connections.made",
    /// Control connections of FTP whose lines are not read: there are too many, or the subscriber has too many.
    ftp_connections_refused = "ftp.connections.refused",
    /// Control connections of FTP that are read no longer: the client secured it, sent a line that is not a command, or sent lines out of order.
    ftp_connections_unread = "ftp.connections.unread",
    /// Commands and replies of FTP that were changed.
    ftp_lines_changed = "ftp.lines.changed",
    /// Lines of FTP that were not read: they came in several segments, out of order, or too many before an acknowledgment.
    ftp_lines_unread = "ftp.lines.unread",
    /// Mappings for data connections of FTP.
    ftp_mappings_made = "ftp.mappings.made",
    /// Commands of FTP without a mapping: they name another host or a port below 1,024, came before the server's greeting, came too fast, or no port was
    /// free.
    ftp_mappings_refused = "ftp.mappings.refused",
    /// Sessions offloaded to the fast path.
    flows_offloaded = "flows.offloaded",
    /// Sessions that were due for the fast path and not offloaded: it is full, or too many sessions are being moved.
    flows_offload_refused = "flows.offload_refused",
    /// Sessions moved to the fast path after half a second without an idle moment: packets may have been reordered.
    flows_moved_busy = "flows.moved_busy",
    /// Sessions withdrawn from the fast path because of a SYN, FIN or RST, or because they were idle.
    flows_withdrawn = "flows.withdrawn",
    /// Flows that the fast path forwarded while the gateway was down, and that became sessions again.
    flows_adopted = "flows.adopted",
}

impl Counters {
    /// A frame passed a mechanism.
    #[inline(always)]
    pub const fn pass(&mut self, kind: Kind, direction: Direction) {
        self.passed[kind as usize][direction as usize] += 1;
    }

    /// Frames that passed the mechanisms of a kind.
    pub fn passed_total(&self, kind: Kind) -> u64 {
        self.passed[kind as usize].iter().sum()
    }

    /// The counters of the mechanisms: name, what it counts, value.
    fn of_mechanisms(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let directions = Kind::ALL.iter().flat_map(|kind| [(*kind, Direction::In), (*kind, Direction::Out)]);
        directions.map(|(kind, direction)| {
            (kind.counter(direction), kind.help(direction), self.passed[kind as usize][direction as usize])
        })
    }

    /// Counts frames that are dropped. Nothing else raises these counters.
    #[inline(always)]
    pub const fn drop_frames(&mut self, reason: DropReason, frames: u64) {
        self.dropped[reason as usize] += frames;
    }

    /// Counts frames that were held and are dropped.
    pub const fn drop_held(&mut self, reason: DropReason, frames: u64) {
        self.held = self.held.saturating_sub(frames);
        self.drop_frames(reason, frames);
    }

    /// Frames dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Whether every frame is accounted for: the two sides of [`CONSERVATION`] are equal.
    pub fn frames_are_conserved(&self) -> bool {
        let [came, became] = CONSERVATION.map(|side| side.iter().map(|(_, count)| count(self)).sum::<u64>());
        came == became
    }
}

/// A term of [`CONSERVATION`]: its name and its value.
pub type Term = (&'static str, fn(&Counters) -> u64);

/// Two sums of frames that are equal at any moment: those that came in, and what became of them.
pub const CONSERVATION: [&[Term]; 2] = [
    &[("received", |counters| counters.received), ("taken_over", |counters| counters.taken_over)],
    &[
        ("forwarded", |counters| counters.forwarded),
        ("answered", |counters| counters.answered),
        ("punted", |counters| counters.punted),
        ("to_control", |counters| counters.to_control),
        ("handed_over", |counters| counters.handed_over),
        ("held", |counters| counters.held),
        ("merged", |counters| counters.merged),
        ("absorbed", |counters| counters.absorbed),
        ("dropped", Counters::dropped_total),
    ],
];

/// [`CONSERVATION`] as an equation of counters' names.
pub fn conservation() -> String {
    CONSERVATION.map(|side| side.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" + ")).join(" = ")
}
