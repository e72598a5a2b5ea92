//! A host finds out that its resolver is available over TLS and HTTPS (RFC 9462). No client that Debian 12 packages does it alone: systemd-resolved
//! does not ask for it, and dig and kdig do so only when told. So the steps are a test's, and each is done by dig, kdig or curl.

use super::SERVER;
use super::secured::Secured;
use crate::Interop;
use crate::dns64_upstreams::message::query;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::name_service::RESOLVER;
use sixway_lab::namespace::command;
use std::time::Duration;

const PROGRAMS: &[&str] = &["sixway", "nsd", "taskset", "openssl", "dig", "kdig", "curl"];

pub const TESTS: &[Interop] = &[
    Interop::new("dig_and_kdig_find_the_designated_resolvers_and_verify_them_by_address", PROGRAMS, verified),
    Interop::new(
        "a_designated_resolver_whose_certificate_lacks_the_address_is_not_believed",
        PROGRAMS,
        unverified,
    ),
];

/// RFC 9462 §4: the name at which a resolver says which ones it designates.
const NAME: &str = "_dns.resolver.arpa";
const DESIGNATED: &str = "designated_name = \"dns.example\"";

impl Secured {
    fn ask(&self, program: &'static str, words: &[&str]) -> Result<String> {
        let mut asking = command(program)?;
        asking.arg(format!("@{RESOLVER}")).args(["+time=5", "+retry=0"]).args(words);
        Ok(self.network.host("client")?.run(asking, Duration::from_secs(20))?.succeeded()?.stdout)
    }

    /// Asks over TLS; the certificate must be valid for the address at which the resolver was asked in the clear (RFC 9462 §4.2).
    fn ask_by_tls(&self, program: &'static str) -> Result<String> {
        let trusted = format!("+tls-ca={}", self.certificate.display());
        let address = format!("+tls-hostname={RESOLVER}");
        self.ask(program, &["+tls", &trusted, &address, "+short", "shop.example", "AAAA"])
    }

    /// The same over HTTPS, with curl: dig 9.18 and kdig 3.2 write an IPv6 address without brackets into `:authority` (RFC 3986 §3.2.2), which is
    /// a malformed request. Returns the response's status and type.
    fn ask_by_https(&self) -> Result<String> {
        let folder = self.network.folder();
        let message = folder.join("query.bin");
        std::fs::write(&message, query(7, "shop.example")).asking(|| "writing a query".to_owned())?;
        let mut curl = command("curl")?;
        curl.args(["-sS", "-g", "--max-time", "5", "--noproxy", "*", "-w", "%{http_code} %{content_type}"]);
        curl.args(["-H", "content-type: application/dns-message"]).arg("-o").arg(folder.join("answer.bin"));
        curl.arg("--cacert")
            .arg(&self.certificate)
            .arg("--data-binary")
            .arg(format!("@{}", message.display()));
        curl.arg(format!("https://[{RESOLVER}]/dns-query"));
        Ok(self.network.host("client")?.run(curl, Duration::from_secs(20))?.succeeded()?.stdout)
    }
}

/// Priority, target and parameters of each record, in order of preference.
fn found(said: &str) -> Vec<Vec<&str>> {
    let mut records: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    records.sort();
    records
}

fn verified() -> Result<()> {
    let secured = Secured::with(DESIGNATED, &format!("DNS:dns.example,IP:{RESOLVER}"))?;
    let said = secured.ask("dig", &["+short", NAME, "SVCB"])?;
    let records = found(&said);
    for (transport, alpn) in [("TLS", "dot"), ("HTTPS", "h2")] {
        let has = |record: &Vec<&str>| {
            let alpns = record.iter().find_map(|word| word.strip_prefix("alpn=")).unwrap_or_default();
            alpns.trim_matches('"').split(',').any(|it| it == alpn) && record.contains(&"dns.example.")
        };
        if !records.iter().any(has) {
            return Err(Failure::Unexpected(format!("no record for {transport}: {said}")));
        }
    }
    assert!(said.contains(&format!("ipv6hint={RESOLVER}")), "where it is: {said}");
    let again = secured.ask("kdig", &["+short", NAME, "TYPE64"])?;
    assert_eq!(again.lines().count(), records.len(), "kdig: {again}");
    for program in ["dig", "kdig"] {
        assert_eq!(secured.ask_by_tls(program)?.trim(), SERVER, "{program}");
    }
    assert_eq!(secured.ask_by_https()?.trim(), "200 application/dns-message");
    Ok(())
}

/// The name alone does not verify a designation: who forges the answer may own the name.
fn unverified() -> Result<()> {
    let secured = Secured::with(DESIGNATED, "DNS:dns.example")?;
    assert!(secured.ask("dig", &["+short", NAME, "SVCB"])?.contains("dns.example."));
    for program in ["dig", "kdig"] {
        let answer = secured.ask_by_tls(program);
        assert!(!answer.is_ok_and(|said| said.contains(SERVER)), "{program} believed it");
    }
    assert!(secured.ask_by_https().is_err(), "curl believed it");
    Ok(())
}
