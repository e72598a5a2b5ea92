//! The event log with real servers: rsyslog and syslog-ng take its messages, nfcapd its IPFIX, and `sixway nat who` its file.

use crate::{Interop, SYSLOG_NG};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{run_sixway, show, take_over};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

pub const TESTS: &[Interop] = &[
    Interop::new("event_log_names_the_host_that_had_a_port_across_processes", &["sixway"], names_the_host),
    Interop::new("event_log_is_taken_by_rsyslog_over_udp_and_tcp", &["sixway", "rsyslogd"], rsyslog),
    Interop::new("event_log_is_taken_by_syslog_ng", &["sixway", SYSLOG_NG], syslog_ng),
    Interop::new("event_log_is_taken_over_tls_by_openssl", &["sixway", "openssl", "python3"], over_tls),
    Interop::new("event_log_waits_for_a_server_that_is_away", &["sixway", "rsyslogd"], away),
    Interop::new("event_log_that_cannot_be_written_does_not_stop_a_takeover", &["sixway"], unwritable),
    Interop::new("event_log_is_decoded_by_nfcapd", &["sixway", "nfcapd", "nfdump"], nfcapd),
    Interop::new(
        "event_log_of_refusals_is_decoded_by_nfcapd",
        &["sixway", "nfcapd", "nfdump"],
        nfcapd_with_limits,
    ),
];

const SERVER: &str = "203.0.113.2";
const PATIENCE: Duration = Duration::from_secs(20);

/// A NAT44 and a NAT64, and this log.
fn configuration(log: &str) -> String {
    format!(
        r#"[gateway]
ipv4_address = "192.0.2.30"
ipv6_address = "2001:db8:ffff::fe"
workers = 2

[[pool]]
name = "four"
addresses = ["192.0.2.0/29"]

[[pool]]
name = "six"
addresses = ["192.0.2.16/29"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "four"

[nat64]
prefix = "2001:db8:64::/96"
inside = ["2001:db8:1::/64"]
pool = "six"
translate_non_global = true

{log}"#
    )
}

/// A host of both families, the gateway, and an IPv4 server.
fn network() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("client", "up0", "192.168.1.2/24"),
        ("client", "up0", "2001:db8:1::2/64"),
        ("gateway", "in0", "192.168.1.1/24"),
        ("gateway", "in0", "2001:db8:1::1/64"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 192.168.1.1")?;
    network.route("client", "default via 2001:db8:1::1")?;
    network.route("gateway", "default via 203.0.113.2")?;
    network.route("server", "192.0.2.0/27 via 203.0.113.1")?;
    network.forwards("gateway")?;
    Ok(network)
}

/// The client sends a datagram from this port, by NAT44 or NAT64.
fn sends(network: &Network, port: u16, by_nat64: bool) -> Result<()> {
    let (own, server) = match by_nat64 {
        true => ("[::]", "[2001:db8:64::203.0.113.2]:9"),
        false => ("0.0.0.0", "203.0.113.2:9"),
    };
    network
        .host("client")?
        .enter(|| {
            UdpSocket::bind(format!("{own}:{port}")).and_then(|socket| socket.send_to(b"hello", server))
        })?
        .asking(|| format!("sending a datagram from port {port}"))?;
    Ok(())
}

/// Waits until a file has these words in a line; the line.
pub fn line(path: &Path, words: &[&str]) -> Result<String> {
    let mut found = None;
    interrupt::wait_until(PATIENCE, &format!("{words:?} in {}", path.display()), || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        found = text.lines().find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned);
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| Failure::Unexpected(format!("no line with {words:?}")))
}

/// What a line of the log says under a name.
pub fn value(line: &str, name: &str) -> Result<String> {
    let value: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let text = value[name].as_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Unexpected(format!("no {name} in {line}")))
}

/// What `sixway nat who` answers.
pub fn who(log: &Path, protocol: &str, outside: &str, at: &str) -> Result<serde_json::Value> {
    let mut who = Command::new(sixway()?);
    who.args(["nat", "who", outside, "--protocol", protocol, "--at", at, "--json", "--log"]).arg(log);
    let output = who.output().asking(|| "running sixway nat who".to_owned())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).map_err(|_| {
        Failure::Unexpected(format!("sixway nat who: {text}{}", String::from_utf8_lossy(&output.stderr)))
    })
}

