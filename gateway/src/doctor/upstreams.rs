//! Whether the DNS64's upstreams answer.

use super::finding::Finding;
use crate::config::Config;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const CHECK: &str = "dns64";
const PATIENCE: Duration = Duration::from_secs(2);

/// A question for the name servers of the root (RFC 1035 §4.1), recursion desired.
const QUESTION: [u8; 17] = [0x51, 0x57, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let Some(dns64) = &config.dns64 else { return Vec::new() };
    let asked = dns64.upstreams.iter().map(|upstream| {
        let endpoint = upstream.endpoint();
        let answer = match upstream.transport.is_secured() {
            true => {
                TcpStream::connect_timeout(&endpoint, PATIENCE).map(drop).map_err(|error| error.to_string())
            }
            false => ask(endpoint),
        };
        match answer {
            Ok(()) => Finding::fine(CHECK, format!("upstream {endpoint} answers")),
            Err(why) => Finding::fault(
                CHECK,
                format!("upstream {endpoint} does not answer: {why}"),
                format!("ip route get {}; another upstream in dns64.upstream", endpoint.ip()),
            ),
        }
    });
    asked.collect()
}

fn ask(endpoint: SocketAddr) -> Result<(), String> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer within 2 s".to_owned(),
        _ => error.to_string(),
    };
    let any: SocketAddr = if endpoint.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(endpoint).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    socket.send(&QUESTION).map_err(failed)?;
    let mut answer = [0; 4_096];
    let length = socket.recv(&mut answer).map_err(failed)?;
    match length >= 12 && answer[..2] == QUESTION[..2] && answer[2] & 0x80 != 0 {
        true => Ok(()),
        false => Err("what came is no answer".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_answers_and_one_that_does_not() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let endpoint = server.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 100];
            let (length, client) = server.recv_from(&mut buffer).unwrap();
            buffer[2] |= 0x80;
            server.send_to(&buffer[..length], client).unwrap();
            let (length, client) = server.recv_from(&mut buffer).unwrap();
            server.send_to(&buffer[..length], client).unwrap();
        });
        assert_eq!(ask(endpoint), Ok(()));
        assert_eq!(ask(endpoint), Err("what came is no answer".into()));
        answering.join().unwrap();
        assert!(ask(endpoint).is_err(), "nobody is there any more");
    }
}
