//! IPv4 addresses embedded in IPv6 ones, by a prefix (RFC 6052 §2.2).
//!
//! ```text
//!     PL  0              32  40  48  56  64  72  80  88  96  104         127
//!     32  | prefix        | v4(32)        | u | suffix                   |
//!     40  | prefix            | v4(24)    | u |(8)| suffix               |
//!     48  | prefix                | v4(16)| u | (16)  | suffix           |
//!     56  | prefix                    |(8)| u | v4(24)    | suffix       |
//!     64  | prefix                        | u | v4(32)        | suffix   |
//!     96  | prefix                                        | v4(32)       |
//! ```
//!
//! Octet u is zero. The suffix is written as zero and ignored when read.

use super::non_global::non_global;
use crate::drop_reason::DropReason;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// RFC 6052 §2.1: the well-known prefix, 64:ff9b::/96.
pub const WELL_KNOWN_PREFIX: Prefix6 = Prefix6::holding(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// RFC 6052 §2.2: the lengths a prefix may have, in bits.
pub const PREFIX_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

const MULTICAST: Prefix6 = Prefix6::holding(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8);
const LINK_LOCAL: Prefix6 = Prefix6::holding(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10);
const IPV4_COMPATIBLE: Prefix6 = Prefix6::holding(Ipv6Addr::UNSPECIFIED, 96);
const IPV4_MAPPED: Prefix6 = Prefix6::holding(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);

/// The octets below octet u, in the low half of an address.
const BELOW_OCTET_U: u64 = u64::MAX >> 8;

/// Why a prefix cannot embed IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rfc6052Error {
    /// The length is not one of [`PREFIX_LENGTHS`] (RFC 6052 §2.2).
    Length(u8),
    /// Bits 64 to 71 of a /96 are not zero (RFC 6052 §2.2).
    OctetU,
    /// The well-known prefix, or one that holds it, with a length other than 96 bits (RFC 6052 §2.2).
    WellKnownPrefixLength,
    /// Multicast addresses (RFC 4291 §2.7) do not belong to a host.
    Multicast,
    /// Link-local addresses (RFC 4291 §2.5.6) are not forwarded.
    LinkLocal,
    /// Overlaps ::/96, the unspecified, loopback and deprecated IPv4-compatible addresses (RFC 4291 §2.5).
    Ipv4Compatible,
    /// Overlaps ::ffff:0:0/96, for which hosts send IPv4 packets (RFC 6052 §4.2).
    Ipv4Mapped,
}

impl fmt::Display for Rfc6052Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(f, "the length is {length}; it must be 32, 40, 48, 56, 64 or 96 (RFC 6052 §2.2)")
            }
            Self::OctetU => f.write_str(
                "bits 64 to 71 must be zero; take a /64 and append four zero octets (RFC 6052 §2.2)",
            ),
            Self::WellKnownPrefixLength => f.write_str(
                "contains the well-known prefix, which must have length 96 (RFC 6052 §2.2); write 64:ff9b::/96 or a prefix of your own",
            ),
            Self::Multicast => f.write_str("must not be a multicast prefix (RFC 4291 §2.7); write a unicast prefix"),
            Self::LinkLocal => f.write_str("link-local addresses are not forwarded (RFC 4291 §2.5.6); write a prefix that is routed"),
            Self::Ipv4Compatible => f.write_str(
                "::/96 holds the unspecified and loopback addresses (RFC 4291 §2.5); choose another prefix",
            ),
            Self::Ipv4Mapped => f.write_str(
                "is the IPv4-mapped prefix, which hosts never send to as IPv6 (RFC 6052 §4.2); choose another prefix",
            ),
        }
    }
}

impl std::error::Error for Rfc6052Error {}

/// A translation prefix, made ready so that embedding and extracting are a few shifts without branches.
///
/// With `v4` as 64 bits, the half above octet u is `(v4 << 31) >> high_right` and the half below `v4 << low_left`, the
/// bits that do not belong falling off the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc6052 {
    high: u64,
    low: u64,
    /// The bits of both halves that are the prefix'.
    masks: (u64, u64),
    high_right: u8,
    high_left: u8,
    low_left: u8,
    /// Non-global IPv4 addresses are refused.
    global_only: bool,
    prefix: Prefix6,
}

