//! NAT44: what comes from inside is routed by its source, and nothing is left of that.

use super::network::{Network, SIXWAY};
use super::npt66::rules_of;

const NAT44: &str = "[[pool]]\nname = \"public\"\naddresses = [\"198.18.0.0/29\"]\n[nat44]\ninside = [\"10.9.0.0/16\"]\nexcept = [\"172.20.0.0/16\"]\ninterfaces = [\"in0\"]\npool = \"public\"\n";

#[track_caller]
fn are_there(network: &Network) {
    let shown = rules_of("-4", network);
    for rule in [
        "6296:\tfrom 10.9.0.0/16 to 10.9.0.0/16 iif in0 lookup main",
        "6296:\tfrom 10.9.0.0/16 to 172.20.0.0/16 iif in0 lookup main",
        "6297:\tfrom 10.9.0.0/16 iif in0 lookup 6296",
        "unreachable default table 6296",
    ] {
        assert!(shown.contains(rule), "{rule}\nin:\n{shown}");
    }
}

#[test]
fn rules_of_a_nat44_are_removed_at_the_end_and_by_a_cleanup() {
    let network = Network::build();
    let (settings, routes, before) = (network.settings(), network.routes(), rules_of("-4", &network));
    for signal in ["TERM", "KILL"] {
        let mut gateway = network.start(NAT44);
        are_there(&network);
        assert!(rules_of("-4", &network).contains("default dev sixway0 table 6296"), "{}", gateway.said());
        gateway.signal(signal);
        gateway.end();
        if signal == "KILL" {
            are_there(&network);
            network.on("gateway", SIXWAY, &["cleanup"]);
        }
        let now = (network.settings(), network.routes(), rules_of("-4", &network));
        assert_eq!(now, (settings.clone(), routes.clone(), before.clone()), "{signal}");
    }
}

#[test]
fn who_takes_over_changes_only_the_rules_that_differ() {
    let network = Network::build();
    let before = rules_of("-4", &network);
    let mut first = network.start(NAT44);
    let had = rules_of("-4", &network);
    let mut second = network.start_with(NAT44, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert_eq!(rules_of("-4", &network), had);
    let without = NAT44.replace("interfaces = [\"in0\"]\n", "");
    let mut third = network.start_with(&without, &["--takeover"]);
    assert_eq!(second.end(), 0, "{}", second.said());
    let shown = rules_of("-4", &network);
    assert!(!shown.contains("iif") && shown.contains("6297:\tfrom 10.9.0.0/16 lookup"), "{shown}");
    assert!(shown.contains("unreachable default table 6296"), "{shown}");
    third.signal("TERM");
    assert_eq!(third.end(), 0, "{}", third.said());
    assert_eq!(rules_of("-4", &network), before);
}
