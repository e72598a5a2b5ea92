//! The parts of a configuration that the fast path forwards, and those that it passes to the engine: printed at start and by `sixway
//! check`.

use super::choice::{ProgramChoice, usable, wants};
use crate::config::{Config, FAST_PATH_INTERFACES, FastPath as Wanted, Surroundings};
use crate::fast_path::{Interface, facts_now};
use sixway_fastpath::rules::{Mechanism, Offer};

/// The message while the fast path is suspended.
pub(super) fn rests(why: &str) -> String {
    format!("suspended: {why}")
}

/// What a start of this configuration would leave to the engine on this host as it is, in the words of the start. What the kernel does
/// not tell is left out.
pub fn left_to_the_engine(config: &Config) -> Vec<String> {
    let Some(choice) = ProgramChoice::of(config, [0, 0], 0) else { return Vec::new() };
    let (now, facts) = (crate::host::surroundings(), facts_now());
    let mut lines =
        facts.as_ref().map(|facts| not_hooked(choice.wanted, &facts.interfaces)).unwrap_or_default();
    lines.extend(facts.as_ref().ok().and_then(|facts| facts.ipsec).map(rests));
    if let Ok(chosen) = choice.choose(&now, &facts.unwrap_or_default()) {
        lines.extend(not_carried(config, &now, &chosen.offer));
    }
    lines
}

/// The configured interfaces without programs, and why.
pub(super) fn not_hooked(wanted: &Wanted, there: &[Interface]) -> Vec<String> {
    let refused = there.iter().filter(|it| wants(wanted, it));
    let mut lines: Vec<String> =
        refused.filter_map(|it| Some(format!("not {}: {}", it.name, it.refused.as_ref()?))).collect();
    for name in wanted.interfaces.iter().filter(|name| !there.iter().any(|it| it.name == **name)) {
        let why = match nix::net::if_::if_nametoindex(name.as_str()) {
            Ok(_) => "the interface is down or not an Ethernet device; attached when that changes",
            Err(_) => "no such interface; attached when it appears",
        };
        lines.push(format!("not {name}: {why}"));
    }
    for name in usable(wanted, there).into_iter().skip(FAST_PATH_INTERFACES) {
        lines.push(format!(
            "not {name}: at most {FAST_PATH_INTERFACES} interfaces can be attached; list the important ones in fastpath.interfaces"
        ));
    }
    lines
}

/// The mechanisms that the engine carries, and why.
pub(super) fn not_carried(config: &Config, now: &Surroundings, offer: &Offer) -> Vec<String> {
    let unoffered = offer.unoffered.iter();
    let mut lines: Vec<String> =
        unoffered.map(|it| format!("not {}: {}", name(config, now, it.mechanism), it.why)).collect();
    // Other kinds have no known names, and there may be several of each.
    lines.dedup();
    lines
}

fn name(config: &Config, now: &Surroundings, mechanism: Mechanism) -> String {
    let named = |name: Option<&String>| name.cloned().unwrap_or_default();
    match mechanism {
        Mechanism::Nat64(index) => named(config.nat64.get(index).map(|it| &it.name)),
        Mechanism::Siit(index) => named(config.siit.get(index).map(|it| &it.name)),
        Mechanism::Tunnel(index) => {
            let tunnels = config.tunnels(now);
            tunnels.get(index).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
        }
        Mechanism::Other(kind) => kind.title().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::tests::{there, wanted};
    use super::*;
    use crate::config::HostFacts;
    use sixway_dataplane::mechanism::table::Kind;
    use sixway_fastpath::rules::{Unoffered, UnofferedReason};

    #[test]
    fn a_kind_that_the_programs_have_no_rules_for_is_reported_once() {
        let text =
            "[[ip_in_ip]]\nlocal = \"2001:db8::1\"\nremote = \"2001:db8:7::1\"\nprefixes = \"10.7.0.0/16\"\n";
        let mut no_files = |_: &std::path::Path| Err(std::io::Error::other("none"));
        let config = Config::parse("sixway.toml", text, &HostFacts::default(), &mut no_files).unwrap().0;
        let one = Unoffered { mechanism: Mechanism::Other(Kind::IpInIp), why: UnofferedReason::EngineAlone };
        let offer = Offer { unoffered: vec![one.clone(), one], ..Offer::default() };
        let told = not_carried(&config, &Surroundings::default(), &offer);
        assert_eq!(told, ["not ip-in-ip: the fast path does not support this mechanism"]);
    }

    #[test]
    fn interfaces_without_programs_are_reported_with_the_reason() {
        let all = [there("eth1", None), there("eth0", None), there("eth2", Some("a part of br0"))];
        let told = not_hooked(&wanted("interfaces = [\"eth1\", \"eth2\", \"eth9\"]"), &all);
        assert_eq!(told[0], "not eth2: a part of br0");
        assert!(told[1].starts_with("not eth9: no such interface") && told.len() == 2, "{told:?}");
        let many: Vec<_> = (10..28).map(|number| there(&format!("port{number}"), None)).collect();
        let told = not_hooked(&wanted(""), &many);
        assert!(told.len() == 2 && told[0].starts_with("not port26: at most 16"), "{told:?}");
    }
}
