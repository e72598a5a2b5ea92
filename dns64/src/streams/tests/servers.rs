//! Clients over TCP: good ones, and hostile ones.

use super::{Resolver, answer, around, bounds, everybody, loopback, query, serve};
use crate::streams::framing::append;
use crate::streams::{Event, StreamFault, StreamSettings, Streams};
use sixway_control::dns64::Access;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

fn tcp() -> (Streams, Resolver) {
    let resolver = Resolver::start();
    let settings = StreamSettings { tcp: vec![loopback()], bounds: bounds(), ..StreamSettings::default() };
    (serve(&settings, &resolver), resolver)
}

async fn connect(streams: &Streams) -> TcpStream {
    TcpStream::connect(streams.listening()[0]).await.unwrap()
}

async fn ask(stream: &mut TcpStream, id: u16, label: &str) {
    let mut framed = Vec::new();
    append(&mut framed, &query(id, label));
    stream.write_all(&framed).await.unwrap();
}

async fn hear(stream: &mut TcpStream) -> Vec<u8> {
    let length = stream.read_u16().await.unwrap();
    let mut message = vec![0; length.into()];
    stream.read_exact(&mut message).await.unwrap();
    message
}

/// Waits until the server has closed the connection; says how long it took.
async fn closed(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    let mut octets = [0; 4_096];
    let end = async { while stream.read(&mut octets).await.is_ok_and(|read| read > 0) {} };
    timeout(Duration::from_secs(5), end).await.expect("the server closes the connection");
    start.elapsed()
}

async fn counted(streams: &Streams, event: Event) -> u64 {
    for _ in 0..100 {
        if streams.view().of(event) > 0 && streams.view().connections() == 0 {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    streams.view().of(event)
}

#[tokio::test]
async fn queries_of_one_connection_are_answered_as_they_are_ready() {
    let (streams, _resolver) = tcp();
    let mut client = connect(&streams).await;
    ask(&mut client, 1, "late").await;
    ask(&mut client, 2, "prompt").await;
    assert_eq!(hear(&mut client).await, answer(&query(2, "prompt")));
    assert_eq!(hear(&mut client).await, answer(&query(1, "late")));
}

#[tokio::test]
async fn a_thousand_pipelined_queries_are_all_answered_once() {
    let (streams, _resolver) = tcp();
    let mut client = connect(&streams).await;
    let mut framed = Vec::new();
    for id in 0..1_000 {
        append(&mut framed, &query(id, if id % 100 == 0 { "late" } else { "prompt" }));
    }
    let (mut from, mut to) = client.split();
    let sent = async { to.write_all(&framed).await.unwrap() };
    let heard = async {
        let mut ids = HashSet::new();
        for _ in 0..1_000 {
            let length = from.read_u16().await.unwrap();
            let mut message = vec![0; length.into()];
            from.read_exact(&mut message).await.unwrap();
            ids.insert([message[0], message[1]]);
        }
        ids.len()
    };
    assert_eq!(tokio::join!(sent, heard).1, 1_000);
}

#[tokio::test]
async fn a_client_that_has_said_all_still_gets_its_answers() {
    let (streams, _resolver) = tcp();
    let mut client = connect(&streams).await;
    ask(&mut client, 1, "late").await;
    client.shutdown().await.unwrap();
    assert_eq!(hear(&mut client).await, answer(&query(1, "late")));
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn who_waits_for_an_answer_is_not_idle_and_who_asks_nothing_is() {
    let (streams, _resolver) = tcp();
    let (mut waiting, mut silent, mut half) =
        (connect(&streams).await, connect(&streams).await, connect(&streams).await);
    ask(&mut waiting, 1, "never").await;
    half.write_all(&[0, 40, 1, 2, 3]).await.unwrap();
    let trickle = async {
        let took = closed(&mut half).await;
        assert!((200..2_000).contains(&took.as_millis()), "{took:?}");
    };
    tokio::join!(trickle, closed(&mut silent));
    sleep(Duration::from_millis(50)).await;
    assert_eq!(streams.view().connections(), 1);
    assert_eq!(streams.view().of(Event::Idle), 2);
    drop(waiting);
}

#[tokio::test]
async fn a_query_that_is_too_long_or_none_ends_its_connection() {
    let (streams, _resolver) = tcp();
    for garbage in [&b"\xff\xff"[..], b"\x10\x01", b"\x00\x03abc", b"\x00\x00", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut client = connect(&streams).await;
        client.write_all(garbage).await.unwrap();
        let took = closed(&mut client).await;
        assert!(took.as_millis() < 250, "{garbage:?} took {took:?}");
    }
    assert_eq!(counted(&streams, Event::Aborted).await, 5);
}

#[tokio::test]
async fn a_client_that_takes_no_answers_is_cut() {
    let resolver = Resolver::start();
    let bounds = crate::streams::Bounds { write: Duration::from_millis(200), ..bounds() };
    let settings = StreamSettings { tcp: vec![loopback()], bounds, ..StreamSettings::default() };
    let streams = serve(&settings, &resolver);
    let mut client = connect(&streams).await;
    for id in 0..400 {
        let mut framed = Vec::new();
        append(&mut framed, &query(id, "big0"));
        if client.write_all(&framed).await.is_err() {
            break;
        }
    }
    assert_eq!(counted(&streams, Event::Aborted).await, 1);
}

#[tokio::test]
async fn beyond_its_share_an_address_is_refused_until_it_closes_a_connection() {
    let (streams, _resolver) = tcp();
    let mut clients = Vec::new();
    for id in 0..4 {
        let mut client = connect(&streams).await;
        ask(&mut client, id, "prompt").await;
        hear(&mut client).await;
        clients.push(client);
    }
    closed(&mut connect(&streams).await).await;
    assert_eq!(streams.view().of(Event::ClientLimit), 1);
    clients.pop();
    for _ in 0..100 {
        if streams.view().connections() < 4 {
            break;
        }
        sleep(Duration::from_millis(5)).await;
    }
    let mut client = connect(&streams).await;
    ask(&mut client, 9, "prompt").await;
    hear(&mut client).await;
}

#[tokio::test]
async fn who_may_not_ask_is_cut_immediately() {
    let resolver = Resolver::start();
    let settings = StreamSettings { tcp: vec![loopback()], bounds: bounds(), ..StreamSettings::default() };
    let streams = Streams::start(&settings, around(&resolver, Access::default())).unwrap();
    let took = closed(&mut connect(&streams).await).await;
    assert!(took.as_millis() < 200);
    assert_eq!((streams.view().of(Event::Refused), streams.view().of(Event::Accepted)), (1, 0));
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_fault_and_one_that_is_not_here_yet_is_not_one() {
    let (streams, resolver) = tcp();
    let start = |tcp: SocketAddr| {
        let settings = StreamSettings { tcp: vec![tcp], ..StreamSettings::default() };
        Streams::start(&settings, around(&resolver, everybody()))
    };
    let taken = streams.listening()[0];
    assert!(matches!(start(taken), Err(StreamFault::Listen(address, _)) if address == taken));
    assert!(start("[2001:db8::53]:5353".parse().unwrap()).is_ok());
}
