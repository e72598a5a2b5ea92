//! The output of `--print-config`: the configuration, with the settings of other programs as comments.

use super::plan::Site;
use std::fmt::Write as _;
use std::path::Path;

/// Prefixes of the lines of the packet filter's commands and of the DHCP server's configuration.
const NFT: &str = "#nft";
const DNSMASQ: &str = "#dnsmasq";
const KEA: &str = "#kea";

impl Site {
    /// The configuration file for `sixway run`, with the other settings as comments. `leases`: the file of dnsmasq's leases.
    pub(super) fn printed(&self, leases: &Path) -> String {
        // Next to this file there would be none.
        let relative = format!("\nlease_file = \"{}.leases\"", self.name);
        let mut text =
            self.configuration().replace(&relative, &format!("\nlease_file = \"{}\"", leases.display()));
        if self.firewall {
            let what = "The packet filter's table, which `sixway run` does not make";
            commented(&mut text, NFT, what, "| nft -f -", &self.filter());
        }
        if let Some(dnsmasq) = self.dnsmasq(leases) {
            let what = "The configuration of dnsmasq, which `sixway run` does not start";
            commented(&mut text, DNSMASQ, what, "> dnsmasq.conf", &dnsmasq);
        }
        if let Some(kea) = self.kea() {
            let what = "The configuration of Kea, which `sixway run` does not start";
            commented(&mut text, KEA, what, "> kea-dhcp4.conf", &kea);
        }
        text
    }
}

fn commented(text: &mut String, mark: &str, what: &str, use_of_it: &str, lines: &str) {
    let _ = writeln!(text, "\n# {what}: sed -n 's/^{mark} //p' FILE {use_of_it}");
    for line in lines.lines() {
        let _ = writeln!(text, "{mark} {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::dhcp_program::DhcpProgram;
    use super::super::facts::SiteFacts;
    use super::super::options::SiteOptions;
    use super::super::plan::tests::{facts, options};
    use super::*;

    fn extracted(printed: &str, mark: &str) -> String {
        let lines = printed.lines().filter_map(|line| line.strip_prefix(mark)?.strip_prefix(' '));
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn the_filter_and_dnsmasqs_configuration_are_comments_that_can_be_taken_out() {
        let with = SiteOptions { dhcp: true, ..options() };
        let site = Site::plan(&with, &facts()).unwrap();
        let leases = Path::new("/run/sixway/site.leases");
        let printed = site.printed(leases);
        assert_eq!(extracted(&printed, NFT), site.filter());
        assert_eq!(Some(extracted(&printed, DNSMASQ)), site.dnsmasq(leases));
        let rest: Vec<&str> = printed.lines().filter(|line| !line.starts_with('#')).collect();
        let configuration = site.configuration().replace("\"site.leases\"", "\"/run/sixway/site.leases\"");
        assert!(
            configuration.contains("lease_file = \"/run/sixway/site.leases\" # dnsmasq's"),
            "{configuration}"
        );
        let expected: Vec<&str> = configuration.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            rest.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
            expected.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>()
        );
        let by_kea = SiteFacts { dhcp_program: Some(DhcpProgram::Kea), ..facts() };
        let site = Site::plan(&with, &by_kea).unwrap();
        assert_eq!(Some(extracted(&site.printed(leases), KEA)), site.kea());
        let without = Site::plan(&SiteOptions { firewall: false, ..options() }, &facts()).unwrap();
        assert_eq!(without.printed(leases), without.configuration());
    }
}
