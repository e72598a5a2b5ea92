//! Which paths are tried, and the rules that accept them.

use super::*;
use crate::config::HostAddress;
use crate::doctor::facts::Mapped;

const NAT64: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[[nat64]]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8::/32\"]\npool = \"main\"\n";

fn facts() -> Facts {
    let own = |interface: &str, address: &str, length| HostAddress {
        interface: interface.into(),
        address: address.parse().unwrap(),
        length,
    };
    Facts {
        addresses: vec![
            own("lan0", "2001:db8:1::1", 64),
            own("lan0", "10.0.0.1", 24),
            own("eth0", "203.0.113.7", 24),
        ],
        outside: Some("eth0".into()),
        inside: vec![("2001:db8:1::5157".parse().unwrap(), "lan0".into())],
        ..Facts::default()
    }
}

fn tried(text: &str, facts: &Facts) -> (Plan, Vec<PathRule>) {
    let (plan, paths) = plan(&crate::sample::config(text), facts, Vec::new()).unwrap();
    assert_eq!(plan.packets.len(), paths.len());
    let mut marks: Vec<u16> = plan.packets.iter().map(|packet| packet.mark).collect();
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), plan.packets.len());
    (plan, paths)
}

fn names(paths: &[PathRule]) -> Vec<&str> {
    paths.iter().map(|path| path.name.as_str()).collect()
}

const TRANSLATED: [&str; 6] = [
    "IPv6 packets from lan0 to sixway0",
    "IPv6 packets from sixway0 to lan0",
    "Packet Too Big from sixway0 to lan0",
    "IPv4 packets from sixway0 to eth0",
    "IPv4 packets from eth0 to sixway0",
    "Fragmentation Needed from eth0 to sixway0",
];

#[test]
fn every_path_of_a_nat64_is_tried_and_is_opened_by_a_rule_of_its_own() {
    let (_, paths) = tried(NAT64, &facts());
    assert_eq!(names(&paths), TRANSLATED);
    assert_eq!(paths[0].nft, "iifname \"lan0\" oifname \"sixway0\" accept");
    assert_eq!(paths[4].iptables, "-i eth0 -o sixway0 -d 192.0.2.0/28 -j ACCEPT");
    assert_eq!(paths[4].nft, "iifname \"eth0\" oifname \"sixway0\" ip daddr { 192.0.2.0/28 } accept");
    assert_eq!(
        paths[5].nft,
        "iifname \"eth0\" oifname \"sixway0\" ip daddr { 192.0.2.0/28 } icmp type destination-unreachable accept"
    );
    assert_eq!(paths[2].iptables, "-i sixway0 -o lan0 -p icmpv6 --icmpv6-type 2 -j ACCEPT");
    assert_eq!((paths[2].within, paths[5].within), (Some(1), Some(4)));
}

#[test]
fn every_nat64_is_tried() {
    let second =
        NAT64.replace("main", "other").replace("192.0.2.0", "192.0.2.16").replace("64:ff9b", "2001:db8:64");
    let pools = |text: &str| {
        text.split_once("[[nat64]]").map(|(pool, nat64)| (pool.to_owned(), format!("[[nat64]]{nat64}")))
    };
    let ((pool1, nat64_1), (pool2, nat64_2)) = (pools(NAT64).unwrap(), pools(&second).unwrap());
    let (_, paths) = tried(&format!("{pool1}{pool2}{nat64_1}{nat64_2}"), &facts());
    assert_eq!(paths.len(), 2 * TRANSLATED.len());
    assert!(names(&paths)[0].ends_with(" (nat64-1)") && names(&paths)[6].ends_with(" (nat64-2)"));
}

#[test]
fn a_mapped_host_of_a_siit_is_tried() {
    let text = "[siit]\nprefix = \"2001:db8:64::/96\"\n[[siit.eam]]\nipv4 = \"192.0.2.7\"\nipv6 = \"2001:db8:1::7\"\n";
    let mapped = Mapped {
        inside: "2001:db8:1::7".parse().unwrap(),
        outside: "192.0.2.7".parse().unwrap(),
        interface: "lan0".into(),
    };
    let (_, paths) = tried(text, &Facts { mapped: vec![Some(mapped)], ..facts() });
    assert_eq!(names(&paths), TRANSLATED);
    assert_eq!(paths[4].iptables, "-i eth0 -o sixway0 -d 192.0.2.7/32 -j ACCEPT");
    assert!(!paths[3].is_private);
}