/// Seconds since 1970 as a question has them.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut date = Command::new("date");
    date.args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"]);
    date.output().map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default()
}

fn names_the_host() -> Result<()> {
    let network = network()?;
    let log = network.folder().join("log").join("events.jsonl");
    let section = format!("[log]\n[log.file]\npath = {log:?}\nmode = \"0600\"\n");
    let gateway = run_sixway(&network, &configuration(&section))?;
    line(&log, &["log_started"])?;
    for by_nat64 in [false, true] {
        sends(&network, 4_711, by_nat64)?;
    }
    let [of4, of6] = [
        line(&log, &["binding_created", "192.168.1.2:4711", "\"nat44\""])?,
        line(&log, &["binding_created", "[2001:db8:1::2]:4711", "\"nat64\""])?,
    ];
    let mode = std::fs::metadata(&log).asking(|| "looking at the log".to_owned())?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::thread::sleep(Duration::from_secs(1));
    let then = now();
    // As logrotate does it: the file gets another name, and the process is to open it again.
    let moved = network.folder().join("log").join("events.jsonl.00000001");
    std::fs::rename(&log, &moved).asking(|| "moving the log".to_owned())?;
    network.with_process(gateway, |process| process.signal(nix::sys::signal::Signal::SIGHUP))?;
    line(&log, &["binding_continues", "192.168.1.2:4711"])?;
    // What was written after the move is in the new file.
    line(&log, &["log_stopped"])?;
    let other = configuration(&section);
    take_over(&network, &other)?;
    sends(&network, 4_712, false)?;
    line(&log, &["binding_created", "192.168.1.2:4712"])?;
    // The bindings are listed while packets pass.
    interrupt::wait_until(PATIENCE, "the bindings of two processes", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        Ok(text.lines().filter(|line| line.contains("binding_continues")).count() >= 4)
    })?;
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    assert_eq!(
        (count("binding_continues"), count("binding_created"), count("log_started")),
        (4, 1, 2),
        "{text}"
    );
    for (created, inside) in [(&of4, "192.168.1.2:4711"), (&of6, "[2001:db8:1::2]:4711")] {
        let outside = value(created, "outside")?;
        for at in [then.clone(), now()] {
            let answer = who(&log, "udp", &outside, &at)?;
            assert_eq!(answer["inside"], inside, "{answer}");
            assert_eq!(answer["since"].as_str(), Some(&*value(created, "time")?), "{answer}");
            assert_eq!(answer["until"], serde_json::Value::Null, "{answer}");
        }
        let before = who(&log, "udp", &outside, "2020-01-01T00:00Z")?;
        assert_eq!(before["inside"], serde_json::Value::Null, "{before}");
    }
    Ok(())
}

/// Starts rsyslog on the server; where it writes what it understood.
fn start_rsyslog(network: &Network, name: &str) -> Result<PathBuf> {
    let out = network.folder().join(format!("{name}.out"));
    let configuration = format!(
        r#"module(load="imudp")
module(load="imtcp")
input(type="imudp" port="514")
input(type="imtcp" port="514")
module(load="mmpstrucdata")
template(name="understood" type="string"
  string="%syslogfacility-text%.%syslogseverity-text% %app-name% %msgid% %$!rfc5424-sd!nat@32473!inside% as %$!rfc5424-sd!nat@32473!outside% %msg%\n")
action(type="mmpstrucdata")
action(type="omfile" file={out:?} template="understood" fileCreateMode="0644")
"#
    );
    let file = network.file(&format!("{name}.conf"), &configuration)?;
    let mut rsyslog = command("rsyslogd")?;
    rsyslog.arg("-n").arg("-f").arg(file).arg("-i").arg(network.folder().join(format!("{name}.pid")));
    network.start("server", rsyslog)?;
    Ok(out)
}

fn rsyslog() -> Result<()> {
    for transport in ["udp", "tcp"] {
        let network = network()?;
        let out = start_rsyslog(&network, "rsyslog")?;
        std::thread::sleep(Duration::from_secs(1));
        let spool = network.folder().join("spool");
        let section = format!(
            "[log]\nspool = {spool:?}\n[[log.syslog]]\nserver = \"{SERVER}\"\ntransport = \"{transport}\"\n"
        );
        run_sixway(&network, &configuration(&section))?;
        sends(&network, 4_711, false)?;
        sends(&network, 4_711, true)?;
        line(&out, &["local0.info sixway log_started"])?;
        let of4 = line(&out, &["local0.info sixway binding_created 192.168.1.2:4711 as 192.0.2."])?;
        assert!(of4.contains(" udp 192.168.1.2:4711 as 192.0.2."), "{of4}");
        line(&out, &["local0.info sixway binding_created [2001:db8:1::2]:4711 as 192.0.2."])?;
    }
    Ok(())
}

