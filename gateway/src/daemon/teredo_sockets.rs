//! The UDP sockets of a Teredo client but for the service port's receiving half, which a worker has.

use sixway_control::teredo_client::{DISCOVERY, Port};
use sixway_link::UdpTunnelSender;
use sixway_wire::Endpoint4;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::task::Poll;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// A router advertisement with all that may stand in front of it is shorter.
const ROOM: usize = 2_048;

/// A datagram: where it came to, from where, and its payload.
pub(super) type Heard = (Port, Endpoint4, Vec<u8>);

/// The sockets.
#[derive(Default)]
pub(super) struct TeredoSockets {
    /// A sending half.
    pub(super) service: Option<UdpTunnelSender>,
    others: Vec<(Port, Socket)>,
}

/// The runtime does not send before it has looked at a socket once: what is sent leaves by the other half.
struct Socket {
    receives: UdpSocket,
    sends: std::net::UdpSocket,
}

impl TeredoSockets {
    /// Sends a datagram; a port that is not open is opened.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn send(&mut self, from: Port, to: Endpoint4, octets: &[u8]) -> io::Result<()> {
        let Some(service) = &self.service else { return Err(io::ErrorKind::NotConnected.into()) };
        let to = SocketAddrV4::new(to.address, to.port);
        if from == Port::Service {
            return service.send_to(octets, to);
        }
        let own = *service.local().ip();
        if !self.others.iter().any(|(port, _)| *port == from) {
            self.others.push((from, open(SocketAddrV4::new(own, 0))?));
        }
        let socket = self.others.iter().find(|(port, _)| *port == from);
        socket.map_or(Ok(()), |(_, socket)| socket.sends.send_to(octets, to).map(drop))
    }

    /// Listens for clients of the same link (RFC 4380 §5.2.8).
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        let Some(service) = &self.service else { return Ok(()) };
        if self.others.iter().any(|(port, _)| *port == Port::Discovery) {
            return Ok(());
        }
        let socket = open(SocketAddrV4::new(DISCOVERY.address, DISCOVERY.port))?;
        socket.receives.join_multicast_v4(DISCOVERY.address, *service.local().ip())?;
        self.others.push((Port::Discovery, socket));
        Ok(())
    }

    /// Closes a port.
    pub(super) fn close(&mut self, port: Port) {
        self.others.retain(|(open, _)| *open != port);
    }

    /// Closes all of them.
    pub(super) fn close_all(&mut self) {
        *self = Self::default();
    }

    /// Waits for a datagram; for ever without a socket.
    pub(super) async fn hear(&self) -> Heard {
        let mut room = [0; ROOM];
        poll_fn(|context| {
            for (port, socket) in &self.others {
                let mut buffer = ReadBuf::new(&mut room);
                // An error is that of an earlier datagram: it did not arrive.
                while let Poll::Ready(outcome) = socket.receives.poll_recv_from(context, &mut buffer) {
                    if let Ok(SocketAddr::V4(from)) = outcome {
                        let from = Endpoint4::new(*from.ip(), from.port());
                        return Poll::Ready((*port, from, buffer.filled().to_vec()));
                    }
                    buffer.clear();
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn open(local: SocketAddrV4) -> io::Result<Socket> {
    let sends = std::net::UdpSocket::bind(local)?;
    sends.set_nonblocking(true)?;
    Ok(Socket { receives: UdpSocket::from_std(sends.try_clone()?)?, sends })
}

/// The payload of a datagram for this endpoint, in a whole IPv4 packet that a worker gave to control.
pub(super) fn payload_to(local: Endpoint4, packet: &[u8]) -> Option<(Endpoint4, &[u8])> {
    let (header, behind) = sixway_wire::Ipv4Header::split(packet).ok()?;
    if header.protocol != sixway_wire::protocol::UDP || header.is_fragment() {
        return None;
    }
    let (udp, payload) = sixway_wire::UdpHeader::split(behind).ok()?;
    let is_for_us = Endpoint4::new(header.destination, udp.destination) == local;
    is_for_us.then(|| (Endpoint4::new(header.source, udp.source), payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn a_port_that_was_closed_and_opened_again_has_another_number() {
        let tunnel = sixway_link::UdpTunnel::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut sockets = TeredoSockets { service: Some(tunnel.sender().unwrap()), others: Vec::new() };
        let other = open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap().receives;
        let SocketAddr::V4(at) = other.local_addr().unwrap() else { panic!("IPv4") };
        let at = Endpoint4::new(*at.ip(), at.port());
        let mut room = [0; 64];
        let mut from = Vec::new();
        for port in [Port::Service, Port::Secondary, Port::Secondary] {
            sockets.send(port, at, b"hello").unwrap();
            let (length, sender) = other.recv_from(&mut room).await.unwrap();
            assert_eq!(&room[..length], b"hello");
            from.push(sender.port());
            if port == Port::Secondary && from.len() == 2 {
                other.send_to(b"answer", sender).await.unwrap();
                let (port, source, octets) = sockets.hear().await;
                assert_eq!((port, source, &*octets), (Port::Secondary, at, &b"answer"[..]));
            }
        }
        assert_eq!((from[0], from[1]), (tunnel.local().port(), from[2]));
        assert_ne!(from[0], from[1]);
    }

    #[test]
    fn a_packet_for_another_port_is_not_the_clients() {
        let (here, there) = ([192, 0, 2, 1], [192, 0, 2, 9]);
        let mut packet = vec![0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend(there.iter().chain(&here));
        packet.extend([13, 216, 100, 0, 0, 10, 0, 0, 7, 7]);
        let local = Endpoint4::new(here.into(), 25_600);
        let from = Endpoint4::new(there.into(), 3_544);
        assert_eq!(payload_to(local, &packet), Some((from, &[7, 7][..])));
        assert_eq!(payload_to(Endpoint4 { port: 25_601, ..local }, &packet), None);
    }
}
