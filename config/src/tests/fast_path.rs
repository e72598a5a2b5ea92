//! `[fastpath]`.

use super::*;

fn fast_path(section: &str) -> FastPath {
    let text = format!("{OWN}{POOL}{NAT64}{section}\n");
    let (config, warnings) = parse(&text).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}"));
    assert_eq!(lines(&warnings), Vec::<String>::new());
    config.fast_path.unwrap()
}

#[test]
fn without_the_section_nothing_is_carried_past_the_engine() {
    let (config, _) = parse(&format!("{OWN}{POOL}{NAT64}")).unwrap();
    assert_eq!(config.fast_path, None);
}

#[test]
fn an_empty_section_is_the_automatic_mode() {
    let found = fast_path("[fastpath]");
    assert_eq!((found.mode, found.packets, found.notrack), (FastPathMode::Auto, 8, true));
    assert!(!found.forward_syn && fast_path("[fastpath]\nforward_syn = true").forward_syn);
    assert_eq!(found.pin_path, Path::new("/run/sixway/bpf"));
    assert_eq!((found.flows, found.absence.as_secs()), (None, 3_600));
    assert!(found.interfaces.is_empty() && !found.is_demanded());
    assert!(fast_path("[fastpath]\nmode = \"tc\"").is_demanded());
    assert!(fast_path("[fastpath]\nmode = \"xdp\"").is_demanded());
    assert!(!fast_path("[fastpath]\nmode = \"off\"").is_demanded());
}

#[test]
fn room_is_made_for_the_sessions_that_there_may_be_within_reason() {
    let automatic = fast_path("[fastpath]");
    assert_eq!([0, 2_000, 1 << 20].map(|sessions| automatic.flows(sessions)), [1_024, 2_000, 262_144]);
    assert_eq!(fast_path("[fastpath]\nflows = 1_000_000").flows(2_000), 1_000_000);
}

#[test]
fn it_is_written_as_it_is_read() {
    let section = "[fastpath]\nmode = \"tc\"\ninterfaces = [\"eth0\"]\nflows = 4096\nforward_syn = true\nabsence = \"5 min\"\n";
    let (config, _) = parse(&format!("{OWN}{POOL}{NAT64}{section}")).unwrap();
    let (again, _) = parse(&config.to_string()).unwrap();
    assert_eq!(again.fast_path, config.fast_path);
}

#[test]
fn interfaces_are_those_that_packets_come_by() {
    let section = format!("{NAT64}[fastpath]\n");
    let own =
        "cannot be used: no forwarded packets arrive on it; write the interfaces that packets arrive on";
    for name in ["lo", "sixway0"] {
        let said = format!("fastpath.interfaces  \"{name}\" {own}");
        fault_in(&section, &format!("interfaces = [\"{name}\"]"), &said);
    }
    let none = "fastpath.interfaces  \"a/b\" is not a valid interface name (at most 15 characters); write one that `ip link` shows";
    fault_in(&section, "interfaces = [\"a/b\"]", none);
    let names: Vec<String> = (0..17).map(|number| format!("\"eth{number}\"")).collect();
    let text = format!("{OWN}{POOL}{section}interfaces = [{}]\n", names.join(", "));
    let found = parse(&text).unwrap_err();
    assert!(lines(found.remarks()).iter().any(|line| line.contains("are 17 interfaces; 16 at most")));
    let said = "sixway.toml:11  fastpath.interfaces  interface \"eth1\" does not exist; the program is attached when the interface appears";
    let text = format!("{OWN}{POOL}{section}interfaces = ");
    warnings(&format!("{text}[\"eth1\"]\n"), &[&format!("{said}; did you mean \"eth0\"?")]);
    warnings(&format!("{text}[\"eth0\", \"eth1\"]\n"), &[said]);
    // One that has no address, as most that a gateway forwards between for others have none.
    warnings(&format!("{OWN}{POOL}{section}interfaces = [\"port0\"]\n"), &[]);
}

#[test]
fn the_directory_of_pins_is_found_from_anywhere() {
    let said = "fastpath.pin_path = \"bpf\"  is not an absolute path; write one such as \"/run/sixway/bpf\"";
    fault_in(&format!("{NAT64}[fastpath]\n"), "pin_path = \"bpf\"", said);
}

#[test]
fn a_dynamic_pool_behind_masquerade_must_stay_tracked() {
    let text = |pool: &str, fast_path: &str| {
        format!("{OWN}[siit]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"{pool}\"\n{fast_path}")
    };
    let said = "sixway.toml:4  siit.dynamic_pool  172.16.0.0/12 is private, and with fastpath.notrack this host's masquerade sees none of its packets; \
                set fastpath.notrack = false, or write a pool that is routed to this host";
    warnings(&text("172.16.0.0/12", "[fastpath]\n"), &[said]);
    for fast_path in ["", "[fastpath]\nnotrack = false\n", "[fastpath]\nmode = \"off\"\n"] {
        warnings(&text("172.16.0.0/12", fast_path), &[]);
    }
    warnings(&text("203.0.112.0/24", "[fastpath]\n"), &[]);
}
