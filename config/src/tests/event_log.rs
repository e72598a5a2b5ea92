//! `[log]`.

use super::*;

const LOG: &str = "[log]\n[log.file]\npath = \"/var/log/sixway/events.jsonl\"\n";

fn log(section: &str) -> EventLog {
    let text = format!("{OWN}{POOL}{NAT64}{section}\n");
    let (config, warnings) = parse(&text).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}"));
    assert_eq!(lines(&warnings), Vec::<String>::new());
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config, "what is written is what was read");
    config.event_log.unwrap()
}

#[test]
fn without_the_section_nothing_is_logged() {
    let (config, _) = parse(&format!("{OWN}{POOL}{NAT64}")).unwrap();
    assert_eq!(config.event_log, None);
}

#[test]
fn a_file_alone_has_bindings_and_limits_and_is_not_for_everyone() {
    let found = log(LOG);
    assert_eq!(found.events, [LoggedEvent::Bindings, LoggedEvent::Limits]);
    assert!(found.has(LoggedEvent::Limits) && !found.has(LoggedEvent::Sessions));
    let file = found.file.unwrap();
    assert_eq!(file.path, Path::new("/var/log/sixway/events.jsonl"));
    assert_eq!((file.mode, file.owner, file.group), (0o640, None, None));
    assert_eq!((file.rotate_size, file.rotate_keep), (128 << 20, 100));
    assert_eq!((found.spool.as_path(), found.spool_size), (Path::new("/var/lib/sixway/spool"), 64 << 20));
}

#[test]
fn servers_and_collectors_have_their_usual_ports() {
    let found = log(concat!(
        "[log]\nevents = [\"bindings\", \"sessions\", \"destinations\"]\n",
        "[[log.syslog]]\nserver = \"192.0.2.5\"\n",
        "[[log.syslog]]\nserver = \"[2001:db8::5]:5514\"\ntransport = \"tcp\"\nfacility = \"local7\"\n",
        "[[log.syslog]]\nserver = \"192.0.2.7\"\ntransport = \"tls\"\nname = \"log.example\"\n",
        "[[log.ipfix]]\ncollector = \"2001:db8::6\"\nobservation_domain = 4294967295\n",
    ));
    let [one, other, secured] = &found.syslog[..] else { panic!("{found:?}") };
    assert_eq!((secured.server.port(), secured.name.as_deref()), (6_514, Some("log.example")));
    assert_eq!((one.server, one.transport), ("192.0.2.5:514".parse().unwrap(), LogTransport::Udp));
    assert_eq!((one.facility, one.facility.number()), (Facility::Local0, 16));
    assert_eq!((other.server, other.transport), ("[2001:db8::5]:5514".parse().unwrap(), LogTransport::Tcp));
    assert_eq!((other.facility.number(), Facility::Daemon.number()), (23, 3));
    let [collector] = &found.ipfix[..] else { panic!("{found:?}") };
    assert_eq!(collector.collector, "[2001:db8::6]:4739".parse().unwrap());
    assert_eq!((collector.transport, collector.observation_domain), (LogTransport::Udp, u32::MAX));
}

