//! An engine: its parts, and how it is built from its configuration.

use super::bounds::STRIDE;
use super::build_context::build_context;
use super::config::{EngineConfig, TunnelConfig};
use super::inside4::Inside4;
use super::original::Original;
use super::pair_ends::PairEnds;
use super::path::Path;
use super::path_news::PathNews;
use super::realms::Realms;
use super::slot::Slot;
use super::softwire_ends::SoftwireEnds;
use super::tunnel_addresses::{HostAddresses, TunnelAddresses, TunnelAt};
use super::udp_ends::UdpEnds;
use crate::classify::{Destinations4, DividedAddresses, PortClaim, Steering};
use crate::effects::Effects;
use crate::fair_share::FairShares;
use crate::fragment::{Joining, Mates, Reassembly};
use crate::kind::Kind;
use crate::mechanism::MechanismConfig;
use crate::mechanism::contract::{BuildFault, Claims, InsideClaim};
use crate::mechanism::table::{Mechanisms, with_row_ref};
use crate::rewrite::Rewriter;
use crate::rewrite::icmp_error::IcmpErrors;
use crate::translate::Policy;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::ends::{Concentrator, Ends4, TunnelEnds};
use crate::tunnel::identification::Identifications;
use crate::verdict::{MechanismId, PolicyId};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// One worker's engine.
pub struct Engine {
    pub(super) steering: Steering,
    /// Addresses that several mechanisms own together.
    pub(super) divided4: DividedAddresses,
    pub(super) mechanisms: Mechanisms,
    /// The mechanisms that name IPv4 addresses, in the order in which they are asked.
    pub(super) names4: Vec<MechanismId>,
    /// The mechanism that is asked about all other addresses.
    pub(super) sure4: Option<MechanismId>,
    /// The mechanism that is asked about every address, where no other one names any.
    pub(super) all4: Option<MechanismId>,
    /// The mechanisms that name IPv6 addresses by a table.
    pub(super) names6: Vec<MechanismId>,
    /// What mechanisms claim by source, the longest prefixes first.
    pub(super) inside6: Vec<(InsideClaim<Prefix6>, MechanismId)>,
    /// The same of IPv4.
    pub(super) inside4: Inside4,
    pub(super) realms: Realms,
    /// The mechanism for IPv4 destinations that no other one names.
    pub(super) rest4: Option<MechanismId>,
    pub(super) tunnel_addresses: TunnelAddresses,
    pub(super) pair_ends: PairEnds,
    pub(super) udp_ends: UdpEnds,
    /// Whether a NAT44 translates what tunnels send.
    pub(super) translates_tunnels: bool,
    pub(super) own6: Option<Ipv6Addr>,
    pub(super) path_news: PathNews,
    pub(super) path: Path,
    /// Fragments from IPv6 to a translator.
    pub(super) reassembly: Reassembly,
    /// Fragments from IPv4 to a translator.
    pub(super) outside_reassembly: Reassembly,
    /// Fragments of what comes through tunnels, from anyone.
    pub(super) outer_reassembly: Reassembly,
    /// Fragments from the remote ends of point-to-point tunnels: a table that other sources cannot fill.
    pub(super) peer_reassembly: Reassembly,
    /// Fragments of what comes through softwires: their subscribers share the table.
    pub(super) softwire_reassembly: Reassembly,
    /// Fragments inside softwires, in the same way.
    pub(super) inner_reassembly: Reassembly,
    pub(super) joining: Joining,
    pub(super) mates: Mates,
    /// Whether there is something to join: packets come out of tunnels.
    pub(super) join: bool,
    /// Whether a translator reads control connections of FTP: their packets are processed alone.
    pub(super) reads_ftp: bool,
    pub(super) slots: Vec<Slot>,
    /// Shares of senders while the engine is overloaded.
    pub(super) shares: Option<FairShares>,
    /// Remote ends of tunnels that are no senders themselves.
    pub(super) relays: Vec<IpAddr>,
    /// Its configuration, from which [`Self::set_tunnels`] builds again.
    pub(super) config: EngineConfig,
    pub(super) workers: u8,
}