/// Prints what OpenSSL decrypts.
const TLS_SERVER: &str = r#"
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("203.0.113.2", 6514))
while True:
    stream, _ = listener.accept()
    try:
        with context.wrap_socket(stream, server_side=True) as secured:
            while octets := secured.recv(4096):
                sys.stdout.write(octets.decode())
    except ssl.SSLError as error:
        print(error)
"#;

fn over_tls() -> Result<()> {
    let network = network()?;
    let (key, certificate) = (network.folder().join("key.pem"), network.folder().join("certificate.pem"));
    let mut make = command("openssl")?;
    make.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    make.args(["-subj", "/CN=log.example", "-addext", "subjectAltName=DNS:log.example"]);
    make.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate);
    network.host("server")?.run(make, PATIENCE)?.succeeded()?;
    let mut server = command("python3")?;
    server.args(["-u", "-c", TLS_SERVER]).arg(&certificate).arg(&key);
    let server = network.start("server", server)?;
    std::thread::sleep(Duration::from_secs(1));
    let spool = network.folder().join("spool");
    let section = format!(
        "[log]\nspool = {spool:?}\n[[log.syslog]]\nserver = \"{SERVER}\"\ntransport = \"tls\"\n\
         name = \"log.example\"\nca = {certificate:?}\n"
    );
    run_sixway(&network, &configuration(&section))?;
    sends(&network, 4_711, false)?;
    interrupt::wait_until(PATIENCE, "the binding at the server", || {
        let said = network.with_process(server, |process| process.stdout())?;
        Ok(said.contains(" binding_created ") && said.contains("udp 192.168.1.2:4711 as 192.0.2."))
    })
}

/// The server is there only after the events.
fn away() -> Result<()> {
    let network = network()?;
    let spool = network.folder().join("spool");
    let section =
        format!("[log]\nspool = {spool:?}\n[[log.syslog]]\nserver = \"{SERVER}\"\ntransport = \"tcp\"\n");
    run_sixway(&network, &configuration(&section))?;
    for port in 5_000..5_100 {
        sends(&network, port, false)?;
    }
    let status = || -> Result<String> {
        Ok(network.host("gateway")?.run(show(&network, &[])?, PATIENCE)?.succeeded()?.stdout)
    };
    interrupt::wait_until(PATIENCE, "the spool in `sixway show`", || Ok(status()?.contains("in the spool")))?;
    let said = status()?;
    assert!(
        said.contains("WARNING  event log: syslog tcp 203.0.113.2:514 has not been available for"),
        "{said}"
    );
    // Another process sends what this one could not.
    take_over(&network, &configuration(&section))?;
    let out = start_rsyslog(&network, "rsyslog")?;
    for port in 5_000..5_100 {
        line(&out, &[&format!("binding_created 192.168.1.2:{port} as ")])?;
    }
    interrupt::wait_until(PATIENCE, "the end of the spool", || Ok(!status()?.contains("in the spool")))?;
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    assert_eq!(text.matches("binding_created 192.168.1.2:").count(), 100, "{text}");
    assert!(!text.contains("events_lost"), "{text}");
    Ok(())
}

/// The previous process has left when the log is opened: the sessions go on, and the log begins when it can be written.
fn unwritable() -> Result<()> {
    let network = network()?;
    run_sixway(&network, &configuration(""))?;
    sends(&network, 4_711, false)?;
    let log = network.folder().join("log").join("events.jsonl");
    std::fs::create_dir_all(&log).asking(|| "making a folder".to_owned())?;
    take_over(&network, &configuration(&format!("[log]\n[log.file]\npath = {log:?}\n")))?;
    let status = || -> Result<String> {
        Ok(network.host("gateway")?.run(show(&network, &[])?, PATIENCE)?.succeeded()?.stdout)
    };
    let said = status()?;
    assert!(said.contains("ERROR") && said.contains("Is a directory"), "{said}");
    sends(&network, 4_712, false)?;
    std::fs::remove_dir(&log).asking(|| "removing a folder".to_owned())?;
    line(&log, &["log_started"])?;
    line(&log, &["events_lost"])?;
    // The bindings are listed: that of the previous process, and the one that was lost.
    for port in [4_711, 4_712] {
        line(&log, &["binding_continues", &format!("192.168.1.2:{port}")])?;
    }
    interrupt::wait_until(
        PATIENCE,
        "the end of the problem",
        || Ok(!status()?.contains("not been available")),
    )
}

