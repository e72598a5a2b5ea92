//! Data stored about a failed cell: the state of its hosts and, in the second attempt, captures of their links.

use crate::namespace::command;
use crate::process::Process;
use crate::topology::namespaces_of_this_process;
use std::path::{Path, PathBuf};

/// Packets of a capture at most, and octets of each.
const PACKETS: &str = "5000";
const OCTETS: &str = "160";

/// What is asked of each host.
const QUESTIONS: [&[&str]; 4] = [
    &["-s", "-d", "link", "show"],
    &["address", "show"],
    &["-4", "route", "show", "table", "all"],
    &["-6", "route", "show", "table", "all"],
];

/// Captures of all links of this process's networks.
pub(super) struct Captures {
    running: Vec<(Process, PathBuf)>,
}

impl Captures {
    /// Begins; a host on which that fails has none, for it must not hide the failure that is looked for.
    pub(super) fn start(folder: &Path) -> Self {
        let begin = |name: String| {
            let file = folder.join(format!("{name}.pcap"));
            let mut capture = command("ip").ok()?;
            capture.args(["netns", "exec", &name]).arg(command("tcpdump").ok()?.get_program());
            capture
                .args(["-i", "any", "-U", "-n", "-c", PACKETS, "-s", OCTETS, "-Z", "root", "-w"])
                .arg(&file);
            Some((Process::start(capture, &folder.join(format!("{name}.tcpdump"))).ok()?, file))
        };
        Self { running: namespaces_of_this_process().into_iter().filter_map(begin).collect() }
    }

    /// Ends them; the names of the files, or none if they are not `wanted`.
    pub(super) fn end(self, wanted: bool) -> Vec<String> {
        let end = |(mut process, file): (Process, PathBuf)| {
            process.stop();
            drop(process);
            for log in ["tcpdump", "err"] {
                std::fs::remove_file(file.with_extension(log)).ok();
            }
            if !wanted {
                std::fs::remove_file(&file).ok();
                return None;
            }
            file.is_file().then(|| file.file_name()?.to_str().map(str::to_owned)).flatten()
        };
        self.running.into_iter().filter_map(end).collect()
    }
}

/// Writes links with their counters, addresses and routes of all hosts to a file; its name, if it could be written.
pub(super) fn state(folder: &Path) -> Option<String> {
    let mut text = String::new();
    for name in namespaces_of_this_process() {
        for words in QUESTIONS {
            let mut ask = command("ip").ok()?;
            ask.args(["-n", &name]).args(words);
            let said = ask.output().map(|output| output.stdout).unwrap_or_default();
            text += &format!("# ip -n {name} {}\n{}\n", words.join(" "), String::from_utf8_lossy(&said));
        }
    }
    let name = "failed.txt";
    std::fs::write(folder.join(name), text).ok().map(|()| name.to_owned())
}
