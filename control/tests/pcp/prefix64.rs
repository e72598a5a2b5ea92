//! RFC 7225: the prefix of the NAT64.

use super::*;
use sixway_dataplane::translate::address::Rfc6052;

fn bench(prefixes: &[&str]) -> Bench {
    let prefixes = prefixes.iter().map(|it| Rfc6052::new(it.parse().unwrap(), false).unwrap()).collect();
    Bench::with(|settings| settings.prefixes64 = prefixes)
}

/// What a client sends: ::/96 (§4.3).
const ASKED: [u8; 14] = [0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn the_prefixes_are_told_with_map_and_announce_in_their_order() {
    let mut bench = bench(&["64:ff9b::/96", "2001:db8:122:300::/56"]);
    let expected = vec![
        (129, vec![0, 12, 0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]),
        (129, vec![0, 7, 0x20, 1, 0xd, 0xb8, 1, 0x22, 3, 0, 0, 0, 0, 0]),
    ];
    let reply = bench.ask(&Ask::announce(ALICE).option(129, &ASKED));
    assert_eq!(reply.options(24), expected);
    assert_eq!(bench.ask(&Ask::map(ALICE, TCP, 80).option(129, &ASKED)).map_options(), expected);
    assert!(bench.ask(&Ask::announce(ALICE)).options(24).is_empty());
}

#[test]
fn without_a_nat64_there_is_no_option() {
    let mut bench = bench(&[]);
    assert!(bench.ask(&Ask::announce(ALICE).option(129, &ASKED)).options(24).is_empty());
}

#[test]
fn a_filter_of_an_ipv6_client_may_name_remote_hosts_as_it_sees_them() {
    let mut bench = bench(&["64:ff9b::/96", "2001:db8:122:300::/56"]);
    let ask = Ask::map("2001:db8::7", UDP, 53).filter("64:ff9b::c633:6400", 120, 0).filter(
        "2001:db8:122:3cb:0:7107::",
        96,
        7,
    );
    assert_eq!(bench.result(&ask), ResultCode::Success);
    let filters = &bench.nat.bindings[0].filters;
    assert_eq!(filters[0].remote.to_string(), "198.51.100.0/24");
    assert_eq!(filters[1].remote.to_string(), "203.0.113.7/32");
    let beyond = Ask::map("2001:db8::7", UDP, 53).filter("64:ff9b::", 64, 0);
    assert_eq!(bench.result(&beyond), ResultCode::ExcessiveRemotePeers);
}
