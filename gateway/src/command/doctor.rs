//! `sixway doctor`.

use super::failure::Failure;
use super::output::say;
use crate::config::Config;
use crate::doctor::{self, Finding, Verdict};
use crate::show::plural;

/// Examines the host, and prints trouble first. Faults are a failure.
pub(super) fn run(config: &Config, json: bool) -> Result<(), Failure> {
    let mut findings = doctor::examine(config);
    findings.sort_by_key(|finding| finding.verdict);
    if json {
        let text =
            serde_json::to_string_pretty(&findings).map_err(|error| Failure::Failed(error.to_string()))?;
        say(&text);
    } else {
        let fine = findings.iter().filter(|finding| finding.verdict == Verdict::Fine).count();
        findings.iter().for_each(|finding| say(&line(finding)));
        say(&format!("{fine} of {} are ok.", plural(findings.len() as u64, "finding")));
        let drops =
            |finding: &Finding| finding.check == doctor::PACKET_FILTER && finding.verdict == Verdict::Fault;
        if findings.iter().any(drops) {
            say(
                "After a rule of the packet filter was added, run this again: a chain behind it may drop, too.",
            );
        }
    }
    let faults = findings.iter().filter(|finding| finding.verdict == Verdict::Fault).count();
    match faults {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 fault. Nothing was changed.".into())),
        more => Err(Failure::Failed(format!("{more} faults. Nothing was changed."))),
    }
}

/// All findings, trouble first.
pub(super) fn text(config: &Config) -> String {
    let mut findings = doctor::examine(config);
    findings.sort_by_key(|finding| finding.verdict);
    findings.iter().map(|finding| line(finding) + "\n").collect()
}

fn line(finding: &Finding) -> String {
    let verdict = match finding.verdict {
        Verdict::Fault => "FAULT",
        Verdict::Warning => "warning",
        Verdict::NotChecked => "not checked",
        Verdict::Fine => "ok",
    };
    let cure = finding.cure.as_ref().map_or_else(String::new, |cure| format!("\n             → {cure}"));
    format!("{verdict:<11}  {}: {}{cure}", finding.check, finding.what)
}
