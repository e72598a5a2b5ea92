//! The AFTRs of B4s: the addresses of their names, resolved as by the B4, and whether they answer through the running gateway.

use super::finding::Finding;
use crate::aftr::{answers, resolve};
use crate::config::{AftrAt, B4, Config};
use crate::lease_text;
use sixway_control::b4::aftr_in;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const CHECK: &str = "aftr";

/// Where the AFTR of each B4 is, or why that is not known.
#[derive(Debug)]
pub(super) struct AftrEnds(Vec<(String, End)>);

/// An AFTR.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// Its address is written.
    Written(Ipv6Addr),
    /// A name leads to these.
    Named(String, Vec<Ipv6Addr>),
    /// The name has no usable address.
    Nowhere(String, String),
    /// There is no name.
    Unknown(String),
}

impl AftrEnds {
    /// Asks for all names.
    pub(super) fn ask(config: &Config) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let end = |b4: &B4| match (at(b4), &runtime) {
            (Err(why), _) => End::Unknown(why),
            (Ok(AftrAt::Address(address)), _) => End::Written(address),
            (Ok(AftrAt::Name(name)), Err(error)) => End::Nowhere(name, error.to_string()),
            (Ok(AftrAt::Name(name)), Ok(runtime)) => match runtime.block_on(resolve(&name, b4)) {
                Ok(found) => End::Named(name, found.addresses),
                Err(why) => End::Nowhere(name, why),
            },
        };
        Self(config.b4s().map(|b4| (b4.name.clone(), end(b4))).collect())
    }

    /// The first address of each.
    pub(super) fn known(&self) -> BTreeMap<String, Ipv6Addr> {
        self.0.iter().filter_map(|(name, end)| Some((name.clone(), end.address()?))).collect()
    }

    /// What is wrong with them.
    pub(super) fn check(&self, config: &Config, is_running: bool) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.0.iter().filter_map(|(name, end)| end.found(name)).collect();
        for b4 in config.b4s().filter(|_| is_running) {
            let Some(aftr) = self.known().get(&b4.name).copied() else { continue };
            let answer = answers(b4.ipv4_address, &config.tun.name.clone().into());
            findings.push(answered(&b4.name, aftr, answer.map_err(|error| error.to_string())));
        }
        findings
    }
}

