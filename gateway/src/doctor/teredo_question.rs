//! A question to a Teredo server, as a client asks it: whether it answers this host at all.

use sixway_control::Instant;
use sixway_control::teredo_client::{Action, Client, Local, Port, Secret, ServerAddresses, Settings};
use sixway_wire::Endpoint4;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(1_200);
/// How often it is asked.
const ATTEMPTS: usize = 2;
/// More than a router advertisement with its headers (RFC 4380 §5.2.1).
const LONGEST: usize = 2_048;

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It answered.
    Answered,
    /// Its host answered that nothing listens there, or a packet filter on the way did.
    Refused,
    /// Nothing came.
    Silent,
    /// The kernel did not send it: why.
    NotSent(String),
}

/// Asks a server from an address of this host, by a port of its own.
pub(super) fn ask(server: SocketAddrV4, local: Ipv4Addr, secret: Option<Secret>) -> Asked {
    let failed = |error: std::io::Error| Asked::NotSent(error.to_string());
    let bound = || {
        let socket = UdpSocket::bind((local, 0))?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let SocketAddr::V4(own) = socket.local_addr()? else { return Err(ErrorKind::Unsupported.into()) };
        let mut seed = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut seed)?;
        Ok((socket, own, seed))
    };
    let (socket, own, seed) = match bound() {
        Ok(bound) => bound,
        Err(error) => return failed(error),
    };
    let Some(question) = question(*server.ip(), own, secret, seed) else { return Asked::Silent };
    for _attempt in 0..ATTEMPTS {
        match socket.send(&question) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Asked::Refused,
            Err(error) => return failed(error),
        }
        match socket.recv(&mut [0; LONGEST]) {
            Ok(_) => return Asked::Answered,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Asked::Refused,
            Err(_) => {}
        }
    }
    Asked::Silent
}

/// The first datagram of a client.
fn question(server: Ipv4Addr, own: SocketAddrV4, secret: Option<Secret>, seed: [u8; 32]) -> Option<Vec<u8>> {
    let servers = vec![ServerAddresses { primary: server, secondary: None }];
    let local = Local { endpoint: Endpoint4::new(*own.ip(), own.port()), subnets: Vec::new() };
    let mut client = Client::new(Settings { secret, ..Settings::new(servers) }, Some(local), seed);
    let mut now = Instant::from_secs(1);
    client.start(now);
    // It may wait for a moment first.
    for _step in 0..4 {
        while let Some(action) = client.step(now) {
            if let Action::Send { from: Port::Service, octets, .. } = action {
                return Some(octets);
            }
        }
        now = client.due()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_one_that_does_not_and_none_are_told_apart() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(at) = server.local_addr().unwrap() else { unreachable!() };
        assert_eq!(ask(at, Ipv4Addr::LOCALHOST, None), Asked::Silent);
        let mut octets = [0; LONGEST];
        let (length, _) = server.recv_from(&mut octets).unwrap();
        // RFC 4380 §5.2.1: a router solicitation, here behind an authentication with a nonce.
        assert_eq!(&octets[..2], [0, 1]);
        assert!(length > 40, "{length} octets");
        while server.set_nonblocking(true).is_ok() && server.recv(&mut octets).is_ok() {}
        server.set_nonblocking(false).unwrap();
        let answering = std::thread::spawn(move || {
            let (length, from) = server.recv_from(&mut [0; LONGEST]).unwrap();
            server.send_to(&vec![0; length], from).unwrap();
        });
        assert_eq!(ask(at, Ipv4Addr::LOCALHOST, None), Asked::Answered);
        answering.join().unwrap();
        assert_eq!(ask(at, Ipv4Addr::LOCALHOST, None), Asked::Refused, "its socket is closed");
        // From 127.0.0.1, nothing can be sent to the Internet.
        let far = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 3_544);
        assert!(matches!(ask(far, Ipv4Addr::LOCALHOST, None), Asked::NotSent(_)));
    }
}
