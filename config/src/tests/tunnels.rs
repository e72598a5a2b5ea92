//! Tunnels: what is read, and what is said of what cannot be.

use super::*;
use crate::encapsulation::Ecn;
use std::net::IpAddr;
use std::time::Duration;

/// A good configuration with these lines of it; the first is line 4.
pub(super) fn with(text: &str) -> String {
    format!("{OWN}{text}")
}

#[track_caller]
fn good(text: &str) -> Config {
    parse(&with(text)).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}")).0
}

#[track_caller]
pub(super) fn fault(text: &str, said: &str) {
    faults(&with(text), &[said]);
}

const ALL: &str = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\nmtu = \"dynamic\"\necn = \"normal\"\n[[six_rd]]\nrole = \"border_relay\"\nprefix = \"2001:db8::/32\"\nipv4_mask_length = 8\nipv4_common = \"10.0.0.0/8\"\ninterface = \"eth0\"\n[[tunnel]]\nname = \"one\"\nlocal = \"203.0.113.7\"\nremote = \"198.51.100.1\"\nprefixes = [\"::/0\"]\nipv6_address = \"2001:db8:ffff:1::2\"\n[[tunnel]]\ninterface = \"eth0\"\nremote = \"gw.example\"\nremote_within = [\"198.51.100.0/24\"]\nprefixes = \"2a00:1::/48\"\nttl = \"copy\"\n[isatap]\nrole = \"router\"\naddress = \"203.0.113.7\"\nprefix = \"2a00:2::/64\"\n[tunnels]\nsteering = \"off\"\ninterfaces = [\"eth0\"]\n";

#[test]
fn all_kinds_of_tunnels_may_share_one_address_and_read_again_as_written_out() {
    let config = good(ALL);
    assert_eq!(config.six_to_four[0].encapsulation.mtu, TunnelMtu::Dynamic);
    assert_eq!(config.six_rd[0].encapsulation.mtu, TunnelMtu::Static(1_280));
    assert_eq!(config.six_rd[0].local.found, Some([203, 0, 113, 7].into()));
    assert_eq!(
        [&*config.configured_tunnels[0].name, &*config.configured_tunnels[1].name],
        ["one", "tunnel-2"]
    );
    assert_eq!(config.configured_tunnels[1].encapsulation.ttl, HeaderByte::Copy);
    assert_eq!(config.tunnels.steering, Steering::Off);
    let again = config.to_string();
    assert_eq!(parse(&again).unwrap_or_else(|faults| panic!("{faults}\nin:\n{again}")).0, config);
    let now = Surroundings::of(&host().addresses);
    let tunnels: Vec<&str> = config.tunnels(&now).into_iter().map(|(name, _)| name).collect();
    assert_eq!(tunnels, ["one", "tunnel-2", "six_rd", "six_to_four", "isatap"]);
    let reach = config.reach(&now);
    let routes: Vec<String> = reach.routes.iter().map(|route| route.prefix.to_string()).collect();
    assert_eq!(routes, ["::/0", "2001:db8::/32", "2002::/16", "2a00:1::/48", "2a00:2::/64"]);
    assert_eq!(reach.routes[1].mtu, Some(1_280));
    assert_eq!(reach.routes[2].mtu, None, "the path decides");
    let addresses: Vec<String> = reach.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["2001:db8:ffff:1::2", "2a00:2::5efe:cb00:7107"]);
}

#[test]
fn a_site_gets_its_prefix_from_the_address_and_loses_it_with_the_address() {
    let text = "[six_to_four]\nrole = \"router\"\ninterface = \"eth0\"\nrelay = \"198.51.100.1\"\n[router_advertisement]\ninterface = \"lan0\"\nprefixes = [{ from = \"six_to_four\", subnet = 1 }]\n";
    let config = parse(text).unwrap().0;
    let reach = config.reach(&Surroundings::of(&host().addresses));
    assert_eq!(reach.unreachable, ["2002:cb00:7107::/48".parse().unwrap()]);
    let lan =
        LinkAddress { interface: "lan0".into(), address: "2002:cb00:7107:1::1".parse().unwrap(), length: 64 };
    assert_eq!((reach.link_addresses, reach.addresses.len(), reach.routes.len()), (vec![lan], 0, 2));
    assert_eq!(config.reach(&Surroundings::default()), Reach::default());
    let own = config.ipv6_address(&Surroundings::of(&host().addresses));
    assert_eq!(own, Some("2002:cb00:7107::1".parse().unwrap()));
}

