//! A name to query: its records, and so the correct answer.

use super::expected::{Expected, embedded};
use super::flags::Flags;
use super::kind::Kind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The validation result of the records, or of the proof that there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The zone is not signed.
    Insecure,
    /// They are as they were signed.
    Secure,
    /// They are not, or the signatures have expired.
    Bogus,
}

/// A name.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Without its last dot.
    pub name: String,
    /// What there is.
    pub kind: Kind,
    /// Its A records.
    pub four: Vec<Ipv4Addr>,
    /// Its AAAA records, those that a DNS64 excludes among them.
    pub six: Vec<Ipv6Addr>,
    /// Of the A records and of the AAAA records.
    pub trust: [Trust; 2],
}

/// What is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The answer.
    pub expected: Expected,
    /// AD; `None` where both are right.
    pub authentic: Option<bool>,
}

impl Sample {
    /// Of a DNS64 that validates, by RFC 6147 §5.5: to a query for A records …
    pub fn right_a(&self, flags: Flags) -> Right {
        if !flags.checking_disabled && self.trust[0] == Trust::Bogus {
            return Right { expected: Expected::Failure, authentic: Some(false) };
        }
        let all = self.four.iter().copied().map(IpAddr::V4).collect();
        self.right(all, flags, self.trust[0] == Trust::Secure)
    }

    /// … and to a query for AAAA records; with CD alone it synthesises unvalidated.
    pub fn right_aaaa(&self, flags: Flags) -> Right {
        let all = |six: &[Ipv6Addr]| six.iter().copied().map(IpAddr::V6).collect::<Vec<_>>();
        if flags.checking_disabled && flags.dnssec_ok {
            return self.right(all(&self.six), flags, false);
        }
        let usable: Vec<_> = self.six.iter().copied().filter(|six| six.to_ipv4_mapped().is_none()).collect();
        let synthesises = usable.is_empty();
        let trusts = if synthesises { &self.trust[..] } else { &self.trust[1..] };
        if !flags.checking_disabled && trusts.contains(&Trust::Bogus) {
            return Right { expected: Expected::Failure, authentic: Some(false) };
        }
        let left_out = usable.len() != self.six.len();
        let secure = !left_out && trusts.iter().all(|trust| *trust == Trust::Secure);
        let made: Vec<_> = self.four.iter().map(|four| IpAddr::V6(embedded(*four))).collect();
        self.right(if synthesises { made } else { all(&usable) }, flags, secure)
    }

    fn right(&self, addresses: Vec<IpAddr>, flags: Flags, secure: bool) -> Right {
        let expected = match (self.kind, addresses.is_empty()) {
            (Kind::Missing | Kind::DanglingAlias, _) => Expected::NameError,
            (_, true) => Expected::Empty,
            (_, false) => Expected::Addresses(addresses),
        };
        let authentic = (!flags.checking_disabled).then_some(flags.dnssec_ok && secure);
        Right { expected, authentic }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(kind: Kind, six: &[&str], trust: [Trust; 2]) -> Sample {
        let six = six.iter().map(|six| six.parse().unwrap()).collect();
        Sample { name: "a.test".to_owned(), kind, four: vec![[45, 64, 0, 1].into()], six, trust }
    }

    const DO: Flags = Flags { dnssec_ok: true, ..Flags::NONE };
    const BOTH: Flags = Flags { checking_disabled: true, ..DO };

    fn addresses(all: &[&str]) -> Expected {
        Expected::Addresses(all.iter().map(|one| one.parse().unwrap()).collect())
    }

    #[test]
    fn the_three_cases_of_the_rfc() {
        let signed = sample(Kind::VersionFour, &[], [Trust::Secure; 2]);
        let made = addresses(&["64:ff9b::2d40:1"]);
        assert_eq!(signed.right_aaaa(Flags::NONE), Right { expected: made.clone(), authentic: Some(false) });
        assert_eq!(signed.right_aaaa(DO), Right { expected: made, authentic: Some(true) });
        assert_eq!(signed.right_aaaa(BOTH), Right { expected: Expected::Empty, authentic: None });
    }

    #[test]
    fn excluded_addresses_are_left_out_and_nothing_else_is_claimed() {
        let beside = sample(Kind::ExcludedBeside, &["::ffff:45.64.0.1", "2a00::1"], [Trust::Secure; 2]);
        assert_eq!(
            beside.right_aaaa(DO),
            Right { expected: addresses(&["2a00::1"]), authentic: Some(false) }
        );
        assert_eq!(beside.right_aaaa(BOTH).expected, addresses(&["::ffff:45.64.0.1", "2a00::1"]));
    }

    #[test]
    fn a_bogus_half_spoils_the_synthesis() {
        for trust in [[Trust::Bogus, Trust::Secure], [Trust::Secure, Trust::Bogus]] {
            let bad = sample(Kind::VersionFour, &[], trust);
            assert_eq!(bad.right_aaaa(Flags::NONE).expected, Expected::Failure);
        }
    }
}
