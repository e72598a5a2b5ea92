//! Questions to logs that were written as the gateway does it.

use super::super::json_lines::JsonLines;
use super::super::notice::{LeaseNotice, Notice};
use super::super::record::Event;
use super::super::record::tests::{binding, block, mapping};
use super::super::rotation;
use super::super::sink_state::SinkState;
use super::*;
use crate::config::EventLogFile;
use std::path::PathBuf;

/// A log in a directory of its own.
pub(super) struct Written {
    directory: PathBuf,
    config: EventLogFile,
    lines: JsonLines,
}

impl Written {
    pub(super) fn new(name: &str, rotate_size: u64) -> Self {
        let directory = std::env::temp_dir().join(format!("sixway-who-{name}-{}", std::process::id()));
        let path = directory.join("events.jsonl");
        let (owner, group) = (None, None);
        let config = EventLogFile { path, mode: 0o640, owner, group, rotate_size, rotate_keep: 10_000 };
        let lines = JsonLines::open(&config, &SinkState::new("test".into())).unwrap();
        Self { directory, config, lines }
    }

    pub(super) fn write(&mut self, seconds: u64, event: Event) {
        self.lines.write(&[Record { micros: seconds * 1_000_000, event }]);
    }

    /// The path of the file, with all that was written.
    pub(super) fn path(&mut self) -> &Path {
        self.lines.flush();
        &self.config.path
    }

    fn bound(&mut self, seconds: u64, phase: Phase, inside: &str, outside: &str) {
        self.write(seconds, Event::Binding(phase, binding(inside, outside)));
    }

    fn asked(&mut self, outside: &str, seconds: u64) -> Answer {
        self.lines.flush();
        let at = record::time_text(seconds * 1_000_000);
        ask(&self.config.path, &Question::read(outside, "UDP", &at).unwrap()).unwrap()
    }