#[test]
fn the_dns_knows_a_remote_or_it_is_an_address() {
    let tunnel = |remote: &str| {
        format!("[tunnel]\nlocal = \"203.0.113.7\"\nremote = \"{remote}\"\nprefixes = \"::/0\"\n")
    };
    good(&tunnel("gw.example"));
    for (remote, said) in [
        ("198.51.100", "is neither an IPv4 address nor a name; write one such as 198.51.100.1 or gw.example"),
        ("127.0.0.1", "is not a valid host address; write a unicast address"),
        ("203.0.113.7", "is also the local end; write the address of the remote end"),
    ] {
        fault(&tunnel(remote), &format!("sixway.toml:6  tunnel.remote = \"{remote}\"  {said}"));
    }
    fault(
        &format!("{}remote_within = \"198.51.100.0/24\"\n", tunnel("198.51.100.1")),
        "sixway.toml:8  tunnel.remote_within = \"198.51.100.0/24\"  applies only to a remote that is a name; remove it",
    );
}

#[test]
fn a_tunnel_has_an_address_of_this_host_and_one_way_to_name_it() {
    let tunnel = "[tunnel]\nremote = \"198.51.100.1\"\nprefixes = \"::/0\"\n";
    fault(
        tunnel,
        "sixway.toml:4  tunnel  has no address; write local = \"192.0.2.1\" or interface = \"eth0\"",
    );
    fault(
        &format!("{tunnel}local = \"203.0.113.7\"\ninterface = \"eth0\"\n"),
        "sixway.toml:8  tunnel.interface = \"eth0\"  cannot be combined with local; remove one",
    );
    fault(
        &format!("{tunnel}local = \"203.0.113.8\"\n"),
        "sixway.toml:7  tunnel.local = \"203.0.113.8\"  this host does not have this address; add it (ip address add 203.0.113.8/32 dev INTERFACE), or write one of 203.0.113.7 (eth0), 192.0.2.254 (sixway0)",
    );
    fault(
        &format!("{tunnel}local = \"224.0.0.1\"\n"),
        "sixway.toml:7  tunnel.local = \"224.0.0.1\"  is not a valid host address; write a unicast address",
    );
    warnings(
        &with(&format!("{tunnel}interface = \"eht0\"\n")),
        &[
            "sixway.toml:7  tunnel.interface = \"eht0\"  has no IPv4 address yet; the tunnel starts when it has one; did you mean \"eth0\"?",
        ],
    );
}

#[test]
fn an_interface_that_is_not_there_is_reported_with_the_one_that_was_meant() {
    let text = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n[tunnels]\ninterfaces = ";
    let said = "sixway.toml:8  tunnels.interfaces  interface \"eth1\" does not exist; nothing is steered until it appears";
    warnings(&with(&format!("{text}[\"eth1\"]\n")), &[&format!("{said}; did you mean \"eth0\"?")]);
    warnings(&with(&format!("{text}[\"eth1\", \"eth0\"]\n")), &[said]);
    let said = "sixway.toml:8  tunnels.interfaces  \"a/b\" is not a valid interface name (at most 15 characters); write one that `ip link` shows";
    fault(&format!("{text}[\"a/b\"]\n"), said);
}

#[test]
fn six_to_four_behind_a_nat_is_refused_with_the_reason() {
    let mut host = host();
    host.addresses.push(HostAddress {
        interface: "lan0".into(),
        address: "192.168.1.5".parse().unwrap(),
        length: 24,
    });
    let check = |text: &str| match Config::parse("sixway.toml", &with(text), &host, &mut no_files) {
        Ok((config, _)) => {
            Ok(config.six_to_four[0].site([192, 168, 1, 5].into()).map(|site| site.to_string()))
        }
        Err(faults) => Err(lines(faults.remarks())),
    };
    let router = "[six_to_four]\nrole = \"router\"\naddress = \"192.168.1.5\"\n";
    let what = "not global (private use): 6to4 belongs at the outermost NAT (RFC 3056 §5.8); run it there, or, if that NAT hands protocol 41 to this host, write nat_address = its outer address";
    let said = format!("sixway.toml:6  six_to_four.address = \"192.168.1.5\"  is {what}");
    assert_eq!(check(router), Err(vec![said]));
    let followed = router.replace("address = \"192.168.1.5\"", "interface = \"lan0\"");
    let said = format!("sixway.toml:6  six_to_four.interface = \"lan0\"  has 192.168.1.5, which is {what}");
    assert_eq!(check(&followed), Err(vec![said]));
    let outer = check(&format!("{router}nat_address = \"192.0.2.1\"\n"));
    assert_eq!(outer, Ok(Some("2002:c000:201::/48".into())));
    let said = "sixway.toml:7  six_to_four.nat_address = \"10.0.0.1\"  is not global (private use); write the outer address of the outermost NAT";
    assert_eq!(check(&format!("{router}nat_address = \"10.0.0.1\"\n")), Err(vec![said.into()]));
}

