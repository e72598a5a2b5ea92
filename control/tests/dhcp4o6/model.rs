//! A server and clients together in fake time, over a network that loses, delays and repeats: no two hosts have one address, and a lease ends on both
//! ends.

use super::{at, host, settings};
use core::net::Ipv4Addr;
use core::time::Duration;
use proptest::prelude::*;
use sixway_control::Instant;
use sixway_control::dhcp4o6::{
    Change, Client, ClientEvent, ClientSettings, Dhcpv4, Envelope, MessageKind, Server, ServerSettings,
};
use std::collections::BTreeMap;

/// Clients; the pool has fewer addresses.
const CLIENTS: usize = 6;

struct World {
    now: Instant,
    server: Server,
    clients: Vec<Client>,
    /// What each client believes to have, until when.
    believed: Vec<Option<(Ipv4Addr, Instant)>>,
    /// What the server's bindings are.
    bindings: BTreeMap<Ipv4Addr, usize>,
    /// On their way: when, from which client, and whether to it.
    under_way: Vec<(Instant, usize, bool, Vec<u8>)>,
}

impl World {
    fn new() -> Self {
        let pool = vec!["192.0.2.16/30".parse().unwrap()];
        let lease_time = Duration::from_secs(100);
        let server = Server::new(ServerSettings { pool, lease_time, ..settings() }, 3);
        let client = |number: usize| {
            let settings = ClientSettings { tunnel: host(number as u16), client_id: vec![255, number as u8] };
            Client::new(settings, None, number as u64)
        };
        Self {
            now: at(0),
            server,
            clients: (0..CLIENTS).map(client).collect(),
            believed: vec![None; CLIENTS],
            bindings: BTreeMap::new(),
            under_way: Vec::new(),
        }
    }

    fn pass(&mut self, seconds: u64, fate: u8) {
        for _second in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            self.server.expire(self.now);
            self.take_changes();
            self.talk(fate);
        }
    }

    fn talk(&mut self, fate: u8) {
        for number in 0..CLIENTS {
            while let Some(query) = self.clients[number].poll_transmit(self.now) {
                self.send(number, false, query, fate);
            }
        }
        let (due, later) = std::mem::take(&mut self.under_way).into_iter().partition(|one| one.0 <= self.now);
        self.under_way = later;
        let due: Vec<(Instant, usize, bool, Vec<u8>)> = due;
        for (_, number, is_reply, octets) in due {
            if is_reply {
                let _ignored = self.clients[number].handle_response(self.now, &octets);
            } else if let Ok(Some(reply)) = self.server.handle_query(self.now, host(number as u16), &octets) {
                self.send(number, true, reply.octets, fate);
            }
            self.take_changes();
            self.take_events();
        }
        self.take_events();
        self.judge();
    }

    /// A message is lost, repeated, late, or in time.
    fn send(&mut self, number: usize, is_reply: bool, octets: Vec<u8>, fate: u8) {
        let late = Duration::from_secs(u64::from(fate >> 2 & 7));
        // A release that overtook a later request would end the new lease: DHCP has nothing against that.
        let message = Dhcpv4::parse(&Envelope::parse(&octets).unwrap().dhcpv4).unwrap();
        let fate = if message.kind == MessageKind::Release && fate & 3 != 0 { 3 } else { fate };
        match fate & 3 {
            0 => {}
            1 => {
                self.under_way.push((self.now, number, is_reply, octets.clone()));
                self.under_way.push((self.now + late, number, is_reply, octets));
            }
            2 => self.under_way.push((self.now + late, number, is_reply, octets)),
            _ => self.under_way.push((self.now, number, is_reply, octets)),
        }
    }

    fn take_changes(&mut self) {
        while let Some(change) = self.server.poll_change() {
            match change {
                Change::Bound(lease) => {
                    let number = (0..CLIENTS).find(|number| host(*number as u16) == lease.host).unwrap();
                    let other = self.bindings.insert(lease.ipv4, number);
                    assert!(other.is_none_or(|other| other == number), "an address of two hosts");
                }
                Change::Ended(lease) => {
                    assert!(self.bindings.remove(&lease.ipv4).is_some(), "no such binding ended");
                }
            }
        }
    }

    fn take_events(&mut self) {
        for (client, believed) in self.clients.iter_mut().zip(&mut self.believed) {
            while let Some(event) = client.poll_event() {
                *believed = match event {
                    ClientEvent::Bound(ipv4, until) => Some((ipv4, until)),
                    ClientEvent::Lost => None,
                };
            }
        }
    }

    fn judge(&self) {
        let mut hosts: Vec<usize> = self.bindings.values().copied().collect();
        hosts.sort_unstable();
        hosts.dedup();
        assert_eq!(hosts.len(), self.bindings.len(), "two addresses of one host");
        assert_eq!(self.server.bound() as usize, self.bindings.len());
        for (number, believed) in self.believed.iter().enumerate() {
            let Some((ipv4, until)) = believed else { continue };
            // The client ends a lease at its next look at the clock.
            if *until > self.now {
                assert_eq!(
                    self.bindings.get(ipv4),
                    Some(&number),
                    "a client believes what the server does not"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(256)))]
    #[test]
    fn no_two_hosts_have_one_address_and_a_lease_ends_on_both_ends(
        steps in prop::collection::vec((0..4_u8, 0..CLIENTS, 0..40_u64, any::<u8>()), 1..80)
    ) {
        let mut world = World::new();
        for (kind, number, seconds, fate) in steps {
            match kind {
                0 | 1 => world.clients[number].want(world.now),
                2 => world.clients[number].release(world.now),
                _ => {}
            }
            world.take_events();
            world.pass(seconds, fate);
        }
        // The network fails: everything ends, on both ends.
        world.pass(210, 0);
        prop_assert!(world.bindings.is_empty() && world.believed.iter().all(Option::is_none));
        // It is back: whoever wants an address gets one of four, and all of them are used.
        (0..CLIENTS).for_each(|number| world.clients[number].want(world.now));
        world.pass(200, 3);
        prop_assert_eq!(world.bindings.len(), 4);
        prop_assert_eq!(world.believed.iter().flatten().count(), 4);
    }
}
