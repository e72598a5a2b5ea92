//! Data stored about a failed cell: the state of hosts, and captures of their links.

use crate::namespace::command;
use crate::process::Process;
use std::path::{Path, PathBuf};

/// Packets of a capture at most, and octets of each.
const PACKETS: &str = "5000";
const OCTETS: &str = "160";

/// What is asked of each host: a program, and its words after the host's name.
const QUESTIONS: [(&str, &str); 7] = [
    ("ip -n", "-s -d link show"),
    ("ip -n", "address show"),
    ("ip -n", "-4 route show table all"),
    ("ip -n", "-6 route show table all"),
    ("ip -n", "-4 rule show"),
    ("ip -n", "-6 rule show"),
    ("ss -N", "-a -n -p"),
];

/// A capture of all links of a host.
pub(super) struct Capture {
    process: Option<Process>,
    file: PathBuf,
}

impl Capture {
    /// Begins; `None` if that fails, for it must not hide the failure that is looked for.
    pub(super) fn start(folder: &Path, host: &str) -> Option<Self> {
        let file = folder.join(format!("{host}.pcap"));
        let mut capture = command("ip").ok()?;
        capture.args(["netns", "exec", host]).arg(command("tcpdump").ok()?.get_program());
        capture.args(["-i", "any", "-U", "--immediate-mode", "-n", "-c", PACKETS, "-s", OCTETS]);
        capture.args(["-Z", "root", "-w"]).arg(&file);
        let process = Process::start(capture, &folder.join(format!("{host}.tcpdump"))).ok()?;
        Some(Self { process: Some(process), file })
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.stop();
        drop(process);
        for log in ["tcpdump", "err"] {
            std::fs::remove_file(self.file.with_extension(log)).ok();
        }
    }

    /// Ends it and removes its file.
    pub(super) fn remove(mut self) {
        self.stop();
        std::fs::remove_file(&self.file).ok();
    }

    /// Ends it; the file's name.
    pub(super) fn keep(mut self) -> Option<String> {
        self.stop();
        self.file.is_file().then(|| self.file.file_name()?.to_str().map(str::to_owned)).flatten()
    }
}

/// Links with their counters, addresses, routes, rules and sockets of these namespaces.
pub(super) fn state(namespaces: &[String]) -> String {
    let mut text = String::new();
    for name in namespaces {
        for (program, words) in QUESTIONS {
            let (program, option) = program.split_once(' ').unwrap_or((program, ""));
            let Ok(mut ask) = command(program) else { continue };
            ask.args([option, name]).args(words.split_whitespace());
            let said = ask.output().map(|output| output.stdout).unwrap_or_default();
            text += &format!("# {program} {option} {name} {words}\n{}\n", String::from_utf8_lossy(&said));
        }
    }
    text
}
