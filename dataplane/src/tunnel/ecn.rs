//! Explicit congestion notification through a tunnel (RFC 6040): what the outer header says inbound, and what the inner
//! one says outbound. Both headers of a tunnel have the field in the last two bits of TOS or Traffic Class.
//!
//! ```text
//!   inner \ outer | Not-ECT   ECT(0)         ECT(1)         CE
//!   Not-ECT       | Not-ECT   Not-ECT (!!!)  Not-ECT (!!!)  dropped (!!!)
//!   ECT(0)        | ECT(0)    ECT(0)         ECT(1)         CE
//!   ECT(1)        | ECT(1)    ECT(1) (!)     ECT(1)         CE
//!   CE            | CE        CE             CE (!!!)       CE
//! ```

use crate::counters::Counters;
use crate::drop_reason::DropReason;

/// The bits of the field in TOS or Traffic Class (RFC 3168 §5).
pub const ECN: u8 = 0b11;
/// Not ECN-capable (RFC 3168 §5).
pub const NOT_ECT: u8 = 0b00;
/// ECN-capable, codepoint ECT(1).
pub const ECT_1: u8 = 0b01;
/// ECN-capable, codepoint ECT(0).
pub const ECT_0: u8 = 0b10;
/// Congestion experienced.
pub const CE: u8 = 0b11;

/// How the tunnel's ingress treats the ECN field (RFC 6040 §4.1, §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The outer field is the inner one: the egress is known to follow RFC 6040.
    Normal,
    /// The outer field is Not-ECT: the egress may know nothing of ECN.
    #[default]
    Compatibility,
}

impl Ecn {
    /// The outer field for an inner one; of both only the two bits (RFC 6040 §4.1, Figure 3).
    #[inline]
    pub const fn outer(self, inner: u8) -> u8 {
        match self {
            Self::Normal => inner & ECN,
            Self::Compatibility => NOT_ECT,
        }
    }
}

/// How suspicious a combination is that no sender makes today (RFC 6040 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// "(!)": possibly dangerous.
    Possibly,
    /// "(!!!)": always potentially dangerous.
    Dangerous,
}

/// The field that leaves the tunnel, and what is to be said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// The outgoing field; `None`: the packet is dropped.
    pub field: Option<u8>,
    /// Set where the RFC would have it logged.
    pub anomaly: Option<Anomaly>,
}

/// What a decapsulator makes of the arriving fields; of both only the two bits count (RFC 6040 §4.2, Figure 4).
#[inline]
pub const fn combine(inner: u8, outer: u8) -> Combined {
    let (inner, outer) = (inner & ECN, outer & ECN);
    let field = match (inner, outer) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (CE, _) | (_, CE) => Some(CE),
        (ECT_1, _) | (_, ECT_1) => Some(ECT_1),
        (_, _) => Some(ECT_0),
    };
    let anomaly = match (inner, outer) {
        (NOT_ECT, ECT_0 | ECT_1 | CE) | (CE, ECT_1) => Some(Anomaly::Dangerous),
        (ECT_1, ECT_0) => Some(Anomaly::Possibly),
        (_, _) => None,
    };
    Combined { field, anomaly }
}

/// The inner Traffic Class as it leaves the tunnel: its DSCP stays (RFC 2983 §4.1, the pipe model), its ECN field is combined with
/// the outer header's. Unusual combinations are counted, which is what RFC 6040 §4.2 asks to log.
///
/// Fails with [`DropReason::InnerNotEct`] when a mark would be lost.
#[inline]
pub fn decap(inner: u8, outer: u8, counters: &mut Counters) -> Result<u8, DropReason> {
    if outer & ECN == NOT_ECT {
        return Ok(inner);
    }
    let Combined { field, anomaly } = combine(inner, outer);
    match anomaly {
        None => {}
        Some(Anomaly::Possibly) => counters.ecn_possibly_dangerous += 1,
        Some(Anomaly::Dangerous) => counters.ecn_dangerous += 1,
    }
    let field = field.ok_or(DropReason::InnerNotEct)?;
    Ok(inner & !ECN | field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_field_is_that_of_figure_3() {
        for (inner, compatibility, normal) in
            [(NOT_ECT, NOT_ECT, NOT_ECT), (ECT_0, NOT_ECT, ECT_0), (ECT_1, NOT_ECT, ECT_1), (CE, NOT_ECT, CE)]
        {
            for dscp in [0, 0x2e, 0x3f] {
                assert_eq!(Ecn::Compatibility.outer(dscp << 2 | inner), compatibility);
                assert_eq!(Ecn::Normal.outer(dscp << 2 | inner), normal);
            }
        }
    }

    /// An outgoing field, `None` for a drop, and its marks.
    type Cell = (Option<u8>, &'static str);
    /// Figure 4, row by row as it is printed: inner, then the cells for outer Not-ECT, ECT(0), ECT(1), CE.
    const FIGURE_4: [(u8, [Cell; 4]); 4] = [
        (NOT_ECT, [(Some(NOT_ECT), ""), (Some(NOT_ECT), "!!!"), (Some(NOT_ECT), "!!!"), (None, "!!!")]),
        (ECT_0, [(Some(ECT_0), ""), (Some(ECT_0), ""), (Some(ECT_1), ""), (Some(CE), "")]),
        (ECT_1, [(Some(ECT_1), ""), (Some(ECT_1), "!"), (Some(ECT_1), ""), (Some(CE), "")]),
        (CE, [(Some(CE), ""), (Some(CE), ""), (Some(CE), "!!!"), (Some(CE), "")]),
    ];

    #[test]
    fn every_combination_leaves_as_figure_4_says_and_the_dscp_stays() {
        for (inner, row) in FIGURE_4 {
            for (outer, (field, marks)) in [NOT_ECT, ECT_0, ECT_1, CE].into_iter().zip(row) {
                let combined = combine(inner, outer);
                assert_eq!(combined.field, field, "inner {inner:02b}, outer {outer:02b}");
                let anomaly = match marks {
                    "" => None,
                    "!" => Some(Anomaly::Possibly),
                    _ => Some(Anomaly::Dangerous),
                };
                assert_eq!(combined.anomaly, anomaly, "inner {inner:02b}, outer {outer:02b}");
                let (inner, outer) = (0xb8 | inner, 0x28 | outer);
                let mut counters = Counters::default();
                assert_eq!(
                    decap(inner, outer, &mut counters),
                    field.map_or(Err(DropReason::InnerNotEct), |field| Ok(0xb8 | field))
                );
                let counted = (counters.ecn_possibly_dangerous, counters.ecn_dangerous);
                assert_eq!(counted, (u64::from(marks == "!"), u64::from(marks == "!!!")));
            }
        }
    }
}
