//! Faults that need more than one key to see, warnings, TOML's own errors, and the files of mappings.

use super::*;

const STATIC: &str = "[[nat64.static]]\nprotocol = \"tcp\"\ninside = \"[2001:db8::80]:80\"\n";

#[test]
fn a_static_binding_is_of_its_pool_and_has_ports() {
    for (line, said) in [
        ("outside = \"192.0.2.16:80\"", "is not an address of pool main; write one such as 192.0.2.0"),
        ("outside = \"192.0.2.1:0\"", "port 0 is not valid; write 1 to 65535"),
        (
            "outside = \"192.0.2.1:65536\"",
            "is not an IPv4 address with a port; write both, such as 192.0.2.1:80",
        ),
        ("outside = \"192.0.2.1\"", "is not an IPv4 address with a port; write both, such as 192.0.2.1:80"),
    ] {
        fault_in(
            &format!("{NAT64}{STATIC}"),
            line,
            &format!("nat64.static.{line}  {said}").replace("static.", "static[0]."),
        );
    }
    let row = "[[nat64.static]]\nprotocol = \"udp\"\noutside = \"192.0.2.1:80\"\n";
    let prefix = "is not an IPv6 address with a port; write both, such as [2001:db8::80]:80";
    fault_in(
        &format!("{NAT64}{row}"),
        "inside = \"2001:db8::80\"",
        &format!("nat64.static[0].inside = \"2001:db8::80\"  {prefix}"),
    );
    let own = "is within this NAT64's own prefix; write the address of an inside host";
    let line = "inside = \"[2001:db8:64::1]:80\"";
    fault_in(&format!("{NAT64}{row}"), line, &format!("nat64.static[0].{line}  {own}"));
    let host = "is not an address that a host inside can have; write such an address";
    for address in ["::", "::1", "ff02::1", "fe80::1", "::ffff:192.0.2.9"] {
        let line = format!("inside = \"[{address}]:80\"");
        fault_in(&format!("{NAT64}{row}"), &line, &format!("nat64.static[0].{line}  {host}"));
    }
}

#[test]
fn a_port_outside_the_pools_range_is_good_for_a_static_binding() {
    warnings(&format!("{OWN}{POOL}{NAT64}{STATIC}outside = \"192.0.2.1:80\"\n"), &[]);
}

#[test]
fn an_endpoint_is_bound_once_for_each_protocol() {
    let first = format!("{OWN}{POOL}{NAT64}{STATIC}outside = \"192.0.2.1:80\"\n");
    let second =
        "[[nat64.static]]\nprotocol = \"tcp\"\ninside = \"[2001:db8::81]:80\"\noutside = \"192.0.2.1:80\"\n";
    let said = "sixway.toml:14  nat64.static[1]  tcp 192.0.2.1:80 already has a static binding (line 10); remove one";
    faults(&format!("{first}{second}"), &[said]);
    warnings(&format!("{first}{}", second.replace("tcp", "udp")), &[]);
    let second =
        "[[nat64.static]]\nprotocol = \"tcp\"\ninside = \"[2001:db8::80]:80\"\noutside = \"192.0.2.1:81\"\n";
    let said = "sixway.toml:14  nat64.static[1]  tcp [2001:db8::80]:80 already has a static binding (line 10); remove one";
    faults(&format!("{first}{second}"), &[said]);
}

#[test]
fn an_address_of_this_host_cannot_be_a_pools() {
    faults(
        &format!(
            "{OWN}[pool]\nname = \"main\"\naddresses = \"203.0.113.0/28\"\nports = \"1-65535\"\n{NAT64}"
        ),
        &[
            "sixway.toml:6  pool.main.addresses = \"203.0.113.0/28\"  203.0.113.7 is this host's own address on eth0; remove it from the pool, or put it in a separate [[pool]] with shared = true and ports = \"61000-65535\"",
        ],
    );
}

#[test]
fn the_hosts_port_range_matters_only_for_a_shared_pool() {
    warnings(&format!("{OWN}{POOL}ports = \"40000-50000\"\n{NAT64}"), &[]);
}

