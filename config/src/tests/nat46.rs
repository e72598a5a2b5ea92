//! NAT46: IPv4 hosts that reach IPv6 servers by name.

use super::*;
use crate::{Route, Surroundings};
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::nat46::Sharing;

const NAT46: &str = "[nat46]\nclients = [\"10.0.0.0/8\"]\npool = \"192.168.46.0/24\"\nprefix = \"2001:db8:46::/96\"\nexclude_names = [\"ftp.example\"]\nstatic = [{ address = \"192.168.46.80\", server = \"2001:db8:80::80\" }]\n";
const DNS: &str = "[dns64]\nlisten = [\"203.0.113.7\"]\nallow = [\"10.0.0.0/8\"]\nupstream = [{ address = \"198.51.100.53\" }]\n";

#[test]
fn it_is_read_with_its_routes_and_needs_no_prefix_for_the_dns64() {
    let text = format!("{OWN}{NAT46}{DNS}");
    let (config, warnings) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    let serves = "10.0.0.0/8 as 2001:db8:46::/96 ⇄ pool 192.168.46.0/24 · 1 static mapping";
    assert_eq!(config.others.all().iter().map(|it| it.serves()).collect::<Vec<_>>(), [serves]);
    for route in ["192.168.46.0/24", "2001:db8:46::/96"] {
        let wanted = match route.parse() {
            Ok(prefix) => Route::V4(prefix),
            Err(_) => Route::V6(route.parse().unwrap()),
        };
        assert!(config.routes().contains(&wanted), "{route}");
    }
    assert!(config.reach(&Surroundings::default()).blackholes.contains(&"192.168.46.0/24".parse().unwrap()));
    assert!(config.needs_device() && config.routes_ipv6() && config.routes_ipv4());
    let settings = config.mapping_settings().unwrap();
    assert!(settings.by_name && settings.excluded == ["192.0.2.254/32".parse().unwrap()]);
    assert!(!settings.is_server("2001:db8:46::1".parse().unwrap()), "an image of a client");
    assert!(
        !settings.is_server("fd00::1".parse().unwrap()) && settings.is_server("2001:db8::1".parse().unwrap())
    );
    assert_eq!(settings.sharing, Sharing::Client);
    let engines = config.engines([1, 2], &Surroundings::default());
    let [MechanismConfig::Nat46(nat46)] = &engines[0].others[..] else { panic!("{:?}", engines[0].others) };
    assert_eq!(nat46.mappings, settings);
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
}

#[test]
fn a_nat44_leaves_its_pool_alone() {
    let nat44 = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"main\"\n";
    let (config, _) = parse(&format!("{OWN}{nat44}{NAT46}{DNS}")).unwrap_or_else(|faults| panic!("{faults}"));
    let engines = config.engines([1, 2], &Surroundings::default());
    assert!(engines[0].nat44[0].except.contains(&"192.168.46.0/24".parse().unwrap()));
}

#[test]
fn what_cannot_work_is_said_with_what_mends_it() {
    let with = |from: &str, to: &str| format!("{OWN}{}{DNS}", NAT46.replace(from, to));
    for (text, what) in [
        (
            with("192.168.46.0/24", "10.46.0.0/16").replace("192.168.46.80", "10.46.0.80"),
            "choose another pool",
        ),
        (
            with("192.168.46.0/24", "203.0.113.0/24").replace("192.168.46.80", "203.0.113.80"),
            "203.0.113.7 is this host's own address on eth0",
        ),
        (with("192.168.46.80", "192.168.47.80"), "192.168.47.80 is not in nat46.pool"),
        (
            with(
                "server = \"2001:db8:80::80\" }",
                "server = \"2001:db8:80::80\" }, { address = \"192.168.46.81\", server = \"2001:db8:80::80\" }",
            ),
            "2001:db8:80::80 already has a static mapping",
        ),
        (
            with("192.168.46.0/24", "192.0.2.0/24").replace("192.168.46.80", "192.0.2.254"),
            "192.0.2.254 is gateway.ipv4_address",
        ),
        (with("2001:db8:80::80", "::ffff:192.0.2.1"), "is not a server's address"),
        (with("2001:db8:80::80", "2001:db8:46::80"), "write an IPv6 unicast address outside nat46.prefix"),
        (with("2001:db8:46::/96", "64:ff9b::/96"), "write a prefix of your own network"),
        (with("2001:db8:46::/96", "2001:db8:46::/80"), "prefix"),
        (with("[\"10.0.0.0/8\"]", "[]"), "write your IPv4 hosts' prefixes"),
        (with("clients = [\"10.0.0.0/8\"]\n", ""), "clients  is missing"),
        (with("192.168.46.0/24", "0.0.0.0/0"), "write a prefix of 8 bits or more"),
        (with("ftp.example", "*.example"), "names below are included anyway"),
        (
            format!("{}[[siit]]\nprefix = \"2001:db8:46::/96\"\n", with("", "")),
            "an address can belong to only one of them",
        ),
        (
            format!(
                "{}[[siit]]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"192.168.0.0/16\"\n",
                with("", "")
            ),
            "an address can belong to only one of them",
        ),
    ] {
        let faults = parse(&text).map(|_| ()).unwrap_err().to_string();
        assert!(faults.contains(what), "{what}: {faults}");
    }
}

