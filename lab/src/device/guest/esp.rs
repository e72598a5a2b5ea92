//! IPsec between two guests: all that the mechanism sends over IPv4, and native IPv6, in ESP (RFC 4303) with AES-GCM (RFC 4106). Keys are fixed: nothing
//! negotiates them.
//!
//! ESP is in tunnel mode, for a packet of transport mode is not seen again at the link after it was decrypted, and Sixway takes a tunnel's packets there.

use crate::failure::{Failure, Result};
use std::fmt::Write as _;
use std::net::IpAddr;

/// Modules of Debian's kernel. The last three make the random numbers by which initialisation vectors differ.
pub const MODULES: [&str; 10] = [
    "esp4",
    "esp6",
    "xfrm_user",
    "gcm",
    "ctr",
    "ghash-generic",
    "seqiv",
    "sha512_generic",
    "jitterentropy_rng",
    "drbg",
];

/// A key of 128 bits and a salt, and the length of the check value in bits.
const CIPHER: &str = "aead 'rfc4106(gcm(aes))' 0x5369787761792773206c61622069732061206c61 128";

/// What is protected between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair<'a> {
    /// Addresses of this end and the other one.
    ends: [IpAddr; 2],
    /// What is selected: this end's side, and the other one's.
    sides: [&'a str; 2],
}

/// The script for an end. `pairs` is a list of four words each: addresses of this end and of the other one, and prefixes behind this end and the other
/// one.
///
/// # Errors
/// It is not written so.
pub fn script(pairs: &str) -> Result<String> {
    let strange = || Failure::Unexpected(format!("{pairs:?} is not a list of ends and prefixes"));
    let words: Vec<&str> = pairs.split_whitespace().collect();
    let mut script = String::new();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err(strange());
    }
    for of_pair in words.chunks_exact(4) {
        let [own, other, near, far] = of_pair else { return Err(strange()) };
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| strange());
        protect(&mut script, Pair { ends: [address(own)?, address(other)?], sides: [near, far] });
    }
    Ok(script)
}

/// States and policies of both directions. Decrypted packets are the end's own, or are forwarded.
fn protect(script: &mut String, pair: Pair<'_>) {
    let Pair { ends: [own, other], sides: [near, far] } = pair;
    for (source, destination) in [(own, other), (other, own)] {
        // Each direction has its number, the same at both ends.
        let spi = if source < destination { 0x101 } else { 0x102 };
        writeln!(
            script,
            "ip xfrm state add src {source} dst {destination} proto esp spi {spi:#x} mode tunnel {CIPHER}"
        )
        .ok();
    }
    let directions = [("out", [near, far], [own, other]), ("in", [far, near], [other, own])];
    let forwarded = ("fwd", [far, near], [other, own]);
    for (direction, [from, to], [source, destination]) in directions.into_iter().chain([forwarded]) {
        writeln!(
            script,
            "ip xfrm policy add src {from} dst {to} dir {direction} \
             tmpl src {source} dst {destination} proto esp mode tunnel"
        )
        .ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_have_the_same_states_and_turned_policies() {
        let near = script("192.0.2.1 198.51.100.1 192.0.2.1/32 198.51.100.1/32").unwrap();
        let far = script("198.51.100.1 192.0.2.1 198.51.100.1/32 192.0.2.1/32").unwrap();
        let states = |script: &str| -> std::collections::BTreeSet<String> {
            script.lines().filter(|line| line.contains(" state ")).map(str::to_owned).collect()
        };
        assert_eq!((states(&near).len(), states(&near)), (2, states(&far)));
        let out =
            "policy add src 192.0.2.1/32 dst 198.51.100.1/32 dir out tmpl src 192.0.2.1 dst 198.51.100.1";
        let fwd =
            "policy add src 192.0.2.1/32 dst 198.51.100.1/32 dir fwd tmpl src 192.0.2.1 dst 198.51.100.1";
        assert!(near.contains(out) && !far.contains(out) && far.contains(fwd), "{near}{far}");
        // A packet of transport mode is not seen at the link again.
        assert!(near.lines().all(|line| line.contains("mode tunnel")), "{near}");
        let number = |line: &str| line.split("spi ").nth(1).map(|rest| rest[..5].to_owned());
        let numbers: Vec<_> = near.lines().filter_map(number).collect();
        assert_eq!(numbers, ["0x101", "0x102"].map(str::to_owned), "one for each direction");
        for wrong in ["", "192.0.2.1", "a b c d", "192.0.2.1 198.51.100.1 192.0.2.1/32"] {
            assert!(script(wrong).is_err(), "{wrong}");
        }
    }
}
