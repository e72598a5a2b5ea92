//! RFC 6887 §7 to §9: what a server makes of octets.

use super::*;

#[test]
fn an_announce_request_has_the_epoch_time_in_its_answer() {
    let mut bench = Bench::new();
    let reply = bench.ask(&Ask::announce(ALICE));
    assert_eq!(
        (reply.result(), reply.lifetime(), reply.epoch(), reply.0.len()),
        (ResultCode::Success, 0, 0, 24)
    );
    bench.pass(61);
    assert_eq!(bench.ask(&Ask::announce(ALICE)).epoch(), 61);
}

#[test]
fn a_request_that_is_cut_at_any_length_is_answered_with_an_error_or_not_at_all() {
    let ask = Ask::map(ALICE, TCP, 80).filter("198.51.100.0", 120, 0).port_set(4);
    let mut bench = Bench::with(|settings| settings.rate.burst = 1_000);
    for length in 0..ask.octets.len() {
        match bench.send(ALICE, &ask.octets[..length]) {
            Err(reason) => assert!(length < 24 && reason == Ignored::Short, "{length}"),
            Ok(replies) => {
                let result = replies[0].result();
                let is_whole = [60, 84].contains(&length);
                assert_eq!(result == ResultCode::Success, is_whole, "{length}: {result:?}");
            }
        }
    }
}

#[test]
fn a_response_is_never_answered() {
    let mut bench = Bench::new();
    let mut ask = Ask::announce(ALICE);
    ask.octets[1] |= 0x80;
    assert_eq!(bench.send(ALICE, &ask.octets).unwrap_err(), Ignored::NotRequest);
    assert_eq!(bench.server.counts().ignored(Ignored::NotRequest), 1);
}

#[test]
fn another_version_is_answered_with_version_2() {
    let mut bench = Bench::new();
    for version in [1, 3, 255] {
        let replies = bench.send(ALICE, &[version, 1, 0, 0, 9, 9]).unwrap();
        assert_eq!(replies[0].0[..4], [2, 0x81, 0, 1]);
        assert_eq!((replies[0].0.len(), replies[0].lifetime()), (24, 1_800));
    }
    let mut without = Bench::with(|settings| settings.nat_pmp = false);
    assert_eq!(without.send(ALICE, &[0, 0]).unwrap()[0].result(), ResultCode::UnsuppVersion);
}

#[test]
fn an_unknown_opcode_is_answered_with_a_copy() {
    let mut bench = Bench::new();
    let mut ask = Ask::map(ALICE, TCP, 80);
    ask.octets[1] = 96;
    let reply = bench.ask(&ask);
    assert_eq!(reply.result(), ResultCode::UnsuppOpcode);
    assert_eq!(reply.0[24..], ask.octets[24..]);
    assert_eq!(reply.0[12..24], ask.octets[12..24], "the last 96 bits of the client's address");
}

