//! The PREF64 option (RFC 8781): the NAT64 prefix of a network.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------+-----+
//! |   Type 38     |   Length 2    |     Scaled Lifetime     | PLC |
//! +---------------+---------------+-------------------------+-----+
//! |                Highest 96 bits of the prefix                  |
//! +---------------------------------------------------------------+
//! ```

use core::fmt;
use core::net::Ipv6Addr;
use sixway_wire::Prefix6;

/// RFC 8781 §4: prefix lengths by their code (PLC).
const LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];

/// A lifetime in units of 8 s, in 13 bits (RFC 8781 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaledLifetime(u16);

impl ScaledLifetime {
    /// The prefix SHOULD NOT be used any more.
    pub const ZERO: Self = Self(0);
    /// RFC 8781 §4.1: 65,528 s, the greatest there is.
    pub const MAX: Self = Self(8_191);

    /// Rounds seconds up to the next multiple of 8 that is smaller than 65,536 (§4.1): only zero becomes zero.
    pub const fn from_secs(seconds: u32) -> Self {
        let scaled = seconds.div_ceil(8);
        if scaled > Self::MAX.0 as u32 { Self::MAX } else { Self(scaled as u16) }
    }

    /// The lifetime in seconds.
    pub const fn as_secs(self) -> u32 {
        self.0 as u32 * 8
    }
}

/// Why the option cannot carry a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pref64Error;

impl fmt::Display for Pref64Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a NAT64 prefix has a length of 32, 40, 48, 56, 64 or 96 (RFC 8781 §4)")
    }
}

impl core::error::Error for Pref64Error {}

/// A NAT64 prefix with its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pref64 {
    prefix: Prefix6,
    code: u8,
    /// How long hosts may use the prefix.
    pub lifetime: ScaledLifetime,
}

impl Pref64 {
    /// The option's length on the wire, in units of 8 octets.
    pub(super) const UNITS: usize = 2;

    /// A prefix of one of the six lengths of RFC 6052.
    pub fn new(prefix: Prefix6, lifetime: ScaledLifetime) -> Result<Self, Pref64Error> {
        let code = LENGTHS.iter().position(|length| *length == prefix.length()).ok_or(Pref64Error)?;
        Ok(Self { prefix, code: code as u8, lifetime })
    }

    /// The prefix.
    pub const fn prefix(&self) -> Prefix6 {
        self.prefix
    }

    /// Reads the option behind its length; `None` for a code that represents no length, or another size (§4: ignored).
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let body: &[u8; 14] = body.try_into().ok()?;
        let field = u16::from_be_bytes([body[0], body[1]]);
        let code = (field & 7) as u8;
        let length = *LENGTHS.get(usize::from(code))?;
        let mut octets = [0; 16];
        octets[..12].copy_from_slice(&body[2..]);
        let prefix = Prefix6::holding(Ipv6Addr::from(octets), length);
        Some(Self { prefix, code, lifetime: ScaledLifetime(field >> 3) })
    }

    /// Writes the option behind its length.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend((self.lifetime.0 << 3 | u16::from(self.code)).to_be_bytes());
        out.extend(&self.prefix.address().octets()[..12]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The words of RFC 8781 §4.1 one after another, slowly.
    fn slow_scaled(seconds: u32) -> u32 {
        if seconds == 0 {
            return 0;
        }
        if seconds < 8 {
            return 1;
        }
        let mut rounded = seconds;
        while !rounded.is_multiple_of(8) && rounded < u32::MAX {
            rounded += 1;
        }
        while rounded >= 65_536 || !rounded.is_multiple_of(8) {
            rounded = rounded.min(65_536) - 1;
        }
        rounded / 8
    }

    #[test]
    fn every_lifetime_of_a_day_is_scaled_as_section_4_1_says() {
        for seconds in 0..86_400 {
            assert_eq!(u32::from(ScaledLifetime::from_secs(seconds).0), slow_scaled(seconds), "{seconds} s");
        }
        assert_eq!(ScaledLifetime::from_secs(u32::MAX).as_secs(), 65_528);
        assert_eq!(ScaledLifetime::MAX.as_secs(), 65_528);
    }

    #[test]
    fn a_lifetime_under_eight_seconds_is_not_zero_and_zero_stays_zero() {
        for seconds in 1..=8 {
            assert_eq!(ScaledLifetime::from_secs(seconds).as_secs(), 8);
        }
        assert_eq!(ScaledLifetime::from_secs(0), ScaledLifetime::ZERO);
    }

    #[test]
    fn six_lengths_have_codes_and_no_other() {
        for length in 0..=128u8 {
            let prefix = Prefix6::holding("64:ff9b:1:fffe::".parse().unwrap(), length);
            let code = Pref64::new(prefix, ScaledLifetime::MAX).map(|option| option.code);
            let expected = match length {
                96 => Ok(0),
                64 => Ok(1),
                56 => Ok(2),
                48 => Ok(3),
                40 => Ok(4),
                32 => Ok(5),
                _ => Err(Pref64Error),
            };
            assert_eq!(code, expected, "/{length}");
        }
    }

    #[test]
    fn codes_6_and_7_and_other_sizes_are_ignored() {
        for code in 0..8 {
            let mut body = [0; 14];
            body[1] = code;
            assert_eq!(Pref64::parse(&body).is_some(), code < 6);
        }
        assert_eq!(Pref64::parse(&[0; 22]), None);
        assert_eq!(Pref64::parse(&[0; 6]), None);
    }

    proptest! {
        #[test]
        fn scaling_rounds_up_by_less_than_a_unit(seconds in 0u32..65_528) {
            let scaled = ScaledLifetime::from_secs(seconds).as_secs();
            prop_assert!(scaled >= seconds && scaled - seconds < 8);
        }

        #[test]
        fn there_and_back(bits: u128, code in 0usize..6, seconds: u32) {
            let prefix = Prefix6::holding(Ipv6Addr::from_bits(bits), LENGTHS[code]);
            let option = Pref64::new(prefix, ScaledLifetime::from_secs(seconds)).unwrap();
            let mut body = Vec::new();
            option.emit(&mut body);
            prop_assert_eq!(Pref64::parse(&body), Some(option));
        }
    }
}
