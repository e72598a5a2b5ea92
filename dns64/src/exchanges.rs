//! Queries in progress to upstreams: a socket for each query over UDP, a channel for each one over TCP, TLS or HTTPS.

use super::post::{Post, ReplyTo, UpstreamQuery};
use super::watch::{Ready, Watch};
use sixway_control::dns64::{Exchange, Failure, QueryTransport, Transmit};
use sixway_link::UdpExchange;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use tokio::sync::{mpsc, oneshot};

/// The outcome of a question that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is on its way.
    Yes,
    /// It was not put for lack of a descriptor or of room: no fault of the upstream, and asked again soon.
    Lost,
    /// It cannot go there.
    Failed(Failure),
}

/// Where an exchange is.
#[derive(Debug)]
enum Under {
    /// At this place.
    Datagram(u32),
    /// By a stream; kept as long as a reply is wanted.
    Stream { _wanted: oneshot::Sender<()> },
}

/// The exchanges of a thread; the resolver bounds their number.
#[derive(Debug)]
pub(super) struct Exchanges {
    /// Where each upstream is.
    peers: Vec<SocketAddr>,
    streams: Option<mpsc::Sender<UpstreamQuery>>,
    under_way: HashMap<Exchange, Under>,
    sockets: Vec<Option<(Exchange, UdpExchange)>>,
    free: Vec<u32>,
}

impl Exchanges {
    /// With upstreams there. What is to go by streams goes to `streams`.
    pub(super) fn new(peers: Vec<SocketAddr>, streams: Option<mpsc::Sender<UpstreamQuery>>) -> Self {
        let (under_way, sockets, free) = (HashMap::new(), Vec::new(), Vec::new());
        Self { peers, streams, under_way, sockets, free }
    }

    /// Sets the upstreams; queries over streams are passed to `streams`.
    pub(super) fn set_peers(&mut self, peers: Vec<SocketAddr>, streams: mpsc::Sender<UpstreamQuery>) {
        (self.peers, self.streams) = (peers, Some(streams));
    }

    /// Sends a question.
    pub(super) fn send(&mut self, transmit: Transmit, watch: &Watch, post: &Post) -> Sent {
        match transmit.way {
            QueryTransport::Datagram => self.by_datagram(&transmit, watch),
            QueryTransport::Stream => self.by_stream(transmit, post),
        }
    }

    fn by_datagram(&mut self, transmit: &Transmit, watch: &Watch) -> Sent {
        let Some(peer) = self.peers.get(transmit.upstream) else { return Sent::Failed(Failure::Unreachable) };
        let place = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(None);
            (self.sockets.len() - 1) as u32
        });
        let opened = UdpExchange::open(*peer).and_then(|socket| {
            socket.send(&transmit.message)?;
            watch.add(socket.poll_fd(), Ready::Exchange(place))?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                self.sockets[place as usize] = Some((transmit.exchange, socket));
                self.under_way.insert(transmit.exchange, Under::Datagram(place));
                Sent::Yes
            }
            Err(error) => {
                self.free.push(place);
                not_sent(&error)
            }
        }
    }

    fn by_stream(&mut self, transmit: Transmit, post: &Post) -> Sent {
        let Some(streams) = &self.streams else { return Sent::Failed(Failure::Unreachable) };
        let (reply, wanted) = ReplyTo::new(transmit.exchange, post.clone());
        let Transmit { upstream, payer, message, .. } = transmit;
        let query = UpstreamQuery { upstream, payer, message, reply };
        match streams.try_send(query) {
            Ok(()) => {
                self.under_way.insert(transmit.exchange, Under::Stream { _wanted: wanted });
                Sent::Yes
            }
            // Dropping it tells the thread that the stream is closed.
            Err(_) => Sent::Lost,
        }
    }

    /// Reads from the socket at a place. `None`: nothing waits, or the other end does not exist.
    pub(super) fn receive<'room>(
        &self,
        place: u32,
        room: &'room mut [u8],
    ) -> Option<(Exchange, Result<&'room [u8], Failure>)> {
        let (exchange, socket) = self.sockets.get(place as usize)?.as_ref()?;
        match socket.receive(room) {
            Ok(None) => None,
            Ok(Some(length)) => Some((*exchange, Ok(&room[..length.min(room.len())]))),
            Err(_) => Some((*exchange, Err(Failure::Unreachable))),
        }
    }

    /// An exchange has ended: its socket is closed, or the stream is informed that nothing waits.
    pub(super) fn end(&mut self, exchange: Exchange) {
        if let Some(Under::Datagram(place)) = self.under_way.remove(&exchange) {
            self.sockets[place as usize] = None;
            self.free.push(place);
        }
    }

    /// How many are under way.
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }
}

