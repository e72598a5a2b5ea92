//! Servers that come, go, and never read.

use super::super::ipfix::Ipfix;
use super::super::record::{Phase, tests::binding};
use super::super::syslog::Syslog;
use super::super::tls::{Tls, client};
use super::super::transport::Way;
use super::*;
use crate::config::Facility;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;

const NOBODY: fn() = || {};

fn spool_file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sixway-remote-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn remote(spool: &std::path::Path, most: u64, server: SocketAddr, way: Way) -> Remote {
    let encode = Box::new(Syslog::new(Facility::Local0, "gw", !matches!(way, Way::Udp)));
    let spool = Spool::open(spool, most);
    Remote::start(encode, Transport::new(server, way), spool, SinkState::new("test".into()), NOBODY).unwrap()
}

fn end(remote: &mut Remote) {
    let until = Instant::now() + Duration::from_secs(10);
    remote.stop(until);
    remote.wait(until);
}

fn batch(numbers: std::ops::Range<u64>) -> Batch {
    numbers
        .map(|number| Record { micros: number, event: Event::Limit(format!("N{number}").into(), 1) })
        .collect()
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 10 s: {what}");
}

/// The numbers of the messages of a stream.
fn numbers(stream: impl Read, count: usize) -> Vec<u64> {
    let mut reader = BufReader::new(stream);
    let mut found = Vec::new();
    while found.len() < count {
        let mut length = Vec::new();
        reader.read_until(b' ', &mut length).unwrap();
        let length: usize = String::from_utf8(length).unwrap().trim().parse().unwrap();
        let mut message = vec![0; length];
        reader.read_exact(&mut message).unwrap();
        let text = String::from_utf8(message).unwrap();
        let number = text.split("reason=\"N").nth(1).and_then(|rest| rest.split('"').next());
        found.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    found
}

#[test]
fn what_a_server_missed_comes_when_it_is_there_and_in_order() {
    let path = spool_file("missed");
    // Nobody listens there yet.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    drop(listener);
    let mut remote = remote(&path, 1 << 20, server, Way::Tcp);
    remote.give(&batch(0..10));
    until("it is away", || remote.state().row().away_seconds.is_some());
    // More than is read from the spool at a time.
    remote.give(&batch(10..5_000));
    until("it waits in the spool", || {
        remote.state().row().spooled_octets > 0 && std::fs::metadata(&path).unwrap().len() > 300_000
    });
    let listener = TcpListener::bind(server).unwrap();
    let (stream, _) = listener.accept().unwrap();
    for number in 5_000..5_030 {
        remote.give(&batch(number..number + 1));
    }
    assert_eq!(numbers(stream, 5_030), (0..5_030).collect::<Vec<_>>());
    until("it is there", || remote.state().row().away_seconds.is_none());
    until("all is sent", || remote.state().row().written == 5_030);
    end(&mut remote);
    let row = remote.state().row();
    assert_eq!((row.lost, row.spooled_octets), (0, 0));
    assert!(std::fs::metadata(&path).unwrap().len() < 100, "the spool is empty");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_waits_at_the_end_is_sent_by_the_next_process() {
    let path = spool_file("next");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    drop(listener);
    let mut one = remote(&path, 1 << 20, server, Way::Tcp);
    one.give(&batch(0..5));
    end(&mut one);
    let listener = TcpListener::bind(server).unwrap();
    let mut next = remote(&path, 1 << 20, server, Way::Tcp);
    let (stream, _) = listener.accept().unwrap();
    assert_eq!(numbers(stream, 5), [0, 1, 2, 3, 4]);
    end(&mut next);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_server_that_never_reads_costs_a_bounded_spool_and_then_a_number_that_is_logged() {
    let path = spool_file("silent");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let most = 64 << 10;
    let mut remote = remote(&path, most, listener.local_addr().unwrap(), Way::Tcp);
    // The kernel's buffers are large: it takes some before the server's silence is felt.
    let started = Instant::now();
    let mut given = 0;
    while remote.state().row().lost == 0 && started.elapsed() < Duration::from_secs(60) {
        let before = Instant::now();
        remote.give(&batch(given..given + 1_000));
        assert!(before.elapsed() < Duration::from_millis(500), "whoever gives does not wait");
        given += 1_000;
        std::thread::sleep(Duration::from_millis(1));
    }
    let row = remote.state().row();
    assert!(row.lost > 0 && std::fs::metadata(&path).unwrap().len() <= most, "{row:?}");
    // It reads after all, on each connection that it gets.
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let hears = Arc::clone(&hears);
            std::thread::spawn(move || {
                let mut octets = vec![0; 1 << 16];
                while let Ok(count @ 1..) = stream.read(&mut octets) {
                    hears.lock().unwrap().extend_from_slice(&octets[..count]);
                }
            });
        }
    });
    until("the loss is logged", || {
        String::from_utf8_lossy(&heard.lock().unwrap()).contains(" events_lost [nat@32473 count=")
    });
    until("it is there again", || {
        let row = remote.state().row();
        row.away_seconds.is_none() && row.spooled_octets == 0
    });
    end(&mut remote);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn nobody_at_a_port_of_udp_is_noticed_and_what_follows_waits() {
    let path = spool_file("udp");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap();
    drop(socket);
    let mut remote = remote(&path, 1 << 20, server, Way::Udp);
    until("it is away", || {
        remote.give(&batch(0..1));
        remote.state().row().away_seconds.is_some()
    });
    remote.give(&batch(100..110));
    until("it waits", || remote.state().row().spooled_octets > 1_000);
    let socket = UdpSocket::bind(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut found = Vec::new();
    while found.len() < 10 {
        let mut octets = [0; 2_048];
        let count = socket.recv(&mut octets).unwrap();
        let text = String::from_utf8_lossy(&octets[..count]).into_owned();
        found.extend((100..110).filter(|number| text.contains(&format!("\"N{number}\""))));
    }
    assert_eq!(found, (100..110).collect::<Vec<_>>());
    end(&mut remote);
    std::fs::remove_file(path).unwrap();
}

/// Numbers of messages of IPFIX (RFC 7011 §3.1) have no gap for what could not be sent.
#[test]
fn a_collector_that_was_away_misses_no_number() {
    let path = spool_file("ipfix");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap();
    drop(socket);
    let spool = Spool::open(&path, 1 << 20);
    let (encode, transport) = (Box::new(Ipfix::new(1, true, [].into())), Transport::new(server, Way::Udp));
    let mut remote = Remote::start(encode, transport, spool, SinkState::new("test".into()), NOBODY).unwrap();
    let records = |ports: std::ops::Range<u16>| -> Batch {
        let binding = |port| binding("10.0.0.1:5", &format!("192.0.2.1:{port}"));
        ports.map(|port| Record { micros: 1, event: Event::Binding(Phase::Created, binding(port)) }).collect()
    };
    remote.give(&records(1..40));
    until("it is away", || remote.state().row().away_seconds.is_some());
    std::thread::sleep(RETRY + Duration::from_millis(300));
    let socket = UdpSocket::bind(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut counted = 0;
    while counted < 39 {
        let mut octets = [0; 2_048];
        let count = socket.recv(&mut octets).unwrap();
        let sequence = u32::from_be_bytes(octets[8..12].try_into().unwrap());
        assert_eq!(sequence, counted);
        if octets[16..18] != [0, 2] {
            counted += (count as u32 - 20) / 22;
        }
    }
    end(&mut remote);
    std::fs::remove_file(path).unwrap();
}

/// A server with a certificate of this name, signed by itself; the file of the certificate.
fn with_certificate(name: &str) -> (Arc<rustls::ServerConfig>, PathBuf) {
    use rustls::pki_types::PrivateKeyDer;
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let file = spool_file(&format!("{name}.pem"));
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key);
    (Arc::new(config.unwrap()), file)
}

#[test]
fn a_server_proves_its_name_by_tls() {
    let (server, ca) = with_certificate("log.example");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = spool_file("tls");
    let tls = Way::Tls(Tls::new("log.example", Some(&ca)));
    let mut remote = remote(&path, 1 << 20, listener.local_addr().unwrap(), tls);
    remote.give(&batch(0..20));
    let (stream, _) = listener.accept().unwrap();
    let connection = rustls::ServerConnection::new(server).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    assert_eq!(numbers(&mut stream, 20), (0..20).collect::<Vec<_>>());
    // It goes, in order, and comes again.
    stream.conn.send_close_notify();
    stream.conn.complete_io(&mut stream.sock).unwrap();
    drop(stream);
    until("it is away", || {
        remote.give(&batch(20..21));
        remote.state().row().away_seconds.is_some()
    });
    end(&mut remote);
    for file in [path, ca] {
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_server_of_another_name_gets_nothing() {
    let (server, ca) = with_certificate("other.example");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = spool_file("tls-other");
    let tls = Way::Tls(Tls::new("log.example", Some(&ca)));
    let mut remote = remote(&path, 1 << 20, listener.local_addr().unwrap(), tls);
    remote.give(&batch(0..3));
    let (mut stream, _) = listener.accept().unwrap();
    let mut connection = rustls::ServerConnection::new(server).unwrap();
    let mut failed = false;
    for _ in 0..10 {
        failed |= connection.complete_io(&mut stream).is_err();
    }
    assert!(failed);
    until("it is away", || remote.state().row().reason.is_some_and(|why| why.contains("ertificate")));
    end(&mut remote);
    let row = remote.state().row();
    assert!(row.written == 0 && row.spooled_octets > 0, "{row:?}");
    assert!(client("log.example", Some(&path)).is_err(), "a file without certificates");
    for file in [path, ca] {
        std::fs::remove_file(file).unwrap();
    }
}

/// A server that lets itself be connected to, and says nothing: records are taken all the same, and the end does not wait for it.
#[test]
fn a_handshake_that_does_not_end_keeps_no_record_from_the_spool() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_, ca) = with_certificate("silent.example");
    let path = spool_file("handshake");
    let tls = Way::Tls(Tls::new("silent.example", Some(&ca)));
    let mut remote = remote(&path, 1 << 30, listener.local_addr().unwrap(), tls);
    remote.give(&batch(0..1));
    let (_stream, _) = listener.accept().unwrap();
    // Many times what the queue holds.
    for round in 0..400 {
        remote.give(&batch(round * 1_000..(round + 1) * 1_000));
        while remote.waiting.load(Relaxed) > QUEUE / 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    until("the queue is empty", || remote.waiting.load(Relaxed) == 0);
    assert_eq!(remote.state().row().lost, 0);
    let before = Instant::now();
    remote.stop(before + Duration::from_secs(1));
    remote.wait(before + Duration::from_secs(20));
    assert!(before.elapsed() < Duration::from_secs(3), "{:?}", before.elapsed());
    let mut spool = Spool::open(&path, 1 << 30);
    assert!(spool.octets() > 400_000 * 60 && !spool.first().unwrap().is_empty());
    for file in [path, ca] {
        std::fs::remove_file(file).unwrap();
    }
}

/// While events come, a spool is sent as fast as the server takes it.
#[test]
fn a_spool_is_worked_off_while_events_come() {
    let path = spool_file("fast");
    let mut spool = Spool::open(&path, 1 << 30);
    assert_eq!(spool.append(&batch(0..100_000)), 100_000);
    let megabytes = spool.octets() >> 20;
    assert!(megabytes > 5, "{megabytes}");
    drop(spool);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut remote = remote(&path, 1 << 30, listener.local_addr().unwrap(), Way::Tcp);
    let (stream, _) = listener.accept().unwrap();
    let reader = std::thread::spawn(move || numbers(stream, 100_050));
    // Few batches: with a part of the spool for each of them, it would not be empty by then.
    for number in 100_000..100_050 {
        remote.give(&batch(number..number + 1));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(reader.join().unwrap() == (0..100_050).collect::<Vec<_>>(), "all of them, in order");
    until("all is sent", || remote.state().row().written == 100_050);
    end(&mut remote);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_queue_is_bounded_by_its_records() {
    let (path, silent) = (spool_file("queue"), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (queue, batches) = channel();
    let state = SinkState::new("test".into());
    let (waiting, until) = (Arc::default(), Arc::default());
    let remote = Remote { queue: Some(queue), waiting, until, thread: None, state };
    let one = batch(0..1);
    (0..QUEUE).for_each(|_| remote.give(&one));
    assert_eq!(remote.state().row().lost, 0);
    remote.give(&one);
    remote.give(&batch(0..1_000));
    assert_eq!(remote.state().row().lost, 1_001);
    assert_eq!(batches.try_iter().count(), QUEUE);
    drop((path, silent));
}

/// A server that never stops to speak does not keep the thread from sending.
#[test]
fn a_server_that_speaks_without_end_is_sent_to() {
    let path = spool_file("talker");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut remote = remote(&path, 1 << 20, listener.local_addr().unwrap(), Way::Tcp);
    remote.give(&batch(0..10));
    let (stream, _) = listener.accept().unwrap();
    let mut talker = stream.try_clone().unwrap();
    let talks =
        std::thread::spawn(move || while std::io::Write::write_all(&mut talker, &[b'x'; 65_536]).is_ok() {});
    assert_eq!(numbers(stream.try_clone().unwrap(), 10), (0..10).collect::<Vec<_>>());
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    talks.join().unwrap();
    end(&mut remote);
    std::fs::remove_file(path).unwrap();
}

/// What comes while the server is away is in the spool, and outlives a sudden end of the process.
#[test]
fn records_for_a_server_that_is_away_are_not_kept_in_memory() {
    let path = spool_file("crash");
    let server = "127.0.0.1:9".parse().unwrap();
    let mut sending = Sending {
        encode: Box::new(Syslog::new(Facility::Local0, "gw", true)),
        transport: Transport::new(server, Way::Tcp),
        backlog: Backlog::new(Spool::open(&path, 1 << 20)),
        state: SinkState::new("test".into()),
        message: None,
        retry: Instant::now(),
        is_on_trial: true,
        is_away: false,
        lacks_spool: false,
    };
    sending.take(&batch(0..3));
    assert_eq!(sending.backlog.octets(), 0, "nothing is known of the server yet");
    sending.failed(&io::ErrorKind::ConnectionRefused.into(), 0);
    let spooled = sending.backlog.octets();
    assert!(spooled > 0);
    sending.take(&batch(3..5));
    assert!(sending.backlog.octets() > spooled);
    drop(sending);
    assert_eq!(Spool::open(&path, 1 << 20).first().unwrap().len(), 5);
    std::fs::remove_file(path).unwrap();
}
