//! A Teredo client: the way to its servers, native IPv6, and its packet filter.

use super::facts::Facts;
use super::finding::Finding;
use crate::config::{Config, Surroundings, TeredoClient};
use crate::host::notrack::listing;
use crate::host::{Hop, NftError, hop, native_ipv6, routes_ipv6_internet};
use std::net::{IpAddr, Ipv4Addr};

const CHECK: &str = "teredo_client";

pub(super) fn check(config: &Config, facts: &Facts) -> Vec<Finding> {
    let Some(client) = config.others.teredo_client.first() else { return Vec::new() };
    let ways = client.servers.iter().map(|it| (it.address, hop(IpAddr::V4(it.address))));
    let ways: Vec<(Ipv4Addr, Option<Hop>)> = ways.collect();
    let has_nft = !matches!(listing(&config.gateway.name), Err(NftError::Missing));
    let routes = config.reach(&Surroundings::of(&facts.addresses)).routes;
    let own = (!routes_ipv6_internet(&routes)).then_some(&*config.tun.name);
    judge(client, &config.tun.name, &ways, native_ipv6(own) == Some(true), has_nft)
}

fn judge(
    client: &TeredoClient,
    device: &str,
    ways: &[(Ipv4Addr, Option<Hop>)],
    is_native: bool,
    has_nft: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (server, way) in ways {
        match way {
            None => findings.push(Finding::fault(
                CHECK,
                format!("{}: there is no route to server {server}", client.name),
                "ip route add default via ROUTER dev UPLINK",
            )),
            Some(Hop { interface, .. }) if interface == device => findings.push(Finding::fault(
                CHECK,
                format!("{}: packets to server {server} are routed into {device}", client.name),
                format!("ip route add {server} via ROUTER dev UPLINK"),
            )),
            Some(Hop { interface, .. }) => {
                findings.push(Finding::fine(CHECK, format!("server {server} is routed by {interface}")));
            }
        }
    }
    if is_native {
        let what = "this host has native IPv6: the client is off until that is gone (RFC 4380 §5.5)";
        findings.push(Finding::fine(CHECK, what));
    }
    if client.firewall && !has_nft {
        findings.push(Finding::fault(
            CHECK,
            "nft is not installed: the client stays off, as nothing would keep unsolicited packets from its address",
            "install the package nftables",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn a_client_needs_a_way_to_its_server_and_a_filter() {
        let config = crate::sample::config(
            "[teredo_client]\naddress = \"203.0.113.1\"\nservers = [{ address = \"80.64.79.1\" }]\n",
        );
        let client = &config.others.teredo_client[0];
        let server = client.servers[0].address;
        let by = |interface: &str| Some(Hop { interface: interface.into(), gateway: None });
        let verdicts = |way: Option<Hop>, is_native, has_nft| -> Vec<Verdict> {
            let found = judge(client, "sixway0", &[(server, way)], is_native, has_nft);
            found.iter().map(|finding| finding.verdict).collect()
        };
        assert_eq!(verdicts(by("eth0"), false, true), [Verdict::Fine]);
        assert_eq!(verdicts(by("sixway0"), false, true), [Verdict::Fault]);
        assert_eq!(verdicts(None, true, false), [Verdict::Fault, Verdict::Fine, Verdict::Fault]);
    }
}