/// Whether it is the upstream that cannot be reached, or this host that has nothing left.
fn not_sent(error: &io::Error) -> Sent {
    use io::ErrorKind::{AddrNotAvailable, WouldBlock};
    let exhausted = matches!(error.kind(), AddrNotAvailable | WouldBlock | io::ErrorKind::OutOfMemory);
    let limits = [nix::libc::EMFILE, nix::libc::ENFILE, nix::libc::ENOBUFS];
    match exhausted || error.raw_os_error().is_some_and(|number| limits.contains(&number)) {
        true => Sent::Lost,
        false => Sent::Failed(Failure::Unreachable),
    }
}

#[cfg(test)]
mod tests {
    use super::super::post::{ThreadMessage, mailbox};
    use super::*;
    use sixway_control::dns64::Payer;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn question(exchange: u64, upstream: usize, way: QueryTransport) -> Transmit {
        Transmit { exchange: Exchange(exchange), upstream, way, payer: Payer::OWN, message: vec![1, 2, 3] }
    }

    fn next(watch: &mut Watch) -> Ready {
        watch.wait(Duration::from_secs(2)).unwrap();
        assert_eq!(watch.heard(), 1);
        watch.ready(0)
    }

    #[test]
    fn a_question_is_answered_on_a_socket_that_closes_with_the_exchange() {
        let upstream = UdpSocket::bind("[::1]:0").unwrap();
        let mut watch = Watch::new().unwrap();
        let (post, _mailbox) = mailbox().unwrap();
        let mut exchanges = Exchanges::new(vec![upstream.local_addr().unwrap()], None);
        for number in 7..9 {
            assert_eq!(
                exchanges.send(question(number, 0, QueryTransport::Datagram), &watch, &post),
                Sent::Yes
            );
            let mut room = [0; 64];
            let (length, from) = upstream.recv_from(&mut room).unwrap();
            assert_eq!(&room[..length], [1, 2, 3]);
            upstream.send_to(&[9], from).unwrap();
            // The place of the first is the second's.
            assert_eq!(next(&mut watch), Ready::Exchange(0));
            assert_eq!(exchanges.receive(0, &mut room), Some((Exchange(number), Ok([9].as_slice()))));
            assert_eq!(exchanges.receive(0, &mut room), None);
            exchanges.end(Exchange(number));
            exchanges.end(Exchange(number));
            assert_eq!((exchanges.len(), exchanges.receive(0, &mut room)), (0, None));
        }
    }

    /// A port without a listener: a process that another test has just forked keeps a closed socket open until it executes another program.
    fn nobody() -> SocketAddr {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
        asking.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        asking.connect(gone).unwrap();
        let is_refused = (0..10).any(|_| {
            let sent = asking.send(b"?").and_then(|_| asking.recv(&mut [0; 1]));
            sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        });
        assert!(is_refused);
        gone
    }

    #[test]
    fn where_nobody_listens_the_exchange_fails() {
        let gone = nobody();
        let mut watch = Watch::new().unwrap();
        let (post, _mailbox) = mailbox().unwrap();
        let mut exchanges = Exchanges::new(vec![gone], None);
        assert_eq!(exchanges.send(question(1, 0, QueryTransport::Datagram), &watch, &post), Sent::Yes);
        assert_eq!(next(&mut watch), Ready::Exchange(0));
        let failed = Some((Exchange(1), Err(Failure::Unreachable)));
        assert_eq!(exchanges.receive(0, &mut [0; 64]), failed);
        let nowhere = Sent::Failed(Failure::Unreachable);
        assert_eq!(exchanges.send(question(2, 9, QueryTransport::Datagram), &watch, &post), nowhere);
        assert_eq!(exchanges.send(question(3, 0, QueryTransport::Stream), &watch, &post), nowhere);
        let nothing_left = io::Error::from_raw_os_error(nix::libc::EMFILE);
        assert_eq!(not_sent(&nothing_left), Sent::Lost);
    }

    #[test]
    fn a_question_by_stream_is_handed_over_and_taken_back() {
        let (sender, mut orders) = mpsc::channel(1);
        let watch = Watch::new().unwrap();
        let (post, mailbox) = mailbox().unwrap();
        let mut exchanges = Exchanges::new(vec![], Some(sender));
        assert_eq!(exchanges.send(question(1, 4, QueryTransport::Stream), &watch, &post), Sent::Yes);
        assert_eq!(exchanges.send(question(2, 4, QueryTransport::Stream), &watch, &post), Sent::Lost);
        assert!(matches!(mailbox.next(), Some(ThreadMessage::Reply(Exchange(2), Err(Failure::Closed)))));
        let mut order = orders.try_recv().unwrap();
        assert_eq!((order.upstream, order.message), (4, vec![1, 2, 3]));
        assert!(!order.reply.is_cancelled());
        exchanges.end(Exchange(1));
        assert!(order.reply.is_cancelled());
    }
}
