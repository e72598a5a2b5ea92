//! The UDP sockets of a Teredo client, except the receiving half of the service port, which a worker has.

use sixway_control::teredo_client::{DISCOVERY, Port};
use sixway_link::UdpTunnelSender;
use sixway_wire::Endpoint4;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::task::{Context, Poll};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// A router advertisement with all that may stand in front of it is shorter.
const ROOM: usize = 2_048;

/// Discovery bubbles that are heard in a second: each costs a turn of the control thread.
const DISCOVERIES: u8 = 64;
/// Errors of a socket in a row, after which the others have their turn.
const ERRORS: usize = 4;

/// A datagram: where it came to, from where, and its payload.
pub(super) type Heard = (Port, Endpoint4, Vec<u8>);

/// The sockets.
#[derive(Default)]
pub(super) struct TeredoSockets {
    /// A sending half.
    pub(super) service: Option<UdpTunnelSender>,
    others: Vec<(Port, Socket)>,
    /// Discovery bubbles that are still heard in this second.
    discoveries: u8,
}

/// The async runtime does not send before it has polled a socket once: datagrams are sent by the other half.
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
        if self.listens() {
            return Ok(());
        }
        let socket = open(SocketAddrV4::new(DISCOVERY.address, DISCOVERY.port))?;
        socket.receives.join_multicast_v4(DISCOVERY.address, *service.local().ip())?;
        self.others.push((Port::Discovery, socket));
        Ok(())
    }

    /// Whether there is a socket for clients of the same link.
    pub(super) fn listens(&self) -> bool {
        self.others.iter().any(|(port, _)| *port == Port::Discovery)
    }

    /// Another second begins.
    pub(super) const fn each_second(&mut self) {
        self.discoveries = DISCOVERIES;
    }

    /// A datagram that was heard.
    pub(super) fn note(&mut self, port: Port) {
        if port == Port::Discovery {
            self.discoveries = self.discoveries.saturating_sub(1);
        }
    }

    /// Closes a port.
    pub(super) fn close(&mut self, port: Port) {
        self.others.retain(|(open, _)| *open != port);
    }

    /// Closes all of them.
    pub(super) fn close_all(&mut self) {
        *self = Self::default();
    }

    /// Waits for a datagram; for ever without a socket. A flood of the link does not keep answers of the server waiting.
    pub(super) async fn hear(&self) -> Heard {
        let mut room = [0; ROOM];
        poll_fn(|context| {
            let (last, first): (Vec<_>, Vec<_>) =
                self.others.iter().partition(|(port, _)| *port == Port::Discovery);
            let last = last.into_iter().filter(|_| self.discoveries > 0);
            for (port, socket) in first.into_iter().chain(last) {
                let mut buffer = ReadBuf::new(&mut room);
                let received = past_errors(context, |context| {
                    buffer.clear();
                    socket.receives.poll_recv_from(context, &mut buffer)
                });
                if let Poll::Ready(from) = received {
                    return Poll::Ready((*port, from, buffer.filled().to_vec()));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// What a socket receives, past its errors: each is that of an earlier datagram, which did not arrive. After some of them the others have their turn, and
/// this one is read again soon: it does not signal that there is more.
fn past_errors(
    context: &mut Context<'_>,
    mut receive: impl FnMut(&mut Context<'_>) -> Poll<io::Result<SocketAddr>>,
) -> Poll<Endpoint4> {
    for _ in 0..ERRORS {
        match receive(context) {
            Poll::Ready(Ok(SocketAddr::V4(from))) => {
                return Poll::Ready(Endpoint4::new(*from.ip(), from.port()));
            }
            Poll::Ready(_) => {}
            Poll::Pending => return Poll::Pending,
        }
    }
    context.waker().wake_by_ref();
    Poll::Pending
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
        let mut sockets =
            TeredoSockets { service: Some(tunnel.sender().unwrap()), ..TeredoSockets::default() };
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

    #[tokio::test]
    async fn while_the_link_floods_an_answer_of_the_server_is_heard_first() {
        let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut sockets = TeredoSockets::default();
        sockets.others.push((Port::Discovery, open(here).unwrap()));
        sockets.others.push((Port::Probe, open(here).unwrap()));
        sockets.each_second();
        let other = std::net::UdpSocket::bind(here).unwrap();
        let send = |sockets: &TeredoSockets, place: usize, octets: &[u8]| {
            other.send_to(octets, sockets.others[place].1.sends.local_addr().unwrap()).unwrap();
        };
        (0..100).for_each(|_| send(&sockets, 0, b"bubble"));
        send(&sockets, 1, b"answer");
        // The runtime has not examined the sockets yet.
        for (_, socket) in &sockets.others {
            socket.receives.readable().await.unwrap();
        }
        let (port, _, octets) = sockets.hear().await;
        assert_eq!((port, &*octets), (Port::Probe, &b"answer"[..]));
        for _ in 0..DISCOVERIES {
            let (port, ..) = sockets.hear().await;
            assert_eq!(port, Port::Discovery);
            sockets.note(port);
        }
        let pause = std::time::Duration::from_millis(20);
        assert!(
            tokio::time::timeout(pause, sockets.hear()).await.is_err(),
            "the rate of a second is used up"
        );
        sockets.each_second();
        assert_eq!(sockets.hear().await.0, Port::Discovery);
    }

    #[test]
    fn a_socket_with_errors_in_a_row_is_asked_again_soon() {
        struct Woken(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Woken {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let woken = std::sync::Arc::new(Woken(false.into()));
        let waker = std::task::Waker::from(woken.clone());
        let mut asked = 0;
        let heard = past_errors(&mut Context::from_waker(&waker), |_| {
            asked += 1;
            Poll::Ready(Err(io::ErrorKind::ConnectionRefused.into()))
        });
        assert_eq!((heard, asked), (Poll::Pending, ERRORS));
        assert!(woken.0.load(std::sync::atomic::Ordering::Relaxed));
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
