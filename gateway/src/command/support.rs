//! `sixway support`: the data for a bug report, in one text file that can be read before it is sent.

use super::configuration_file::named_or_running;
use super::doctor;
use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::show::only_socket;
use crate::admin::{Client, ClientError};
use crate::config::Config;
use crate::host;
use clap::Args;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lines of a program's output, at most.
const LINES: usize = 2_000;

/// Data from the running gateway.
const OF_GATEWAY: [(&str, &str); 11] = [
    ("status", "/v1/status"),
    ("counters", "/v1/counters"),
    ("drops", "/v1/drops"),
    ("pools", "/v1/pools"),
    ("fast path", "/v1/fastpath"),
    ("DNS64", "/v1/dns64"),
    ("Teredo server", "/v1/teredo-server"),
    ("PCP", "/v1/pcp"),
    ("6rd", "/v1/six-rd"),
    ("router advertisements", "/v1/router-advertisements"),
    ("metrics", "/metrics"),
];

/// Output of this host's programs.
const OF_HOST: [&[&str]; 15] = [
    &["uname", "-a"],
    &["cat", "/etc/os-release"],
    &["ip", "-details", "link"],
    &["ip", "address"],
    &["ip", "-4", "rule"],
    &["ip", "-6", "rule"],
    &["ip", "-4", "route"],
    &["ip", "-6", "route"],
    &["ip", "route", "show", "proto", "64", "table", "all"],
    // Without the elements of sets, which may be addresses of subscribers.
    &["nft", "--terse", "list", "ruleset"],
    &["iptables-save"],
    &["ip6tables-save"],
    &[
        "sysctl",
        "net.ipv4.conf",
        "net.ipv6.conf",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.netfilter",
    ],
    &["tc", "-statistics", "qdisc"],
    &["ss", "-lntu"],
];

/// The arguments of `sixway support`.
#[derive(Debug, Args)]
pub(super) struct SupportArguments {
    /// The configuration file [default: /etc/sixway/sixway.toml, or the only one there].
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE", default_value = "sixway-support.txt")]
    output: PathBuf,
    /// Include sessions and bindings, which contain addresses of subscribers.
    #[arg(long)]
    with_sessions: bool,
    /// The admin socket of the gateway; needed if several gateways run on this host.
    #[arg(long)]
    socket: Option<PathBuf>,
}

/// Writes the file.
pub(super) fn run(arguments: &SupportArguments) -> Result<(), Failure> {
    let config = named_or_running(arguments.config.as_deref())?;
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", arguments.output.display()));
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&arguments.output).map_err(
            |error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => Failure::Wrong(format!(
                    "{} exists; remove it, or choose another file with -o",
                    arguments.output.display()
                )),
                _ => failed(error),
            },
        )?;
    let text = report(arguments, &config);
    file.write_all(text.as_bytes()).map_err(failed)?;
    let sections = text.lines().filter(|line| line.starts_with("==== ")).count();
    let addresses = match arguments.with_sessions {
        true => "addresses of subscribers in sessions and bindings included",
        false => "without sessions and bindings",
    };
    say(&format!(
        "{}: {sections} sections, {addresses}; read it before you send it",
        arguments.output.display()
    ));
    Ok(())
}

fn report(arguments: &SupportArguments, file: &Path) -> String {
    let mut text = String::new();
    let mut section = |title: &str, content: &str| {
        text.push_str(&format!("==== {title}\n{}\n\n", content.trim_end()));
    };
    section("version", concat!("sixway ", env!("CARGO_PKG_VERSION")));
    let config = Config::load(file, &host::host_facts());
    match &config {
        Ok((config, warnings)) => {
            let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            section(&format!("configuration {}", file.display()), &config.to_string());
            section("warnings of the configuration", &warnings.join("\n"));
            section("sixway doctor", &doctor::text(config));
        }
        Err(faults) => section("configuration", &faults.to_string()),
    }
    match arguments.socket.clone().map_or_else(|| only_socket(Path::new(RUN_DIRECTORY)), Ok) {
        Ok(socket) => of_gateway(&Client::new(&socket), arguments.with_sessions, &mut section),
        Err(Failure::Failed(why) | Failure::Wrong(why)) => section("the running gateway", &why),
    }
    for words in OF_HOST {
        section(&words.join(" "), &output(words));
    }
    let unit = file.file_stem().map(|stem| format!("sixway@{}", stem.to_string_lossy()));
    let unit = unit.unwrap_or_default();
    let journal = ["journalctl", "--no-pager", "-n", "500", "-u", &unit];
    section(&journal.join(" "), &output(&journal));
    text
}

fn of_gateway(client: &Client, with_sessions: bool, section: &mut impl FnMut(&str, &str)) {
    let said = |answer: Result<String, ClientError>| answer.unwrap_or_else(|error| error.to_string());
    section("configuration in force", &said(client.text("/v1/config.toml", &[])));
    for (title, path) in OF_GATEWAY {
        let answer = said(client.text(path, &[]));
        section(title, &told(&answer));
    }
    if with_sessions {
        for (title, path) in [("sessions", "/v1/sessions"), ("bindings", "/v1/bindings")] {
            section(title, &told(&said(client.text(path, &[("limit", Some("1000".into()))]))));
        }
    }
}

/// An answer in a form for people, without samples of packets: their addresses may be subscribers'.
fn told(answer: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(answer) else { return answer.to_owned() };
    for row in value.as_array_mut().into_iter().flatten() {
        if let Some(row) = row.as_object_mut() {
            row.remove("sample");
        }
    }
    match &value {
        Value::Array(rows) => rows.iter().map(|row| format!("{row}\n")).collect(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// The first lines of a program's output.
fn output(words: &[&str]) -> String {
    let Some((program, arguments)) = words.split_first() else { return String::new() };
    let ended = match host::run_program(Command::new(program).args(arguments), &[], PATIENCE) {
        Ok(ended) => ended,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return format!("{program} is not installed here");
        }
        Err(error) => return format!("{program}: {error}"),
    };
    let all = ended.said.lines().count();
    let mut text: String = ended.said.lines().take(LINES).map(|line| format!("{line}\n")).collect();
    if all > LINES {
        text.push_str(&format!("({} more lines)\n", all - LINES));
    }
    if !ended.succeeded {
        text.push_str(&format!("({})\n", ended.reason()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_packets_are_left_out_and_what_a_program_says_is_bounded() {
        let drops = r#"[{"reason":"NoBinding","count":3,"sample":"IPv4, 203.0.113.2 > 192.0.2.1"}]"#;
        assert_eq!(told(drops), "{\"count\":3,\"reason\":\"NoBinding\"}\n");
        assert_eq!(told("# HELP x\n"), "# HELP x\n");
        assert!(output(&["seq", "3000"]).ends_with("2000\n(1000 more lines)\n"));
        assert_eq!(output(&["sh", "-c", "echo a; echo wrong >&2; exit 1"]), "a\n(wrong)\n");
        assert_eq!(output(&["no-such-program"]), "no-such-program is not installed here");
    }
}
