//! A client's connection over HTTPS: HTTP/2 or HTTP/1.1, as negotiated in TLS (RFC 7301, RFC 8484 §5.2).

use super::admission::ConnectionSlot;
use super::bounds::{BEFORE_FIRST_QUERY, Bounds};
use super::connection::{Client, CloseReason};
use super::counters::{Event, StreamCounters};
use super::request::{answered, query, refused};
use crate::{Posts, Unanswered};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};

/// Octets of a request's head: a query of the longest kind in the path, and a browser's usual headers.
const HEAD: usize = 16_384;
/// Fields of a request's head.
const FIELDS: usize = 64;
/// Maximum octets of requests' bodies in transfer, for a stream and for a connection.
const WINDOW: u32 = 65_535;

/// When a connection was last of use, and how many requests it has.
#[derive(Debug)]
struct Use {
    slot: Arc<ConnectionSlot>,
    requests: usize,
    has_asked: bool,
    since: Instant,
}

impl Use {
    /// When it has been idle for too long; `None`: it is in use.
    fn end(&self) -> Option<Instant> {
        (self.requests == 0).then(|| self.since + self.slot.idle_time(self.has_asked))
    }
}

type Used = Arc<Mutex<Use>>;

/// A request under way, until it is dropped.
struct Running(Used);

impl Running {
    fn new(used: &Used) -> Self {
        change(used, |used| {
            if used.requests == 0 {
                used.slot.use_it();
            }
            used.requests += 1;
            used.has_asked = true;
        });
        Self(Arc::clone(used))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        change(&self.0, |used| {
            used.requests -= 1;
            if used.requests == 0 {
                used.slot.rest();
            }
        });
    }
}

fn change(used: &Used, how: impl FnOnce(&mut Use)) {
    let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
    how(&mut used);
    used.since = Instant::now();
}

/// Serves a connection until it closes.
pub async fn serve<S>(
    stream: S,
    is_http2: bool,
    client: Client,
    posts: &Posts,
    slot: &Arc<ConnectionSlot>,
    counters: &StreamCounters,
) -> CloseReason
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let slot = Arc::clone(slot);
    let bounds = *slot.bounds();
    let used: Used = Arc::new(Mutex::new(Use { slot, requests: 0, has_asked: false, since: Instant::now() }));
    let service = service_fn(|request: Request<Incoming>| {
        let running = Running::new(&used);
        let (posts, counters) = (posts.clone(), counters.clone());
        async move {
            let response = respond(request, client, &posts, &counters).await;
            drop(running);
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(stream);
    if is_http2 {
        let connection = http2(&bounds).serve_connection(stream, service);
        watch(pin!(connection), |connection| connection.graceful_shutdown(), &used, &bounds).await
    } else {
        let connection = http1(&bounds).serve_connection(stream, service);
        watch(pin!(connection), |connection| connection.graceful_shutdown(), &used, &bounds).await
    }
}

/// HTTP/2 with limits. Few streams may be opened and reset (CVE-2023-44487), and header fields are counted before they are stored.
fn http2(bounds: &Bounds) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(u32::try_from(bounds.in_flight).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(16)
        .max_local_error_reset_streams(64)
        .max_header_list_size(HEAD as u32)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(WINDOW as usize);
    builder
}

fn http1(bounds: &Bounds) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.idle).max_buf_size(HEAD).max_headers(FIELDS);
    builder
}

/// Drives a connection until it ends, or is idle or stuck for too long.
async fn watch<C>(
    mut connection: Pin<&mut C>,
    shut: impl Fn(Pin<&mut C>),
    used: &Used,
    bounds: &Bounds,
) -> CloseReason
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut look = Instant::now();
    loop {
        tokio::select! {
            ended = connection.as_mut() => return if ended.is_ok() { CloseReason::Finished } else { CloseReason::Cut },
            () = sleep_until(look) => {}
        }
        let now = Instant::now();
        let end = used.lock().unwrap_or_else(PoisonError::into_inner).end();
        look = match end {
            Some(end) if now >= end => {
                shut(connection.as_mut());
                let _ = timeout(bounds.write, connection).await;
                return CloseReason::Idle;
            }
            Some(end) => end,
            // A request has its own limits of time.
            None => now + bounds.idle.min(BEFORE_FIRST_QUERY),
        };
    }
}

async fn respond(
    request: Request<Incoming>,
    client: Client,
    posts: &Posts,
    counters: &StreamCounters,
) -> Response<Full<Bytes>> {
    let is_head = request.method() == Method::HEAD;
    let answer = match query(request).await {
        Err(status) => Err(status),
        Ok(message) => {
            let answer = posts.ask(client.address, client.transport, message).await;
            answer.map_err(|why| match why {
                Unanswered::Ignored => StatusCode::BAD_REQUEST,
                Unanswered::Busy | Unanswered::Gone => StatusCode::SERVICE_UNAVAILABLE,
            })
        }
    };
    answer.map_or_else(
        |status| {
            counters.count(Event::HttpError);
            refused(status, is_head)
        },
        answered,
    )
}