#[test]
fn a_request_that_is_too_long_or_not_a_multiple_of_four_octets_is_malformed() {
    let mut bench = Bench::new();
    let mut long = Ask::map(ALICE, TCP, 80).option(200, &[0; 1_100]);
    let reply = bench.ask(&long);
    assert_eq!((reply.result(), reply.0.len()), (ResultCode::MalformedRequest, 1_100));
    long.octets.truncate(61);
    let reply = bench.ask(&long);
    assert_eq!((reply.result(), reply.0.len()), (ResultCode::MalformedRequest, 64));
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn a_response_that_would_be_too_long_is_an_error_and_changes_nothing() {
    let prefix = |number: u128| {
        let prefix = sixway_wire::Prefix6::holding((0x2001_0db8 << 96 | number << 40).into(), 96);
        sixway_dataplane::translate::address::Rfc6052::new(prefix, false).unwrap()
    };
    let mut bench = Bench::with(|settings| settings.prefixes64 = (0..60).map(prefix).collect());
    let ask = Ask::map(ALICE, TCP, 80).option(129, &[0; 14]);
    assert_eq!(bench.result(&ask), ResultCode::MalformedRequest);
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn the_clients_address_must_be_the_packets_source() {
    let mut bench = Bench::new();
    for ask in
        [Ask::announce(ALICE), Ask::map(ALICE, TCP, 80), Ask::peer(ALICE, TCP, 80, ("198.51.100.1", 80))]
    {
        let replies = bench.send(BOB, &ask.octets).unwrap();
        assert_eq!(replies[0].result(), ResultCode::AddressMismatch);
        assert_eq!(replies[0].lifetime(), 1_800);
    }
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn a_mandatory_option_that_is_unknown_is_refused_and_an_optional_one_is_left_out() {
    let mut bench = Bench::new();
    assert_eq!(bench.result(&Ask::map(ALICE, TCP, 80).option(77, b"abc")), ResultCode::UnsuppOption);
    assert!(bench.nat.bindings.is_empty());
    let reply = bench.ask(&Ask::map(ALICE, TCP, 80).option(222, b"abc"));
    assert_eq!((reply.result(), reply.map_options()), (ResultCode::Success, vec![]));
}

#[test]
fn options_that_are_malformed_come_twice_or_belong_to_another_opcode_are_refused() {
    let mut bench = Bench::with(|settings| {
        settings.rate.burst = 1_000;
        settings.third_party = vec![(ALICE.parse().unwrap(), 32)];
    });
    let map = || Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080);
    let peer = || Ask::peer(ALICE, TCP, 80, ("198.51.100.1", 80));
    let mut overlong = map().option(3, &[0; 20]);
    overlong.octets[63] = 200;
    let malformed = [
        overlong,
        map().option(1, &[0; 4]),
        map().option(2, &[0; 4]),
        map().option(3, &[0; 16]),
        map().option(130, &[0; 4]),
        map().third_party(BOB).third_party(BOB),
        map().prefer_failure().prefer_failure(),
        map().port_set(2).port_set(2),
        map().option(129, &[0; 14]).option(129, &[0; 14]),
        map().filter("198.51.100.1", 95, 0),
        map().filter("198.51.100.1", 129, 0),
        map().filter("2001:db8::1", 129, 0),
        map().suggest("192.0.2.1", 0).prefer_failure(),
        map().prefer_failure().lifetime(0),
        map().filter("198.51.100.1", 128, 0).lifetime(0),
        map().port_set(0),
        map().port_set(2).prefer_failure(),
        Ask::announce(ALICE).third_party(BOB),
        Ask::announce(ALICE).prefer_failure(),
        Ask::announce(ALICE).filter("198.51.100.1", 128, 0),
        peer().filter("198.51.100.1", 128, 0),
    ];
    for (number, ask) in malformed.iter().enumerate() {
        let reply = bench.ask(ask);
        assert_eq!(reply.result(), ResultCode::MalformedOption, "{number}");
        assert_eq!(reply.0[12..], ask.octets[12..], "{number}: all options are returned");
    }
    assert_eq!(bench.result(&peer().prefer_failure()), ResultCode::MalformedRequest);
    assert_eq!(bench.result(&map().third_party(ALICE)), ResultCode::MalformedRequest);
    assert!(bench.nat.bindings.is_empty());
}

#[test]
fn every_result_code_has_the_lifetime_that_its_class_recommends() {
    let short = [7, 8, 10, 11];
    for (number, code) in ResultCode::ALL.into_iter().enumerate() {
        assert_eq!(code as usize, number);
        let expected = if number == 0 {
            0
        } else if short.contains(&number) {
            30
        } else {
            1_800
        };
        assert_eq!(code.lifetime(), expected, "{code:?}");
    }
}

/// §7.1, §7.3, §11.1, §13.3: reserved bits of a request are ignored, and zero in the response.
#[test]
fn reserved_bits_are_ignored() {
    let mut bench = Bench::new();
    let plain = Ask::map(ALICE, TCP, 80).filter("198.51.100.0", 120, 0);
    let mut ask = plain.clone();
    let reserved = [2, 3, 37, 38, 39, 61, 64];
    for at in reserved {
        ask.octets[at] = 0xff;
    }
    let reply = bench.ask(&ask);
    assert_eq!(reply.result(), ResultCode::Success);
    assert_eq!((reply.0[2], &reply.0[37..40], reply.0[61], reply.0[64]), (0, &[0; 3][..], 0, 0));
    assert_eq!(reply.map_options(), bench.ask(&plain).map_options());
    let mut peer = Ask::peer(ALICE, TCP, 4_000, ("198.51.100.9", 443));
    for at in [2, 3, 37, 38, 39, 62, 63] {
        peer.octets[at] = 0xff;
    }
    let reply = bench.ask(&peer);
    assert_eq!(
        (reply.result(), &reply.0[37..40], &reply.0[62..64]),
        (ResultCode::Success, &[0; 3][..], &[0; 2][..])
    );
}

/// §5: ones in bits 81 to 96 alone do not make an IPv4 address.
#[test]
fn an_ipv4_mapped_address_is_known_by_all_of_its_96_bits() {
    let mut bench = Bench::new();
    let mut ask = Ask::announce(ALICE);
    ask.octets[8] = 0x20;
    let replies = bench.send(ALICE, &ask.octets).unwrap();
    assert_eq!(replies[0].result(), ResultCode::AddressMismatch);
    // Such an external address is an IPv6 address, which no NAT here has.
    let mut ask = Ask::map(ALICE, TCP, 80).suggest("192.0.2.1", 8_080).prefer_failure();
    ask.octets[44] = 0x20;
    assert_eq!(bench.result(&ask), ResultCode::CannotProvideExternal);
    assert!(bench.nat.bindings.is_empty());
}

/// §14.1.1: an ANNOUNCE request with options, or one that is malformed.
#[test]
fn an_announce_request_has_its_options_and_its_length_checked() {
    let mut bench = Bench::new();
    let optional = bench.ask(&Ask::announce(ALICE).option(222, b"abc"));
    assert_eq!((optional.result(), optional.0.len()), (ResultCode::Success, 24));
    assert_eq!(bench.result(&Ask::announce(ALICE).option(77, b"abc")), ResultCode::UnsuppOption);
    // The Requested Lifetime is ignored.
    assert_eq!(bench.ask(&Ask::announce(ALICE).lifetime(90)).lifetime(), 0);
    assert_eq!(bench.send(ALICE, &Ask::announce(ALICE).octets[..20]).unwrap_err(), Ignored::Short);
}
