//! UDP from one host to another with sockets of our own: what arrives, and from where.

use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::namespace::Namespace;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A UDP socket on a host, which waits 2 s for what it is to receive.
pub fn socket(host: &Namespace, address: &str) -> Result<UdpSocket> {
    let socket = host.enter(|| UdpSocket::bind(address))?.asking(|| format!("binding {address}"))?;
    socket.set_read_timeout(Some(Duration::from_secs(2))).asking(|| "setting a time limit".to_owned())?;
    Ok(socket)
}

/// Sends octets, and demands that the other socket receives them as they are; where they came from.
pub fn arrives(from: &UdpSocket, to: &str, at: &UdpSocket, octets: &[u8]) -> Result<SocketAddr> {
    from.send_to(octets, to).asking(|| format!("sending {} octets to {to}", octets.len()))?;
    let mut received = vec![0; 65_535];
    let (length, source) =
        at.recv_from(&mut received).asking(|| format!("{} octets to {to}", octets.len()))?;
    if received[..length] != *octets {
        return Err(Failure::Unexpected(format!(
            "{} octets were sent to {to}, others arrived",
            octets.len()
        )));
    }
    Ok(source)
}

/// Octets that differ from one another, so that a mistake in their order shows.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}
