use super::*;
use proptest::prelude::*;

fn eam(four: &str, six: &str) -> Eam {
    (four.parse().unwrap(), six.parse().unwrap())
}

fn table(rows: &[(&str, &str)]) -> EamTable {
    EamTable::new(rows.iter().map(|(four, six)| eam(four, six))).unwrap()
}

/// RFC 7757 §3.2, Figure 1.
const FIGURE_1: [(&str, &str); 6] = [
    ("192.0.2.1", "2001:db8:aaaa::"),
    ("192.0.2.2/32", "2001:db8:bbbb::b/128"),
    ("192.0.2.16/28", "2001:db8:cccc::/124"),
    ("192.0.2.128/26", "2001:db8:dddd::/64"),
    ("192.0.2.192/29", "2001:db8:eeee:8::/62"),
    ("192.0.2.224/31", "64:ff9b::/127"),
];

/// RFC 7757 Appendix B, Figure 7, but for its last row.
const FIGURE_7: [(&str, &str); 11] = [
    ("192.0.2.1", "2001:db8:aaaa::"),
    ("192.0.2.2", "2001:db8:bbbb::b"),
    ("192.0.2.16", "2001:db8:cccc::"),
    ("192.0.2.24", "2001:db8:cccc::8"),
    ("192.0.2.31", "2001:db8:cccc::f"),
    ("192.0.2.128", "2001:db8:dddd::"),
    ("192.0.2.152", "2001:db8:dddd:0:6000::"),
    ("192.0.2.183", "2001:db8:dddd:0:dc00::"),
    ("192.0.2.191", "2001:db8:dddd:0:fc00::"),
    ("192.0.2.195", "2001:db8:eeee:9:8000::"),
    ("192.0.2.225", "64:ff9b::1"),
];

#[test]
fn addresses_are_mapped_both_ways_as_appendix_b_shows() {
    let table = table(&FIGURE_1);
    for (four, six) in FIGURE_7 {
        assert_eq!(table.to6(four.parse().unwrap()), Some(six.parse().unwrap()), "{four}");
        assert_eq!(table.to4(six.parse().unwrap()), Some(four.parse().unwrap()), "{six}");
        assert!(table.contains4(four.parse().unwrap()) && table.length6(six.parse().unwrap()).is_some());
    }
}

#[test]
fn an_address_in_no_row_has_no_mapping() {
    let table = table(&FIGURE_1);
    assert_eq!(table.to6("192.0.2.248".parse().unwrap()), None);
    assert_eq!(table.to4("64:ff9b::c000:2f8".parse().unwrap()), None);
    assert!(!table.contains4("192.0.2.248".parse().unwrap()));
    assert!(table.length6("64:ff9b::c000:2f8".parse().unwrap()).is_none());
    assert_eq!(EamTable::empty().to6("192.0.2.1".parse().unwrap()), None);
    assert_eq!(EamTable::empty().to4("::1".parse().unwrap()), None);
}

#[test]
fn a_prefix_length_that_is_left_out_means_a_host() {
    assert_eq!(table(&FIGURE_1).row(0), Some(eam("192.0.2.1/32", "2001:db8:aaaa::/128")));
}

#[test]
fn trailing_bits_are_zero_on_the_way_out_and_discarded_on_the_way_back() {
    let table = table(&[("192.0.2.128/26", "2001:db8:dddd::/64")]);
    assert_eq!(table.to6("192.0.2.191".parse().unwrap()), Some("2001:db8:dddd:0:fc00::".parse().unwrap()));
    assert_eq!(
        table.to4("2001:db8:dddd:0:ffff:ffff:ffff:ffff".parse().unwrap()),
        Some("192.0.2.191".parse().unwrap())
    );
}

