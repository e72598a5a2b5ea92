//! ICMPv4 errors from addresses that the well-known prefix must not represent (RFC 6052 §3.1), and what other prefixes do with them
//! (RFC 7915 §4.1): the stateless and the stateful translator decide alike.

use crate::support;
use crate::support::{Build, Gateway, eam, icmp4, v4, v6};
use sixway_dataplane::DropReason;
use sixway_dataplane::translate::address::Rfc6052;
use std::net::Ipv4Addr;

/// Private, shared, link-local and documentation addresses, and such as belong to no host at all.
const NON_GLOBAL: [&str; 7] =
    ["10.0.0.1", "172.16.0.1", "100.64.0.1", "169.254.0.1", "192.0.2.77", "127.0.0.1", "0.0.0.0"];
const ROUTER: &str = "8.8.8.8";
const HOST: &str = "2001:db8:1::4";
const SERVER: &str = "9.9.9.9";

fn prefix(text: &str, lifted: bool) -> Rfc6052 {
    Rfc6052::new(text.parse().unwrap(), lifted).unwrap()
}

/// A stateless gateway, and a packet that went out through it.
fn stateless(prefix: Rfc6052) -> (Gateway, Vec<u8>) {
    let gateway = support::siit(|config| {
        config.prefix = Some(prefix);
        config.eam = eam(&[("8.8.4.0/24", "2001:db8:1::/120")]);
    });
    (gateway, v4("8.8.4.4", SERVER).udp(4_001, 53, b"question").octets())
}

/// The same of a stateful gateway.
fn stateful(prefix: Rfc6052) -> (Gateway, Vec<u8>) {
    let mut gateway = support::gateway(|config| {
        let mut nat64 = support::nat64();
        nat64.prefix = prefix;
        nat64.pool.addresses = vec!["8.8.4.0/30".parse().unwrap()];
        config.nat64.push(nat64);
    });
    let server = prefix.embed(SERVER.parse().unwrap()).unwrap().to_string();
    gateway.receives(v6(HOST, &server).udp(4_001, 53, b"question"));
    let sent = gateway.sent();
    gateway.counted_before();
    (gateway, sent)
}

/// A router's word that the packet did not get through.
fn error(router: &str, quote: &[u8]) -> Build {
    let to = Ipv4Addr::new(quote[12], quote[13], quote[14], quote[15]).to_string();
    v4(router, &to).icmp(icmp4(3, 1, [0; 4], quote))
}

#[test]
fn the_well_known_prefix_shows_no_error_as_from_a_non_global_address() {
    let well_known = prefix("64:ff9b::/96", false);
    for make in [stateless, stateful] {
        for router in NON_GLOBAL {
            let (mut gateway, quote) = make(well_known);
            gateway.refuses(error(router, &quote), DropReason::NonGlobalWithWellKnownPrefix);
        }
        let (mut gateway, quote) = make(well_known);
        gateway.receives(error(ROUTER, &quote));
        assert_eq!(gateway.sent()[8..24], well_known.embed(ROUTER.parse().unwrap()).unwrap().octets());
    }
}

#[test]
fn other_prefixes_and_a_lifted_rule_show_every_sender_of_an_error() {
    for prefix in [prefix("2001:db8:64::/96", false), prefix("64:ff9b::/96", true)] {
        for make in [stateless, stateful] {
            for router in NON_GLOBAL {
                let (mut gateway, quote) = make(prefix);
                gateway.receives(error(router, &quote));
                assert_eq!(
                    gateway.sent()[8..24],
                    prefix.embed_any(router.parse().unwrap()).octets(),
                    "{router}"
                );
            }
        }
    }
}

/// RFC 6052 §3.4: from the IPv6 Internet to an IPv4 network, whose addresses may be global or not.
#[test]
fn the_well_known_prefix_leads_into_no_network_of_non_global_addresses() {
    for make in [stateless, stateful] {
        for server in ["10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"] {
            let (mut gateway, _) = make(prefix("64:ff9b::/96", false));
            gateway.receives(v6(HOST, &format!("64:ff9b::{server}")).udp(1, 2, b"question"));
            let sent = gateway.sent();
            assert_eq!(
                (sent[6], sent[40], sent[41]),
                (58, 1, 1),
                "communication is administratively prohibited"
            );
            gateway.counted([("NonGlobalWithWellKnownPrefix", 1), ("icmp_errors.made", 1)]);
        }
    }
}
