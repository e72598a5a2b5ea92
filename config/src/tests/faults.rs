//! What is wrong in a section by itself: a snippet, and exactly the lines that are said of it.

use super::*;

#[test]
fn a_name_that_no_pool_has_is_reported_with_the_one_that_was_meant() {
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\n";
    fault_in(
        nat64,
        "pool = \"mian\"",
        "nat64.pool = \"mian\"  no pool has this name; did you mean \"main\"?",
    );
    fault_in(nat64, "pool = \"x\"", "nat64.pool = \"x\"  no pool has this name; the pools are \"main\"");
    faults(
        &format!("{OWN}{nat64}pool = \"x\"\n"),
        &["sixway.toml:6  nat64.pool = \"x\"  no pool has this name; write a [[pool]] with name = \"x\""],
    );
}

#[test]
fn unknown_keys_and_sections_are_faults_with_what_was_meant() {
    fault_in(NAT64, "prefx = 1", "nat64.prefx  unknown; did you mean `prefix`?");
    fault_in(NAT64, "eam = 1", "nat64.eam  unknown here; `eam` belongs to [siit]");
    fault_in(NAT64, "[nat65]", "nat65  unknown; did you mean [nat64]?");
    fault_in(
        NAT64,
        "[[vpn]]",
        "vpn  unknown; the sections are [gateway], [tun], [pool], [nat64], [nat44], [realm], [siit], [nat46], [npt66], [six_to_four], [six_rd], [tunnel], [isatap], [tunnels], [ip_in_ip], [ds_lite], [four_over_six], [teredo_relay], [teredo_client], [teredo_server], [pcp], [router_advertisement], [dns64], [log], [fragments], [fastpath]",
    );
}

#[test]
fn keys_outside_a_section_are_told_where_they_belong() {
    let line = "sixway.toml:1  mtu  unknown here; `mtu` belongs below [tun]";
    faults(&format!("mtu = 1500\n{OWN}{POOL}{NAT64}"), &[line]);
    faults(
        &format!("[[tun]]\n[[tun]]\n{OWN}{POOL}{NAT64}"),
        &["sixway.toml:1  tun  [tun] can be written only once"],
    );
    let line = "sixway.toml:1  siit  siit is a section; write [[siit]], not siit = …";
    faults(&format!("siit = 1\n{OWN}{POOL}{NAT64}"), &[line]);
}

#[test]
fn each_required_key_that_a_section_lacks_is_reported() {
    faults(
        &format!("{OWN}[nat64]\n[[pool]]\n"),
        &[
            "sixway.toml:4  nat64.prefix  is missing; write prefix = \"64:ff9b::/96\"",
            "sixway.toml:4  nat64.pool  is missing; write pool = \"name\"",
            "sixway.toml:5  pool.name  is missing; write name = \"name\"",
            "sixway.toml:5  pool  has no address; write addresses = [\"192.0.2.0/28\"], or interface = \"eth0\" and shared = true",
        ],
    );
    let none = "sixway.toml  configures no mechanism; write one of the sections [nat64], [nat44], [siit], [six_to_four], [six_rd], [tunnel], [isatap], [npt66], [ip_in_ip], [ds_lite], [nat46], [four_over_six], [teredo_relay], [teredo_client], [teredo_server], [realm], [router_advertisement], [dns64]";
    faults(OWN, &[none]);
    faults("", &[none]);
    faults(
        &format!("{OWN}[siit]\n"),
        &["sixway.toml:4  siit  has no prefix, eam or eam_file; write at least one"],
    );
}

#[test]
fn a_required_key_that_is_misspelt_is_reported_once() {
    let text = format!("{OWN}{POOL}{NAT64}").replace("prefix", "prefx");
    faults(&text, &["sixway.toml:8  nat64.prefx  unknown; did you mean `prefix`?"]);
}

#[test]
fn values_of_another_type_are_reported_with_an_example() {
    let tun = format!("{NAT64}[tun]\n");
    for (line, said) in [
        (
            "mtu = \"1500\"",
            "tun.mtu = \"1500\"  must be an integer from 1,280 to 65,535, not a string; write one such as 1500",
        ),
        ("name = 5", "tun.name = 5  must be a string, not an integer; write one such as \"name\""),
        (
            "super_frames = \"yes\"",
            "tun.super_frames = \"yes\"  must be true or false, not a string; write one such as true",
        ),
        (
            "queues = \"all\"",
            "tun.queues = \"all\"  must be \"auto\" or an integer from 1 to 64, not a string; write one such as \"auto\"",
        ),
        (
            "routes = 1",
            "tun.routes = 1  must be \"auto\", \"none\" or a list of prefixes, not an integer; write one such as [\"auto\", \"198.51.100.0/24\"]",
        ),
    ] {
        fault_in(&tun, line, said);
    }
}

