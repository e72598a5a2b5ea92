//! Services of this host that are reachable from the Internet, and the clients that they answer.

use super::finding::Finding;
use crate::config::Config;

const CHECK: &str = "exposed";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let all = config.exposed().into_iter();
    let finding = all.map(|it| match it.restrict {
        Some(how) => Finding::fine(
            CHECK,
            format!("{} is open to any host, as configured: {}; {how}", it.name, it.what),
        ),
        None => Finding::fine(CHECK, format!("{}: {}", it.name, it.what)),
    });
    finding.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_and_a_relay_expose_is_said_and_to_whom() {
        let text = "[teredo_server]\naddress = \"203.0.113.7\"\n[teredo_relay]\naddress = \"203.0.113.7\"\nport = 3545\nipv6_address = \"2001:db8::1\"\n";
        let said = |text: &str| {
            let found = check(&crate::sample::config(text));
            found.into_iter().map(|finding| finding.what).collect::<Vec<_>>()
        };
        let all = said(text);
        assert!(
            all[0].starts_with("teredo_server is open to any host, as configured: UDP 203.0.113.7:3544 ")
        );
        assert!(all[1].starts_with("teredo_relay is open to any host, as configured: UDP 203.0.113.7:3545 "));
        assert!(all[1].contains("Teredo clients send to anybody") && all[1].ends_with("restricts it"));
        let own = said(&format!("{text}serves = [\"2001:db8::/32\"]\n"));
        assert!(
            own[1].starts_with("teredo_relay: UDP") && own[1].contains("send to 2001:db8::/32"),
            "{own:?}"
        );
        assert_eq!(said("[siit]\nprefix = \"2001:db8:64::/96\"\n"), [""; 0]);
    }
}
