//! The account of numbered packets that arrive: which came for the first time, which again, which behind a later one of their flow.

/// What a packet is by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It came for the first time, in its order.
    Next,
    /// It came for the first time, after a later one of its flow (RFC 4737 §3: reordered).
    Behind,
    /// It had come before.
    Again,
    /// There is no such packet or flow.
    Unknown,
}

/// The packets of one load that have arrived: one bit for each. Its numbers are those of the whole load, and rise in each flow.
#[derive(Clone, Debug)]
pub struct Arrivals {
    seen: Vec<u64>,
    /// For each flow, one more than its highest number.
    next: Vec<u32>,
    /// Numbers from here on are not ours.
    limit: u32,
    count: u64,
}

impl Arrivals {
    /// For this number of flows, and numbers below `limit`.
    pub fn new(flows: u16, limit: u32) -> Self {
        Self { seen: Vec::new(), next: vec![0; flows.into()], limit, count: 0 }
    }

    /// Notes a packet.
    pub fn note(&mut self, flow: u16, sequence: u32) -> Arrival {
        let Some(next) = self.next.get_mut(usize::from(flow)) else { return Arrival::Unknown };
        if sequence >= self.limit {
            return Arrival::Unknown;
        }
        let (word, bit) = (sequence as usize / 64, 1_u64 << (sequence % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        let seen = &mut self.seen[word];
        if *seen & bit != 0 {
            return Arrival::Again;
        }
        *seen |= bit;
        self.count += 1;
        if sequence < *next {
            return Arrival::Behind;
        }
        *next = sequence + 1;
        Arrival::Next
    }

    /// The highest number below this one of which no packet has arrived.
    pub fn last_missing(&self, below: u32) -> Option<u32> {
        (0..below.div_ceil(64)).rev().find_map(|word| {
            let seen = self.seen.get(word as usize).copied().unwrap_or(0);
            // Numbers that are not asked about count as seen.
            let beyond = u64::MAX.checked_shl((below - word * 64).min(64)).unwrap_or(0);
            let missing = !(seen | beyond);
            (missing != 0).then(|| word * 64 + 63 - missing.leading_zeros())
        })
    }

    /// How many different packets have arrived.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::random::Random;

    #[test]
    fn what_is_reordered_by_three_is_counted_once() {
        let mut arrivals = Arrivals::new(1, 10);
        let order = [0, 2, 3, 4, 1, 5];
        assert_eq!(
            order.map(|number| arrivals.note(0, number)),
            [Arrival::Next, Arrival::Next, Arrival::Next, Arrival::Next, Arrival::Behind, Arrival::Next]
        );
        assert_eq!((arrivals.note(0, 1), arrivals.note(0, 10)), (Arrival::Again, Arrival::Unknown));
        assert_eq!((arrivals.note(1, 6), arrivals.count()), (Arrival::Unknown, 6));
    }

    #[test]
    fn packets_of_different_flows_are_not_reordered_by_each_other() {
        let mut arrivals = Arrivals::new(2, 10);
        assert_eq!(
            [(0, 4), (1, 1), (0, 2), (1, 3)].map(|(flow, number)| arrivals.note(flow, number)),
            [Arrival::Next, Arrival::Next, Arrival::Behind, Arrival::Next]
        );
    }

    /// All that arrived is kept in a list and searched from end to end.
    #[test]
    fn a_model_that_searches_a_list_agrees_in_any_order() {
        for seed in 0..50 {
            let mut random = Random(seed);
            let (mut arrivals, mut list) = (Arrivals::new(3, 400), Vec::<(u16, u32)>::new());
            for _ in 0..600 {
                let sequence = (random.number() % 420) as u32;
                let flow = (sequence % 3) as u16;
                let expected = if sequence >= 400 {
                    Arrival::Unknown
                } else if list.contains(&(flow, sequence)) {
                    Arrival::Again
                } else if list.iter().any(|(other, number)| *other == flow && *number > sequence) {
                    Arrival::Behind
                } else {
                    Arrival::Next
                };
                assert_eq!(arrivals.note(flow, sequence), expected, "seed {seed}");
                if sequence < 400 && expected != Arrival::Again {
                    list.push((flow, sequence));
                }
            }
            assert_eq!(arrivals.count(), list.len() as u64);
            for below in [0, 1, 63, 64, 65, 400, 500] {
                let missing = (0..below).rev().find(|number| !list.iter().any(|(_, seen)| seen == number));
                assert_eq!(arrivals.last_missing(below), missing, "seed {seed}: below {below}");
            }
        }
    }
}
