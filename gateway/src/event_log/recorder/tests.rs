//! From engines to the sinks.

use super::*;
use crate::config::{EventLogFile, Facility, IpfixCollector, LogTransport, SyslogServer};
use sixway_dataplane::nat::{
    BindingRow, EventSink, Inside, NatProtocol, Outside, PortlessEvent, Selection, StaticBinding,
};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const CONFIG: &str = concat!(
    "[gateway]\nipv4_address = \"198.51.100.1\"\nipv6_address = \"2001:db8::fe\"\nworkers = 1\n",
    "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/30\"]\n",
    "[nat64]\nprefix = \"2001:db8:64::/96\"\ninside = [\"2001:db8:1::/64\"]\npool = \"main\"\n",
    "static = [{ protocol = \"tcp\", inside = \"[2001:db8:1::80]:80\", outside = \"192.0.2.1:80\" }]\n",
);

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("sixway-recorder-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

fn file(directory: &Path) -> EventLogFile {
    EventLogFile {
        path: directory.join("events.jsonl"),
        mode: 0o640,
        owner: None,
        group: None,
        rotate_size: 1 << 20,
        rotate_keep: 3,
    }
}

fn log(directory: &Path, events: &[LoggedEvent]) -> config::EventLog {
    config::EventLog {
        events: events.to_vec(),
        spool: directory.join("spool"),
        spool_size: 1 << 20,
        file: Some(file(directory)),
        syslog: Vec::new(),
        ipfix: Vec::new(),
    }
}

fn engines() -> Vec<Engine> {
    let configs = crate::sample::config(CONFIG).engines([1, 2], &config::Surroundings::default());
    configs.iter().map(|config| Engine::new(config).unwrap()).collect()
}

fn start(config: &config::EventLog, engines: &mut [Engine]) -> EventLog {
    let (translators, confine): (_, fn()) = (&["nat64".to_owned()][..], || {});
    let (mappings, quotas) = (Vec::new(), [].into());
    let source =
        Source { engines, translators, mappings, quotas, clock: Clock::start(), gateway: "gw", confine };
    EventLog::start(config, source).unwrap()
}

/// Lists the bindings of the engines, as the gateway does.
fn list(log: &EventLog, engines: &mut [Engine]) {
    assert!(log.is_listing_due() && log.begin_listing());
    let mut rows = Vec::new();
    engines[0].stateful().next().unwrap().bindings(0, u32::MAX, &Selection::default(), &mut rows);
    let listed = |row: &BindingRow| Listed {
        translator: 0,
        protocol: row.protocol,
        softwire: row.softwire,
        inside: row.inside.0,
        outside: row.outside.0,
        is_static: row.is_static,
    };
    assert!(log.list(rows.iter().map(listed).collect()).is_ok() && log.end_listing(true));
}

fn lines(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    text.lines().map(|line| line.split_once("\"event\":\"").unwrap().1.to_owned()).collect()
}

/// A static binding at run time, which is an event like another.
fn bind(engine: &mut Engine, port: u16) {
    let binding = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new("2001:db8:1::2".parse().unwrap(), port)),
        outside: Outside(Endpoint4::new("192.0.2.2".parse().unwrap(), port)),
    };
    engine.stateful().next().unwrap().add_static(&binding).unwrap();
}

