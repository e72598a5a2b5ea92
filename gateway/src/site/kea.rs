//! DHCPv4 for the LAN, by Kea where dnsmasq is not installed: its configuration.

use super::dhcp::range;
use super::dhcp_program::DhcpProgram;
use super::kea_process::leases_file;
use super::plan::{Dhcp, DhcpDns, Site};
use serde_json::{Value, json};

/// As long as dnsmasq's, 12 h in seconds.
const LEASE_TIME: u32 = 43_200;
/// Old entries of the file are removed this often, in seconds.
const CLEANED: u32 = 3_600;
/// RFC 8925 §3.4: V6ONLY_WAIT, 1,800 s, in hexadecimal octets.
const V6ONLY_WAIT: &str = "00000708";

impl Site {
    /// The configuration of Kea, if it is to run.
    pub(super) fn kea(&self) -> Option<String> {
        let dhcp = self.dhcp.as_ref().filter(|dhcp| dhcp.program == DhcpProgram::Kea)?;
        let own = || self.lans.iter().flat_map(|lan| lan.own.iter().map(move |own| (&lan.interface, own)));
        let interfaces: Vec<String> = own().map(|(interface, own)| format!("{interface}/{own}")).collect();
        let networks = self.lans.iter().flat_map(|lan| &lan.networks);
        let subnets: Vec<Value> = own()
            .zip(networks)
            .enumerate()
            .map(|(number, ((interface, own), network))| {
                let (first, last) = range(*network);
                json!({
                    "id": number + 1,
                    "subnet": network.to_string(),
                    "interface": interface,
                    "pools": [{ "pool": format!("{first} - {last}") }],
                    "option-data": options(dhcp, number, own.to_string()),
                })
            })
            .collect();
        let configuration = json!({
            "Dhcp4": {
                "interfaces-config": { "interfaces": interfaces, "dhcp-socket-type": "raw" },
                "lease-database": {
                    "type": "memfile",
                    "name": leases_file(&self.name).display().to_string(),
                    "lfc-interval": CLEANED,
                },
                "valid-lifetime": LEASE_TIME,
                "authoritative": true,
                "subnet4": subnets,
                "loggers": [{
                    "name": "kea-dhcp4",
                    "severity": "WARN",
                    "output_options": [{ "output": "stderr" }],
                }],
            }
        });
        Some(format!("{configuration:#}\n"))
    }
}

/// Options for the hosts of a network.
fn options(dhcp: &Dhcp, number: usize, router: String) -> Vec<Value> {
    let mut options = vec![json!({ "name": "routers", "data": router })];
    let servers = match &dhcp.dns {
        DhcpDns::Dnsmasq | DhcpDns::DnsmasqLater | DhcpDns::None => Vec::new(),
        DhcpDns::Other(servers) => servers.get(number).into_iter().copied().collect(),
        DhcpDns::Hosts(servers) => servers.clone(),
    };
    if !servers.is_empty() {
        let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
        options.push(json!({ "name": "domain-name-servers", "data": servers.join(", ") }));
    }
    if dhcp.ipv6_mostly {
        options.push(json!({ "code": 108, "csv-format": false, "data": V6ONLY_WAIT }));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::super::facts::SiteFacts;
    use super::super::options::SiteOptions;
    use super::super::plan::tests::{facts, options};
    use super::*;
    use std::path::Path;

    fn with_kea() -> SiteFacts {
        let mut facts = SiteFacts { dhcp_program: Some(DhcpProgram::Kea), ..facts() };
        facts.host.resolvers = ["127.0.0.53:53", "192.0.2.53:53", "[2001:db8::53]:53"]
            .map(|server| server.parse().unwrap())
            .to_vec();
        facts
    }

    fn subnet(options: &SiteOptions, facts: &SiteFacts) -> Value {
        let text = Site::plan(options, facts).unwrap().kea().unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["Dhcp4"]["subnet4"][0].clone()
    }

    /// The data of an option; null: hosts do not get it.
    fn told(subnet: &Value, is: impl Fn(&Value) -> bool) -> Value {
        let mut all = subnet["option-data"].as_array().unwrap().iter();
        all.find(|option| is(option)).map_or(Value::Null, |option| option["data"].clone())
    }

    #[test]
    fn kea_leases_the_same_addresses_as_dnsmasq_and_hosts_get_the_servers_of_this_host() {
        let with = SiteOptions { dhcp: true, ..options() };
        let mut facts = with_kea();
        let lan = subnet(&with, &facts);
        assert_eq!(lan["subnet"], "192.168.1.0/24");
        let text = Site::plan(&with, &facts).unwrap().kea().unwrap();
        // A host that asks for the address of another network is refused immediately.
        assert!(text.contains("\"authoritative\": true"), "{text}");
        assert_eq!(lan["pools"][0]["pool"], "192.168.1.64 - 192.168.1.254");
        let named = |lan: &Value, name: &str| told(lan, |option| option["name"] == name);
        assert_eq!(named(&lan, "routers"), "192.168.1.1");
        assert_eq!(named(&lan, "domain-name-servers"), "192.0.2.53");
        assert_eq!(told(&lan, |option| option["code"] == 108), Value::Null);
        facts.dns.insert("0.0.0.0".parse().unwrap());
        assert_eq!(named(&subnet(&with, &facts), "domain-name-servers"), "192.168.1.1");
        facts.dns.clear();
        // At this address of this host no program answers other hosts.
        facts.host.resolvers = ["127.0.0.53:53", "192.168.1.1:53"].map(|it| it.parse().unwrap()).to_vec();
        assert_eq!(named(&subnet(&with, &facts), "domain-name-servers"), Value::Null);
        let summary = Site::plan(&with, &facts).unwrap().summary(Path::new("x"));
        assert!(summary.contains("IPv4 addresses by Kea, and no DNS server"), "{summary}");
        let mostly = SiteOptions { ipv6_mostly: true, ..with };
        assert_eq!(told(&subnet(&mostly, &with_kea()), |option| option["code"] == 108), V6ONLY_WAIT);
        assert_eq!(Site::plan(&mostly, &with_kea()).unwrap().dnsmasq(Path::new("x")), None);
        assert_eq!(Site::plan(&options(), &with_kea()).unwrap().kea(), None);
    }

    #[test]
    fn without_either_program_there_is_no_dhcp() {
        let with = SiteOptions { dhcp: true, ..options() };
        let neither = SiteFacts { dhcp_program: None, ..facts() };
        let faults = Site::plan(&with, &neither).unwrap_err().join(" ");
        assert!(faults.contains("dnsmasq-base or kea-dhcp4-server"), "{faults}");
        assert!(Site::plan(&options(), &neither).is_ok());
    }
}
