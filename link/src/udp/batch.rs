//! Datagrams that are received together, and those that are sent together. Their buffers are allocated once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

/// Datagrams that one system call receives or sends.
pub const BATCH: usize = 64;

/// Octets of a datagram that are received: no query is longer. One that is has its end cut off.
pub(super) const LONGEST: usize = 2_048;
/// Octets that an answer may have before more room is made for it.
const USUAL: usize = 4_096;

/// The path of a datagram, and so of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The other end.
    pub peer: SocketAddr,
    /// The local address that the query was sent to; `None` where the socket has only one.
    pub local: Option<IpAddr>,
    /// The interface by which it came; 0: not known.
    pub interface: u32,
}

impl Path {
    /// Not a path.
    pub(super) const NONE: Self =
        Self { peer: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)), local: None, interface: 0 };
}

/// Datagrams that were received.
#[derive(Debug)]
pub struct Arrivals {
    pub(super) octets: Box<[u8]>,
    pub(super) lengths: [usize; BATCH],
    pub(super) paths: [Path; BATCH],
    pub(super) count: usize,
}

impl Arrivals {
    /// Room for a batch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            octets: vec![0; BATCH * LONGEST].into(),
            lengths: [0; BATCH],
            paths: [Path::NONE; BATCH],
            count: 0,
        }
    }

    /// What was received last, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Path, &[u8])> {
        let octets = self.octets.chunks_exact(LONGEST).zip(&self.lengths);
        let octets = octets.map(|(room, length)| &room[..*length]);
        self.paths[..self.count].iter().zip(octets)
    }
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::new()
    }
}

/// Datagrams that are to be sent.
#[derive(Debug)]
pub struct Departures {
    pub(super) messages: Vec<Vec<u8>>,
    pub(super) paths: [Path; BATCH],
    pub(super) count: usize,
}

impl Departures {
    /// Room for a batch.
    #[must_use]
    pub fn new() -> Self {
        let messages = (0..BATCH).map(|_| Vec::with_capacity(USUAL)).collect();
        Self { messages, paths: [Path::NONE; BATCH], count: 0 }
    }

    /// Where the next datagram is written; it holds anything until then. [`Departures::push`] makes it one of those that leave.
    ///
    /// # Panics
    /// When the batch [is full](Departures::is_full).
    pub fn room(&mut self) -> &mut Vec<u8> {
        &mut self.messages[self.count]
    }

    /// Queues what was written to the [room](Departures::room), to leave by this path.
    pub fn push(&mut self, path: Path) {
        self.paths[self.count] = path;
        self.count += 1;
    }

    /// Whether it must be sent before there is room again.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// How many there are to send.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Default for Departures {
    fn default() -> Self {
        Self::new()
    }
}
