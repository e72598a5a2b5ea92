//! Neighbour discovery through tunnels: ISATAP's routers that answer, its hosts that look for routers (RFC 5214 §8), and the ends of
//! configured tunnels (RFC 4213 §3.8). The messages come out of the tunnels to the workers, who hand them over, and are sent by raw
//! sockets.

use super::advertiser;
use super::undelivered::undelivered;
use crate::config::{Config, Isatap, IsatapRole, Learnt, Surroundings, TunnelMtu};
use crate::view::RouterAdvertisementRow;
use crate::worker::Clock;
use sixway_control::Instant;
use sixway_control::isatap_host::{HostAction, IsatapHost};
use sixway_control::neighbour_discovery::{Received, Transmission};
use sixway_control::router_advert::{Link, RouterAdvert};
use sixway_control::tunnel_end::TunnelEnd;
use sixway_link::TunnelSender;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// The protocol machines of a gateway's tunnels.
pub(super) struct Discovery<'c> {
    config: &'c Config,
    clock: Clock,
    seed: u64,
    interfaces: Vec<Interface<'c>>,
    ends: Vec<ConfiguredEnd>,
    /// Answers of ends, by local address.
    answers: Vec<(Ipv4Addr, Transmission)>,
    learnt: BTreeMap<String, Learnt>,
}

/// An end of a configured tunnel.
struct ConfiguredEnd {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    end: TunnelEnd,
}

/// An ISATAP interface.
struct Interface<'c> {
    config: &'c Isatap,
    local: Ipv4Addr,
    role: Role,
}

enum Role {
    Router(Box<RouterAdvert>),
    Host(Box<IsatapHost>),
}

impl<'c> Discovery<'c> {
    /// None yet: they begin when their addresses are known.
    pub(super) fn new(config: &'c Config, clock: Clock, seed: u64) -> Self {
        Self {
            config,
            clock,
            seed,
            interfaces: Vec::new(),
            ends: Vec::new(),
            answers: Vec::new(),
            learnt: BTreeMap::new(),
        }
    }

    /// Sets the current addresses and links of the host.
    pub(super) fn set(&mut self, now: &Surroundings) {
        let ends = self.config.configured_tunnels.iter().filter_map(|tunnel| {
            let (local, remote) = (tunnel.local.now(now)?, tunnel.remote_now(now)?);
            Some(ConfiguredEnd { local, remote, end: TunnelEnd::new(local) })
        });
        self.ends = ends.collect();
        for (number, isatap) in self.config.isatap.iter().enumerate() {
            let local = isatap.local.now(now);
            let at = self.interfaces.iter().position(|one| one.config.name == isatap.name);
            match (at, local) {
                (Some(at), None) => drop(self.interfaces.remove(at)),
                (Some(at), Some(local)) => {
                    self.interfaces[at].change(local, self.config, now, self.clock.now())
                }
                (None, Some(local)) => {
                    let seed = self.seed.wrapping_add(number as u64);
                    self.interfaces.extend(Interface::begin(
                        isatap,
                        local,
                        self.config,
                        now,
                        seed,
                        self.clock.now(),
                    ));
                }
                (None, None) => {}
            }
        }
    }

    /// A packet that a worker handed over: IPv4, with a message in it.
    pub(super) fn receive(&mut self, packet: &[u8]) {
        let Some(destination) = packet.get(16..20).and_then(|octets| octets.first_chunk::<4>()) else {
            return;
        };
        let destination = Ipv4Addr::from(*destination);
        let Ok(received) = Received::from_tunnel(packet) else { return };
        let now = self.clock.now();
        let ours =
            |one: &&mut ConfiguredEnd| one.local == destination && received.outer_source == Some(one.remote);
        if let Some(one) = self.ends.iter_mut().find(ours) {
            match one.end.handle_message(now, &received) {
                Ok(answer) => self.answers.extend(answer.map(|answer| (one.local, answer))),
                Err(malformed) => tracing::debug!("{}: {malformed}", one.remote),
            }
            return;
        }
        for interface in self.interfaces.iter_mut().filter(|one| one.local == destination) {
            let outcome = match &mut interface.role {
                Role::Router(router) => router.handle_message(now, &received).map(drop),
                Role::Host(host) => host.handle_message(now, &received).map(drop),
            };
            if let Err(malformed) = outcome {
                tracing::debug!("{}: {}: {malformed}", interface.config.name, received.source);
            }
        }
    }

    /// Notes an ICMPv4 error about a tunnel packet: an ISATAP host then probes the router that the packet was sent to (RFC 5214 §7.2).
    pub(super) fn note_path_error(&mut self, error: &[u8]) {
        let Some((local, remote)) = undelivered(error) else { return };
        let now = self.clock.now();
        for interface in self.interfaces.iter_mut().filter(|one| one.local == local) {
            if let Role::Host(host) = &mut interface.role {
                host.report_path_error(now, remote);
            }
        }
    }

    /// Notes traffic through the tunnels: ISATAP hosts then check that their routers are reachable.
    pub(super) fn note_traffic(&mut self) {
        let now = self.clock.now();
        for interface in &mut self.interfaces {
            if let Role::Host(host) = &mut interface.role {
                host.note_traffic(now);
            }
        }
    }

