//! `[[realm]]`.

use super::*;
use crate::{RealmRouting, Surroundings};
use sixway_dataplane::mechanism::identity::Identity;

fn pool(name: &str, address: &str) -> String {
    format!("[[pool]]\nname = \"{name}\"\naddresses = [\"{address}\"]\n")
}

fn realm(name: &str, interface: &str, table: u32) -> String {
    format!(
        "[[realm]]\nname = \"{name}\"\ninside = [\"10.0.0.0/8\"]\ninterfaces = [\"{interface}\"]\ntable = {table}\npool = \"{name}\"\n"
    )
}

fn two() -> String {
    let pools = pool("red", "192.0.2.1") + &pool("blue", "192.0.2.2");
    format!("{OWN}{pools}{}{}", realm("red", "lan1", 101), realm("blue", "lan2", 102))
}

fn faults(text: &str) -> String {
    parse(text).map_or_else(|faults| faults.to_string(), |(config, _)| panic!("no fault in {config}"))
}

#[test]
fn realms_may_have_the_same_inside_and_have_devices_of_their_own() {
    let (config, _) = parse(&two()).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(config.needs_device() && config.routes_ipv4());
    assert_eq!(config.used_pools().count(), 2);
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let devices: Vec<_> = config.realms.iter().map(|realm| (&*realm.device, realm.routing.clone())).collect();
    let table = RealmRouting::Table;
    assert_eq!(devices, [("sixway0-red", table(101)), ("sixway0-blue", table(102))]);
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    let realms: Vec<_> = engine.nat44.iter().map(|nat44| (nat44.realm.0, nat44.identity)).collect();
    assert_eq!(realms, [(1, Identity::of_realm("red")), (2, Identity::of_realm("blue"))]);
    assert_eq!(engine.nat44[1].pool.addresses, ["192.0.2.2/32".parse().unwrap()]);
    // Nothing of theirs is routed into the main device by source.
    assert_eq!(config.reach(&Surroundings::default()).rules, []);
    let main = "[nat44]\ninside = [\"10.0.0.0/8\"]\ninterfaces = [\"lan0\"]\npool = \"main\"\n";
    let (config, _) = parse(&(two() + &pool("main", "192.0.2.3") + main)).unwrap();
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    let realms: Vec<_> = engine.nat44.iter().map(|nat44| nat44.realm.0).collect();
    assert_eq!(realms, [0, 1, 2]);
    assert_eq!(engine.nat44[0].identity, Identity::of_nat44());
}

#[test]
fn two_realms_share_no_name_device_table_interface_or_pool() {
    for (from, to, expected) in [
        ("\"blue\"\ninside", "\"red\"\ninside", "has this name"),
        ("table = 102", "table = 101", "table 101 is already used"),
        ("table = 102", "table = 254", "is a table of the kernel"),
        ("table = 102", "table = 102\ndevice = \"sixway0-red\"", "device sixway0-red is already used"),
        ("table = 102", "table = 102\ndevice = \"sixway0\"", "is the main device"),
        ("table = 102", "table = 102\ndevice = \"sixteen-octets-x\"", "not a valid interface name"),
        ("[\"lan2\"]", "[\"lan1\"]", "interface lan1 is already used"),
        ("[\"lan2\"]", "[]", "is empty"),
        ("pool = \"blue\"\n", "pool = \"red\"\n", "is already used by"),
        ("\"192.0.2.2\"", "\"192.0.2.1\"", "overlaps"),
        ("\"192.0.2.2\"", "\"10.0.0.1\"", "overlaps"),
        ("interfaces = [\"lan2\"]\n", "", "realm[1].interfaces"),
        ("table = 102\n", "", "realm[1].table"),
    ] {
        let text = two().replacen(from, to, 1);
        assert_ne!(text, two(), "{from}");
        let found = faults(&text);
        assert!(found.contains(expected), "{from} to {to}: {found}");
    }
    let nat64 = "[nat64]\nname = \"red\"\nprefix = \"64:ff9b::/96\"\npool = \"six\"\n";
    let found = faults(&(two() + &pool("six", "192.0.2.3") + nat64));
    assert!(found.contains("a [nat64] has this name"), "{found}");
}

#[test]
fn a_name_that_is_too_long_for_a_device_wants_one_to_be_written() {
    let long = two().replace("red", "rose-coloured");
    assert!(faults(&long).contains("sixway0-rose-coloured"), "{}", faults(&long));
    let named = long.replacen("table = 101", "table = 101\ndevice = \"rose\"", 1);
    let (config, _) = parse(&named).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.realms[0].device, "rose");
}

#[test]
fn a_realm_is_not_combined_with_the_main_interfaces_a_shared_pool_or_the_fast_path() {
    let main = "[nat44]\ninside = [\"10.0.0.0/8\"]\ninterfaces = [\"lan1\"]\npool = \"main\"\n";
    let found = faults(&(two() + &pool("main", "192.0.2.3") + main));
    assert!(found.contains("interface lan1 is one of [nat44]"), "{found}");
    let found = faults(&(two() + "[fastpath]\ninterfaces = [\"lan1\"]\n"));
    assert!(found.contains("cannot be combined with [fastpath]"), "{found}");
    let shared =
        two().replacen("[\"192.0.2.2\"]", "[\"192.0.2.2\"]\nports = \"61000-65535\"\nshared = true", 1);
    let found = faults(&shared);
    assert!(found.contains("is shared with this host"), "{found}");
}

#[test]
fn a_realm_is_in_a_vrf_in_place_of_a_table_and_interfaces() {
    let blue = |place: &str| two().replacen("interfaces = [\"lan2\"]\ntable = 102", place, 1);
    let (config, _) = parse(&blue("vrf = \"blue\"")).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.realms[1].routing, RealmRouting::Vrf("blue".into()));
    assert!(config.realms[1].nat44.interfaces.is_empty());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    for (place, expected) in [
        ("vrf = \"blue\"\ntable = 102", "is not used with vrf: the VRF has its table"),
        ("vrf = \"blue\"\ninterfaces = [\"lan2\"]", "ip link set lan2 master blue"),
        ("vrf = \"a name\"", "not a valid interface name"),
        ("interfaces = [\"lan2\"]", "write table = 101, or vrf = \"name\""),
    ] {
        let found = faults(&blue(place));
        assert!(found.contains(expected), "{place}: {found}");
    }
    let both = blue("vrf = \"x\"").replacen("interfaces = [\"lan1\"]\ntable = 101", "vrf = \"x\"", 1);
    assert!(faults(&both).contains("VRF x is already used"), "{}", faults(&both));
}
