//! DNS over one HTTP/2 connection to an upstream (RFC 8484): each query is a POST in its own stream.

use super::backlog::{Backlog, Waiting};
use super::connect::Fault;
use super::connection_end::ConnectionEnd;
use super::limits::{IDLE, SILENCE};
use crate::streams::listener::HTTP2;
use crate::streams::request::MESSAGE;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use sixway_control::dns64::Failure;
use std::pin::pin;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::client::TlsStream;

/// The longest reply, as by TCP.
const LONGEST: usize = 65_535;
/// A connection that is silent for this time while queries wait gets a PING (RFC 9113 §6.7) …
const PING: Duration = Duration::from_secs(2);
/// … and has this time to respond.
const PONG: Duration = Duration::from_secs(2);
/// Streams before the upstream has said how many it allows (RFC 9113 §6.5.2): those beyond would be refused.
const EAGER: usize = 16;

/// Where an upstream takes queries.
#[derive(Clone, Debug)]
pub struct Resource {
    /// `https://dns.example/dns-query`
    pub uri: hyper::Uri,
}

/// Asks what waits at the backlog until the connection ends, or has been idle.
pub async fn run(stream: TlsStream<TcpStream>, resource: &Resource, backlog: &Backlog) -> ConnectionEnd {
    if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
        return ConnectionEnd::before_use(Fault::new(Failure::Malformed, "it does not speak HTTP/2"));
    }
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .initial_max_send_streams(EAGER)
        .max_header_list_size(16_384)
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(1 << 20);
    match builder.handshake(TokioIo::new(stream)).await {
        Ok((sender, connection)) => converse(sender, connection, resource, backlog).await,
        Err(error) => ConnectionEnd::before_use(Fault::new(Failure::Malformed, words(&error))),
    }
}

async fn converse(
    sender: SendRequest<Full<Bytes>>,
    connection: impl Future<Output = hyper::Result<()>>,
    resource: &Resource,
    backlog: &Backlog,
) -> ConnectionEnd {
    let mut flying = FuturesUnordered::new();
    let mut unanswered = Vec::new();
    let mut fault = None;
    let mut answered = 0;
    {
        let mut connection = pin!(connection);
        let mut last = Instant::now();
        loop {
            while flying.len() < backlog.at_a_time() && !sender.is_closed() {
                let Some(waiting) = backlog.take() else { break };
                flying.push(ask(sender.clone(), waiting, resource));
            }
            if flying.is_empty() && sender.is_closed() {
                break;
            }
            if flying.len() >= backlog.at_a_time() {
                backlog.pass_on();
            }
            tokio::select! {
                ended = connection.as_mut() => {
                    fault = ended.err().map(|error| Fault::new(Failure::Closed, words(&error)));
                    break;
                }
                Some((waiting, reply)) = flying.next() => {
                    last = Instant::now();
                    let Some(reply) = reply else {
                        waiting.into_reply().forget();
                        continue;
                    };
                    answered += usize::from(reply.is_ok());
                    match reply {
                        // It closed, or is about to: another connection can be tried.
                        Err(Fault { failure: Failure::Closed, .. }) if sender.is_closed() => unanswered.push(waiting),
                        Err(told) => {
                            waiting.into_reply().give(Err(told.failure));
                            fault = Some(told);
                        }
                        Ok(reply) => {
                            // What was wrong before is not what ends it.
                            fault = None;
                            waiting.into_reply().give(Ok(reply));
                            backlog.has_answered(answered);
                        }
                    }
                }
                () = backlog.arrived(), if flying.len() < backlog.at_a_time() && !sender.is_closed() => {}
                () = sleep_until(last + IDLE), if flying.is_empty() => break,
            }
        }
    }
    // The connection is closed: none of them can succeed.
    while let Some((waiting, _)) = flying.next().await {
        unanswered.push(waiting);
    }
    ConnectionEnd { unanswered, answered, fault, was_open: true, was_silent: false }
}

/// Sends one question. When no query waits for its reply any more, its HTTP/2 stream is reset, and the reply is `None`.
async fn ask(
    sender: SendRequest<Full<Bytes>>,
    mut waiting: Waiting,
    resource: &Resource,
) -> (Waiting, Option<Result<Vec<u8>, Fault>>) {
    let Some(mut cancelled) = waiting.query.reply.watch() else { return (waiting, None) };
    let reply = tokio::select! {
        reply = put(sender, &waiting.query.message, resource) => Some(reply),
        () = &mut cancelled => None,
    };
    waiting.query.reply.give_back(cancelled);
    (waiting, reply)
}

/// Its ID is 0 on the way (RFC 8484 §4.1), and the resolver's in the reply.
async fn put(
    mut sender: SendRequest<Full<Bytes>>,
    message: &[u8],
    resource: &Resource,
) -> Result<Vec<u8>, Fault> {
    let mut message = message.to_vec();
    let id = message.first_chunk_mut::<2>().map(std::mem::take).unwrap_or_default();
    let request = Request::post(resource.uri.clone())
        .header(CONTENT_TYPE, MESSAGE)
        .header(ACCEPT, MESSAGE)
        .body(Full::new(Bytes::from(message)));
    let Ok(request) = request else {
        return Err(Fault::new(Failure::Malformed, "its path is invalid"));
    };
    let reply = timeout(SILENCE, replied(&mut sender, request)).await;
    let reply = reply.unwrap_or_else(|_| Err(Fault::new(Failure::Closed, "no response came in time")));
    reply.and_then(|mut reply| match reply.first_chunk_mut() {
        Some(first) => {
            *first = id;
            Ok(reply)
        }
        None => Err(Fault::new(Failure::Malformed, "its response is empty")),
    })
}

async fn replied(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Vec<u8>, Fault> {
    let closed = |error: hyper::Error| Fault::new(Failure::Closed, words(&error));
    let response = sender.send_request(request).await.map_err(closed)?;
    if response.status() != StatusCode::OK {
        return Err(Fault::new(Failure::Malformed, format!("its HTTP status is {}", response.status())));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(MESSAGE) {
        return Err(Fault::new(Failure::Malformed, format!("its response has content type {kind:?}")));
    }
    let body = Limited::new(response.into_body(), LONGEST).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => closed(*error),
        Err(_) => Fault::new(Failure::Malformed, "its response is too long"),
    })?;
    Ok(body.to_bytes().to_vec())
}

/// An error with its causes.
fn words(error: &hyper::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
