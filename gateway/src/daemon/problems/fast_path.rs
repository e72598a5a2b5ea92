//! Why packets that could be in the fast path are not.

use crate::view::{ProblemKind, ProblemRow};

/// Why packets that could be in the fast path are not.
pub(in crate::daemon) fn fast_path(
    missing: Option<&str>,
    resting: Option<&str>,
    is_ended: bool,
    left_out: &[String],
) -> Vec<ProblemRow> {
    const KIND: ProblemKind = ProblemKind::FastPath;
    let slow = "the engine forwards all packets, more slowly;";
    let missing = missing.map(|why| {
        ProblemRow::warning(
            KIND,
            format!("there is no fast path: {why}"),
            format!("{slow} resolve this, then restart; or set fastpath.mode = \"off\""),
        )
    });
    let resting = resting.map(|why| {
        ProblemRow::warning(
            KIND,
            format!("the fast path is suspended: {why}"),
            format!("{slow} it resumes when this has changed"),
        )
    });
    let ended = is_ended.then(|| {
        ProblemRow::warning(
            KIND,
            "the fast path was removed",
            format!("{slow} restart the gateway to load it again"),
        )
    });
    let left_out = left_out.iter().map(|line| {
        ProblemRow::warning(
            KIND,
            format!("fast path: {line}"),
            "correct it, or name other interfaces in fastpath.interfaces",
        )
    });
    missing.into_iter().chain(resting).chain(ended).chain(left_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_path_that_rests_has_its_reason() {
        assert_eq!(fast_path(None, None, false, &[]), []);
        let found = fast_path(Some("no BPF"), Some("IPsec policies"), true, &["not eth2: it is gone".into()]);
        let texts: Vec<&str> = found.iter().map(|row| &*row.text).collect();
        assert_eq!(
            texts,
            [
                "there is no fast path: no BPF",
                "the fast path is suspended: IPsec policies",
                "the fast path was removed",
                "fast path: not eth2: it is gone",
            ]
        );
    }
}