#[test]
fn values_out_of_range_are_told_the_range() {
    let tun = format!("{NAT64}[tun]\n");
    for (line, said) in [
        ("mtu = 1279", "tun.mtu = 1279  is out of range; write 1,280 to 65,535"),
        ("mtu = -1", "tun.mtu = -1  is out of range; write 1,280 to 65,535"),
        (
            "mtu = 99999999999999999999999",
            "tun.mtu = 99999999999999999999999  is out of range; write 1,280 to 65,535",
        ),
        (
            "name = \"sixway0123456789\"",
            "tun.name = \"sixway0123456789\"  is not a valid device name; write up to 15 letters, digits and ASCII punctuation except /, : and %, not \"lo\", \"all\" or \"default\"",
        ),
        (
            "name = \"a/b\"",
            "tun.name = \"a/b\"  is not a valid device name; write up to 15 letters, digits and ASCII punctuation except /, : and %, not \"lo\", \"all\" or \"default\"",
        ),
        (
            "name = \"lo\"",
            "tun.name = \"lo\"  is not a valid device name; write up to 15 letters, digits and ASCII punctuation except /, : and %, not \"lo\", \"all\" or \"default\"",
        ),
        (
            "name = \"all\"",
            "tun.name = \"all\"  is not a valid device name; write up to 15 letters, digits and ASCII punctuation except /, : and %, not \"lo\", \"all\" or \"default\"",
        ),
        ("name = \"\"", "tun.name = \"\"  is empty; write \"name\""),
        ("queues = 65", "tun.queues = 65  is out of range; write 1 to 64"),
        (
            "routes = [\"auto\", \"192.0.2.1/24\"]",
            "tun.routes  \"192.0.2.1/24\" has bits set beyond its /24; did you mean 192.0.2.0/24?",
        ),
        (
            "routes = \"all\"",
            "tun.routes = \"all\"  \"all\" is not a valid route; write \"auto\", \"none\" or prefixes",
        ),
    ] {
        fault_in(&tun, line, said);
    }
    let fragments = format!("{NAT64}[fragments]\n");
    for (line, said) in [
        (
            "memory = \"1 MB\"",
            "fragments.memory = \"1 MB\"  is not a valid size; write a number with B, KiB, MiB or GiB, such as \"16 MiB\"",
        ),
        ("memory = 1", "fragments.memory = 1  is out of range; write 64 KiB to 64 GiB"),
        (
            "packets_per_source = 5000",
            "fragments.packets_per_source = 5000  is more than fragments.packets, 4096, which applies to all sources together; lower it",
        ),
        (
            "fragments_per_packet = 31",
            "fragments.fragments_per_packet = 31  is out of range; write 32 to 8,192",
        ),
        ("timeout = \"1 s\"", "fragments.timeout = \"1 s\"  is out of range; write 2 s to 2 min"),
        (
            "timeout = \"5\"",
            "fragments.timeout = \"5\"  is not a valid duration; write numbers with units, such as \"5 min\" or \"2 h 4 min\"",
        ),
        (
            "timeout = 5",
            "fragments.timeout = 5  must be a duration from 2 s to 2 min, not an integer; write one such as \"2 s\"",
        ),
    ] {
        fault_in(&fragments, line, said);
    }
    fault_in(
        &format!("{NAT64}[siit]\nprefix = \"2001:db8:1::/96\"\n"),
        "dynamic_remembered = \"1 h\"",
        "siit.dynamic_remembered = \"1 h\"  is less than dynamic_lifetime, 2 h 4 min; raise it, or lower dynamic_lifetime",
    );
    fault_in(
        &format!("{NAT64}[siit]\nprefix = \"2001:db8:1::/96\"\n"),
        "lowest_ipv6_mtu = 1279",
        "siit.lowest_ipv6_mtu = 1279  is out of range; write 1,280 to 65,535",
    );
    fault_in(
        NAT64,
        "lowest_ipv6_mtu = 1501",
        "nat64.lowest_ipv6_mtu = 1501  is more than tun.mtu, 1500; lower it, or raise tun.mtu",
    );
    fault_in(
        NAT64,
        "filtering = \"address-dependant\"",
        "nat64.filtering = \"address-dependant\"  is not valid; write \"endpoint-independent\", \"address-dependent\" or \"address-and-port-dependent\"; did you mean \"address-dependent\"?",
    );
    for (line, said) in [
        ("udp_default = \"119 s\"", "is out of range; write 2 min to 365 d"),
        ("tcp_est = \"1 h\"", "is out of range; write 2 h to 365 d"),
        ("tcp_trans = \"3 min\"", "is out of range; write 4 min to 365 d"),
        ("tcp_incoming_syn = \"5 s\"", "is out of range; write 6 s to 10 min"),
        ("icmp_default = \"59 s\"", "is out of range; write 1 min to 365 d"),
        ("tcp_opening = \"9 s\"", "is out of range; write 10 s to 365 d"),
        ("tcp_closing = \"3 min\"", "is out of range; write 4 min to 365 d"),
        ("quarantine = \"25 h\"", "is out of range; write 0 s to 1 d"),
    ] {
        fault_in(&format!("{NAT64}[nat64.timeouts]\n"), line, &format!("nat64.timeouts.{line}  {said}"));
    }
    fault_in(NAT64, "tos = 256", "nat64.tos = 256  is out of range; write 0 to 255");
}

