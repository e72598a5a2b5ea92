//! The states of a session, and TCP's state machine (RFC 6146 §3.5.2.2).
//!
//! ```text
//!               V6 SYN   +--------+   V4 SYN
//!            +-----------| CLOSED |-----------+
//!            v           +--------+           v
//!        V6 INIT             ^ lifetime    V4 INIT
//!            | V4 SYN    +-------+  ends      | V6 SYN
//!            |           | TRANS |            |
//!            |           +-------+            |
//!            |  not a RST |     ^ RST, or     |
//!            |            v     | lifetime    |
//!            +--------> ESTABLISHED <---------+
//!                       V4 FIN | V6 FIN
//!                  V4 FIN RCV    V6 FIN RCV
//!                       V6 FIN | V4 FIN
//!                   V6 FIN + V4 FIN RCV
//! ```
//!
//! A RST alone does not end a session: the peer may not accept it, so the session becomes transitory and a later packet
//! brings it back (RFC 7857 §2.2 is content with this).

use super::sides::Direction;
use crate::parse::{FIN, RST, SYN};

/// The state of a session. UDP and ICMP have one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SessionState {
    /// The slot holds no session; TCP's CLOSED.
    Free,
    /// A UDP session.
    Udp,
    /// An ICMP Query session.
    Icmp,
    /// V4 INIT: a SYN came from outside and is stored, waiting for one from inside for TCP_INCOMING_SYN.
    V4InitStored,
    /// V4 INIT: a SYN came from outside and went on, for TCP_TRANS.
    V4Init,
    /// V6 INIT: a SYN came from inside.
    V6Init,
    /// ESTABLISHED.
    Established,
    /// V4 FIN RCV: a FIN came from outside.
    V4FinRcv,
    /// V6 FIN RCV: a FIN came from inside.
    V6FinRcv,
    /// V6 FIN + V4 FIN RCV: both sides have sent FIN.
    V6FinV4FinRcv,
    /// TRANS: a RST came, or the lifetime is down to TCP_TRANS.
    Trans,
}

impl SessionState {
    /// Every state.
    pub const ALL: [Self; 11] = [
        Self::Free,
        Self::Udp,
        Self::Icmp,
        Self::V4InitStored,
        Self::V4Init,
        Self::V6Init,
        Self::Established,
        Self::V4FinRcv,
        Self::V6FinRcv,
        Self::V6FinV4FinRcv,
        Self::Trans,
    ];

    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "closed",
            Self::Udp | Self::Icmp => "open",
            Self::V4InitStored => "v4 init, syn stored",
            Self::V4Init => "v4 init",
            Self::V6Init => "v6 init",
            Self::Established => "established",
            Self::V4FinRcv => "v4 fin rcv",
            Self::V6FinRcv => "v6 fin rcv",
            Self::V6FinV4FinRcv => "v6 fin + v4 fin rcv",
            Self::Trans => "trans",
        }
    }
}

/// What a packet is to the state machine.
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

