//! The losses of other clients while one client takes all connections and handshakes that it can get.

use super::secured::{Secured, connect_from, exchange, tcp_from};
use super::upstreams::upstream_query;
use super::{Resolver, bounds, everybody, loopback, loopback4, serve};
use crate::UpstreamQuery;
use crate::streams::{
    Bounds, Event, StreamContext, StreamSettings, Streams, TransportSettings, UpstreamSettings,
};
use sixway_control::dns64::Access;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(2);

fn host(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 7, 0, number)
}

/// Until this number of connections is known of.
async fn until_there_are(streams: &Streams, number: usize) {
    for _ in 0..200 {
        if streams.view().connections() == number {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("{} connections, not {number}", streams.view().connections());
}

async fn until_counted(streams: &Streams, event: Event, least: u64) {
    for _ in 0..400 {
        if streams.view().of(event) >= least {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{} {}", streams.view().of(event), event.name());
}

#[tokio::test]
async fn two_clients_with_all_connections_they_can_get_leave_a_third_its_own() {
    let secured = Secured::start(Bounds { connections: 128, ..Bounds::default() });
    let mut held = Vec::new();
    for number in [1, 2] {
        for _ in 0..90 {
            held.push(tcp_from(host(number), secured.tls()).await);
        }
    }
    until_counted(&secured.streams, Event::ClientLimit, 80).await;
    let config = secured.config(false);
    let mut third = Vec::new();
    for id in 0..4 {
        let mut stream = connect_from(host(3), secured.tls(), &config).await.unwrap();
        exchange(&mut stream, id, "prompt").await;
        third.push(stream);
    }
    assert_eq!(secured.streams.view().of(Event::MadeWay), 0);
}

#[tokio::test]
async fn silent_tls_makes_way_for_who_asks() {
    let secured = Secured::start(Bounds { connections: 16, ..Bounds::default() });
    let config = secured.config(false);
    let mut waiting = connect_from(host(200), secured.tls(), &config).await.unwrap();
    super::secured::ask(&mut waiting, 1, "never").await;
    let mut silent = Vec::new();
    for number in 0..40 {
        // One half agrees on TLS and says nothing, the other does not even that.
        match number % 2 {
            0 => {
                silent.push(connect_from(host(number), secured.tls(), &config).await.unwrap().into_inner().0)
            }
            _ => silent.push(tcp_from(host(number), secured.tls()).await),
        }
    }
    until_there_are(&secured.streams, 16).await;
    let mut clients = Vec::new();
    for number in 100..110 {
        let mut stream = connect_from(host(number), secured.tls(), &config).await.unwrap();
        timeout(PATIENCE, exchange(&mut stream, 1, "prompt")).await.unwrap();
        clients.push(stream);
    }
    assert!(secured.streams.view().of(Event::MadeWay) >= 35);
    let end = timeout(Duration::from_millis(50), waiting.read_u8()).await;
    assert!(end.is_err(), "who waits for an answer does not make way");
}

#[tokio::test]
async fn tls_without_a_query_ages() {
    let secured = Secured::start(bounds());
    let start = Instant::now();
    let mut stream = connect_from(host(1), secured.tls(), &secured.config(false)).await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    let took = start.elapsed().as_millis();
    assert!((250..2_000).contains(&took), "{took} ms");
    until_there_are(&secured.streams, 0).await;
}

/// A thread that makes handshakes from one address as often as it can, until it is stopped.
fn flood(secured: &Secured, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let (address, config, stop) = (secured.tls(), secured.config(false), Arc::clone(stop));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            while !stop.load(Ordering::Relaxed) {
                let _ = timeout(PATIENCE, connect_from(host(1), address, &config)).await;
            }
        });
    })
}

