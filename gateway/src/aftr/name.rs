//! The addresses of an AFTR's name (RFC 6334 §4), resolved over IPv6.

use super::name_servers::name_servers;
use crate::config::B4;
use sixway_control::b4::{AftrAddresses, AftrQuery, ReplyFault};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// How long a name server has for a reply.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often each name server is asked in a row.
const TRIES: usize = 2;

/// Asks the name servers, each in turn.
pub(crate) async fn resolve(name: &str, b4: &B4) -> Result<AftrAddresses, String> {
    let servers = name_servers(&b4.name_servers);
    if servers.is_empty() {
        return Err("no name server with an IPv6 address is known; write name_servers".to_owned());
    }
    let mut failure = String::new();
    for server in std::iter::repeat_n(&servers, TRIES).flatten() {
        let id = RandomState::new().hash_one(server) as u16;
        let query = AftrQuery::new(name, id).ok_or("not a domain name")?;
        match ask(*server, &query).await {
            Ok(found) => return allowed(found, b4),
            Err(what) => failure = format!("{what} (name server {})", server.ip()),
        }
    }
    Err(failure)
}

/// Those of the addresses that the AFTR may have.
fn allowed(mut found: AftrAddresses, b4: &B4) -> Result<AftrAddresses, String> {
    let first = found.addresses.first().map(ToString::to_string).unwrap_or_default();
    let is_allowed = |address: &Ipv6Addr| {
        b4.aftr_within.is_empty() || b4.aftr_within.iter().any(|prefix| prefix.contains(*address))
    };
    found.addresses.retain(is_allowed);
    if found.addresses.is_empty() { Err(format!("{first} is not within aftr_within")) } else { Ok(found) }
}

async fn ask(server: SocketAddr, query: &AftrQuery) -> Result<AftrAddresses, String> {
    let any: SocketAddr = if server.is_ipv4() { ([0_u8; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let exchange = async {
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        socket.send(&query.message()).await?;
        let mut reply = [0; 4_096];
        loop {
            let length = socket.recv(&mut reply).await?;
            match query.read(&reply[..length]) {
                Err(ReplyFault::Foreign) => {}
                Err(ReplyFault::Truncated) => return ask_by_stream(server, query).await,
                read => return Ok(read),
            }
        }
    };
    match timeout(PATIENCE, exchange).await {
        Err(_) => Err("no reply".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(read)) => read.map_err(|fault| fault.to_string()),
    }
}

async fn ask_by_stream(
    server: SocketAddr,
    query: &AftrQuery,
) -> io::Result<Result<AftrAddresses, ReplyFault>> {
    let mut stream = TcpStream::connect(server).await?;
    let message = query.message();
    stream.write_u16(message.len() as u16).await?;
    stream.write_all(&message).await?;
    let length = stream.read_u16().await?;
    let mut reply = vec![0; length.into()];
    stream.read_exact(&mut reply).await?;
    Ok(query.read(&reply))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, Ipv4Addr};

    /// A reply to a query: its header's flags, and this address with a TTL of 300 s.
    fn reply(query: &[u8], flags: u16, address: Ipv6Addr) -> Vec<u8> {
        let mut octets = query[..query.len() - 11].to_vec();
        octets[2..4].copy_from_slice(&flags.to_be_bytes());
        octets[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
        octets.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 1, 44, 0, 16]);
        octets.extend(address.octets());
        octets
    }

    fn aftr() -> Ipv6Addr {
        "2001:db8:a::1".parse().unwrap()
    }

    /// A name server that answers one query with each of these flags, and streams in any case.
    fn server(flags: &'static [u16]) -> SocketAddr {
        let local = (Ipv4Addr::LOCALHOST, 0);
        let datagrams = std::net::UdpSocket::bind(local).unwrap();
        let address = datagrams.local_addr().unwrap();
        let streams = std::net::TcpListener::bind(address).unwrap();
        std::thread::spawn(move || {
            for flags in flags {
                let mut query = [0; 512];
                let (length, from) = datagrams.recv_from(&mut query).unwrap();
                datagrams.send_to(&reply(&query[..length], *flags, aftr()), from).unwrap();
            }
        });
        std::thread::spawn(move || {
            let (mut stream, _) = streams.accept().unwrap();
            let (mut length, mut query) = ([0; 2], [0; 512]);
            stream.read_exact(&mut length).unwrap();
            let query = &mut query[..u16::from_be_bytes(length).into()];
            stream.read_exact(query).unwrap();
            let reply = reply(query, 0x8180, aftr());
            stream.write_all(&(reply.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&reply).unwrap();
        });
        address
    }

    fn asked(server: SocketAddr) -> Result<AftrAddresses, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask(server, &AftrQuery::new("aftr.example", 7).unwrap()))
    }

    #[test]
    fn a_name_server_s_addresses_are_taken_by_datagram_or_if_they_are_cut_by_stream() {
        let found = AftrAddresses { addresses: vec![aftr()], again: Duration::from_secs(300) };
        for flags in [&[0x8180][..], &[0x8380]] {
            assert_eq!(asked(server(flags)), Ok(found.clone()));
        }
        assert_eq!(asked(server(&[0x8183])), Err("the name does not exist".to_owned()));
        let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = silent.local_addr().unwrap();
        assert!(matches!(address.ip(), IpAddr::V4(_)));
        assert_eq!(asked(address), Err("no reply".to_owned()));
    }

    /// RFC 6334 §6: a forged option, or a forged record, leads the traffic elsewhere.
    #[test]
    fn of_a_name_only_addresses_within_aftr_within_are_used() {
        let b4 = |within: &str| {
            let text = format!(
                "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:99::b4\"\naftr = \"aftr.example\"\n{within}"
            );
            crate::sample::config(&text).b4s().next().cloned().unwrap()
        };
        let found = |all: &[&str]| AftrAddresses {
            addresses: all.iter().map(|address| address.parse().unwrap()).collect(),
            again: Duration::from_secs(300),
        };
        let (own, forged) = ("2001:db8:a::1", "2001:db8:bad::1");
        let within = b4("aftr_within = [\"2001:db8:a::/64\", \"2001:db8:c::/64\"]\n");
        for (all, expected) in [
            (&[own][..], Ok(found(&[own]))),
            (&[forged, own, "2001:db8:c::1"], Ok(found(&[own, "2001:db8:c::1"]))),
            (&[forged], Err("2001:db8:bad::1 is not within aftr_within".to_owned())),
        ] {
            assert_eq!(allowed(found(all), &within), expected);
        }
        assert_eq!(allowed(found(&[forged]), &b4("")), Ok(found(&[forged])), "any, by default");
    }
}