    /// Inside endpoint, since, until: seconds.
    fn who(&mut self, outside: &str, seconds: u64) -> (Option<String>, Option<u64>, Option<u64>) {
        let answer = self.asked(outside, seconds);
        let seconds =
            |text: Option<String>| text.and_then(|text| record::time_of(&text)).map(|it| it / 1_000_000);
        (answer.inside, seconds(answer.since), seconds(answer.until))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const ONE: &str = "[2001:db8::1]:5000";
const OTHER: &str = "192.168.1.2:6000";
const OUTSIDE: &str = "192.0.2.1:4711";

#[test]
fn the_host_is_found_that_had_the_endpoint_at_the_time() {
    let mut log = Written::new("times", 1 << 20);
    log.write(10, Event::Started);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    log.bound(200, Phase::Deleted, ONE, OUTSIDE);
    log.bound(300, Phase::Created, OTHER, OUTSIDE);
    let of = |inside: &str, since, until| (Some(inside.to_owned()), Some(since), until);
    assert_eq!(log.who(OUTSIDE, 99), (None, None, None));
    assert_eq!(log.who(OUTSIDE, 100), of(ONE, 100, Some(200)));
    assert_eq!(log.who(OUTSIDE, 199), of(ONE, 100, Some(200)));
    assert_eq!(log.who(OUTSIDE, 200), (None, None, None));
    let free = log.asked(OUTSIDE, 250).last.unwrap();
    assert_eq!((&*free.inside, &*free.until), (ONE, "1970-01-01T00:03:20.000000Z"));
    assert_eq!(log.who(OUTSIDE, 5_000), of(OTHER, 300, None));
    assert_eq!(log.who("192.0.2.1:4712", 150), (None, None, None), "another port");
    let tcp = Question::read(OUTSIDE, "tcp", "1970-01-01T00:02:00Z").unwrap();
    assert_eq!(ask(&log.config.path, &tcp).unwrap().inside, None, "another protocol");
}

#[test]
fn an_endpoint_that_was_bound_many_times_has_the_right_host_each_time() {
    let mut log = Written::new("many", 1 << 20);
    let inside = |number: u64| format!("[2001:db8::{number:x}]:5000");
    for number in 1..=100 {
        log.bound(number * 10, Phase::Created, &inside(number), OUTSIDE);
        log.bound(number * 10 + 5, Phase::Deleted, &inside(number), OUTSIDE);
    }
    // Enough for a run, so that the index is searched and not the lines.
    for number in 0..8_000 {
        log.bound(2_000, Phase::Created, OTHER, &format!("192.0.2.2:{}", 1_024 + number));
    }
    for number in 1..=100 {
        let wanted = (Some(inside(number)), Some(number * 10), Some(number * 10 + 5));
        assert_eq!(log.who(OUTSIDE, number * 10 + 4), wanted);
        assert_eq!(log.who(OUTSIDE, number * 10 + 9).0, None, "{number}");
    }
}

#[test]
fn a_binding_goes_on_in_another_process_or_ends_with_its_own() {
    let mut log = Written::new("processes", 1 << 20);
    log.write(10, Event::Started);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    log.bound(100, Phase::Created, OTHER, "192.0.2.1:4712");
    log.write(200, Event::Started);
    log.bound(200, Phase::Continues, ONE, OUTSIDE);
    log.write(300, Event::Started);
    log.bound(300, Phase::Continues, ONE, OUTSIDE);
    log.bound(400, Phase::Deleted, ONE, OUTSIDE);
    for at in [150, 250, 350] {
        assert_eq!(log.who(OUTSIDE, at), (Some(ONE.into()), Some(100), Some(400)), "at {at}");
    }
    assert_eq!(log.who("192.0.2.1:4712", 150), (Some(OTHER.into()), Some(100), Some(200)));
    assert_eq!(log.who("192.0.2.1:4712", 250), (None, None, None));
    assert_eq!(log.asked("192.0.2.1:4712", 250).last.unwrap().inside, OTHER);
}

#[test]
fn a_binding_that_was_listed_again_is_known_without_its_beginning() {
    let mut log = Written::new("listed", 1 << 20);
    log.bound(100, Phase::Created, OTHER, "192.0.2.1:1");
    log.bound(200, Phase::Continues, ONE, OUTSIDE);
    assert_eq!(log.who(OUTSIDE, 150), (Some(ONE.into()), None, None));
    assert_eq!(log.who(OUTSIDE, 250), (Some(ONE.into()), None, None));
    log.bound(300, Phase::Continues, ONE, OUTSIDE);
    log.bound(400, Phase::Deleted, ONE, OUTSIDE);
    assert_eq!(log.who(OUTSIDE, 250), (Some(ONE.into()), None, Some(400)));
    assert_eq!(log.who(OUTSIDE, 450), (None, None, None));
}

#[test]
fn a_binding_that_is_older_than_the_log_is_known_by_its_end() {
    let mut log = Written::new("older", 1 << 20);
    log.bound(100, Phase::Created, OTHER, "192.0.2.1:1");
    log.bound(200, Phase::Deleted, ONE, OUTSIDE);
    assert_eq!(log.who(OUTSIDE, 150), (Some(ONE.into()), None, Some(200)));
}

#[test]
fn missing_events_are_a_reason_for_doubt() {
    let mut log = Written::new("lost", 1 << 20);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    log.write(150, Event::Lost(3, "workers".into()));
    log.bound(200, Phase::Deleted, ONE, OUTSIDE);
    log.bound(300, Phase::Created, ONE, OUTSIDE);
    log.bound(400, Phase::Deleted, ONE, OUTSIDE);
    let doubts = [120, 180, 250, 350, 450].map(|at| log.asked(OUTSIDE, at).events_are_missing);
    assert_eq!(doubts, [true, true, false, false, false]);
}

#[test]
fn a_question_says_what_is_wrong_with_it() {
    let wrong = |outside, protocol, at| Question::read(outside, protocol, at).unwrap_err();
    assert!(wrong("192.0.2.1", "udp", "2026-11-20T12:00Z").contains("192.0.2.1:4711"));
    assert!(wrong(OUTSIDE, "sctp", "2026-11-20T12:00Z").contains("tcp, udp, icmp, gre"));
    assert!(wrong(OUTSIDE, "udp", "noon").contains("2026-11-20T12:00:00Z"));
}

#[test]
fn the_subscriber_is_found_whose_block_a_port_was_in() {
    let mut log = Written::new("blocks", 1 << 20);
    log.write(10, Event::Started);
    log.write(10, Event::Mapping(mapping(false)));
    let one = || block("10.0.0.7/32", "192.0.2.1", 1_536);
    log.write(100, Event::Block(Phase::Created, one()));
    log.write(200, Event::Block(Phase::Deleted, one()));
    log.write(300, Event::Block(Phase::Created, block("10.0.0.8/32", "192.0.2.1", 1_536)));
    log.write(400, Event::Started);
    log.write(400, Event::Mapping(mapping(false)));
    log.write(400, Event::Block(Phase::Continues, block("10.0.0.8/32", "192.0.2.1", 1_536)));
    for port in [1_536, 1_700, 2_047] {
        let outside = format!("192.0.2.1:{port}");
        assert_eq!(log.who(&outside, 99), (None, None, None));
        assert_eq!(log.who(&outside, 150), (Some("10.0.0.7".into()), Some(100), Some(200)));
        assert_eq!(log.asked(&outside, 250).last.unwrap().inside, "10.0.0.7");
        assert_eq!(log.who(&outside, 450), (Some("10.0.0.8".into()), Some(300), None));
    }
    assert_eq!(log.asked("192.0.2.1:1600", 150).kind.as_deref(), Some("port block"));
    for outside in ["192.0.2.1:1535", "192.0.2.1:2048", "192.0.2.2:1600"] {
        assert_eq!(log.who(outside, 150).0, None, "{outside}");
    }
}

#[test]
fn a_static_binding_in_a_block_is_its_own_hosts() {
    let mut log = Written::new("static", 1 << 20);
    log.write(10, Event::Started);
    log.write(10, Event::Mapping(mapping(false)));
    log.bound(50, Phase::Created, ONE, "192.0.2.1:1600");
    log.write(100, Event::Block(Phase::Created, block("10.0.0.7/32", "192.0.2.1", 1_536)));
    assert_eq!(log.who("192.0.2.1:1600", 150).0.as_deref(), Some(ONE));
    assert_eq!(log.who("192.0.2.1:1601", 150).0.as_deref(), Some("10.0.0.7"));
    log.bound(160, Phase::Deleted, ONE, "192.0.2.1:1600");
    assert_eq!(log.who("192.0.2.1:1600", 170).0.as_deref(), Some("10.0.0.7"));
}

#[test]
fn a_block_is_found_by_a_log_whose_beginning_was_removed() {
    let mut log = Written::new("removed", 1 << 20);
    log.write(100, Event::Block(Phase::Created, block("2001:db8:1::/64", "192.0.2.1", 1_536)));
    assert_eq!(log.who("192.0.2.1:1600", 150).0.as_deref(), Some("2001:db8:1::/64"));
    assert_eq!(log.who("192.0.2.1:2600", 150).0, None);
}

#[test]
fn a_deterministic_mapping_says_who_had_a_port_at_each_time() {
    let mut log = Written::new("deterministic", 1 << 20);
    log.write(10, Event::Started);
    log.write(10, Event::Mapping(mapping(true)));
    let other = PortMapping { block_size: 1_024, ..mapping(true) };
    log.write(500, Event::Started);
    log.write(500, Event::Mapping(other));
    // 62 blocks of 512 ports from 1024 on, and 49 from 40448 on.
    assert_eq!(log.who("192.0.2.0:1600", 100).0.as_deref(), Some("10.0.0.1"));
    assert_eq!(log.who("192.0.2.1:1600", 499).0.as_deref(), Some("10.0.0.112"));
    assert_eq!(log.who("192.0.2.0:2100", 499).0.as_deref(), Some("10.0.0.2"));
    assert_eq!(log.who("192.0.2.0:2100", 501).0.as_deref(), Some("10.0.0.1"), "another configuration");
    assert_eq!(log.who("192.0.2.0:80", 501), (None, None, None));
    assert_eq!(log.asked("192.0.2.0:2100", 501).kind.as_deref(), Some("deterministic"));
}

#[test]
fn of_an_address_of_two_translators_the_port_says_whose_mapping_holds() {
    let mut log = Written::new("one-address", 1 << 20);
    log.write(10, Event::Started);
    log.write(10, Event::Mapping(PortMapping { ports: vec![1_024..=32_767], ..mapping(true) }));
    let other = crate::inside_endpoint::side("10.1.0.0/24").unwrap().0;
    let second = PortMapping {
        translator: "red".into(),
        inside: vec![other],
        ports: vec![40_960..=65_535],
        ..mapping(true)
    };
    log.write(11, Event::Mapping(second));
    assert_eq!(log.who("192.0.2.0:1600", 100).0.as_deref(), Some("10.0.0.1"));
    assert_eq!(log.who("192.0.2.0:41000", 100).0.as_deref(), Some("10.1.0.0"));
    let answer = log.asked("192.0.2.0:41000", 100);
    assert_eq!(answer.translator.as_deref(), Some("red"));
    assert_eq!(log.who("192.0.2.0:40000", 100), (None, None, None), "nobody's");
}

#[test]
fn a_deterministic_answer_says_since_when_its_mapping_holds_and_whether_events_are_missing() {
    let mut log = Written::new("mapping", 1 << 20);
    log.write(10, Event::Started);
    log.write(10, Event::Mapping(mapping(true)));
    log.write(100, Event::Mapping(mapping(true)));
    log.write(200, Event::Started);
    log.write(200, Event::Mapping(mapping(true)));
    log.write(300, Event::Mapping(mapping(true)));
    let port = "192.0.2.0:1600";
    for at in [50, 150, 250, 350] {
        assert_eq!(log.who(port, at), (Some("10.0.0.1".into()), Some(10), None), "{at}");
    }
    log.write(400, Event::Lost(3, "workers".into()));
    log.write(450, Event::Mapping(mapping(true)));
    log.write(500, Event::Started);
    log.write(500, Event::Mapping(PortMapping { block_size: 1_024, ..mapping(true) }));
    assert_eq!(log.who(port, 501).1, Some(500), "another configuration");
    let doubts = [50, 250, 350, 420, 460, 501].map(|at| log.asked(port, at).events_are_missing);
    assert_eq!(doubts, [false, false, true, true, false, false]);
    // The beginning of the process is gone.
    let mut log = Written::new("mapping-old", 1 << 20);
    log.write(100, Event::Mapping(mapping(true)));
    assert_eq!(log.who(port, 150), (Some("10.0.0.1".into()), None, None));
}

#[test]
fn a_mapping_that_is_cut_names_nobody_and_says_so() {
    let mut log = Written::new("cut", 1 << 20);
    log.write(10, Event::Started);
    log.write(10, Event::Mapping(PortMapping { is_cut: true, ..mapping(true) }));
    for outside in ["192.0.2.0:1600", "198.51.100.1:1600"] {
        let answer = log.asked(outside, 100);
        assert!(answer.inside.is_none() && answer.mapping_is_cut, "{answer:?}");
    }
    log.write(200, Event::Started);
    log.write(200, Event::Mapping(PortMapping { is_cut: true, ..mapping(false) }));
    log.write(210, Event::Block(Phase::Created, block("10.0.0.9/32", "198.51.100.1", 1_536)));
    let answer = log.asked("198.51.100.1:1600", 220);
    assert_eq!(answer.inside.as_deref(), Some("10.0.0.9"), "its record has the block");
}

#[test]
fn long_mappings_are_read_by_their_beginnings() {
    let mut log = Written::new("long-mappings", 64 << 20);
    let prefix = |n: u32| crate::inside_endpoint::side(&format!("10.{}.{}.0/32", n >> 8, n & 255)).unwrap().0;
    let long = PortMapping { inside: (0..256).map(prefix).collect(), ..mapping(true) };
    log.write(10, Event::Started);
    // As many lines as a run covers.
    for seconds in 1..u64::from(index::RUN_LINES) {
        log.write(10 + seconds, Event::Mapping(long.clone()));
    }
    let answer = log.asked("192.0.2.0:1600", 3_000);
    assert!(answer.inside.is_some() && answer.octets_of_log > 20 << 20, "{answer:?}");
    assert!(answer.octets_read < 300_000, "{answer:?}");
}

#[test]
fn a_configuration_answers_without_a_log_where_blocks_follow_from_it() {
    let question = |outside| Question::read(outside, "udp", "2026-11-20T12:00Z").unwrap();
    let answer = Answer::configured(&question("192.0.2.0:1600"), &[mapping(true)]).unwrap();
    assert_eq!((answer.inside.as_deref(), answer.kind.as_deref()), (Some("10.0.0.1"), Some("deterministic")));
    assert_eq!(Answer::configured(&question("192.0.2.0:1600"), &[mapping(false)]), None);
    assert_eq!(Answer::configured(&question("192.0.3.0:1600"), &[mapping(true)]), None);
}

/// Outside endpoints by turns: each of 50,000 is bound again and again.
fn many(log: &mut Written, events: u64) {
    for number in 0..events / 2 {
        let port = 1_024 + number % 50_000;
        let inside = format!("[2001:db8::{:x}]:{port}", number / 50_000 + 1);
        let outside = format!("192.0.2.9:{port}");
        log.bound(1_000 + number / 100, Phase::Created, &inside, &outside);
        log.bound(1_000 + number / 100, Phase::Deleted, &inside, &outside);
    }
}

/// Octets that an answer reads at most. The endpoint, its block, how blocks were given, the beginnings of the log, its gaps and the times at
/// which the clock was set (before and after) are searched for, each once in each file: by
/// a binary search in its index, and by some lines where there are entries. In addition, each file's first line and header are read, and
/// of the file that is being written the headers of its runs, in each of which is searched, and the lines that are not indexed.
const SEARCHES: u64 = 7;

fn most_octets(files: u64, events_of_a_file: u64, runs: u64) -> u64 {
    let search = |entries: u64| (u64::from((entries / 42).max(1).ilog2()) + 3) * 504;
    let (lines, rest) = (SEARCHES * 2 * 20 * 524, u64::from(index::RUN_LINES) * 200);
    files * (512 + 48 + SEARCHES * search(events_of_a_file))
        + runs * (48 + SEARCHES * search(index::RUN_LINES.into()))
        + lines
        + rest
}

/// A hundred million events, files of the usual size.
#[test]
fn an_answer_from_a_hundred_million_events_reads_a_thousandth_of_them() {
    let (events, octets_of_a_line, size) = (100_000_000_u64, 179, 128 << 20);
    let (octets, events_of_a_file) = (events * octets_of_a_line, size / octets_of_a_line);
    let runs = events_of_a_file / u64::from(index::RUN_LINES);
    let most = most_octets(octets / size + 1, events_of_a_file, runs);
    println!("{most} of {octets} octets");
    assert!(most * 1_000 <= octets, "{most} of {octets} octets");
}

#[test]
fn an_answer_reads_little_of_a_long_log() {
    const EVENTS: u64 = 300_000;
    let mut log = Written::new("long", 4 << 20);
    log.write(900, Event::Started);
    log.write(900, Event::Mapping(mapping(false)));
    log.bound(950, Phase::Created, ONE, OUTSIDE);
    many(&mut log, EVENTS);
    let late = 1_000 + EVENTS / 200;
    let answer = log.asked(OUTSIDE, late);
    assert_eq!(answer.inside.as_deref(), Some(ONE), "bound for the whole log");
    let files = std::fs::read_dir(&log.directory).unwrap().count() as u64 / 2;
    assert!(files > 8, "{files} files");
    let events_of_a_file = EVENTS / (files - 1);
    let most = most_octets(files, events_of_a_file, events_of_a_file / u64::from(index::RUN_LINES));
    assert!(answer.octets_read < most, "{} octets, at most {most}", answer.octets_read);
    assert!(most * 20 < answer.octets_of_log, "{most} of {}", answer.octets_of_log);
    // Once bound and once free: a short way.
    let soon = log.asked("192.0.2.9:1724", 1_507);
    assert_eq!(soon.last.map(|last| last.inside), Some("[2001:db8::2]:1724".into()), "{answer:?}");
    assert!(soon.octets_read < most, "{} octets", soon.octets_read);
    println!("{} and {} of {} octets", answer.octets_read, soon.octets_read, answer.octets_of_log);
}

#[test]
fn nobody_is_named_for_times_before_the_log_or_before_a_binding_that_a_process_brought() {
    let mut log = Written::new("before", 1 << 20);
    log.write(100, Event::Started);
    log.bound(150, Phase::Created, ONE, "192.0.2.1:1");
    log.write(200, Event::Started);
    log.bound(201, Phase::Continues, OTHER, OUTSIDE);
    assert_eq!(log.who(OUTSIDE, 150), (None, None, None), "the process of second 200 may have made it");
    assert_eq!(log.who(OUTSIDE, 250).0.as_deref(), Some(OTHER));
    assert_eq!(log.who(OUTSIDE, 50), (None, None, None), "before the log");
}

#[test]
fn a_loss_that_is_told_after_the_time_is_a_reason_for_doubt_too() {
    let mut log = Written::new("doubt", 1 << 20);
    log.write(10, Event::Started);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    log.write(300, Event::Lost(5, "workers".into()));
    assert!(log.asked(OUTSIDE, 200).events_are_missing, "its end may be among them");
    log.bound(400, Phase::Deleted, ONE, OUTSIDE);
    log.bound(500, Phase::Created, OTHER, OUTSIDE);
    assert!(!log.asked(OUTSIDE, 600).events_are_missing);
    assert!(!log.asked(OUTSIDE, 450).events_are_missing);
}

/// Rows of a listing have the time at which it began, which is long before that of the lines around them.
#[test]
fn old_times_of_a_listing_do_not_hide_what_came_before_or_after() {
    // The listing is in the middle of a file, then at the beginning of one.
    for rotate_size in [1 << 20, 40_000] {
        let mut log = Written::new(&format!("old-times-{rotate_size}"), rotate_size);
        log.write(10, Event::Started);
        log.bound(100, Phase::Created, OTHER, "192.0.2.1:9");
        let mut number = 0;
        let mut many = |log: &mut Written, seconds: u64, lines: u64| {
            for _ in 0..lines {
                number += 1;
                log.bound(seconds, Phase::Created, OTHER, &format!("192.0.2.2:{}", 1_024 + number));
            }
        };
        many(&mut log, 1_000, 220);
        // It began at 900; before its rows were written, this happened.
        log.bound(1_500, Phase::Deleted, OTHER, "192.0.2.1:9");
        while rotate_size < 1 << 20 && rotation::full_files(&log.config.path).unwrap().len() < 2 {
            many(&mut log, 1_500, 1);
            log.lines.flush();
        }
        log.bound(900, Phase::Continues, ONE, OUTSIDE);
        many(&mut log, 2_000, 8_300);
        assert_eq!(log.who("192.0.2.1:9", 1_200), (Some(OTHER.into()), Some(100), Some(1_500)));
        assert_eq!(log.who(OUTSIDE, 950).0.as_deref(), Some(ONE), "{rotate_size}");
        assert_eq!(log.who(OUTSIDE, 2_500).0.as_deref(), Some(ONE));
    }
}

/// Where the oldest file begins with a listing, nothing is known of the time before it was written.
#[test]
fn a_log_does_not_begin_with_the_time_of_a_listing() {
    let mut log = Written::new("begins", 1 << 20);
    log.bound(900, Phase::Continues, OTHER, "192.0.2.1:9");
    log.bound(1_500, Phase::Created, OTHER, "192.0.2.1:8");
    log.bound(1_600, Phase::Deleted, ONE, OUTSIDE);
    assert_eq!(log.who(OUTSIDE, 1_000), (None, None, None));
    assert_eq!(log.asked(OUTSIDE, 1_000).log_begins.as_deref(), Some("1970-01-01T00:25:00.000000Z"));
    assert_eq!(log.who(OUTSIDE, 1_550).0.as_deref(), Some(ONE));
}

#[test]
fn a_log_does_not_begin_with_the_time_of_a_listing_of_blocks() {
    let mut log = Written::new("begins-blocks", 1 << 20);
    log.write(900, Event::Mapping(mapping(false)));
    log.write(900, Event::Block(Phase::Continues, block("10.0.0.1/32", "192.0.2.1", 1_024)));
    log.bound(1_500, Phase::Created, OTHER, "192.0.2.1:8");
    assert_eq!(log.asked(OUTSIDE, 1_000).log_begins.as_deref(), Some("1970-01-01T00:25:00.000000Z"));
}

#[test]
fn times_around_a_clock_that_was_set_are_doubtful_and_others_are_found() {
    let hour = 3_600;
    let mut log = Written::new("clock", 1 << 20);
    log.write(10, Event::Started);
    log.bound(hour, Phase::Created, ONE, OUTSIDE);
    log.bound(2 * hour, Phase::Deleted, ONE, OUTSIDE);
    log.bound(3 * hour, Phase::Created, OTHER, OUTSIDE);
    // Back to 1:30, and forward to 5:00 from 2:00.
    log.write(hour * 3 / 2, Event::Stepped(-(hour as i64) * 3_000_000 / 2));
    log.bound(hour * 3 / 2 + 10, Phase::Deleted, OTHER, OUTSIDE);
    log.write(5 * hour, Event::Stepped(3 * hour as i64 * 1_000_000));
    log.bound(6 * hour, Phase::Created, ONE, OUTSIDE);
    // Enough for a run.
    for number in 0..8_200 {
        log.bound(7 * hour, Phase::Created, OTHER, &format!("192.0.2.2:{}", 1_024 + number));
    }
    let mut doubts = |seconds: u64| log.asked("192.0.2.3:1", seconds).clock_was_set;
    let times = [
        hour,
        hour * 3 / 2 - 9,
        hour * 3 / 2,
        2 * hour + 9,
        3 * hour - 9,
        4 * hour,
        5 * hour,
        5 * hour + 9,
        7 * hour,
    ];
    assert_eq!(times.map(&mut doubts), [false, false, true, true, true, true, true, false, false]);
    assert_eq!(log.who(OUTSIDE, 5_000).0.as_deref(), Some(ONE));
    assert_eq!(log.who(OUTSIDE, 2 * hour - 60).0, None, "of two answers, it is that of the later line");
    assert_eq!(log.who(OUTSIDE, 5 * hour + 60).0, None, "the end has an earlier time than the beginning");
    assert_eq!(log.who(OUTSIDE, 7 * hour), (Some(ONE.into()), Some(6 * hour), None));
}

#[test]
fn a_first_line_that_is_damaged_does_not_hide_its_file() {
    let mut log = Written::new("damaged", 1 << 20);
    log.write(10, Event::Started);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    log.lines.flush();
    let mut text = std::fs::read(&log.config.path).unwrap();
    text[5] = b'x';
    std::fs::write(&log.config.path, text).unwrap();
    assert_eq!(log.who(OUTSIDE, 150).0.as_deref(), Some(ONE));
}

/// An index of other lines: the lines are searched without it.
#[test]
fn an_index_that_leads_to_other_lines_is_left_out() {
    let mut log = Written::new("index", 1 << 30);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    for number in 0..8_200 {
        log.bound(200, Phase::Created, OTHER, &format!("192.0.2.2:{}", 1_024 + number));
    }
    log.lines.flush();
    let place = index::path_of(&log.config.path);
    let mut octets = std::fs::read(&place).unwrap();
    // Every entry leads to the same line.
    for entry in octets[index::HEADER..].chunks_exact_mut(index::ENTRY) {
        entry[8..].copy_from_slice(&[0; 4]);
    }
    std::fs::write(&place, octets).unwrap();
    assert_eq!(log.who("192.0.2.2:5000", 300), (Some(OTHER.into()), Some(200), None));
    assert_eq!(log.who(OUTSIDE, 300), (Some(ONE.into()), Some(100), None));
}

/// Files get their numbers while they are opened.
#[test]
fn a_rotation_in_the_meantime_hides_nothing() {
    let mut log = Written::new("race", 6_000);
    log.write(10, Event::Started);
    log.bound(100, Phase::Created, ONE, OUTSIDE);
    log.lines.flush();
    let (path, stop) = (log.config.path.clone(), std::sync::atomic::AtomicBool::new(false));
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let mut asked = 0;
            while !stop.load(relaxed) || asked < 20 {
                let question = Question::read(OUTSIDE, "udp", "1970-01-01T00:03:00Z").unwrap();
                let answer = ask(&path, &question).unwrap();
                assert_eq!(answer.inside.as_deref(), Some(ONE));
                asked += 1;
            }
        });
        for number in 0..5_000 {
            log.bound(200, Phase::Created, OTHER, &format!("192.0.2.2:{}", 1_024 + number));
            log.lines.flush();
        }
        stop.store(true, relaxed);
        asks.join().unwrap();
    });
}

