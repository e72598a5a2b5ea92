//! Admission of connections, by fair [shares](sixway_control::dns64::Shares) of one table.
//!
//! - A subscriber may hold as many as are free; the hosts of a subscriber share what it may hold.
//! - A subscriber with few connections that finds no room closes the longest idle connection of the subscriber with most, if that has more. A host
//!   with fewer than another of its subscriber does the same within it.
//! - Only idle connections make way, in whatever state they are: those without a query, and those that have not agreed on TLS.

use super::bounds::{BEFORE_FIRST_QUERY, Bounds};
use super::crowd::{Crowd, Owner};
use super::handshakes::Handshakes;
use sixway_control::dns64::{Payer, Place, Shares};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A subscriber with fewer connections than this may close another's.
const FEW: usize = 8;

/// The open connections.
#[derive(Clone, Debug)]
pub struct Admission(Arc<Mutex<Usage>>);

#[derive(Debug)]
struct Usage {
    bounds: Bounds,
    seed: u64,
    shares: Shares,
    crowd: Crowd,
    handshakes: Handshakes,
    connections: HashMap<u64, Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    owner: Owner,
    place: Place,
    /// Since when it is idle.
    idle: Option<u64>,
    /// Dropping it closes the connection.
    _open: oneshot::Sender<()>,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// All are taken, and none can make way.
    ConnectionLimit,
    /// The subscriber or the host has its share.
    ClientLimit,
}

/// One admitted connection, until this is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    id: u64,
    of: Admission,
    bounds: Bounds,
}

/// Ends when the connection is to make way for another.
pub type Displaced = oneshot::Receiver<()>;

impl Admission {
    /// Without connections.
    pub fn new(bounds: Bounds, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Usage {
            bounds,
            seed,
            shares: Shares::new(bounds.connections, seed),
            crowd: Crowd::default(),
            handshakes: Handshakes::new(seed),
            connections: HashMap::new(),
            next: 0,
        })))
    }

    /// A place for one more connection of `address`.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn admit(&self, address: IpAddr) -> Result<(ConnectionSlot, Displaced), Refusal> {
        let mut usage = self.usage();
        let (id, displaced) = usage.admit(address)?;
        let bounds = usage.bounds;
        drop(usage);
        Ok((ConnectionSlot { id, of: self.clone(), bounds }, displaced))
    }

    /// Whether a client may begin a TLS handshake now.
    pub fn may_shake_hands(&self, address: IpAddr) -> bool {
        let mut usage = self.usage();
        let (owner, payer) = usage.who(address);
        usage.handshakes.begin(Instant::now(), owner.subscriber, payer)
    }

    /// Other bounds from now on. Connections beyond them are closed.
    pub fn set_bounds(&self, bounds: Bounds) {
        self.usage().set_bounds(bounds);
    }

    /// Connections that there are.
    pub fn connections(&self) -> usize {
        self.usage().connections.len()
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    fn who(&self, address: IpAddr) -> (Owner, Payer) {
        let length = self.bounds.client_prefix_length;
        // Its address is proven by the handshake of TCP.
        (owner(address, length), Payer::of(address, length, true))
    }

    fn admit(&mut self, address: IpAddr) -> Result<(u64, Displaced), Refusal> {
        let (owner, payer) = self.who(address);
        let held = self.crowd.of_subscriber(owner);
        let is_at_its_limit = self.bounds.connections_per_client.is_some_and(|most| held >= most);
        let room = if is_at_its_limit { None } else { self.shares.admit(payer).ok() };
        let place = match room {
            Some(place) => place,
            None => {
                let victim = self.displaced_by(owner, is_at_its_limit).ok_or(match held {
                    0 => Refusal::ConnectionLimit,
                    _ => Refusal::ClientLimit,
                })?;
                self.shares.hand_over(victim, payer)
            }
        };
        let (open, displaced) = oneshot::channel();
        let id = self.next;
        self.next += 1;
        let idle = Some(self.crowd.come(owner, id));
        self.connections.insert(id, Connection { owner, place, idle, _open: open });
        Ok((id, displaced))
    }

    /// Closes the connection that is replaced by one of this owner, and returns its place.
    fn displaced_by(&mut self, owner: Owner, is_at_its_limit: bool) -> Option<Place> {
        // Replacing is not fairer if the new one would then have as many as the other; but a client without any comes first.
        let more_than = |held: usize| if held == 0 { 0 } else { held + 1 };
        let held = self.crowd.of_subscriber(owner);
        let others = match held < FEW && !is_at_its_limit {
            true => self.crowd.of_the_largest_subscriber(more_than(held)),
            false => None,
        };
        let id = others.or_else(|| {
            self.crowd.of_the_largest_host(owner.subscriber, more_than(self.crowd.of_host(owner)))
        })?;
        self.remove(id)
    }

    fn remove(&mut self, id: u64) -> Option<Place> {
        let connection = self.connections.remove(&id)?;
        self.crowd.go(connection.owner, connection.idle);
        Some(connection.place)
    }

    fn set_bounds(&mut self, bounds: Bounds) {
        let is_same = self.bounds.connections == bounds.connections
            && self.bounds.client_prefix_length == bounds.client_prefix_length;
        self.bounds = bounds;
        if is_same {
            return;
        }
        // All come again, those that came last at the end.
        self.shares = Shares::new(bounds.connections, self.seed);
        self.crowd = Crowd::default();
        let mut all: Vec<(u64, Connection)> = self.connections.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        for (id, mut connection) in all {
            let address = IpAddr::from(std::net::Ipv6Addr::from_bits(connection.owner.host));
            let (owner, payer) = self.who(address);
            let Ok(place) = self.shares.admit(payer) else { continue };
            let since = self.crowd.come(owner, id);
            connection.idle = match connection.idle {
                Some(_) => Some(since),
                None => {
                    self.crowd.wake(owner, since);
                    None
                }
            };
            (connection.owner, connection.place) = (owner, place);
            self.connections.insert(id, connection);
        }
    }
}

