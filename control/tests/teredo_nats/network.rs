//! An IPv4 network in simulated time: public hosts, NATs, and hosts behind them. UDP datagrams take a given time, and may be lost.

use super::nat::{Kind, Nat};
use core::cell::RefCell;
use core::net::Ipv4Addr;
use core::time::Duration;
use sixway_control::Instant;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub from: Endpoint4,
    pub to: Endpoint4,
    pub payload: Vec<u8>,
}

/// A host with UDP ports. It is asked after each datagram, and when it is due.
pub trait Host {
    /// A datagram came; `to` is the address that it was sent to on this host's link.
    fn receive(&mut self, datagram: &Datagram, now: Instant);
    /// When it is to be asked next.
    fn due(&self) -> Option<Instant>;
    /// What it sends.
    fn step(&mut self, now: Instant) -> Vec<Datagram>;
}

type Shared = Rc<RefCell<dyn Host>>;

/// Where a host is: behind this NAT, or on the Internet.
struct Attached {
    address: Ipv4Addr,
    nat: Option<usize>,
    host: Shared,
}

/// The network.
pub struct Network {
    pub now: Instant,
    pub delay: Duration,
    /// Of 256 datagrams, this many are lost.
    pub loss: u8,
    /// Hosts behind one NAT do not reach each other by their own addresses.
    pub isolates: bool,
    pub nats: Vec<Nat>,
    hosts: Vec<Attached>,
    under_way: BTreeMap<(Instant, u64), Datagram>,
    count: u64,
    random: u64,
}

impl Network {
    pub fn new(delay: Duration, seed: u64) -> Self {
        Self {
            now: Instant::from_secs(1_000),
            delay,
            loss: 0,
            isolates: false,
            nats: Vec::new(),
            hosts: Vec::new(),
            under_way: BTreeMap::new(),
            count: 0,
            random: seed | 1,
        }
    }

    /// Adds a NAT, and returns its number. Hosts behind it have addresses of one private network.
    pub fn nat(&mut self, nat: Nat) -> usize {
        self.nats.push(nat);
        self.nats.len() - 1
    }

    /// Attaches a host. One with several addresses is attached several times.
    pub fn attach(&mut self, address: Ipv4Addr, nat: Option<usize>, host: Shared) {
        let nat = nat.filter(|nat| self.nats[*nat].options.kind != Kind::Absent);
        self.hosts.push(Attached { address, nat, host });
    }

    /// A host has another address.
    pub fn renumber(&mut self, old: Ipv4Addr, new: Ipv4Addr) {
        for host in self.hosts.iter_mut().filter(|host| host.address == old) {
            host.address = new;
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 24) as u8 <= self.loss && self.loss > 0
    }

    /// The host that has this source address sends.
    fn send(&mut self, at: usize, datagram: Datagram) {
        let Attached { nat, .. } = self.hosts[at];
        let Datagram { from, to, payload } = datagram;
        // On one link, directly.
        let neighbours = self.hosts.iter().filter(|other| nat.is_some() && other.nat == nat);
        let is_neighbour = neighbours.clone().any(|other| other.address == to.address);
        if is_neighbour && self.isolates {
            return;
        }
        if to.address.is_multicast() {
            let heard: Vec<_> = neighbours
                .filter(|other| other.address != from.address)
                .map(|other| other.host.clone())
                .collect();
            for host in heard {
                host.borrow_mut().receive(&Datagram { from, to, payload: payload.clone() }, self.now);
            }
            return;
        }
        let from = match nat {
            Some(nat) if !is_neighbour => {
                let nat = &mut self.nats[nat];
                if to.address == nat.outside && !nat.options.hairpins {
                    return;
                }
                nat.outbound(from, to, self.now)
            }
            Some(_) | None => from,
        };
        if self.is_lost() {
            return;
        }
        self.count += 1;
        self.under_way.insert((self.now + self.delay, self.count), Datagram { from, to, payload });
    }

    fn deliver(&mut self, datagram: Datagram) {
        let Datagram { from, to, payload } = datagram;
        let mut to = to;
        let mut behind = None;
        if let Some(at) =
            self.nats.iter().position(|nat| nat.outside == to.address && nat.options.kind != Kind::Absent)
        {
            let Some(inside) = self.nats[at].inbound(from, to.port, self.now) else { return };
            (to, behind) = (inside, Some(at));
        }
        // A private destination from a private source was sent on its link.
        let on_link = |other: &&Attached| {
            other.address == to.address && (other.nat == behind || from.address.is_private())
        };
        let Some(found) = self.hosts.iter().find(on_link) else { return };
        found.host.clone().borrow_mut().receive(&Datagram { from, to, payload }, self.now);
    }

    /// Asks each host what it sends.
    fn settle(&mut self) {
        let mut any = true;
        while any {
            any = false;
            for at in 0..self.hosts.len() {
                let sent = self.hosts[at].host.clone().borrow_mut().step(self.now);
                for datagram in sent {
                    any = true;
                    let source = datagram.from.address;
                    let at = self.hosts.iter().position(|host| {
                        host.address == source && Rc::ptr_eq(&host.host, &self.hosts[at].host)
                    });
                    self.send(at.expect("a host sends from an address of its own"), datagram);
                }
            }
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        loop {
            let due = self.hosts.iter().filter_map(|host| host.host.borrow().due()).min();
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let Some(next) = due.into_iter().chain(arrival).min().filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            while let Some(first) = self.under_way.first_entry().filter(|first| first.key().0 <= self.now) {
                let datagram = first.remove();
                self.deliver(datagram);
            }
            self.settle();
        }
        self.now = end;
    }

    /// Lets time pass until something is so; how long it took, `None`: longer than that.
    pub fn run_until(&mut self, most: Duration, mut so: impl FnMut() -> bool) -> Option<Duration> {
        let begin = self.now;
        loop {
            if so() {
                return Some(self.now.since(begin));
            }
            if self.now.since(begin) >= most {
                return None;
            }
            self.run(Duration::from_millis(50));
        }
    }
}
