//! All checks, one after the other.

use super::facts::Facts;
use super::finding::Finding;
use super::{
    aftrs, dhcp_server, event_log, exposed, iptables_masquerade, lease_servers, listeners, mtu,
    packet_filter, ports, routes, running, settings, shared_pools, teredo_client, upstreams, vrfs,
};
use crate::config::Config;

/// What the packet filter would do with the gateway's packets, with this configuration. Takes a second or two.
pub fn packet_filter_findings(config: &Config) -> Vec<Finding> {
    packet_filter::check(config, &Facts::gather(config))
}

/// Every finding about this host, with this configuration.
pub fn examine(config: &Config) -> Vec<Finding> {
    let aftrs = aftrs::AftrEnds::ask(config);
    let facts = Facts::with(config, &aftrs.known());
    let mut findings = routes::check(config, &facts);
    findings.extend(aftrs.check(config, facts.is_running));
    findings.extend(shared_pools::check(config, &facts));
    findings.extend(settings::check(config, &facts));
    findings.extend(teredo_client::check(config, &facts));
    findings.extend(vrfs::check(config));
    findings.extend(mtu::check(config, &facts));
    findings.extend(ports::check(config, &facts));
    findings.extend(iptables_masquerade::check(config, &facts));
    findings.extend(listeners::check(config, &facts));
    findings.extend(lease_servers::check(config));
    findings.extend(dhcp_server::check(config));
    findings.extend(running::check(config));
    findings.extend(packet_filter::check(config, &facts));
    findings.extend(upstreams::check(config));
    findings.extend(event_log::check(config));
    findings.extend(exposed::check(config));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checks that have a finding. Those that query servers are tested where there are some.
    #[test]
    fn every_check_is_part_of_the_examination() {
        let folder = std::env::temp_dir().join(format!("sixway-examine-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("site.dnsmasq"), "port=53\n").unwrap();
        let (socket, log, none) = (folder.join("site.sock"), folder.join("log"), folder.join("none"));
        let shared =
            "[[pool]]\nname = \"p\"\naddresses = [\"192.0.2.1\"]\nshared = true\nports = \"61000-61999\"\n";
        let nat44 = "[nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"p\"\n[pcp]\ninterfaces = [\"eth1\"]\n";
        let texts = [
            format!(
                "[gateway]\nipv4_address = \"192.0.2.14\"\nadmin_socket = {socket:?}\n{shared}{nat44}[log]\n[log.file]\npath = {log:?}\n"
            ),
            "[gateway]\nipv4_address = \"192.0.2.14\"\n[[pool]]\nname = \"p\"\naddresses = [\"192.0.2.1\"]\n[[realm]]\nname = \"red\"\ninside = [\"10.0.0.0/8\"]\npool = \"p\"\nvrf = \"red\"\n".into(),
            format!("[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:b4::1\"\naftr_lease_file = {none:?}\n"),
            format!(
                "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\nserver_lease_file = {none:?}\n"
            ),
            "[teredo_server]\naddress = \"203.0.113.7\"\n".into(),
        ];
        let findings = texts.iter().flat_map(|text| examine(&crate::sample::config(text)));
        let found: Vec<_> = findings.map(|finding| (finding.check, finding.what)).collect();
        for (check, part) in [
            ("routes", "default route"),
            ("aftr", "ds_lite"),
            ("pool", "of the shared pool p"),
            ("forwarding", "the gateway does not run"),
            ("vrf", "red"),
            ("mtu", "octets"),
            ("ports", "port of a shared pool"),
            ("listen", ""),
            ("leases", "takes no lease"),
            ("dhcp", "dnsmasq does not run"),
            ("packet filter", ""),
            ("event log", "can be opened"),
            ("exposed", "teredo_server"),
        ] {
            let is_there = found.iter().any(|(name, what)| *name == check && what.contains(part));
            assert!(is_there, "{check}: {found:#?}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
