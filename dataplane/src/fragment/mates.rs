//! Which packets of a stride may have a mate, another packet of their flow: with many flows most packets have none, and need not be examined.

/// Places, of which each holds the last packet whose ports fall there: few packets of a stride meet in one by chance.
const PLACES: usize = 2_048;
/// Bits of a packet's position in its stride.
const POSITION: u32 = 6;
/// Numbers of strides: they go around, and then the places are cleared.
const STRIDES: u16 = 1 << (16 - POSITION);

/// Finds the packets of a stride that may be joined to each other.
#[derive(Debug)]
pub struct Mates {
    /// In each place the number of a stride and a position in it. No stride has the number zero.
    places: Box<[u16; PLACES]>,
    stride: u16,
    paired: u64,
    others: u64,
}

impl Default for Mates {
    fn default() -> Self {
        Self { places: Box::new([0; PLACES]), stride: 0, paired: 0, others: 0 }
    }
}

impl Mates {
    /// A new stride begins, or the rest of one behind which nothing may be joined to what came before.
    #[inline]
    pub fn begin(&mut self) {
        (self.paired, self.others) = (0, 0);
        self.stride += 1;
        if self.stride == STRIDES {
            self.places.fill(0);
            self.stride = 1;
        }
    }

    /// The packet at this position has these ports: whatever has the same ones may be of its flow.
    #[inline(always)]
    pub fn add(&mut self, (source, destination): (u16, u16), at: u32) {
        let ports = u32::from(source) << 16 | u32::from(destination);
        let place = (ports.wrapping_mul(0x9e37_79b1) >> 21) as usize % PLACES;
        let before = core::mem::replace(&mut self.places[place], self.stride << POSITION | at as u16);
        if before >> POSITION == self.stride {
            self.paired |= 1 << (before % (1 << POSITION)) | 1_u64 << at;
        }
    }

    /// The packet at this position has no ports, and may be of any flow.
    #[inline]
    pub const fn add_unknown(&mut self, at: u32) {
        self.others |= 1 << at;
    }

    /// The packets that have to be examined to be joined, by their positions: those that may have a mate, and if there are any, those of
    /// unknown flows, behind which nothing is joined.
    #[inline]
    pub const fn candidates(&self) -> u64 {
        if self.paired == 0 { 0 } else { self.paired | self.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whoever_has_a_packet_with_the_same_ports_in_its_stride_is_a_candidate(
            strides in prop::collection::vec(prop::collection::vec(prop::option::of((0..40_u16, 0..3_u16)), 0..64), 1..20),
            first in prop_oneof![Just(0), STRIDES - 9..STRIDES - 1],
        ) {
            let mut mates = Mates { stride: first, ..Mates::default() };
            for stride in strides {
                mates.begin();
                for (at, ports) in (0..).zip(&stride) {
                    match ports {
                        Some(ports) => mates.add(*ports, at),
                        None => mates.add_unknown(at),
                    }
                }
                let found = mates.candidates();
                let count = |ports| stride.iter().filter(|one| **one == ports).count();
                let any = stride.iter().any(|one| one.is_some() && count(*one) > 1);
                for (at, ports) in stride.iter().enumerate() {
                    let has_mate = if ports.is_some() { count(*ports) > 1 } else { any };
                    prop_assert!(found >> at & 1 == 1 || !has_mate, "{at} of {stride:?}: {found:x}");
                }
            }
        }
    }

    #[test]
    fn flows_of_one_packet_each_are_nearly_all_left_alone() {
        let mut mates = Mates::default();
        let mut looked_into = 0;
        for stride in 0..1_500_u32 {
            mates.begin();
            for at in 0..64 {
                let port = 1_024 + ((stride * 64 + at).wrapping_mul(40_503) % 64_000) as u16;
                mates.add((port, 443), at);
            }
            looked_into += mates.candidates().count_ones();
        }
        assert!(looked_into < 1_500 * 64 / 10, "{looked_into}");
    }
}