#[test]
fn pools_are_unicast_and_have_names_of_their_own() {
    let at = "[[pool]]\nname = \"two\"\n";
    for (line, said) in [
        (
            "addresses = []",
            "pool.two.addresses  is empty; write the pool's addresses, such as [\"192.0.2.0/28\"]",
        ),
        (
            "addresses = [\"127.0.0.1\"]",
            "pool.two.addresses  127.0.0.1/32 contains addresses that are not unicast; write unicast addresses",
        ),
        (
            "addresses = [\"10.0.0.0/8\"]",
            "pool.two.addresses  contains 16,777,216 addresses; write at most 65,536",
        ),
        (
            "addresses = [\"10.0.0.0/33\"]",
            "pool.two.addresses  \"10.0.0.0/33\" has a length above 32; write a length from 0 to 32",
        ),
        (
            "addresses = [\"2001:db8::/32\"]",
            "pool.two.addresses  \"2001:db8::/32\" is not IPv4; write a prefix such as 192.0.2.0/28",
        ),
        (
            "addresses = [\"10.0.0.0\", \"10.0.0.0\"]",
            "pool.two.addresses  10.0.0.0 overlaps 10.0.0.0 of pool.two.addresses (line 12); an address can belong to only one of them; choose prefixes that do not overlap",
        ),
    ] {
        fault_in(&format!("{NAT64}{at}"), line, said);
    }
    faults(
        &format!("{OWN}{POOL}{NAT64}{at}addresses = [\"192.0.2.1\"]\n"),
        &[
            "sixway.toml:10  pool.two.ports  1024-65535 of 192.0.2.1 overlaps the ports of pool main (line 4); write ports = \"1024-33279\" there and ports = \"33280-65535\" here, or use other addresses",
        ],
    );
    faults(
        &format!("{OWN}{POOL}{NAT64}[[pool]]\nname = \"main\"\naddresses = \"10.0.0.1\"\n"),
        &["sixway.toml:10  pool.main  another pool has this name (line 4); choose a different name"],
    );
}

#[test]
fn toml_that_cannot_be_read_is_reported_in_one_clear_line() {
    for (text, said) in [
        ("[nat64]\nprefix = \"abc\n", "sixway.toml:2  TOML: invalid basic string, expected `\"`"),
        ("[nat64\nprefix = 1\n", "sixway.toml:1  TOML: unclosed table, expected `]`"),
        ("[nat64]\npool = main\n", "sixway.toml:2  TOML: strings need quotes: write pool = \"main\""),
        (
            "[nat64.static]\nprotocol = tcp\n",
            "sixway.toml:2  TOML: strings need quotes: write protocol = \"tcp\"",
        ),
        (
            "[nat64.timeouts]\nudp_default = 5 min\n",
            "sixway.toml:2  TOML: strings need quotes: write udp_default = \"5 min\"",
        ),
        (
            "[gateway]\nipv4_address = 192.0.2.254\n",
            "sixway.toml:2  TOML: strings need quotes: write ipv4_address = \"192.0.2.254\"",
        ),
        (
            "[pool]\nshared = True\n",
            "sixway.toml:2  TOML: invalid boolean, expected `true`; write shared = true",
        ),
        (
            "[nat64]\npool = main # the only one\n",
            "sixway.toml:2  TOML: strings need quotes: write pool = \"main\"",
        ),
        (
            "[tun]\nroutes = [auto]\n",
            "sixway.toml:2  TOML: string values must be quoted; put the value in quotes: \"…\"",
        ),
        (
            "nat64 = 1\n[nat64]\n",
            "sixway.toml:2  TOML: duplicate key; nat64 is a section; write [nat64], not nat64 = …",
        ),
        ("a = 1\na = 2\n", "sixway.toml:2  TOML: duplicate key; the key is already set in this section"),
        ("[tun]\n[tun]\n", "sixway.toml:2  TOML: duplicate key; the section exists already: merge the two"),
        (
            "[pool]\n[pool]\n",
            "sixway.toml:2  TOML: duplicate key; to repeat the section, write [[pool]] each time",
        ),
        (
            "x = [1,2\ny=3\n[z]\nq=1",
            "sixway.toml:2  TOML: missing comma between array elements, expected `,`",
        ),
        ("a b = 3\n", "sixway.toml:1  TOML: key with no value, expected `=`"),
        (
            "[pool]\nports = 61000-65535\n",
            "sixway.toml:2  TOML: strings need quotes: write ports = \"61000-65535\"",
        ),
        (
            "[pool]\nports = 80,443,1024-65535 # some\n",
            "sixway.toml:2  TOML: strings need quotes: write ports = \"80,443,1024-65535\"",
        ),
        ("[pool]\nname = “main”\n", "sixway.toml:2  TOML: strings need quotes: write name = \"main\""),
        (
            "[nat64]\npool: \"main\"\n",
            "sixway.toml:2  TOML: between a key and its value is `=`: write pool = \"main\"",
        ),
        (
            "[nat64]\npool = \"main\",\n",
            "sixway.toml:2  TOML: unexpected key or value, expected newline, `#`; remove what follows the value",
        ),
    ] {
        faults(text, &[said]);
    }
}