/// What becomes of a session's lifetime.
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

        (S::V4InitStored | S::V4Init, Out, Segment::Syn) => (S::Established, Restart),
        (S::V4InitStored | S::V4Init, _, _) => (state, Keep),

        (S::V6Init, In, Segment::Syn) => (S::Established, Restart),
        (S::V6Init, Out, Segment::Syn) => (S::V6Init, Restart),
        (S::V6Init, _, _) => (S::V6Init, Keep),

        (S::Established, In, Segment::Fin) => (S::V4FinRcv, Keep),
        (S::Established, Out, Segment::Fin) => (S::V6FinRcv, Keep),
        (S::Established, _, Segment::Rst) => (S::Trans, Restart),
        (S::Established, _, Segment::Syn | Segment::Data) => (S::Established, Restart),

        (S::V4FinRcv, Out, Segment::Fin) => (S::V6FinV4FinRcv, Restart),
        (S::V4FinRcv, _, _) => (S::V4FinRcv, Restart),
        (S::V6FinRcv, In, Segment::Fin) => (S::V6FinV4FinRcv, Restart),
        (S::V6FinRcv, _, _) => (S::V6FinRcv, Restart),
        (S::V6FinV4FinRcv, _, _) => (S::V6FinV4FinRcv, Keep),

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

    /// Every row of RFC 6146 §3.5.2.2 for packets of an existing session, both directions.
    #[test]
    fn every_row_of_the_tcp_state_machine() {
        use Segment::{Data, Fin, Rst, Syn};
        let rows = [
            (V4InitStored, Out, Syn, Established, Restart),
            (V4InitStored, Out, Fin, V4InitStored, Keep),
            (V4InitStored, Out, Rst, V4InitStored, Keep),
            (V4InitStored, Out, Data, V4InitStored, Keep),
            (V4InitStored, In, Syn, V4InitStored, Keep),
            (V4InitStored, In, Fin, V4InitStored, Keep),
            (V4InitStored, In, Rst, V4InitStored, Keep),
            (V4InitStored, In, Data, V4InitStored, Keep),
            (V4Init, Out, Syn, Established, Restart),
            (V4Init, Out, Fin, V4Init, Keep),
            (V4Init, Out, Rst, V4Init, Keep),
            (V4Init, Out, Data, V4Init, Keep),
            (V4Init, In, Syn, V4Init, Keep),
            (V4Init, In, Fin, V4Init, Keep),
            (V4Init, In, Rst, V4Init, Keep),
            (V4Init, In, Data, V4Init, Keep),
            (V6Init, In, Syn, Established, Restart),
            (V6Init, In, Fin, V6Init, Keep),
            (V6Init, In, Rst, V6Init, Keep),
            (V6Init, In, Data, V6Init, Keep),
            (V6Init, Out, Syn, V6Init, Restart),
            (V6Init, Out, Fin, V6Init, Keep),
            (V6Init, Out, Rst, V6Init, Keep),
            (V6Init, Out, Data, V6Init, Keep),
            (Established, In, Fin, V4FinRcv, Keep),
            (Established, Out, Fin, V6FinRcv, Keep),
            (Established, In, Rst, Trans, Restart),
            (Established, Out, Rst, Trans, Restart),
            (Established, In, Syn, Established, Restart),
            (Established, Out, Syn, Established, Restart),
            (Established, In, Data, Established, Restart),
            (Established, Out, Data, Established, Restart),
            (V4FinRcv, Out, Fin, V6FinV4FinRcv, Restart),
            (V4FinRcv, Out, Syn, V4FinRcv, Restart),
            (V4FinRcv, Out, Rst, V4FinRcv, Restart),
            (V4FinRcv, Out, Data, V4FinRcv, Restart),
            (V4FinRcv, In, Fin, V4FinRcv, Restart),
            (V4FinRcv, In, Syn, V4FinRcv, Restart),
            (V4FinRcv, In, Rst, V4FinRcv, Restart),
            (V4FinRcv, In, Data, V4FinRcv, Restart),
            (V6FinRcv, In, Fin, V6FinV4FinRcv, Restart),
            (V6FinRcv, In, Syn, V6FinRcv, Restart),
            (V6FinRcv, In, Rst, V6FinRcv, Restart),
            (V6FinRcv, In, Data, V6FinRcv, Restart),
            (V6FinRcv, Out, Fin, V6FinRcv, Restart),
            (V6FinRcv, Out, Syn, V6FinRcv, Restart),
            (V6FinRcv, Out, Rst, V6FinRcv, Restart),
            (V6FinRcv, Out, Data, V6FinRcv, Restart),
            (V6FinV4FinRcv, Out, Data, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, Out, Syn, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, Out, Fin, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, Out, Rst, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, In, Data, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, In, Syn, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, In, Fin, V6FinV4FinRcv, Keep),
            (V6FinV4FinRcv, In, Rst, V6FinV4FinRcv, Keep),
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
    fn every_state_is_its_own_index() {
        for (index, state) in SessionState::ALL.iter().enumerate() {
            assert_eq!(*state as usize, index);
        }
    }
}