#[test]
fn what_clients_lack_is_warned_of() {
    let warned = |text: &str| {
        let (_, warnings) = parse(text).unwrap_or_else(|faults| panic!("{faults}"));
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let six = DNS.replace("203.0.113.7", "2001:db8:ffff::7");
    assert!(warned(&format!("{OWN}{NAT46}{six}")).contains("add an IPv4 address to dns64.listen"));
    let few = DNS.replace("10.0.0.0/8", "10.1.0.0/16");
    assert!(warned(&format!("{OWN}{NAT46}{few}")).contains("dns64.allow does not contain 10.0.0.0/8"));
    let unrouted = warned(&format!("{OWN}{NAT46}{DNS}[tun]\nroutes = [\"192.168.46.0/24\"]\n"));
    assert!(unrouted.contains("2001:db8:46::/96 is not routed into the device"), "{unrouted}");
    assert!(!unrouted.contains("nat46.pool"), "{unrouted}");
    let nameless = warned(&format!("{OWN}{}", NAT46.replace("static =", "# static =")));
    assert!(nameless.contains("write a [dns64] that the clients query, or static mappings"), "{nameless}");
    let ownless = warned(&format!("{NAT46}{DNS}"));
    assert!(ownless.contains("gateway.ipv4_address"), "the source of errors of routers: {ownless}");
}

#[test]
fn a_static_server_under_a_translators_prefix_is_a_fault_and_no_servers_are_a_warning() {
    let nat64 = "[nat64]\nprefix = \"2001:db8:80::/96\"\npool = \"main\"\n";
    let faults = parse(&format!("{OWN}{POOL}{nat64}{NAT46}")).map(|_| ()).unwrap_err().to_string();
    let expected = "2001:db8:80::80 is under 2001:db8:80::/96 of nat64: it is the image of an IPv4 address";
    assert!(faults.contains(expected), "{faults}");
    let warned = |text: &str| {
        let (_, warnings) = parse(text).unwrap_or_else(|faults| panic!("{faults}"));
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let none = NAT46.replace("exclude_names", "servers = []\nexclude_names");
    assert!(
        warned(&format!("{OWN}{none}{DNS}")).contains("nat46.servers  is empty: no name leads to a server")
    );
    let neither = none.replace("static =", "# static =");
    assert!(warned(&format!("{OWN}{neither}{DNS}")).contains("is empty, and there are no static mappings"));
}

#[test]
fn behind_a_b4_a_dns64_needs_no_prefix_and_no_other_translator() {
    let b4 = "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:99::b4\"\naftr = \"2001:db8:a::1\"\n";
    let dns = DNS.replace("203.0.113.7", "2001:db8:ffff::7");
    let (config, _) = parse(&format!("{OWN}{b4}{dns}")).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(config.dns64.is_some());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}")).0;
    assert_eq!(again, config);
}

#[test]
fn no_answer_leads_to_an_address_that_is_not_a_servers() {
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n";
    let text = format!("{OWN}{POOL}{nat64}{NAT46}{DNS}");
    let (config, _) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    let own = config.gateway.ipv6_address.unwrap();
    let settings = config.mapping_settings().unwrap();
    assert!(settings.is_server("2001:db8:1::1".parse().unwrap()));
    let bogus = [
        "::",
        "::1",
        "::ffff:198.51.100.1",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "ff0e::1",
        "2001:db8:64::c633:6401",
        "2001:db8:46::a00:1",
    ];
    for address in bogus.iter().map(|text| text.parse().unwrap()).chain([own]) {
        assert!(!settings.is_server(address), "{address}");
    }
}
