//! Stateless translation, scenario by scenario (RFC 7915 §4.1, §4.5, §5.1, §5.5).

use crate::support;
use crate::support::{eam, siit, v4, v6};

const HOST4: &str = "198.51.100.9";
const HOST6: &str = "2001:db8:1::1";
const PEER4: &str = "203.0.113.2";
const PEER6: &str = "2001:db8:64::cb00:7102";

fn table() -> support::Gateway {
    siit(|config| config.eam = eam(&[("198.51.100.8/29", "2001:db8:1::/125")]))
}

#[test]
fn udp_goes_from_v6_to_v4_by_table_and_algorithm() {
    let mut gateway = table();
    gateway.receives(v6(HOST6, PEER6).hops(64).tos(0xb8).udp(4000, 53, b"question"));
    let sent = gateway.sent();
    let identification = u32::from(u16::from_be_bytes([sent[4], sent[5]]));
    let expected = v4(HOST4, PEER4).hops(63).tos(0xb8).may_fragment().identification(identification);
    assert_eq!(sent, expected.udp(4000, 53, b"question").octets());
    gateway.counted([("siit.v6_to_v4", 1)]);
}

#[test]
fn udp_goes_from_v4_to_v6_by_table_and_algorithm() {
    let mut gateway = table();
    gateway.receives(v4(PEER4, HOST4).tos(0x2e).udp(53, 4000, b"answer"));
    gateway.sends(v6(PEER6, HOST6).hops(63).tos(0x2e).udp(53, 4000, b"answer"));
    gateway.counted([("siit.v4_to_v6", 1)]);
}

#[test]
fn tcp_and_echo_keep_their_checksums_right() {
    let mut gateway = table();
    gateway.receives(v4(PEER4, HOST4).tcp(80, 4000, 0x18, b"odd length data"));
    gateway.sends(v6(PEER6, HOST6).hops(63).tcp(80, 4000, 0x18, b"odd length data"));
    gateway.receives(v4(PEER4, HOST4).echo(7, 1, b"ping"));
    gateway.sends(v6(PEER6, HOST6).hops(63).echo(7, 1, b"ping"));
    gateway.receives(v6(HOST6, PEER6).echo_reply(7, 1, &[0; 1_400]));
    let expected = v4(HOST4, PEER4).hops(63).echo_reply(7, 1, &[0; 1_400]);
    gateway.sends(expected);
}
