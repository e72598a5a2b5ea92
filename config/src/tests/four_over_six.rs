//! 4over6 (RFC 7040): both ends, and what is wrong with them.

use super::*;
use crate::{HostLease, Route, Surroundings};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::four_over_six::Role;

const HUB: &str = "[four_over_six]\nrole = \"concentrator\"\naddresses = [\"2001:db8:c::1\", \"2001:db8:c::2\"]\npool = [\"192.0.2.16/28\"]\nclients = [\"2001:db8:a::/48\"]\n";
const HOST: &str = "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:a::1\"\nconcentrator = \"2001:db8:c::1\"\nservers = [\"2001:db8:5::1\"]\n";
const STATIC: &str = "[[four_over_six.static]]\nhost = \"2001:db8:a::9\"\nipv4 = \"192.0.2.17\"\n";

fn good(text: &str) -> Config {
    parse(&format!("{OWN}{text}")).unwrap_or_else(|faults| panic!("{faults}")).0
}

fn fault(text: &str, says: &str) {
    let faults = parse(&format!("{OWN}{text}")).unwrap_err().to_string();
    assert!(faults.contains(says), "{faults}");
}

#[test]
fn a_concentrator_is_read_with_its_bindings_and_routes() {
    let config = good(&format!("{HUB}{STATIC}"));
    let routes = config.routes();
    for route in ["192.0.2.16/28", "2001:db8:c::1/128", "2001:db8:c::2/128"] {
        let route = route.parse().map(Route::V4).or_else(|_| route.parse().map(Route::V6)).unwrap();
        assert!(routes.contains(&route), "{routes:?}");
    }
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    let [MechanismConfig::FourOverSix(built)] = &engine.others[..] else { panic!("one mechanism") };
    let Role::Concentrator(built) = &built.role else { panic!("a concentrator") };
    assert_eq!((built.addresses.len(), built.bindings.len(), built.max_bindings), (2, 1, 65_536));
    assert!(config.reach(&Surroundings::default()).blackholes.contains(&"192.0.2.16/28".parse().unwrap()));
    assert!(config.needs_device() && config.routes_ipv4());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
}

#[test]
fn nobody_is_a_relay_agent_unless_it_is_written_and_clients_are_warned_of() {
    let of = |config: &Config| config.others.four_over_six[0].concentrator().unwrap().relays.clone();
    assert_eq!(of(&good(HUB)), []);
    let config = good(&format!("{HUB}relays = [\"2001:db8:77::1/128\"]\n"));
    assert_eq!(of(&config), ["2001:db8:77::1/128".parse().unwrap()]);
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let (_, warnings) = parse(&format!("{OWN}{HUB}relays = [\"2001:db8::/32\"]\n")).unwrap();
    let said = warnings.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("every client there could send queries for another client"), "{said}");
    fault(&format!("{HOST}relays = [\"2001:db8:77::/64\"]\n"), "applies only to role = \"concentrator\"");
}

#[test]
fn names_belong_to_clients_of_a_concentrator_with_its_own_server_and_a_dns_service() {
    const DNS: &str = "[dns64]\nlisten = [\"127.0.0.1:5353\"]\nupstream = [{ address = \"192.0.2.53\" }]\n";
    let named =
        |name: &str, host: &str| format!("[[four_over_six.names]]\nname = \"{name}\"\nhost = \"{host}\"\n");
    let one = named("Host.example.", "2001:db8:a::1");
    let config = good(&format!("{HUB}{one}{DNS}"));
    let found = &config.others.four_over_six[0].names[0];
    assert_eq!((found.name.as_str(), found.host), ("host.example", "2001:db8:a::1".parse().unwrap()));
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    fault(&format!("{HUB}{one}"), "no DNS service answers queries for them");
    fault(&format!("{HUB}{one}{one}{DNS}"), "has two hosts");
    fault(&format!("{HUB}{}{DNS}", named("*.example", "2001:db8:a::1")), "*");
    fault(&format!("{HUB}{}{DNS}", named("host.example", "2001:db8:b::1")), "is not within clients");
    fault(&format!("{HUB}kea_leases = \"/k\"\n{one}{DNS}"), "Kea leases no address for a name");
    fault(&format!("{HOST}{one}{DNS}"), "applies only to role = \"concentrator\"");
}

