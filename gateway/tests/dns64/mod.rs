//! A gateway that is a DNS64 and nothing else, on the loopback interface: it needs no device and changes nothing on its host.
//! These tests want root, since state files are in /run/sixway; without it they are ignored.

mod handover;
mod reload;
mod rollover;
mod signed_keys;
mod system;
mod trust_anchors;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SIXWAY: &str = env!("CARGO_BIN_EXE_sixway");

/// A gateway, and the directory that goes with it.
struct Running {
    child: Child,
    directory: PathBuf,
    /// What it said at the start.
    said: String,
    /// Its directory stays.
    is_lasting: bool,
}

/// Where a test is not root's, it is ignored.
fn needs_root() {
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        sixway_trial::ignore("needs root");
    }
}

impl Running {
    /// Starts one with `[dns64]` and these lines, without any capability.
    fn start(name: &str, lines: &str) -> Self {
        needs_root();
        let directory = std::env::temp_dir().join(format!("sixway-dns64-{name}-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        configure(&directory, lines);
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps=-all", "--bounding-set=-all", SIXWAY]);
        Self::run(command, directory, "log", &[])
    }

    /// Runs a command, which ends with the program, with a configuration that was written.
    fn run(mut command: Command, directory: PathBuf, log: &str, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["run", "-c"])
            .arg(directory.join("sixway.toml"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(directory.join(log)).unwrap())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !said.contains("ready in") && lines.read_line(&mut said).unwrap() > 0 {}
        // Later starts of the same process are written too, and nothing must end for a full pipe.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, directory, said, is_lasting: false }
    }

    /// The same; its directory stays when it ends.
    fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    /// Another process that takes over.
    fn taken_over(&self) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps=-all", "--bounding-set=-all", SIXWAY]);
        Self::run(command, self.directory.clone(), "second-log", &["--takeover"])
    }

    /// The directory of state files has this one.
    fn state(&self, extension: &str) -> PathBuf {
        let text = fs::read_to_string(self.directory.join("sixway.toml")).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"');
        PathBuf::from(format!("/run/sixway/{name}.{extension}"))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap()
    }

    fn sixway(&self, arguments: &[&str]) -> Output {
        let socket = self.directory.join("gw.sock");
        Command::new(SIXWAY).args(arguments).arg("--socket").arg(socket).output().unwrap()
    }

    /// What a command prints that succeeds.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.sixway(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Ends it by a signal; its exit status.
    fn end(&mut self) -> i32 {
        let number = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &number]).status().unwrap();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !self.is_lasting {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Writes the configuration of the gateway in a directory.
fn configure(directory: &Path, lines: &str) {
    let name = directory.file_name().unwrap().to_str().unwrap().trim_start_matches("sixway-");
    let socket = directory.join("gw.sock");
    let text = format!(
        "[gateway]\nname = {name:?}\nadmin_socket = {socket:?}\n[dns64]\nspecial_names = \"upstream\"\n{lines}"
    );
    fs::write(directory.join("sixway.toml"), text).unwrap();
}

/// A port that is free at the moment.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn lines(port: u16, upstream: u16) -> String {
    format!(
        "listen = [\"127.0.0.1:{port}\", \"[::1]:{port}\"]\nprefix = \"2001:db8:64::/96\"\ntranslated_elsewhere = true\n\
         [[dns64.upstream]]\naddress = \"127.0.0.1:{upstream}\"\n"
    )
}

#[test]
fn a_dns64_alone_needs_no_capability_and_leaves_its_host_alone() {
    let forwarding = || fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding").unwrap();
    let (port, before) = (free_port(), forwarding());
    let mut gateway = Running::start("alone", &lines(port, free_port()));
    assert!(gateway.said.contains("ready in"), "{}", gateway.log());
    let serves =
        format!("127.0.0.1:{port}, [::1]:{port} · prefix 2001:db8:64::/96 · 1 upstream, not asked yet");
    assert!(gateway.said.contains(&format!("  dns64         {serves}\n")), "{}", gateway.said);
    assert!(!gateway.said.contains("sixway0") && !fs::exists("/sys/class/net/sixway0").unwrap());
    assert_eq!(forwarding(), before);

    let summary = gateway.prints(&["show"]);
    assert!(summary.contains(&serves) && summary.contains("q/s"), "{summary}");
    assert!(gateway.prints(&["show", "dns64"]).contains("No queries yet."));
    assert!(gateway.prints(&["show", "dns64", "--json"]).contains("\"waiting_capacity\": 10000"));
    assert_eq!(gateway.prints(&["show", "sessions", "--json"]).matches("\"total\": 0").count(), 1);
    assert_eq!(gateway.prints(&["dns64", "flush", "--all"]), "0 answers removed from the cache\n");
    assert!(!gateway.sixway(&["dns64", "flush", "a..b"]).status.success());
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok());
}

