//! Questions about protocols without ports.

use super::super::tests::Written;
use super::*;
use crate::event_log::record::tests::portless;

fn session(inside: &str, remote: Option<&str>, id: Option<u32>) -> Portless {
    Portless::read(("nat44", "gre"), (inside, "192.0.2.1"), remote, id).unwrap()
}

fn write(log: &mut Written, seconds: u64, phase: Phase, (inside, remote): (&str, &str)) {
    log.write(seconds, Event::Portless(phase, session(inside, Some(remote), Some(7))));
}

fn asked(log: &mut Written, remote: Option<&str>, seconds: u64) -> PortlessAnswer {
    let at = record::time_text(seconds * 1_000_000);
    let question = PortlessQuestion::read("192.0.2.1", "GRE", remote, &at).unwrap().unwrap();
    ask_portless(log.path(), &question).unwrap()
}

/// The inside hosts with the seconds of their sessions.
fn who(log: &mut Written, remote: Option<&str>, at: u64) -> Vec<(String, Option<u64>, Option<u64>)> {
    let seconds =
        |text: Option<String>| text.and_then(|text| record::time_of(&text)).map(|micros| micros / 1_000_000);
    let sessions = asked(log, remote, at).sessions.into_iter();
    sessions.map(|it| (it.inside, seconds(it.since), seconds(it.until))).collect()
}

fn of(inside: &str, since: u64, until: Option<u64>) -> (String, Option<u64>, Option<u64>) {
    (inside.to_owned(), Some(since), until)
}

const ONE: (&str, &str) = ("10.0.0.1", "203.0.113.1");
const OTHER: (&str, &str) = ("10.0.0.2", "203.0.113.2");

#[test]
fn all_hosts_are_named_that_had_sessions_at_the_time_and_with_a_remote_host_only_its_own() {
    let mut log = Written::new("portless", 1 << 20);
    log.write(10, Event::Started);
    write(&mut log, 100, Phase::Created, ONE);
    write(&mut log, 200, Phase::Created, OTHER);
    // Another protocol at the same address.
    log.write(200, Event::Portless(Phase::Created, portless(None)));
    write(&mut log, 300, Phase::Deleted, ONE);
    write(&mut log, 400, Phase::Created, ONE);
    write(&mut log, 500, Phase::Deleted, ONE);
    assert_eq!(who(&mut log, None, 99), []);
    assert_eq!(who(&mut log, None, 150), [of(ONE.0, 100, Some(300))]);
    let both = [of(OTHER.0, 200, None), of(ONE.0, 100, Some(300))];
    assert_eq!(who(&mut log, None, 250), both);
    assert_eq!(who(&mut log, Some(ONE.1), 250), both[1..]);
    assert_eq!(who(&mut log, Some("203.0.113.3"), 250), []);
    assert_eq!(who(&mut log, Some(ONE.1), 350), [], "between two sessions");
    assert_eq!(who(&mut log, Some(ONE.1), 450), [of(ONE.0, 400, Some(500))]);
    let answer = asked(&mut log, None, 250);
    assert_eq!((answer.sessions[0].id, answer.sessions[0].remote.as_deref()), (Some(7), Some(OTHER.1)));
    assert!(!answer.events_are_missing && !answer.is_incomplete && !answer.clock_was_set);
    // The next process has none of them.
    log.write(600, Event::Started);
    assert_eq!(who(&mut log, None, 550), [of(OTHER.0, 200, Some(600))]);
    assert_eq!(who(&mut log, None, 650), []);
    log.write(700, Event::Lost(3, "workers".into()));
    assert!(asked(&mut log, None, 750).events_are_missing && !asked(&mut log, None, 550).events_are_missing);
}

