//! `sixway nat who`: the inside host that had an outside address and port at a given time, from the event log. It needs no running gateway.

use super::configuration_file::named_or_default;
use super::failure::Failure;
use super::output::say;
use crate::config::Config;
use crate::event_log::{
    Answer, LeaseQuestion, PortMapping, PortlessAnswer, PortlessQuestion, PortlessSession, Question, ask,
    ask_lease, ask_portless, now_text,
};
use crate::host;
use crate::port_mappings::port_mappings;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum NatCommand {
    /// Find the inside host that had an outside address and port at a given time, in the files of the event log.
    Who(WhoArguments),
}

/// The arguments of `sixway nat who`.
#[derive(Debug, Args)]
pub(super) struct WhoArguments {
    /// The outside endpoint: ADDRESS:PORT; for icmp the port is the identifier. For protocols without ports, and for leases of 4over6: ADDRESS.
    outside: String,
    /// tcp, udp, icmp, gre, esp, ipv6 or ipip; without it, the host that had the whole address by a lease of 4over6 is found.
    #[arg(long)]
    protocol: Option<String>,
    /// The remote host, for protocols without ports: several inside hosts may have had the outside address.
    #[arg(long, value_name = "ADDRESS")]
    remote: Option<String>,
    /// The time in UTC, for example 2026-11-20T12:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The log's file [default: log.file.path of the configuration].
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    log: Option<PathBuf>,
    /// The configuration file [default: /etc/sixway/sixway.toml, or the only one there].
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Looks it up and prints.
pub(super) fn run(command: &NatCommand) -> Result<(), Failure> {
    let NatCommand::Who(arguments) = command;
    let WhoArguments { outside, remote, .. } = arguments;
    let at = &arguments.at.clone().unwrap_or_else(now_text);
    let Some(protocol) = &arguments.protocol else {
        let question = LeaseQuestion::read(outside, at).map_err(Failure::Wrong)?;
        if remote.is_some() {
            return Err(Failure::Wrong("--remote: only for protocols without ports; add --protocol".into()));
        }
        let log = log_of(arguments)?;
        print(arguments, &ask_lease(&log, &question).map_err(|error| Failure::Failed(error.to_string()))?);
        return Ok(());
    };
    let portless = PortlessQuestion::read(outside, protocol, remote.as_deref(), at);
    if let Some(question) = portless.map_err(Failure::Wrong)? {
        return without_ports(arguments, &question);
    }
    let question = Question::read(outside, protocol, at).map_err(Failure::Wrong)?;
    let answer = match &arguments.log {
        Some(path) => ask(path, &question).map_err(|error| Failure::Failed(error.to_string()))?,
        None => configured(arguments.config.as_deref(), &question)?,
    };
    print(arguments, &or_lease(arguments, answer, at));
    Ok(())
}

/// The answer, or the lease of the whole address, if no binding is found.
fn or_lease(arguments: &WhoArguments, answer: Answer, at: &str) -> Answer {
    let address = arguments.outside.rsplit_once(':').map_or("", |(address, _)| address);
    if answer.inside.is_some() {
        return answer;
    }
    let asked = LeaseQuestion::read(address, at).ok().zip(log_of(arguments).ok());
    let lease = asked.and_then(|(question, log)| ask_lease(&log, &question).ok());
    lease.filter(|lease| lease.inside.is_some()).unwrap_or(answer)
}

fn print(arguments: &WhoArguments, answer: &Answer) {
    match arguments.json {
        // Strings and numbers have no reason to fail.
        true => say(&serde_json::to_string_pretty(answer).unwrap_or_default()),
        false => say(&words(answer)),
    }
}

/// The log's file.
fn log_of(arguments: &WhoArguments) -> Result<PathBuf, Failure> {
    match &arguments.log {
        Some(path) => Ok(path.clone()),
        None => {
            let (file, config) = configuration(arguments.config.as_deref())?;
            Ok(config.event_log.and_then(|log| log.file).ok_or_else(|| no_log(&file))?.path)
        }
    }
}

/// The same for a protocol without ports.
fn without_ports(arguments: &WhoArguments, question: &PortlessQuestion) -> Result<(), Failure> {
    let log = log_of(arguments)?;
    let answer = ask_portless(&log, question).map_err(|error| Failure::Failed(error.to_string()))?;
    match arguments.json {
        // Strings and numbers have no reason to fail.
        true => say(&serde_json::to_string_pretty(&answer).unwrap_or_default()),
        false => say(&portless_words(&answer)),
    }
    Ok(())
}

fn configuration(named: Option<&Path>) -> Result<(PathBuf, Config), Failure> {
    let file = named_or_default(named)?;
    let loaded = Config::load(&file, &host::host_facts());
    let (config, _) = loaded.map_err(|faults| Failure::Wrong(faults.to_string()))?;
    Ok((file, config))
}

fn no_log(file: &Path) -> Failure {
    let file = file.display();
    Failure::Wrong(format!("{file} has no [log.file]; name the log's file with --log"))
}

/// The answer of the configured log; if it has none, of the configuration itself, where blocks follow from it.
fn configured(named: Option<&Path>, question: &Question) -> Result<Answer, Failure> {
    let (file, config) = configuration(named)?;
    let mappings: Vec<PortMapping> = port_mappings(&config).into_iter().flatten().collect();
    let by_mapping = Answer::configured(question, &mappings);
    let has_bindings = config.event_log.as_ref().is_some_and(|log| log.has_bindings());
    let log = config.event_log.and_then(|log| log.file);
    let Some(log) = log else {
        return by_mapping.ok_or_else(|| no_log(&file));
    };
    match (ask(&log.path, question), by_mapping) {
        (Ok(answer), by_mapping) if answer.inside.is_some() || by_mapping.is_none() => Ok(answer),
        // The log covers that time: the subscriber of the present configuration did not have it then.
        (Ok(answer), Some(_)) if has_bindings && covers(&answer) && !answer.mapping_is_cut => Ok(answer),
        (Ok(_) | Err(_), Some(by_mapping)) => Ok(by_mapping),
        (Ok(answer), None) => Ok(answer),
        (Err(error), None) => Err(Failure::Failed(error.to_string())),
    }
}

/// Whether the log has begun before the time of the question.
fn covers(answer: &Answer) -> bool {
    answer.log_begins.as_ref().is_some_and(|begins| *begins <= answer.at)
}

/// The answer for a person.
fn words(answer: &Answer) -> String {
    let Answer { outside, protocol, at, .. } = answer;
    let mut text = match (&answer.inside, &answer.translator, &answer.kind) {
        (Some(inside), Some(translator), Some(kind)) if kind == "deterministic" => {
            let translator = translator.escape_debug();
            let source = match (&answer.since, answer.is_by_configuration) {
                (_, true) => {
                    "by the present configuration file, which may have been different at that time".into()
                }
                (Some(since), false) => format!("by the configuration of {since}"),
                (None, false) => "by a configuration from before the log begins".into(),
            };
            format!("{inside} ({translator}, {kind})\n{source}")
        }
        (Some(inside), Some(translator), Some(kind)) => {
            // The writer of the file writes this, and not to a terminal.
            let translator = translator.escape_debug();
            let since = answer.since.as_deref().unwrap_or("before the log begins");
            let until = answer.until.as_deref().unwrap_or("the end of the log, at least");
            format!("{inside} ({translator}, {kind})\nsince  {since}\nuntil  {until}")
        }
        _ if !outside.contains(':') => format!("none: the log has no lease of {outside} at {at}"),
        _ => format!("none: the log has no binding of {outside} ({protocol}) at {at}"),
    };
    if answer.mapping_is_cut {
        text.push_str("\nthe record of the port allocation of that time is truncated: use the configuration of that time");
    }
    if let Some(last) = &answer.last {
        text.push_str(&format!("\nlast   {}, until {}", last.inside, last.until));
    }
    if answer.inside.is_none()
        && answer.last.is_none()
        && let Some(begins) = &answer.log_begins
    {
        text.push_str(&format!("\nthe log begins at {begins}"));
    }
    warn(&mut text, answer.events_are_missing, answer.clock_was_set);
    text
}

fn warn(text: &mut String, events_are_missing: bool, clock_was_set: bool) {
    if events_are_missing {
        text.push_str("\nwarning: events of that time are missing in the log, so this may be wrong");
    }
    if clock_was_set {
        text.push_str("\nwarning: the clock was set at about that time, so this may be wrong");
    }
}

/// The answer about a protocol without ports, as text.
fn portless_words(answer: &PortlessAnswer) -> String {
    let PortlessAnswer { outside, protocol, at, .. } = answer;
    let session = |session: &PortlessSession| {
        let PortlessSession { inside, translator, remote, id, since, until } = session;
        let translator = translator.escape_debug();
        let remote = remote.as_ref().map_or_else(String::new, |remote| format!(" to {remote}"));
        let id = id.map_or_else(String::new, |id| format!(", id {id}"));
        let since = since.as_deref().unwrap_or("before the events that were searched");
        let until = until.as_deref().unwrap_or("the end of the log, at least");
        format!("{inside}{remote} ({translator}, {protocol}{id})\nsince  {since}\nuntil  {until}")
    };
    let sessions: Vec<String> = answer.sessions.iter().map(session).collect();
    let mut text = match (sessions.is_empty(), &answer.remote) {
        (false, _) => sessions.join("\n"),
        (true, None) => format!("none: the log has no session of {outside} ({protocol}) at {at}"),
        (true, Some(remote)) => {
            format!("none: the log has no session of {outside} ({protocol}) to {remote} at {at}")
        }
    };
    if let Some(begins) = answer.log_begins.as_ref().filter(|_| sessions.is_empty()) {
        text.push_str(&format!("\nthe log begins at {begins}"));
    }
    if answer.is_incomplete {
        text.push_str("\nwarning: there are too many events of this address: sessions may be missing here");
    }
    warn(&mut text, answer.events_are_missing, answer.clock_was_set);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_log::Last;

    #[test]
    fn a_log_covers_the_times_after_its_beginning() {
        let begun = |begins: Option<&str>| {
            let log_begins = begins.map(str::to_owned);
            covers(&Answer { at: "2026-11-20T12:00:00.000000Z".into(), log_begins, ..Answer::default() })
        };
        assert!(begun(Some("2026-11-20T11:59:59.000000Z")) && begun(Some("2026-11-20T12:00:00.000000Z")));
        assert!(!begun(Some("2026-11-20T12:00:00.000001Z")) && !begun(None));
    }

    #[test]
    fn a_deterministic_answer_says_by_which_configuration() {
        let of = |since: Option<&str>, is_by_configuration| {
            let (inside, translator) = (Some("10.0.0.1".into()), Some("nat44".into()));
            let (kind, since) = (Some("deterministic".into()), since.map(str::to_owned));
            words(&Answer { inside, translator, kind, since, is_by_configuration, ..Answer::default() })
        };
        assert_eq!(of(Some("then"), false), "10.0.0.1 (nat44, deterministic)\nby the configuration of then");
        assert!(of(None, false).ends_with("from before the log begins"));
        assert!(of(None, true).contains("the present configuration file"));
        let cut = words(&Answer { mapping_is_cut: true, ..Answer::default() });
        assert!(cut.starts_with("none") && cut.contains("is truncated"), "{cut}");
    }

    #[test]
    fn an_answer_about_a_protocol_without_ports_has_all_sessions() {
        let one = PortlessSession {
            inside: "10.0.0.1".into(),
            translator: "nat44".into(),
            remote: Some("203.0.113.1".into()),
            id: Some(7),
            since: Some("then".into()),
            until: None,
        };
        let other = PortlessSession { inside: "10.0.0.2".into(), remote: None, id: None, ..one.clone() };
        let protocol = "esp".to_owned();
        let answer =
            PortlessAnswer { protocol, sessions: vec![one.clone(), other], ..PortlessAnswer::default() };
        let until = "since  then\nuntil  the end of the log, at least";
        let odd = PortlessSession { translator: "\u{1b}[2J\n".into(), ..one.clone() };
        let shown = portless_words(&PortlessAnswer { sessions: vec![odd], ..PortlessAnswer::default() });
        assert!(!shown.contains('\u{1b}') && shown.lines().count() == 3, "{shown}");
        let first = format!("10.0.0.1 to 203.0.113.1 (nat44, esp, id 7)\n{until}");
        assert_eq!(portless_words(&answer), format!("{first}\n10.0.0.2 (nat44, esp)\n{until}"));
        let none = PortlessAnswer { sessions: Vec::new(), is_incomplete: true, ..answer };
        let text = portless_words(&none);
        assert!(text.starts_with("none") && text.contains("sessions may be missing"), "{text}");
    }

    #[test]
    fn an_answer_says_who_since_when_and_until_when() {
        let host = Answer {
            outside: "192.0.2.1:4711".into(),
            protocol: "udp".into(),
            at: "2026-11-20T12:00:00.000000Z".into(),
            inside: Some("[2001:db8:1::2]:50122".into()),
            translator: Some("nat64".into()),
            kind: Some("dynamic".into()),
            since: Some("2026-11-20T11:00:00.000000Z".into()),
            ..Answer::default()
        };
        assert_eq!(
            words(&host),
            "[2001:db8:1::2]:50122 (nat64, dynamic)\nsince  2026-11-20T11:00:00.000000Z\nuntil  the end of the log, at least"
        );
        let odd = words(&Answer { translator: Some("\u{1b}[2J\n".into()), ..host.clone() });
        assert!(!odd.contains('\u{1b}') && odd.lines().count() == 3, "{odd}");
        let doubtful =
            Answer { since: None, until: Some("later".into()), events_are_missing: true, ..host.clone() };
        let text = words(&doubtful);
        assert!(text.contains("since  before the log begins\nuntil  later\nwarning: events"), "{text}");
        let stepped = Answer { clock_was_set: true, ..host.clone() };
        assert!(
            words(&stepped)
                .ends_with("\nwarning: the clock was set at about that time, so this may be wrong")
        );
        let last = Some(Last { inside: "10.0.0.1:5".into(), until: "then".into() });
        let free = Answer { inside: None, last, ..host.clone() };
        assert!(words(&free).starts_with("none: the log has no binding of 192.0.2.1:4711 (udp) at 2026"));
        assert!(words(&free).ends_with("\nlast   10.0.0.1:5, until then"), "{}", words(&free));
        let unknown = Answer { inside: None, log_begins: Some("yesterday".into()), ..host };
        assert!(words(&unknown).ends_with("\nthe log begins at yesterday"));
    }
}