#[test]
fn an_address_that_somebody_listens_at_is_reported_with_what_to_do() {
    let there = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = there.local_addr().unwrap().port();
    let mut gateway = Running::start("taken", &lines(port, free_port()));
    assert!(!gateway.said.contains("ready"));
    assert_eq!(gateway.child.wait().unwrap().code(), Some(1));
    let log = gateway.log();
    assert!(log.contains(&format!("127.0.0.1:{port} (UDP) is already in use")), "{log}");
}

#[test]
fn without_the_capability_a_low_port_is_refused_and_the_capability_is_named() {
    let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first.trim().parse::<u16>().unwrap() <= 87 {
        sixway_trial::ignore("port 87 is anybody's here (net.ipv4.ip_unprivileged_port_start)");
    }
    let mut gateway = Running::start("low", &lines(87, free_port()));
    assert_eq!(gateway.child.wait().unwrap().code(), Some(1));
    let log = gateway.log();
    assert!(log.contains("CAP_NET_BIND_SERVICE") && !log.contains("CAP_NET_ADMIN"), "{log}");
}

#[test]
fn a_gateway_ends_while_a_query_waits() {
    let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free_port();
    let silent = upstream.local_addr().unwrap().port();
    let mut gateway = Running::start("waiting", &lines(port, silent));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x1c\0\x01";
    client.send_to(query, ("127.0.0.1", port)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
    assert!(start.elapsed() < Duration::from_secs(2));
}

/// A message behind its length (RFC 1035 §4.2.2); `None`: the stream has ended.
fn hear(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message).ok()?;
    Some(message)
}

fn say(stream: &mut TcpStream, message: &[u8]) {
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length, message].concat()).unwrap();
}

/// An upstream by TCP, which knows an A record of every name and nothing else.
fn upstream_by_tcp() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while let Some(mut message) = hear(&mut stream) {
                    let name = message[12..].iter().position(|octet| *octet == 0).unwrap();
                    let is_a = message[12 + name + 1..12 + name + 3] == [0, 1];
                    message.truncate(12 + name + 5);
                    message[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
                    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 198, 51, 100, 7];
                    let soa = [0xc0, 12, 0, 6, 0, 1, 0, 0, 1, 44, 0, 22, 0, 0];
                    if is_a {
                        message.extend_from_slice(&record);
                    } else {
                        message[9] = 1;
                        message.extend_from_slice(&soa);
                        message.extend_from_slice(&[0, 0, 1, 44].repeat(5));
                    }
                    say(&mut stream, &message);
                }
            });
        }
    });
    port
}

#[test]
fn a_query_by_tcp_is_put_to_an_upstream_by_tcp_and_its_answer_is_synthesised() {
    let port = free_port();
    let lines = format!("{}transport = \"tcp\"\n", lines(port, upstream_by_tcp()));
    let mut gateway = Running::start("tcp", &lines);
    let mut client = TcpStream::connect(("::1", port)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    for _ in 0..2 {
        say(&mut client, b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x1c\0\x01");
        let answer = hear(&mut client).expect("an answer");
        assert_eq!(answer[..2], [0, 7]);
        assert!(
            answer.ends_with(&[0x20, 1, 0xd, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0, 198, 51, 100, 7]),
            "{answer:?}"
        );
    }
    let shown = gateway.prints(&["show", "dns64", "--json"]);
    assert!(shown.contains("\"connections\": 1"), "{shown}");
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}

/// An upstream by UDP that has an A record for every name, and no AAAA; ends with the process.
fn upstream() -> u16 {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut room = [0; 2_048];
        while let Ok((length, from)) = udp.recv_from(&mut room) {
            udp.send_to(&reply(&room[..length]), from).unwrap();
        }
    });
    port
}

/// The reply to a query: 203.0.113.2 for A, else nothing and a SOA record.
pub fn reply(query: &[u8]) -> Vec<u8> {
    let mut end = 12;
    while query[end] != 0 {
        end += 1 + usize::from(query[end]);
    }
    let is_a = query[end + 1..end + 3] == [0, 1];
    let mut reply = query[..end + 5].to_vec();
    reply[2..4].copy_from_slice(&[0x81, 0x80]);
    reply[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_a), 0, u8::from(!is_a), 0, 0]);
    if is_a {
        reply.extend(b"\xc0\x0c\0\x01\0\x01\0\0\x01\x2c\0\x04\xcb\0\x71\x02");
    } else {
        reply.extend(
            b"\0\0\x06\0\x01\0\0\x01\x2c\0\x16\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\x01\x2c",
        );
    }
    reply
}