#[test]
fn a_timeout_of_ports_that_is_too_short_is_named_with_its_clause() {
    for (row, said) in [
        (
            "protocol = \"udp\", ports = \"53,5353\", timeout = \"10 s\"",
            "is too short; write at least 2 min (RFC 4787 REQ-5 for ports from 1024 on)",
        ),
        (
            "protocol = \"tcp\", ports = 22, timeout = \"1 h\"",
            "is too short; write at least 2 h (RFC 5382 REQ-5)",
        ),
    ] {
        let timeout = row.split("timeout = ").last().unwrap();
        fault_in(
            &format!("{NAT64}[nat64.timeouts]\n"),
            &format!("port = [{{ {row} }}]"),
            &format!("nat64.timeouts.port[0].timeout = {timeout}  {said}"),
        );
    }
}

#[test]
fn the_examples_of_a_message_are_values_that_the_key_takes() {
    for (line, said) in [
        ("tcp_est = 7200", "must be a duration from 2 h to 365 d, not an integer; write one such as \"2 h\""),
        (
            "udp_default = true",
            "must be a duration from 2 min to 365 d, not a boolean; write one such as \"5 min\"",
        ),
    ] {
        fault_in(&format!("{NAT64}[nat64.timeouts]\n"), line, &format!("nat64.timeouts.{line}  {said}"));
    }
    let eam =
        format!("{NAT64}[siit]\nprefix = \"2001:db8:65::/96\"\n[[siit.eam]]\nipv4 = \"198.51.100.8/29\"\n");
    let said = "is not an IPv6 prefix; write one such as 2001:db8:1::/125";
    fault_in(&eam, "ipv6 = \"::x\"", &format!("siit.eam[0].ipv6 = \"::x\"  {said}"));
    let said = "sixway.toml:12  siit.eam[0].ipv6  is missing; write ipv6 = \"2001:db8:1::/125\"";
    faults(&format!("{OWN}{POOL}{eam}"), &[said]);
}

#[test]
fn the_words_of_a_key_are_listed_and_a_single_letter_is_like_none() {
    let words = "is not valid; write \"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
    for (word, near) in [("verbose", ""), ("x", ""), ("wran", "; did you mean \"warn\"?")] {
        let said = format!("sixway.toml:2  gateway.log = \"{word}\"  {words}{near}");
        let rest = OWN.replace("[gateway]\n", "");
        faults(&format!("[gateway]\nlog = \"{word}\"\n{rest}{POOL}{NAT64}"), &[&said]);
    }
    let text = format!("{OWN}{}{}", POOL.replace("main", "a"), NAT64.replace("main", "b"));
    faults(&text, &["sixway.toml:9  nat64.pool = \"b\"  no pool has this name; the pools are \"a\""]);
}

