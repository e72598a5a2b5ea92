//! `[nat44]`.

use super::*;
use crate::{Network, Route, SourceRule, Surroundings};

const POOL44: &str = "[[pool]]\nname = \"public\"\naddresses = [\"192.0.2.0/29\"]\n";
const NAT44: &str = "[nat44]\ninside = [\"192.168.0.0/16\"]\npool = \"public\"\n";

fn faults(text: &str) -> String {
    parse(text).map_or_else(|faults| faults.to_string(), |(config, _)| panic!("no fault in {config}"))
}

#[test]
fn a_nat44_is_read_with_its_routes_and_rules() {
    let text = format!("{OWN}{POOL44}{NAT44}interfaces = [\"eth0\"]\nexcept = [\"10.20.0.0/16\"]\n");
    let (config, _) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(config.needs_device() && config.routes_ipv4() && !config.translates());
    assert!(config.routes().contains(&Route::V4("192.0.2.0/29".parse().unwrap())));
    let rule = |except: Option<&str>| SourceRule {
        from: Network::V4("192.168.0.0/16".parse().unwrap()),
        except: except.map(|prefix| prefix.parse().unwrap()),
        interface: Some("eth0".into()),
    };
    let rules = config.reach(&Surroundings::default()).rules;
    assert_eq!(rules, [rule(Some("10.20.0.0/16")), rule(Some("192.168.0.0/16")), rule(None)]);
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let engine = &config.engines([0, 0], &Surroundings::default())[0];
    assert_eq!(engine.nat44[0].pool.addresses, ["192.0.2.0/29".parse().unwrap()]);
    assert_eq!(engine.nat44[0].except, ["10.20.0.0/16".parse().unwrap()]);
}

#[test]
fn who_is_inside_is_required_and_may_not_overlap_what_is_outside() {
    let without = faults(&format!("{OWN}{POOL44}[nat44]\npool = \"public\"\n"));
    assert!(without.contains("nat44.inside") && without.contains("192.168.1.0/24"), "{without}");
    let empty = faults(&format!("{OWN}{POOL44}[nat44]\ninside = []\npool = \"public\"\n"));
    assert!(empty.contains("is empty"), "{empty}");
    let overlap = faults(&format!("{OWN}{POOL44}[nat44]\ninside = [\"192.0.2.0/24\"]\npool = \"public\"\n"));
    assert!(overlap.contains("overlaps"), "{overlap}");
    let other = faults(&format!(
        "{OWN}{POOL44}{NAT44}[[nat44.static]]\nprotocol = \"udp\"\ninside = \"10.0.0.1:53\"\noutside = \"192.0.2.1:53\"\n"
    ));
    assert!(other.contains("is not in nat44.inside"), "{other}");
}

#[test]
fn the_gateway_has_an_address_for_its_errors() {
    let text = format!("{POOL44}{NAT44}");
    assert!(faults(&text).contains("gateway.ipv4_address"), "{}", faults(&text));
    let inside = faults(&format!("[gateway]\nipv4_address = \"192.168.1.1\"\n{POOL44}{NAT44}"));
    assert!(inside.contains("overlaps"), "{inside}");
}

#[test]
fn a_pool_belongs_to_one_translator() {
    let nat64 = "[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"public\"\ninside = [\"2001:db8:1::/48\"]\n";
    let both = faults(&format!("{OWN}{POOL44}{NAT44}{nat64}"));
    assert!(both.contains("is already used by"), "{both}");
    let twice = faults(&format!("{OWN}{POOL44}{}", NAT44.replace("[nat44]", "[[nat44]]").repeat(2)));
    assert!(twice.contains("nat44"), "{twice}");
}