#[test]
fn each_line_of_toml_that_cannot_be_read_is_reported() {
    faults(
        "[nat64]\npool = main\nprefix = 2001:db8::/96\n",
        &[
            "sixway.toml:2  TOML: strings need quotes: write pool = \"main\"",
            "sixway.toml:3  TOML: strings need quotes: write prefix = \"2001:db8::/96\"",
        ],
    );
}

#[test]
fn the_keys_of_a_repeated_section_are_not_reported_as_duplicates() {
    let text = "[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"a\"\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"b\"\n";
    let header = "sixway.toml:4  TOML: duplicate key; to repeat the section, write [[nat64]] each time";
    faults(text, &[header]);
    faults(
        &format!("{text}[tun]\nmtu = 1500\nmtu = 1400\n"),
        &[header, "sixway.toml:9  TOML: duplicate key; the key is already set in this section"],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let faults =
        Config::load(Path::new("/nonexistent/sixway.toml"), &HostFacts::default()).map(|_| ()).unwrap_err();
    let line = "/nonexistent/sixway.toml  cannot be read: No such file or directory (os error 2)";
    assert_eq!(faults.to_string(), format!("{line}\n1 error. Nothing was changed."));
    let faults = Config::load(Path::new("/dev/null"), &HostFacts::default()).map(|_| ()).unwrap_err();
    assert!(faults.to_string().starts_with("/dev/null  cannot be read: not a regular file\n"));
    let pipe = std::env::temp_dir().join(format!("sixway-pipe-{}", std::process::id()));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let faults = Config::load(&pipe, &HostFacts::default()).unwrap_err();
    std::fs::remove_file(&pipe).unwrap();
    assert!(faults.to_string().contains("not a regular file"), "{faults}");
}

fn with_eam_file(eam_file: &str) -> Result<(Config, Vec<Warning>), Faults> {
    let text = format!("{OWN}[siit]\nprefix = \"2001:db8:64::/96\"\neam_file = \"eam.txt\"\n");
    Config::parse("etc/sixway.toml", &text, &host(), &mut |path| {
        assert_eq!(path, Path::new("etc/eam.txt"));
        Ok(eam_file.to_owned())
    })
}

#[test]
fn faults_of_a_file_of_mappings_have_its_name_and_lines() {
    let text = "# servers\n198.51.100.8/29 2001:db8:1::/126\n198.51.100.16 2001:db8:2::1\n198.51.100.16 2001:db8:2::2\n198.51.100.17\n198.51.100.18 2001:db8:2::1\n203.0.113.7 2001:db8:2::3\n";
    let faults = with_eam_file(text).map(|_| ()).unwrap_err();
    assert_eq!(
        lines(faults.remarks()),
        [
            "etc/eam.txt:2  198.51.100.8/29 has 3 suffix bits, 2001:db8:1::/126 only 2; the IPv6 side must have at least as many suffix bits (RFC 7757 §3.2)",
            "etc/eam.txt:4  198.51.100.16 is already mapped (line 3); each prefix may be mapped once (RFC 7757 §5)",
            "etc/eam.txt:5  `198.51.100.17` is incomplete; a row is an IPv4 prefix and an IPv6 prefix",
            "etc/eam.txt:6  2001:db8:2::1 is already mapped (line 3); each prefix may be mapped once (RFC 7757 §5)",
            "etc/eam.txt:7  203.0.113.7 is this host's own address on eth0; packets for it would never reach the gateway; choose another address",
        ]
    );
}

#[test]
fn a_hundred_faults_are_shown_and_the_rest_counted() {
    let text: String = (0..250).map(|_| "198.51.100.17\n").collect();
    let said = with_eam_file(&text).map(|_| ()).unwrap_err().to_string();
    assert_eq!(said.lines().count(), 102);
    assert!(said.ends_with("… and 150 more\n250 errors. Nothing was changed."), "{said}");
}

#[test]
fn faults_are_aligned_in_the_order_of_lines_and_counted() {
    let text = "[gateway]\nnme = 1\n[nat64]\nprefix = \"64:ff9b::/97\"\npool = \"x\"\n[siit]\n";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        "sixway.toml:2  gateway.nme                    unknown; did you mean `name`?\nsixway.toml:4  nat64.prefix = \"64:ff9b::/97\"  the length is 97; it must be 32, 40, 48, 56, 64 or 96 (RFC 6052 §2.2)\nsixway.toml:5  nat64.pool = \"x\"               no pool has this name; write a [[pool]] with name = \"x\"\nsixway.toml:6  siit                           has no prefix, eam or eam_file; write at least one\n4 errors. Nothing was changed."
    );
}

