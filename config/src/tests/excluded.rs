//! Addresses that are not translated.

use super::*;

#[test]
fn excluded_addresses_and_allowed_own_ones_reach_the_engines() {
    let text = "[gateway]\nipv4_address = \"198.51.100.1\"\n[[pool]]\nname = \"a\"\naddresses = [\"198.18.0.0/24\"]\n[nat64]\ninside = [\"2001:db8:1::/48\"]\nprefix = \"2001:db8:64::/96\"\npool = \"a\"\n\
        exclude_ipv4 = [\"10.0.0.0/8\"]\nallow_own = [\"10.0.0.1\"]\n[siit]\nprefix = \"2001:db8:65::/96\"\nexclude_ipv4 = [\"192.168.0.0/16\"]\n";
    let (config, _) = parse_with_all_warnings(text).unwrap();
    let engine = &config.engines([1, 2], &Surroundings::default())[0];
    assert_eq!(engine.nat64[0].excluded, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(engine.nat64[0].allow_own, ["10.0.0.1/32".parse().unwrap()]);
    assert_eq!(engine.siit[0].excluded, ["192.168.0.0/16".parse().unwrap()]);
}

#[test]
fn the_dns64_knows_what_the_translators_refuse() {
    let text = format!(
        "{}[dns64]\nlisten = [\"[::1]:53\"]\nupstream = [{{ address = \"192.0.2.53\" }}]\nexclude_private = true\n",
        "[gateway]\nipv4_address = \"198.51.100.1\"\n[[pool]]\nname = \"a\"\naddresses = [\"198.18.0.0/24\"]\n\
         [nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"a\"\nexclude_ipv4 = [\"10.0.0.0/8\"]\n"
    );
    let (config, _) = parse_with_all_warnings(&text).unwrap();
    let own = HostAddress { interface: "eth0".into(), address: "198.51.100.7".parse().unwrap(), length: 24 };
    let access = config.dns64_access(&[own], &Surroundings::default());
    assert_eq!(access.host4, ["198.51.100.7".parse::<std::net::Ipv4Addr>().unwrap()]);
    let settings = config.dns64_settings(access, Vec::new()).unwrap();
    let excluded = vec![("2001:db8:64::/96".parse().unwrap(), vec!["10.0.0.0/8".parse().unwrap()])];
    assert_eq!((settings.exclude4, settings.exclude_private), (excluded, true));
}

#[test]
fn the_images_of_ipv4_routes_are_unreachable_where_no_host_has_a_narrower_route() {
    let unreachable = |routes: &str, more: &str| {
        let text = format!(
            "[gateway]\nipv4_address = \"192.0.2.254\"\n[tun]\nroutes = [{routes}]\n[siit]\nprefix = \"2001:db8:64::/96\"\n{more}"
        );
        let (config, _) = parse_with_all_warnings(&text).unwrap();
        config.reach(&Surroundings::default()).unreachable
    };
    let image = ["2001:db8:64::198.51.100.0/120".parse().unwrap()];
    assert_eq!(unreachable("\"auto\", \"198.51.100.0/24\"", ""), image);
    // Mapped hosts are reached through the translator, and a default route is not a range of hosts.
    let eam = "eam = [{ ipv4 = \"198.51.100.8/29\", ipv6 = \"2001:db8:1::/125\" }]\n";
    assert_eq!(unreachable("\"auto\", \"198.51.100.0/24\"", eam), []);
    assert_eq!(unreachable("\"auto\", \"0.0.0.0/1\", \"128.0.0.0/1\"", ""), []);
    assert_eq!(unreachable("\"auto\"", ""), []);
}