    /// The time until the next action; `None`: no timer.
    pub(super) fn idle(&self) -> Option<Duration> {
        let timeouts = self.interfaces.iter().filter_map(|interface| match &interface.role {
            Role::Router(router) => router.poll_timeout(),
            Role::Host(host) => host.poll_timeout(),
        });
        timeouts.min().map(|at| at.since(self.clock.now()))
    }

    /// Runs due actions and sends through the sockets of the local addresses. Returns what hosts have learnt.
    pub(super) fn work(&mut self, senders: &BTreeMap<Ipv4Addr, TunnelSender>) -> &BTreeMap<String, Learnt> {
        let now = self.clock.now();
        for (local, answer) in self.answers.drain(..) {
            send(&answer, senders.get(&local), "tunnel");
        }
        for interface in &mut self.interfaces {
            let sender = senders.get(&interface.local);
            match &mut interface.role {
                Role::Router(router) => {
                    while let Some(sent) = router.poll_transmit(now) {
                        send(&sent, sender, &interface.config.name);
                    }
                }
                Role::Host(host) => {
                    let learnt = self.learnt.entry(interface.config.name.clone()).or_default();
                    act(host, interface.config, learnt, sender, now);
                }
            }
        }
        let there = |name: &String| self.interfaces.iter().any(|one| one.config.name == *name);
        self.learnt.retain(|name, _| there(name));
        &self.learnt
    }

    /// How the routers' advertisements go.
    pub(super) fn rows(&self) -> Vec<RouterAdvertisementRow> {
        let now = self.clock.now();
        let routers = self.interfaces.iter().filter_map(|interface| match &interface.role {
            Role::Router(router) => Some(advertiser::row(&interface.config.name, Some(router), now)),
            Role::Host(_) => None,
        });
        routers.collect()
    }
}

impl<'c> Interface<'c> {
    fn begin(
        config: &'c Isatap,
        local: Ipv4Addr,
        whole: &Config,
        surroundings: &Surroundings,
        seed: u64,
        now: Instant,
    ) -> Option<Self> {
        let role = match config.role {
            IsatapRole::Router => {
                let settings = whole.advertised_over(config, surroundings)?;
                match RouterAdvert::new(link(config, local), settings, seed, now) {
                    Ok(router) => Role::Router(Box::new(router)),
                    Err(faults) => {
                        faults.iter().for_each(|fault| tracing::error!("{}: {fault}", config.name));
                        return None;
                    }
                }
            }
            IsatapRole::Host => Role::Host(Box::new(IsatapHost::new(config.host_settings(local), seed, now))),
        };
        Some(Self { config, local, role })
    }

    fn change(&mut self, local: Ipv4Addr, whole: &Config, surroundings: &Surroundings, now: Instant) {
        match &mut self.role {
            Role::Router(router) => {
                let settings = whole.advertised_over(self.config, surroundings).unwrap_or_default();
                let outcome = router.set_link(now, link(self.config, local));
                if let Err(faults) = outcome.and_then(|()| router.set_settings(now, settings)) {
                    faults.iter().for_each(|fault| tracing::error!("{}: {fault}", self.config.name));
                }
            }
            Role::Host(host) if local != self.local => host.set_local(now, local),
            Role::Host(_) => {}
        }
        self.local = local;
    }
}

fn link(config: &Isatap, local: Ipv4Addr) -> Link {
    let mtu = match config.encapsulation.mtu {
        TunnelMtu::Static(octets) => octets,
        // RFC 4213 §3.2.2: no path carries less.
        TunnelMtu::Dynamic => 1_280,
    };
    Link::Isatap { local, mtu }
}

fn act(
    host: &mut IsatapHost,
    config: &Isatap,
    learnt: &mut Learnt,
    sender: Option<&TunnelSender>,
    now: Instant,
) {
    while let Some(action) = host.poll_action(now) {
        match action {
            HostAction::Transmit(sent) => send(&sent, sender, &config.name),
            HostAction::LookUpRouters => host.set_potential_routers(now, &config.potential_routers, None),
            HostAction::SetAddress(address) => {
                if !learnt.prefixes.contains(&address.prefix) {
                    tracing::info!("{}: address {} configured", config.name, address.address);
                    learnt.prefixes.push(address.prefix);
                }
            }
            HostAction::RemoveAddress(address) => {
                tracing::info!("{}: address {address} removed", config.name);
                learnt.prefixes.retain(|prefix| !prefix.contains(address));
            }
            HostAction::SetDefaultRoute(route) => {
                if learnt.router != Some(route.router) {
                    tracing::info!("{}: default router is {}", config.name, route.router);
                }
                learnt.router = Some(route.router);
            }
            HostAction::RemoveDefaultRoute => {
                tracing::warn!(
                    "{}: no default router left; packets beyond the ISATAP prefixes are dropped until one answers",
                    config.name
                );
                learnt.router = None;
            }
        }
    }
}

fn send(sent: &Transmission, sender: Option<&TunnelSender>, name: &str) {
    let (Some(sender), Some(outer)) = (sender, sent.outer_destination) else { return };
    if let Err(error) = sender.send_to(&sent.packet(), outer) {
        tracing::debug!("{name}: {error}");
    }
}
