//! A small HTTP server and what fetches from it: `GET /N` gives N octets.

use super::server::{Peer, TcpServer};
use super::transaction::connect;
use super::turns::{Done, Turn, take_turns, workers_of};
use crate::failure::{Failure, Result};
use crate::load::outcome::{Load, Outcome, Pace, Until};
use crate::load::stamp::FILL;
use crate::namespace::Namespace;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Octets of a request or of an answer's head that are read at most.
const HEAD: usize = 4_096;
/// Octets of an answer that are written in one call.
const PART: usize = 1 << 16;

/// A server. It ends when it is dropped.
pub struct HttpServer {
    server: TcpServer,
}

impl HttpServer {
    /// Serves this many connections at the same time on a host, which may be reached by whole prefixes (local routes) if it listens on all addresses.
    ///
    /// # Errors
    /// The port is taken.
    pub fn start(host: &Namespace, listens: SocketAddr, workers: u16, core: Option<usize>) -> Result<Self> {
        Ok(Self { server: TcpServer::start(host, listens, (workers, core), serve)? })
    }

    /// CPU time of its threads, for the connections that have ended.
    pub fn cpu(&self) -> Duration {
        self.server.cpu()
    }
}

/// Serves requests, until the client closes or asks for the last one.
fn serve(peer: &mut Peer<'_>) -> io::Result<()> {
    let body = [FILL; PART];
    loop {
        let mut request = [0; HEAD];
        let mut filled = 0;
        while !request[..filled].ends_with(b"\r\n\r\n") {
            let Some(rest) = request.get_mut(filled..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
            match peer.read(rest)? {
                0 => return Ok(()),
                count => filled += count,
            }
        }
        let text = String::from_utf8_lossy(&request[..filled]);
        let length: usize = text
            .strip_prefix("GET /")
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .ok_or(ErrorKind::InvalidData)?;
        let stays = text.contains("Connection: keep-alive");
        let connection = if stays { "keep-alive" } else { "close" };
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n"
        )
        .into_bytes();
        // The head and the first part leave together, as they do with a server that gathers them.
        answer.extend_from_slice(&body[..length.min(PART)]);
        peer.stream.write_all(&answer)?;
        let mut left = length.saturating_sub(PART);
        while left > 0 {
            peer.stream.write_all(&body[..left.min(PART)])?;
            left = left.saturating_sub(PART);
        }
        if !stays {
            return Ok(());
        }
    }
}

/// Pages that one host fetches, each of one or more objects, one after the other. At [`Pace::Closed`] `in_flight` pages are under way; at other paces,
/// `workers` at most. Until a time or a count.
#[derive(Clone, Copy)]
pub struct HttpFetch<'a> {
    /// The host.
    pub client: &'a Namespace,
    /// The CPU of its threads, if they have one: the tester's.
    pub core: Option<usize>,
    /// Servers as the client writes them; pages take turns.
    pub targets: &'a [SocketAddr],
    /// Octets of each object of a page: a text, and the images in it.
    pub objects: &'a [usize],
    /// Whether all objects of a page come over one connection.
    pub keep_alive: bool,
    /// How many may be under way at an open loop.
    pub workers: u16,
}

impl Load for HttpFetch<'_> {
    /// A request is a page, and its latency that of the last object's last octet. [`Outcome::setup`] has the time of each connection,
    /// [`Outcome::octets`] those of the objects.
    fn run(&self, pace: Pace, until: Until) -> Result<Outcome> {
        if self.targets.is_empty() || self.objects.is_empty() {
            return Err(Failure::Unexpected("nothing to fetch, or from nobody".to_owned()));
        }
        let how = (pace, until, workers_of(pace, self.workers));
        let prepare = |_| {
            Ok(|turn: Turn| {
                let target = self.targets[turn.number as usize % self.targets.len()];
                fetch(target, self.objects, self.keep_alive)
            })
        };
        self.client.enter(|| take_turns(how, self.core, prepare))?
    }
}

fn fetch(target: SocketAddr, objects: &[usize], keep_alive: bool) -> io::Result<Done> {
    let (mut stream, setup) = connect(target)?;
    let mut octets = 0;
    for (at, object) in objects.iter().enumerate() {
        let is_last = at + 1 == objects.len();
        if at > 0 && !keep_alive {
            stream = connect(target)?.0;
        }
        get(&mut stream, *object, keep_alive && !is_last)?;
        octets += *object as u64;
    }
    Ok(Done { setup: Some(setup), octets })
}

/// Gets an object over a connection, and reads to its end if it does not stay.
fn get(stream: &mut TcpStream, object: usize, stays: bool) -> io::Result<()> {
    let connection = if stays { "keep-alive" } else { "close" };
    let request = format!("GET /{object} HTTP/1.1\r\nHost: lab\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut octets = vec![0; PART];
    let (mut head, mut body) = (None, 0);
    let mut filled = 0;
    loop {
        let length = stream.read(&mut octets[filled..])?;
        filled += length;
        let part = match head {
            Some(()) => &octets[..filled],
            None => {
                let end = octets[..filled].windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
                match end {
                    Some(end) if octets.starts_with(b"HTTP/1.1 200 ") => {
                        head = Some(());
                        &octets[end..filled]
                    }
                    None if length > 0 && filled < HEAD => continue,
                    Some(_) | None => return Err(ErrorKind::InvalidData.into()),
                }
            }
        };
        if part.iter().any(|octet| *octet != FILL) {
            return Err(ErrorKind::InvalidData.into());
        }
        body += part.len();
        filled = 0;
        match (length, body.cmp(&object)) {
            (_, std::cmp::Ordering::Greater) => return Err(ErrorKind::InvalidData.into()),
            (0, std::cmp::Ordering::Less) => return Err(ErrorKind::UnexpectedEof.into()),
            (0, std::cmp::Ordering::Equal) => return Ok(()),
            (_, std::cmp::Ordering::Equal) if stays => return Ok(()),
            (_, std::cmp::Ordering::Equal | std::cmp::Ordering::Less) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn objects_of_any_size_are_fetched_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let server = TcpServer::on(listener, (2, None), serve).unwrap();
        for objects in [&[0][..], &[1], &[100], &[12_800, 150_000, 4_000], &[PART, PART + 1]] {
            for keep_alive in [false, true] {
                let done = fetch(target, objects, keep_alive).unwrap();
                assert_eq!(done.octets, objects.iter().sum::<usize>() as u64);
                assert!(done.setup.is_some());
            }
        }
        let mut stream = connect(target).unwrap().0;
        assert_eq!(get(&mut stream, 5, false).ok(), Some(()));
        assert!(get(&mut stream, 5, false).is_err(), "the server has closed");
        assert!(server.end() > Duration::ZERO);
    }

    #[test]
    fn an_answer_that_is_changed_or_cut_is_not_a_page() {
        for answer in [
            &b"HTTP/1.1 200 OK\r\n\r\n6667"[..],
            b"HTTP/1.1 200 OK\r\n\r\n666",
            b"HTTP/1.1 200 OK\r\n\r\n66666",
            b"HTTP/1.1 404 Not Found\r\n\r\n6666",
            b"HTTP/1.1 200 OK",
            b"",
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let target = listener.local_addr().unwrap();
            let serve = move |peer: &mut Peer<'_>| {
                peer.read(&mut [0; HEAD])?;
                peer.stream.write_all(answer)
            };
            let server = TcpServer::on(listener, (1, None), serve).unwrap();
            assert!(fetch(target, &[4], false).is_err(), "{answer:?}");
            server.end();
        }
    }
}