/// A binding whose beginning is missing: nobody is found, and that is doubtful.
#[test]
fn nobody_is_a_doubtful_answer_where_events_are_missing() {
    let mut log = Written::new("nobody", 1 << 20);
    log.write(10, Event::Started);
    log.write(300, Event::Lost(5, "workers".into()));
    log.write(400, Event::Started);
    let mut doubts = |seconds: u64| log.asked(OUTSIDE, seconds).events_are_missing;
    assert_eq!([200, 350, 450].map(&mut doubts), [true, true, false]);
}

fn says(log: &mut Written, seconds: u64, phase: fn(&str, &str) -> LeaseNotice, of: (&str, &str)) {
    log.write(seconds, Event::Notice(Notice::Lease(phase(of.0, of.1))));
}

fn lease_begun(ipv4: &str, host: &str) -> LeaseNotice {
    LeaseNotice::begun("hub".into(), ipv4.parse().unwrap(), host.parse().unwrap())
}

fn lease_ended(ipv4: &str, host: &str) -> LeaseNotice {
    LeaseNotice::ended("hub".into(), ipv4.parse().unwrap(), host.parse().unwrap())
}

fn lease_continues(ipv4: &str, host: &str) -> LeaseNotice {
    LeaseNotice::continues("hub".into(), ipv4.parse().unwrap(), host.parse().unwrap())
}

