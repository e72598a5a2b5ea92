//! A DNS64 alone goes on in another process: the cache and the sockets are handed over.

use super::reload::{Counting, ask, query};
use super::{Running, configure, free_port, lines};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Queries for one name, a thousand a second.
const PAUSE: Duration = Duration::from_millis(1);

/// Sends queries until it is to stop; how many were sent, and how many were answered with an address.
fn load(port: u16, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<(usize, usize)> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(("127.0.0.1", port)).unwrap();
        client.set_nonblocking(true).unwrap();
        let (mut sent, mut answered, mut room) = (0_usize, 0_usize, [0; 2_048]);
        let mut hear = |answered: &mut usize| {
            while let Ok(length) = client.recv(&mut room) {
                assert!(length > 12 && room[3] & 0xf == 0 && room[7] == 1, "{:x?}", &room[..length]);
                *answered += 1;
            }
        };
        while !stop.load(Ordering::Relaxed) {
            // A socket that is closed for a moment is an ICMP error.
            sent += usize::from(client.send(&query(sent as u16, "www")).is_ok());
            hear(&mut answered);
            std::thread::sleep(PAUSE);
        }
        let until = Instant::now() + Duration::from_secs(3);
        while answered < sent && Instant::now() < until {
            hear(&mut answered);
            std::thread::sleep(PAUSE);
        }
        (sent, answered)
    })
}

#[test]
fn a_dns64_alone_is_taken_over_with_its_cache_and_no_query_is_lost() {
    let (port, upstream) = (free_port(), Counting::start());
    let text = format!("threads = 2\n{}", lines(port, upstream.port));
    let mut first = Running::start("takeover", &text);
    for _ in 0..20 {
        assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)), "both threads know it");
    }
    let asked = upstream.count();
    let stop = Arc::new(AtomicBool::new(false));
    let load = load(port, &stop);
    std::thread::sleep(Duration::from_millis(300));
    let mut second = first.taken_over();
    assert!(second.said.contains("ready in"), "{}", first.log());
    assert_eq!(first.child.wait().unwrap().code(), Some(0), "{}", first.log());
    std::thread::sleep(Duration::from_millis(300));
    stop.store(true, Ordering::Relaxed);
    let (sent, answered) = load.join().unwrap();
    assert!(sent > 300 && sent == answered, "{answered} of {sent} answered: {}", first.log());
    assert!(
        first.log().contains("4 sockets handed over") || first.log().contains("6 sockets handed over"),
        "{}",
        first.log()
    );
    assert_eq!(upstream.count(), asked, "the cache was handed over");
    assert!(!second.state("dns64-cache").exists() && !second.state("sockets").exists());
    assert_eq!(second.end(), 0);
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok());
}

#[test]
fn a_reload_with_other_threads_starts_again_with_the_cache_and_loses_no_query() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("threads", &lines(port, upstream.port));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    let asked = upstream.count();
    let stop = Arc::new(AtomicBool::new(false));
    let load = load(port, &stop);
    configure(&gateway.directory, &format!("threads = 3\n{}", lines(port, upstream.port)));
    let (code, said) = gateway.reload(&[]);
    assert!(code == 0 && said.contains("continue"), "{said}\n{}", gateway.log());
    for _ in 0..20 {
        assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)), "each thread has the cache");
    }
    stop.store(true, Ordering::Relaxed);
    let (sent, answered) = load.join().unwrap();
    assert!(sent == answered, "{answered} of {sent} answered: {}", gateway.log());
    assert_eq!(upstream.count(), asked, "{}", gateway.log());
    assert!(!gateway.state("dns64-cache").exists());
    // And back, by the trial.
    assert_eq!(gateway.reload(&["--roll-back"]).0, 0);
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    assert_eq!(upstream.count(), asked, "{}", gateway.log());
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok(), "no socket was left open");
}

#[test]
fn a_cache_that_somebody_left_is_not_read_at_a_start() {
    let (port, upstream) = (free_port(), Counting::start());
    let mut gateway = Running::start("left", &lines(port, upstream.port));
    let left = gateway.state("dns64-cache");
    assert_eq!(gateway.end(), 0);
    std::fs::write(&left, "6wdns").unwrap();
    configure(&gateway.directory, &lines(port, upstream.port));
    let mut command = std::process::Command::new("setpriv");
    command.args(["--inh-caps=-all", "--bounding-set=-all", super::SIXWAY]);
    let mut again = Running::run(command, gateway.directory.clone(), "again", &[]);
    assert!(again.said.contains("ready in"));
    assert!(!left.exists());
    assert_eq!(again.end(), 0);
}