#[test]
fn the_anycast_address_is_for_relays_and_has_its_warning() {
    let mut host = host();
    host.addresses.push(HostAddress {
        interface: "lo".into(),
        address: "192.88.99.1".parse().unwrap(),
        length: 32,
    });
    let check = |role: &str| {
        let text = with(&format!("[six_to_four]\nrole = \"{role}\"\naddress = \"192.88.99.1\"\n"));
        match Config::parse("sixway.toml", &text, &host, &mut no_files) {
            Ok((_, warnings)) => lines(&warnings),
            Err(faults) => lines(faults.remarks()),
        }
    };
    let at = "sixway.toml:6  six_to_four.address = \"192.88.99.1\"  is the anycast address of";
    let said = format!(
        "{at} 6to4 relays, which RFC 7526 deprecates: routes to it are filtered in many networks; prefer an address of your own"
    );
    assert_eq!(check("relay"), [said]);
    let said = format!(
        "{at} relays and cannot be a site's (RFC 3068 §2.4); write an address that only this host has"
    );
    assert_eq!(check("host"), [said]);
}

#[test]
fn what_only_another_role_has_is_reported() {
    let relay = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n";
    fault(
        &format!("{relay}relay = \"198.51.100.1\"\n"),
        "sixway.toml:7  six_to_four.relay = \"198.51.100.1\"  a relay reaches native destinations directly; remove it",
    );
    fault(
        &format!("{relay}native_sources = [\"198.51.100.1\"]\n"),
        "sixway.toml:7  six_to_four.native_sources  applies only to routers and hosts; remove it",
    );
    let border = "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:db8::/32\"\naddress = \"203.0.113.7\"\n";
    fault(
        &format!("{border}border_relays = [\"198.51.100.1\"]\n"),
        "sixway.toml:8  six_rd.border_relays  this gateway is the border relay; remove it",
    );
    fault(
        &border.replace("border_relay\"", "customer_edge\""),
        "sixway.toml:4  six_rd.border_relays  is missing; write border_relays = [\"192.0.2.254\"], as given by the provider (RFC 5969 §7.1.1)",
    );
    let router = "[isatap]\nrole = \"router\"\naddress = \"203.0.113.7\"\n";
    fault(
        router,
        "sixway.toml:4  isatap.prefix  is missing; write the prefix to advertise, such as prefix = \"2001:db8:1::/64\"",
    );
    fault(
        &router.replace("router", "host"),
        "sixway.toml:4  isatap.potential_routers  is missing; write potential_routers = [\"192.0.2.254\"], the site's routers (RFC 5214 §8.3.1)",
    );
    fault(
        &format!("{router}prefix = \"2001:db8:1::/48\"\n"),
        "sixway.toml:7  isatap.prefix = \"2001:db8:1::/48\"  is 48 bits long; an ISATAP prefix must be 64 bits long (RFC 5214 §6.1)",
    );
}

/// RFC 5214 §8.3.4: MinRouterSolicitInterval is configurable.
#[test]
fn how_often_a_host_asks_its_routers_is_the_operators() {
    let host = "[isatap]\nrole = \"host\"\ninterface = \"eth0\"\npotential_routers = [\"198.51.100.1\"]\n";
    let local = "203.0.113.7".parse().unwrap();
    for (line, seconds) in [("", 120), ("min_solicit_interval = \"10 min\"\n", 600)] {
        let config = good(&format!("{host}{line}"));
        let settings = config.isatap[0].host_settings(local);
        assert_eq!((settings.local, settings.min_solicit_interval), (local, Duration::from_secs(seconds)));
        assert_eq!(parse(&config.to_string()).unwrap().0, config);
    }
    fault(
        &format!("{host}min_solicit_interval = \"3 s\"\n"),
        "sixway.toml:8  isatap.min_solicit_interval = \"3 s\"  is out of range; write 4 s to 1 d",
    );
    let router = "[isatap]\nrole = \"router\"\naddress = \"203.0.113.7\"\nprefix = \"2001:db8:1::/64\"\n";
    fault(
        &format!("{router}min_solicit_interval = \"5 min\"\n"),
        "sixway.toml:8  isatap.min_solicit_interval = \"5 min\"  only a host solicits routers; remove it",
    );
}

