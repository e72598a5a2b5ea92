//! A Teredo client (RFC 4380 §5.2), and what is wrong with one.

use super::*;
use crate::{Route, Surroundings};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::teredo::TeredoRole;
use std::net::IpAddr;

const CLIENT: &str = "[teredo_client]\naddress = \"203.0.113.7\"\nservers = [{ address = \"80.64.79.1\", secondary = \"80.64.79.2\" }]\n";

fn good(text: &str) -> (Config, Vec<String>) {
    let (config, warnings) = parse(&format!("{OWN}{text}")).unwrap_or_else(|faults| panic!("{faults}"));
    (config, lines(&warnings))
}

fn fault(text: &str, says: &str) {
    let faults = parse(&format!("{OWN}{text}")).unwrap_err().to_string();
    assert!(faults.contains(says), "{faults}");
}

#[test]
fn a_client_is_read_with_its_defaults() {
    let (config, warnings) = good(CLIENT);
    assert_eq!(warnings, [""; 0]);
    let client = &config.others.teredo_client[0];
    assert_eq!((client.port, client.interval.as_secs(), client.max_peers), (0, 30, 1_024));
    assert!(client.firewall && client.symmetric && !client.learn_interval && !client.local_discovery);
    assert!(config.needs_device() && !config.has_tunnels());
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    let [MechanismConfig::Teredo(built)] = &engine.others[..] else { panic!("one mechanism") };
    assert_eq!((built.max_peers, &built.role), (1_024, &TeredoRole::Client));
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
}

/// A host that forwards IPv6 ignores router advertisements, and would not see native IPv6 appear.
#[test]
fn a_client_is_a_host_and_does_not_forward() {
    let (config, _) = good(CLIENT);
    assert!(!config.routes_ipv4());
    let teredo = |route: &Route| matches!(route, Route::V6(prefix) if prefix.length() <= 32);
    assert!(!config.routes().iter().any(teredo), "{:?}", config.routes());
}

#[test]
fn an_address_brings_the_last_route_and_the_filter_and_both_go_with_it() {
    let (config, _) = good(CLIENT);
    let address = "2001:0:5040:4f01::1".parse().unwrap();
    let without = Surroundings::of(&host().addresses);
    let mut now = without.clone();
    now.teredo = Some(address);
    let reach = config.reach(&now);
    assert!(reach.addresses.contains(&IpAddr::V6(address)));
    let [route] = &reach.routes[..] else { panic!("{:?}", reach.routes) };
    assert_eq!((route.prefix.length(), route.mtu, route.is_last), (0, Some(1_280), true));
    let untracked = config.untracked(false, &now).unwrap();
    assert_eq!((untracked.client, untracked.guards_client, untracked.is_any), (Some(address), true, false));
    let (open, _) = good(&format!("{CLIENT}firewall = false\n"));
    assert_eq!(open.untracked(false, &now), None);
    assert!(config.reach(&without).routes.is_empty() && config.untracked(false, &without).is_none());
}

#[test]
fn ports_are_predicted_only_if_asked_for_and_behind_symmetric_nats_alone() {
    let ports = |text: &str| good(&format!("{CLIENT}{text}")).0.others.teredo_client[0].prediction_ports;
    assert_eq!((ports(""), ports("prediction_ports = 8\n")), (0, 8));
    assert_eq!(ports("prediction_ports = 0\nsymmetric = false\n"), 0);
    fault(
        &format!("{CLIENT}prediction_ports = 8\nsymmetric = false\n"),
        "has no effect with symmetric = false",
    );
    fault(&format!("{CLIENT}prediction_ports = 33\n"), "prediction_ports");
}

#[test]
fn servers_are_other_hosts() {
    let with = |servers: &str| format!("[teredo_client]\naddress = \"203.0.113.7\"\nservers = [{servers}]\n");
    fault(&with("{ address = \"203.0.113.7\" }"), "is this host's own address");
    fault(&with("{ address = \"224.0.0.1\" }"), "is not a valid host address");
    fault(&with("{ address = \"80.64.79.1\", secondary = \"80.64.79.1\" }"), "is also the address");
    let one = "{ address = \"80.64.79.1\", secondary = \"80.64.79.2\" }";
    fault(&with(&format!("{one}, {one}")), "is written twice");
    let (_, warnings) = good(&with("{ address = \"80.64.79.1\" }"));
    assert!(warnings[0].contains("has no secondary: symmetric NATs are not recognised"), "{warnings:?}");
    let (_, warnings) = good(&with("{ address = \"10.0.0.9\", secondary = \"80.64.79.2\" }"));
    assert!(warnings[0].contains("is not global"), "{warnings:?}");
}

#[test]
fn secure_qualification_needs_a_name_and_a_secret() {
    fault(&format!("{CLIENT}client_id = \"me\"\n"), "has no effect without secret_file");
    fault(&format!("{CLIENT}secret_file = \"s\"\n"), "has no effect without client_id");
    let (config, _) = good(&format!("{CLIENT}client_id = \"me\"\nsecret_file = \"s\"\n"));
    assert_eq!(config.others.teredo_client[0].client_id.as_deref(), Some("me"));
}

#[test]
fn a_host_is_not_both_client_and_relay() {
    let relay = "[teredo_relay]\naddress = \"203.0.113.7\"\nport = 3545\nipv6_address = \"2001:db8::1\"\n";
    fault(&format!("{CLIENT}{relay}"), "2001::/32");
}

#[test]
fn a_port_that_a_server_or_a_pool_has_is_not_a_clients() {
    let server = "[teredo_server]\naddress = \"203.0.113.7\"\n";
    fault(&format!("{CLIENT}port = 3544\n{server}"), "port 3544 of 203.0.113.7 is the port of teredo_server");
    for port in ["", "port = 3545\n"] {
        good(&format!("{CLIENT}{port}{server}"));
    }
    let pool = "[[pool]]\nname = \"own\"\naddresses = \"203.0.113.7\"\nshared = true\nports = \"61000-65535\"\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"own\"\n";
    fault(&format!("{pool}{CLIENT}port = 61000\n"), "port 61000 of 203.0.113.7 belongs to a pool, too");
    good(&format!("{pool}{CLIENT}port = 60999\n"));
}
