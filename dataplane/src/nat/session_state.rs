//! The states of a session, and TCP's state machine (RFC 6146 §3.5.2.2).
//!
//! The RFC names the states by the families of NAT64's two sides. Here they are named by the sides, for every NAT.
//!
//! ```text
//!            inside SYN  +--------+  outside SYN
//!            +-----------| CLOSED |-----------+
//!            v           +--------+           v
//!       INSIDE INIT          ^ lifetime   OUTSIDE INIT
//!       (V6 INIT)            | ends       (V4 INIT)
//!            | outside   +-------+            | inside
//!            | SYN       | TRANS |            | SYN
//!            |           +-------+            |
//!            |  not a RST |     ^ RST, or     |
//!            |            v     | lifetime    |
//!            +--------> ESTABLISHED <---------+
//!              outside FIN |  | inside FIN
//!           FIN FROM OUTSIDE  FIN FROM INSIDE
//!           (V4 FIN RCV)   |  | (V6 FIN RCV)
//!               inside FIN |  | outside FIN
//!           FIN FROM BOTH (V6 FIN + V4 FIN RCV)
//! ```
//!
//! A RST alone does not end a session: the peer may not accept it, so the session becomes transitory and a later packet
//! brings it back (RFC 7857 §2.2 is content with this).

use super::protocol::NatProtocol;
use crate::direction::Direction;
use crate::parse::{FIN, RST, SYN};

/// The state of a session. UDP and ICMP have one each, and one for sessions that no inside host has answered (RFC 7857 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SessionState {
    /// The slot holds no session; TCP's CLOSED.
    Free,
    /// A UDP session.
    Udp,
    /// An ICMP Query session.
    Icmp,
    /// A SYN came from outside and is stored, waiting for one from inside for TCP_INCOMING_SYN. RFC 6146: V4 INIT.
    OutsideInitStored,
    /// A SYN came from outside and was forwarded, for TCP_TRANS. RFC 6146: V4 INIT.
    OutsideInit,
    /// A SYN came from inside. RFC 6146: V6 INIT.
    InsideInit,
    /// SYNs came from both sides. RFC 6146: ESTABLISHED.
    Established,
    /// A FIN came from outside. RFC 6146: V4 FIN RCV.
    FinFromOutside,
    /// A FIN came from inside. RFC 6146: V6 FIN RCV.
    FinFromInside,
    /// Both sides have sent FIN. RFC 6146: V6 FIN + V4 FIN RCV.
    FinFromBoth,
    /// A RST came, or the lifetime is down to TCP_TRANS. RFC 6146: TRANS.
    Trans,
    /// A UDP session that a packet from outside created and none from inside has answered.
    UdpUnanswered,
    /// The same of ICMP.
    IcmpUnanswered,
}

impl SessionState {
    /// Every state.
    pub const ALL: [Self; 13] = [
        Self::Free,
        Self::Udp,
        Self::Icmp,
        Self::OutsideInitStored,
        Self::OutsideInit,
        Self::InsideInit,
        Self::Established,
        Self::FinFromOutside,
        Self::FinFromInside,
        Self::FinFromBoth,
        Self::Trans,
        Self::UdpUnanswered,
        Self::IcmpUnanswered,
    ];

    /// The state, as if a packet from inside had answered the session: between processes a flag says that none has.
    pub const fn answered(self) -> Self {
        match self {
            Self::UdpUnanswered => Self::Udp,
            Self::IcmpUnanswered => Self::Icmp,
            other => other,
        }
    }

    /// Whether the lifetime in this state may depend on the remote port, for this protocol.
    pub(super) const fn has_port_timeout(self, protocol: NatProtocol) -> bool {
        match protocol {
            NatProtocol::Udp => matches!(self, Self::Udp | Self::UdpUnanswered),
            NatProtocol::Tcp => {
                matches!(self, Self::Established | Self::FinFromOutside | Self::FinFromInside)
            }
            NatProtocol::Icmp => false,
        }
    }

    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "closed",
            Self::Udp | Self::Icmp => "open",
            Self::OutsideInitStored => "outside init, syn stored",
            Self::OutsideInit => "outside init",
            Self::InsideInit => "inside init",
            Self::Established => "established",
            Self::FinFromOutside => "fin from outside",
            Self::FinFromInside => "fin from inside",
            Self::FinFromBoth => "fin from both",
            Self::Trans => "trans",
            Self::UdpUnanswered | Self::IcmpUnanswered => "unanswered",
        }
    }
}

