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
