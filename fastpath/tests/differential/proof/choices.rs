//! Choices from a list of octets: a random one to try with, shorter and smaller ones to explain a failure with. An octet of zero is the
//! simplest choice, and behind the end there are only zeroes.

/// Where choices come from.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    octets: Vec<u8>,
    at: usize,
}

impl Choices {
    pub fn new(octets: Vec<u8>) -> Self {
        Self { octets, at: 0 }
    }

    /// Enough of them for one packet.
    pub fn random(random: &mut Random) -> Self {
        Self::new((0..12).flat_map(|_| random.next().to_le_bytes()).collect())
    }

    pub fn octet(&mut self) -> u8 {
        let octet = self.octets.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        octet
    }

    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    pub fn double(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.word()) % bound.max(1)
    }

    /// One time in this many.
    pub fn one_in(&mut self, times: u8) -> bool {
        self.octet() % times == times - 1
    }

    pub fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[usize::from(self.octet()) % some.len()]
    }

    /// A smaller list for which `fails` still holds.
    pub fn shrunk(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut best = Self::new(self.octets[..self.at.min(self.octets.len())].to_vec());
        if !fails(&best) {
            best = Self::new(self.octets.clone());
        }
        loop {
            let Some(better) = best.simpler().find(|one| fails(one)) else { return best };
            best = better;
        }
    }

    fn simpler(&self) -> impl Iterator<Item = Self> + '_ {
        let all = self.octets.len();
        let cut = (0..all).map(move |at| Self::new(self.octets[..at].to_vec()));
        let without = (0..all).flat_map(move |at| [4, 2, 1].map(|many| (at, many))).map(move |(at, many)| {
            let mut octets = self.octets.clone();
            octets.drain(at..(at + many).min(all));
            Self::new(octets)
        });
        let smaller = (0..all).flat_map(move |at| {
            let octet = self.octets[at];
            [0, octet / 2, octet.saturating_sub(1)]
                .map(|less| (at, less))
                .into_iter()
                .filter(move |(_, less)| *less < octet)
        });
        let smaller = smaller.map(|(at, less)| {
            let mut octets = self.octets.clone();
            octets[at] = less;
            Self::new(octets)
        });
        cut.chain(without).chain(smaller)
    }
}

/// splitmix64: the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
