//! A site on a host whose own packet filter drops what no rule accepts: the doctor names each rule that is missing, and the rules of
//! `docs/mechanisms/site.md` are all that are needed.

use crate::Interop;
use crate::site_doctor::{doctor, finds_nothing, home_at};
use crate::site_ipv6::lease;
use crate::site_nat64::up_resolving;
use crate::site_network::{HOST4, HOST6, SERVER6, STRANGER6, at, is_kept_out, passes, socket};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::name_service::{Resolving, addresses, serve};
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::topology::Network;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "doctor_prints_each_missing_rule_on_a_host_that_drops_by_default",
        &PROGRAMS,
        told_each_rule,
    ),
    Interop::new("site_up_works_with_the_rules_of_its_page_for_nftables", &PROGRAMS, by_nftables),
    Interop::new("site_up_works_with_the_rules_of_its_page_for_docker", &WITH_IPTABLES, next_to_docker),
];

const PROGRAMS: [&str; 10] =
    ["sixway", "nft", "nsd", "taskset", "unshare", "dnsmasq", "busybox", "rdisc6", "natpmpc", "getent"];
const WITH_IPTABLES: [&str; 11] = [
    "sixway",
    "nft",
    "nsd",
    "taskset",
    "unshare",
    "dnsmasq",
    "busybox",
    "rdisc6",
    "natpmpc",
    "getent",
    "iptables-nft",
];

/// A server's rules, as they are found on many hosts.
const DROPS: &str = "table inet filter {
    chain input { type filter hook input priority filter; policy drop; iif lo accept; ct state established,related accept; }
    chain forward { type filter hook forward priority filter; policy drop; }
}";

/// The public address.
const PUBLIC: &str = "5.6.7.1";
const SERVER: &str = "5.6.7.2";

const SHORT: Duration = Duration::from_secs(10);

/// The home, with a name server at the provider.
fn network() -> Result<Network> {
    let network = home_at("5.6.7")?;
    serve(&network, "shop A 5.6.7.2\n")?;
    Ok(network)
}

fn load(network: &Network, rules: &str) -> Result<()> {
    let file = network.file("rules.nft", rules)?;
    let mut nft = command("nft")?;
    nft.arg("-f").arg(file);
    network.host("gateway")?.run(nft, SHORT)?.succeeded().map(drop)
}

fn shell(network: &Network, script: &str) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]);
    network.host("gateway")?.run(shell, SHORT)?.succeeded().map(drop)
}

/// The code block behind this word on the site's page, with the names of this network's interfaces.
fn block(begin: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mechanisms/site.md");
    let page = std::fs::read_to_string(&path).asking(|| format!("reading {}", path.display()))?;
    let text = page.split_once(begin).and_then(|(_, rest)| rest.split_once("\n```").map(|(text, _)| text));
    let text = text.ok_or_else(|| Failure::Unexpected(format!("the page has no block {begin:?}")))?;
    Ok(text.replace("eth1", "in0").replace("eth0", "out0"))
}

