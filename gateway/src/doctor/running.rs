//! Data about leases from the running gateway: only it knows how long no server has answered.

use super::finding::Finding;
use crate::admin::Client;
use crate::config::Config;
use crate::view::{ProblemKind, ProblemRow, Severity, Status};

const CHECK: &str = "leases";
/// The problems that concern leases.
const OF_LEASES: [ProblemKind; 2] = [ProblemKind::Lease, ProblemKind::LeaseFile];

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if config.others.four_over_six.is_empty() {
        return Vec::new();
    }
    let status = Client::new(&config.gateway.admin_socket).get::<Status>("/v1/status", &[]);
    let problems = status.ok().filter(|status| status.name == config.gateway.name).map(|it| it.problems);
    findings(&problems.unwrap_or_default())
}

fn findings(problems: &[ProblemRow]) -> Vec<Finding> {
    let of_leases = |row: &&ProblemRow| OF_LEASES.iter().any(|kind| kind.name() == row.kind);
    let finding = |row: &ProblemRow| match row.severity {
        Severity::Error => Finding::fault(CHECK, &row.text, &row.advice),
        Severity::Warning => Finding::warning(CHECK, &row.text, &row.advice),
    };
    problems.iter().filter(of_leases).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn what_the_running_gateway_says_of_leases_is_repeated_and_nothing_else() {
        let rows = [
            ProblemRow::error(ProblemKind::Lease, "no answer", "ask"),
            ProblemRow::warning(ProblemKind::LeaseFile, "full", "make room"),
            ProblemRow::error(ProblemKind::Sessions, "full", "raise it"),
        ];
        let found = findings(&rows);
        assert_eq!(found.iter().map(|it| it.verdict).collect::<Vec<_>>(), [Verdict::Fault, Verdict::Warning]);
        assert_eq!((found[0].what.as_str(), found[0].cure.as_deref()), ("no answer", Some("ask")));
    }
}