#[test]
fn the_rule_opens_every_mapping_and_the_dynamic_pool() {
    let mut text = "[siit]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"172.16.0.0/12\"\n".to_owned();
    let mut add = |last| {
        text.push_str(&format!("[[siit.eam]]\nipv4 = \"192.0.2.{last}\"\nipv6 = \"2001:db8:1::{last}\"\n"));
        tried(&text, &facts()).1.swap_remove(4)
    };
    assert_eq!(add(7).iptables, "-i eth0 -o sixway0 -d 192.0.2.7/32,172.16.0.0/12 -j ACCEPT");
    assert_eq!(
        add(9).nft,
        "iifname \"eth0\" oifname \"sixway0\" ip daddr { 192.0.2.7/32, 192.0.2.9/32, 172.16.0.0/12 } accept"
    );
    // Of many, the device is what is opened.
    let many = (11..=40).map(add).last().unwrap();
    assert_eq!(many.iptables, "-i eth0 -o sixway0 -j ACCEPT");
}

#[test]
fn behind_a_private_pool_another_nat_is_normal() {
    let private = NAT64.replace("192.0.2.0/28", "192.168.200.0/28");
    let (_, paths) = tried(&private, &facts());
    assert!(paths[3].is_private && !tried(NAT64, &facts()).1[3].is_private);
}

#[test]
fn iptables_opens_the_dns64_for_udp_and_tcp() {
    let text = format!(
        "{NAT64}[dns64]\nlisten = [\"2001:db8:1::1\"]\nupstream = [{{ address = \"192.0.2.53\" }}]\n"
    );
    let (_, paths) = tried(&text, &facts());
    let expected = "-i lan0 -p udp --dport 53 -j ACCEPT\n-i lan0 -p tcp --dport 53 -j ACCEPT";
    assert_eq!(paths.last().unwrap().iptables, expected);
}

#[test]
fn a_tunnels_outer_and_inner_packets_are_tried() {
    let text = "[tunnels]\nsteering = \"off\"\n[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.7\"\n";
    let (plan, paths) = tried(text, &facts());
    let expected = [
        "packets of protocol 41 from sixway0 to eth0",
        "packets of protocol 41 from eth0 to 203.0.113.7",
        TRANSLATED[0],
        TRANSLATED[1],
        TRANSLATED[2],
    ];
    assert_eq!(names(&paths), expected);
    assert_eq!(paths[0].iptables, "-i sixway0 -o eth0 -p 41 -j ACCEPT");
    assert_eq!(plan.packets[1].tunnel_end, "203.0.113.7".parse().ok());
    // What is steered reaches no rule.
    let (_, paths) = tried(&text.replace("off", "auto"), &facts());
    assert!(!names(&paths).contains(&expected[1]), "{paths:?}");
}

