//! Who may use a NAT64.

use super::*;

const NAT64: &str = "[[pool]]\nname = \"a\"\naddresses = [\"198.18.0.0/24\"]\n[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"a\"\n";

#[test]
fn the_prefixes_of_the_hosts_are_read() {
    let text = format!("{OWN}{NAT64}inside = [\"2001:db8:1::/48\", \"fd00::/8\"]\n");
    let (config, warnings) = parse_with_all_warnings(&text).unwrap();
    let inside: Vec<String> = config.nat64[0].inside.iter().map(ToString::to_string).collect();
    assert_eq!(inside, ["2001:db8:1::/48", "fd00::/8"]);
    assert!(warnings.iter().all(|warning| !warning.to_string().contains("inside")), "{warnings:?}");
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    assert_eq!(engine.nat64[0].inside, config.nat64[0].inside);
}

#[test]
fn without_them_a_warning_has_the_line_to_write_and_next_to_a_relay_it_is_an_error() {
    let mend = "write the prefixes of your hosts, such as inside = [\"2001:db8:1::/48\"]";
    let text = format!("{OWN}{NAT64}");
    let warned = parse_with_all_warnings(&text).unwrap().1;
    let said = format!(
        "nat64.inside  is not set: any host that can send to 2001:db8:64::/96 can use the pool; {mend}"
    );
    assert!(warned.iter().any(|warning| warning.to_string().ends_with(&said)), "{warned:?}");
    for (relay, named) in [
        ("[six_to_four]\nrole = \"relay\"\naddress = \"203.0.113.7\"\n", "[six_to_four] role = \"relay\""),
        (
            "[six_rd]\nrole = \"border_relay\"\nprefix = \"2001:dc8::/32\"\nipv4_mask_length = 8\naddress = \"203.0.113.7\"\n",
            "[six_rd] role = \"border_relay\"",
        ),
        (
            "[isatap]\nrole = \"router\"\naddress = \"203.0.113.7\"\nprefix = \"2001:db8:9::/64\"\n",
            "[isatap] role = \"router\" without locators",
        ),
    ] {
        let faults = parse(&format!("{text}{relay}")).unwrap_err().to_string();
        let said =
            format!("nat64.inside  is missing: through {named}, the Internet could use the pool; {mend}");
        // Columns are aligned.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&faults).contains(&words(&said)), "{faults}");
        let closed = text.replace("[nat64]\n", "[nat64]\ninside = [\"2001:db8:1::/48\"]\n");
        assert!(parse(&format!("{closed}{relay}")).is_ok());
    }
}

#[test]
fn a_private_network_of_this_host_that_a_translator_reaches_is_said() {
    let private = |address: &str| {
        let mut host = host();
        let own = HostAddress { interface: "lan0".into(), address: address.parse().unwrap(), length: 24 };
        host.addresses.push(own);
        host
    };
    let warned = |text: &str, address: &str| {
        let mut none = |_: &Path| Ok(String::new());
        let (_, warnings) = Config::parse("sixway.toml", text, &private(address), &mut none).unwrap();
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = warnings.iter().map(|warning| words(warning.to_string()));
        all.filter(|warning| warning.contains("exclude_ipv4")).collect::<Vec<_>>()
    };
    let text = format!("{OWN}{NAT64}");
    assert_eq!(
        warned(&text, "192.168.1.1"),
        [
            "sixway.toml:7 nat64.exclude_ipv4 does not list 192.168.1.0/24 on lan0: who uses 2001:db8:64::/96 reaches that network; \
          if that is not wanted, write exclude_ipv4 = [\"192.168.1.0/24\"]"
        ]
    );
    let siit = format!("{OWN}[siit]\nprefix = \"2001:db8:64::/96\"\n");
    assert!(warned(&siit, "10.1.2.3")[0].contains("siit.exclude_ipv4 does not list 10.1.2.0/24"));
    let none: [&str; 0] = [];
    // A public network, one that is excluded, and the well-known prefix, which represents no private address.
    assert_eq!(warned(&text, "198.51.100.1"), none);
    let excluded = text.replace("[nat64]\n", "[nat64]\nexclude_ipv4 = [\"192.168.0.0/16\"]\n");
    assert_eq!(warned(&excluded, "192.168.1.1"), none);
    assert_eq!(warned(&text.replace("2001:db8:64::/96", "64:ff9b::/96"), "192.168.1.1"), none);
    // All of them in one line, with those that are excluded already: a key can be written once.
    let two = excluded.replace("192.168.0.0/16", "192.168.7.0/24");
    let mut host = private("192.168.1.1");
    for (interface, address) in [("docker0", "172.17.0.1"), ("lan1", "192.168.2.1")] {
        let address = address.parse().unwrap();
        host.addresses.push(HostAddress { interface: interface.into(), address, length: 24 });
    }
    let mut nothing = |_: &Path| Ok(String::new());
    let (_, warnings) = Config::parse("sixway.toml", &two, &host, &mut nothing).unwrap();
    let said = warnings.iter().map(ToString::to_string).collect::<String>();
    let networks = "192.168.1.0/24 on lan0, 172.17.0.0/24 on docker0, 192.168.2.0/24 on lan1";
    let key = "[\"192.168.7.0/24\", \"192.168.1.0/24\", \"172.17.0.0/24\", \"192.168.2.0/24\"]";
    assert!(said.contains(&format!("does not list {networks}: ")) && said.ends_with(key), "{said}");
    // The network that the pool is of is the outside.
    let outside = text.replace("addresses = [\"", "addresses = [\"192.168.1.64/28\", \"");
    assert_eq!(warned(&outside, "192.168.1.1"), none);
}
