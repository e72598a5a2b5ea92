//! Teredo's relay (RFC 4380 §5.4), and what is wrong with one.

use super::*;
use crate::{Route, Surroundings};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::teredo::TeredoRole;
use sixway_wire::Endpoint4;

const RELAY: &str = "[[teredo_relay]]\naddress = \"203.0.113.7\"\nipv6_address = \"2001:db8::1\"\n";

fn good(text: &str) -> (Config, Vec<String>) {
    let (config, warnings) = parse(&format!("{OWN}{text}")).unwrap_or_else(|faults| panic!("{faults}"));
    (config, lines(&warnings))
}

fn fault(text: &str, says: &str) {
    let faults = parse(&format!("{OWN}{text}")).unwrap_err().to_string();
    assert!(faults.contains(says), "{faults}");
}

#[test]
fn a_relay_is_read_with_its_route_and_its_end() {
    let (config, warnings) = good(RELAY);
    assert_eq!(warnings, [""; 0]);
    assert!(config.routes().contains(&Route::V6("2001::/32".parse().unwrap())));
    assert!(config.needs_device() && config.routes_ipv6() && !config.has_tunnels());
    let relay = &config.others.teredo_relay[0];
    let end = Endpoint4::new("203.0.113.7".parse().unwrap(), 3_544);
    assert_eq!((relay.end(&Surroundings::default()), &*relay.whom()), (Some(end), "anybody"));
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    let [MechanismConfig::Teredo(built)] = &engine.others[..] else { panic!("one mechanism") };
    let TeredoRole::Relay(built_relay) = &built.role else { panic!("a relay") };
    assert_eq!((built.max_peers, &*built_relay.address.to_string()), (100_000, "2001:db8::1"));
    assert!(built_relay.serves.is_empty());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
}

#[test]
fn a_relay_serves_the_networks_that_it_names() {
    let text = format!("{RELAY}serves = [\"2001:db8::/32\", \"2000::/3\"]\nport = 3545\nmax_peers = 7\n");
    let (config, _) = good(&text);
    let relay = &config.others.teredo_relay[0];
    assert_eq!((&*relay.whom(), relay.port, relay.max_peers), ("2001:db8::/32, 2000::/3", 3_545, 7));
    fault(&format!("{RELAY}serves = [\"2001:0:1::/48\"]\n"), "2001:0:1::/48 is a prefix of clients");
}

#[test]
fn relays_at_one_address_have_different_ports() {
    let second = format!("{RELAY}{RELAY}port = 3545\n");
    assert_eq!(good(&second).0.others.teredo_relay.len(), 2);
    fault(&format!("{RELAY}{RELAY}"), "and port 3544 are those of teredo_relay-1, too");
}

#[test]
fn a_relay_and_a_server_at_one_address_have_different_ports() {
    let server = "[teredo_server]\naddress = \"203.0.113.7\"\n";
    fault(&format!("{RELAY}{server}"), "is the port of teredo_server");
    good(&format!("{RELAY}port = 3545\n{server}"));
}

#[test]
fn a_port_of_a_pool_is_not_a_relays() {
    let pool = "[[pool]]\nname = \"own\"\naddresses = \"203.0.113.7\"\nshared = true\nports = \"61000-65535\"\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"own\"\n";
    let faults = parse(&format!("{OWN}{pool}{RELAY}port = 61000\n"));
    let said = faults.map(|(_, warnings)| lines(&warnings).join("\n")).unwrap_or_else(|it| it.to_string());
    assert!(said.contains("port 61000 of 203.0.113.7 belongs to a pool, too"), "{said}");
}

#[test]
fn bubbles_come_from_an_address_that_clients_can_answer() {
    let at = |address: &str| RELAY.replace("2001:db8::1", address);
    for address in ["fe80::1", "::1", "ff02::1", "2001:0:1::1", "::"] {
        fault(&at(address), "cannot be the source of bubbles");
    }
    assert!(good(&at("fd00::1")).1[0].contains("is not global (unique local, RFC 4193)"));
}

#[test]
fn a_private_address_is_named() {
    let text = format!("{OWN}{}", RELAY.replace("203.0.113.7", "10.0.0.1"));
    // Nothing is known of the host.
    let read = Config::parse("sixway.toml", &text, &HostFacts::default(), &mut no_files);
    let (_, warnings) = read.unwrap_or_else(|faults| panic!("{faults}"));
    let said = lines(&warnings).join("\n");
    assert!(said.contains("teredo_relay.address") && said.contains("not global"), "{said}");
}