fn lease_asked(log: &mut Written, address: &str, seconds: u64) -> Answer {
    let question = LeaseQuestion::read(address, &record::time_text(seconds * 1_000_000)).unwrap();
    ask_lease(log.path(), &question).unwrap()
}

/// Who, since when, until when.
fn lessee(log: &mut Written, address: &str, seconds: u64) -> Option<(String, Option<u64>, Option<u64>)> {
    let answer = lease_asked(log, address, seconds);
    let of = |text: Option<String>| text.and_then(|it| record::time_of(&it)).map(|it| it / 1_000_000);
    Some((answer.inside?, of(answer.since), of(answer.until)))
}

const HOST: &str = "2001:db8:a::1";
const HOST2: &str = "2001:db8:b::1";

#[test]
fn the_host_is_found_that_had_the_whole_address_at_the_time() {
    let mut log = Written::new("lease", 1 << 20);
    log.write(10, Event::Started);
    says(&mut log, 11, lease_continues, ("192.0.2.8/29", HOST2));
    says(&mut log, 100, lease_begun, ("192.0.2.1/32", HOST));
    says(&mut log, 200, lease_ended, ("192.0.2.1/32", HOST));
    says(&mut log, 300, lease_begun, ("192.0.2.1/32", HOST2));
    log.write(400, Event::Started);
    says(&mut log, 401, lease_continues, ("192.0.2.1/32", HOST2));
    assert_eq!(lessee(&mut log, "192.0.2.1", 99), None);
    assert_eq!(lessee(&mut log, "192.0.2.1", 150), Some((HOST.into(), Some(100), Some(200))));
    assert_eq!(lessee(&mut log, "192.0.2.1", 250), None);
    let free = lease_asked(&mut log, "192.0.2.1", 250);
    assert_eq!(free.last.map(|last| last.inside), Some(HOST.into()));
    assert_eq!(lessee(&mut log, "192.0.2.1", 350), Some((HOST2.into(), Some(300), None)));
    // The next process found it there.
    assert_eq!(lessee(&mut log, "192.0.2.1", 500), Some((HOST2.into(), Some(300), None)));
    // An address of a prefix that the first process found there, until the process that did not: the log does not say since when.
    assert_eq!(lessee(&mut log, "192.0.2.9", 50), Some((HOST2.into(), None, Some(400))));
    assert_eq!(lessee(&mut log, "192.0.2.16", 50), None);
    assert_eq!(lease_asked(&mut log, "192.0.2.1", 350).kind.as_deref(), Some("lease"));
}

#[test]
fn what_is_missing_in_the_log_is_told_of_leases_as_well() {
    let mut log = Written::new("lease-lost", 1 << 20);
    log.write(10, Event::Started);
    says(&mut log, 100, lease_begun, ("192.0.2.1/32", HOST));
    log.write(150, Event::Lost(3, "file".into()));
    says(&mut log, 200, lease_ended, ("192.0.2.1/32", HOST));
    assert!(lease_asked(&mut log, "192.0.2.1", 180).events_are_missing);
    assert!(lease_asked(&mut log, "192.0.2.2", 180).events_are_missing);
}

#[test]
fn a_port_needs_a_protocol_and_a_name_is_no_address() {
    let now = record::time_text(1);
    assert!(LeaseQuestion::read("192.0.2.1:80", &now).unwrap_err().contains("add --protocol"));
    assert!(LeaseQuestion::read("host", &now).unwrap_err().contains("write one such as"));
}