#[test]
fn sessions_of_one_host_to_one_remote_host_are_counted_and_those_of_the_same_time_are_all_found() {
    let mut log = Written::new("portless-alike", 1 << 20);
    log.write(10, Event::Started);
    // Without destinations in the log they look alike.
    for (seconds, phase) in [(100, Phase::Created), (100, Phase::Created), (200, Phase::Deleted)] {
        log.write(seconds, Event::Portless(phase, session("10.0.0.1", None, None)));
    }
    assert_eq!(who(&mut log, None, 150).len(), 2);
    assert_eq!(who(&mut log, Some("203.0.113.1"), 250), [of("10.0.0.1", 100, None)]);
}

#[test]
fn a_session_older_than_the_log_or_than_what_is_looked_at_is_known_by_its_end() {
    let mut log = Written::new("portless-older", 1 << 20);
    write(&mut log, 100, Phase::Created, OTHER);
    write(&mut log, 300, Phase::Deleted, ONE);
    assert_eq!(who(&mut log, Some(ONE.1), 200), [(ONE.0.to_owned(), None, Some(300))]);
    let mut log = Written::new("portless-many", 1 << 20);
    log.write(10, Event::Started);
    write(&mut log, 100, Phase::Created, ONE);
    for number in 0..MOST_EVENTS as u64 / 2 {
        write(&mut log, 200 + number, Phase::Created, OTHER);
        write(&mut log, 200 + number, Phase::Deleted, OTHER);
    }
    let at = 200 + MOST_EVENTS as u64;
    let complete = asked(&mut log, None, at - 4_000);
    assert!(complete.sessions.len() == 1 && !complete.is_incomplete, "{complete:?}");
    write(&mut log, at - 3, Phase::Created, OTHER);
    let answer = asked(&mut log, None, at - 2);
    assert!(answer.is_incomplete && answer.sessions.len() == 1, "{answer:?}");
    // With its remote host it is found behind the many of another one.
    assert_eq!(who(&mut log, Some(ONE.1), at - 2), [of(ONE.0, 100, None)]);
    write(&mut log, at, Phase::Deleted, ONE);
    assert_eq!(who(&mut log, Some(ONE.1), at - 2), [of(ONE.0, 100, Some(at))]);
    let by_its_end = who(&mut log, None, at - 2);
    assert!(by_its_end.contains(&(ONE.0.to_owned(), None, Some(at))), "{by_its_end:?}");
}

#[test]
fn an_answer_says_that_the_end_of_a_session_was_not_found_among_very_many_events() {
    let mut log = Written::new("portless-end", 1 << 20);
    log.write(10, Event::Started);
    write(&mut log, 100, Phase::Created, ONE);
    for number in 0..=MOST_EVENTS as u64 / 2 {
        write(&mut log, 200 + number, Phase::Created, OTHER);
        write(&mut log, 200 + number, Phase::Deleted, OTHER);
    }
    write(&mut log, 300 + MOST_EVENTS as u64, Phase::Deleted, ONE);
    let answer = asked(&mut log, None, 150);
    assert!(answer.is_incomplete && answer.sessions.len() == 1, "{answer:?}");
    assert_eq!(who(&mut log, Some(ONE.1), 150), [of(ONE.0, 100, Some(300 + MOST_EVENTS as u64))]);
}

#[test]
fn a_question_about_a_protocol_without_ports_says_what_is_wrong_with_it() {
    let at = "2026-11-20T12:00Z";
    let read = |outside, protocol, remote| PortlessQuestion::read(outside, protocol, remote, at);
    assert!(read("192.0.2.1:80", "tcp", None).unwrap().is_none(), "it has ports");
    let said = read("192.0.2.1:80", "tcp", Some("203.0.113.1")).unwrap_err();
    assert!(said.contains("tcp has ports"), "{said}");
    let said = read("192.0.2.1:80", "esp", None).unwrap_err();
    assert!(said.contains("192.0.2.1:80: not an IPv4 address; esp has no ports"), "{said}");
    assert!(read("192.0.2.1", "esp", Some("host")).unwrap_err().starts_with("--remote host: "));
    assert!(PortlessQuestion::read("192.0.2.1", "esp", None, "noon").is_err());
}