#[test]
fn what_is_wrong_is_said_with_what_mends_it() {
    let before = |section: &str| format!("{NAT64}{section}");
    let text = format!("{OWN}{POOL}{NAT64}[log]\n");
    faults(&text, &["sixway.toml:10  log  writes nothing; add [log.file], [[log.syslog]] or [[log.ipfix]]"]);
    let file = before("[log]\n[log.file]\npath = \"a\"\n");
    for mode in ["0750", "rw", "0440", "8", "0666", "0642"] {
        let said = "is not a valid mode; write one in octal, such as \"0640\", that lets the owner write and others not";
        fault_in(&file, &format!("mode = \"{mode}\""), &format!("log.file.mode = \"{mode}\"  {said}"));
    }
    let syslog = before("[log]\n[[log.syslog]]\n");
    fault_in(
        &syslog,
        "server = \"192.0.2.5:0\"",
        "log.syslog[0].server = \"192.0.2.5:0\"  has port 0; write 1 to 65535",
    );
    let unicast = "is not a valid server address; write a unicast address";
    fault_in(&syslog, "server = \"224.0.0.1\"", &format!("log.syslog[0].server = \"224.0.0.1\"  {unicast}"));
    let certificate = "applies only to certificates; set transport = \"tls\", or remove it";
    for line in ["name = \"log.example\"", "ca = \"ca.pem\""] {
        let section = before("[log]\n[[log.syslog]]\nserver = \"192.0.2.5\"\n");
        fault_in(&section, line, &format!("log.syslog[0].{line}  {certificate}"));
    }
    let tls = before("[log]\n[[log.syslog]]\nserver = \"192.0.2.5\"\ntransport = \"tls\"\n");
    let name = "log.syslog[0].name = \"a b\"  is not a valid server name; write one such as log.example";
    fault_in(&tls, "name = \"a b\"", name);
    let without = parse(&format!("{OWN}{POOL}{tls}")).unwrap_err().to_string();
    assert!(
        without.contains("log.syslog[0].name  is missing: it is compared with the certificate"),
        "{without}"
    );
    let ipfix = before("[log]\n[[log.ipfix]]\ncollector = \"192.0.2.6\"\n");
    let tls = "log.ipfix[0].transport = \"tls\"  is not supported for IPFIX; write \"udp\" or \"tcp\"";
    fault_in(&ipfix, "transport = \"tls\"", tls);
    let events = before("[log]\nfile = { path = \"a\" }\n");
    let alone = "has \"destinations\" without \"sessions\", which they are part of; add \"sessions\"";
    fault_in(&events, "events = [\"destinations\"]", &format!("log.events  {alone}"));
    fault_in(
        &events,
        "events = []",
        "log.events  is empty; write what is to be logged, such as [\"bindings\"]",
    );
    let rows = "[[log.ipfix]]\ncollector = \"192.0.2.6\"\n".repeat(9);
    let found = parse(&format!("{OWN}{POOL}{NAT64}[log]\n{rows}")).unwrap_err();
    assert!(found.to_string().contains("are 9; 8 at most"), "{found}");
}

#[test]
fn a_server_is_named_once_for_each_transport() {
    let list = |kind: &str, rows: &[&str]| -> String {
        rows.iter().map(|row| format!("[[log.{kind}]]\n{row}\n")).collect()
    };
    let rows = [
        "server = \"192.0.2.5\"",
        "server = \"192.0.2.5\"\ntransport = \"tcp\"",
        "server = \"192.0.2.5:515\"",
    ];
    assert_eq!(log(&format!("[log]\n{}", list("syslog", &rows))).syslog.len(), 3);
    let twice = list("syslog", &[rows[0], rows[1], "server = \"192.0.2.5:514\"\nfacility = \"local7\""]);
    let text = format!("{OWN}{POOL}{NAT64}[log]\n{twice}");
    let said = "sixway.toml:10  log.syslog[2].server  is 192.0.2.5:514 by udp, as syslog[0]; remove one of them, or set another transport or port";
    faults(&text, &[said]);
    let twice = list(
        "ipfix",
        &["collector = \"2001:db8::6\"", "collector = \"2001:db8::6\"\nobservation_domain = 7"],
    );
    let found = parse(&format!("{OWN}{POOL}{NAT64}[log]\n{twice}")).unwrap_err().to_string();
    assert!(found.contains("log.ipfix[1].collector  is [2001:db8::6]:4739 by udp, as ipfix[0]"), "{found}");
}

#[test]
fn a_log_without_a_translator_is_told() {
    let siit = "[siit]\nprefix = \"2001:db8:65::/96\"\n";
    let said = "sixway.toml:6  log  logs nothing: there is no [nat64], no [nat44], no [[realm]], no AFTR and no concentrator of 4over6; remove it";
    warnings(&format!("{OWN}{siit}{LOG}"), &[said]);
}
