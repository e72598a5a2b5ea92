//! Functions with a secret key, so that attackers cannot predict ports or forge collisions.
//!
//! Two of them, for two needs:
//! * [`Unpredictable`] draws ports (RFC 6056 §3.1). It is SipHash-2-4 of a counter: a pseudo-random function under a
//!   128-bit key, so some of its outputs reveal nothing about the next.
//! * [`TupleHash`] places tuples in tables. It runs for every packet, so it is NH (the universal hash of UMAC, RFC 4418
//!   §5.2): two different tuples that were chosen without the key collide with a probability of 2^-64 in its 128 bits,
//!   which a keyed multiply-shift then cuts to 32. Its outputs never leave the machine.

/// SipHash-2-4 of one 64-bit word (Aumasson and Bernstein, 2012).
pub const fn siphash_word(key: [u64; 2], word: u64) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    v[3] ^= word;
    v = sip_round(sip_round(v));
    v[0] ^= word;
    let length = 8 << 56;
    v[3] ^= length;
    v = sip_round(sip_round(v));
    v[0] ^= length;
    v[2] ^= 0xff;
    v = sip_round(sip_round(sip_round(sip_round(v))));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

const fn sip_round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32);
    a = a.wrapping_add(d);
    c = c.wrapping_add(b);
    d = d.rotate_left(21) ^ a;
    b = b.rotate_left(17) ^ c;
    [a, b, c.rotate_left(32), d]
}

/// What a key derived from the seed is for; keys of different purposes are unrelated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Drawing ports and addresses.
    Ports,
    /// Placing sessions by their inside tuple.
    SessionsOut,
    /// Placing sessions by their outside tuple.
    SessionsIn,
    /// Placing bindings by their inside endpoint.
    BindingsInside,
    /// Placing bindings by their outside endpoint.
    BindingsOutside,
    /// Placing inside hosts.
    Hosts,
    /// Placing the permits of address-dependent filtering.
    Permits,
    /// Placing subscribers.
    Subscribers,
    /// Placing quarantined ports.
    Quarantine,
    /// Placing softwires.
    Softwires,
}

/// A stream of numbers that cannot be predicted without the seed.
#[derive(Clone, Debug)]
pub struct Unpredictable {
    key: [u64; 2],
    counter: u64,
}

impl Unpredictable {
    /// The stream of this seed for one worker: each worker's is unrelated to the others'.
    pub fn new(seed: [u64; 2], purpose: Purpose, worker: u8) -> Self {
        let domain = u64::from(purpose as u8) << 56 | u64::from(worker) << 48;
        Self { key: [siphash_word(seed, domain), siphash_word(seed, domain | 1)], counter: 0 }
    }

    /// The next 64 bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        siphash_word(self.key, self.counter)
    }
}

/// The number in `0..bound` that 32 random bits represent.
#[inline]
pub const fn scale(random: u32, bound: u32) -> u32 {
    ((random as u64 * bound as u64) >> 32) as u32
}

/// A keyed hash of up to four words.
#[derive(Clone, Debug)]
pub struct TupleHash {
    keys: [u64; 4],
    finish: [u64; 2],
}

impl TupleHash {
    /// The hash of this seed for one purpose.
    pub fn new(seed: [u64; 2], purpose: Purpose) -> Self {
        let key = |n: u64| siphash_word(seed, u64::from(purpose as u8) << 56 | 1 << 40 | n);
        Self { keys: [key(0), key(1), key(2), key(3)], finish: [key(4) | 1, key(5) | 1] }
    }

    /// Hashes two words.
    #[inline]
    pub const fn pair(&self, a: u64, b: u64) -> u32 {
        self.tag(self.product(a, b, 0))
    }

    /// Hashes four words.
    #[inline]
    pub const fn quad(&self, [a, b, c, d]: [u64; 4]) -> u32 {
        self.tag(self.product(a, b, 0).wrapping_add(self.product(c, d, 2)))
    }

    #[inline]
    const fn product(&self, a: u64, b: u64, at: usize) -> u128 {
        a.wrapping_add(self.keys[at]) as u128 * b.wrapping_add(self.keys[at + 1]) as u128
    }

    #[inline]
    const fn tag(&self, nh: u128) -> u32 {
        let low = (nh as u64).wrapping_mul(self.finish[0]);
        let high = ((nh >> 64) as u64).wrapping_mul(self.finish[1]);
        (low.wrapping_add(high) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn siphash_agrees_with_the_vector_of_its_authors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash_word(key, 0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn another_seed_worker_or_purpose_is_another_stream() {
        let first = |seed, purpose, worker| Unpredictable::new(seed, purpose, worker).draw();
        let one = first([1, 2], Purpose::Ports, 0);
        assert_eq!(one, first([1, 2], Purpose::Ports, 0));
        assert_ne!(one, first([1, 3], Purpose::Ports, 0));
        assert_ne!(one, first([1, 2], Purpose::Ports, 1));
        assert_ne!(one, first([1, 2], Purpose::Hosts, 0));
    }

    #[test]
    fn neighbouring_tuples_spread_evenly() {
        let hash = TupleHash::new([7, 8], Purpose::SessionsOut);
        let mut slots = [0u32; 256];
        for port in 0..65_536u64 {
            slots[(hash.quad([0x2001_0db8, 1, port, 6]) >> 24) as usize] += 1;
        }
        let (least, most) = (slots.iter().min().unwrap(), slots.iter().max().unwrap());
        assert!(*least > 150 && *most < 380, "{least}..{most} of 256");
    }

    proptest! {
        #[test]
        fn a_scaled_number_is_below_its_bound(random: u32, bound in 1u32..) {
            prop_assert!(scale(random, bound) < bound);
        }
    }
}
