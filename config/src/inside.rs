//! Who may use a NAT64.

use crate::config::Config;
use crate::fault::{Place, Report};
use crate::isatap::IsatapRole;
use crate::section::Reader;
use crate::six_rd::SixRdRole;
use crate::six_to_four::SixToFourRole;

/// A NAT64 without `inside` serves any host whose packets reach it; through the relay of a tunnel, those of the whole Internet do.
pub(crate) fn check(config: &Config, written: &[Reader], report: &mut Report) {
    let relay = (config.six_to_four.iter())
        .find(|it| it.role == SixToFourRole::Relay)
        .map(|_| "[six_to_four] role = \"relay\"")
        .or_else(|| {
            let border = config.six_rd.iter().find(|it| it.role == SixRdRole::BorderRelay);
            border.map(|_| "[six_rd] role = \"border_relay\"")
        })
        .or_else(|| {
            // Without locators it takes packets of any IPv4 address.
            let open =
                config.isatap.iter().find(|it| it.role == IsatapRole::Router && it.locators.is_empty());
            open.map(|_| "[isatap] role = \"router\" without locators")
        });
    let mend = "write the prefixes of your hosts, such as inside = [\"2001:db8:1::/48\"]";
    for (nat64, section) in config.nat64.iter().zip(written).filter(|(nat64, _)| nat64.inside.is_empty()) {
        let key = format!("{}.inside", section.place().key).into();
        let place = Place { key, ..section.place().clone() };
        let prefix = nat64.prefix.prefix();
        match relay {
            Some(relay) => {
                let what = format!("is missing: through {relay}, the Internet could use the pool");
                report.fault(&place, format!("{what}; {mend}"));
            }
            None => {
                let what = format!("is not set: any host that can send to {prefix} can use the pool");
                report.warn(&place, format!("{what}; {mend}"));
            }
        }
    }
}
