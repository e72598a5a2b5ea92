//! unbound as an upstream over TLS and HTTPS, and upstreams that do not prove who they are.

use super::upstream::{Manner, Upstream};
use super::{PREFIX, RESOLVER};
use crate::Interop;
use sixway_lab::dns64::{Asker, Flags, Reply};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::programs;
use sixway_lab::topology::{Network, client_gateway_server};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("dns64_asks_unbound_by_tls_and_https", &["sixway", "unbound", "openssl"], by_tls_and_https),
    Interop::new(
        "dns64_goes_on_when_unbound_was_started_again",
        &["sixway", "unbound", "openssl"],
        started_again,
    ),
    Interop::new(
        "dns64_believes_no_upstream_that_does_not_prove_its_name",
        &["sixway", "unbound", "openssl"],
        unproven,
    ),
];

const UNBOUND: &str = r#"server:
  interface: 203.0.113.2@853
  interface: 203.0.113.2@443
  tls-port: 853
  https-port: 443
  tls-service-pem: "FOLDER/dns.example.pem"
  tls-service-key: "FOLDER/dns.example.key"
  access-control: 0.0.0.0/0 allow
  username: ""
  chroot: ""
  directory: "FOLDER"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  module-config: "iterator"
  local-zone: "example." static
  local-data: "shop.example. 300 A 203.0.113.2"
  local-data: "both.example. 300 A 203.0.113.2"
  local-data: "both.example. 300 AAAA 2001:db8:aaaa::1"
remote-control:
  control-enable: no
"#;

/// A network with unbound on the host "server", whose certificate is in `dns.example.pem`; and its process.
fn network() -> Result<(Network, u32)> {
    let network = client_gateway_server()?;
    certificate(&network, "dns.example")?;
    let text = UNBOUND.replace("FOLDER", &network.folder().display().to_string());
    network.file("unbound.conf", &text)?;
    // A copy: where AppArmor is, its profile is bound to the path and allows it no files here.
    let copy = network.folder().join("unbound");
    std::fs::copy(programs::require("unbound")?, &copy).asking(|| "copying unbound".to_owned())?;
    let process = start_unbound(&network)?;
    Ok((network, process))
}

fn start_unbound(network: &Network) -> Result<u32> {
    let mut unbound = Command::new(network.folder().join("unbound"));
    unbound.arg("-d").arg("-c").arg(network.folder().join("unbound.conf"));
    let process = network.start("server", unbound)?;
    let server = network.host("server")?;
    interrupt::wait_until(Duration::from_secs(10), "unbound listening", || {
        network.with_process(process, |process| process.must_run())??;
        server.enter(|| TcpStream::connect("203.0.113.2:443").is_ok())
    })?;
    Ok(process)
}

/// Makes `NAME.pem` and `NAME.key`.
fn certificate(network: &Network, name: &str) -> Result<PathBuf> {
    let at = |ending: &str| network.folder().join(format!("{name}.{ending}"));
    let mut openssl = command("openssl")?;
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-days", "2", "-subj", &format!("/CN={name}"), "-addext"]);
    openssl.arg(format!("subjectAltName=DNS:{name}"));
    // It is an authority only for itself; what says that it is one is refused as a server's.
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.arg("-out").arg(at("pem")).arg("-keyout").arg(at("key"));
    network.host("server")?.run(openssl, Duration::from_secs(20))?.succeeded()?;
    Ok(at("pem"))
}

fn run(network: &Network, upstream: &str) -> Result<u32> {
    let configuration = format!(
        "[gateway]\n[dns64]\nlisten = [\"{RESOLVER}\"]\nprefix = \"{PREFIX}\"\ntranslated_elsewhere = true\nspecial_names = \"upstream\"\n\
         [[dns64.upstream]]\n{upstream}\n"
    );
    run_sixway(network, &configuration)
}