#[test]
fn a_pool_that_the_well_known_prefix_may_not_show_is_a_warning() {
    let text = format!("{OWN}{POOL}[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"main\"\n");
    warnings(
        &text,
        &[
            "sixway.toml:9  nat64.pool = \"main\"  192.0.2.0/28 is not globally reachable (documentation), and 64:ff9b::/96 must not represent such addresses (RFC 6052 §3.1): inside hosts cannot reach each other through the pool (hairpinning), nor servers at such addresses; set translate_non_global = true, or use a prefix of your own",
        ],
    );
    warnings(&format!("{text}translate_non_global = true\n"), &[]);
}

/// RFC 6791 §3.1.
#[test]
fn errors_from_private_addresses_are_a_warning() {
    let text = format!("{OWN}[siit]\nprefix = \"2001:db8:64::/96\"\nicmp_source_pool = ");
    let what = "networks that filter source addresses drop these ICMP errors; write public addresses";
    for private in ["10.1.2.3/32", "172.31.0.0/24", "192.168.7.0/24", "100.127.255.0/24"] {
        let said =
            format!("sixway.toml:6  siit.icmp_source_pool  {private} is private (RFC 6791 §3.1): {what}");
        warnings(&format!("{text}[\"203.0.113.9\", \"{private}\"]\n"), &[&said]);
    }
    warnings(&format!("{text}[\"203.0.113.9\", \"172.32.0.0/24\"]\n"), &[]);
    let many = "contains 2,049 addresses; write at most 1,024";
    faults(
        &format!("{text}[\"203.0.113.9\", \"172.32.0.0/21\"]\n"),
        &[&format!("sixway.toml:6  siit.icmp_source_pool  {many}")],
    );
}

#[test]
fn what_works_but_will_be_missed_is_a_warning() {
    warnings(
        &format!("{POOL}{NAT64}"),
        &[
            "sixway.toml  gateway.ipv4_address  is not set: no ICMPv4 errors are sent, and path MTU discovery fails for IPv4 hosts; set it to an address that is routed to this machine",
            "sixway.toml  gateway.ipv6_address  is not set: no ICMPv6 errors are sent, and path MTU discovery fails for IPv6 hosts; set it to an address that is routed to this machine",
        ],
    );
    warnings(
        &format!("{OWN}{POOL}[siit]\nprefix = \"2001:db8:ffff::/96\"\n"),
        &[
            "sixway.toml:4  pool.main  is not used by any translator; set nat64.pool, nat44.pool or realm.pool = \"main\", or remove this pool",
            "sixway.toml:8  siit.prefix = \"2001:db8:ffff::/96\"  2001:db8:ffff::7 is this host's own address on eth0 and is within this prefix; packets for it will not reach the gateway",
        ],
    );
}

#[test]
fn two_dynamic_pools_do_not_share_a_file() {
    let siit = |number: u8| {
        format!("[[siit]]\nprefix = \"2001:db8:{number}::/96\"\ndynamic_pool = \"10.{number}.0.0/16\"\n")
    };
    let text = format!("{OWN}{}{}", siit(1), siit(2));
    warnings(&text, &[]);
    let said = "sixway.toml:10  siit[1].dynamic_state = \"/var/lib/sixway/sixway.state\"  is already the state file of siit[0].dynamic_state (line 4); set dynamic_state to another file";
    faults(&format!("{text}dynamic_state = \"/var/lib/sixway/sixway.state\"\n"), &[said]);
}

#[test]
fn the_gateways_own_address_and_mappings_may_lie_in_the_dynamic_pool() {
    let text = "[siit]\nprefix = \"2001:db8:1::/96\"\ndynamic_pool = \"192.0.2.0/24\"\n";
    let eam = "eam = [{ ipv4 = \"192.0.2.9\", ipv6 = \"2001:db8:2::9\" }]\n";
    warnings(&format!("{OWN}{text}{eam}"), &[]);
}

#[test]
fn more_mechanisms_than_the_engine_can_number_are_refused() {
    let siit: String =
        (0..65).map(|number| format!("[[siit]]\nprefix = \"2001:db8:1:{number}::/64\"\n")).collect();
    let said = "sixway.toml:132  siit[64]  is one too many; maximum 64 of a kind";
    faults(&format!("{OWN}{siit}"), &[said]);
}

