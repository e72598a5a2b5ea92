//! The control connections of a translator, and their number.
//!
//! A connection without room in the table is translated like any other: its lines are not read. It counts from the server's answer on, and a subscriber has no more
//! than its share ([`super::shares`]).

use super::connection::Connection;
use super::ends::Ends;
use super::ftp::{Asked, CONTROL_PORT};
use super::handshakes::Handshakes;
use super::openings::Openings;
use super::segment::TcpSegment;
use super::shares::{Sharer, Shares};
use crate::counters::Counters;
use crate::direction::Direction;
use crate::instant::Instant;
use crate::parse::{ACK, Packet, SYN, Transport};
use crate::verdict::TcpRewrite;
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::time::Duration;

/// Connections of a worker's share of a translator.
const MOST: usize = 4_096;
/// How long a connection is kept after both sides have closed it, for retransmissions.
const CLOSED_FOR: Duration = Duration::from_secs(10);
/// Matches no port.
const NO_PORT: u32 = 0x1_0000;

/// Whether a packet may be of a control connection of FTP, by its ports.
#[inline(always)]
pub(crate) const fn may_be_of_control_connection(packet: &Packet) -> bool {
    matches!(
        packet.transport,
        Transport::Ports { source: CONTROL_PORT, .. } | Transport::Ports { destination: CONTROL_PORT, .. }
    )
}

/// A connection, and its subscriber.
#[derive(Clone, Debug)]
struct Owned {
    connection: Connection,
    subscriber: Sharer,
    /// The time at which both sides had closed it.
    closed: Option<Instant>,
}

/// The connections.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    /// The port of servers, or [`NO_PORT`].
    port: u32,
    all: BTreeMap<Ends, Owned>,
    shares: Shares,
    handshakes: Handshakes,
    /// The last one that was checked for its end.
    cursor: Option<Ends>,
}

impl Connections {
    /// An empty table; `is_on`: connections are read.
    pub(crate) const fn new(is_on: bool) -> Self {
        let port = if is_on { CONTROL_PORT as u32 } else { NO_PORT };
        let shares = Shares::new(MOST);
        Self { port, all: BTreeMap::new(), shares, handshakes: Handshakes::new(), cursor: None }
    }

    /// Whether there may be connections.
    pub(crate) const fn is_on(&self) -> bool {
        self.port != NO_PORT
    }

    /// Whether a packet to or from this remote port may be of such a connection.
    #[inline(always)]
    pub(crate) const fn may_have(&self, port: u16) -> bool {
        port as u32 == self.port
    }

    /// Processes a segment between these ends. Returns its changes; `None`: none.
    pub(crate) fn pass(
        &mut self,
        (ends, direction): (Ends, Direction),
        segment: &TcpSegment<'_>,
        (client, subscriber): (IpAddr, Sharer),
        openings: &mut dyn Openings,
        (now, counters): (Instant, &mut Counters),
    ) -> Option<TcpRewrite> {
        if segment.flags & SYN != 0 {
            self.shake_hands((ends, direction), segment, subscriber, (now, counters));
            return None;
        }
        let owned = self.all.get_mut(&ends)?;
        let mut asked = Asked { client, server: ends.server.address, openings };
        let rewrite = owned.connection.pass(segment, direction, &mut asked, counters);
        if owned.connection.has_ended() {
            owned.closed.get_or_insert(now);
        }
        rewrite
    }

    /// Processes a SYN. A server's SYN begins a connection, if it answers the client's.
    fn shake_hands(
        &mut self,
        (ends, direction): (Ends, Direction),
        syn: &TcpSegment<'_>,
        subscriber: Sharer,
        (now, counters): (Instant, &mut Counters),
    ) {
        match (direction, syn.flags & ACK != 0) {
            // An FTP client sends nothing before the server does, and no data in its SYN (RFC 7413).
            (Direction::Out, false) if syn.is_sound && syn.payload.is_empty() => {
                let is_new = self.all.get(&ends).is_none_or(|owned| owned.connection.is_other(syn));
                if is_new {
                    self.handshakes.add(ends, syn.sequence, subscriber, now);
                }
            }
            (Direction::In, true) if syn.is_sound => {
                if let Some((client, subscriber)) = self.handshakes.answer(ends, syn.acknowledgment) {
                    self.remove(ends);
                    self.open(ends, Connection::new(client, syn.sequence), subscriber, counters);
                }
            }
            (Direction::Out | Direction::In, _) => {}
        }
    }

    fn open(&mut self, ends: Ends, connection: Connection, subscriber: Sharer, counters: &mut Counters) {
        if !self.shares.may_have_more(subscriber) {
            counters.ftp_connections_refused += 1;
            return;
        }
        counters.ftp_connections_made += 1;
        self.shares.add(subscriber);
        self.all.insert(ends, Owned { connection, subscriber, closed: None });
    }

    fn remove(&mut self, ends: Ends) {
        if let Some(owned) = self.all.remove(&ends) {
            self.shares.remove(owned.subscriber);
        }
    }

    /// Removes connections that have ended; checks at most `budget` of them. `is_open` returns whether the NAT has a session.
    pub(crate) fn expire(&mut self, now: Instant, budget: usize, is_open: impl Fn(Ends) -> bool) {
        self.handshakes.expire(now, budget);
        for _ in 0..budget.min(self.all.len()) {
            let after = self.cursor.map_or(core::ops::Bound::Unbounded, core::ops::Bound::Excluded);
            let next = self.all.range((after, core::ops::Bound::Unbounded)).next();
            let Some((ends, owned)) = next else {
                self.cursor = None;
                break;
            };
            let (ends, closed) = (*ends, owned.closed);
            self.cursor = Some(ends);
            if closed.is_some_and(|closed| now.since(closed) >= CLOSED_FOR) || !is_open(ends) {
                self.remove(ends);
            }
        }
    }
}