/// What steers packets to the mechanisms, and their policies by number.
#[derive(Default)]
struct Routes {
    policies: Vec<Policy>,
    tunnel_policies: Vec<TunnelPolicy>,
    destinations6: Vec<(Prefix6, MechanismId)>,
    destinations4: Vec<(Prefix4, MechanismId)>,
    ports4: Vec<PortClaim>,
    /// Tunnels of IPv6 in IPv4, each with its local address.
    tunnels: Vec<(TunnelAt, Ipv4Addr)>,
    /// The other tunnels, each with both ends.
    pair_tunnels: Vec<(TunnelEnds, TunnelAt)>,
    /// Softwires, with their local ends.
    concentrators: Vec<(Concentrator, TunnelAt)>,
}

impl Routes {
    /// Adds the next mechanism of the configuration.
    fn add(&mut self, tunnel: TunnelAt, config: &MechanismConfig, claims: Claims) {
        let id = tunnel.id;
        self.policies.push(config.policy());
        self.tunnel_policies.push(config.tunnel_policy());
        self.destinations6.extend(claims.destinations6.into_iter().map(|prefix| (prefix, id)));
        self.destinations4.extend(claims.destinations4.into_iter().map(|prefix| (prefix, id)));
        let ports4 = claims.ports4.into_iter();
        for ports in ports4 {
            self.destinations4.extend(ports.addresses.iter().map(|prefix| (*prefix, id)));
            self.ports4.push(PortClaim { owner: id, ports });
        }
        self.tunnels.extend(config.local().map(|local| (tunnel, local)));
        self.pair_tunnels.extend(config.ends().map(|ends| (ends, tunnel)));
        self.concentrators.extend(config.concentrator().map(|ends| (ends, tunnel)));
    }
}

impl Engine {
    /// An engine with empty tables.
    ///
    /// # Errors
    /// The mechanism that cannot be built from its configuration.
    pub fn new(config: &EngineConfig) -> Result<Self, BuildFault> {
        let seed = config.seed;
        let identifications = Identifications::new(config.worker, config.workers, seed[0]);
        let softwires = config.all().filter_map(|one| one.concentrator()).map(|ends| ends.most).sum();
        let mut rewriter = Rewriter::new(config.limits, identifications, seed[1]);
        rewriter.expect_softwires(softwires, seed[1]);
        let errors = IcmpErrors::new(config.icmp_errors_per_second, config.own4, config.own6, seed[1]);
        let mut engine = Self {
            steering: Steering::default(),
            divided4: DividedAddresses::default(),
            mechanisms: Mechanisms::default(),
            names4: Vec::new(),
            sure4: None,
            all4: None,
            names6: Vec::new(),
            inside6: Vec::new(),
            inside4: Inside4::default(),
            realms: Realms::new(config),
            rest4: None,
            tunnel_addresses: TunnelAddresses::default(),
            pair_ends: PairEnds::default(),
            udp_ends: UdpEnds::default(),
            translates_tunnels: config.nat44.iter().any(|nat44| nat44.translate_own_tunnels),
            own6: config.own6,
            path_news: PathNews::default(),
            path: Path {
                rewriter,
                errors,
                effects: Effects::default(),
                original: Original::default(),
                host: HostAddresses::default(),
                softwires: SoftwireEnds::default(),
                aside: None,
            },
            reassembly: Reassembly::new(config.fragments, seed[0] ^ seed[1].rotate_left(32)),
            outside_reassembly: Reassembly::by_destination(
                config.fragments,
                seed[0].rotate_left(24) ^ seed[1],
            ),
            outer_reassembly: Reassembly::new(config.fragments, seed[0].rotate_left(16) ^ seed[1]),
            peer_reassembly: Reassembly::new(config.fragments, seed[0].rotate_left(48) ^ seed[1]),
            softwire_reassembly: Reassembly::new(config.fragments, seed[0].rotate_left(8) ^ seed[1]),
            inner_reassembly: Reassembly::new(config.fragments, seed[0].rotate_left(40) ^ seed[1]),
            joining: Joining::default(),
            mates: Mates::default(),
            join: false,
            reads_ftp: config.nat44.iter().any(|nat44| nat44.ftp_alg)
                || config.nat64.iter().any(|nat64| nat64.ftp_alg),
            slots: vec![Slot::EMPTY; STRIDE],
            relays: Vec::new(),
            shares: config.fair_shares.map(|bits| FairShares::new(bits, seed[0] ^ seed[1])),
            config: config.clone(),
            workers: config.workers.max(1),
        };
        engine.build(0)?;
        Ok(engine)
    }