#[test]
fn a_host_has_the_lease_of_the_moment_and_keeps_its_address() {
    let config = good(HOST);
    let mut now = Surroundings::default();
    let lease = |now: &Surroundings| match &config.tunnels(now)[..] {
        [(_, MechanismConfig::FourOverSix(built))] => match &built.role {
            Role::Host(host) => host.lease,
            Role::Concentrator(_) => panic!("a host"),
        },
        _ => panic!("one tunnel"),
    };
    assert_eq!((lease(&now), config.reach(&now).addresses.len()), (None, 0));
    let ipv4 = "192.0.2.17".parse().unwrap();
    for is_held in [true, false] {
        now.leases.insert("four_over_six".into(), HostLease { ipv4, is_held });
        assert_eq!(lease(&now).is_some(), is_held);
        assert_eq!(config.reach(&now).addresses, [std::net::IpAddr::V4(ipv4)]);
    }
    assert!(config.engines([0, 0], &now)[0].others.is_empty());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let fixed =
        good(&HOST.replace("servers = [\"2001:db8:5::1\"]", "address = \"192.0.2.20\"\nidle = \"never\""));
    assert_eq!(fixed.reach(&Surroundings::default()).addresses.len(), 1);
}

#[test]
fn a_host_has_its_servers_from_the_dhcpv6_clients_lease() {
    let lease = "server_lease_file = \"/run/dhcp4o6\"";
    let config = good(&HOST.replace("servers = [\"2001:db8:5::1\"]", lease));
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let file = config.others.four_over_six[0].host().and_then(|host| host.server_lease_file.clone());
    assert_eq!(file, Some("/run/dhcp4o6".into()));
    fault(&format!("{HOST}{lease}\n"), "and servers are written; remove one of the two");
    fault(&format!("{HUB}{lease}\n"), "applies only to role = \"host\"; remove it");
}

#[test]
fn what_is_missing_or_of_the_other_role_is_reported_with_a_remedy() {
    let without = |text: &str, line: &str| {
        text.lines().filter(|one| !one.starts_with(line)).map(|one| format!("{one}\n")).collect::<String>()
    };
    for key in ["addresses", "pool", "clients"] {
        fault(&without(HUB, key), &format!("{key} is missing; write {key} ="));
    }
    for key in ["local", "concentrator", "servers"] {
        fault(&without(HOST, key), &format!("{key} is missing; write"));
    }
    fault(&format!("{HUB}servers = [\"2001:db8::1\"]\n"), "applies only to role = \"host\"; remove it");
    fault(&format!("{HOST}pool = [\"10.0.0.0/8\"]\n"), "applies only to role = \"concentrator\"; remove it");
    fault(&format!("{HOST}{STATIC}"), "static applies only to role = \"concentrator\"");
    fault(&format!("{HOST}address = \"192.0.2.1\"\n"), "and servers are written; remove one of the two");
    fault(
        &HOST.replace("concentrator = \"2001:db8:c::1\"", "concentrator = \"2001:db8:a::1\""),
        "is the same as local",
    );
    fault(
        &format!("{HUB}{}", STATIC.replace("192.0.2.17", "203.0.113.1")),
        "is not within pool; add it there",
    );
    let twice = format!("{STATIC}{}", STATIC.replace("a::9", "a::8"));
    fault(&format!("{HUB}{twice}"), "which 2001:db8:a::9 has");
    fault(&format!("{HUB}listen = [\"::\"]\nkea_leases = \"/kea.csv\"\n"), "write listen = []");
    fault(&HUB.replace("192.0.2.16/28", "240.0.0.0/8"), "not a prefix of unicast addresses");
    let two = HUB.replace("[four_over_six]", "[[four_over_six]]");
    let two = format!("{two}{}", two.replace("192.0.2.16/28", "192.0.2.32/28"));
    fault(&two, "is an address of four_over_six-1, too");
    let aftr = "[[pool]]\nname = \"p\"\naddresses = [\"203.0.113.0/28\"]\n[ds_lite]\nrole = \"aftr\"\npool = \"p\"\n\
                addresses = [\"2001:db8:a::1\"]\nclients = [\"2001:db8:b4::/48\"]\n";
    fault(
        &format!("{HUB}{}", aftr.replace("2001:db8:a::1", "2001:db8:c::2")),
        "has an address of ds_lite, too",
    );
}