impl Rfc6052 {
    /// Takes a prefix of one of the six lengths.
    ///
    /// `translate_non_global` lifts the rule of RFC 6052 §3.1 that the well-known prefix must not represent non-global
    /// IPv4 addresses; other prefixes have no such rule.
    pub fn new(prefix: Prefix6, translate_non_global: bool) -> Result<Self, Rfc6052Error> {
        let length = prefix.length();
        if !PREFIX_LENGTHS.contains(&length) {
            return Err(Rfc6052Error::Length(length));
        }
        if prefix.overlaps(MULTICAST) {
            return Err(Rfc6052Error::Multicast);
        }
        if prefix.overlaps(LINK_LOCAL) {
            return Err(Rfc6052Error::LinkLocal);
        }
        if prefix.overlaps(IPV4_COMPATIBLE) {
            return Err(Rfc6052Error::Ipv4Compatible);
        }
        if prefix.overlaps(IPV4_MAPPED) {
            return Err(Rfc6052Error::Ipv4Mapped);
        }
        if prefix.overlaps(WELL_KNOWN_PREFIX) && length != 96 {
            return Err(Rfc6052Error::WellKnownPrefixLength);
        }
        let (high, low) = halves(prefix.address());
        if low & !BELOW_OCTET_U != 0 {
            return Err(Rfc6052Error::OctetU);
        }
        Ok(Self {
            high,
            low,
            masks: halves(Ipv6Addr::from_bits(prefix.mask())),
            high_right: length.min(64) - 1,
            high_left: length.min(64) - 32,
            low_left: if length == 96 { 0 } else { 88 - length },
            global_only: prefix == WELL_KNOWN_PREFIX && !translate_non_global,
            prefix,
        })
    }

    /// The prefix.
    pub const fn prefix(&self) -> Prefix6 {
        self.prefix
    }

    /// Whether it is the well-known prefix 64:ff9b::/96.
    pub fn is_well_known(&self) -> bool {
        self.prefix == WELL_KNOWN_PREFIX
    }

    /// Whether non-global IPv4 addresses are refused (RFC 6052 §3.1).
    pub const fn is_global_only(&self) -> bool {
        self.global_only
    }

    /// Whether the address lies under the prefix.
    #[inline(always)]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        let (high, low) = halves(address);
        high & self.masks.0 == self.high && low & self.masks.1 == self.low
    }

    /// The IPv6 address that represents the IPv4 address (RFC 6052 §2.3); suffix and octet u are zero.
    ///
    /// Refuses [`DropReason::LinkLocalIpv4`] and [`DropReason::NonGlobalWithWellKnownPrefix`].
    #[inline]
    pub fn embed(&self, address: Ipv4Addr) -> Result<Ipv6Addr, DropReason> {
        refuse_link_local(address)?;
        self.permit(address)?;
        Ok(self.embed_any(address))
    }

    /// As [`Self::embed`], without the rule on non-global addresses: for sources of ICMP errors, which are translated in
    /// any case (RFC 7915 §4.1).
    #[inline]
    pub const fn embed_any(&self, address: Ipv4Addr) -> Ipv6Addr {
        let bits = address.to_bits() as u64;
        let high = self.high | (bits << 31) >> self.high_right;
        let low = self.low | (bits << self.low_left) & BELOW_OCTET_U;
        Ipv6Addr::from_bits((high as u128) << 64 | low as u128)
    }

    /// The IPv6 prefix of the addresses that represent those of an IPv4 prefix.
    pub fn embed_prefix(&self, prefix: Prefix4) -> Prefix6 {
        let (own, embedded) = (self.prefix.length(), prefix.length());
        // Octet u lies between the bits before 64 and those behind.
        let octet_u = if own < 96 && own + embedded > 64 { 8 } else { 0 };
        Prefix6::holding(self.embed_any(prefix.address()), own + octet_u + embedded)
    }

    /// The IPv4 address that an address under the prefix represents (RFC 6052 §2.3); the suffix is ignored (§2.2).
    /// The caller has asked [`Self::contains`].
    ///
    /// Refuses [`DropReason::OctetUNotZero`], [`DropReason::LinkLocalIpv4`] and
    /// [`DropReason::NonGlobalWithWellKnownPrefix`].
    #[inline(always)]
    pub fn extract(&self, address: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        let embedded = self.extract_any(address)?;
        refuse_link_local(embedded)?;
        self.permit(embedded)?;
        Ok(embedded)
    }

    /// As [`Self::extract`], without the rule on non-global addresses: for a caller that applies it elsewhere.
    ///
    /// Refuses [`DropReason::OctetUNotZero`].
    #[inline(always)]
    pub fn extract_any(&self, address: Ipv6Addr) -> Result<Ipv4Addr, DropReason> {
        let (high, low) = halves(address);
        if low & !BELOW_OCTET_U != 0 {
            return Err(DropReason::OctetUNotZero);
        }
        Ok(Ipv4Addr::from_bits((high << self.high_left | low >> self.low_left) as u32))
    }

    /// The rule of RFC 6052 §3.1: refuses [`DropReason::NonGlobalWithWellKnownPrefix`].
    #[inline]
    pub fn permit(&self, address: Ipv4Addr) -> Result<(), DropReason> {
        if self.global_only && non_global(address).is_some() {
            return Err(DropReason::NonGlobalWithWellKnownPrefix);
        }
        Ok(())
    }
}

