//! Problems with leases for the operator: why a host has no lease, or no packets pass with it, and what a concentrator refuses.

use crate::show::{count, plural};
use crate::view::{ProblemKind, ProblemRow};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Trouble of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::daemon) struct LeaseTrouble {
    /// Its owner.
    pub(super) mechanism: String,
    /// What it is.
    pub(super) why: NoLease,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoLease {
    /// No server is known.
    NoServer,
    /// Servers were queried, and none has answered for this time; the current lease ends if this continues.
    NoAnswer {
        /// What is held.
        held: Option<Ipv4Addr>,
        /// The servers that were queried.
        servers: Vec<Ipv6Addr>,
        /// How long none has answered.
        seconds: u64,
    },
    /// The server has bound the lease to a tunnel end other than `local`.
    BoundElsewhere {
        /// The address.
        ipv4: Ipv4Addr,
        /// To what it is bound.
        end: Ipv6Addr,
        /// This end.
        local: Ipv6Addr,
    },
    /// A concentrator refuses queries of hosts that are not its clients.
    Strangers {
        /// Queries of senders outside `clients`, within the last two minutes.
        not_clients: u64,
        /// Messages of relay agents outside `relays`.
        not_relays: u64,
    },
}

/// A number of queries in words.
pub(super) fn queries(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "query" } else { "queries" })
}

impl NoLease {
    /// Whether an answer is still expected.
    pub(super) const fn is_silence(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }
}

impl LeaseTrouble {
    /// In words.
    pub(super) fn text(&self) -> String {
        let name = &self.mechanism;
        match &self.why {
            NoLease::NoServer => format!("{name}: no lease: no DHCP 4o6 server is known"),
            NoLease::NoAnswer { held, servers, seconds } => {
                let from = servers.iter().map(Ipv6Addr::to_string).collect::<Vec<_>>().join(", ");
                let what = held.map_or_else(
                    || "no lease".to_owned(),
                    |ipv4| format!("the lease of {ipv4} is not renewed"),
                );
                format!("{name}: {what}: no answer from {from} for {seconds} s")
            }
            NoLease::BoundElsewhere { ipv4, end, local } => {
                format!(
                    "{name}: the server has bound {ipv4} to {end}, not to local {local}: no packet passes"
                )
            }
            NoLease::Strangers { not_clients, not_relays: 0 } => {
                let queries = queries(*not_clients);
                format!("{name}: {queries} of senders outside clients refused within two minutes")
            }
            NoLease::Strangers { not_clients, not_relays } => {
                let messages = plural(*not_relays, "message");
                let others = if *not_clients == 0 {
                    String::new()
                } else {
                    format!(", and {} of senders outside clients", queries(*not_clients))
                };
                format!(
                    "{name}: {messages} of relay agents outside relays{others} refused within two minutes"
                )
            }
        }
    }

    /// As a row of `sixway show`.
    pub(in crate::daemon) fn problem(&self) -> ProblemRow {
        const KIND: ProblemKind = ProblemKind::Lease;
        let text = self.text();
        match &self.why {
            NoLease::NoServer => ProblemRow::error(
                KIND,
                text,
                "configure the DHCPv6 client to request option 88 and write its lease to four_over_six.server_lease_file",
            ),
            NoLease::NoAnswer { held: None, .. } => ProblemRow::error(
                KIND,
                text,
                "check there that UDP 547 is open and that clients contains this host; `sixway doctor` at both ends",
            ),
            NoLease::NoAnswer { held: Some(_), .. } => ProblemRow::warning(
                KIND,
                text,
                "check there that it runs and that UDP 547 is open; `sixway doctor` at both ends",
            ),
            NoLease::BoundElsewhere { .. } => ProblemRow::error(
                KIND,
                text,
                "set four_over_six.local to an address with the same client prefix as the address that queries leave from",
            ),
            NoLease::Strangers { .. } => ProblemRow::warning(
                KIND,
                text,
                "if they are yours, correct four_over_six.clients or four_over_six.relays; log = \"debug\" names them",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Severity;

    fn row(why: NoLease) -> ProblemRow {
        LeaseTrouble { mechanism: "four_over_six".into(), why }.problem()
    }

    #[test]
    fn why_a_host_has_no_lease_is_an_error_with_who_was_asked_and_for_how_long() {
        let asked = |held| {
            let servers = vec!["2001:db8::547".parse().unwrap(), "ff02::1:2".parse().unwrap()];
            row(NoLease::NoAnswer { held, servers, seconds: 40 })
        };
        let none = asked(None);
        assert_eq!(none.text, "four_over_six: no lease: no answer from 2001:db8::547, ff02::1:2 for 40 s");
        assert_eq!((none.severity, none.kind.as_str()), (Severity::Error, "lease"));
        let held = asked(Some(Ipv4Addr::new(192, 0, 2, 7)));
        assert!(held.text.contains("the lease of 192.0.2.7 is not renewed: no answer"), "{held:?}");
        assert_eq!(held.severity, Severity::Warning, "it may still be answered");
        assert!(row(NoLease::NoServer).text.ends_with("no DHCP 4o6 server is known"));
    }

    #[test]
    fn a_lease_that_is_bound_elsewhere_names_both_ends() {
        let ends = ["2001:db8:b::2", "2001:db8:c::1"].map(|end| end.parse().unwrap());
        let ipv4 = Ipv4Addr::new(192, 0, 2, 7);
        let found = row(NoLease::BoundElsewhere { ipv4, end: ends[0], local: ends[1] });
        let text = "four_over_six: the server has bound 192.0.2.7 to 2001:db8:b::2, not to local 2001:db8:c::1: no packet passes";
        assert_eq!((found.severity, found.text.as_str()), (Severity::Error, text));
    }

    #[test]
    fn what_a_concentrator_refuses_is_a_warning_with_the_key_that_is_to_be_corrected() {
        let said = |not_clients, not_relays| row(NoLease::Strangers { not_clients, not_relays });
        let text = "four_over_six: 3 queries of senders outside clients refused within two minutes";
        assert_eq!((said(3, 0).severity, said(3, 0).text.as_str()), (Severity::Warning, text));
        let text = "four_over_six: 1 message of relay agents outside relays refused within two minutes";
        assert_eq!(said(0, 1).text, text);
        assert!(said(2, 1).text.contains("outside relays, and 2 queries of senders outside clients refused"));
        assert!(said(1, 0).advice.contains("four_over_six.clients"));
    }
}