#[test]
fn a_log_begins_with_what_is_there_and_ends_with_its_end() {
    let directory = directory("begins");
    let mut engines = engines();
    let log = start(&log(&directory, &[LoggedEvent::Bindings, LoggedEvent::Limits]), &mut engines);
    list(&log, &mut engines);
    bind(&mut engines[0], 4_711);
    log.limit("PortPoolEmpty", 7);
    log.end();
    let lines = lines(&directory);
    let starts = ["log_started\"", "binding_continues\",", "", "", "log_stopped\""];
    assert_eq!(lines.len(), starts.len(), "{lines:?}");
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{lines:?}");
    assert!(lines[1].contains("\"outside\":\"192.0.2.1:80\",\"kind\":\"static\""), "{lines:?}");
    let both = lines[2..4].join("\n");
    assert!(both.contains("binding_created\",\"translator\":\"nat64\",\"protocol\":\"udp\""), "{both}");
    assert!(both.contains("limit_reached\",\"reason\":\"PortPoolEmpty\",\"count\":7"), "{both}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_is_not_asked_for_is_not_logged() {
    let directory = directory("asked");
    let mut engines = engines();
    let log = start(&log(&directory, &[LoggedEvent::Sessions]), &mut engines);
    bind(&mut engines[0], 4_711);
    log.limit("PortPoolEmpty", 7);
    log.end();
    assert_eq!(lines(&directory).len(), 2, "beginning and end");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn destinations_are_left_out_unless_they_are_asked_for() {
    let session = SessionEvent {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), 5)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), 7)),
        remote: Endpoint4::new("203.0.113.1".parse().unwrap(), 53),
    };
    let of = |destinations| {
        let timed = (sixway_dataplane::Instant(0), NatEvent::SessionCreated(session));
        match event(&"nat64".into(), timed, destinations) {
            Some(Event::Session(Phase::Created, _, remote)) => remote,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((of(false), of(true)), (None, Some(session.remote)));
    let of_portless = |destinations| {
        let [inside, outside, remote] = [[10, 0, 0, 1], [192, 0, 2, 1], [203, 0, 113, 1]].map(Ipv4Addr::from);
        let (inside, outside) = (Inside(inside), Outside(outside));
        let session = PortlessEvent { protocol: 50, inside, outside, remote, id: Some(7) };
        let timed = (sixway_dataplane::Instant(0), NatEvent::PortlessDeleted(session));
        match event(&"nat44".into(), timed, destinations) {
            Some(Event::Portless(Phase::Deleted, it)) => {
                (it.inside.octets()[3], it.outside.octets()[3], it.remote)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of_portless(false), (1, 1, None));
    assert_eq!(of_portless(true), (1, 1, Some(Ipv4Addr::new(203, 0, 113, 1))));
}

/// Nobody reads at the servers: the engine goes on, and the spools are bounded.
#[test]
fn sinks_that_take_nothing_do_not_delay_the_engine() {
    let directory = directory("nothing");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap();
    let mut config = log(&directory, &[LoggedEvent::Bindings]);
    config.file = Some(EventLogFile { path: "/dev/full".into(), ..file(&directory) });
    config.syslog.push(SyslogServer {
        server,
        transport: LogTransport::Tcp,
        facility: Facility::Local0,
        name: None,
        ca: None,
    });
    config.ipfix.push(IpfixCollector {
        collector: server,
        transport: LogTransport::Tcp,
        observation_domain: 1,
    });
    let mut engines = engines();
    let log = start(&config, &mut engines);
    let started = std::time::Instant::now();
    for port in 1..=60_000 {
        bind(&mut engines[0], port);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let rows = log.rows();
    assert_eq!(rows.iter().map(|row| &*row.name).next(), Some("workers"));
    let away = rows[1].reason.as_deref();
    assert_eq!(away, Some("log.file: /dev/full: not a regular file; set another path in the configuration"));
    assert_eq!(rows[2].name, format!("syslog tcp {server}"));
    let before = std::time::Instant::now();
    log.end();
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    for entry in std::fs::read_dir(directory.join("spool")).unwrap() {
        assert!(entry.unwrap().metadata().unwrap().len() <= 1 << 20);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn bindings_are_listed_again_but_for_those_that_have_ended_since() {
    let directory = directory("listed");
    let mut engines = engines();
    let log = start(&log(&directory, &[LoggedEvent::Bindings]), &mut engines);
    list(&log, &mut engines);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while log.is_listing_due() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(10 * PAUSE);
    assert!(!log.is_listing_due());
    let row = |port| Listed {
        translator: 0,
        protocol: NatProtocol::Udp,
        softwire: None,
        inside: Endpoint6::new("2001:db8:1::9".parse().unwrap(), port),
        outside: Endpoint4::new("192.0.2.2".parse().unwrap(), port),
        is_static: false,
    };
    assert!(log.begin_listing());
    // In another turn of the thread, most probably.
    std::thread::sleep(10 * PAUSE);
    bind(&mut engines[0], 4_711);
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while !lines(&directory).iter().any(|line| line.contains("4711")) && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    log.list(vec![row(4_711), row(4_712)]).unwrap();
    assert!(log.end_listing(true));
    log.end();
    let lines = lines(&directory);
    let listed: Vec<_> = lines.iter().filter(|line| line.contains("2001:db8:1::9")).collect();
    assert!(listed.len() == 1 && listed[0].contains("192.0.2.2:4712"), "{lines:?}");
    std::fs::remove_dir_all(directory).unwrap();
}

/// A recorder with a ring of this size, a file, and the end for notes; it takes turns when the test says so.
fn recorder(
    directory: &Path,
    size: usize,
    wall: fn() -> u64,
) -> (Recorder, Box<dyn EventSink>, SyncSender<Part>) {
    let (sink, end) = ring("nat64".into(), size, Wants { sessions: false, each_binding: false });
    let ((_, notes), (part, parts)) = (sync_channel(NOTES), sync_channel(PARTS));
    let recorder = Recorder {
        rings: vec![end],
        notes,
        parts,
        held: VecDeque::new(),
        owed: vec![0],
        listing: Listing::new(vec!["nat64".into()], Continuing::new(Vec::new(), false)),
        due: Arc::default(),
        clock: Clock::start(),
        wall,
        watch: ClockWatch::default(),
        bindings: true,
        destinations: false,
        file: Some(FileSink::new(&EventLogFile { rotate_size: 1 << 30, ..file(directory) })),
        remotes: Vec::new(),
        workers: SinkState::new(WORKERS.into()),
    };
    (recorder, sink, part)
}

fn binding(port: u16) -> BindingEvent {
    BindingEvent {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), port)),
        outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port)),
        is_static: false,
    }
}

#[test]
fn what_the_rings_lost_is_counted_and_logged_and_the_bindings_are_listed_again() {
    let directory = directory("rings");
    let (mut recorder, mut sink, _part) = recorder(&directory, 3, micros);
    assert!(!recorder.due.load(Relaxed));
    for port in 0..10 {
        sink.record(recorder.clock.now(), NatEvent::BindingCreated(binding(port)));
    }
    assert_eq!((recorder.turn(), recorder.turn()), (4, 0));
    let lines = lines(&directory);
    assert_eq!(lines.len(), 4);
    let lost: Vec<_> = lines.iter().filter(|line| line.starts_with("events_lost\",\"count\":7,")).collect();
    assert!(lost.len() == 1 && lost[0].ends_with("\"sink\":\"workers\"}"), "{lines:?}");
    let row = recorder.workers.row();
    assert_eq!((row.written, row.lost, row.lost_seconds), (3, 7, Some(0)));
    assert!(recorder.due.load(Relaxed));
    std::fs::remove_dir_all(directory).unwrap();
}

/// A host makes many events; a binding that was listed ends behind them.
#[test]
fn a_listing_does_not_overtake_what_waits_in_a_ring() {
    let directory = directory("overtaken");
    let (mut recorder, mut sink, part) = recorder(&directory, 3 * TURN, micros);
    part.send(Part::Begin).unwrap();
    assert_eq!(recorder.turn(), 1);
    let row = |port| {
        let BindingEvent { protocol, softwire, inside, outside, is_static } = binding(port);
        Listed { translator: 0, protocol, softwire, inside: inside.0, outside: outside.0, is_static }
    };
    part.send(Part::Rows(vec![row(4_711), row(4_712)])).unwrap();
    for place in 0..2 * TURN {
        let port = 10_000 + (place % 1_000) as u16;
        sink.record(recorder.clock.now(), NatEvent::BindingCreated(binding(port)));
    }
    sink.record(recorder.clock.now(), NatEvent::BindingDeleted(binding(4_711)));
    part.send(Part::End(true)).unwrap();
    let mut turns = 0;
    while recorder.turn() > 0 {
        turns += 1;
        // The host does not cease: the listing is written all the same.
        if turns < 5 {
            (0..TURN)
                .for_each(|_| sink.record(recorder.clock.now(), NatEvent::BindingCreated(binding(10_000))));
        }
    }
    let listed: Vec<String> =
        lines(&directory).into_iter().filter(|line| line.starts_with("binding_continues")).collect();
    assert!(listed.len() == 1 && listed[0].contains("192.0.2.1:4712"), "{listed:?}");
    assert!(recorder.listing.is_idle());
    std::fs::remove_dir_all(directory).unwrap();
}

/// What is there at the start comes in parts while the workers run. Before, it was one list, and the rings were full until it was written.
#[test]
fn the_first_listing_is_written_in_parts_and_the_rings_are_emptied_in_between() {
    let directory = directory("parts");
    let (mut recorder, mut sink, part) = recorder(&directory, TURN, micros);
    let began = micros();
    let first = recorder.listing.begin_with_log(began, 20_000);
    recorder.begin(began, first);
    let row = |number: usize| {
        let BindingEvent { protocol, softwire, inside, outside, is_static } =
            binding(1_024 + (number % 20_000) as u16);
        Listed { translator: 0, protocol, softwire, inside: inside.0, outside: outside.0, is_static }
    };
    part.send(Part::Begin).unwrap();
    let (mut sent, mut turns, mut most) = (0, 0, 0);
    while sent < 20_000 {
        while sent < 20_000 && part.try_send(Part::Rows((sent..sent + 500).map(row).collect())).is_ok() {
            sent += 500;
        }
        // The workers do not wait: each turn finds a ring that is almost full.
        for _ in 0..TURN - 1 {
            sink.record(recorder.clock.now(), NatEvent::BindingCreated(binding(40_000)));
        }
        let before = lines(&directory).len();
        recorder.turn();
        most = most.max(lines(&directory).len() - before);
        turns += 1;
    }
    // A binding that is not listed yet ends: it was there when the log began.
    sink.record(recorder.clock.now(), NatEvent::BindingDeleted(binding(50_000)));
    part.send(Part::End(true)).unwrap();
    while recorder.turn() > 0 {}
    assert!(turns >= 20_000 / 500 / PARTS && most <= TURN + PARTS * 500, "{turns} {most}");
    assert_eq!(recorder.workers.row().lost, 0);
    let lines = lines(&directory);
    let continues = lines.iter().filter(|line| line.starts_with("binding_continues")).count();
    assert_eq!((lines[0].as_str(), continues), ("log_started\"}", 20_001));
    let ends: Vec<&String> = lines.iter().filter(|line| line.contains("192.0.2.1:50000")).collect();
    assert!(
        ends.len() == 2 && ends[0].starts_with("binding_continues") && ends[1].starts_with("binding_deleted"),
        "{ends:?}"
    );
    assert!(recorder.listing.is_idle());
    std::fs::remove_dir_all(directory).unwrap();
}

/// A process that ends before everything is listed says what is missing.
#[test]
fn a_log_that_ends_before_the_first_listing_says_how_many_bindings_are_missing() {
    let directory = directory("unlisted");
    let mut engines = engines();
    let log = start(&log(&directory, &[LoggedEvent::Bindings]), &mut engines);
    assert!(log.is_listing_due());
    log.end();
    let lines = lines(&directory);
    let starts = ["log_started\"", "events_lost\",\"count\":1,\"sink\":\"workers\"", "log_stopped\""];
    assert!(
        lines.len() == 3 && lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)),
        "{lines:?}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}

static WALL: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

#[test]
fn a_clock_that_is_set_is_a_record() {
    let directory = directory("clock");
    WALL.store(7_200_000_000, Relaxed);
    let (mut recorder, ..) = recorder(&directory, 3, || WALL.load(Relaxed) + micros() % 1_000);
    recorder.begin(WALL.load(Relaxed), Vec::new());
    assert_eq!(recorder.turn(), 0);
    WALL.store(3_600_000_000, Relaxed);
    assert_eq!((recorder.turn(), recorder.turn()), (1, 0));
    let last = lines(&directory).pop().unwrap();
    let by: i64 = last
        .strip_prefix("clock_stepped\",\"microseconds\":")
        .unwrap()
        .trim_end_matches('}')
        .parse()
        .unwrap();
    assert!((-3_610_000_000..-3_590_000_000).contains(&by), "{by}");
    std::fs::remove_dir_all(directory).unwrap();
}

/// What cannot be opened is away, and the gateway runs; once it can be opened, the log has its beginning, what is missing, and the bindings.
#[test]
fn a_log_that_cannot_be_opened_is_away_until_it_can() {
    let directory = directory("away");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("events.jsonl");
    std::fs::create_dir(&path).unwrap();
    let mut config = log(&directory, &[LoggedEvent::Bindings]);
    std::fs::write(&config.spool, "in the way").unwrap();
    config.syslog.push(SyslogServer {
        server: "127.0.0.1:9".parse().unwrap(),
        transport: LogTransport::Tls,
        facility: Facility::Local0,
        name: Some("log.example".into()),
        ca: Some(directory.join("missing.pem")),
    });
    let said = super::super::check::faults(&config, "gw");
    assert!(
        said.len() == 3 && said[0].starts_with("log.file: ") && said[1].starts_with("log.spool: "),
        "{said:?}"
    );
    assert!(said[2].starts_with("log.syslog: 127.0.0.1:9: ") && said[2].contains("missing.pem"), "{said:?}");
    let mut engines = engines();
    let log = start(&config, &mut engines);
    list(&log, &mut engines);
    bind(&mut engines[0], 4_711);
    let until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(std::time::Instant::now() < until, "{what}: {:?}", log.rows());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until("it is away", &mut || {
        let rows = log.rows();
        rows[1].lost == 3
            && rows[1].reason.as_ref().is_some_and(|why| why.starts_with("log.file: "))
            && rows[2].reason.as_ref().is_some_and(|why| why.contains("missing.pem"))
    });
    std::fs::remove_dir(&path).unwrap();
    until("it is there", &mut || log.rows()[1].away_seconds.is_none() && log.is_listing_due());
    log.end();
    let lines = lines(&directory);
    let starts = ["log_started\"", "events_lost\",\"count\":3", "log_stopped\""];
    assert!(
        lines.len() == 3 && lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)),
        "{lines:?}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}

/// Programs that rotate logs: without a signal, lines go to the new file, none is lost, and the bindings are listed again.
#[test]
fn a_file_that_is_moved_or_cut_is_begun_again() {
    let directory = directory("moved");
    let (mut recorder, mut sink, _part) = recorder(&directory, 9, micros);
    let path = directory.join("events.jsonl");
    let mut made = |recorder: &mut Recorder, port| {
        sink.record(recorder.clock.now(), NatEvent::BindingCreated(binding(port)));
        recorder.turn();
    };
    made(&mut recorder, 1);
    std::fs::rename(&path, directory.join("events.jsonl.1")).unwrap();
    std::fs::write(&path, "").unwrap();
    made(&mut recorder, 2);
    assert!(recorder.due.load(Relaxed));
    std::fs::remove_file(&path).unwrap();
    made(&mut recorder, 3);
    std::fs::copy(&path, directory.join("copy")).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    made(&mut recorder, 4);
    let text = std::fs::read(&path).unwrap();
    assert!(!text.contains(&0), "there is nothing before it");
    let found = lines(&directory);
    assert!(found.len() == 1 && found[0].contains("192.0.2.1:4\""), "{found:?}");
    let lost = recorder.file.as_ref().unwrap().state().row().lost;
    assert_eq!(lost, 0);
    std::fs::remove_dir_all(directory).unwrap();
}

/// Two gateways with one file: the second one waits until the first has ended.
#[test]
fn a_second_gateway_does_not_write_into_the_file_of_the_first() {
    let directory = directory("second");
    let config = log(&directory, &[LoggedEvent::Bindings]);
    let (mut engines, mut others) = (engines(), engines());
    let one = start(&config, &mut engines);
    list(&one, &mut engines);
    let other = start(&config, &mut others);
    list(&other, &mut others);
    let reason = other.rows()[1].reason.clone().unwrap();
    assert!(
        reason.ends_with("another process writes it; end that, or set another path in the configuration"),
        "{reason}"
    );
    one.end();
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while other.rows()[1].away_seconds.is_some() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    other.end();
    let lines = lines(&directory);
    let starts =
        ["log_started", "binding_continues", "log_stopped", "log_started", "events_lost", "log_stopped"];
    assert!(
        lines.len() == 6 && lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)),
        "{lines:?}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}
