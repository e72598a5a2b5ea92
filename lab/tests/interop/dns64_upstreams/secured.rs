//! unbound as an upstream over TLS and HTTPS, and upstreams that do not prove who they are.

use super::upstream::{Manner, Upstream};
use super::{PREFIX, RESOLVER};
use crate::Interop;
use sixway_lab::dns64::{Asker, Flags, Reply};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::run_sixway;
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

/// A network with unbound on the host "server", whose certificate is in `dns.example.pem`.
fn network() -> Result<Network> {
    let network = client_gateway_server()?;
    certificate(&network, "dns.example")?;
    let text = UNBOUND.replace("FOLDER", &network.folder().display().to_string());
    let file = network.file("unbound.conf", &text)?;
    // A copy: where AppArmor is, its profile is bound to the path and allows it no files here.
    let copy = network.folder().join("unbound");
    std::fs::copy(programs::require("unbound")?, &copy).asking(|| "copying unbound".to_owned())?;
    let mut unbound = Command::new(copy);
    unbound.arg("-d").arg("-c").arg(file);
    let process = network.start("server", unbound)?;
    let server = network.host("server")?;
    interrupt::wait_until(Duration::from_secs(10), "unbound listening", || {
        network.with_process(process, |process| process.must_run())??;
        server.enter(|| TcpStream::connect("203.0.113.2:443").is_ok())
    })?;
    Ok(network)
}

/// Makes `NAME.pem` and `NAME.key`.
fn certificate(network: &Network, name: &str) -> Result<PathBuf> {
    let at = |ending: &str| network.folder().join(format!("{name}.{ending}"));
    let mut openssl = command("openssl")?;
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-days", "2", "-subj", &format!("/CN={name}"), "-addext"]);
    openssl.arg(format!("subjectAltName=DNS:{name}"));
    // It is no authority but for itself; what says that it is one is refused as a server's.
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.arg("-out").arg(at("pem")).arg("-keyout").arg(at("key"));
    network.host("server")?.run(openssl, Duration::from_secs(20))?.succeeded()?;
    Ok(at("pem"))
}

/// What is said to a name's AAAA question by a DNS64 before this upstream.
fn said(network: &Network, upstream: &str, name: &str) -> Result<Reply> {
    let configuration = format!(
        "[gateway]\n[dns64]\nlisten = [\"{RESOLVER}\"]\nprefix = \"{PREFIX}\"\ntranslated_elsewhere = true\n\
         [[dns64.upstream]]\n{upstream}\n"
    );
    let process = run_sixway(network, &configuration)?;
    let resolver: Ipv6Addr = RESOLVER.parse().unwrap_or(Ipv6Addr::LOCALHOST);
    let asker = Asker::open(network.host("client")?, SocketAddr::new(resolver.into(), 53))?;
    let said = asker.ask(name, "AAAA", Flags::NONE);
    network.with_process(process, |process| process.stop())?;
    said
}

fn by_tls_and_https() -> Result<()> {
    let network = network()?;
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

/// Another name, another authority, and nothing but TCP where TLS should be.
fn unproven() -> Result<()> {
    let network = network()?;
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
