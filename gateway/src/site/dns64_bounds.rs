//! Limits of a site's DNS64, if the process may open few files.

use std::fmt::Write as _;

/// The DNS64's defaults: queries to upstreams, each of which may need two files, and connections of clients.
const QUESTIONS: u64 = 8_192;
const CONNECTIONS: u64 = 4_096;
/// The least of each.
const LEAST_QUESTIONS: u64 = 64;
const LEAST_CONNECTIONS: u64 = 16;
/// Files of the rest of the gateway.
const OTHERS: u64 = 512;

/// The keys of `[dns64]`, for a process that may open this number of files; empty if the defaults fit.
pub(super) fn written(descriptors: Option<u64>) -> String {
    let Some(files) = descriptors.filter(|files| *files < 2 * QUESTIONS + CONNECTIONS + OTHERS) else {
        return String::new();
    };
    let room = files.saturating_sub(OTHERS);
    let connections = (room / 5).clamp(LEAST_CONNECTIONS, CONNECTIONS);
    let questions = (room.saturating_sub(connections) / 2).clamp(LEAST_QUESTIONS, QUESTIONS);
    let mut text = String::new();
    let why = format!("as this process may open {files} files");
    let _ = writeln!(text, "upstream_queries = {questions} # {why}\nconnections = {connections}");
    text
}

#[cfg(test)]
mod tests {
    use super::super::plan::Site;
    use super::super::plan::tests::{facts, options};
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    #[test]
    fn bounds_fit_the_files_that_the_process_may_open_and_nothing_is_warned_of() {
        for (files, is_written) in [
            (None, false),
            (Some(1_048_576), false),
            (Some(20_992), false),
            (Some(20_000), true),
            (Some(1_024), true),
        ] {
            let mut facts = facts();
            // A global one, so that the well-known prefix may represent it.
            facts.host.addresses[1].address = "5.6.7.8".parse().unwrap();
            facts.host.resolvers = vec!["192.0.2.53:53".parse().unwrap()];
            facts.host.descriptors = files;
            let text = Site::plan(&options(), &facts).unwrap().configuration();
            assert_eq!(text.contains("upstream_queries"), is_written, "{text}");
            let mut none = |_: &Path| Err(std::io::Error::other("no files"));
            let (_, warnings) = Config::parse("site.toml", &text, &facts.host, &mut none).unwrap();
            assert_eq!(
                warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
                [""; 0],
                "{files:?}\n{text}"
            );
        }
        assert_eq!(
            written(Some(0)),
            "upstream_queries = 64 # as this process may open 0 files\nconnections = 16\n"
        );
    }
}
