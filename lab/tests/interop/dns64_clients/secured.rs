//! DNS over TLS and HTTPS: kdig, and curl that finds names by HTTPS.

use super::{RECORDS, SERVER};
use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::name_service::{RESOLVER, serve};
use sixway_lab::namespace::command;
use sixway_lab::probe::serve_page;
use sixway_lab::topology::{Network, client_gateway_server};
use std::path::PathBuf;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "kdig_is_answered_by_udp_tcp_tls_and_https",
        &["sixway", "nsd", "taskset", "openssl", "kdig"],
        kdig,
    ),
    Interop::new(
        "curl_finds_a_name_by_https_and_opens_its_page",
        &["sixway", "nsd", "taskset", "openssl", "curl", "nginx"],
        curl,
    ),
    Interop::new(
        "an_authority_of_another_name_is_not_believed_by_kdig",
        &["sixway", "nsd", "taskset", "openssl", "kdig"],
        other_name,
    ),
];

const DNS64: &str = r#"
[dns64]
listen = ["2001:db8:1::1"]
special_names = "upstream"
listen_tls = ["2001:db8:1::1"]
listen_https = ["2001:db8:1::1"]
certificate = "CERTIFICATE"
key = "KEY"

[[dns64.upstream]]
address = "203.0.113.2"
"#;

/// A network whose gateway proves to be dns.example and its own address.
pub(super) struct Secured {
    pub(super) network: Network,
    pub(super) certificate: PathBuf,
}

impl Secured {
    fn start() -> Result<Self> {
        Self::with("", &format!("DNS:dns.example,IP:{RESOLVER}"))
    }

    /// With more lines of `[dns64]`, and a certificate for these names and addresses.
    pub(super) fn with(lines: &str, names: &str) -> Result<Self> {
        let network = client_gateway_server()?;
        serve(&network, RECORDS)?;
        let at = |name: &str| network.folder().join(name);
        let (certificate, key) = (at("certificate.pem"), at("key.pem"));
        let mut openssl = command("openssl")?;
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj", "/CN=dns.example", "-addext"]);
        openssl.arg(format!("subjectAltName={names}"));
        openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key);
        network.host("gateway")?.run(openssl, Duration::from_secs(20))?.succeeded()?;
        let sections = DNS64
            .replace("CERTIFICATE", &certificate.display().to_string())
            .replace("KEY", &key.display().to_string())
            .replace("special_names = \"upstream\"", &format!("special_names = \"upstream\"\n{lines}"));
        run_sixway(&network, &format!("{NAT64}{sections}"))?;
        Ok(Self { network, certificate })
    }

    /// What kdig says to a name by some transport.
    fn kdig(&self, name: &str, words: &[&str]) -> Result<String> {
        let mut kdig = command("kdig")?;
        kdig.arg(format!("@{RESOLVER}")).args(["+time=5", "+retry=0"]).args(words);
        if words.iter().any(|word| word.starts_with("+tls") || word.starts_with("+https")) {
            kdig.arg(format!("+tls-ca={}", self.certificate.display()));
        }
        kdig.args([name, "AAAA"]);
        Ok(self.network.host("client")?.run(kdig, Duration::from_secs(20))?.succeeded()?.stdout)
    }
}

fn kdig() -> Result<()> {
    let secured = Secured::start()?;
    let own = "+tls-hostname=dns.example";
    let transports: [&[&str]; 5] = [
        &["+notcp"],
        &["+tcp"],
        &["+tls", own],
        &["+https=/dns-query", own],
        &["+https-get=/dns-query", own, "+https"],
    ];
    for words in transports {
        for (name, expected) in [
            ("shop.example", SERVER.to_owned()),
            ("both.example", "2001:db8:aaaa::1".to_owned()),
            ("alias.example", format!("shop.example.\n{SERVER}")),
        ] {
            let said = secured.kdig(name, &[words, &["+short"]].concat())?;
            assert_eq!(said.trim(), expected, "{name} by {words:?}");
        }
        let missing = secured.kdig("missing.example", words)?;
        assert!(missing.contains("status: NXDOMAIN"), "by {words:?}: {missing}");
    }
    padded(&secured)
}

/// Who pads gets padded answers (RFC 7830, RFC 8467): a multiple of 468 octets.
fn padded(secured: &Secured) -> Result<()> {
    let said = secured.kdig("shop.example", &["+tls", "+tls-hostname=dns.example", "+padding=128"])?;
    let octets: Option<u32> =
        said.split_once("Received ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    match octets {
        Some(octets) if octets % 468 == 0 => Ok(()),
        _ => Err(Failure::Unexpected(format!("a padded answer of {octets:?} octets: {said}"))),
    }
}

fn other_name() -> Result<()> {
    let secured = Secured::start()?;
    let refused = secured.kdig("shop.example", &["+tls", "+tls-hostname=other.example", "+short"]);
    assert!(!refused.is_ok_and(|said| said.contains(SERVER)), "the certificate is for dns.example only");
    Ok(())
}

/// It knows the resolver's address and certificate only; the page's server has IPv4 only.
fn curl() -> Result<()> {
    let secured = Secured::start()?;
    serve_page(&secured.network, "server", "203.0.113.2", "a page")?;
    let mut curl = command("curl")?;
    curl.args(["-sS", "-g", "--max-time", "15", "--noproxy", "*", "-w", " %{http_code} %{remote_ip}"]);
    curl.arg("--doh-url").arg(format!("https://[{RESOLVER}]/dns-query"));
    curl.arg("--cacert").arg(&secured.certificate).arg("http://shop.example/");
    let page = secured.network.host("client")?.run(curl, Duration::from_secs(20))?.succeeded()?;
    assert_eq!(page.stdout, format!("a page 200 {SERVER}"));
    Ok(())
}
