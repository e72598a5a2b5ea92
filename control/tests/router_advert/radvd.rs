//! An advertisement as radvd 2.19 sent it, compared with ours with the same settings.

use super::*;
use sixway_control::neighbour_discovery::Preference;
use sixway_control::router_advert::{AdvertisedPrefix, AdvertisedRoute};

/// A prefix, a route, two DNS servers, two search domains, an MTU and the link-layer address.
const RADVD: &str = "6003b87900a83afffe80000000000000000000fffe000001ff0200000000000000000000000000018600d9bc4048001e00007530000003e8\
    030440c00000151800000a8c0000000020010db8000100000000000000000000\
    180320180000070820010db8000000000000000000000000\
    190500000000070820010db800000000000000000000005320010db8000000000000000000000054\
    1f050000000007080473697465076578616d706c6500076578616d706c6503636f6d000000000000\
    0501000000000578\
    0101020000000001";

fn radvds() -> Vec<u8> {
    let digits: Vec<u8> = RADVD.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

fn ours() -> Vec<u8> {
    let address = "fe80::ff:fe00:1".parse().unwrap();
    let link = Link::Multicast { address, link_layer: Some([2, 0, 0, 0, 0, 1]), mtu: 1_500 };
    let route = AdvertisedRoute {
        prefix: prefix("2001:db8::/32"),
        preference: Preference::Low,
        lifetime: Some(1_800),
    };
    let settings = Settings {
        max_interval: 10,
        router_lifetime: Some(30),
        preference: Preference::High,
        other: true,
        reachable_time: 30_000,
        retrans_timer: 1_000,
        mtu: Some(1_400),
        prefixes: vec![AdvertisedPrefix::changing(prefix("2001:db8:1::/64"))],
        routes: vec![route],
        dns_servers: vec!["2001:db8::53".parse().unwrap(), "2001:db8::54".parse().unwrap()],
        dns_search: vec!["site.example".parse().unwrap(), "example.com".parse().unwrap()],
        dns_lifetime: Some(1_800),
        ..Settings::default()
    };
    let mut site = Site::with_seed(link, settings, 1);
    site.pass(Duration::from_secs(1));
    site.sent[0].1.packet()
}

/// The options of an advertisement in octets, sorted: their order means nothing (RFC 4861 §9).
fn options(packet: &[u8]) -> Vec<&[u8]> {
    let mut rest = &packet[40 + 16..];
    let mut options = Vec::new();
    while !rest.is_empty() {
        let (option, behind) = rest.split_at(usize::from(rest[1]) * 8);
        options.push(option);
        rest = behind;
    }
    options.sort_unstable();
    options
}

#[test]
fn radvds_advertisement_and_ours_say_the_same_octet_for_octet_but_for_a_shorter_route() {
    let (theirs, ours) = (radvds(), ours());
    let fixed = |packet: &[u8]| [packet[8..42].to_vec(), packet[44..56].to_vec()].concat();
    assert_eq!(fixed(&ours), fixed(&theirs), "addresses, and all of the fixed part but the checksum");
    for (ours, theirs) in options(&ours).into_iter().zip(options(&theirs)) {
        match ours[0] {
            // RFC 4191 §2.3: 16 octets are enough for a /32; radvd takes 24.
            24 => assert_eq!((ours[1], theirs[1], &ours[2..]), (2, 3, &theirs[2..16])),
            _ => assert_eq!(ours, theirs),
        }
    }
}

#[test]
fn radvds_advertisement_is_a_good_one_and_contradicts_nothing() {
    let theirs = radvds();
    let received = Received::from_packet(&theirs).unwrap();
    let Message::RouterAdvertisement(said) = Message::parse(&received).unwrap() else { panic!() };
    let mut options = said.options.clone();
    let ours = ours();
    let our_own = Received::from_packet(&ours).unwrap();
    let Message::RouterAdvertisement(our_own) = Message::parse(&our_own).unwrap() else { panic!() };
    options.retain(|option| !our_own.options.contains(option));
    assert_eq!(options, [], "each of its options is one of ours");
    assert_eq!(said.options.len(), our_own.options.len());
}