/// The median of the times that a query takes; the machine may have other work.
async fn median(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Duration {
    let mut took = Vec::new();
    for id in 0..100 {
        let start = Instant::now();
        exchange(stream, id, "prompt").await;
        took.push(start.elapsed());
        sleep(Duration::from_millis(5)).await;
    }
    took.sort_unstable();
    took[50]
}

#[tokio::test]
async fn a_flood_of_handshakes_of_one_client_delays_anothers_query_by_no_more_than_20_ms() {
    let secured = Secured::start(Bounds::default());
    let mut stream = connect_from(host(2), secured.tls(), &secured.config(false)).await.unwrap();
    let before = median(&mut stream).await;
    let stop = Arc::default();
    let flooding = flood(&secured, &stop);
    let during = median(&mut stream).await;
    // A client that connects again is served as well.
    let mut other = connect_from(host(3), secured.tls(), &secured.config(false)).await.unwrap();
    exchange(&mut other, 1, "prompt").await;
    stop.store(true, Ordering::Relaxed);
    flooding.join().unwrap();
    assert!(during < before + Duration::from_millis(20), "{during:?}, {before:?} without");
    assert!(secured.streams.view().of(Event::Accepted) > 3, "there was a flood");
}

/// Servers that ask another.
fn forwarding(resolver: &Resolver, tcp: &[UpstreamSettings]) -> (Streams, mpsc::Sender<UpstreamQuery>) {
    let (sender, queries) = mpsc::channel(16);
    let settings =
        StreamSettings { tcp: vec![loopback4()], upstreams: tcp.to_vec(), ..StreamSettings::default() };
    let context = StreamContext { posts: resolver.posts(), access: everybody(), queries };
    (Streams::start(&settings, context).unwrap(), sender)
}

fn upstream(streams: &Streams) -> UpstreamSettings {
    UpstreamSettings { address: streams.listening()[0], way: TransportSettings::Tcp }
}

#[tokio::test]
async fn what_holds_up_clients_does_not_hold_up_upstreams() {
    let resolver = Resolver::start();
    let server = serve(&StreamSettings { tcp: vec![loopback()], ..StreamSettings::default() }, &resolver);
    let (streams, queries) = forwarding(&resolver, &[upstream(&server)]);
    streams.clients.as_ref().unwrap().handle().spawn(async { std::thread::sleep(Duration::from_secs(1)) });
    let start = Instant::now();
    assert!(upstream_query(&queries, 0, "prompt").await.is_ok());
    assert!(start.elapsed() < Duration::from_millis(700));
}

#[tokio::test]
async fn other_settings_leave_connections_open_and_questions_go_to_the_upstreams_of_their_time() {
    let (resolver, folder) = (Resolver::start(), super::Folder::new());
    let authority = super::Authority::new();
    let one = serve(&StreamSettings { tcp: vec![loopback()], ..StreamSettings::default() }, &resolver);
    let other = serve(&StreamSettings { tcp: vec![loopback()], ..StreamSettings::default() }, &resolver);
    let (sender, queries) = mpsc::channel(16);
    let mut settings = StreamSettings {
        tcp: vec![loopback4()],
        tls: vec![loopback4()],
        certificate: Some(authority.certify_in(&folder, "dns.example")),
        upstreams: vec![upstream(&one)],
        ..StreamSettings::default()
    };
    let context = StreamContext { posts: resolver.posts(), access: everybody(), queries };
    let mut streams = Streams::start(&settings, context).unwrap();
    let mut client = TcpStream::connect(streams.listening()[0]).await.unwrap();
    exchange(&mut client, 1, "prompt").await;
    assert!(upstream_query(&sender, 0, "prompt").await.is_ok());

    let wrong =
        StreamSettings { certificate: Some((folder.file("gone"), folder.file("gone"))), ..settings.clone() };
    let (later, queries) = mpsc::channel(16);
    assert!(streams.reconfigure(&wrong, everybody(), mpsc::channel(1).1).is_err(), "and nothing changes");
    settings.upstreams = vec![upstream(&other), upstream(&one)];
    settings.bounds.connections = 64;
    streams.reconfigure(&settings, everybody(), queries).unwrap();
    exchange(&mut client, 2, "prompt").await;
    let (of_one, of_other) = (one.view(), other.view());
    let accepted = || (of_one.of(Event::Accepted), of_other.of(Event::Accepted));
    assert!(upstream_query(&sender, 0, "prompt").await.is_ok(), "one that is on its way");
    assert_eq!(accepted(), (1, 0));
    assert!(upstream_query(&later, 0, "prompt").await.is_ok());
    assert_eq!(accepted(), (1, 1));
    assert!(upstream_query(&later, 1, "prompt").await.is_ok(), "by the connection of before");
    assert_eq!(accepted(), (1, 1));
    assert!(upstream_query(&later, 2, "prompt").await.is_err(), "no upstream is left");

    streams.reconfigure(&settings, Access::default(), mpsc::channel(1).1).unwrap();
    let mut refused = TcpStream::connect(streams.listening()[0]).await.unwrap();
    assert!(refused.read_u8().await.is_err());
    exchange(&mut client, 3, "prompt").await;
}

#[test]
fn who_holds_a_table_of_handshakes_is_known_by_its_subscriber() {
    let bounds = Bounds { client_prefix_length: 56, ..Bounds::default() };
    let admission = crate::streams::admission::Admission::new(bounds, 1);
    let of = |text: &str| {
        let address: IpAddr = text.parse().unwrap();
        (0..1_000).filter(|_| admission.may_shake_hands(address)).count()
    };
    assert_eq!(of("2001:db8:0:1::1"), crate::streams::handshakes::OF_ONE);
    assert_eq!(of("2001:db8:0:2::1"), 0, "of the same /56");
    assert_eq!(of("2001:db8:1:1::1"), crate::streams::handshakes::OF_ONE);
}