/// RFC 5969 §7.1.1: a customer edge can be disabled, and it is until it is configured.
#[test]
fn without_its_section_there_is_no_tunnel_of_any_kind() {
    let config = parse("[siit]\nprefix = \"2001:db8:64::/96\"\n").unwrap().0;
    assert!(config.six_rd.is_empty() && config.six_to_four.is_empty() && config.isatap.is_empty());
    assert!(config.configured_tunnels.is_empty());
    assert!(config.tunnels(&Surroundings::of(&host().addresses)).is_empty());
}

/// RFC 6040 §4.3: nothing is known of the other end unless the operator configures it.
#[test]
fn every_kind_of_tunnel_clears_congestion_marks_unless_it_is_told_otherwise() {
    for (text, six_to_four) in
        [(ALL, Ecn::Normal), (&ALL.replace("ecn = \"normal\"\n", ""), Ecn::Compatibility)]
    {
        let config = good(text);
        assert_eq!(config.six_to_four[0].encapsulation.ecn, six_to_four);
        assert_eq!(config.six_rd[0].encapsulation.ecn, Ecn::Compatibility);
        assert_eq!(config.isatap[0].encapsulation.ecn, Ecn::Compatibility);
        assert!(config.configured_tunnels.iter().all(|it| it.encapsulation.ecn == Ecn::Compatibility));
    }
}

#[test]
fn a_prefix_that_does_not_fit_its_lengths_is_told_what_would() {
    let six_rd = |prefix: &str, mask: u8| {
        format!(
            "[six_rd]\nrole = \"border_relay\"\nprefix = \"{prefix}\"\nipv4_mask_length = {mask}\naddress = \"203.0.113.7\"\n"
        )
    };
    fault(
        &six_rd("2001:db8::/100", 0),
        "sixway.toml:6  six_rd.prefix = \"2001:db8::/100\"  the delegated prefixes would be 132 bits long, and an address has 128 (RFC 5969 §7.1.1): shorten the 6rd prefix, or lengthen the IPv4 prefix that the domain shares",
    );
    warnings(
        &with(&six_rd("2001:db8::/48", 0)),
        &[
            "sixway.toml:6  six_rd.prefix = \"2001:db8::/48\"  the delegated prefixes are 80 bits long: a site needs at least a /64 for its hosts; write a shorter prefix (RFC 5969 §4)",
        ],
    );
    fault(
        &six_rd("2002::/24", 8),
        "sixway.toml:6  six_rd.prefix = \"2002::/24\"  2002::/16 belongs to 6to4 (RFC 3056 §2); a provider has a prefix of its own",
    );
    fault(
        &format!("{}ipv4_common = \"10.0.0.0/8\"\n", six_rd("2001:db8::/40", 16)),
        "sixway.toml:9  six_rd.ipv4_common = \"10.0.0.0/8\"  is not as long as ipv4_mask_length, 16; write the same length in both",
    );
    let edge = six_rd("2001:db8::/32", 8).replace("border_relay", "customer_edge");
    fault(
        &format!("{edge}ipv4_common = \"10.0.0.0/8\"\nborder_relays = \"10.0.0.1\"\n"),
        "sixway.toml:8  six_rd.address = \"203.0.113.7\"  203.0.113.7 is not within ipv4_common, 10.0.0.0/8: all customers' addresses must be within it (RFC 5969 §4)",
    );
}

