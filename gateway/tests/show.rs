//! What `sixway show` prints, letter by letter.

use sixway::show::{self, Colour};
use sixway::view::{
    AdvertisedRow, BindingRow, CounterRow, Device, Dns64Row, DropRow, FastPathShare, HostRow, MappingsRow,
    MechanismRow, Page, Rates, RestoredRow, RouterAdvertisementRow, SessionRow, SixRdRow, Status,
};

fn session() -> SessionRow {
    SessionRow {
        softwire: None,
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
        device: Some(Device { name: "sixway0".into(), mtu: 1_500, queues: 2, gso: "TCP, UDP".into() }),
        rates: Rates {
            bits: 1.2e9,
            packets: 412_000.0,
            frames: 100_000.0,
            drops: 2.0,
            top_reason: Some("NoBinding".into()),
        },
        fast_path: Some(FastPathShare { share: Some(0.973), ..FastPathShare::default() }),
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
                ..MechanismRow::default()
            },
            MechanismRow {
                name: "siit".into(),
                serves: "2001:db8:64::/96".into(),
                frames: 13_902.0,
                stateful: false,
                sessions: 0,
                bindings: 0,
                bindings_capacity: 0,
                ..MechanismRow::default()
            },
        ],
        dns64: Some(Dns64Row {
            serves: "[2001:db8:1::1]:53".into(),
            queries_per_second: 1_204.0,
            cache_hit_ratio: Some(0.92),
            cache_answers: 38_112,
            ..Dns64Row::default()
        }),
        metrics: None,
        host: Some(HostRow::default()),
        ..Status::default()
    };
    assert_eq!(
        show::summary(&status, Colour::Never),
        "gw1 · up 3 d 4 h · 1.2 Gbit/s · 412 kpackets/s · fast path 97.3 % · drops 0.002 %, mostly NoBinding\n\
         sixway0 · MTU 1500 · 2 workers · 2 queues · GSO: TCP, UDP\n\
         MECHANISM  SERVES                    FRAMES/S   STATE\n\
         nat64      64:ff9b::/96 ⇄ pool main  398,112    212,004 sessions · 61,220 bindings\n\
         siit       2001:db8:64::/96          13,902     stateless\n\
         dns64      [2001:db8:1::1]:53        1,204 q/s  cache 92 % · 38,112 answers\n"
    );
}

#[test]
fn the_summary_has_mappings_and_the_queries_that_got_none() {
    let refused = [("pool_empty", 3), ("client_limit", 2), ("unproven", 50), ("not_server", 60)];
    let mappings = |refused: &[(&str, u64)]| MappingsRow {
        refused: refused.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
        ..MappingsRow::default()
    };
    let text = |refused: &[(&str, u64)]| {
        let mechanism = MechanismRow {
            name: "nat46".into(),
            bindings: 12,
            bindings_capacity: 65_536,
            mappings: Some(mappings(refused)),
            ..MechanismRow::default()
        };
        show::summary(&Status { mechanisms: vec![mechanism], ..Status::default() }, Colour::Never)
    };
    assert!(text(&refused).contains("12 of 65,536 mappings · 5 refused\n"), "{}", text(&refused));
    assert!(text(&refused[2..]).contains("12 of 65,536 mappings\n"), "{}", text(&refused[2..]));
}

#[test]
fn the_summary_says_what_other_programs_changed() {
    let row = |what: &str, times| RestoredRow { what: what.into(), times };
    let host = HostRow {
        restored: vec![row("device", 1), row("sysctl", 0), row("packet_filter", 1_200)],
        left_alone: vec!["routes into sixway0".into()],
    };
    let status = Status { name: "gw1".into(), host: Some(host), ..Status::default() };
    let text = show::summary(&status, Colour::Never);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "restored, after other programs changed it: device (1), packet filter (1,200)");
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
        "PROTO  INSIDE                 OUTSIDE          REMOTE           STATE        IDLE  ENDS IN   PACKETS OUT/IN  PATH\n\
         tcp    [2001:db8:1::2]:50122  192.0.2.3:41022  203.0.113.2:443  established  2 s   2 h 4 m   1,204/2,110     engine\n\
         udp    [2001:db8:1::2]:50122  192.0.2.3:41022  203.0.113.2:443  open         –     4 m 59 s  –/–             engine\n\
         2 of 212,004 (more: --limit)\n"
    );
}

#[test]
fn mappings_of_nat46_say_which_server_they_lead_to() {
    let row = BindingRow {
        mechanism: "nat46".into(),
        worker: 0,
        protocol: "any".into(),
        softwire: None,
        inside: "10.0.0.5".into(),
        outside: "192.168.46.7".into(),
        kind: "dynamic".into(),
        sessions: 0,
        server: Some("2001:db8:80::1".into()),
    };
    assert_eq!(
        show::bindings(&Page { rows: vec![row], total: 1, next: None }, Colour::Never),
        "PROTO  INSIDE    OUTSIDE       KIND     SESSIONS  MECHANISM  WORKER  SERVER\n\
         any    10.0.0.5  192.168.46.7  dynamic  0         nat46      0       2001:db8:80::1\n\
         1 of 1\n"
    );
}