/// The services of the box and both Internets that hosts of the LAN need; unsolicited packets are still dropped.
fn works(network: &Network) -> Result<()> {
    let host = network.host("host")?;
    host.ip("-4 address flush dev up0")?;
    let told = lease(network)?;
    assert!(told.contains("router=192.168.1.1") && told.contains("dns=192.168.1.1"), "{told}");
    network.address("host", "up0", "192.168.1.2/24")?;
    network.route("host", "default via 192.168.1.1")?;
    let mut rdisc6 = command("rdisc6")?;
    rdisc6.args(["-1", "-w", "2000", "up0"]);
    let said = host.run(rdisc6, SHORT)?.stdout;
    assert!(said.contains("Router lifetime"), "{said}");
    for resolver in ["192.168.1.1", "2001:db8:1::1"] {
        let resolving = Resolving::by(network, "host", resolver)?;
        assert!(!addresses(&resolving, "shop.example")?.is_empty(), "by {resolver}");
    }
    let mut natpmpc = command("natpmpc")?;
    natpmpc.args(["-g", "192.168.1.1", "-a", "25000", "4000", "udp", "300"]);
    let said = host.run(natpmpc, Duration::from_secs(30))?.stdout;
    assert!(said.contains("Mapped public port"), "{said}");
    let (host4, host6) = (socket(network, "host", HOST4, 4_001)?, socket(network, "host", HOST6, 4_001)?);
    let (server4, server6) =
        (socket(network, "server", SERVER, 53)?, socket(network, "server", SERVER6, 53)?);
    let seen = passes(&host4, at(&server4)?, &server4)?;
    assert_eq!(seen.ip().to_string(), PUBLIC);
    passes(&server4, seen, &host4)?;
    let seen = passes(&host6, at(&server6)?, &server6)?;
    passes(&server6, seen, &host6)?;
    let stranger = socket(network, "server", STRANGER6, 53)?;
    is_kept_out(&stranger, at(&host6)?, &host6)?;
    for to in [SERVER, SERVER6, "64:ff9b::506:702"] {
        assert_eq!(ping(host, to, 2, 56, Duration::from_millis(20))?.answered, 2, "{to}");
    }
    Ok(())
}

/// One rule after the other, as an operator would type them.
fn told_each_rule() -> Result<()> {
    let network = network()?;
    load(&network, DROPS)?;
    up_resolving(&network, &["--dhcp", "--nat64"])?;
    let (said, _) = doctor(&network)?;
    for part in [
        "inet filter forward drops",
        "IPv4 packets from in0 to sixway0",
        "IPv6 packets from in0 to sixway0",
        "IPv6 packets from in0 to out0",
        "IPv4 packets from sixway0 to out0",
        "inet filter input drops",
        "router solicitations from in0",
        "router advertisements from out0",
        "PCP requests from in0",
        "DHCP requests from in0",
        "queries to dnsmasq from in0",
        "queries from in0 to DNS64 at [2001:db8:1::1]:53",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for _ in 0..5 {
        let (said, _) = doctor(&network)?;
        let cures = said.lines().filter_map(|line| line.trim_start().strip_prefix("→ "));
        for cure in cures.flat_map(|cures| cures.split("; ")).filter(|cure| cure.starts_with("nft insert")) {
            shell(&network, &format!("nft '{}'", cure.trim_start_matches("nft ")))?;
        }
    }
    let (said, is_fine) = doctor(&network)?;
    assert!(is_fine, "{said}");
    works(&network)
}

fn by_nftables() -> Result<()> {
    let network = network()?;
    load(&network, &block("```nft\n")?)?;
    let id = up_resolving(&network, &["--dhcp", "--nat64"])?;
    finds_nothing(&network, id)?;
    works(&network)
}

/// What Docker leaves in the chains of both families, without its bridges.
const DOCKER: &str = "for program in iptables-nft ip6tables-nft; do
    $program -P FORWARD DROP
    $program -N DOCKER-USER
    $program -A DOCKER-USER -j RETURN
    $program -A FORWARD -j DOCKER-USER
    $program -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
done
";

fn next_to_docker() -> Result<()> {
    let network = network()?;
    shell(&network, DOCKER)?;
    up_resolving(&network, &["--dhcp", "--nat64"])?;
    let (said, is_fine) = doctor(&network)?;
    assert!(!is_fine && said.contains("ip filter FORWARD drops IPv4 packets"), "{said}");
    shell(&network, &block("```sh\n# Docker\n")?)?;
    let (said, is_fine) = doctor(&network)?;
    assert!(is_fine, "{said}");
    // Docker masquerades its containers as well.
    shell(&network, "iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE")?;
    let (said, _) = doctor(&network)?;
    assert!(said.contains("  masquerading: "), "{said}");
    works(&network)
}