/// What comes back for a query for the AAAA record of `www.example`.
fn ask(port: u16) -> Vec<u8> {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x1c\0\x01";
    client.send_to(query, ("127.0.0.1", port)).unwrap();
    let mut room = [0; 2_048];
    let length = client.recv(&mut room).unwrap();
    room[..length].to_vec()
}

#[test]
fn nothing_that_is_queried_is_logged_unless_the_operator_wants_it() {
    for (lines, count) in [("", 0), ("query_log = false\n", 0), ("query_log = true\n", 1)] {
        let port = free_port();
        let lines = format!("{lines}{}", self::lines(port, upstream()));
        let mut gateway = Running::start("query-log", &lines);
        assert_eq!(ask(port)[7], 1);
        // At its end it has written all that it writes.
        assert_eq!(gateway.end(), 0, "{}", gateway.log());
        let log = gateway.log();
        assert_eq!(log.matches("www.example").count(), count, "{log}");
        assert_eq!(log.matches("query 127.0.0.1 udp www.example. AAAA synthesised").count(), count, "{log}");
    }
}

#[test]
fn a_name_with_an_a_record_gets_an_aaaa_record_and_all_of_it_is_reported() {
    let port = free_port();
    let lines = format!("query_log = true\nthreads = 2\n{}", lines(port, upstream()));
    let mut gateway = Running::start("answers", &lines);
    let made = [0x20, 0x01, 0x0d, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0, 203, 0, 113, 2];
    for _ in 0..20 {
        let answer = ask(port);
        assert_eq!((answer[1], answer[3] & 0xf, answer[7]), (7, 0, 1), "{answer:x?}");
        assert!(answer.ends_with(&made), "{answer:x?}");
    }
    let shown = gateway.prints(&["show", "dns64"]);
    let row = |with: &str| shown.lines().find(|line| line.contains(with)).unwrap_or_default().to_owned();
    assert!(row("synthesised").contains(" 20 "), "{shown}");
    assert!(row(" (udp) ").contains(" up "), "{shown}");
    let log = gateway.log();
    assert_eq!(log.matches("query 127.0.0.1 udp www.example. AAAA synthesised").count(), 20, "{log}");
    assert!(gateway.prints(&["dns64", "flush", "example"]).starts_with(char::is_numeric));
    assert!(ask(port).ends_with(&made));
    let before = Instant::now();
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
    assert!(before.elapsed() < Duration::from_secs(2));
}

/// An upstream by UDP that has 2001:db8:aaaa::1 for every name, and perhaps 203.0.113.2.
fn upstream_with_aaaa(has_a: bool) -> u16 {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut room = [0; 2_048];
        while let Ok((length, from)) = udp.recv_from(&mut room) {
            let query = &room[..length];
            let mut answer = reply(query);
            let end = answer.len();
            if answer[7] == 1 && !has_a {
                // The end of an answer for A is 16 octets long; the SOA record of one for AAAA instead.
                let mut negative = reply(&[&query[..end - 20], &[0, 28, 0, 1]].concat());
                negative[end - 20..end - 16].copy_from_slice(&[0, 1, 0, 1]);
                answer = negative;
            } else if answer[7] == 0 {
                // In place of the SOA record.
                answer.truncate(answer.len() - 33);
                (answer[7], answer[9]) = (1, 0);
                answer.extend(b"\xc0\x0c\0\x1c\0\x01\0\0\x01\x2c\0\x10");
                answer.extend([0x20, 0x01, 0x0d, 0xb8, 0xaa, 0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            }
            udp.send_to(&answer, from).unwrap();
        }
    });
    port
}

#[test]
fn behind_an_ipv4_only_uplink_existing_aaaa_records_are_hidden() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/ipv4-only-uplink.toml");
    let example = fs::read_to_string(example).unwrap();
    let rules = &example[example.find("[[dns64.rule]]").unwrap()..];
    let made = [0x20, 0x01, 0x0d, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0, 203, 0, 113, 2];
    let own = [0x20, 0x01, 0x0d, 0xb8, 0xaa, 0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let site = rules.replace("corp.example", "example");
    for (name, rules, expected) in
        [("no-rule", "", own), ("uplink", rules, made), ("site", site.as_str(), own)]
    {
        let port = free_port();
        let mut gateway = Running::start(name, &format!("{}{rules}", lines(port, upstream_with_aaaa(true))));
        let answer = ask(port);
        assert!(answer.ends_with(&expected), "{name}: {answer:x?} {}", gateway.log());
        assert_eq!(gateway.end(), 0, "{}", gateway.log());
    }
    // What has no A record cannot be reached, and no host tries.
    let port = free_port();
    let mut gateway =
        Running::start("aaaa-only", &format!("{}{rules}", lines(port, upstream_with_aaaa(false))));
    let answer = ask(port);
    assert_eq!((answer[3] & 0xf, answer[7]), (0, 0), "{answer:x?}");
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}
