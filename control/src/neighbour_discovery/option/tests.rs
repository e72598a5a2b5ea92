//! Options there and back, and what becomes of those that lie.

use super::*;
use crate::neighbour_discovery::ScaledLifetime;
use proptest::collection::vec;
use proptest::prelude::*;

fn octets(option: &NdOption) -> Vec<u8> {
    let mut out = Vec::new();
    option.emit(&mut out);
    out
}

fn prefix6(text: &str) -> Prefix6 {
    text.parse().unwrap()
}

#[test]
fn a_prefix_information_option_is_written_as_section_4_6_2_draws_it() {
    let option = NdOption::Prefix(PrefixInformation {
        prefix: prefix6("2001:db8:1::/64"),
        on_link: true,
        autonomous: true,
        valid: 0x0102_0304,
        preferred: 0x0506_0708,
    });
    let expected = [
        3, 4, 64, 0xc0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0,
    ];
    assert_eq!(octets(&option), expected);
}

#[test]
fn a_pref64_option_is_written_as_rfc_8781_draws_it() {
    let lifetime = ScaledLifetime::from_secs(1_800);
    let option = NdOption::Pref64(Pref64::new(prefix6("64:ff9b::/96"), lifetime).unwrap());
    assert_eq!(octets(&option), [38, 2, 0x07, 0x08, 0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]);
    let option = NdOption::Pref64(Pref64::new(prefix6("2001:db8::/32"), lifetime).unwrap());
    assert_eq!(octets(&option)[..8], [38, 2, 0x07, 0x0d, 0x20, 1, 0x0d, 0xb8]);
}

#[test]
fn a_route_takes_as_few_octets_as_its_length_needs() {
    for (text, length) in
        [("::/0", 8), ("2000::/3", 16), ("2001:db8::/64", 16), ("2001:db8::/65", 24), ("2001:db8::1/128", 24)]
    {
        let route = RouteInformation { prefix: prefix6(text), preference: Preference::Low, lifetime: 9 };
        let octets = octets(&NdOption::Route(route));
        assert_eq!((octets.len(), octets[1]), (length, (length / 8) as u8), "{text}");
        assert_eq!(octets[3], 0b0001_1000, "low");
        assert_eq!(NdOption::parse_all(&octets), Ok(vec![NdOption::Route(route)]));
    }
}

