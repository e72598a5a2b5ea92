//! Prefix translation: what comes from inside is routed by its source, and nothing is left of that.

use super::network::{Network, SIXWAY};

const SITE: &str =
    "[npt66]\ninside = \"2001:db8:1::/48\"\noutside = \"2001:db8:aaaa::/48\"\nexcept = [\"fd0e::/16\"]\n";

/// The rules, and what is in the device's own table.
fn rules(network: &Network) -> String {
    rules_of("-6", network)
}

pub(crate) fn rules_of(family: &str, network: &Network) -> String {
    let host = network.host("gateway");
    let rules = network.ip(&["-n", &host, family, "rule", "show"]);
    let routes = network.ip(&["-n", &host, family, "route", "show", "table", "all"]);
    let own = routes.lines().filter(|line| line.contains("table 6296")).map(|line| format!("{line}\n"));
    rules + &own.collect::<String>()
}

#[track_caller]
fn are_there(network: &Network) {
    let shown = rules(network);
    for rule in [
        "6296:\tfrom 2001:db8:1::/48 to 2001:db8:1::/48 lookup main",
        "6296:\tfrom 2001:db8:1::/48 to fd0e::/16 lookup main",
        "6297:\tfrom 2001:db8:1::/48 lookup 6296",
        "unreachable default dev lo table 6296",
    ] {
        assert!(shown.contains(rule), "{rule}\nin:\n{shown}");
    }
}

#[test]
fn rules_by_source_are_removed_at_the_end() {
    let network = Network::build();
    let (settings, routes, before) = (network.settings(), network.routes(), rules(&network));
    let mut gateway = network.start(SITE);
    are_there(&network);
    assert!(network.routes().iter().any(|line| line.starts_with("2001:db8:aaaa::/48 dev sixway0")));
    assert!(network.show(&[]).contains("2001:db8:1::/48 ⇄ 2001:db8:aaaa::/48"), "{}", network.show(&[]));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!((network.routes(), network.settings(), rules(&network)), (routes, settings, before));
}

#[test]
fn rules_of_a_killed_gateway_are_cleared_up() {
    let network = Network::build();
    let (settings, routes, before) = (network.settings(), network.routes(), rules(&network));
    for again in [false, true] {
        let mut gateway = network.start(SITE);
        gateway.signal("KILL");
        gateway.end();
        are_there(&network);
        if again {
            // The next one has none, and removes them before it starts.
            let mut next = network.start("[siit]\nprefix = \"2001:db8:64::/96\"\n");
            assert_eq!(rules(&network), before);
            next.signal("TERM");
            assert_eq!(next.end(), 0, "{}", next.said());
        } else {
            network.on("gateway", SIXWAY, &["cleanup"]);
        }
        // A program that the gateway had just started may hold the device for a moment.
        let start = std::time::Instant::now();
        while network.routes() != routes && start.elapsed() < std::time::Duration::from_secs(5) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(
            (network.routes(), network.settings(), rules(&network)),
            (routes.clone(), settings.clone(), before.clone())
        );
    }
}

#[test]
fn who_takes_over_keeps_the_rules_that_it_needs_and_removes_the_others() {
    let network = Network::build();
    let (routes, before) = (network.routes(), rules(&network));
    let mut first = network.start(SITE);
    let had = rules(&network);
    let mut second = network.start_with(SITE, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert_eq!(rules(&network), had);
    let mut third = network.start_with(&SITE.replace("[\"fd0e::/16\"]", "[]"), &["--takeover"]);
    assert_eq!(second.end(), 0, "{}", second.said());
    let shown = rules(&network);
    assert!(!shown.contains("fd0e::/16") && shown.contains("6297:"), "{shown}");
    third.signal("TERM");
    assert_eq!(third.end(), 0, "{}", third.said());
    assert_eq!((network.routes(), rules(&network)), (routes, before));
}
