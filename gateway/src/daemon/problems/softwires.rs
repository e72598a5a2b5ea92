//! B4s without an AFTR that answers, and leases that a restart would lose.

use crate::daemon::aftrs::SilentAftr;
use crate::daemon::leases::LeaseFiles;
use crate::daemon::tunnel_view::MissingEnd;
use crate::view::{ProblemKind, ProblemRow};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// B4s with an AFTR that does not answer, and without another one.
pub(in crate::daemon) fn silent_aftrs(all: &[SilentAftr]) -> Vec<ProblemRow> {
    let row = |silent: &SilentAftr| {
        ProblemRow::error(
            ProblemKind::SilentAftr,
            silent.text(),
            "ping 192.0.0.1; check there that `clients` contains this prefix, and that IPv6 packets with next header 4 pass on the way",
        )
    };
    all.iter().map(row).collect()
}

/// B4s that have no prefix or no AFTR. `faults`: why a B4's name has no usable address.
pub(in crate::daemon) fn waiting_b4s(
    b4s: &[(String, MissingEnd)],
    faults: &BTreeMap<String, String>,
) -> Vec<ProblemRow> {
    let row = |(name, missing): &(String, MissingEnd)| {
        let (what, mend) = match missing {
            MissingEnd::Local(interface) => (
                format!("{name}: waiting for an IPv6 prefix on {interface}"),
                format!("check that {interface} gets a global IPv6 address (ip -6 address); it then starts by itself"),
            ),
            MissingEnd::Name(aftr) => (
                match faults.get(name) {
                    // It begins with the name.
                    Some(why) => format!("{name}: the AFTR has no address yet: {why}"),
                    None => format!("{name}: the AFTR {aftr} has no address yet"),
                },
                "check that a name server is reachable over IPv6 and has AAAA records of that name: `sixway doctor` queries them"
                    .into(),
            ),
            MissingEnd::Lease(file) => (
                format!("{name}: no AFTR in {file} yet"),
                "check that the DHCPv6 client requests option 64 and writes it there, or set `aftr`".into(),
            ),
        };
        ProblemRow::error(ProblemKind::AwaitedAddress, what, mend)
    };
    b4s.iter().map(row).collect()
}

/// B4s with a name that has no usable address; they keep the previous address. `in_use`: the AFTRs' addresses.
pub(in crate::daemon) fn unresolved_aftrs(
    faults: &BTreeMap<String, String>,
    in_use: &BTreeMap<String, Ipv6Addr>,
) -> Vec<ProblemRow> {
    let row = |(name, why): (&String, &String)| {
        // Without an address it waits for one, which is another problem.
        let aftr = in_use.get(name)?;
        let text = format!("{name}: {why}; the AFTR {aftr} stays in use");
        let advice = "check that a name server is reachable over IPv6 and has AAAA records of that name: `sixway doctor` queries them";
        Some(ProblemRow::warning(ProblemKind::AwaitedAddress, text, advice))
    };
    faults.iter().filter_map(row).collect()
}

/// Files of leases that cannot be written or read.
pub(in crate::daemon) fn lease_files(all: &[LeaseFiles]) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::LeaseFile;
    let of = |files: &LeaseFiles| {
        let name = &files.mechanism;
        let unwritten = files.unwritten.as_ref().map(|what| {
            let text = format!("{name}: leases would not survive a restart: {what}");
            let advice = "free space there, or correct four_over_six.lease_file and its directory's permissions; it is then written again by itself";
            ProblemRow::error(KIND, text, advice)
        });
        let unread = files.unread.as_ref().map(|what| {
            let text = format!("{name}: new leases of Kea are not known: {what}");
            let advice = "check that Kea runs and writes four_over_six.kea_leases";
            ProblemRow::error(KIND, text, advice)
        });
        [unwritten, unread]
    };
    all.iter().flat_map(of).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::view::Severity;

    #[test]
    fn an_aftr_that_does_not_answer_is_an_error_and_a_name_that_leads_nowhere_has_its_reason() {
        let aftr = "2001:db8:a::1".parse().unwrap();
        let rows =
            silent_aftrs(&[SilentAftr { b4: "ds_lite".into(), aftr, addresses: 1, sent: 31, seconds: 10 }]);
        let text = "ds_lite: the AFTR 2001:db8:a::1 does not answer (31 packets, 10 s)";
        assert_eq!((said(&rows), rows[0].kind.as_str()), (vec![(Severity::Error, text)], "silent_aftr"));
        let several = SilentAftr { b4: "ds_lite".into(), aftr, addresses: 2, sent: 1, seconds: 10 };
        assert!(
            several.text().starts_with("ds_lite: none of the AFTR's 2 addresses answers; 2001:db8:a::1 is")
        );
        let waits = [("ds_lite".into(), MissingEnd::Name("aftr.test".into()))];
        let rows = waiting_b4s(&waits, &BTreeMap::new());
        assert_eq!(rows[0].text, "ds_lite: the AFTR aftr.test has no address yet");
        let why = "aftr.test: the name does not exist (name server 2001:db8::53)".to_owned();
        let rows = waiting_b4s(&waits, &[("ds_lite".to_owned(), why.clone())].into());
        assert_eq!(rows[0].text, format!("ds_lite: the AFTR has no address yet: {why}"));
    }

    #[test]
    fn a_name_that_leads_nowhere_is_a_warning_while_the_previous_aftr_is_in_use() {
        let faults =
            BTreeMap::from([("ds_lite".to_owned(), "aftr.test: the name does not exist".to_owned())]);
        assert_eq!(unresolved_aftrs(&faults, &BTreeMap::new()), []);
        let in_use = BTreeMap::from([("ds_lite".to_owned(), "2001:db8:a::1".parse().unwrap())]);
        let text = "ds_lite: aftr.test: the name does not exist; the AFTR 2001:db8:a::1 stays in use";
        assert_eq!(said(&unresolved_aftrs(&faults, &in_use)), [(Severity::Warning, text)]);
        assert_eq!(unresolved_aftrs(&BTreeMap::new(), &in_use), []);
    }

    #[test]
    fn leases_that_a_restart_would_lose_are_an_error_with_the_file_and_the_reason() {
        let files = LeaseFiles { mechanism: "four_over_six".into(), ..LeaseFiles::default() };
        assert_eq!(lease_files(std::slice::from_ref(&files)), []);
        let full = Some("/var/a.leases: No space left on device".into());
        let rows =
            lease_files(&[LeaseFiles { unwritten: full, unread: Some("/k.csv: gone".into()), ..files }]);
        let texts = [
            "four_over_six: leases would not survive a restart: /var/a.leases: No space left on device",
            "four_over_six: new leases of Kea are not known: /k.csv: gone",
        ];
        assert_eq!(said(&rows), texts.map(|text| (Severity::Error, text)));
    }
}
