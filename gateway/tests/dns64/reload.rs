//! A reload of a DNS64 alone: in its process, with its cache and its connections.

use super::{Running, SIXWAY, configure, free_port, hear, lines, reply, say};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// An upstream by UDP that counts its questions; ends with the process.
pub struct Counting {
    pub port: u16,
    pub questions: Arc<AtomicUsize>,
}

impl Counting {
    pub fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    pub fn at(address: &str) -> Self {
        let udp = UdpSocket::bind(address).unwrap();
        let port = udp.local_addr().unwrap().port();
        let questions = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&questions);
        std::thread::spawn(move || {
            let mut room = [0; 2_048];
            while let Ok((length, from)) = udp.recv_from(&mut room) {
                counted.fetch_add(1, Ordering::Relaxed);
                udp.send_to(&reply(&room[..length]), from).unwrap();
            }
        });
        Self { port, questions }
    }

    pub fn count(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }
}

/// A query for the AAAA record of a name below `example`.
pub fn query(id: u16, label: &str) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend(b"\x01\0\0\x01\0\0\0\0\0\0");
    query.push(label.len() as u8);
    query.extend(label.bytes());
    query.extend(b"\x07example\0\0\x1c\0\x01");
    query
}

/// RCODE and the number of records that a client gets; `None`: nothing.
pub fn ask(from: &str, port: u16, label: &str) -> Option<(u8, u8)> {
    let client = UdpSocket::bind(from).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let to = if from.contains("::") { "::1" } else { "127.0.0.1" };
    client.send_to(&query(7, label), (to, port)).unwrap();
    let mut room = [0; 2_048];
    client.recv(&mut room).ok()?;
    Some((room[3] & 0xf, room[7]))
}

impl Running {
    /// Runs `sixway reload`: exit status, and what it printed.
    pub fn reload(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.sixway(&[&["reload"], arguments].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    pub fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.prints(&["show", "--json"])).unwrap()
    }

    pub fn hang_up(&self) {
        let number = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &number]).status().unwrap().success());
    }

    /// Waits until something holds.
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(10), "not {what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_reload_of_the_access_list_keeps_the_cache_and_the_connections() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("access", &lines(port, upstream.port));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    say(&mut stream, &query(1, "www"));
    assert_eq!(hear(&mut stream).unwrap()[7], 1);
    let asked = upstream.count();
    let started = gateway.status()["uptime_seconds"].as_u64().unwrap();

    // Only the address of IPv6 may ask from now on.
    configure(&gateway.directory, &format!("allow = [\"::1/128\"]\n{}", lines(port, upstream.port)));
    let (code, said) = gateway.reload(&["--dry-run"]);
    assert!(code == 0 && said.contains("dns64.allow") && said.contains("without a restart"), "{said}");
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)), "a dry run changes nothing");
    let (code, said) = gateway.reload(&[]);
    assert!(code == 0 && said.contains("reloaded without a restart"), "{said}\n{}", gateway.log());
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((5, 0)), "{}", gateway.log());
    assert_eq!(ask("[::1]:0", port, "www"), Some((0, 1)));
    assert_eq!(upstream.count(), asked, "the cache is kept");
    assert!(gateway.prints(&["show", "config"]).contains("::1/128"));
    assert!(gateway.status()["uptime_seconds"].as_u64().unwrap() >= started, "it is the same process");
    assert_eq!(gateway.status()["reload"]["state"], "on trial");
    // The connection is the same; whose it is decides the list.
    say(&mut stream, &query(2, "www"));
    assert_eq!(hear(&mut stream).unwrap()[3] & 0xf, 5);
    let (code, said) = gateway.reload(&["--roll-back"]);
    assert!(code == 0, "{said}");
    say(&mut stream, &query(3, "www"));
    assert_eq!(hear(&mut stream).unwrap()[7], 1);
    assert_eq!(upstream.count(), asked);
    assert_eq!(gateway.status()["reload"]["state"], "rolled back");
    assert_eq!(gateway.log().matches("ready in").count(), 0);
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
    assert!(!gateway.state("previous").exists());
}

#[test]
fn a_signal_reloads_rules_and_a_faulty_file_changes_nothing() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("rules", &lines(port, upstream.port));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    let asked = upstream.count();
    let never = "[[dns64.rule]]\nnames = [\"example\"]\nsynthesis = \"never\"\n";
    configure(&gateway.directory, &format!("{}{never}", lines(port, upstream.port)));
    gateway.hang_up();
    gateway.until("reloaded", || ask("127.0.0.1:0", port, "www") == Some((0, 0)));
    assert_eq!(upstream.count(), asked, "the rule holds for what is in the cache");
    configure(&gateway.directory, "listen = 7\n");
    gateway.hang_up();
    gateway.until("refused", || gateway.log().contains("not reloaded"));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 0)));
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}

/// Asks for names that nobody asked for before until it is to stop; how many queries had an answer with an address, and how many had not.
fn asker(port: u16, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<(usize, usize)> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let (mut good, mut bad) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            match ask("127.0.0.1:0", port, &format!("n{}", good + bad)) {
                Some((0, 1)) => good += 1,
                Some(_) | None => bad += 1,
            }
        }
        (good, bad)
    })
}