/// IPv4 addresses are subscribers in their mapped form.
fn owner(address: IpAddr, prefix_length: u8) -> Owner {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let host = address.to_ipv6_mapped().to_bits();
            Owner { subscriber: host, host }
        }
        IpAddr::V6(address) => {
            let host = address.to_bits();
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix_length.min(128))).unwrap_or(0);
            Owner { subscriber: host & mask, host }
        }
    }
}

impl ConnectionSlot {
    /// The bounds at the time of its admission.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How long the connection may be idle.
    pub fn idle_time(&self, has_asked: bool) -> Duration {
        if has_asked { self.bounds.idle } else { self.bounds.idle.min(BEFORE_FIRST_QUERY) }
    }

    /// A query waits for its answer: the connection does not make way.
    pub fn use_it(&self) {
        let mut usage = self.of.usage();
        let Usage { connections, crowd, .. } = &mut *usage;
        if let Some(connection) = connections.get_mut(&self.id)
            && let Some(since) = connection.idle.take()
        {
            crowd.wake(connection.owner, since);
        }
    }

    /// No query waits.
    pub fn rest(&self) {
        let mut usage = self.of.usage();
        let Usage { connections, crowd, .. } = &mut *usage;
        if let Some(connection) = connections.get_mut(&self.id)
            && connection.idle.is_none()
        {
            connection.idle = Some(crowd.rest(connection.owner, self.id));
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut usage = self.of.usage();
        if let Some(place) = usage.remove(self.id) {
            usage.shares.leave(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Held = Vec<(ConnectionSlot, Displaced)>;

    fn admission(connections: usize) -> Admission {
        Admission::new(Bounds { connections, ..Bounds::default() }, 1)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Tries this often to connect from each of the hosts 1 to `hosts` of a /64.
    fn crowd(admission: &Admission, subnet: u16, hosts: u16, tries: usize) -> Held {
        let hosts = (1..=hosts).map(|host| address(&format!("2001:db8:0:{subnet:x}::{host:x}")));
        hosts.flat_map(|host| (0..tries).filter_map(move |_| admission.admit(host).ok())).collect()
    }

    fn is_closed((_, displaced): &mut (ConnectionSlot, Displaced)) -> bool {
        displaced.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn two_subnets_of_twenty_addresses_leave_a_third_its_connections() {
        let admission = admission(4_096);
        let _first = crowd(&admission, 1, 20, 1_000);
        let _second = crowd(&admission, 2, 20, 1_000);
        let before = admission.connections();
        let mut third = crowd(&admission, 3, 1, 1_000);
        assert!(third.len() > 250, "{}", third.len());
        assert_eq!(admission.connections(), before + third.len(), "within the shares nobody is closed");
        assert!(!third.iter_mut().any(is_closed));
    }

    #[test]
    fn in_a_table_full_of_the_idle_the_longest_idle_connection_of_who_has_most_makes_way() {
        let admission = admission(64);
        let mut largest = crowd(&admission, 1, 1, 64);
        let mut others: Held = (2..200).filter_map(|subnet| crowd(&admission, subnet, 1, 1).pop()).collect();
        assert!(is_closed(&mut largest[0]), "of the largest");
        assert!(!is_closed(others.last_mut().unwrap()), "of the others the last is the last");
        assert_eq!(admission.connections(), 64);
        let (newcomer, mut displaced) = admission.admit(address("2001:db8:ffff::1")).unwrap();
        newcomer.use_it();
        for subnet in 200..400 {
            others.extend(crowd(&admission, subnet, 1, 1));
        }
        assert_eq!(displaced.try_recv(), Err(oneshot::error::TryRecvError::Empty), "it waits for its answer");
        newcomer.rest();
        for subnet in 400..600 {
            others.extend(crowd(&admission, subnet, 1, 1));
        }
        assert_eq!(displaced.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn a_host_with_all_connections_of_its_subnet_makes_way_for_its_neighbour() {
        let bounds = Bounds { connections_per_client: Some(16), ..Bounds::default() };
        let admission = Admission::new(bounds, 1);
        let mut greedy = crowd(&admission, 1, 1, 100);
        assert_eq!(greedy.len(), 16);
        let (neighbour, _) = admission.admit(address("2001:db8:0:1::2")).unwrap();
        assert!(is_closed(&mut greedy[0]) && !is_closed(&mut greedy[1]));
        assert_eq!(admission.admit(address("2001:db8:0:1::1")).unwrap_err(), Refusal::ClientLimit);
        drop((neighbour, greedy));
        let usage = admission.usage();
        assert!(usage.connections.is_empty() && usage.crowd.is_empty() && usage.shares.used() == 0);
    }

    #[test]
    fn with_everybody_in_use_a_full_table_refuses() {
        let admission = admission(32);
        let all: Held = (1..100).filter_map(|subnet| crowd(&admission, subnet, 1, 1).pop()).collect();
        assert_eq!(admission.connections(), 32);
        all.iter().for_each(|(slot, _)| slot.use_it());
        assert_eq!(admission.admit(address("2001:db8:ffff::1")).unwrap_err(), Refusal::ConnectionLimit);
        drop(all);
        assert!(admission.admit(address("2001:db8:ffff::1")).is_ok());
    }

    #[test]
    fn ipv4_addresses_are_the_same_however_they_are_written() {
        let bounds = Bounds { connections_per_client: Some(2), ..Bounds::default() };
        let admission = Admission::new(bounds, 1);
        let _one = admission.admit(address("192.0.2.1")).unwrap();
        let _two = admission.admit(address("::ffff:192.0.2.1")).unwrap();
        assert!(admission.admit(address("192.0.2.1")).is_err());
        assert!(admission.admit(address("192.0.2.2")).is_ok());
    }

    #[test]
    fn a_connection_without_a_query_may_be_idle_for_ten_seconds_at_most() {
        let (slot, _) = admission(8).admit(address("192.0.2.1")).unwrap();
        assert_eq!((slot.idle_time(false).as_secs(), slot.idle_time(true).as_secs()), (10, 30));
        let bounds = Bounds { idle: Duration::from_secs(4), ..Bounds::default() };
        let (slot, _) = Admission::new(bounds, 1).admit(address("192.0.2.1")).unwrap();
        assert_eq!((slot.idle_time(false).as_secs(), slot.idle_time(true).as_secs()), (4, 4));
    }

    #[test]
    fn with_fewer_places_the_last_that_came_are_closed() {
        let admission = admission(1_024);
        let mut all: Held = (1..=512).filter_map(|subnet| crowd(&admission, subnet, 1, 1).pop()).collect();
        all[0].0.use_it();
        admission.set_bounds(Bounds { connections: 64, client_prefix_length: 56, ..Bounds::default() });
        assert!(admission.connections() <= 64);
        assert!(!is_closed(&mut all[0]) && is_closed(&mut all[510]));
        all[0].0.rest();
        drop(all);
        let usage = admission.usage();
        assert!(usage.connections.is_empty() && usage.crowd.is_empty() && usage.shares.used() == 0);
    }
}
