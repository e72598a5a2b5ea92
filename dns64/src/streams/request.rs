//! One request over HTTPS (RFC 8484): its DNS query, or the HTTP error.

use super::base64url;
use super::bounds::LONGEST_QUERY;
use super::freshness;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::time::Duration;
use tokio::time::timeout;

/// Where queries are taken (RFC 8484 §3 leaves it open; the RFC's examples and all clients' defaults have this).
pub const PATH: &str = "/dns-query";
/// RFC 8484 §6.
pub const MESSAGE: &str = "application/dns-message";
/// No DNS message is longer. What is longer than [`LONGEST_QUERY`] is read to its end all the same, since not every client reads a response while it
/// still sends.
const LONGEST_BODY: usize = 65_535;
/// A request's body is sent within this time.
const BODY: Duration = Duration::from_secs(5);

/// The DNS query of a request.
///
/// # Errors
/// The HTTP status that answers it instead.
pub async fn query<B>(request: Request<B>) -> Result<Vec<u8>, StatusCode>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if request.uri().path() != PATH {
        return Err(StatusCode::NOT_FOUND);
    }
    let message = if request.method() == Method::GET {
        written_in_path(request.uri().query().unwrap_or_default())?
    } else if request.method() == Method::POST {
        posted(request).await?
    } else {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    };
    if message.is_empty() { Err(StatusCode::BAD_REQUEST) } else { Ok(message) }
}

/// `dns=` of a URL's query part (RFC 8484 §4.1).
fn written_in_path(query: &str) -> Result<Vec<u8>, StatusCode> {
    let written = query.split('&').find_map(|part| part.strip_prefix("dns="));
    let written = written.ok_or(StatusCode::BAD_REQUEST)?;
    if written.len() > LONGEST_QUERY / 3 * 4 + 4 {
        return Err(StatusCode::URI_TOO_LONG);
    }
    base64url::decode(written).ok_or(StatusCode::BAD_REQUEST)
}

async fn posted<B>(request: Request<B>) -> Result<Vec<u8>, StatusCode>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(MESSAGE) {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let whole = timeout(BODY, Limited::new(request.into_body(), LONGEST_BODY).collect()).await;
    let whole = whole.map_err(|_| StatusCode::REQUEST_TIMEOUT)?;
    let whole = whole.map_err(|error| match error.is::<LengthLimitError>() {
        true => StatusCode::PAYLOAD_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    })?;
    let whole = whole.to_bytes();
    if whole.len() > LONGEST_QUERY { Err(StatusCode::PAYLOAD_TOO_LARGE) } else { Ok(whole.to_vec()) }
}

/// A DNS answer as a response. Whatever its RCODE says, HTTP has succeeded (RFC 8484 §4.2.1).
pub fn answered(answer: Vec<u8>) -> Response<Full<Bytes>> {
    let fresh = format!("max-age={}", freshness::seconds(&answer));
    let mut response = Response::new(Full::new(Bytes::from(answer)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MESSAGE));
    if let Ok(fresh) = HeaderValue::from_str(&fresh) {
        response.headers_mut().insert(CACHE_CONTROL, fresh);
    }
    response
}

/// An HTTP error, with a line for its reader; without one to HEAD, which has no body (RFC 9110 §9.3.2).
pub fn refused(status: StatusCode, is_head: bool) -> Response<Full<Bytes>> {
    let line = match status {
        StatusCode::NOT_FOUND => "Send DNS queries to /dns-query (RFC 8484)\n",
        StatusCode::METHOD_NOT_ALLOWED => "use GET with ?dns=, or POST\n",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "the body must be of type application/dns-message\n",
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::URI_TOO_LONG => "the query is too long\n",
        StatusCode::REQUEST_TIMEOUT => "the query came too slowly\n",
        StatusCode::SERVICE_UNAVAILABLE => "too many queries are waiting\n",
        _ => "not a DNS query\n",
    };
    let line = if is_head { "" } else { line };
    let mut response = Response::new(Full::new(Bytes::from_static(line.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, POST"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn status(method: &str, uri: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>, u16> {
        let request = Request::builder().method(method).uri(uri).header(CONTENT_TYPE, kind);
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        query(request).await.map_err(|status| status.as_u16())
    }

    #[tokio::test]
    async fn a_query_is_taken_from_the_path_and_from_the_body() {
        assert_eq!(status("GET", "/dns-query?dns=AQID", "", b"").await, Ok(vec![1, 2, 3]));
        assert_eq!(status("GET", "/dns-query?ct&dns=AQID&x=y", "", b"").await, Ok(vec![1, 2, 3]));
        assert_eq!(status("POST", "/dns-query", MESSAGE, &[1, 2]).await, Ok(vec![1, 2]));
        assert_eq!(status("POST", "/dns-query", "Application/DNS-Message; q=1", &[1]).await, Ok(vec![1]));
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_request_is_said_by_its_status() {
        assert_eq!(status("GET", "/", "", b"").await, Err(404));
        assert_eq!(status("PUT", "/dns-query", MESSAGE, b"x").await, Err(405));
        assert_eq!(status("GET", "/dns-query", "", b"").await, Err(400));
        assert_eq!(status("GET", "/dns-query?dns=", "", b"").await, Err(400));
        assert_eq!(status("GET", "/dns-query?dns=***", "", b"").await, Err(400));
        let long = format!("/dns-query?dns={}", "A".repeat(8_000));
        assert_eq!(status("GET", &long, "", b"").await, Err(414));
        assert_eq!(status("POST", "/dns-query", "text/plain", b"x").await, Err(415));
        assert_eq!(status("POST", "/dns-query", MESSAGE, b"").await, Err(400));
        for long in [4_097, 65_535, 65_536, 1_000_000] {
            assert_eq!(status("POST", "/dns-query", MESSAGE, &vec![0; long]).await, Err(413), "{long}");
        }
        assert_eq!(refused(StatusCode::METHOD_NOT_ALLOWED, false).headers()[ALLOW], "GET, POST");
    }
}