#[test]
fn a_prefix_that_cannot_embed_ipv4_addresses_is_told_why() {
    let at = format!("{NAT64}[siit]\n");
    for (prefix, said) in [
        ("2001:db8::/95", "the length is 95; it must be 32, 40, 48, 56, 64 or 96 (RFC 6052 §2.2)"),
        ("2001:db8::1/96", "has bits set beyond its /96; did you mean 2001:db8::/96?"),
        ("2001:db8::/129", "has a length above 128; write a length from 0 to 128"),
        ("192.0.2.0/24", "is not IPv6; write a prefix such as 2001:db8:64::/96"),
        ("2001:db8::x/96", "is not an IPv6 prefix; write one such as 2001:db8:64::/96"),
        (
            "2001:db8:0:0:100::/96",
            "bits 64 to 71 must be zero; take a /64 and append four zero octets (RFC 6052 §2.2)",
        ),
        ("ff02::/96", "must not be a multicast prefix (RFC 4291 §2.7); write a unicast prefix"),
        (
            "64:ff9b::/64",
            "contains the well-known prefix, which must have length 96 (RFC 6052 §2.2); write 64:ff9b::/96 or a prefix of your own",
        ),
        (
            "fe80::/64",
            "link-local addresses are not forwarded (RFC 4291 §2.5.6); write a prefix that is routed",
        ),
        (
            "::ffff:0:0/96",
            "is the IPv4-mapped prefix, which hosts never send to as IPv6 (RFC 6052 §4.2); choose another prefix",
        ),
    ] {
        fault_in(&at, &format!("prefix = \"{prefix}\""), &format!("siit.prefix = \"{prefix}\"  {said}"));
    }
}

#[test]
fn a_pools_addresses_are_this_gateways_and_no_ones_else() {
    let at = format!("{NAT64}[[siit]]\nprefix = \"2001:db8:1::/96\"\n");
    for (line, said) in [
        (
            "dynamic_pool = \"192.0.0.0/16\"",
            "siit.dynamic_pool = \"192.0.0.0/16\"  192.0.0.0/16 overlaps 192.0.2.0/28 of pool.main.addresses (line 6); an address can belong to only one of them; choose prefixes that do not overlap",
        ),
        (
            "icmp_source_pool = \"192.0.2.3\"",
            "siit.icmp_source_pool = \"192.0.2.3\"  192.0.2.3 overlaps 192.0.2.0/28 of pool.main.addresses (line 6); an address can belong to only one of them; choose prefixes that do not overlap",
        ),
        (
            "eam = [{ ipv4 = \"192.0.2.1\", ipv6 = \"2001:db8:2::1\" }]",
            "siit.eam[0]  192.0.2.1 overlaps 192.0.2.0/28 of pool.main.addresses (line 6); an address can belong to only one of them; choose prefixes that do not overlap",
        ),
        (
            "eam = [{ ipv4 = \"198.51.100.1\", ipv6 = \"2001:db8:64::1\" }]",
            "siit.eam[0]  2001:db8:64::1 overlaps 2001:db8:64::/96 of nat64.prefix (line 8); an address can belong to only one of them; choose prefixes that do not overlap",
        ),
        (
            "dynamic_pool = \"203.0.113.0/24\"",
            "siit.dynamic_pool = \"203.0.113.0/24\"  203.0.113.7 is this host's own address on eth0; packets for it would never reach the gateway; choose another address",
        ),
        (
            "eam = [{ ipv4 = \"203.0.113.7\", ipv6 = \"2001:db8:2::7\" }]",
            "siit.eam[0]  203.0.113.7 is this host's own address on eth0; packets for it would never reach the gateway; choose another address",
        ),
        (
            "dynamic_pool = \"224.0.0.0/8\"",
            "siit.dynamic_pool = \"224.0.0.0/8\"  is not a prefix of unicast addresses; write a prefix of 8 bits or more",
        ),
    ] {
        fault_in(&at, line, said);
    }
    let second = "[[nat64]]\nprefix = \"2001:db8:65::/96\"\n";
    fault_in(
        &format!("{}{second}", NAT64.replace("[nat64]", "[[nat64]]")),
        "pool = \"main\"",
        "nat64[1].pool = \"main\"  is already used by nat64[0].pool (line 9); write a [[pool]] for each",
    );
    fault_in(
        &format!("{NAT64}[siit]\n"),
        "prefix = \"2001:db8:64::/48\"",
        "siit.prefix = \"2001:db8:64::/48\"  2001:db8:64::/48 overlaps 2001:db8:64::/96 of nat64.prefix (line 8); an address can belong to only one of them; choose prefixes that do not overlap",
    );
}

#[test]
fn a_socket_path_that_is_too_long_and_a_key_with_control_characters_are_reported_in_plain_words() {
    let text = format!("[gateway]\nadmin_socket = \"/{}\"\n\"a\\u001b[2Jb\" = 1\n", "x".repeat(200));
    let faults = crate::Config::parse("s.toml", &text, &crate::HostFacts::default(), &mut |_| {
        Err(std::io::Error::from(std::io::ErrorKind::NotFound))
    })
    .unwrap_err()
    .to_string();
    assert!(faults.contains("is too long for a socket; write a path of up to 107 octets"), "{faults}");
    assert!(faults.contains("\\u{1b}[2Jb") && !faults.contains('\u{1b}'), "{faults}");
}
