//! What keeps the PCP server from its clients.

use crate::view::{PcpRow, ProblemKind, ProblemRow};

/// What keeps the PCP server from its clients.
pub(in crate::daemon) fn pcp(row: &PcpRow) -> Vec<ProblemRow> {
    let problem = |what: &String| {
        let advice = "hosts get no mapping meanwhile, and those that exist stay; `sixway show pcp` has more";
        ProblemRow::error(ProblemKind::Pcp, format!("pcp: {what}"), advice)
    };
    row.waits.iter().map(problem).collect()
}
