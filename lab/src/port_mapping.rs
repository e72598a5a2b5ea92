//! A client of the Port Control Protocol (RFC 6887): a mapping for a port of TCP.

use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// RFC 6887 §19: the server's port.
const SERVER: u16 = 5351;
/// §8.1.1: the first retransmission is after 3 s, which is too long here.
const PATIENCE: Duration = Duration::from_secs(1);
/// A busy server may need a second request.
const ATTEMPTS: u32 = 5;
/// §9: the number of TCP.
const TCP: u8 = 6;

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct MappingRequest {
    /// The client's own address.
    pub client: IpAddr,
    /// Its port.
    pub port: u16,
    /// The external port that it would like to have; 0: any.
    pub suggested: u16,
    /// Seconds; 0 deletes the mapping.
    pub lifetime: u32,
}

/// What the server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The server's Epoch Time in seconds (§8.5).
    pub epoch: u32,
    /// Seconds.
    pub lifetime: u32,
    /// Where the client is reached.
    pub external: SocketAddr,
}

impl MappingRequest {
    /// Asks the server at this address, from the client's namespace.
    ///
    /// # Errors
    /// There is no answer, or it is an error.
    pub fn send(&self, host: &Namespace, server: IpAddr) -> Result<Mapping> {
        let request = self.octets();
        let answer = host.enter(|| exchange(self.client, server, &request))??;
        read(&answer)
    }

    /// §7.1 and §11.1. The nonce is the same for all requests of a port, so that they are about the same mapping.
    fn octets(&self) -> Vec<u8> {
        let mut octets = vec![2, 1, 0, 0];
        octets.extend(self.lifetime.to_be_bytes());
        octets.extend(mapped(self.client).octets());
        let [high, low] = self.port.to_be_bytes();
        octets.extend([high, low, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        octets.extend([TCP, 0, 0, 0, high, low]);
        octets.extend(self.suggested.to_be_bytes());
        let any =
            if self.client.is_ipv4() { mapped(Ipv4Addr::UNSPECIFIED.into()) } else { Ipv6Addr::UNSPECIFIED };
        octets.extend(any.octets());
        octets
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn exchange(client: IpAddr, server: IpAddr, request: &[u8]) -> Result<Vec<u8>> {
    let asking = || format!("asking the PCP server {server}");
    let socket = UdpSocket::bind((client, 0)).asking(asking)?;
    socket.set_read_timeout(Some(PATIENCE)).asking(asking)?;
    let mut octets = [0; 1_200];
    for _ in 0..ATTEMPTS {
        socket.send_to(request, (server, SERVER)).asking(asking)?;
        if let Ok((length, from)) = socket.recv_from(&mut octets)
            && from.ip() == server
        {
            return Ok(octets[..length].to_vec());
        }
    }
    Err(Failure::TimedOut(format!("the PCP server {server} does not answer")))
}

/// §7.2 and §11.1.
fn read(answer: &[u8]) -> Result<Mapping> {
    let word = |at: usize| Some(u32::from_be_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let port = || Some(u16::from_be_bytes(answer.get(42..44)?.try_into().ok()?));
    let address = || Some(Ipv6Addr::from(<[u8; 16]>::try_from(answer.get(44..60)?).ok()?));
    let parts = (answer.get(3), word(4), word(8), port(), address());
    let (Some(0), Some(lifetime), Some(epoch), Some(port), Some(address)) = parts else {
        return Err(Failure::Unexpected(format!("the PCP server answered {answer:?}")));
    };
    let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
    Ok(Mapping { epoch, lifetime, external: SocketAddr::new(address, port) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_a_mapping_has_sixty_octets_and_its_answer_is_read() {
        let request = MappingRequest {
            client: Ipv4Addr::new(192, 168, 1, 2).into(),
            port: 80,
            suggested: 8_080,
            lifetime: 120,
        };
        let octets = request.octets();
        assert_eq!((octets.len(), &octets[..8]), (60, &[2, 1, 0, 0, 0, 0, 0, 120][..]));
        assert_eq!(
            (&octets[20..24], &octets[36..44]),
            (&[192, 168, 1, 2][..], &[6, 0, 0, 0, 0, 80, 31, 144][..])
        );
        let mut answer = octets;
        answer[1] |= 0x80;
        answer[8..12].copy_from_slice(&9_u32.to_be_bytes());
        answer[44..60].copy_from_slice(&Ipv4Addr::new(203, 0, 113, 1).to_ipv6_mapped().octets());
        let external = SocketAddr::from(([203, 0, 113, 1], 8_080));
        assert_eq!(read(&answer).unwrap(), Mapping { epoch: 9, lifetime: 120, external });
        answer[3] = 8;
        assert!(read(&answer).is_err(), "NO_RESOURCES");
        assert!(read(&answer[..59]).is_err());
    }
}