/// What `make syslog-ng` unpacks.
pub fn unpacked_syslog_ng() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/syslog-ng")
}

fn syslog_ng() -> Result<()> {
    let network = network()?;
    let (root, out) = (unpacked_syslog_ng(), network.folder().join("syslog-ng.out"));
    let configuration_file = network.file(
        "syslog-ng.conf",
        &format!(
            r#"@version: 3.38
source taken {{ syslog(transport("tcp") port(601)); syslog(transport("udp") port(514)); }};
destination file {{
  file({out:?} template("$FACILITY.$LEVEL $PROGRAM $MSGID ${{.SDATA.nat@32473.inside}} as ${{.SDATA.nat@32473.outside}} ${{.SDATA.meta.sequenceId}} $MSG\n"));
}};
log {{ source(taken); destination(file); }};
"#
        ),
    )?;
    let library = ["usr/lib/syslog-ng", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
        .map(|folder| root.join(folder).display().to_string());
    let mut program = Command::new(root.join("usr/sbin/syslog-ng"));
    program.env("LD_LIBRARY_PATH", library.join(":")).args(["-F", "--no-caps", "-f"]).arg(configuration_file);
    program.arg("--module-path").arg(root.join("usr/lib/syslog-ng/3.38"));
    program.arg("--persist-file").arg(network.folder().join("syslog-ng.persist"));
    program.arg("--pidfile").arg(network.folder().join("syslog-ng.pid"));
    program.arg("--control").arg(network.folder().join("syslog-ng.ctl"));
    network.start("server", program)?;
    std::thread::sleep(Duration::from_secs(2));
    let spool = network.folder().join("spool");
    let section = format!(
        "[log]\nevents = [\"bindings\", \"sessions\", \"destinations\"]\nspool = {spool:?}\n\
         [[log.syslog]]\nserver = \"{SERVER}:601\"\ntransport = \"tcp\"\nfacility = \"local7\"\n\
         [[log.syslog]]\nserver = \"{SERVER}\"\n"
    );
    run_sixway(&network, &configuration(&section))?;
    sends(&network, 4_711, false)?;
    sends(&network, 4_711, true)?;
    for facility in ["local7", "local0"] {
        line(&out, &[&format!("{facility}.info sixway log_started  as  1 the log begins")])?;
        for inside in ["192.168.1.2:4711", "[2001:db8:1::2]:4711"] {
            line(&out, &[&format!("{facility}.info sixway binding_created {inside} as 192.0.2.")])?;
            let session =
                line(&out, &[&format!("{facility}.info sixway session_created {inside} as 192.0.2.")])?;
            assert!(session.ends_with(" to 203.0.113.2:9"), "{session}");
        }
    }
    Ok(())
}

fn nfcapd() -> Result<()> {
    let network = network()?;
    let flows = network.folder().join("flows");
    std::fs::create_dir(&flows).asking(|| "making a folder".to_owned())?;
    let mut nfcapd = command("nfcapd")?;
    nfcapd.args(["-p", "4739", "-t", "2", "-w"]).arg(&flows);
    network.start("server", nfcapd)?;
    std::thread::sleep(Duration::from_secs(1));
    let spool = network.folder().join("spool");
    let section = format!(
        "[log]\nevents = [\"bindings\", \"sessions\", \"destinations\"]\nspool = {spool:?}\n\
         [[log.ipfix]]\ncollector = \"{SERVER}\"\nobservation_domain = 7\n"
    );
    run_sixway(&network, &configuration(&section))?;
    sends(&network, 4_711, false)?;
    sends(&network, 4_712, true)?;
    let dump = || -> Result<String> {
        let mut nfdump = command("nfdump")?;
        nfdump.args(["-o", "raw", "-R"]).arg(&flows);
        Ok(network.host("server")?.run(nfdump, PATIENCE)?.stdout)
    };
    interrupt::wait_until(PATIENCE, "four records in nfdump", || {
        Ok(dump()?.matches("nat event").count() >= 4)
    })?;
    let said = dump()?;
    let records: Vec<Vec<(String, String)>> = said.split("Flow Record:").skip(1).map(fields).collect();
    for (event, inside, port, remote, remote_port) in [
        ("4: ", "192.168.1.2", "4711", SERVER, "9"),
        ("8: ", "192.168.1.2", "4711", "0.0.0.0", "0"),
        ("6: ", "2001:db8:1::2", "4712", SERVER, "9"),
        ("10: ", "2001:db8:1::2", "4712", "0.0.0.0", "0"),
    ] {
        let of = |record: &Vec<(String, String)>, name: &str| {
            record.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let found: Vec<_> =
            records.iter().filter(|record| of(record, "nat event").starts_with(event)).collect();
        let [record] = found[..] else {
            return Err(Failure::Unexpected(format!("not one record of event {event}: {said}")));
        };
        let wanted = [
            ("src addr", inside),
            ("src port", port),
            ("proto", "17 UDP"),
            ("dst xlt ip", remote),
            ("dst xlt port", remote_port),
            ("ip exporter", "203.0.113.1"),
        ];
        for (name, value) in wanted {
            assert_eq!(of(record, name), value, "{name} of event {event}: {said}");
        }
        assert!(of(record, "src xlt ip").starts_with("192.0.2."), "{said}");
        assert_ne!(of(record, "src xlt port"), "0", "{said}");
        assert!(of(record, "Event time").contains(&now()[..10]), "{said}");
    }
    assert_eq!(records.len(), 4, "{said}");
    Ok(())
}

/// A session table that is full, and a subscriber that is refused: nfcapd takes the records, and the others as well.
fn nfcapd_with_limits() -> Result<()> {
    let network = network()?;
    let flows = network.folder().join("flows");
    std::fs::create_dir(&flows).asking(|| "making a folder".to_owned())?;
    let mut nfcapd = command("nfcapd")?;
    nfcapd.args(["-p", "4739", "-t", "2", "-w"]).arg(&flows);
    let collector = network.start("server", nfcapd)?;
    std::thread::sleep(Duration::from_secs(1));
    let spool = network.folder().join("spool");
    let section = format!(
        "[log]\nevents = [\"bindings\", \"limits\"]\nspool = {spool:?}\n\
         [[log.ipfix]]\ncollector = \"{SERVER}\"\nobservation_domain = 7\n"
    );
    let limited = configuration(&section)
        .replace("pool = \"four\"\n", "pool = \"four\"\nmax_bindings_per_subscriber = 3\n");
    run_sixway(&network, &limited)?;
    for port in 4_711..4_721 {
        sends(&network, port, false)?;
    }
    let dump = || -> Result<String> {
        let mut nfdump = command("nfdump")?;
        nfdump.args(["-o", "raw", "-R"]).arg(&flows);
        Ok(network.host("server")?.run(nfdump, PATIENCE)?.stdout)
    };
    // Of the refusals too: three bindings and a quota.
    interrupt::wait_until(PATIENCE, "a quota exceeded event in nfdump", || {
        Ok(dump()?
            .split("Flow Record:")
            .skip(1)
            .map(fields)
            .any(|record| record.iter().any(|(name, value)| name == "nat event" && value.starts_with("13:"))))
    })?;
    let said = dump()?;
    let of = |event: &str| {
        let records = said.split("Flow Record:").skip(1).map(fields);
        let is = |record: &Vec<(String, String)>| {
            record.iter().any(|(name, value)| name == "nat event" && value.starts_with(event))
        };
        records.filter(is).collect::<Vec<_>>()
    };
    assert_eq!(of("8:").len(), 3, "{said}");
    let [refused] = &of("13:")[..] else {
        return Err(Failure::Unexpected(format!("not one quota exceeded event: {said}")));
    };
    let address = refused.iter().find(|(name, _)| name == "src addr").map(|(_, value)| value.as_str());
    assert_eq!(address, Some("192.168.1.2"), "{said}");
    network.with_process(collector, |process| process.stop()).map(drop)
}

/// The lines `NAME = VALUE` of a record.
fn fields(record: &str) -> Vec<(String, String)> {
    let lines = record.lines().filter_map(|line| line.split_once('='));
    lines.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}
