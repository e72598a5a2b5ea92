//! TCP between two hosts with sockets of our own: what is said arrives as it is, and both ends find the end.

use super::load::endpoint;
use crate::datagrams::pattern;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::Namespace;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15);

/// A connection's two ends.
pub struct Conversation {
    pub client: TcpStream,
    pub server: TcpStream,
}

impl Conversation {
    /// Connects from a host to another one, which listens at the second address for this one connection.
    pub fn open(
        client: &Namespace,
        target: &str,
        server: &Namespace,
        listens: &str,
        port: u16,
    ) -> Result<Self> {
        let (target, listens) = (endpoint(target, port)?, endpoint(listens, port)?);
        let listener =
            server.enter(|| TcpListener::bind(listens))?.asking(|| format!("listening at {listens}"))?;
        let client = client
            .enter(|| TcpStream::connect_timeout(&target, LIMIT))?
            .asking(|| format!("connecting to {target}"))?;
        let server = accept(&listener)?;
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(LIMIT)).asking(|| "setting a time limit".to_owned())?;
            stream.set_write_timeout(Some(LIMIT)).asking(|| "setting a time limit".to_owned())?;
        }
        Ok(Self { client, server })
    }

    /// Both send this number of octets at the same time, and receive what the other one sends.
    pub fn exchange(&self, octets: usize) -> Result<()> {
        says(&self.client, &self.server, octets)?;
        says(&self.server, &self.client, octets)
    }

    /// Each sends a little in turn, this number of times: packets that leave immediately.
    pub fn chat(&self, turns: usize) -> Result<()> {
        for stream in [&self.client, &self.server] {
            stream.set_nodelay(true).asking(|| "TCP_NODELAY".to_owned())?;
        }
        for _ in 0..turns {
            self.exchange(100)?;
        }
        Ok(())
    }

    /// One end has sent all its data, and receives more until the other end has, too.
    pub fn end(self, first: End) -> Result<()> {
        let (first, second) = match first {
            End::Client => (self.client, self.server),
            End::Server => (self.server, self.client),
        };
        first.shutdown(Shutdown::Write).asking(|| "shutting down".to_owned())?;
        ends(&second)?;
        says(&second, &first, 10_000)?;
        second.shutdown(Shutdown::Write).asking(|| "shutting down".to_owned())?;
        ends(&first)
    }
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    listener.set_nonblocking(true).asking(|| "O_NONBLOCK".to_owned())?;
    let mut accepted = None;
    interrupt::wait_until(LIMIT, "the connection's last handshake", || {
        accepted = listener.accept().ok();
        Ok(accepted.is_some())
    })?;
    let (stream, _) = accepted.ok_or_else(|| Failure::Unexpected("nobody connected".to_owned()))?;
    stream.set_nonblocking(false).asking(|| "O_NONBLOCK".to_owned()).map(|()| stream)
}

/// Who closes first.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Client,
    Server,
}

fn says(mut from: &TcpStream, mut to: &TcpStream, octets: usize) -> Result<()> {
    let said = pattern(octets);
    let heard = std::thread::scope(|scope| {
        let speaking = scope.spawn(|| from.write_all(&said));
        let mut heard = vec![0; octets];
        let read = to.read_exact(&mut heard).asking(|| format!("reading {octets} octets"));
        let spoken = speaking.join().unwrap_or(Ok(())).asking(|| format!("writing {octets} octets"));
        read.and(spoken).map(|()| heard)
    })?;
    match heard == said {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("of {octets} octets others arrived"))),
    }
}

fn ends(mut stream: &TcpStream) -> Result<()> {
    match stream.read(&mut [0; 1]).asking(|| "waiting for the end".to_owned())? {
        0 => Ok(()),
        _ => Err(Failure::Unexpected("there was more to read".to_owned())),
    }
}

/// The host has no connection that waits for something: all are closed, or rest in TIME_WAIT.
pub fn nothing_hangs(host: &Namespace) -> Result<()> {
    // RFC 9293's states as the kernel numbers them: what may remain.
    const REST: [&str; 3] = ["06", "07", "0A"];
    for file in ["tcp", "tcp6"] {
        let path = format!("/proc/thread-self/net/{file}");
        let said = host.enter(|| std::fs::read_to_string(&path))?.asking(|| format!("reading {path}"))?;
        let states = said.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3));
        let hanging: Vec<_> = states.filter(|state| !REST.contains(state)).collect();
        if !hanging.is_empty() {
            return Err(Failure::Unexpected(format!("{} has connections in {hanging:?}", host.name())));
        }
    }
    Ok(())
}