#[test]
fn a_dynamic_pool_with_nothing_left_to_give_is_refused() {
    let alone = "sixway.toml:4  siit  has no prefix, eam or eam_file; write at least one (dynamic_pool alone does not translate IPv4 destinations)";
    faults(&format!("{OWN}[siit]\ndynamic_pool = \"192.0.2.0/24\"\n"), &[alone]);
    let text = "[siit]\nprefix = \"2001:db8:1::/96\"\ndynamic_pool = \"192.0.2.254/31\"\neam = [{ ipv4 = \"192.0.2.255\", ipv6 = \"2001:db8:2::1\" }]\n";
    let said = "sixway.toml:4  siit.dynamic_pool  no address remains after the reserved and excluded ones";
    faults(&format!("{OWN}{text}"), &[said]);
}

#[test]
fn a_key_is_named_even_where_every_one_is_longer_than_its_column() {
    let text = "[router_advertisement]\ninterface = \"eth0\"\nprefixes = [{ prefix = \"fe80::/64\" }]\n";
    let said = parse(text).unwrap_err().to_string();
    let line = said.lines().next().unwrap_or_default();
    assert!(line.starts_with("sixway.toml:3  router_advertisement.prefixes[0].prefix = "), "{said}");
}

#[test]
fn a_syntax_error_does_not_hide_what_is_wrong_in_other_sections() {
    let text = format!(
        "{OWN}[[pool]]\nname = main\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/97\"\npool = \"main\"\n\
         inside = [\"2001:db8::/32\"]\n[tun]\nmtuu = 1\n"
    );
    let said = parse(&text).unwrap_err().to_string();
    assert!(said.contains("strings need quotes: write name = \"main\""), "{said}");
    assert!(said.contains("the length is 97") && said.contains("unknown; did you mean `mtu`?"), "{said}");
    // That nat64.pool names no pool is because of the first error.
    assert!(said.ends_with("3 errors. Nothing was changed."), "{said}");
    // Where a bracket is missing, what follows is read in the wrong place.
    let text = format!(
        "{OWN}[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"\n[nat64]\nprefix = \"64:ff9b::/97\"\n"
    );
    let said = parse(&text).unwrap_err().to_string();
    assert!(said.ends_with("1 error. Nothing was changed."), "{said}");
}

#[test]
fn a_key_in_the_singular_is_not_another_sections() {
    let text = format!(
        "{OWN}[[ip_in_ip]]\nname = \"a\"\nlocal = \"2001:db8::1\"\nremote = \"2001:db8::2\"\nprefix = [\"0.0.0.0/0\"]\n"
    );
    let said = parse(&text).unwrap_err().to_string();
    assert!(said.contains("ip_in_ip.prefix") && said.contains("did you mean `prefixes`?"), "{said}");
}

#[test]
fn a_file_that_is_not_toml_says_that_further_errors_may_be_hidden() {
    let said = parse("[[pool]]\nnme = \"main\"\nports = [\"80\"\n").unwrap_err().to_string();
    assert!(
        said.ends_with(
            "Lines that are not valid TOML may hide further errors. 1 error. Nothing was changed."
        ),
        "{said}"
    );
    let said = parse("[[pool]]\nnme = \"main\"\n").unwrap_err().to_string();
    assert!(!said.contains("hide"), "{said}");
}

#[test]
fn a_section_in_capitals_is_recognised() {
    let said = "sixway.toml:1  NAT64  unknown; did you mean [nat64]?";
    let found = parse("[NAT64]\nprefix = \"64:ff9b::/96\"\n").unwrap_err();
    assert!(lines(found.remarks()).iter().any(|line| line == said), "{found}");
}

#[test]
fn a_translation_prefix_outside_of_all_that_are_in_use_is_a_warning() {
    let warned = |prefix: &str| {
        let text = format!("{OWN}{POOL}{NAT64}").replace("2001:db8:64::/96", prefix);
        let (_, warnings) = parse(&text).unwrap();
        warnings.iter().any(|warning| warning.message.contains("did you mean 64:ff9b::/96?"))
    };
    for prefix in ["64:ff9b::/96", "64:ff9b:1::/48", "2001:db8:64::/96", "fd00:64::/96"] {
        assert!(!warned(prefix), "{prefix}");
    }
    for prefix in ["64:ff9c::/96", "64:ff98::/96", "46:ff9b::/96"] {
        assert!(warned(prefix), "{prefix}");
    }
}
