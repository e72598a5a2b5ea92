//! The control connections of a translator, and how many of them there are.
//!
//! A connection that finds no room is translated as any other: its lines are not read. While there is room, a subscriber may have an
//! eighth of what is left, [`MOST_OF_SUBSCRIBER`] at most and one at least: who opens many leaves one for each other.

use super::connection::Connection;
use super::ftp::{Asked, CONTROL_PORT};
use super::openings::Openings;
use super::segment::TcpSegment;
use crate::counters::Counters;
use crate::direction::Direction;
use crate::instant::Instant;
use crate::parse::{ACK, Packet, SYN, Transport};
use crate::verdict::TcpRewrite;
use core::net::IpAddr;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;
use std::time::Duration;

/// Connections of a worker's share of a translator.
const MOST: usize = 4_096;
/// Connections of a subscriber.
const MOST_OF_SUBSCRIBER: usize = 64;
/// How long a connection that both sides have closed is remembered, for retransmissions.
const CLOSED_FOR: Duration = Duration::from_secs(10);
/// Matches no port.
const NO_PORT: u32 = 0x1_0000;

/// The two ends of a connection as they are outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    /// The outside endpoint of the client.
    pub(crate) outside: Endpoint4,
    /// The server.
    pub(crate) server: Endpoint4,
}

/// Whether a packet may be of a control connection of FTP, by its ports.
#[inline(always)]
pub(crate) const fn may_be_of_control_connection(packet: &Packet) -> bool {
    matches!(
        packet.transport,
        Transport::Ports { source: CONTROL_PORT, .. } | Transport::Ports { destination: CONTROL_PORT, .. }
    )
}

/// A connection, and whose it is.
#[derive(Clone, Debug)]
struct Owned {
    connection: Connection,
    subscriber: u32,
    /// When both sides had closed it.
    closed: Option<Instant>,
}

/// The connections.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    /// The port of servers, or [`NO_PORT`].
    port: u32,
    all: BTreeMap<Ends, Owned>,
    /// How many each subscriber has.
    of_subscribers: BTreeMap<u32, usize>,
    /// The last that was looked at for its end.
    cursor: Option<Ends>,
}

impl Connections {
    /// No connections; `is_on`: there may be some.
    pub(crate) const fn new(is_on: bool) -> Self {
        let port = if is_on { CONTROL_PORT as u32 } else { NO_PORT };
        Self { port, all: BTreeMap::new(), of_subscribers: BTreeMap::new(), cursor: None }
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

    /// A segment between these ends passes. What is changed in it; `None`: nothing.
    pub(crate) fn pass(
        &mut self,
        (ends, direction): (Ends, Direction),
        segment: &TcpSegment<'_>,
        (client, subscriber): (IpAddr, Option<u32>),
        openings: &mut dyn Openings,
        (now, counters): (Instant, &mut Counters),
    ) -> Option<TcpRewrite> {
        let opens = segment.flags & (SYN | ACK) == SYN && direction == Direction::Out && segment.is_sound;
        if opens && self.all.get(&ends).is_none_or(|owned| owned.connection.is_other(segment)) {
            self.remove(ends);
            self.open(ends, segment, subscriber?, counters);
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

    fn open(&mut self, ends: Ends, syn: &TcpSegment<'_>, subscriber: u32, counters: &mut Counters) {
        let left = MOST.saturating_sub(self.all.len());
        let most = (left / 8).clamp(1, MOST_OF_SUBSCRIBER);
        let has = self.of_subscribers.get(&subscriber).copied().unwrap_or_default();
        if left == 0 || has >= most {
            counters.ftp_connections_refused += 1;
            return;
        }
        counters.ftp_connections_made += 1;
        *self.of_subscribers.entry(subscriber).or_default() += 1;
        self.all.insert(ends, Owned { connection: Connection::new(syn), subscriber, closed: None });
    }

    fn remove(&mut self, ends: Ends) {
        let Some(owned) = self.all.remove(&ends) else { return };
        if let Some(count) = self.of_subscribers.get_mut(&owned.subscriber) {
            *count -= 1;
            if *count == 0 {
                self.of_subscribers.remove(&owned.subscriber);
            }
        }
    }

    /// Forgets connections that have ended, looking at no more than `budget` of them. `is_open` says whether the NAT has a session.
    pub(crate) fn expire(&mut self, now: Instant, budget: usize, is_open: impl Fn(Ends) -> bool) {
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