#[test]
fn tunnels_whose_packets_could_not_be_distinguished_are_named() {
    let tunnel = |name: &str, remote: &str, prefix: &str| {
        format!("[[tunnel]]\nname = \"{name}\"\nlocal = \"203.0.113.7\"\n{remote}\nprefixes = \"{prefix}\"\n")
    };
    let fixed = "remote = \"198.51.100.1\"";
    fault(
        &(tunnel("a", fixed, "2a00:1::/48") + &tunnel("b", fixed, "2a00:2::/48")),
        "sixway.toml:9  tunnel[1]  its packets cannot be distinguished from those of tunnel[0] (line 4): both have the same two ends; write one [[tunnel]] with all prefixes, or give one of them another address of this host",
    );
    let six = |name: &str| {
        format!("[[six_to_four]]\nname = \"{name}\"\nrole = \"relay\"\naddress = \"203.0.113.7\"\n")
    };
    fault(
        &(six("a") + &six("b")),
        "sixway.toml:8  six_to_four[1]  its packets cannot be distinguished from those of six_to_four[0] (line 4): both are 6to4 with the same address; remove one, or give one of them another address of this host",
    );
    let isatap = |name: &str, prefix: &str| {
        format!(
            "[[isatap]]\nname = \"{name}\"\nrole = \"router\"\naddress = \"203.0.113.7\"\nprefix = \"{prefix}\"\n"
        )
    };
    fault(
        &(isatap("a", "2a00:1::/64") + &isatap("b", "2a00:2::/64")),
        "sixway.toml:9  isatap[1]  its packets cannot be distinguished from those of isatap[0] (line 4): both are ISATAP with the same address; remove one, or give one of them another address of this host",
    );
    let domain = |prefix: &str| {
        format!("[[six_rd]]\nrole = \"border_relay\"\nprefix = \"{prefix}\"\naddress = \"203.0.113.7\"\n")
    };
    good(&(domain("2a00::/32") + &domain("2a01::/32")));
    fault(
        &(domain("2a00::/32") + &domain("2a00::/31")),
        "sixway.toml:10  six_rd[1].prefix = \"2a00::/31\"  2a00::/31 overlaps 2a00::/32 of six_rd[0].prefix (line 6); an address can belong to only one of them; choose prefixes that do not overlap",
    );
    fault(
        &(tunnel("a", fixed, "2a00:1::/48") + &tunnel("a", "remote = \"198.51.100.2\"", "2a00:2::/48")),
        "sixway.toml:9  tunnel[1]  tunnel[0] (line 4) already has the name a; choose a different name",
    );
}

#[test]
fn there_is_one_way_to_the_rest_of_ipv6() {
    let router = "[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.7\"\nrelay = \"198.51.100.1\"\n";
    let tunnel = "[tunnel]\nlocal = \"203.0.113.7\"\nremote = \"198.51.100.2\"\nprefixes = \"::/0\"\n";
    fault(
        &format!("{router}{tunnel}"),
        "sixway.toml:11  tunnel.prefixes = \"::/0\"  ::/0 overlaps ::/0 of six_to_four.relay (line 7); an address can belong to only one of them; choose prefixes that do not overlap",
    );
    good(&format!("{router}{}", tunnel.replace("::/0", "2a00:1::/48")));
}

#[test]
fn a_kernels_tunnel_that_would_take_protocol_41_is_reported_with_the_command_that_removes_it() {
    let text = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n";
    let check = |name: &str, local: Option<[u8; 4]>, up: bool, more: &str| {
        let mut host = host();
        host.tunnels.push(KernelTunnel { name: name.into(), local: local.map(Into::into), up });
        match Config::parse("sixway.toml", &with(&format!("{text}{more}")), &host, &mut no_files) {
            Ok((_, warnings)) => (true, lines(&warnings).join("\n")),
            Err(faults) => (false, lines(faults.remarks()).join("\n")),
        }
    };
    let off = "[tunnels]\nsteering = \"off\"\n";
    assert_eq!(
        check("sit1", Some([203, 0, 113, 7]), true, ""),
        (
            false,
            "sixway.toml:4  six_to_four  sit1, a tunnel device of the kernel, takes protocol 41 for 203.0.113.7; remove it: ip link delete sit1".into()
        )
    );
    assert_eq!(check("sit1", Some([203, 0, 113, 9]), true, off), (true, String::new()));
    let (good, said) = check("sit0", None, false, "");
    assert!(
        good && said.contains(
            "it has no effect while it is down and protocol 41 is steered; to remove it: modprobe -r sit"
        ),
        "{said}"
    );
    let (good, said) = check("sit0", None, false, off);
    assert!(!good && said.contains("for any address; remove it: modprobe -r sit"), "{said}");
}

