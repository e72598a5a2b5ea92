//! Octets of untrusted clients by streams: framing, base64url and requests over HTTPS; and how long an answer that they provoke may be kept.
//!
//! The input is an octet that says how the stream is cut, and the stream; the same octets are text, the body of a request, and an answer.

use domain::base::{Message, Rtype};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use sixway_dns64::streams::framing::{self, Inbound, TooLong};
use sixway_dns64::streams::{LONGEST_QUERY, base64url, freshness, request};
use std::future::Future;

pub fn run(octets: &[u8]) {
    let Some((cut, octets)) = octets.split_first() else { return };
    wait(framed(octets, usize::from(*cut) + 1));
    let text = String::from_utf8_lossy(octets);
    written(&text);
    wait(requested(&text, octets));
    kept(octets);
}

/// Nothing here waits for anything but a timer that is never reached.
fn wait<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Messages are found wherever the stream is cut, each once, and are the stream's octets.
async fn framed(octets: &[u8], cut: usize) {
    let mut inbound = Inbound::default();
    let mut again = Vec::new();
    for mut part in octets.chunks(cut) {
        while inbound.fill(&mut part).await.unwrap() > 0 {}
        loop {
            match inbound.next(LONGEST_QUERY) {
                Ok(Some(message)) => framing::append(&mut again, &message),
                Ok(None) => break,
                Err(TooLong) => {
                    let length =
                        octets[again.len()..].first_chunk().map(|octets| u16::from_be_bytes(*octets));
                    assert!(usize::from(length.unwrap()) > LONGEST_QUERY, "it was short enough");
                    return;
                }
            }
        }
    }
    assert!(octets.starts_with(&again), "octets that nobody sent");
    let rest = &octets[again.len()..];
    assert_eq!(inbound.is_within(), !rest.is_empty());
    let length = rest.first_chunk().map(|octets| usize::from(u16::from_be_bytes(*octets)));
    assert!(length.is_none_or(|length| rest.len() < 2 + length), "a whole message is kept back");
}

/// What is read as base64url is what another's writer makes of the octets, but for bits behind the last.
fn written(text: &str) {
    let Some(octets) = base64url::decode(text) else { return };
    let again = domain::utils::base64::encode_string(&octets).replace('+', "-").replace('/', "_");
    let (text, again) = (text.trim_end_matches('='), again.trim_end_matches('='));
    assert_eq!(text.len(), again.len());
    let last = text.len().saturating_sub(1);
    assert_eq!(text[..last], again[..last]);
    assert_eq!(base64url::decode(again), Some(octets));
}

/// A request has a query that is no longer than may be, or an HTTP status of an error.
async fn requested(text: &str, octets: &[u8]) {
    let get = |query: &str| Request::get(format!("/dns-query?{query}"));
    let body = || Full::new(Bytes::copy_from_slice(octets));
    let requests = [
        get(text).body(body()),
        get(&format!("dns={text}")).body(body()),
        Request::builder().uri(text).body(body()),
        Request::post("/dns-query").header(CONTENT_TYPE, request::MESSAGE).body(body()),
        Request::post("/dns-query").header(CONTENT_TYPE, octets).body(body()),
        Request::builder().method(octets).uri("/dns-query").body(body()),
    ];
    for asked in requests.into_iter().flatten() {
        let is_post = asked.method() == Method::POST;
        match request::query(asked).await {
            Ok(query) => {
                assert!(!query.is_empty() && query.len() <= LONGEST_QUERY + 3);
                assert!(!is_post || query == octets, "another query");
            }
            Err(status) => {
                assert!(status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT);
                assert_eq!(request::refused(status, false).status(), status);
            }
        }
    }
}

/// No answer is kept for longer than one of its records, as another's reader sees them.
fn kept(octets: &[u8]) {
    let seconds = freshness::seconds(octets);
    assert_eq!(request::answered(octets.to_vec()).status(), StatusCode::OK);
    let Ok(message) = Message::from_octets(octets) else { return assert_eq!(seconds, 0) };
    let Ok(answers) = message.answer() else { return };
    for record in answers.flatten().filter(|record| record.rtype() != Rtype::OPT) {
        assert!(seconds <= record.ttl().as_secs(), "{seconds} s");
    }
}