#[test]
fn the_embedding_of_ivi_is_one_row() {
    let table = table(&[("0.0.0.0/0", "2001:db8:ff00::/40")]);
    assert_eq!(
        table.to6("198.51.100.64".parse().unwrap()),
        Some("2001:db8:ffc6:3364:4000::".parse().unwrap())
    );
    assert_eq!(
        table.to4("2001:db8:ffc6:3364:4000::".parse().unwrap()),
        Some("198.51.100.64".parse().unwrap())
    );
}

#[test]
fn each_column_takes_its_own_longest_match() {
    let table = table(&[("0.0.0.0/0", "2001:db8:ff00::/40"), ("198.51.100.64/32", "2001:db8::abcd/128")]);
    assert_eq!(
        table.to4("2001:db8:ffc6:3364:4000::".parse().unwrap()),
        Some("198.51.100.64".parse().unwrap())
    );
    assert_eq!(table.to6("198.51.100.64".parse().unwrap()), Some("2001:db8::abcd".parse().unwrap()));
    assert_eq!(
        table.to6("198.51.100.65".parse().unwrap()),
        Some("2001:db8:ffc6:3364:4100::".parse().unwrap())
    );
    let overlaps: Vec<_> = table.overlaps().collect();
    assert_eq!(overlaps, [EamOverlap { inner: 1, outer: 0, in_ipv4: true }]);
}

#[test]
fn equal_prefixes_are_refused_and_both_rows_named() {
    let rows =
        [("198.51.100.8", "2001:db8::1"), ("198.51.100.9", "2001:db8::1"), ("198.51.100.8", "2001:db8::2")];
    let errors = EamTable::new(rows.map(|(four, six)| eam(four, six))).unwrap_err();
    assert_eq!(errors[0].index, 1);
    assert_eq!(errors[0].kind, EamErrorKind::SameIpv6 { first: 0 });
    assert_eq!(errors[1].index, 2);
    assert_eq!(errors[1].kind, EamErrorKind::SameIpv4 { first: 0 });
    assert_eq!(errors.len(), 2);
    assert!(errors[1].to_string().starts_with("198.51.100.8/32 is in row 1 already"), "{}", errors[1]);
}

#[test]
fn equal_addresses_of_different_length_are_different_prefixes() {
    let table = table(&[("192.0.2.0/24", "2001:db8:1::/120"), ("192.0.2.0/32", "2001:db8:1::/128")]);
    assert_eq!(table.len(), 2);
    assert_eq!(table.to6("192.0.2.1".parse().unwrap()), Some("2001:db8:1::1".parse().unwrap()));
}

#[test]
fn a_longer_ipv4_suffix_is_refused() {
    let errors = EamTable::new([eam("198.51.100.8/29", "2001:db8:1::/126")]).unwrap_err();
    assert_eq!(errors[0].kind, EamErrorKind::SuffixTooLong);
    assert_eq!(
        errors[0].to_string(),
        "198.51.100.8/29 has 3 suffix bits, 2001:db8:1::/126 only 2; the IPv6 side must have at least as many suffix bits (RFC 7757 §3.2)"
    );
    assert!(EamTable::new([eam("198.51.100.8/29", "2001:db8:1::/125")]).is_ok());
}

#[test]
fn the_shortest_prefixes_work() {
    let table = table(&[("192.0.2.1/32", "::/0")]);
    assert_eq!(table.to6("192.0.2.1".parse().unwrap()), Some("::".parse().unwrap()));
    assert_eq!(table.to4("ffff::ffff".parse().unwrap()), Some("192.0.2.1".parse().unwrap()));
}

#[test]
fn rows_come_back_in_their_order() {
    let rows: Vec<Eam> = FIGURE_1.iter().map(|(four, six)| eam(four, six)).collect();
    assert_eq!(EamTable::new(rows.clone()).unwrap().iter().collect::<Vec<_>>(), rows);
}