/// RFC 3927 §2.7: routers do not forward packets from or to 169.254.0.0/16, where the metadata of cloud instances is. Refuses
/// [`DropReason::LinkLocalIpv4`]. Not for the sources of ICMP errors, which say where a path ends.
#[inline(always)]
pub const fn refuse_link_local(address: Ipv4Addr) -> Result<(), DropReason> {
    if address.is_link_local() { Err(DropReason::LinkLocalIpv4) } else { Ok(()) }
}

#[inline]
const fn halves(address: Ipv6Addr) -> (u64, u64) {
    let bits = address.to_bits();
    ((bits >> 64) as u64, bits as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 8215 §5: 64:ff9b:1::/48, for translation within a network; the rules on the well-known prefix do not apply to it.
    const LOCAL_USE_PREFIX: Prefix6 = Prefix6::holding(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48);

    fn translator(prefix: &str) -> Rfc6052 {
        Rfc6052::new(prefix.parse().unwrap(), false).unwrap()
    }

    fn refusal(prefix: &str) -> Rfc6052Error {
        Rfc6052::new(prefix.parse().unwrap(), false).unwrap_err()
    }

    fn four(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    fn six(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    /// RFC 6052 §2.4, Table 1.
    const TABLE_1: [(&str, &str); 6] = [
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
    ];

    #[test]
    fn addresses_are_embedded_as_table_1_shows() {
        for (prefix, embedded) in TABLE_1 {
            assert_eq!(translator(prefix).embed(four("192.0.2.33")), Ok(six(embedded)), "{prefix}");
        }
    }

    #[test]
    fn addresses_are_extracted_as_table_1_shows() {
        for (prefix, embedded) in TABLE_1 {
            assert!(translator(prefix).contains(six(embedded)));
            assert_eq!(translator(prefix).extract(six(embedded)), Ok(four("192.0.2.33")), "{prefix}");
        }
    }

    #[test]
    fn the_well_known_prefix_embeds_as_table_2_shows() {
        let lenient = Rfc6052::new(WELL_KNOWN_PREFIX, true).unwrap();
        assert_eq!(lenient.embed(four("192.0.2.33")), Ok(six("64:ff9b::192.0.2.33")));
        assert_eq!(lenient.extract(six("64:ff9b::192.0.2.33")), Ok(four("192.0.2.33")));
    }

    #[test]
    fn the_well_known_prefix_does_not_stand_for_non_global_addresses() {
        let strict = translator("64:ff9b::/96");
        for text in [
            "10.1.2.3",
            "192.168.0.1",
            "172.31.255.255",
            "100.64.0.1",
            "127.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            let embedded =
                Ipv6Addr::from_bits(WELL_KNOWN_PREFIX.address().to_bits() | u128::from(four(text).to_bits()));
            assert_eq!(strict.embed(four(text)), Err(DropReason::NonGlobalWithWellKnownPrefix));
            assert_eq!(strict.extract(embedded), Err(DropReason::NonGlobalWithWellKnownPrefix));
            assert_eq!(strict.embed_any(four(text)), embedded);
        }
        assert_eq!(strict.embed(four("8.8.8.8")), Ok(six("64:ff9b::808:808")));
        assert_eq!(strict.extract(six("64:ff9b::808:808")), Ok(four("8.8.8.8")));
    }

    #[test]
    fn link_local_addresses_are_refused_under_every_prefix() {
        for prefix in ["64:ff9b::/96", "2001:db8:64::/96", "2001:db8::/32"] {
            let prefix = Rfc6052::new(prefix.parse().unwrap(), true).unwrap();
            for (text, is_refused) in [
                ("169.253.255.255", false),
                ("169.254.0.0", true),
                ("169.254.255.255", true),
                ("169.255.0.0", false),
            ] {
                let refused = Err(DropReason::LinkLocalIpv4);
                assert_eq!(prefix.embed(four(text)) == refused, is_refused, "{text}");
                let embedded = prefix.embed_any(four(text));
                assert_eq!(prefix.extract(embedded) == Err(DropReason::LinkLocalIpv4), is_refused, "{text}");
            }
        }
    }

    #[test]
    fn the_rule_on_non_global_addresses_can_be_lifted() {
        let lenient = Rfc6052::new(WELL_KNOWN_PREFIX, true).unwrap();
        assert_eq!(lenient.embed(four("10.1.2.3")), Ok(six("64:ff9b::a01:203")));
        assert_eq!(lenient.extract(six("64:ff9b::a01:203")), Ok(four("10.1.2.3")));
    }

    #[test]
    fn other_prefixes_stand_for_non_global_addresses_too() {
        for prefix in ["2001:db8::/96", "64:ff9b:1::/48", "64:ff9b:1:fffe::/96", "64:ff9b:1:abcd:0:5431::/96"]
        {
            let any = translator(prefix);
            assert!(!any.is_global_only());
            assert_eq!(any.extract(any.embed(four("10.1.2.3")).unwrap()), Ok(four("10.1.2.3")), "{prefix}");
        }
    }

    #[test]
    fn every_length_of_local_use_prefix_works() {
        for length in [48, 56, 64, 96] {
            let prefix = Prefix6::new(LOCAL_USE_PREFIX.address(), length).unwrap();
            let local = Rfc6052::new(prefix, false).unwrap();
            assert_eq!(local.extract(local.embed(four("192.168.7.9")).unwrap()), Ok(four("192.168.7.9")));
        }
    }

    #[test]
    fn an_octet_u_that_is_not_zero_is_refused() {
        for (prefix, embedded) in &TABLE_1[..5] {
            let bits = six(embedded).to_bits() | 1 << 56;
            assert_eq!(translator(prefix).extract(Ipv6Addr::from_bits(bits)), Err(DropReason::OctetUNotZero));
            let bits = six(embedded).to_bits() | 0x80 << 56;
            assert_eq!(translator(prefix).extract(Ipv6Addr::from_bits(bits)), Err(DropReason::OctetUNotZero));
        }
    }

    #[test]
    fn the_suffix_is_ignored() {
        for ((prefix, embedded), suffix_bits) in TABLE_1.iter().zip([56, 48, 40, 32, 24, 0]) {
            let bits = six(embedded).to_bits() | ((1u128 << suffix_bits) - 1);
            assert_eq!(
                translator(prefix).extract(Ipv6Addr::from_bits(bits)),
                Ok(four("192.0.2.33")),
                "{prefix}"
            );
        }
    }

    #[test]
    fn prefixes_that_cannot_embed_say_why() {
        assert_eq!(refusal("2001:db8::/33"), Rfc6052Error::Length(33));
        assert_eq!(refusal("2001:db8::/0".replace("2001:db8", "").as_str()), Rfc6052Error::Length(0));
        assert_eq!(refusal("2001:db8::1/128"), Rfc6052Error::Length(128));
        assert_eq!(refusal("2001:db8:0:0:100::/96"), Rfc6052Error::OctetU);
        assert_eq!(refusal("64:ff9b::/64"), Rfc6052Error::WellKnownPrefixLength);
        assert_eq!(refusal("64:ff9b::/32"), Rfc6052Error::WellKnownPrefixLength);
        assert_eq!(refusal("ff0e::/96"), Rfc6052Error::Multicast);
        assert_eq!(refusal("fe80::/64"), Rfc6052Error::LinkLocal);
        assert_eq!(refusal("::/96"), Rfc6052Error::Ipv4Compatible);
        assert_eq!(refusal("::ffff:0:0/96"), Rfc6052Error::Ipv4Mapped);
        assert!(refusal("2001:db8::/95").to_string().contains("32, 40, 48, 56, 64 or 96"));
    }

    /// RFC 6052 §2.3 read literally: a list of octets, octet u inserted or removed.
    fn embed_slowly(prefix: Prefix6, address: Ipv4Addr) -> Ipv6Addr {
        let mut octets = prefix.address().octets()[..usize::from(prefix.length() / 8)].to_vec();
        octets.extend(address.octets());
        octets.resize(16, 0);
        if prefix.length() < 96 {
            octets.insert(8, 0);
            octets.truncate(16);
        }
        <[u8; 16]>::try_from(octets).unwrap().into()
    }

    proptest! {
        #[test]
        fn embedding_agrees_with_the_algorithm_and_extracting_undoes_it(
            bits: u128, which in 0usize..6, address: u32, suffix: u128
        ) {
            let length = PREFIX_LENGTHS[which];
            let network = Ipv6Addr::from_bits(bits >> 4 | 2 << 124);
            let prefix = Prefix6::holding(network, length);
            let prefix = if length == 96 { Prefix6::holding(Ipv6Addr::from_bits(prefix.address().to_bits() & !(0xff << 56)), 96) } else { prefix };
            let translator = Rfc6052::new(prefix, false).unwrap();
            let embedded = translator.embed(Ipv4Addr::from_bits(address)).unwrap();
            prop_assert_eq!(embedded, embed_slowly(prefix, Ipv4Addr::from_bits(address)));
            prop_assert!(translator.contains(embedded));
            prop_assert_eq!(translator.extract(embedded), Ok(Ipv4Addr::from_bits(address)));
            let suffix_bits = if length == 96 { 0 } else { 88 - u32::from(length) };
            let dirty = embedded.to_bits() | suffix & ((1 << suffix_bits) - 1);
            prop_assert_eq!(translator.extract(Ipv6Addr::from_bits(dirty)), Ok(Ipv4Addr::from_bits(address)));
        }
    }

    #[test]
    fn a_prefix_of_ipv4_is_a_prefix_of_ipv6() {
        for (prefix, four, six) in [
            ("2001:db8:64::/96", "198.51.100.0/24", "2001:db8:64::198.51.100.0/120"),
            ("2001:db8::/32", "198.51.100.0/24", "2001:db8:c633:6400::/56"),
            ("2001:db8::/32", "198.51.100.7/32", "2001:db8:c633:6407::/64"),
            ("2001:db8:100::/40", "198.51.100.0/24", "2001:db8:1c6:3364::/64"),
            ("2001:db8:100::/40", "198.51.100.128/25", "2001:db8:1c6:3364:80::/73"),
            ("2001:db8:122:344::/64", "198.51.100.0/24", "2001:db8:122:344:c6:3364::/96"),
        ] {
            let prefix = Rfc6052::new(prefix.parse().unwrap(), true).unwrap();
            assert_eq!(prefix.embed_prefix(four.parse().unwrap()), six.parse().unwrap(), "{four}");
        }
    }
}