    /// Builds the mechanisms from number `first` of the configuration on, and steers to all of them.
    fn build(&mut self, first: usize) -> Result<(), BuildFault> {
        let context = build_context(&self.config, self.own6);
        let mut routes = Routes::default();
        let mut known = [0_u16; Kind::COUNT];
        for (number, config) in self.config.all().enumerate() {
            let (policy, claims) = (PolicyId(number as u16), config.claims());
            let index = &mut known[config.kind() as usize];
            let id = MechanismId { kind: config.kind(), index: *index };
            *index += 1;
            if number >= first {
                self.mechanisms.add(&config, policy, &context)?;
                if claims.names {
                    self.names4.push(id);
                    self.names6.push(id);
                }
                self.rest4 = self.rest4.or(claims.rest4.then_some(id));
                self.inside6.extend(claims.inside6.iter().map(|claim| (claim.clone(), id)));
                if !self.realms.add(&claims.inside4, id) {
                    self.inside4.add(&claims.inside4, id);
                }
            }
            routes.add(TunnelAt { id, policy }, &config, claims);
        }
        self.relays = self.config.all().flat_map(|config| config.relays()).collect();
        self.relays.sort_unstable();
        self.relays.dedup();
        self.inside6.sort_by_key(|(claim, _)| core::cmp::Reverse(claim.sources.length()));
        self.steer(routes);
        Ok(())
    }

    /// Steers to the mechanisms.
    fn steer(&mut self, routes: Routes) {
        let Routes { policies, tunnel_policies, destinations6, destinations4, tunnels, .. } = routes;
        let Routes { pair_tunnels, concentrators, ports4, .. } = routes;
        // The mechanism that takes the rest is asked about every other destination. If tunnels have IPv4 prefixes, those are asked first, after
        // tables.
        self.names4.extend(self.sure4.take());
        if destinations4.iter().all(|(_, id)| id.kind.is_routed()) {
            self.sure4 =
                self.names4.pop_if(|id| with_row_ref!(self.mechanisms, id.kind, row => row.takes_rest()));
        }
        self.tunnel_addresses =
            TunnelAddresses::new(tunnels.into_iter(), &self.mechanisms, self.config.seed[1]);
        self.pair_ends = PairEnds::new(&pair_tunnels, self.config.seed[1]);
        self.pair_ends.locals4().iter().for_each(|address| self.tunnel_addresses.add_address(*address));
        if self.translates_tunnels {
            let six_in_four = self.tunnel_addresses.all().collect();
            let ends = Ends4 { six_in_four, four_in_four: self.pair_ends.locals4().to_vec() };
            self.mechanisms.stateful().for_each(|translator| translator.set_tunnel_ends(&ends));
        }
        self.path.host = HostAddresses::new(&self.config, self.own6);
        self.path.rewriter.set_policies(policies, tunnel_policies);
        let destinations4 = Destinations4::new(destinations4);
        self.divided4 = DividedAddresses::new(&ports4);
        self.all4 = self.sure4.filter(|_| self.names4.is_empty() && destinations4.is_empty());
        // An address that the host shares with a pool: packets for it belong to the pool. It is not behind a tunnel.
        let is_shared = |own: &Ipv4Addr| destinations4.owner(*own).is_some_and(|id| id.kind.is_routed());
        let own4 = self.config.own4.filter(|own| !is_shared(own));
        self.steering = Steering::new(own4, self.own6, destinations6, destinations4);
        self.path.softwires = SoftwireEnds::new(concentrators);
        let ends6: Vec<_> =
            self.pair_ends.locals6().iter().copied().chain(self.path.softwires.locals()).collect();
        self.steering.set_ends6(&ends6);
        self.join = self.config.join && !(self.tunnel_addresses.is_empty() && ends6.is_empty());
        self.set_udp_ends();
    }