/// The kinds of packets for the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// RST is set: nothing else on such a segment counts (RFC 9293 §3.10.7).
    Rst,
    /// SYN is set, with or without ACK.
    Syn,
    /// FIN is set.
    Fin,
    /// Anything else.
    Data,
}

impl Segment {
    /// The kind of a segment with these flags.
    #[inline]
    pub const fn of(flags: u8) -> Self {
        if flags & RST != 0 {
            Self::Rst
        } else if flags & SYN != 0 {
            Self::Syn
        } else if flags & FIN != 0 {
            Self::Fin
        } else {
            Self::Data
        }
    }
}

/// The handling of a session's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// It runs on.
    Keep,
    /// It starts again with the lifetime of the new state.
    Restart,
}

/// The state after a packet of the session, and what becomes of its lifetime.
#[inline]
pub const fn next_state(state: SessionState, from: Direction, segment: Segment) -> (SessionState, Timer) {
    use Direction::{In, Out};
    use SessionState as S;
    use Timer::{Keep, Restart};
    match (state, from, segment) {
        (S::Free, _, _) => (S::Free, Keep),
        (S::Udp | S::Icmp, _, _) => (state, Restart),
        (S::UdpUnanswered, Out, _) => (S::Udp, Restart),
        (S::IcmpUnanswered, Out, _) => (S::Icmp, Restart),
        (S::UdpUnanswered | S::IcmpUnanswered, In, _) => (state, Restart),

        (S::OutsideInitStored | S::OutsideInit, Out, Segment::Syn) => (S::Established, Restart),
        (S::OutsideInitStored | S::OutsideInit, _, _) => (state, Keep),

        (S::InsideInit, In, Segment::Syn) => (S::Established, Restart),
        (S::InsideInit, Out, Segment::Syn) => (S::InsideInit, Restart),
        (S::InsideInit, _, _) => (S::InsideInit, Keep),

        (S::Established, In, Segment::Fin) => (S::FinFromOutside, Keep),
        (S::Established, Out, Segment::Fin) => (S::FinFromInside, Keep),
        (S::Established, _, Segment::Rst) => (S::Trans, Restart),
        (S::Established, _, Segment::Syn | Segment::Data) => (S::Established, Restart),

        (S::FinFromOutside, Out, Segment::Fin) => (S::FinFromBoth, Restart),
        // RFC 7857 §7.1: a RST from inside answers a host that is not wanted any more.
        (S::FinFromOutside | S::FinFromInside, Out, Segment::Rst) => (state, Keep),
        (S::FinFromOutside, _, _) => (S::FinFromOutside, Restart),
        (S::FinFromInside, In, Segment::Fin) => (S::FinFromBoth, Restart),
        (S::FinFromInside, _, _) => (S::FinFromInside, Restart),
        (S::FinFromBoth, _, _) => (S::FinFromBoth, Keep),

        (S::Trans, _, Segment::Rst) => (S::Trans, Keep),
        (S::Trans, _, _) => (S::Established, Restart),
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{In, Out};
    use super::SessionState::*;
    use super::Timer::{Keep, Restart};
    use super::*;
    use crate::parse::ACK;

    /// Every row of RFC 6146 §3.5.2.2 for packets of an existing session, both directions; with RFC 7857 §7.1 for RSTs from inside.
    #[test]
    fn every_row_of_the_tcp_state_machine() {
        use Segment::{Data, Fin, Rst, Syn};
        let rows = [
            (OutsideInitStored, Out, Syn, Established, Restart),
            (OutsideInitStored, Out, Fin, OutsideInitStored, Keep),
            (OutsideInitStored, Out, Rst, OutsideInitStored, Keep),
            (OutsideInitStored, Out, Data, OutsideInitStored, Keep),
            (OutsideInitStored, In, Syn, OutsideInitStored, Keep),
            (OutsideInitStored, In, Fin, OutsideInitStored, Keep),
            (OutsideInitStored, In, Rst, OutsideInitStored, Keep),
            (OutsideInitStored, In, Data, OutsideInitStored, Keep),
            (OutsideInit, Out, Syn, Established, Restart),
            (OutsideInit, Out, Fin, OutsideInit, Keep),
            (OutsideInit, Out, Rst, OutsideInit, Keep),
            (OutsideInit, Out, Data, OutsideInit, Keep),
            (OutsideInit, In, Syn, OutsideInit, Keep),
            (OutsideInit, In, Fin, OutsideInit, Keep),
            (OutsideInit, In, Rst, OutsideInit, Keep),
            (OutsideInit, In, Data, OutsideInit, Keep),
            (InsideInit, In, Syn, Established, Restart),
            (InsideInit, In, Fin, InsideInit, Keep),
            (InsideInit, In, Rst, InsideInit, Keep),
            (InsideInit, In, Data, InsideInit, Keep),
            (InsideInit, Out, Syn, InsideInit, Restart),
            (InsideInit, Out, Fin, InsideInit, Keep),
            (InsideInit, Out, Rst, InsideInit, Keep),
            (InsideInit, Out, Data, InsideInit, Keep),
            (Established, In, Fin, FinFromOutside, Keep),
            (Established, Out, Fin, FinFromInside, Keep),
            (Established, In, Rst, Trans, Restart),
            (Established, Out, Rst, Trans, Restart),
            (Established, In, Syn, Established, Restart),
            (Established, Out, Syn, Established, Restart),
            (Established, In, Data, Established, Restart),
            (Established, Out, Data, Established, Restart),
            (FinFromOutside, Out, Fin, FinFromBoth, Restart),
            (FinFromOutside, Out, Syn, FinFromOutside, Restart),
            (FinFromOutside, Out, Rst, FinFromOutside, Keep),
            (FinFromOutside, Out, Data, FinFromOutside, Restart),
            (FinFromOutside, In, Fin, FinFromOutside, Restart),
            (FinFromOutside, In, Syn, FinFromOutside, Restart),
            (FinFromOutside, In, Rst, FinFromOutside, Restart),
            (FinFromOutside, In, Data, FinFromOutside, Restart),
            (FinFromInside, In, Fin, FinFromBoth, Restart),
            (FinFromInside, In, Syn, FinFromInside, Restart),
            (FinFromInside, In, Rst, FinFromInside, Restart),
            (FinFromInside, In, Data, FinFromInside, Restart),
            (FinFromInside, Out, Fin, FinFromInside, Restart),
            (FinFromInside, Out, Syn, FinFromInside, Restart),
            (FinFromInside, Out, Rst, FinFromInside, Keep),
            (FinFromInside, Out, Data, FinFromInside, Restart),
            (FinFromBoth, Out, Data, FinFromBoth, Keep),
            (FinFromBoth, Out, Syn, FinFromBoth, Keep),
            (FinFromBoth, Out, Fin, FinFromBoth, Keep),
            (FinFromBoth, Out, Rst, FinFromBoth, Keep),
            (FinFromBoth, In, Data, FinFromBoth, Keep),
            (FinFromBoth, In, Syn, FinFromBoth, Keep),
            (FinFromBoth, In, Fin, FinFromBoth, Keep),
            (FinFromBoth, In, Rst, FinFromBoth, Keep),
            (Trans, Out, Rst, Trans, Keep),
            (Trans, In, Rst, Trans, Keep),
            (Trans, Out, Data, Established, Restart),
            (Trans, Out, Syn, Established, Restart),
            (Trans, Out, Fin, Established, Restart),
            (Trans, In, Data, Established, Restart),
            (Trans, In, Syn, Established, Restart),
            (Trans, In, Fin, Established, Restart),
        ];
        assert_eq!(rows.len(), 8 * 8, "eight states, two directions, four kinds of segment");
        for (state, from, segment, next, timer) in rows {
            assert_eq!(next_state(state, from, segment), (next, timer), "{state:?} {from:?} {segment:?}");
        }
    }

    #[test]
    fn a_reset_outweighs_syn_and_syn_outweighs_fin() {
        assert_eq!(Segment::of(RST | SYN | FIN | ACK), Segment::Rst);
        assert_eq!(Segment::of(SYN | FIN), Segment::Syn);
        assert_eq!(Segment::of(FIN | ACK), Segment::Fin);
        assert_eq!(Segment::of(ACK), Segment::Data);
        assert_eq!(Segment::of(0), Segment::Data);
    }

    #[test]
    fn udp_and_icmp_start_their_lifetime_again_with_every_packet() {
        for (state, from) in [(Udp, In), (Udp, Out), (Icmp, In), (Icmp, Out)] {
            assert_eq!(next_state(state, from, Segment::Data), (state, Restart));
        }
    }

    #[test]
    fn a_session_from_outside_is_unanswered_until_a_packet_from_inside() {
        for (state, answered) in [(UdpUnanswered, Udp), (IcmpUnanswered, Icmp)] {
            assert_eq!(next_state(state, In, Segment::Data), (state, Restart));
            assert_eq!(next_state(state, Out, Segment::Data), (answered, Restart));
        }
    }

    #[test]
    fn every_state_is_its_own_index() {
        for (index, state) in SessionState::ALL.iter().enumerate() {
            assert_eq!(*state as usize, index);
        }
    }
}