#[test]
fn queries_are_tried_over_ipv4_too() {
    let text = "[dns64]\nlisten = [\"10.0.0.1:53\", \"[2001:db8:1::1]:53\"]\nprefix = \"64:ff9b::/96\"\ntranslated_elsewhere = true\n[[dns64.upstream]]\naddress = \"192.0.2.53\"\n";
    let (plan, paths) = tried(text, &facts());
    assert_eq!(
        names(&paths),
        ["queries from lan0 to DNS64 at 10.0.0.1:53", "queries from lan0 to DNS64 at [2001:db8:1::1]:53"]
    );
    assert!(!paths[0].is_ipv6 && paths[1].is_ipv6);
    // From 10.0.0.2.
    assert_eq!(plan.packets[0].octets[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
}

#[test]
fn datagrams_to_both_addresses_of_a_teredo_server_are_tried() {
    let text = "[teredo_server]\naddress = \"203.0.113.7\"\nnative = false\n";
    let (plan, paths) = tried(text, &facts());
    assert_eq!(names(&paths), ["datagrams from eth0 to the Teredo server at 203.0.113.7:3544"]);
    assert_eq!(paths[0].iptables, "-i eth0 -d 203.0.113.7 -p udp --dport 3544 -j ACCEPT");
    assert!(paths[0].is_input && plan.packets[0].service.as_deref() == Some("203.0.113.7:3544"));
}

#[test]
fn an_address_of_no_network_is_tried_from_the_uplink() {
    let text = "[teredo_server]\naddress = \"198.51.100.7\"\nnative = false\n";
    let on = |interface: &str, length| {
        let mut facts = facts();
        let address = "198.51.100.7".parse().unwrap();
        facts.addresses.push(HostAddress { interface: interface.into(), address, length });
        facts
    };
    for (interface, length) in [("dummy0", 32), ("lo", 32), ("lo", 8)] {
        let (plan, paths) = tried(text, &on(interface, length));
        assert_eq!(names(&paths), ["datagrams from eth0 to the Teredo server at 198.51.100.7:3544"]);
        assert_eq!(plan.packets[0].octets[12..16], REMOTE4.octets());
        // The trial's host must have the address.
        let has_it = |(_, own): &(String, Vec<String>)| own.iter().any(|it| it.starts_with("198.51.100.7/"));
        assert!(plan.interfaces.iter().any(has_it), "{:?}", plan.interfaces);
    }
    // A neighbour's way in is that interface.
    let (plan, paths) = tried(text, &on("dmz0", 24));
    assert!(names(&paths)[0].starts_with("datagrams from dmz0"), "{paths:?}");
    assert_eq!(plan.packets[0].octets[12..16], [198, 51, 100, 5]);
}

#[test]
fn what_teredo_clients_send_through_a_relay_is_tried_both_ways() {
    let text = "[teredo_relay]\naddress = \"203.0.113.7\"\nipv6_address = \"2001:db8:1::1\"\n";
    let (plan, paths) = tried(text, &facts());
    let input = "packets of Teredo clients from eth0 to teredo_relay at 203.0.113.7, UDP port 3544";
    assert_eq!(names(&paths), [input, TRANSLATED[0], TRANSLATED[1], TRANSLATED[2]]);
    let route = ("2001:0:c633:644d:0:63bf:39cc:9bb1/128".to_owned(), "sixway0".to_owned());
    assert!(plan.routes.contains(&route), "{:?}", plan.routes);
}

#[test]
fn a_relay_on_an_interface_of_its_own_is_tried_there() {
    let mut facts = facts();
    let address = "198.51.100.129".parse().unwrap();
    facts.addresses.push(HostAddress { interface: "dmz0".into(), address, length: 25 });
    let text = "[teredo_relay]\naddress = \"198.51.100.129\"\nipv6_address = \"2001:db8:1::1\"\n";
    let (plan, paths) = tried(text, &facts);
    assert!(names(&paths)[0].starts_with("packets of Teredo clients from dmz0"), "{paths:?}");
    assert!(plan.interfaces.iter().any(|(name, _)| name == "dmz0"), "{:?}", plan.interfaces);
}

#[test]
fn without_an_uplink_nothing_can_be_tried() {
    let config = crate::sample::config(NAT64);
    assert_eq!(plan(&config, &Facts { outside: None, ..facts() }, Vec::new()), None);
}

const NAT44: &str = "[gateway]\nipv4_address = \"192.0.2.254\"\n[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"main\"\n";

#[test]
fn every_path_of_a_nat44_is_tried_where_its_inside_hosts_are() {
    let mut facts = facts();
    facts.inside.clear();
    let (plan, paths) = tried(NAT44, &facts);
    let expected = [
        "IPv4 packets from lan0 to sixway0",
        "IPv4 packets from sixway0 to lan0",
        "Fragmentation Needed from sixway0 to lan0",
        "the gateway's own Fragmentation Needed from sixway0 to lan0",
        "IPv4 packets from sixway0 to eth0",
        "IPv4 packets from eth0 to sixway0",
        "Fragmentation Needed from eth0 to sixway0",
        "the gateway's own Fragmentation Needed from sixway0 to eth0",
    ];
    assert_eq!(names(&paths), expected);
    assert_eq!(paths[0].nft, "iifname \"lan0\" oifname \"sixway0\" accept");
    assert_eq!((paths[2].within, paths[6].within), (Some(1), Some(5)));
    assert!(plan.interfaces.iter().any(|(name, _)| name == "lan0"), "{:?}", plan.interfaces);
    let (_, elsewhere) = tried(&format!("{NAT44}interfaces = [\"lan1\"]\n"), &facts);
    assert_eq!(names(&elsewhere), expected[4..]);
}

/// A rule that names the pool, or the hosts' addresses, does not open their path: their source is the gateway's own address.
#[test]
fn errors_that_the_gateway_sends_itself_are_tried_towards_both_sides() {
    let (plan, paths) = tried(NAT44, &facts());
    let own = |interface: &str| {
        let name = format!("the gateway's own Fragmentation Needed from sixway0 to {interface}");
        names(&paths).iter().position(|it| *it == name).unwrap()
    };
    let (inside, outside) = (own("lan0"), own("eth0"));
    let ends = |at: usize| plan.packets[at].octets[12..20].to_vec();
    assert_eq!(
        (ends(inside), ends(outside)),
        (vec![192, 0, 2, 254, 10, 0, 0, 2], [&[192, 0, 2, 254][..], &REMOTE4.octets()].concat())
    );
    // About a packet of a connection of the trial: a rule for related packets lets it pass.
    let about = |at: usize| plan.packets[at].octets[28..].to_vec();
    assert!(plan.packets[..inside].iter().any(|it| it.into == "lan0" && it.octets == about(inside)));
    let ends = |octets: &[u8]| [octets[12..16].to_vec(), octets[16..20].to_vec()];
    let ports = |octets: &[u8]| [octets[20..22].to_vec(), octets[22..24].to_vec()];
    let went_out = &plan.packets[paths[outside].within.unwrap()].octets;
    let ([from, to], [port, remote]) = (ends(went_out), ports(went_out));
    assert_eq!((ends(&about(outside)), ports(&about(outside))), ([to, from], [remote, port]));
    assert_eq!(
        paths[outside].nft,
        "iifname \"sixway0\" oifname \"eth0\" ip saddr 192.0.2.254 icmp type destination-unreachable accept"
    );
    assert_eq!(paths[outside].iptables, "-i sixway0 -o eth0 -s 192.0.2.254 -p icmp --icmp-type 3 -j ACCEPT");
    // Where others' packets, or errors, are dropped, the rule for those opens it for these, too.
    assert_eq!(names(&paths)[paths[outside].within.unwrap()], "IPv4 packets from sixway0 to eth0");
    assert_eq!(names(&paths)[paths[inside].within.unwrap()], "Fragmentation Needed from sixway0 to lan0");
    let text = format!("[gateway]\nipv6_address = \"2001:db8:fe::1\"\n{NAT64}");
    let (plan, paths) = tried(&text, &facts());
    let name = "the gateway's own Packet Too Big from sixway0 to lan0";
    assert_eq!(names(&paths)[3], name, "{:?}", names(&paths));
    assert_eq!(plan.packets[3].octets[8..24], "2001:db8:fe::1".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(
        paths[3].nft,
        "iifname \"sixway0\" oifname \"lan0\" ip6 saddr 2001:db8:fe::1 icmpv6 type packet-too-big accept"
    );
    assert_eq!(paths[3].iptables, "-i sixway0 -o lan0 -s 2001:db8:fe::1 -p icmpv6 --icmpv6-type 2 -j ACCEPT");
}

fn softwire(local: &str, remote: &str) -> crate::doctor::softwires::Softwire {
    crate::doctor::softwires::Softwire {
        name: "tunnel".into(),
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        whose: "remote",
        to: remote.into(),
        is_circle: false,
        link: Some("wan0".into()),
        has_ipv4: true,
        has_ipv6: false,
    }
}

#[test]
fn every_path_of_a_b4_is_tried_without_an_ipv4_uplink() {
    let text = "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:99::b4\"\naftr = \"2001:db8:a::1\"\n";
    let softwires = vec![softwire("2001:db8:99::b4", "2001:db8:a::1")];
    let (_, paths) = tried(text, &Facts { outside: None, softwires, ..facts() });
    let expected = [
        "IPv4 in IPv6 from sixway0 to wan0",
        "IPv4 in IPv6 from wan0 to sixway0",
        "Packet Too Big from wan0 to sixway0",
        "IPv4 packets from lan0 to sixway0",
        "IPv4 packets from sixway0 to lan0",
        "Fragmentation Needed from sixway0 to lan0",
        "the gateway's own Fragmentation Needed from sixway0 to lan0",
    ];
    assert_eq!(names(&paths), expected);
    assert_eq!(
        paths[0].iptables,
        "-i sixway0 -o wan0 -p 4 -j ACCEPT\n-i sixway0 -o wan0 -p ipv6-icmp -j ACCEPT"
    );
}

#[test]
fn guests_of_other_programs_and_the_uplink_are_no_hosts_behind_a_tunnel() {
    let mut it = facts();
    for interface in ["docker0", "br-0123456789ab", "virbr0", "lxcbr0"] {
        let address = "172.17.0.1".parse().unwrap();
        it.addresses.insert(0, HostAddress { interface: interface.into(), address, length: 16 });
    }
    it.softwires = vec![softwire("192.0.2.77", "198.51.100.7")];
    let text = "[ip_in_ip]\nlocal = \"192.0.2.77\"\nremote = \"198.51.100.7\"\nprefixes = \"10.7.0.0/16\"\n";
    let (_, paths) = tried(text, &it);
    let inner: Vec<_> =
        names(&paths).into_iter().filter(|name| name.starts_with("IPv4 packets from")).collect();
    assert_eq!(inner, ["IPv4 packets from lan0 to sixway0", "IPv4 packets from sixway0 to lan0"]);
}

#[test]
fn outer_and_inner_packets_of_ip_in_ip_are_tried() {
    let text = "[ip_in_ip]\nlocal = \"192.0.2.77\"\nremote = \"198.51.100.7\"\nprefixes = \"10.7.0.0/16\"\n";
    let softwires = vec![softwire("192.0.2.77", "198.51.100.7")];
    let (_, paths) = tried(text, &Facts { softwires, ..facts() });
    let expected = ["IPv4 in IPv4 from sixway0 to wan0", "IPv4 in IPv4 from wan0 to sixway0"];
    assert_eq!(names(&paths)[..2], expected);
    assert!(names(&paths).contains(&"IPv4 packets from lan0 to sixway0"), "{paths:?}");
}

#[test]
fn a_concentrators_pool_and_hosts_of_a_realm_are_tried() {
    let hub = "[four_over_six]\nrole = \"concentrator\"\naddresses = \"2001:db8:c::1\"\npool = \"198.51.100.16/29\"\nclients = \"2001:db8:b::/64\"\n";
    let softwires = vec![softwire("2001:db8:c::1", "2001:db8:b::5157")];
    let (_, paths) = tried(hub, &Facts { softwires, ..facts() });
    assert_eq!(names(&paths)[3..], TRANSLATED[3..]);
    assert_eq!(paths[4].iptables, "-i eth0 -o sixway0 -d 198.51.100.16/29 -j ACCEPT");
    let realm = format!(
        "{}[[realm]]\nname = \"red\"\ntable = 100\ninterfaces = [\"lan0\"]\ninside = [\"10.0.0.0/8\"]\npool = \"main\"\n",
        NAT44.split("[nat44]").next().unwrap()
    );
    let (plan, paths) = tried(&realm, &facts());
    assert_eq!(names(&paths)[0], "IPv4 packets from lan0 to sixway0-red");
    assert!(plan.interfaces.iter().any(|(name, _)| name == "sixway0-red"), "{:?}", plan.interfaces);
}

/// Realms at VRFs, and those whose hosts have the same addresses.
#[test]
fn packets_of_a_realm_come_in_by_its_vrf_and_each_realm_is_tried() {
    let realm = |name: &str, vrf: &str| {
        format!(
            "[[realm]]\nname = \"{name}\"\nvrf = \"{vrf}\"\ninside = [\"10.0.0.0/8\"]\npool = \"{name}\"\n[[pool]]\nname = \"{name}\"\naddresses = [\"{}\"]\n",
            if name == "red" { "192.0.2.0/28" } else { "192.0.2.16/28" }
        )
    };
    let own = "[gateway]\nipv4_address = \"192.0.2.40\"\n";
    let text = format!("{}{}{own}", realm("red", "vrf-red"), realm("blue", "vrf-blue"));
    let mut it = facts();
    it.addresses.push(HostAddress {
        interface: "lan1".into(),
        address: "10.0.0.1".parse().unwrap(),
        length: 24,
    });
    it.members = [("vrf-red", "lan0"), ("vrf-blue", "lan1")]
        .map(|(vrf, lan)| (vrf.to_owned(), vec![lan.to_owned()]))
        .into();
    let (plan, paths) = tried(&text, &it);
    let expected = |vrf: &str, lan: &str, name: &str| {
        [
            format!("IPv4 packets from {vrf} to sixway0-{name} ({name})"),
            format!("IPv4 packets from {vrf} to {lan} ({name})"),
            format!("Fragmentation Needed from {vrf} to {lan} ({name})"),
        ]
    };
    for (vrf, lan, name) in [("vrf-red", "lan0", "red"), ("vrf-blue", "lan1", "blue")] {
        for path in expected(vrf, lan, name) {
            assert!(names(&paths).contains(&path.as_str()), "{path}: {:?}", names(&paths));
        }
    }
    let of_hosts = plan.routes.iter().filter(|(_, to)| to.starts_with("lan")).map(|(host, _)| host.as_str());
    assert!(
        ["10.0.0.2/32", "10.0.0.3/32"].iter().all(|host| of_hosts.clone().any(|it| it == *host)),
        "{plan:?}"
    );
}

#[test]
fn bridges_of_other_programs_leave_the_lan_its_trial() {
    let mut it = facts();
    it.inside.clear();
    for number in 0..12 {
        let address = format!("10.99.{number}.1").parse().unwrap();
        let interface = format!("br-0123456789{number:02}");
        it.addresses.insert(0, HostAddress { interface, address, length: 24 });
    }
    let (_, paths) = tried(NAT44, &it);
    assert_eq!(names(&paths)[0], "IPv4 packets from lan0 to sixway0");
}

#[test]
fn queries_of_ipv4_clients_are_tried_at_any_address() {
    let mut it = facts();
    it.inside.clear();
    let dns64 = "[dns64]\nlisten = [\"0.0.0.0:53\"]\nallow = [\"10.0.0.0/8\"]\nprefix = \"64:ff9b::/96\"\ntranslated_elsewhere = true\n[[dns64.upstream]]\naddress = \"192.0.2.53\"\n";
    let (_, paths) = tried(&format!("{NAT44}{dns64}"), &it);
    assert!(names(&paths).contains(&"queries from lan0 to DNS64 at 0.0.0.0:53"), "{:?}", names(&paths));
}

#[test]
fn queries_for_leases_are_tried() {
    let hub = "[four_over_six]\nrole = \"concentrator\"\naddresses = \"2001:db8:c::1\"\npool = \"198.51.100.16/29\"\nclients = \"2001:db8:b::/64\"\nlisten = \"2001:db8:c::1\"\n";
    let mut it = facts();
    it.softwires = vec![crate::doctor::softwires::Softwire {
        name: "four_over_six".into(),
        ..softwire("2001:db8:c::1", "2001:db8:b::5157")
    }];
    it.addresses.push(HostAddress {
        interface: "wan0".into(),
        address: "2001:db8:c::1".parse().unwrap(),
        length: 64,
    });
    let (plan, paths) = tried(hub, &it);
    let at =
        names(&paths).iter().position(|name| *name == "DHCP queries from wan0 to 2001:db8:c::1").unwrap();
    assert_eq!(paths[at].nft, "iifname \"wan0\" ip6 daddr 2001:db8:c::1 udp dport 547 accept");
    assert_eq!(plan.packets[at].service.as_deref(), Some("[2001:db8:c::1]:547"));
    // By default the server listens at all addresses.
    let (_, paths) = tried(&hub.replace("listen = \"2001:db8:c::1\"\n", ""), &it);
    let of_any = paths.iter().find(|path| path.name.starts_with("DHCP queries from wan0 to ")).unwrap();
    assert_eq!(of_any.nft, "iifname \"wan0\" udp dport 547 accept");
    assert_eq!(of_any.iptables, "-i wan0 -p udp --dport 547 -j ACCEPT");
}

#[test]
fn answers_with_leases_are_tried() {
    let host = "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\nservers = \"2001:db8:77::547\"\n";
    let mut it = facts();
    it.softwires = vec![softwire("2001:db8:b::1", "2001:db8:c::1")];
    let (server, own) = ("2001:db8:77::547".parse().unwrap(), "2001:db8:9::2".parse().unwrap());
    it.lease_servers = vec![crate::doctor::lease_servers::LeaseServer { server, own, link: "wan0".into() }];
    let (plan, paths) = tried(host, &it);
    let at =
        names(&paths).iter().position(|name| *name == "DHCP answers from wan0 to 2001:db8:9::2").unwrap();
    assert_eq!(paths[at].nft, "iifname \"wan0\" ip6 daddr 2001:db8:9::2 udp dport 546 accept");
    assert_eq!(plan.packets[at].service.as_deref(), Some("[2001:db8:9::2]:546"));
}

const ADVERTISED: &str = "[[router_advertisement]]\ninterface = \"lan0\"\nprefixes = [{ prefix = \"2001:db8:1::/64\" }]\nrdnss = []\n";

fn with_uplink6(interface: &str) -> Facts {
    Facts { uplink6: Some(crate::host::Hop { interface: interface.into(), gateway: None }), ..facts() }
}

#[test]
fn native_ipv6_of_an_advertised_lan_is_tried_both_ways() {
    let text = format!("{NAT64}{ADVERTISED}");
    let (plan, paths) = tried(&text, &with_uplink6("wan0"));
    let native: Vec<_> = paths.iter().filter(|path| path.name.contains("wan0")).collect();
    let said: Vec<&str> = native.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(
        said,
        [
            "IPv6 packets from lan0 to wan0",
            "IPv6 packets from wan0 to lan0",
            "Packet Too Big from wan0 to lan0",
            "router advertisements from wan0"
        ]
    );
    // Unsolicited packets are not expected to pass. Whether a reply is dropped is known only if the request was sent.
    let outward = names(&paths).iter().position(|name| *name == said[0]);
    assert_eq!((native[0].within, native[1].within), (None, outward));
    assert_eq!(native[1].nft, "iifname \"wan0\" oifname \"lan0\" ct state established,related accept");
    assert_eq!(native[1].iptables, "-i wan0 -o lan0 -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT");
    assert!(plan.interfaces.iter().any(|(name, _)| name == "wan0"), "{:?}", plan.interfaces);
    // Through the gateway's own tunnel, to no Internet, or from a LAN with local addresses alone, nothing is native.
    let local = text.replace("prefix = \"2001:db8:1::/64\"", "prefix = \"fd00:1::/64\"");
    for (text, it) in [(&text, with_uplink6("sixway0")), (&text, facts()), (&local, with_uplink6("wan0"))] {
        let (_, paths) = tried(text, &it);
        assert!(!names(&paths).iter().any(|name| name.contains("wan0")), "{paths:?}");
    }
}

#[test]
fn requests_of_hosts_of_the_lan_to_this_host_are_tried() {
    let text = format!("{NAT44}{ADVERTISED}[pcp]\ninterfaces = [\"lan0\"]\n");
    let dnsmasq =
        crate::doctor::dnsmasq_file::Dnsmasq { listen: vec![Ipv4Addr::new(10, 0, 0, 1)], answers_dns: true };
    let (plan, paths) = tried(&text, &Facts { dnsmasq: Some(dnsmasq), ..facts() });
    let asked: Vec<_> = plan.packets.iter().zip(&paths).filter(|(_, path)| path.is_input).collect();
    let said: Vec<&str> = asked.iter().map(|(_, path)| path.name.as_str()).collect();
    assert_eq!(
        said,
        [
            "router solicitations from lan0",
            "PCP requests from lan0",
            "DHCP requests from lan0",
            "queries to dnsmasq from lan0"
        ]
    );
    let rules: Vec<&str> = asked.iter().map(|(_, path)| path.iptables.as_str()).collect();
    assert_eq!(
        rules,
        [
            "-i lan0 -p ipv6-icmp -j ACCEPT",
            "-i lan0 -p udp --dport 5351 -j ACCEPT",
            "-i lan0 -p udp --dport 67 -j ACCEPT",
            "-i lan0 -p udp --dport 53 -j ACCEPT\n-i lan0 -p tcp --dport 53 -j ACCEPT"
        ]
    );
    assert!(asked[0].0.is_discovery && asked[0].0.octets[7] == 255);
    // A client without an address sends a broadcast (RFC 2131 §4.1).
    assert_eq!(asked[2].0.octets[12..20], [0, 0, 0, 0, 255, 255, 255, 255]);
    assert_eq!(asked[2].0.service.as_deref(), Some("0.0.0.0:67"));
}