#[test]
fn a_large_table_stays_below_eighty_octets_a_row() {
    let row = |n: u32| {
        let six = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(n));
        (Prefix4::holding(Ipv4Addr::from_bits(0x0a00_0000 + n), 32), Prefix6::holding(six, 128))
    };
    let table = EamTable::new((0..100_000).map(row)).unwrap();
    assert!(table.memory() < 80 * table.len(), "{} octets a row", table.memory() / table.len());
    for n in (0..100_000).step_by(997) {
        let (four, six) = row(n);
        assert_eq!(table.to6(four.address()), Some(six.address()));
        assert_eq!(table.to4(six.address()), Some(four.address()));
    }
}

/// The table as a list, searched from end to end.
struct Model(Vec<Eam>);

impl Model {
    fn to6(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        let (four, six) =
            *self.0.iter().filter(|row| row.0.contains(address)).max_by_key(|row| row.0.length())?;
        let mut bits = six.address().to_bits();
        for position in four.length()..32 {
            let bit = u128::from(address.to_bits() >> (31 - position) & 1);
            bits |= bit << (127 - (six.length() + position - four.length()));
        }
        Some(Ipv6Addr::from_bits(bits))
    }

    fn to4(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let (four, six) =
            *self.0.iter().filter(|row| row.1.contains(address)).max_by_key(|row| row.1.length())?;
        let mut bits = four.address().to_bits();
        for position in four.length()..32 {
            let bit = address.to_bits() >> (127 - (six.length() + position - four.length())) & 1;
            bits |= (bit as u32) << (31 - position);
        }
        Some(Ipv4Addr::from_bits(bits))
    }
}

/// Addresses with few different bits, so that prefixes overlap and addresses hit them.
fn crowded4() -> impl Strategy<Value = Ipv4Addr> {
    (0u32..16, 0u32..4).prop_map(|(low, high)| Ipv4Addr::from_bits(high << 30 | low << 14 | low))
}

fn crowded6() -> impl Strategy<Value = Ipv6Addr> {
    (0u128..8, 0u128..4, 0u128..16)
        .prop_map(|(low, high, middle)| Ipv6Addr::from_bits(high << 125 | middle << 62 | low))
}

prop_compose! {
    fn rows()(rows in prop::collection::vec((crowded4(), 0u8..=32, crowded6(), 0u8..=96), 1..24)) -> Vec<Eam> {
        let mut kept: Vec<Eam> = Vec::new();
        for (four, length, six, shorter) in rows {
            let row = (Prefix4::holding(four, length), Prefix6::holding(six, 96 + length - shorter.min(96 + length)));
            if kept.iter().all(|k| k.0 != row.0 && k.1 != row.1) {
                kept.push(row);
            }
        }
        kept
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn look_ups_agree_with_a_search_from_end_to_end(
        rows in rows(), fours in prop::collection::vec(crowded4(), 16), sixes in prop::collection::vec(crowded6(), 16)
    ) {
        let table = EamTable::new(rows.clone()).unwrap();
        prop_assert_eq!(table.iter().collect::<Vec<_>>(), rows.clone());
        let model = Model(rows);
        for four in fours {
            prop_assert_eq!(table.to6(four), model.to6(four), "{}", four);
            prop_assert_eq!(table.contains4(four), model.to6(four).is_some());
        }
        for six in sixes {
            prop_assert_eq!(table.to4(six), model.to4(six), "{}", six);
            prop_assert_eq!(table.length6(six).is_some(), model.to4(six).is_some());
        }
    }

    #[test]
    fn there_and_back_is_the_original_where_rows_do_not_overlap(length in 0u8..=32, more in 0u8..=96, four: u32, six: u128) {
        let row = (Prefix4::holding(Ipv4Addr::from_bits(four), length), Prefix6::holding(Ipv6Addr::from_bits(six), 96 + length - more.min(96 + length)));
        let table = EamTable::new([row]).unwrap();
        let there = table.to6(Ipv4Addr::from_bits(four)).unwrap();
        prop_assert!(row.1.contains(there));
        prop_assert_eq!(table.to4(there), Some(Ipv4Addr::from_bits(four)));
    }
}
