//! Blind mutation of corpus files, for machines without a guided fuzzer: the same seed gives the same octets.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The seed that every run has.
const FIXED: u64 = 0x5eed;

/// Runs `target` on each file of a corpus, and then on mutations of them: the share of `whole` that SIXWAY_TEST_BUDGET says, or for FUZZ_SECONDS if
/// that is set. Half of them are of the same seed each time, and half of a new one, which is printed; FUZZ_SEED sets it.
pub fn replay(corpus: &Path, whole: u32, target: impl Fn(&[u8])) {
    let count = sixway_trial::budget(whole);
    let mut files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", corpus.display());
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for (file, input) in files.iter().zip(&inputs) {
        run(input, &file.display().to_string(), &target);
    }
    let limit =
        std::env::var("FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    for seed in [FIXED, new_seed()] {
        if seed != FIXED {
            // Past the harness, which keeps what succeeding tests print to itself.
            let said = format!("replay of {}: FUZZ_SEED={seed}\n", corpus.display());
            let _ = std::io::stderr().write_all(said.as_bytes());
        }
        let (start, name) = (Instant::now(), format!("a mutation of FUZZ_SEED={seed}"));
        for (number, mutation) in (0..).zip(mutations(&inputs, seed)) {
            match limit {
                Some(limit) if start.elapsed() > limit / 2 => break,
                None if number == count / 2 => break,
                Some(_) | None => run(&mutation, &name, &target),
            }
        }
    }
}

/// The mutations that follow from a seed, without end.
pub fn mutations(inputs: &[Vec<u8>], seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Random(seed);
    std::iter::repeat_with(move || mutate(inputs, &mut random))
}

/// What FUZZ_SEED says, or another one each time.
fn new_seed() -> u64 {
    let wanted = std::env::var("FUZZ_SEED").ok();
    let wanted =
        wanted.map(|text| text.parse().unwrap_or_else(|_| panic!("FUZZ_SEED={text} is not a number")));
    wanted.unwrap_or_else(|| RandomState::new().hash_one(FIXED))
}

/// A panic names the octets that provoked it.
fn run(input: &[u8], name: &str, target: &impl Fn(&[u8])) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(input)));
    if let Err(panic) = outcome {
        let hex: String = input.iter().map(|octet| format!("{octet:02x}")).collect();
        eprintln!("{name} provoked it: {hex}");
        std::panic::resume_unwind(panic);
    }
}

fn mutate(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const TELLING: [u8; 10] = [0, 1, 4, 6, 17, 44, 58, 0x7f, 0x80, 0xff];
    let mut octets = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(4) {
        let length = octets.len();
        if length == 0 {
            return octets;
        }
        let at = random.below(length);
        match random.below(7) {
            0 => octets[at] ^= 1 << random.below(8),
            1 => octets[at] = TELLING[random.below(TELLING.len())],
            2 => octets[at] = random.next() as u8,
            3 => octets.truncate(at),
            // Sizes decide much: a few octets more, or fewer, at the end.
            4 if random.below(2) == 0 => octets.resize((length + random.below(64)).saturating_sub(32), 0),
            4 => octets.extend_from_within(at..),
            5 => drop(octets.drain(at..(at + 1 + random.below(16)).min(length))),
            _ => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len().max(1)).min(other.len());
                octets.truncate(at);
                octets.extend(&other[from..]);
            }
        }
    }
    octets
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