#[test]
fn bindings_say_how_they_came_about() {
    let row = BindingRow {
        softwire: None,
        mechanism: "nat64-0".into(),
        worker: 1,
        protocol: "tcp".into(),
        inside: "[2001:db8::80]:80".into(),
        outside: "192.0.2.1:80".into(),
        kind: "static".into(),
        sessions: 3,
        server: None,
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
        answer: "none".into(),
        ..DropRow::default()
    };
    let rows =
        [row("Igmp", 0, None), row("HopLimitExceeded", 112, Some(41.0)), row("NoBinding", 18_211, Some(0.2))];
    assert_eq!(
        show::drops(&rows, Colour::Never),
        "REASON            COUNT   LAST   MEANING                           RESPONSE\n\
         NoBinding         18,211  0.2 s  NoBinding, in a sentence.         none\n\
         HopLimitExceeded  112     41 s   HopLimitExceeded, in a sentence.  none\n"
    );
    assert_eq!(show::drops(&rows[..1], Colour::Never), "No packets were dropped.\n");
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
        "COUNTER   VALUE  DESCRIPTION\nreceived  7      Frames received.\n"
    );
    assert_eq!(
        show::counters(&[row(&[7, 1_000])], Colour::Never),
        "COUNTER   VALUE  WORKER 0  WORKER 1  DESCRIPTION\n\
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

#[test]
fn six_rd_domains_show_the_delegated_prefix_or_that_there_is_none_yet() {
    let edge = SixRdRow {
        name: "home".into(),
        role: "customer_edge".into(),
        prefix: "2001:db8::/32".into(),
        ipv4_mask_length: 8,
        ipv4_common: Some("10.0.0.0/8".into()),
        address: Some("10.100.100.1".into()),
        delegated: Some("2001:db8:6464:100::/56".into()),
        border_relays: vec!["10.0.0.1".into()],
    };
    let waiting = SixRdRow { ipv4_common: None, address: None, delegated: None, ..edge.clone() };
    assert_eq!(
        show::six_rd(&[edge, waiting], Colour::Never),
        "NAME  ROLE           6RD PREFIX     IPV4 COMMON  ADDRESS       DELEGATED PREFIX        BORDER RELAYS\n\
         home  customer edge  2001:db8::/32  10.0.0.0/8   10.100.100.1  2001:db8:6464:100::/56  10.0.0.1\n\
         home  customer edge  2001:db8::/32  /8           –             –                       10.0.0.1\n"
    );
    assert_eq!(show::six_rd(&[], Colour::Never), "No 6rd domain is configured.\n");
}

#[test]
fn router_advertisements_show_what_is_said_and_what_is_withdrawn() {
    let prefix = |text: &str, deprecated| AdvertisedRow {
        prefix: text.into(),
        valid_seconds: 5_400,
        preferred_seconds: 2_700,
        deprecated,
    };
    let row = RouterAdvertisementRow {
        link: "eth1".into(),
        state: "advertises".into(),
        source: Some("fe80::1".into()),
        router_lifetime_seconds: 1_800,
        prefixes: vec![prefix("2002:c000:202:1::/64", false), prefix("2002:c000:201:1::/64", true)],
        pref64: Some("64:ff9b::/96".into()),
        multicast: 12,
        unicast: 3,
        solicitations: 4,
        ..RouterAdvertisementRow::default()
    };
    assert_eq!(
        show::router_advertisements(&[row], Colour::Never),
        "LINK  STATE       SOURCE   LIFETIME  MULTICAST/UNICAST  SOLICITATIONS  CONTENT\n\
         eth1  advertises  fe80::1  30 m      12/3               4              2002:c000:202:1::/64 for 1 h 30 m (45 m preferred) · \
         2002:c000:201:1::/64 deprecated · NAT64 64:ff9b::/96\n"
    );
}

/// What `sixway` says to standard output, or to standard error, and its exit status.
fn sixway(arguments: &[&str]) -> (String, i32) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sixway")).args(arguments).output().unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    (String::from_utf8(said).unwrap(), output.status.code().unwrap())
}

#[test]
fn six_rd_prefixes_and_addresses_are_computed_off_line() {
    let prefix = ["six-rd", "prefix", "--prefix", "2001:db8::/32"];
    let with = |more: &[&'static str]| sixway(&[&prefix[..], more].concat());
    // RFC 5969 §7.1.1.
    assert_eq!(with(&["--mask-length", "8", "10.100.100.1"]), ("2001:db8:6464:100::/56\n".into(), 0));
    assert_eq!(with(&["--mask-length", "0", "192.0.2.1"]), ("2001:db8:c000:201::/64\n".into(), 0));
    assert_eq!(
        with(&["--common", "10.0.0.0/8", "--json", "10.0.0.1"]).0,
        "{\"prefix\":\"2001:db8:0:100::/56\"}\n"
    );
    assert_eq!(with(&["--common", "10.0.0.0/8", "192.0.2.1"]).1, 2);
    let address = ["six-rd", "address", "--prefix", "2001:db8::/32"];
    let with = |more: &[&'static str]| sixway(&[&address[..], more].concat());
    assert_eq!(with(&["--common", "10.0.0.0/8", "2001:db8:6464:100::7"]), ("10.100.100.1\n".into(), 0));
    assert_eq!(with(&["--mask-length", "0", "2001:db8:c000:201::7"]), ("192.0.2.1\n".into(), 0));
    assert_eq!(with(&["2001:db9::1"]).1, 2);
    let (said, status) = with(&["--mask-length", "8", "2001:db8:6464:100::7"]);
    assert_eq!((said.contains("--common is required"), status), (true, 2), "{said}");
}