#[test]
fn nobody_is_his_own_relay_router_or_other_end() {
    fault(
        "[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.7\"\nrelay = \"203.0.113.7\"\n",
        "sixway.toml:7  six_to_four.relay = \"203.0.113.7\"  is also the local end; write the address of another router, or remove it",
    );
    fault(
        "[six_rd]\nrole = \"customer_edge\"\nprefix = \"2a00::/32\"\ninterface = \"eth0\"\nborder_relays = \"203.0.113.7\"\n",
        "sixway.toml:8  six_rd.border_relays = \"203.0.113.7\"  203.0.113.7 is also the local end; write the provider's address",
    );
    fault(
        "[isatap]\nrole = \"host\"\ninterface = \"eth0\"\npotential_routers = \"203.0.113.7\"\n",
        "sixway.toml:7  isatap.potential_routers = \"203.0.113.7\"  203.0.113.7 is also the local end; write the routers' addresses",
    );
    fault(
        "[tunnel]\nlocal = \"203.0.113.7\"\nremote = \"192.0.2.254\"\nprefixes = \"::/0\"\n",
        "sixway.toml:6  tunnel.remote = \"192.0.2.254\"  is this host's own address on sixway0; write the address of the remote end",
    );
}

#[test]
fn prefixes_without_hosts_lead_into_no_tunnel() {
    let what = "is link-local or multicast; write a prefix of hosts' addresses";
    for prefix in ["fe80::/64", "ff00::/8"] {
        fault(
            &format!(
                "[tunnel]\nlocal = \"203.0.113.7\"\nremote = \"198.51.100.1\"\nprefixes = [\"{prefix}\"]\n"
            ),
            &format!("sixway.toml:7  tunnel.prefixes  {prefix} {what}"),
        );
    }
    fault(
        "[isatap]\nrole = \"router\"\naddress = \"203.0.113.7\"\nprefix = \"fe80::/64\"\n",
        &format!("sixway.toml:7  isatap.prefix = \"fe80::/64\"  {what}"),
    );
}

#[test]
fn what_no_interface_can_be_called_is_not_waited_for() {
    for name in ["../eth0", "an-interface-of-too-long-a-name", "eth 0"] {
        fault(
            &format!("[six_to_four]\nrole = \"router\"\ninterface = \"{name}\"\n"),
            &format!(
                "sixway.toml:6  six_to_four.interface = \"{name}\"  is not a valid interface name (at most 15 characters); write one that `ip link` shows"
            ),
        );
    }
}

#[test]
fn a_delegated_6rd_prefix_is_unreachable_except_for_its_own_address() {
    for role in ["border_relay\"", "customer_edge\"\nborder_relays = \"198.51.100.1\""] {
        let domain = "prefix = \"2001:db8::/32\"\nipv4_mask_length = 8\ninterface = \"eth0\"";
        let config = parse(&with(&format!("[six_rd]\nrole = \"{role}\n{domain}\n"))).unwrap().0;
        let reach = config.reach(&Surroundings::of(&host().addresses));
        // 203.0.113.7 without its first octet.
        let delegated: sixway_wire::Prefix6 = "2001:db8:71:700::/56".parse().unwrap();
        assert_eq!(reach.unreachable, [delegated]);
        let own = reach.addresses;
        let subnet_router_anycast = delegated.address();
        match role {
            "border_relay\"" => assert_eq!(own, [subnet_router_anycast]),
            _ => assert!(own.iter().all(|own| matches!(own, IpAddr::V6(own) if delegated.contains(*own)))),
        }
    }
}

#[test]
fn a_followed_address_that_has_become_private_takes_the_site_with_it() {
    let text = "[six_to_four]\nrole = \"router\"\ninterface = \"eth0\"\nrelay = \"198.51.100.1\"\n[router_advertisement]\ninterface = \"lan0\"\nprefixes = [{ from = \"six_to_four\" }]\n";
    let own = HostAddress { interface: "eth0".into(), address: "10.9.9.9".parse().unwrap(), length: 8 };
    let private = Surroundings::of(&[own]);
    let config = parse(text).unwrap().0;
    assert_eq!(config.reach(&private), Reach::default());
    assert!(config.tunnels(&private).is_empty());
    assert_eq!(config.ipv6_address(&private), None);
    assert!(config.advertised(&config.router_advertisements[0], &private).prefixes.is_empty());
    let behind_nat = text.replace("relay =", "nat_address = \"192.0.2.8\"\nrelay =");
    let config = parse(&behind_nat).unwrap().0;
    assert_eq!(config.reach(&private).unreachable, ["2002:c000:208::/48".parse().unwrap()]);
}

#[test]
fn an_interface_that_is_written_twice_is_steered_from_once() {
    let text = "[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n[tunnels]\ninterfaces = [\"eth0\", \"eth0\"]\n";
    assert_eq!(good(text).tunnels.interfaces, ["eth0"]);
}
