//! From engines to the sinks.

use super::*;
use crate::config::{EventLogFile, Facility, IpfixCollector};
use sixway_dataplane::nat::{Inside, NatProtocol, Outside, PortlessEvent, StaticBinding};
use sixway_wire::{Endpoint4, Endpoint6};
use std::net::Ipv4Addr;
use std::path::PathBuf;

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
    let source = Source { engines, translators, clock: Clock::start(), gateway: "gw", confine };
    EventLog::start(config, source).unwrap()
}

fn lines(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    text.lines().map(|line| line.split_once("\"event\":\"").unwrap().1.to_owned()).collect()
}

/// A static binding at run time, which is an event like another.
fn bind(engine: &mut Engine, port: u16) {
    let binding = StaticBinding {
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
    let refused = {
        let (translators, confine): (_, fn()) = (&["nat64".to_owned()][..], || {});
        let source =
            Source { engines: &mut engines(), translators, clock: Clock::start(), gateway: "gw", confine };
        EventLog::start(&config, source).unwrap_err()
    };
    assert_eq!(refused, "log.file: /dev/full: not a regular file; write another path");
    config.file = None;
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
    assert_eq!(rows[1].name, format!("syslog tcp {server}"));
    log.end();
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
    assert!(!log.is_listing_due());
    let row = |port| Listed {
        translator: 0,
        protocol: NatProtocol::Udp,
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
    assert!(log.end_listing());
    log.end();
    let lines = lines(&directory);
    let listed: Vec<_> = lines.iter().filter(|line| line.contains("2001:db8:1::9")).collect();
    assert!(listed.len() == 1 && listed[0].contains("192.0.2.2:4712"), "{lines:?}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_the_rings_lost_is_counted_and_logged() {
    let directory = directory("rings");
    let (mut sink, end) = ring("nat64".into(), 3, false);
    let (note, notes) = sync_channel(NOTES);
    let mut recorder = Recorder {
        rings: vec![end],
        notes,
        listing: Listing::new(Vec::new()),
        due: Arc::default(),
        clock: Clock::start(),
        bindings: true,
        destinations: false,
        file: Some(JsonLines::open(&file(&directory)).unwrap()),
        remotes: Vec::new(),
        workers: SinkState::new(WORKERS.into()),
    };
    for port in 0..10 {
        let event = BindingEvent {
            protocol: NatProtocol::Udp,
            inside: Inside(Endpoint6::new("2001:db8::1".parse().unwrap(), port)),
            outside: Outside(Endpoint4::new("192.0.2.1".parse().unwrap(), port)),
            is_static: false,
        };
        sink.record(recorder.clock.now(), NatEvent::BindingCreated(event));
    }
    assert_eq!((recorder.turn(), recorder.turn()), (4, 0));
    let lines = lines(&directory);
    assert_eq!(lines.len(), 4);
    let lost: Vec<_> = lines.iter().filter(|line| line.starts_with("events_lost\",\"count\":7,")).collect();
    assert!(lost.len() == 1 && lost[0].ends_with("\"sink\":\"workers\"}"), "{lines:?}");
    let row = recorder.workers.row();
    assert_eq!((row.written, row.lost, row.lost_seconds), (3, 7, Some(0)));
    drop(note);
    std::fs::remove_dir_all(directory).unwrap();
}