fn asker(network: &Network) -> Result<Asker> {
    let resolver: Ipv6Addr = RESOLVER.parse().unwrap_or(Ipv6Addr::LOCALHOST);
    Asker::open(network.host("client")?, SocketAddr::new(resolver.into(), 53))
}

/// What is said to a name's AAAA question by a DNS64 before this upstream.
fn said(network: &Network, upstream: &str, name: &str) -> Result<Reply> {
    let process = run(network, upstream)?;
    let said = asker(network)?.ask(name, "AAAA", Flags::NONE);
    network.with_process(process, |process| process.stop())?;
    said
}

fn by_tls_and_https() -> Result<()> {
    let (network, _) = network()?;
    let ca = network.folder().join("dns.example.pem");
    for transport in ["tls", "https"] {
        let upstream = format!(
            "address = \"203.0.113.2\"\ntransport = \"{transport}\"\nname = \"dns.example\"\nca = \"{}\"",
            ca.display()
        );
        for (name, expected) in [
            ("shop.example", &["2001:db8:64::cb00:7102"][..]),
            ("both.example", &["2001:db8:aaaa::1"]),
            ("missing.example", &[]),
        ] {
            let reply = said(&network, &upstream, name)?;
            assert_eq!(reply.data("AAAA"), expected, "{name} by {transport}: {reply:?}");
        }
    }
    Ok(())
}

/// Connections and TLS sessions are gone with it.
fn started_again() -> Result<()> {
    for transport in ["tls", "https"] {
        let (network, unbound) = network()?;
        let ca = network.folder().join("dns.example.pem");
        run(
            &network,
            &format!(
                "address = \"203.0.113.2\"\ntransport = \"{transport}\"\nname = \"dns.example\"\nca = \"{}\"",
                ca.display()
            ),
        )?;
        let asker = asker(&network)?;
        assert_eq!(asker.ask("shop.example", "AAAA", Flags::NONE)?.rcode, "NOERROR");
        network.with_process(unbound, |process| process.kill())?;
        assert_eq!(asker.ask("gone.example", "AAAA", Flags::NONE)?.rcode, "SERVFAIL", "by {transport}");
        assert_eq!(asker.ask("shop.example", "AAAA", Flags::NONE)?.rcode, "NOERROR", "from the cache");
        start_unbound(&network)?;
        let mut number = 0;
        interrupt::wait_until(Duration::from_secs(15), "an answer again", || {
            number += 1;
            std::thread::sleep(Duration::from_millis(100));
            Ok(asker.ask(&format!("new-{number}.example"), "AAAA", Flags::NONE)?.rcode == "NXDOMAIN")
        })?;
    }
    Ok(())
}

/// Another name, another authority, and plain TCP where TLS should be.
fn unproven() -> Result<()> {
    let (network, _) = network()?;
    let (own, other) = (network.folder().join("dns.example.pem"), certificate(&network, "other.example")?);
    network.address("server", "up0", "203.0.113.20/24")?;
    let _plain = Upstream::start(network.host("server")?, "203.0.113.20", Manner::Honest)?;
    for (address, name, ca) in [
        ("203.0.113.2", "other.example", &own),
        ("203.0.113.2", "dns.example", &other),
        ("203.0.113.20:53", "dns.example", &own),
    ] {
        for transport in ["tls", "https"] {
            let port = if transport == "tls" || address.contains(':') { "" } else { ":443" };
            let upstream = format!(
                "address = \"{address}{port}\"\ntransport = \"{transport}\"\nname = \"{name}\"\nca = \"{}\"",
                ca.display()
            );
            let start = Instant::now();
            let reply = said(&network, &upstream, "shop.example")?;
            let took = start.elapsed();
            if reply.rcode != "SERVFAIL" || !reply.answer.is_empty() || took > Duration::from_secs(7) {
                return Err(Failure::Unexpected(format!("{upstream}: {reply:?} after {took:?}")));
            }
        }
    }
    Ok(())
}