/// What the B4 uses: the AFTR of its lease, or else the configured one.
fn at(b4: &B4) -> Result<AftrAt, String> {
    let Some(path) = &b4.aftr_lease_file else {
        return b4.aftr.clone().ok_or_else(|| "ds_lite.aftr is missing".to_owned());
    };
    let of_lease = match lease_text::read(path) {
        Ok(text) => aftr_in(&text)
            .and_then(|name| AftrAt::parse(&name))
            .ok_or("no AFTR name (DHCPv6 option 64)".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    of_lease.or_else(|why| b4.aftr.clone().ok_or_else(|| format!("{}: {why}", path.display())))
}

impl End {
    fn address(&self) -> Option<Ipv6Addr> {
        match self {
            Self::Written(address) => Some(*address),
            Self::Named(_, addresses) => addresses.first().copied(),
            Self::Nowhere(..) | Self::Unknown(_) => None,
        }
    }

    fn found(&self, b4: &str) -> Option<Finding> {
        match self {
            Self::Written(_) => None,
            Self::Named(name, addresses) => {
                let all = addresses.iter().map(Ipv6Addr::to_string).collect::<Vec<_>>().join(", ");
                Some(Finding::fine(CHECK, format!("{b4}: the AFTR {name} is {all}")))
            }
            Self::Nowhere(name, why) => Some(Finding::fault(
                CHECK,
                format!("{b4}: the AFTR {name} has no address: {why}"),
                "check that a name server is reachable over IPv6 and has AAAA records of that name; or set ds_lite.name_servers, or ds_lite.aftr to an address",
            )),
            Self::Unknown(why) => Some(Finding::fault(
                CHECK,
                format!("{b4}: no AFTR is known: {why}"),
                "configure the DHCPv6 client to request option 64 and write its lease there, or set ds_lite.aftr",
            )),
        }
    }
}

/// The result of an echo request through the running gateway.
fn answered(b4: &str, aftr: Ipv6Addr, answer: Result<bool, String>) -> Finding {
    match answer {
        Ok(true) => Finding::fine(CHECK, format!("{b4}: the AFTR {aftr} answers at 192.0.0.1")),
        Ok(false) => Finding::warning(
            CHECK,
            format!("{b4}: the AFTR {aftr} does not answer an echo request to 192.0.0.1"),
            "check there that `clients` contains this prefix, and that IPv6 packets with next header 4 pass on the way; some AFTRs never answer it",
        ),
        Err(why) => Finding::not_checked(CHECK, format!("{b4}: whether the AFTR {aftr} answers: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn config(keys: &str) -> Config {
        crate::sample::config(&format!("[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:b4::1\"\n{keys}\n"))
    }

    #[test]
    fn a_name_that_leads_nowhere_is_a_fault_with_the_reason_that_the_b4_logs() {
        // Nobody answers there.
        let named = config("aftr = \"aftr.example\"\nname_servers = [\"::1\"]");
        let asked = AftrEnds::ask(&named);
        let findings = asked.check(&named, false);
        assert_eq!((findings.len(), findings[0].verdict), (1, Verdict::Fault), "{findings:?}");
        assert!(
            findings[0].what.starts_with("ds_lite: the AFTR aftr.example has no address: "),
            "{findings:?}"
        );
        assert!(findings[0].what.ends_with("(name server ::1)"), "{findings:?}");
        assert!(asked.known().is_empty());
    }

    #[test]
    fn where_a_name_leads_is_said_and_the_first_address_is_known() {
        let addresses = ["2001:db8:a::1", "2001:db8:a::2"].map(|it| it.parse().unwrap());
        let end = End::Named("aftr.example".into(), addresses.to_vec());
        let said = end.found("b4").unwrap();
        assert_eq!(said, Finding::fine(CHECK, "b4: the AFTR aftr.example is 2001:db8:a::1, 2001:db8:a::2"));
        assert_eq!(AftrEnds(vec![("b4".into(), end)]).known(), [("b4".to_owned(), addresses[0])].into());
        let written = config("aftr = \"2001:db8:a::1\"");
        let asked = AftrEnds::ask(&written);
        assert_eq!((asked.check(&written, false), asked.known().len()), (Vec::new(), 1));
    }

    #[test]
    fn a_lease_without_an_aftr_is_a_fault_with_its_file() {
        let path = std::env::temp_dir().join(format!("sixway-doctor-64-{}", std::process::id()));
        let leased = config(&format!("aftr_lease_file = {path:?}"));
        let said = || AftrEnds::ask(&leased).check(&leased, false).remove(0);
        assert!(said().what.starts_with("ds_lite: no AFTR is known: /"), "{:?}", said());
        std::fs::write(&path, "reason=BOUND6\n").unwrap();
        assert!(said().what.ends_with("no AFTR name (DHCPv6 option 64)"), "{:?}", said());
        std::fs::write(&path, "2001:db8:a::1\n").unwrap();
        assert_eq!(AftrEnds::ask(&leased).known().len(), 1);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_aftr_that_answers_no_echo_request_is_a_warning() {
        let aftr = "2001:db8:a::1".parse().unwrap();
        assert_eq!(answered("b4", aftr, Ok(true)).verdict, Verdict::Fine);
        let silent = answered("b4", aftr, Ok(false));
        assert_eq!(silent.verdict, Verdict::Warning);
        assert_eq!(silent.what, "b4: the AFTR 2001:db8:a::1 does not answer an echo request to 192.0.0.1");
        assert_eq!(answered("b4", aftr, Err("EPERM".into())).verdict, Verdict::NotChecked);
    }
}
