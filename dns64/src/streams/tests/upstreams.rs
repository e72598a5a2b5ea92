//! Upstreams over TCP: good ones, ones that end, and others that are not DNS servers.

use super::{Resolver, answer, bounds, loopback, query, serve};
use crate::streams::framing::{Inbound, append};
use crate::streams::upstream::{Keeper, StreamUpstream, UpstreamTransport};
use crate::streams::{Event, StreamCounters, StreamSettings};
use crate::{Mailbox, Post, ReplyTo, ThreadMessage, UpstreamQuery, mailbox};
use sixway_control::dns64::{Exchange, Failure, Payer};
use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Asks an upstream as a resolver's thread would.
pub struct Asker {
    queries: mpsc::Sender<UpstreamQuery>,
    post: Post,
    mailbox: Mailbox,
    wanted: Vec<oneshot::Sender<()>>,
    pub counters: StreamCounters,
}

impl Asker {
    pub fn new(address: SocketAddr, transport: UpstreamTransport) -> Self {
        let (queries, receiver) = mpsc::channel(4_096);
        let counters = StreamCounters::default();
        tokio::spawn(Keeper::new(StreamUpstream { address, transport }, counters.clone()).run(receiver));
        let (post, mailbox) = mailbox().unwrap();
        Self { queries, post, mailbox, wanted: Vec::new(), counters }
    }

    pub fn put(&mut self, exchange: u64, message: Vec<u8>) {
        self.put_of_and_wait(Payer::OWN, exchange, message);
    }

    /// Puts a question of a client, which is waited for as long as what is returned is kept.
    fn put_of(&mut self, payer: Payer, exchange: u64, message: Vec<u8>) -> oneshot::Sender<()> {
        let (reply, wanted) = ReplyTo::new(Exchange(exchange), self.post.clone());
        self.queries.try_send(UpstreamQuery { upstream: 0, payer, message, reply }).unwrap();
        wanted
    }

    fn put_of_and_wait(&mut self, payer: Payer, exchange: u64, message: Vec<u8>) {
        let wanted = self.put_of(payer, exchange, message);
        self.wanted.push(wanted);
    }

    /// What has come.
    fn replies(&mut self) -> Vec<(u64, Result<Vec<u8>, Failure>)> {
        std::iter::from_fn(|| match self.mailbox.next()? {
            ThreadMessage::Reply(exchange, reply) => Some((exchange.0, reply)),
            other => panic!("{other:?}"),
        })
        .collect()
    }

    pub async fn reply(&mut self) -> (u64, Result<Vec<u8>, Failure>) {
        let next = async {
            loop {
                match self.mailbox.next() {
                    Some(ThreadMessage::Reply(exchange, reply)) => return (exchange.0, reply),
                    Some(_) => panic!("nothing but replies"),
                    None => sleep(Duration::from_millis(1)).await,
                }
            }
        };
        timeout(Duration::from_secs(10), next).await.expect("a reply comes")
    }

    pub async fn ask(&mut self, label: &str) -> Result<Vec<u8>, Failure> {
        self.put(7, query(77, label));
        self.reply().await.1
    }
}

/// Asks by the queries of a thread.
pub async fn upstream_query(
    queries: &mpsc::Sender<UpstreamQuery>,
    upstream: usize,
    label: &str,
) -> Result<Vec<u8>, Failure> {
    let (reply, waiting) = ReplyTo::waiting();
    let query = UpstreamQuery { upstream, payer: Payer::OWN, message: query(9, label), reply };
    queries.send(query).await.unwrap();
    timeout(Duration::from_secs(5), waiting.reply()).await.expect("a reply comes")
}

/// An upstream that does with its connections, which are numbered, what it likes.
async fn upstream<F, Fut>(served: F) -> SocketAddr
where
    F: Fn(usize, TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(served(number, stream));
        }
    });
    address
}

