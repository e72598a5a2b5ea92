//! A client of the admin API: one HTTP/1.0 request over the Unix socket, so that the response ends with the connection.

use crate::view::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout for a line of a streamed response.
const LONG_PATIENCE: Duration = Duration::from_secs(70);

/// A gateway's socket.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

/// Why a request failed.
#[derive(Debug)]
pub enum ClientError {
    /// The socket cannot be reached.
    Unreachable(PathBuf, io::Error),
    /// The gateway refused the request: HTTP status and message.
    Refused(u16, String),
    /// The answer cannot be read.
    Garbled(String),
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(path, error) => match error.kind() {
                io::ErrorKind::NotFound => {
                    write!(f, "no gateway is running: {} does not exist", path.display())
                }
                io::ErrorKind::ConnectionRefused if !is_socket(path) => {
                    write!(
                        f,
                        "{} is not a socket; pass the socket of a running gateway, or omit --socket",
                        path.display()
                    )
                }
                io::ErrorKind::ConnectionRefused => write!(
                    f,
                    "nothing answers at {}: its gateway has ended. The next start removes the socket, or run: sixway cleanup; for a site: sixway down",
                    path.display()
                ),
                io::ErrorKind::PermissionDenied => {
                    write!(f, "only the owner may open {}: run this as root", path.display())
                }
                _ => write!(f, "{}: {error}", path.display()),
            },
            Self::Refused(_, what) => f.write_str(what),
            Self::Garbled(what) => write!(f, "invalid response from the gateway: {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl Client {
    /// A client of the gateway that listens at `socket`.
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.into() }
    }

    /// Reads `path` with `query` as its parameters; `None` is omitted.
    pub fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Result<T, ClientError> {
        read(&self.ask("GET", path, query, "")?)
    }

    /// Deletes `path` with `query` as its parameters, and reads the response.
    pub fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Result<T, ClientError> {
        read(&self.ask("DELETE", path, query, "")?)
    }

    /// Posts nothing to `path` with `query` as its parameters, and reads the response.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Result<T, ClientError> {
        read(&self.ask("POST", path, query, "")?)
    }

    /// Posts JSON to `path`.
    pub fn post_json(&self, path: &str, body: &impl Serialize) -> Result<(), ClientError> {
        let body = serde_json::to_string(body).map_err(|error| ClientError::Garbled(error.to_string()))?;
        read(&self.ask("POST", path, &[], &body)?)
    }

    /// Reads `path` as text.
    pub fn text(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<String, ClientError> {
        self.ask("GET", path, query, "")
    }

    /// Reads `path` line by line, until the response ends or `each` returns `false`.
    pub fn lines(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        mut each: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        let unreachable = |error| ClientError::Unreachable(self.socket.clone(), error);
        let mut stream = UnixStream::connect(&self.socket).map_err(unreachable)?;
        stream.set_read_timeout(Some(LONG_PATIENCE)).map_err(unreachable)?;
        let target = format!("{path}{}", encode(query));
        write!(stream, "GET {target} HTTP/1.0\r\nHost: sixway\r\n\r\n").map_err(unreachable)?;
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next().transpose().map_err(unreachable)?.unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.").and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let mut headers = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty());
        headers.by_ref().for_each(drop);
        if status != Some(200_u16) {
            let body: String = lines.map_while(Result::ok).collect();
            let what = serde_json::from_str::<Fault>(&body).map_or(first, |fault| fault.error);
            return Err(ClientError::Refused(status.unwrap_or(0), what));
        }
        for line in lines {
            if !each(&line.map_err(unreachable)?) {
                break;
            }
        }
        Ok(())
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, Option<String>)],
        body: &str,
    ) -> Result<String, ClientError> {
        let answer = self
            .exchange(method, &format!("{path}{}", encode(query)), body)
            .map_err(|error| ClientError::Unreachable(self.socket.clone(), error))?;
        let (status, body) = split(&answer).ok_or_else(|| ClientError::Garbled("not HTTP".into()))?;
        if (200..300).contains(&status) {
            return Ok(body.into());
        }
        let what =
            serde_json::from_str::<Fault>(body).map_or_else(|_| format!("HTTP status {status}"), |f| f.error);
        Err(ClientError::Refused(status, what))
    }

    fn exchange(&self, method: &str, target: &str, body: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let kind = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        let request = format!("{method} {target} HTTP/1.0\r\nHost: sixway\r\n{kind}\r\n{body}");
        let sent = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let received = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match sent.and(received) {
            // A server that refuses need not read the request to its end.
            Err(error) if split(&answer).is_none_or(|(status, _)| status < 300) => Err(error),
            Ok(_) | Err(_) => Ok(answer),
        }
    }
}

/// An empty body is `null`.
fn read<T: DeserializeOwned>(body: &str) -> Result<T, ClientError> {
    let body = if body.is_empty() { "null" } else { body };
    serde_json::from_str(body).map_err(|error| ClientError::Garbled(error.to_string()))
}

/// Status and body of an answer.
fn split(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body))
}

/// The query part of a URL (RFC 3986 §3.4), with everything but unreserved characters percent-encoded.
fn encode(query: &[(&str, Option<String>)]) -> String {
    let mut text = String::new();
    for (name, value) in query {
        let Some(value) = value else { continue };
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        for octet in value.bytes() {
            match octet {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    text.push(char::from(octet))
                }
                _ => text.push_str(&format!("%{octet:02X}")),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_percent_encoded_and_leaves_out_what_is_not_asked() {
        let query = [("inside", Some("[::1]:2/3".into())), ("port", None), ("limit", Some("2".into()))];
        assert_eq!(encode(&query), "?inside=%5B%3A%3A1%5D%3A2%2F3&limit=2");
        assert_eq!(encode(&[("port", None)]), "");
    }

    #[test]
    fn a_refusal_is_read_though_the_server_does_not_read_the_request() {
        let path = std::env::temp_dir().join(format!("sixway-client-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(b"HTTP/1.0 403 Forbidden\r\n\r\n{\"error\":\"you may look\"}").unwrap();
            }
        });
        for length in [1, 8 << 20] {
            let refused = Client::new(&path).post_json("/v1/pools", &"x".repeat(length)).unwrap_err();
            assert!(
                matches!(&refused, ClientError::Refused(403, what) if what == "you may look"),
                "{refused:?}"
            );
        }
        server.join().unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_answer_splits_into_status_and_body() {
        assert_eq!(split("HTTP/1.0 404 Not Found\r\na: b\r\n\r\n{}"), Some((404, "{}")));
        assert_eq!(split("SSH-2.0"), None);
    }
}
