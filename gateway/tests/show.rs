//! What `sixway show` prints, letter by letter.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

use sixway::admin::{BindingRow, CounterRow, Device, DropRow, MechanismRow, Page, Rates, SessionRow, Status};
use sixway::show::{self, Colour};

fn session() -> SessionRow {
    SessionRow {
        mechanism: "nat64-0".into(),
        worker: 0,
        protocol: "tcp".into(),
        inside: "[2001:db8:1::2]:50122".into(),
        outside: "192.0.2.3:41022".into(),
        remote: "203.0.113.2:443".into(),
        state: "established".into(),
        idle_seconds: Some(2),
        ends_in_seconds: 7_440,
        packets_out: Some(1_204),
        packets_in: Some(2_110),
        octets_out: Some(96_320),
        octets_in: Some(2_532_000),
        path: "engine".into(),
    }
}

#[test]
fn the_summary_has_two_lines_and_a_row_for_each_mechanism() {
    let status = Status {
        name: "gw1".into(),
        version: "0.1.0".into(),
        uptime_seconds: 273_600,
        workers: 2,
        device: Device { name: "sixway0".into(), mtu: 1_500, queues: 2, super_frames: "TCP, UDP".into() },
        rates: Rates {
            bits: 1.2e9,
            packets: 412_000.0,
            frames: 100_000.0,
            drops: 2.0,
            top_reason: Some("NoBinding".into()),
        },
        sessions: 212_004,
        bindings: 61_220,
        mechanisms: vec![
            MechanismRow {
                name: "nat64".into(),
                serves: "64:ff9b::/96 ⇄ pool main".into(),
                frames: 398_112.0,
                stateful: true,
                sessions: 212_004,
                bindings: 61_220,
                bindings_capacity: 903_168,
            },
            MechanismRow {
                name: "siit".into(),
                serves: "2001:db8:64::/96".into(),
                frames: 13_902.0,
                stateful: false,
                sessions: 0,
                bindings: 0,
                bindings_capacity: 0,
            },
        ],
        metrics: None,
    };
    assert_eq!(
        show::summary(&status, Colour::Never),
        "gw1 · up 3 d 4 h · 1.2 Gbit/s · 412 kpackets/s · drops 0.002 %, most of them NoBinding\n\
         sixway0 · MTU 1500 · 2 workers · 2 queues · super-frames: TCP, UDP\n\
         MECHANISM  SERVES                    FRAMES/S  STATE\n\
         nat64      64:ff9b::/96 ⇄ pool main  398,112   212,004 sessions · 61,220 bindings\n\
         siit       2001:db8:64::/96          13,902    stateless\n"
    );
}

#[test]
fn sessions_stand_in_columns_and_the_last_line_says_how_many_there_are() {
    let udp = SessionRow {
        protocol: "udp".into(),
        state: "open".into(),
        idle_seconds: None,
        ends_in_seconds: 299,
        packets_out: None,
        packets_in: None,
        ..session()
    };
    let page = Page { rows: vec![session(), udp], total: 212_004, next: Some("0-0-17".into()) };
    assert_eq!(
        show::sessions(&page, Colour::Never),
        "PROTO  INSIDE                 OUTSIDE          REMOTE           STATE        IDLE  ENDS IN  PACKETS OUT/IN  PATH\n\
         tcp    [2001:db8:1::2]:50122  192.0.2.3:41022  203.0.113.2:443  established  2 s   2 h 4 m  1,204/2,110     engine\n\
         udp    [2001:db8:1::2]:50122  192.0.2.3:41022  203.0.113.2:443  open         –     4 m 59   –/–             engine\n\
         2 of 212,004 (more: --limit)\n"
    );
}

#[test]
fn bindings_say_how_they_came_about() {
    let row = BindingRow {
        mechanism: "nat64-0".into(),
        worker: 1,
        protocol: "tcp".into(),
        inside: "[2001:db8::80]:80".into(),
        outside: "192.0.2.1:80".into(),
        kind: "static".into(),
        sessions: 3,
    };
    assert_eq!(
        show::bindings(&Page { rows: vec![row], total: 1, next: None }, Colour::Never),
        "PROTO  INSIDE             OUTSIDE       KIND    SESSIONS  MECHANISM  WORKER\n\
         tcp    [2001:db8::80]:80  192.0.2.1:80  static  3         nat64-0    1\n\
         1 of 1\n"
    );
}

#[test]
fn drops_are_sorted_and_what_never_occurred_is_left_out() {
    let row = |reason: &str, count, last_seconds| DropRow {
        reason: reason.into(),
        count,
        last_seconds,
        help: format!("{reason}, in a sentence."),
        answer: "silence".into(),
    };
    let rows =
        [row("Igmp", 0, None), row("HopLimitExceeded", 112, Some(41.0)), row("NoBinding", 18_211, Some(0.2))];
    assert_eq!(
        show::drops(&rows, Colour::Never),
        "REASON            COUNT   LAST   WHAT IT MEANS                    ANSWERED WITH\n\
         NoBinding         18,211  0.2 s  NoBinding, in a sentence.         silence\n\
         HopLimitExceeded  112     41 s   HopLimitExceeded, in a sentence.  silence\n"
            .replace("MEANS                    A", "MEANS                     A")
    );
    assert_eq!(show::drops(&rows[..1], Colour::Never), "Nothing was dropped.\n");
}

#[test]
fn counters_have_a_column_for_each_worker_if_there_are_several() {
    let row = |by_worker: &[u64]| CounterRow {
        name: "received".into(),
        help: "Frames received.".into(),
        value: by_worker.iter().sum(),
        by_worker: by_worker.into(),
    };
    assert_eq!(
        show::counters(&[row(&[7])], Colour::Never),
        "COUNTER   VALUE  WHAT IT COUNTS\nreceived  7      Frames received.\n"
    );
    assert_eq!(
        show::counters(&[row(&[7, 1_000])], Colour::Never),
        "COUNTER   VALUE  WORKER 0  WORKER 1  WHAT IT COUNTS\n\
         received  1,007  7         1,000     Frames received.\n"
    );
}

#[test]
fn only_titles_are_coloured() {
    let page = Page { rows: vec![session()], total: 1, next: None };
    let text = show::sessions(&page, Colour::Ansi);
    assert!(text.starts_with("\x1b[1mPROTO"));
    assert_eq!(text.matches('\x1b').count(), 2);
}