/// Reads this number of queries; fewer if the client ends.
async fn queries(stream: &mut TcpStream, inbound: &mut Inbound, number: usize) -> Vec<Vec<u8>> {
    let mut queries = Vec::new();
    while queries.len() < number {
        match inbound.next(4_096).unwrap() {
            Some(query) => queries.push(query),
            None if inbound.fill(stream).await.unwrap_or(0) == 0 => break,
            None => {}
        }
    }
    queries
}

async fn reply(stream: &mut TcpStream, queries: impl IntoIterator<Item = &Vec<u8>>) {
    let mut framed = Vec::new();
    for query in queries {
        append(&mut framed, &answer(query));
    }
    stream.write_all(&framed).await.unwrap();
}

#[tokio::test]
async fn a_connection_is_kept_and_its_replies_bear_the_resolvers_id() {
    let resolver = Resolver::start();
    let settings = StreamSettings { tcp: vec![loopback()], ..StreamSettings::default() };
    let streams = serve(&settings, &resolver);
    let mut asker = Asker::new(streams.listening()[0], UpstreamTransport::Tcp);
    for _ in 0..5 {
        assert_eq!(asker.ask("prompt").await, Ok(answer(&query(77, "prompt"))));
    }
    assert_eq!(asker.counters.of(Event::UpstreamOpened), 1);
}

#[tokio::test]
async fn replies_in_any_order_go_to_whom_they_are_for_even_if_all_ids_are_the_same() {
    let address = upstream(|_, mut stream| async move {
        let mut inbound = Inbound::default();
        let all = queries(&mut stream, &mut inbound, 50).await;
        reply(&mut stream, all.iter().rev()).await;
    })
    .await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    let labels: HashMap<u64, String> = (0..50).map(|number| (number, format!("name{number}"))).collect();
    for (number, label) in &labels {
        asker.put(*number, query(7, label));
    }
    for _ in 0..50 {
        let (number, reply) = asker.reply().await;
        assert_eq!(reply, Ok(answer(&query(7, &labels[&number]))));
    }
}

#[tokio::test]
async fn a_thousand_questions_together_are_answered_by_a_few_connections() {
    let resolver = Resolver::start();
    let bounds = crate::streams::Bounds { in_flight: 20, ..bounds() };
    let settings = StreamSettings { tcp: vec![loopback()], bounds, ..StreamSettings::default() };
    let streams = serve(&settings, &resolver);
    let mut asker = Asker::new(streams.listening()[0], UpstreamTransport::Tcp);
    for number in 0..1_000 {
        asker.put(number, query(number as u16, if number % 10 == 0 { "late" } else { "prompt" }));
    }
    for _ in 0..1_000 {
        assert!(asker.reply().await.1.is_ok());
    }
    assert!((1..=4).contains(&asker.counters.of(Event::UpstreamOpened)));
}

#[tokio::test]
async fn a_closed_port_is_reported_immediately_and_a_listener_that_returns_is_noticed() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    let start = Instant::now();
    assert_eq!(asker.ask("prompt").await, Err(Failure::Unreachable));
    assert!(start.elapsed() < Duration::from_secs(1));
    let resolver = Resolver::start();
    let streams = serve(&StreamSettings { tcp: vec![address], ..StreamSettings::default() }, &resolver);
    sleep(Duration::from_millis(300)).await;
    assert!(asker.ask("prompt").await.is_ok());
    drop(streams);
}

#[tokio::test]
async fn a_question_whose_connection_is_closed_in_the_middle_is_asked_by_another() {
    // Each connection replies to one question and is closed.
    let address = upstream(|_, mut stream| async move {
        let mut inbound = Inbound::default();
        let first = queries(&mut stream, &mut inbound, 1).await;
        reply(&mut stream, &first).await;
    })
    .await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    for number in 0..3 {
        asker.put(number, query(1, "prompt"));
    }
    for _ in 0..3 {
        let (_, reply) = asker.reply().await;
        assert_eq!(reply, Ok(answer(&query(1, "prompt"))));
    }
}

