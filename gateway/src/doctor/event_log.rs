//! Whether the files of the event log can be opened.

use super::finding::Finding;
use crate::config::Config;
use crate::event_log::faults_of;

const CHECK: &str = "event log";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if config.event_log.is_none() {
        return Vec::new();
    }
    let faults = faults_of(config);
    if faults.is_empty() {
        return vec![Finding::fine(CHECK, "its files can be opened")];
    }
    let cure = "correct it; the gateway starts without it, retries every second, and counts lost events";
    faults.into_iter().map(|fault| Finding::warning(CHECK, fault, cure)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_a_warning() {
        let directory = std::env::temp_dir().join(format!("sixway-doctor-log-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("events.jsonl");
        let config = crate::sample::config(&format!(
            "[gateway]\nipv4_address = \"198.51.100.1\"\nipv6_address = \"2001:db8::fe\"\n\
             [[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/30\"]\n\
             [nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n[log]\n[log.file]\npath = {path:?}\n"
        ));
        let verdicts = |config: &Config| check(config).iter().map(|found| found.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&config), [Verdict::Fine]);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(verdicts(&config), [Verdict::Warning]);
        assert!(check(&config)[0].what.starts_with("log.file: "));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
