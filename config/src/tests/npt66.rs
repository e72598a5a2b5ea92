//! Prefix translators (RFC 6296).

use super::*;
use crate::{Route, SourceRule, Surroundings};

const SITE: &str =
    "[npt66]\ninside = \"fd01:203:405::/48\"\noutside = \"2001:db8:1:aa00::/56\"\nexcept = [\"fd0e::/16\"]\n";

#[test]
fn a_prefix_translator_is_read_with_its_routes_and_rules() {
    let text = format!("{OWN}{SITE}");
    let (config, _) = parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(
        config.others.all().iter().map(|it| it.serves()).collect::<Vec<_>>(),
        ["fd01:203:405::/56 ⇄ 2001:db8:1:aa00::/56"]
    );
    assert!(config.routes().contains(&Route::V6("2001:db8:1:aa00::/56".parse().unwrap())));
    let from = "fd01:203:405::/56".parse().unwrap();
    let rule = |except: Option<&str>| SourceRule {
        from,
        except: except.map(|prefix| prefix.parse().unwrap()),
        interface: None,
    };
    let rules = config.reach(&Surroundings::default()).rules;
    assert_eq!(rules, [rule(Some("fd01:203:405::/56")), rule(Some("fd0e::/16")), rule(None)]);
    assert!(config.needs_device() && config.routes_ipv6() && !config.translates());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config);
    let alone = parse(&format!("{text}[tun]\nroutes = \"none\"\n")).unwrap().0;
    assert_eq!((alone.routes(), alone.reach(&Surroundings::default()).rules), (vec![], vec![]));
}

#[test]
fn prefixes_that_cannot_be_are_reported() {
    for (inside, outside, what) in [
        ("fd01:203:405::/48", "2001:db8::/65", "longer than 64 bits"),
        ("fd01:203:405::/48", "fd01:203::/32", "overlap"),
        ("ff05::/48", "2001:db8:1::/48", "no unicast addresses"),
    ] {
        let text = format!("{OWN}[npt66]\ninside = \"{inside}\"\noutside = \"{outside}\"\n");
        let faults = parse(&text).unwrap_err().to_string();
        assert!(faults.contains(what), "{faults}");
    }
    let twice =
        SITE.replace("[npt66]", "[[npt66]]") + &SITE.replace("[npt66]", "[[npt66]]").replace("aa00", "bb00");
    let faults = parse(&format!("{OWN}{twice}")).unwrap_err().to_string();
    assert!(faults.contains("already translated by npt66-1"), "{faults}");
}
