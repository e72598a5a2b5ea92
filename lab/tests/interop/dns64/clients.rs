//! Real clients behind a gateway with NAT64 and DNS64: glibc's resolver, curl by name, dig.

use crate::Interop;
use sixway_lab::dns64::{Asker, Flags, Tree, start_authority};
use sixway_lab::failure::Result;
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::serve_page;
use sixway_lab::process::Finished;
use sixway_lab::topology::{Network, client_gateway_server};
use std::path::Path;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "glibc_finds_an_ipv4_only_host",
        &["nsd", "taskset", "unshare", "sixway"],
        glibc_finds_an_ipv4_only_host,
    ),
    Interop::new(
        "curl_opens_a_page_of_an_ipv4_only_host_by_its_name",
        &["nsd", "taskset", "unshare", "curl", "nginx", "sixway"],
        curl_opens_a_page_of_an_ipv4_only_host_by_its_name,
    ),
    Interop::new(
        "dig_is_answered_whatever_it_says_of_edns",
        &["nsd", "taskset", "unshare", "dig", "sixway"],
        dig_is_answered_whatever_it_says_of_edns,
    ),
];

const DNS64: &str = r#"
[dns64]
listen = ["[2001:db8:1::1]:53"]
special_names = "upstream"

[[dns64.upstream]]
address = "203.0.113.2"
"#;

/// The server is 64:ff9b::203.0.113.2 for the client.
const SERVER: &str = "64:ff9b::cb00:7102";

fn gateway() -> Result<Network> {
    let network = client_gateway_server()?;
    start_authority(&network, &Tree::of_hosts(&[("web", "203.0.113.2")]))?;
    run_sixway(&network, &format!("{NAT64}{DNS64}"))?;
    let asker = Asker::open(network.host("client")?, "[2001:db8:1::1]:53".parse().expect("an address"))?;
    interrupt::wait_until(Duration::from_secs(20), "an answer", || {
        let reply = asker.ask_within("ns.test", "A", Flags::NONE, Duration::from_millis(300));
        Ok(reply.is_ok_and(|reply| reply.rcode == "NOERROR"))
    })?;
    network.file("resolv.conf", "nameserver 2001:db8:1::1\noptions timeout:2 attempts:3\n")?;
    network.file("nsswitch.conf", "hosts: files dns\n")?;
    Ok(network)
}

/// Runs a command on the client with a resolver configuration of its own, in a mount namespace.
fn run(network: &Network, words: &str) -> Result<Finished> {
    let own = |file: &str| format!("mount --bind {}/{file} /etc/{file}", display(network.folder()));
    let mut unshare = command("unshare")?;
    unshare.args(["--mount", "sh", "-ec"]).arg(format!(
        "{}; {}; {words}",
        own("resolv.conf"),
        own("nsswitch.conf")
    ));
    network.host("client")?.run(unshare, Duration::from_secs(20))
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn glibc_finds_an_ipv4_only_host() -> Result<()> {
    let network = gateway()?;
    let found = run(&network, "getent ahostsv6 web.test")?.succeeded()?;
    assert!(found.stdout.contains(SERVER), "{}", found.stdout);
    let missing = run(&network, "getent ahostsv6 missing.test")?;
    assert!(!missing.status.success(), "{}", missing.stdout);
    Ok(())
}

fn curl_opens_a_page_of_an_ipv4_only_host_by_its_name() -> Result<()> {
    let network = gateway()?;
    serve_page(&network, "server", "203.0.113.2", "a page")?;
    let fetch = "curl -sS --max-time 15 -o /dev/null -w '%{http_code} %{remote_ip}' http://web.test/";
    let page = run(&network, fetch)?.succeeded()?;
    assert_eq!(page.stdout, format!("200 {SERVER}"));
    Ok(())
}

fn dig_is_answered_whatever_it_says_of_edns() -> Result<()> {
    let network = gateway()?;
    for way in ["+notcp", "+tcp", "+tcp +keepopen", "+dnssec", "+tcp +dnssec", "+bufsize=512", "+noedns"] {
        let said = run(&network, &format!("dig +short {way} @2001:db8:1::1 web.test AAAA"))?.succeeded()?;
        assert_eq!(said.stdout.trim(), SERVER, "{way}");
    }
    Ok(())
}