#[test]
fn a_routes_prefix_field_may_be_longer_than_needed_and_not_shorter() {
    let longer = [24, 3, 0, 0, 0, 0, 0, 9, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let default = RouteInformation { prefix: prefix6("::/0"), preference: Preference::Medium, lifetime: 9 };
    assert_eq!(NdOption::parse_all(&longer), Ok(vec![NdOption::Route(default)]));
    let shorter = [24, 2, 65, 0, 0, 0, 0, 9, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0];
    assert_eq!(NdOption::parse_all(&shorter), Ok(vec![]));
    let none = [24, 1, 1, 0, 0, 0, 0, 9];
    assert_eq!(NdOption::parse_all(&none), Ok(vec![]));
}

#[test]
fn a_route_with_the_reserved_preference_is_ignored() {
    let reserved = [24, 1, 0, 0b0001_0000, 0, 0, 0, 9];
    assert_eq!(NdOption::parse_all(&reserved), Ok(vec![]));
}

#[test]
fn a_search_list_is_uncompressed_and_padded_with_zeros() {
    let names = vec!["a.example".parse().unwrap(), "b".parse().unwrap()];
    let option = NdOption::Dnssl { lifetime: 7, names };
    let expected = *b"\x1f\x03\0\0\0\0\0\x07\x01a\x07example\0\x01b\0\0\0";
    assert_eq!(octets(&option), expected);
    assert_eq!(NdOption::parse_all(&expected), Ok(vec![option]));
}

/// RFC 1035 §3.1: labels of 63 octets, names of 255.
#[test]
fn names_as_long_as_they_may_be_come_back_and_longer_ones_do_not() {
    let name = |lengths: &[u8]| {
        let labels = lengths.iter().flat_map(|length| {
            std::iter::once(*length).chain(std::iter::repeat_n(b'a', usize::from(*length)))
        });
        labels.chain([0]).collect::<Vec<u8>>()
    };
    for (lengths, is_read) in [
        (&[63][..], true),
        (&[64], false),
        (&[63, 63, 63, 61], true),
        (&[63, 63, 63, 62], false),
        (&[1, 63, 63, 63, 59], true),
    ] {
        let mut option = vec![31, 0, 0, 0, 0, 0, 0, 9];
        option.extend(name(lengths));
        option.resize(option.len().next_multiple_of(8), 0);
        option[1] = (option.len() / 8) as u8;
        assert_eq!(NdOption::parse_all(&option).unwrap().len(), usize::from(is_read), "{lengths:?}");
    }
}

#[test]
fn search_lists_without_a_name_or_with_compression_are_discarded() {
    for body in [&b"\0\0\0\0\0\0\0\0"[..], b"\xc0\x08\0\0\0\0\0\0", b"\x09abcdefg", b"\0\x01a\0\0\0\0\0"] {
        let mut option = vec![31, 2, 0, 0, 0, 0, 0, 9];
        option.extend(body);
        assert_eq!(NdOption::parse_all(&option), Ok(vec![]), "{body:?}");
    }
}

#[test]
fn dns_servers_are_unicast_and_come_whole() {
    let mut option = vec![25, 3, 0, 0, 0, 0, 0, 9];
    option.extend("2001:db8::53".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(NdOption::parse_all(&option).unwrap().len(), 1);
    let mut multicast = option.clone();
    multicast[8] = 0xff;
    assert_eq!(NdOption::parse_all(&multicast), Ok(vec![]));
    let mut even = option.clone();
    even[1] = 4;
    even.extend([0; 8]);
    assert_eq!(NdOption::parse_all(&even), Ok(vec![]));
    assert_eq!(NdOption::parse_all(&[25, 1, 0, 0, 0, 0, 0, 9]), Ok(vec![]));
}

#[test]
fn a_portals_uri_is_padded_with_zeros_and_read_without() {
    let option = NdOption::CaptivePortal("https://portal.example/".to_owned());
    let octets = octets(&option);
    assert_eq!((octets.len(), octets[1], octets[31]), (32, 4, 0));
    assert_eq!(NdOption::parse_all(&octets), Ok(vec![option]));
    assert_eq!(NdOption::parse_all(&[37, 1, 0, 0, 0, 0, 0, 0]), Ok(vec![]));
    assert_eq!(NdOption::parse_all(&[37, 1, b'a', 0, b'b', 0, 0, 0]), Ok(vec![]));
    assert_eq!(NdOption::parse_all(&[37, 1, 0xff, 0xfe, 0, 0, 0, 0]), Ok(vec![]));
}

#[test]
fn options_of_wrong_size_are_skipped_and_the_rest_is_read() {
    let mtu = NdOption::Mtu(1_480);
    for wrong in [
        vec![3, 1, 64, 0xc0, 0, 0, 0, 1],
        [vec![5, 2], vec![0; 14]].concat(),
        [vec![38, 1], vec![0; 6]].concat(),
        [vec![38, 3], vec![0; 22]].concat(),
        [vec![3, 4, 129], vec![0; 29]].concat(),
        [vec![200, 2], vec![9; 14]].concat(),
    ] {
        let mut all = wrong.clone();
        mtu.emit(&mut all);
        assert_eq!(NdOption::parse_all(&all), Ok(vec![mtu.clone()]), "{wrong:?}");
    }
}

#[test]
fn lengths_of_zero_and_beyond_the_end_refuse_the_message() {
    assert_eq!(NdOption::parse_all(&[200, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::ZeroLengthOption));
    assert_eq!(NdOption::parse_all(&[5, 1, 0, 0, 0, 0, 5, 0, 5]), Err(Malformed::OptionBeyondEnd));
    assert_eq!(NdOption::parse_all(&[5, 2, 0, 0, 0, 0, 5, 0]), Err(Malformed::OptionBeyondEnd));
    assert_eq!(NdOption::parse_all(&[200]), Err(Malformed::OptionBeyondEnd));
}

#[test]
fn an_option_longer_than_its_length_field_can_say_is_left_out() {
    let servers = vec![Ipv6Addr::LOCALHOST; 128];
    let option = NdOption::Rdnss { lifetime: 1, servers };
    assert!(!option.fits());
    assert!(octets(&option).is_empty());
}

fn any_name() -> impl Strategy<Value = DomainName> {
    vec("[a-z0-9]{1,20}", 1..5).prop_map(|labels| labels.join(".").parse().unwrap())
}

fn any_prefix() -> impl Strategy<Value = Prefix6> {
    (any::<u128>(), 0u8..=128).prop_map(|(bits, length)| Prefix6::holding(Ipv6Addr::from_bits(bits), length))
}

fn any_preference() -> impl Strategy<Value = Preference> {
    prop::sample::select(vec![Preference::High, Preference::Medium, Preference::Low])
}

/// Any option, its contents as a sender may make them.
pub(in super::super) fn any_option() -> impl Strategy<Value = NdOption> {
    let server = (0x2000u16..0xfe00, any::<[u16; 7]>())
        .prop_map(|(first, [a, b, c, d, e, f, g])| Ipv6Addr::new(first, a, b, c, d, e, f, g));
    prop_oneof![
        any::<[u8; 6]>().prop_map(|address| NdOption::SourceLinkLayer(address.to_vec())),
        any::<[u8; 14]>().prop_map(|address| NdOption::TargetLinkLayer(address.to_vec())),
        (any_prefix(), any::<(bool, bool, u32, u32)>()).prop_map(
            |(prefix, (on_link, autonomous, valid, preferred))| NdOption::Prefix(PrefixInformation {
                prefix,
                on_link,
                autonomous,
                valid,
                preferred
            })
        ),
        any::<u32>().prop_map(NdOption::Mtu),
        (any_prefix(), any_preference(), any::<u32>()).prop_map(|(prefix, preference, lifetime)| {
            NdOption::Route(RouteInformation { prefix, preference, lifetime })
        }),
        (any::<u32>(), vec(server, 1..10))
            .prop_map(|(lifetime, servers)| NdOption::Rdnss { lifetime, servers }),
        (any::<u32>(), vec(any_name(), 1..5))
            .prop_map(|(lifetime, names)| NdOption::Dnssl { lifetime, names }),
        "[!-~]{1,255}".prop_map(NdOption::CaptivePortal),
        (any_prefix(), prop::sample::select(vec![32u8, 40, 48, 56, 64, 96]), any::<u32>()).prop_map(
            |(prefix, length, seconds)| {
                let prefix = Prefix6::holding(prefix.address(), length);
                NdOption::Pref64(Pref64::new(prefix, ScaledLifetime::from_secs(seconds)).unwrap())
            }
        ),
    ]
}

proptest! {
    #[test]
    fn every_option_comes_back_as_it_went(options in vec(any_option(), 0..6)) {
        let mut out = Vec::new();
        for option in &options {
            let before = out.len();
            option.emit(&mut out);
            prop_assert_eq!(out.len() - before, option.length());
        }
        prop_assert_eq!(NdOption::parse_all(&out), Ok(options));
    }

    #[test]
    fn options_cut_within_are_refused(option in any_option()) {
        let octets = octets(&option);
        for length in 1..octets.len() {
            prop_assert_eq!(NdOption::parse_all(&octets[..length]), Err(Malformed::OptionBeyondEnd));
        }
    }

    #[test]
    fn any_octets_are_options_or_none(octets in vec(any::<u8>(), 0..200)) {
        if let Ok(options) = NdOption::parse_all(&octets) {
            for option in options {
                let mut again = Vec::new();
                option.emit(&mut again);
                prop_assert_eq!(NdOption::parse_all(&again), Ok(vec![option]));
            }
        }
    }
}