#[test]
fn an_upstream_is_replaced_while_queries_run_and_none_fails() {
    let (port, old, new) = (free_port(), Counting::start(), Counting::start());
    let mut gateway = Running::start("replaced", &format!("threads = 2\n{}", lines(port, old.port)));
    let stop = Arc::new(AtomicBool::new(false));
    let askers: Vec<_> = (0..3).map(|_| asker(port, &stop)).collect();
    gateway.until("asked", || old.count() > 50);
    configure(&gateway.directory, &format!("threads = 2\n{}", lines(port, new.port)));
    let (code, said) = gateway.reload(&[]);
    assert!(code == 0 && said.contains("without a restart"), "{said}");
    let before = old.count();
    gateway.until("asked of the new one", || new.count() > 50);
    stop.store(true, Ordering::Relaxed);
    for asker in askers {
        let (good, bad) = asker.join().unwrap();
        assert!(good > 20 && bad == 0, "{good} {bad} {}", gateway.log());
    }
    // Questions that were on their way are all.
    assert!(old.count() <= before + 6, "{} {before}", old.count());
    let shown = gateway.prints(&["show", "dns64"]);
    assert!(shown.contains(&format!("127.0.0.1:{} (udp)", new.port)), "{shown}");
    assert!(!shown.contains(&format!("127.0.0.1:{} (udp)", old.port)), "{shown}");
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}

#[test]
fn a_reload_that_nobody_confirms_returns_in_the_same_process() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("confirm", &lines(port, upstream.port));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    let asked = upstream.count();
    configure(&gateway.directory, &format!("allow = [\"::1/128\"]\n{}", lines(port, upstream.port)));
    let (code, said) = gateway.reload(&["--confirm", "5"]);
    assert!(code == 0 && said.contains("sixway reload --keep"), "{said}");
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((5, 0)));
    gateway.until("rolled back", || gateway.status()["reload"]["state"] == "rolled back");
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    assert_eq!(upstream.count(), asked, "{}", gateway.log());
    // One that is confirmed stays.
    let (code, said) = gateway.reload(&["--confirm", "5"]);
    assert!(code == 0, "{said}");
    assert_eq!(gateway.reload(&["--keep"]).0, 0);
    std::thread::sleep(Duration::from_millis(5_300));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((5, 0)));
    assert_eq!(gateway.status()["reload"]["state"], "kept");
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}

#[test]
fn a_certificate_that_cannot_be_read_leaves_everything_as_it_was() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("authority", &lines(port, upstream.port));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    let text = format!(
        "{}transport = \"tls\"\nname = \"dns.example\"\nca = \"/nowhere.pem\"\n",
        lines(port, upstream.port)
    );
    configure(&gateway.directory, &text);
    let (code, said) = gateway.reload(&[]);
    assert!(code != 0 && said.contains("/nowhere.pem"), "{said}");
    assert_eq!(ask("127.0.0.1:0", port, "other"), Some((0, 1)), "{}", gateway.log());
    let checked =
        Command::new(SIXWAY).arg("check").arg(gateway.directory.join("sixway.toml")).output().unwrap();
    assert!(!checked.status.success());
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}

#[test]
fn four_threads_are_flushed_and_reloaded_as_one() {
    let (port, upstream) = (free_port(), Counting::start());
    let text = format!("threads = 4\n{}", lines(port, upstream.port));
    let mut gateway = Running::start("four", &text);
    let all = |expected| {
        for _ in 0..40 {
            assert_eq!(ask("127.0.0.1:0", port, "www"), Some(expected), "{}", gateway.log());
        }
    };
    all((0, 1));
    let asked = upstream.count();
    assert!((2..=8).contains(&asked), "{asked}: each thread asks once for each type");
    all((0, 1));
    assert_eq!(upstream.count(), asked);
    assert_eq!(
        gateway.prints(&["dns64", "flush", "www.example"]),
        format!("{asked} answers removed from the cache\n")
    );
    all((0, 1));
    assert!(upstream.count() > asked);
    configure(&gateway.directory, &format!("allow = [\"::1/128\"]\n{text}"));
    assert_eq!(gateway.reload(&[]).0, 0, "{}", gateway.log());
    all((5, 0));
    assert_eq!(gateway.reload(&["--roll-back"]).0, 0);
    let asked = upstream.count();
    all((0, 1));
    assert_eq!(upstream.count(), asked, "no thread forgot");
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}

#[test]
fn a_hosts_file_is_followed() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("hosts", &lines(port, upstream.port));
    assert_eq!(ask("127.0.0.1:0", port, "printer"), Some((0, 1)));
    let hosts = gateway.directory.join("hosts");
    std::fs::write(&hosts, "2001:db8::7 printer.example\n2001:db8::8 printer.example\n").unwrap();
    configure(&gateway.directory, &format!("hosts = {hosts:?}\n{}", lines(port, upstream.port)));
    let (code, said) = gateway.reload(&[]);
    assert!(code == 0 && said.contains("without a restart"), "{said}");
    assert_eq!(ask("127.0.0.1:0", port, "printer"), Some((0, 2)), "{}", gateway.log());
    std::fs::write(&hosts, "2001:db8::7 printer.example\nx y\n").unwrap();
    gateway.until("read again", || ask("127.0.0.1:0", port, "printer") == Some((0, 1)));
    assert!(gateway.log().contains("hosts:2 is not an address"), "{}", gateway.log());
    std::fs::remove_file(&hosts).unwrap();
    gateway.until("missed", || gateway.log().contains("its records stay as they were"));
    let asked = upstream.count();
    assert_eq!(ask("127.0.0.1:0", port, "printer"), Some((0, 1)));
    assert_eq!(upstream.count(), asked, "nobody else is asked for it");
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}