#[tokio::test]
async fn an_upstream_that_closes_after_few_replies_is_asked_no_more_at_a_time() {
    for replies in [1, 7] {
        let address = upstream(move |_, mut stream| async move {
            let mut inbound = Inbound::default();
            for _ in 0..replies {
                let next = queries(&mut stream, &mut inbound, 1).await;
                reply(&mut stream, &next).await;
            }
        })
        .await;
        let mut asker = Asker::new(address, UpstreamTransport::Tcp);
        for number in 0..200 {
            asker.put(number, query(number as u16, "prompt"));
        }
        for _ in 0..200 {
            let (number, reply) = asker.reply().await;
            assert_eq!(reply, Ok(answer(&query(number as u16, "prompt"))), "{replies} replies a connection");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_closes_without_a_word_is_reported_as_closed() {
    let address = upstream(|_, stream| async move { drop(stream) }).await;
    assert_eq!(Asker::new(address, UpstreamTransport::Tcp).ask("prompt").await, Err(Failure::Closed));
}

#[tokio::test]
async fn what_is_not_dns_is_reported_as_malformed() {
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x00\x01x", b"\x00\x02\x00\x00", b"\x00\x00"]
    {
        let address = upstream(move |_, mut stream| async move {
            queries(&mut stream, &mut Inbound::default(), 1).await;
            stream.write_all(garbage).await.unwrap();
            stream.shutdown().await.unwrap();
            sleep(Duration::from_millis(200)).await;
        })
        .await;
        let told = Asker::new(address, UpstreamTransport::Tcp).ask("prompt").await;
        assert_eq!(told, Err(Failure::Malformed), "{garbage:?}");
    }
}

#[tokio::test]
async fn replies_that_nobody_asked_for_are_overlooked() {
    let address = upstream(|_, mut stream| async move {
        let all = queries(&mut stream, &mut Inbound::default(), 1).await;
        let stray = query(u16::from_be_bytes([all[0][0], all[0][1]]).wrapping_add(9), "stray");
        reply(&mut stream, [&stray, &all[0]]).await;
        sleep(Duration::from_millis(200)).await;
    })
    .await;
    assert_eq!(
        Asker::new(address, UpstreamTransport::Tcp).ask("prompt").await,
        Ok(answer(&query(77, "prompt")))
    );
}

#[tokio::test]
async fn a_connection_that_yields_nothing_is_given_up_for_another() {
    let address = upstream(|number, mut stream| async move {
        let mut inbound = Inbound::default();
        loop {
            let one = queries(&mut stream, &mut inbound, 1).await;
            // The first connection falls silent after its first reply.
            if one.is_empty() || number == 0 && one[0][13..].starts_with(b"second") {
                break sleep(Duration::from_secs(20)).await;
            }
            reply(&mut stream, &one).await;
        }
    })
    .await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    assert!(asker.ask("first").await.is_ok());
    assert_eq!(asker.ask("second").await, Ok(answer(&query(77, "second"))));
    assert_eq!(asker.counters.of(Event::UpstreamClosed), 1);
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_any_more_is_not_asked() {
    let address = upstream(|_, mut stream| async move {
        let mut inbound = Inbound::default();
        let one = queries(&mut stream, &mut inbound, 1).await;
        assert!(one[0][13..].starts_with(b"wanted"));
        reply(&mut stream, &one).await;
    })
    .await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    asker.put(1, query(1, "unwanted"));
    asker.wanted.clear();
    asker.put(2, query(2, "wanted"));
    loop {
        if let (2, reply) = asker.reply().await {
            break assert_eq!(reply, Ok(answer(&query(2, "wanted"))));
        }
    }
}

/// One that answers immediately, but nothing about names that begin with `dead`.
async fn upstream_without_dead_names() -> SocketAddr {
    upstream(|_, mut stream| async move {
        let mut inbound = Inbound::default();
        loop {
            let one = queries(&mut stream, &mut inbound, 1).await;
            match one.first() {
                None => break,
                Some(query) if query[13..].starts_with(b"dead") => {}
                Some(_) => reply(&mut stream, &one).await,
            }
        }
    })
    .await
}

/// A client that asks what nobody answers, and one that asks what is answered immediately.
#[tokio::test]
async fn silent_questions_of_one_client_over_a_stream_cost_another_none() {
    let address = upstream_without_dead_names().await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    let of = |number: u8| Payer::of([192, 0, 2, number].into(), 64, false);
    // As a resolver that gives each question up after a while.
    let mut dead = std::collections::VecDeque::new();
    let mut answered = 0;
    for round in 0..100_u64 {
        for number in 0..40 {
            dead.push_back(asker.put_of(of(1), 10_000 + round * 40 + number, query(1, "dead")));
        }
        if dead.len() > 2_000 {
            dead.drain(..40);
        }
        asker.put_of_and_wait(of(2), round, query(round as u16, "good"));
        sleep(Duration::from_millis(5)).await;
        answered +=
            asker.replies().into_iter().filter(|(number, reply)| *number < 100 && reply.is_ok()).count();
    }
    sleep(Duration::from_millis(100)).await;
    answered += asker.replies().into_iter().filter(|(number, reply)| *number < 100 && reply.is_ok()).count();
    assert_eq!(answered, 100);
}

#[tokio::test]
async fn a_question_that_is_given_up_makes_room_at_once_and_its_late_reply_goes_to_nobody() {
    let address = upstream(|_, mut stream| async move {
        let mut inbound = Inbound::default();
        let mut all = Vec::new();
        while all.last().is_none_or(|query: &Vec<u8>| !query[13..].starts_with(b"good")) {
            all.extend(queries(&mut stream, &mut inbound, 1).await);
        }
        assert!(all.len() > 150);
        reply(&mut stream, &all).await;
        sleep(Duration::from_secs(2)).await;
    })
    .await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    for number in 0..200 {
        let wanted = asker.put_of(Payer::OWN, number, query(1, "dead"));
        sleep(Duration::from_millis(1)).await;
        drop(wanted);
    }
    assert_eq!(asker.ask("good").await, Ok(answer(&query(77, "good"))));
    assert_eq!(asker.counters.of(Event::UpstreamOpened), 1);
}

#[tokio::test]
async fn a_connection_with_dead_names_only_costs_the_next_question_nothing() {
    let address = upstream_without_dead_names().await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    asker.put(1, query(1, "dead"));
    // The connection is closed after four seconds.
    sleep(Duration::from_millis(4_100)).await;
    asker.put(2, query(2, "good"));
    loop {
        if let (2, reply) = asker.reply().await {
            assert_eq!(reply, Ok(answer(&query(2, "good"))));
            return;
        }
    }
}

#[tokio::test]
async fn a_question_that_was_given_up_long_ago_does_not_close_an_idle_connection() {
    let address = upstream_without_dead_names().await;
    let mut asker = Asker::new(address, UpstreamTransport::Tcp);
    let wanted = asker.put_of(Payer::OWN, 1, query(1, "dead"));
    sleep(Duration::from_millis(50)).await;
    drop(wanted);
    // A reply to it is expected for ten seconds, and as long a connection without replies is closed after four.
    for _ in 0..3 {
        sleep(Duration::from_millis(3_400)).await;
        assert_eq!(asker.ask("good").await, Ok(answer(&query(77, "good"))));
    }
    sleep(Duration::from_millis(4_600)).await;
    assert_eq!(asker.ask("good").await, Ok(answer(&query(77, "good"))));
    assert_eq!(asker.counters.of(Event::UpstreamOpened), 1);
}