    /// Sets the gateway's own IPv6 address. The tunnels use it from the next [`Self::set_tunnels`] on.
    pub fn set_own6(&mut self, own6: Option<Ipv6Addr>) {
        self.own6 = own6;
        self.steering.set_own6(own6);
        self.path.errors.set_own6(own6);
    }

    /// Replaces the tunnels and the addresses of this host. Path MTUs that were learned are kept.
    pub fn set_tunnels(&mut self, configs: &[TunnelConfig], host4: &[Ipv4Addr], host6: &[Ipv6Addr]) {
        let mut kept = [0; Kind::COUNT];
        self.config.all().take(self.config.fixed()).for_each(|config| kept[config.kind() as usize] += 1);
        Kind::ALL.iter().for_each(|kind| self.mechanisms.truncate(*kind, kept[*kind as usize]));
        self.config.tunnels = configs.to_vec();
        (self.config.host4, self.config.host6) = (host4.to_vec(), host6.to_vec());
        self.mechanisms.stateful().for_each(|translator| translator.set_host4(host4));
        // Tunnels cannot fail, and other mechanisms are not built again.
        let _built = self.build(self.config.fixed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::instant::Instant;
    use crate::mechanism::configured::ConfiguredConfig;
    use crate::outbox::Outbox;
    use crate::samples::v6;
    use crate::verdict::Verdict;

    fn tunnel(remote: &str, prefix: &str) -> TunnelConfig {
        let config = ConfiguredConfig {
            local: "192.0.2.1".parse().unwrap(),
            remote: Some(remote.parse().unwrap()),
            prefixes: vec![prefix.parse().unwrap()],
            strict_sources: false,
            policy: TunnelPolicy::default(),
        };
        config.into()
    }

    #[test]
    fn other_tunnels_leave_the_fixed_mechanisms_of_their_kind_in_place() {
        let (fixed, old) =
            (tunnel("198.51.100.1", "2001:db8:1::/48"), tunnel("198.51.100.2", "2001:db8:2::/48"));
        let config = EngineConfig { others: vec![fixed], tunnels: vec![old], ..EngineConfig::default() };
        let mut engine = Engine::new(&config).unwrap();
        engine.set_tunnels(&[tunnel("198.51.100.3", "2001:db8:3::/48")], &[], &[]);
        let outer_destination = |engine: &mut Engine, destination: &str| {
            let mut frames = [Frame::holding(&v6("2001:db8::1", destination, 59, &[]))];
            engine.process(&mut frames, Instant(0), &mut Outbox::new(8));
            let [frame] = frames;
            (frame.verdict == Verdict::Forward).then(|| frame.bytes()[16..20].to_vec())
        };
        assert_eq!(outer_destination(&mut engine, "2001:db8:1::1"), Some(vec![198, 51, 100, 1]));
        assert_eq!(outer_destination(&mut engine, "2001:db8:2::1"), None);
        assert_eq!(outer_destination(&mut engine, "2001:db8:3::1"), Some(vec![198, 51, 100, 3]));
    }
}
