//! Which worker a subscriber belongs to: a keyed hash of the subscriber's prefix.
//!
//! It is computed twice, here and by the eBPF program that steers packets into the workers' queues, so it uses only what both can do: the
//! 32-bit words of the address, each times a 64-bit key, added up; the upper half of the sum says which worker (multiply-shift,
//! Dietzfelbinger 1996). Without the keys, an attacker cannot choose addresses that all belong to one worker.

use super::keyed::siphash_word;

/// The hash of one key, for prefixes of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    keys: [u64; 4],
    sum: u64,
    bits: u8,
}

impl Spread {
    /// The hash with this key of the first `bits` bits of an address.
    pub const fn new(key: [u64; 2], bits: u8) -> Self {
        let [a, b, c, d, sum] = [
            siphash_word(key, 1),
            siphash_word(key, 2),
            siphash_word(key, 3),
            siphash_word(key, 4),
            siphash_word(key, 5),
        ];
        Self { keys: [a, b, c, d], sum, bits }
    }

    /// Bits of an address that count.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// What the sum begins with.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Of each word of an address, first word first: the bits that count, and the key that they are multiplied with.
    pub fn words(&self) -> [(u32, u64); 4] {
        let mask = if self.bits == 0 { 0 } else { u128::MAX << (128 - u32::from(self.bits.min(128))) };
        core::array::from_fn(|place| ((mask >> (96 - 32 * place)) as u32, self.keys[place]))
    }

    /// The worker, of `workers`, that an address belongs to.
    #[inline]
    pub fn worker(&self, address: u128, workers: u8) -> u8 {
        let words = self.words().into_iter().enumerate();
        let sum = words.fold(self.sum, |sum, (place, (mask, key))| {
            let word = (address >> (96 - 32 * place)) as u32 & mask;
            sum.wrapping_add(u64::from(word).wrapping_mul(key))
        });
        (((sum >> 32) * u64::from(workers)) >> 32) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: u128 = 0x2001_0db8 << 96;

    #[test]
    fn a_subscriber_has_one_worker_and_subscribers_spread_evenly() {
        let spread = Spread::new([1, 2], 64);
        let mut workers = [0; 16];
        for subscriber in 0..16_000u128 {
            let network = HOST | subscriber << 64;
            let worker = spread.worker(network, 16);
            assert!((1..5u128).all(|host| spread.worker(network | (host * 0x1_0000_0001), 16) == worker));
            workers[usize::from(worker)] += 1;
        }
        assert!(workers.iter().all(|count| (700..1_300).contains(count)), "{workers:?}");
    }

    #[test]
    fn addresses_that_share_a_worker_under_one_key_are_spread_by_another() {
        let (one, other) = (Spread::new([1, 2], 64), Spread::new([3, 4], 64));
        let chosen = (0..40_000u128).map(|n| HOST | n << 64).filter(|host| one.worker(*host, 8) == 0);
        let mut workers = [0; 8];
        chosen.for_each(|host| workers[usize::from(other.worker(host, 8))] += 1);
        assert!(workers.iter().all(|count| (350..1_000).contains(count)), "{workers:?}");
    }

    #[test]
    fn a_prefix_may_have_any_length() {
        let spread = Spread::new([1, 2], 56);
        assert_eq!(spread.words().map(|(mask, _)| mask), [u32::MAX, 0xffff_ff00, 0, 0]);
        assert_eq!(spread.worker(HOST | 0xff << 64, 200), spread.worker(HOST, 200));
        assert_eq!(Spread::new([1, 2], 0).words().map(|(mask, _)| mask), [0; 4]);
        assert_eq!(Spread::new([1, 2], 128).words().map(|(mask, _)| mask), [u32::MAX; 4]);
    }
}
