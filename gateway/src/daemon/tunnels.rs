//! The running tunnels: how their packets are received, and the updates when an address changes.
//!
//! At the start: raw sockets, then workers, then routes and addresses, steering last. When an address changes: what is new comes in this
//! order before what is old goes. At the end: steering, routes, the workers, and the raw sockets last, so that the kernel never answers
//! a tunnel's packet with "protocol unreachable".

use super::advertised_prefixes::AdvertisedPrefixes;
use super::advertiser::Advertiser;
use super::aftrs::{AftrSource, Aftrs};
use super::discovery::Discovery;
use super::error::RunError;
use super::filter_trial::FilterTrial;
use super::gateway::Gateway;
use super::ingress::{Ingress, tunnel_ends};
use super::leases::{LeaseHosts, kept_leases};
use super::offload::Offload;
use super::packet_filter::{self, PacketFilter};
use super::path_errors::{self, PathErrorRelay};
use super::remote_names::RemoteNames;
use super::teredo_host::{self, TeredoHost};
use super::teredo_sockets::Heard;
use super::tunnel_view::TunnelView;
use super::udp_tunnels::UdpTunnels;
use crate::config::{Config, RouterAdvertisement, Surroundings};
use crate::host::{Host, HostError, Watched};
use crate::metrics::GatewaySample;
use crate::worker::{Clock, Command, Inlet, Post, TunnelSet};
use sixway_control::teredo_client::Secret;
use sixway_dataplane::engine::TunnelConfig;
use sixway_link::{RawTunnel, TunnelSender};
use sixway_wire::protocol::IPV6;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::time::MissedTickBehavior;

/// How often this host's addresses are examined.
const LOOK: Duration = Duration::from_secs(1);

/// The tunnels of a gateway.
pub(super) struct Tunnels<'c> {
    config: &'c Config,
    pub(super) now: Surroundings,
    device: String,
    ingress: Ingress<'c>,
    senders: BTreeMap<Ipv4Addr, TunnelSender>,
    /// Sockets that no worker has yet.
    opened: Vec<RawTunnel>,
    udp: UdpTunnels<'c>,
    errors: Option<PathErrorRelay>,
    advertisers: Vec<(&'c RouterAdvertisement, Advertiser)>,
    advertised: AdvertisedPrefixes,
    clock: Option<Clock>,
    discovery: Option<Discovery<'c>>,
    leases: Option<LeaseHosts>,
    teredo: Option<TeredoHost<'c>>,
    /// That of the Teredo client, until it begins.
    secret: Option<Secret>,
    succeeds: bool,
    packet_filter: PacketFilter,
    filter_trial: FilterTrial,
    /// Where the AFTRs of B4s are from.
    aftrs: BTreeMap<String, AftrSource>,
    /// The kernel's error, so that it is logged once.
    trouble: Option<String>,
}

impl<'c> Tunnels<'c> {
    /// Opens the raw sockets of all local addresses.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn open(
        config: &'c Config,
        mut now: Surroundings,
        device: &str,
        succeeds: bool,
    ) -> Result<Self, RunError> {
        let udp = UdpTunnels::open(config, &now, succeeds)?;
        let secret = teredo_host::secret(config)?;
        if succeeds {
            now.teredo = teredo_host::address_of_predecessor(config);
        }
        let mut tunnels = Self {
            config,
            now,
            ingress: Ingress::new(config, device),
            device: device.into(),
            senders: BTreeMap::new(),
            opened: Vec::new(),
            udp,
            errors: None,
            advertisers: Vec::new(),
            advertised: AdvertisedPrefixes::load(&config.gateway.name),
            clock: None,
            discovery: None,
            leases: None,
            teredo: None,
            secret,
            succeeds,
            packet_filter: PacketFilter::default(),
            filter_trial: FilterTrial::default(),
            aftrs: BTreeMap::new(),
            trouble: None,
        };
        if config.has_tunnels() {
            let failed = |error: io::Error| {
                match error.kind() {
                io::ErrorKind::PermissionDenied => RunError::Tunnels(
                    "sixway needs CAP_NET_RAW for tunnels. Run it as root, or: setcap cap_net_admin,cap_net_raw+ep \
                     $(command -v sixway)"
                        .into(),
                ),
                _ => RunError::Io("tunnels".into(), error),
            }
            };
            tunnels.open_sockets().map_err(failed)?;
        }
        Ok(tunnels)
    }

    /// Sockets for the local addresses that have none, and the errors of all.
    fn open_sockets(&mut self) -> io::Result<()> {
        let addresses = tunnel_ends(self.config, &self.now);
        for address in addresses.iter().filter(|address| !self.senders.contains_key(*address)) {
            let raw = RawTunnel::open(*address)?;
            self.opened.push(raw);
        }
        for raw in &self.opened {
            self.senders.insert(raw.address(), raw.sender()?);
        }
        let all: Vec<Ipv4Addr> = self.senders.keys().copied().collect();
        match &mut self.errors {
            Some(errors) => errors.set_addresses(&all)?,
            None => self.errors = Some(PathErrorRelay::open(&all)?),
        }
        Ok(())
    }

    /// Gives the opened sockets to the first worker.
    fn hand_over_sockets(&mut self, posts: &[Post]) {
        let Some(post) = posts.first() else { return };
        for raw in self.opened.drain(..) {
            let inlet = Inlet::new((raw.address(), None), Box::new(raw));
            if let Err(error) = post.send(Command::AddInlet(inlet)) {
                tracing::error!("a raw socket could not be given to a worker; its packets are lost: {error}");
            }
        }
    }

    /// Begins: sockets to the worker, routes and addresses, steering. The workers run.
    ///
    /// # Errors
    /// The step that failed.
    pub(super) fn begin(&mut self, host: &mut Host, posts: &[Post]) -> Result<(), RunError> {
        if let Err(error) = packet_filter::check_masquerading(self.config, &self.now) {
            // Sessions would be lost.
            if !host.is_successor() {
                return Err(error);
            }
            tracing::error!("{error}");
        }
        self.packet_filter.keep(self.config, &self.now, &self.device, host);
        if self.packet_filter.leaves_client_open(self.config) {
            self.now.teredo = None;
        }
        self.udp.begin(&self.now, posts);
        self.filter_trial.note_change();
        if !self.ingress.steers() {
            host.steered(&[]).map_err(RunError::Host)?;
        }
        let reach = self.config.reach(&self.first());
        let needs_nothing = reach.rules.is_empty()
            && reach.unreachable.is_empty()
            && reach.blackholes.is_empty()
            && reach.proxies.is_empty()
            && reach.addresses.is_empty()
            && reach.link_addresses.is_empty()
            && self.now.teredo.is_none()
            && self.config.ds_lite.is_empty();
        if !self.ingress.steers() && self.config.router_advertisements.is_empty() && needs_nothing {
            // State of a previous process's tunnels.
            let _ = host.reach(&crate::config::Reach::default());
            return Ok(());
        }
        self.hand_over_sockets(posts);
        let failed = host.reach(&reach).err().unwrap_or_default();
        let (without, failed): (Vec<_>, Vec<_>) =
            failed.into_iter().partition(|error| matches!(error, HostError::Anycast(..)));
        if !failed.is_empty() {
            return Err(RunError::Tunnels(told(&failed)));
        }
        if !without.is_empty() {
            tracing::error!("{}", told(&without));
            self.trouble = Some(told(&without));
        }
        if self.ingress.steers() {
            self.ingress.start(&self.now, host)?;
        }
        Ok(())
    }

    /// The first settings of the kernel. Leases are read again: the previous process may have renewed one, or taken another, since this one
    /// began.
    fn first(&self) -> Surroundings {
        let mut now = self.now.clone();
        now.leases = kept_leases(self.config);
        now
    }

    /// Starts router advertisements on the links, and the ISATAP host or router.
    pub(super) fn advertise(&mut self, clock: Clock, seed: u64) {
        for (number, it) in self.config.router_advertisements.iter().enumerate() {
            let Some(interface) = &it.interface else { continue };
            let settings = self.config.advertised(it, &self.now);
            let seed = seed.rotate_left(32).wrapping_add(number as u64);
            let stored = self.advertised.of(interface, clock);
            self.advertisers.push((it, Advertiser::start(interface, settings, stored, seed, clock)));
        }
        self.clock = Some(clock);
        let mut discovery = Discovery::new(self.config, clock, seed);
        discovery.set(&self.now);
        self.discovery = Some(discovery);
        self.leases = LeaseHosts::new(self.config, clock, seed.rotate_left(17));
        self.teredo = TeredoHost::new(self.config, self.secret.take(), clock, self.succeeds);
    }

    /// Applies changes of this host's addresses, and of addresses that names resolve to. Passes path errors to the workers, and sends neighbour discovery through
    /// tunnels.
    /// For ever.
    pub(super) async fn keep(
        &mut self,
        host: &mut Host,
        gateway: &Gateway,
        control: &mut Receiver<Vec<u8>>,
        offload: Option<&Offload<'_>>,
    ) {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let Some((sender, answers)) = gateway.new_remotes() else { return std::future::pending().await };
        let mut names = RemoteNames::new(self.config, &sender, answers);
        let mut aftrs = Aftrs::new(self.config, &gateway.told_aftrs);
        self.follow_teredo(gateway);
        gateway.see_tunnels(self.view());
        self.follow_pools(gateway);
        loop {
            let mut seen = self.now.clone();
            if let Some(discovery) = &mut self.discovery {
                seen.learnt.clone_from(discovery.work(&self.senders));
            }
            seen.aftrs = aftrs.in_use();
            self.name_aftrs(&aftrs, gateway);
            if let Some(leases) = &mut self.leases {
                seen.leases.clone_from(leases.work());
            }
            if let Some(teredo) = &mut self.teredo {
                let is_open = self.packet_filter.leaves_client_open(self.config);
                seen.teredo = teredo.work(gateway.posts()).filter(|_| !is_open);
                gateway.note_teredo_client(teredo.row(is_open));
            }
            let idle = [
                self.discovery.as_ref().and_then(Discovery::idle),
                self.leases.as_ref().and_then(LeaseHosts::idle),
                self.teredo.as_ref().and_then(TeredoHost::idle),
            ];
            let idle = idle.into_iter().flatten().min();
            if seen == self.now {
                tokio::select! {
                    _ = look.tick() => {
                        seen = crate::host::surroundings_now(seen);
                        self.inspect(host, gateway);
                        self.each_second(gateway);
                        let followed = self.follow_teredo(gateway);
                        if self.udp.follow(&self.now, gateway.posts()) || followed {
                            gateway.see_tunnels(self.view());
                        }
                        self.observe_aftrs(&mut aftrs, gateway);
                        if let Some(offload) = offload {
                            offload.narrow(&[]);
                            offload.allow_half_open(self.packet_filter.excludes_fast_path(self.config));
                        }
                        self.reach(host);
                    }
                    (tunnel, address) = names.changed() => drop(seen.remotes.insert(tunnel, address)),
                    () = aftrs.changed() => {}
                    found = relay(&mut self.errors, gateway) => {
                        if let Some(offload) = offload {
                            offload.narrow(&found);
                        }
                        if let Some(discovery) = &mut self.discovery {
                            found.iter().for_each(|error| discovery.note_path_error(error));
                        }
                    }
                    heard = hear(&self.teredo) => {
                        if let Some(teredo) = &mut self.teredo {
                            teredo.receive(&heard);
                        }
                    }
                    Some(packet) = control.recv() => self.receive(packet),
                    () = tokio::time::sleep(idle.unwrap_or(LOOK)) => {}
                }
            }
            if seen != self.now {
                // A rule must be removed before what it represents.
                if let Some(offload) = offload {
                    offload.change(&seen);
                }
                self.change(seen, host, gateway).await;
            }
            if let Some(leases) = &mut self.leases {
                leases.send_waiting();
            }
        }
    }

    /// A packet that a worker gave to control: neighbour discovery in IPv4, or one that found no lease.
    fn receive(&mut self, packet: Vec<u8>) {
        if self.teredo.as_mut().is_some_and(|teredo| teredo.take(&packet)) {
            return;
        }
        match (&mut self.leases, &mut self.discovery) {
            (Some(leases), _) if packet.first().is_some_and(|first| first >> 4 == 6) => leases.wake(&packet),
            (Some(leases), _) if packet.get(9).is_some_and(|protocol| *protocol != IPV6) => {
                leases.receive(packet)
            }
            (_, Some(discovery)) => discovery.receive(&packet),
            (_, None) => {}
        }
    }

    /// Stores the prefixes that the hosts of the links use.
    fn store_prefixes(&mut self) {
        let Some(clock) = self.clock.filter(|_| !self.advertisers.is_empty()) else { return };
        let links = self.advertisers.iter();
        let believed = links.map(|(it, one)| (it.interface.clone().unwrap_or_default(), one.believed()));
        self.advertised.keep(&believed.collect::<Vec<_>>(), clock);
    }

    /// The source of an AFTR's address may change while the address stays.
    fn name_aftrs(&mut self, aftrs: &Aftrs, gateway: &Gateway) {
        if self.aftrs != *aftrs.sources() {
            self.aftrs.clone_from(aftrs.sources());
            gateway.see_tunnels(self.view());
        }
    }

    /// Lets B4s give up an AFTR that is silent.
    fn observe_aftrs(&self, aftrs: &mut Aftrs, gateway: &Gateway) {
        if let Some(clock) = self.clock.filter(|_| self.config.b4s().next().is_some()) {
            let (sent, received) = gateway.b4_packets();
            aftrs.observe(clock.now(), sent, received);
            gateway.note_aftrs(aftrs.silent(clock.now()), aftrs.faults().clone());
        }
    }

    /// The socket of a Teredo client follows this host's addresses. Whether it was opened or closed.
    fn follow_teredo(&mut self, gateway: &Gateway) -> bool {
        let now = &self.now;
        self.teredo.as_mut().is_some_and(|teredo| teredo.follow(now, gateway.posts()))
    }

    fn each_second(&mut self, gateway: &Gateway) {
        self.store_prefixes();
        if let Some(teredo) = &mut self.teredo {
            teredo.each_second(gateway.teredo_packets(), gateway.posts());
        }
        if let Some(leases) = &mut self.leases {
            leases.each_second(gateway.four_over_six_is_used());
            gateway.note_own_leases(leases.rows(), leases.files());
            gateway.note_lease_troubles(leases.troubles(), leases.states());
        }
        let Some(discovery) = &mut self.discovery else { return };
        if gateway.isatap_is_used() {
            discovery.note_traffic();
        }
        let lans = self.advertisers.iter().map(|(_, advertiser)| advertiser.row());
        let advertisements = lans.chain(discovery.rows()).collect();
        gateway.note_gateway_sample(GatewaySample {
            advertisements,
            steered: self.ingress.counters(),
            ..GatewaySample::default()
        });
    }

    /// Sets other addresses.
    pub(super) async fn change(&mut self, seen: Surroundings, host: &mut Host, gateway: &Gateway) {
        let before = tunnel_ends(self.config, &self.now);
        let was = std::mem::replace(&mut self.now, seen);
        // Packets may take other paths.
        self.filter_trial.note_change();
        let after = tunnel_ends(self.config, &self.now);
        for address in before.intersection(&after) {
            match (was.holder(*address), self.now.holder(*address)) {
                (Some(name), None) => {
                    tracing::warn!(
                        "{name} lost the tunnel address {address}: no packets are received until it returns"
                    );
                }
                (None, Some(name)) => tracing::info!("the tunnel address {address} is back on {name}"),
                (_, _) => {}
            }
        }
        self.warn_of_taken_ends(&was);
        for (address, _) in self.config.shared_ports() {
            match (was.holder(address), self.now.holder(address)) {
                (Some(name), None) => tracing::warn!(
                    "{name} lost the pool address {address}: packets for its ports are not received until it returns"
                ),
                (None, Some(name)) => tracing::info!("the pool address {address} is on {name}"),
                (_, _) => {}
            }
        }
        self.follow_pools(gateway);
        if before != after {
            let list = after.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            match after.is_empty() {
                true => tracing::warn!("no local tunnel address is left: tunnels are down until one returns"),
                false => tracing::info!("local tunnel addresses: {list}"),
            }
        }
        if self.config.has_tunnels() {
            if let Err(error) = self.open_sockets() {
                tracing::error!("tunnels: {error}");
            }
            self.hand_over_sockets(gateway.posts());
        }
        self.udp.follow(&self.now, gateway.posts());
        self.follow_teredo(gateway);
        self.packet_filter.keep(self.config, &self.now, &self.device, host);
        if self.packet_filter.leaves_client_open(self.config) {
            self.now.teredo = None;
        }
        if self.ingress.steers() {
            let addresses = self.ingress.own(before.union(&after).copied());
            self.ingress.steer_to(&addresses, &self.now, host);
        }
        // NAT64s refuse this host's addresses as destinations.
        let has_ends = self.config.has_tunnels() || !self.config.nat64.is_empty() || !self.udp.is_empty();
        let has_ends = has_ends || self.teredo.is_some();
        if has_ends || self.leases.is_some() || !self.config.ds_lite.is_empty() {
            let tunnels: Vec<TunnelConfig> =
                self.config.tunnels(&self.now).into_iter().map(|(_, tunnel)| tunnel).collect();
            let own6 = self.config.ipv6_address(&self.now);
            let (host4, host6) = (self.now.host4(), self.config.host6(&self.now));
            let set = Arc::new(TunnelSet { tunnels, host4, host6, own6 });
            for worker in 0..gateway.workers() {
                let change = |answer| Command::Tunnels(Arc::clone(&set), answer);
                if let Err(error) = gateway.ask(worker, change).await {
                    tracing::error!("worker {worker} keeps its previous tunnels: {error}");
                }
            }
        }
        self.reach(host);
        for (it, advertiser) in &self.advertisers {
            advertiser.say(self.config.advertised(it, &self.now));
        }
        if let Some(discovery) = &mut self.discovery {
            discovery.set(&self.now);
        }
        self.let_go(&after, gateway);
        gateway.see_tunnels(self.view());
    }

    /// A pool whose interface has another address gets it by a reload.
    fn follow_pools(&self, gateway: &Gateway) {
        for (pool, address) in self.config.moved_pools(&self.now) {
            let interface = pool.interface.as_deref().unwrap_or_default();
            tracing::warn!("{interface} now has the address {address}: reloading for pool {}", pool.name);
            gateway.outdated.notify_one();
        }
    }

    /// An address at which tunnels of IP in IP end is on an interface since a moment ago, or no longer.
    fn warn_of_taken_ends(&self, was: &Surroundings) {
        let holder = |seen: &Surroundings, address| {
            seen.holder_of(address).filter(|name| *name != self.device).map(str::to_owned)
        };
        for (tunnel, local) in self.config.others.locals() {
            match (holder(was, local), holder(&self.now, local)) {
                (None, Some(name)) => tracing::warn!(
                    "{local}, the local address of tunnel {tunnel}, was added to {name}: the kernel receives the tunnel's packets; remove the address from {name}"
                ),
                (Some(name), None) => {
                    tracing::info!("{local}, the local address of tunnel {tunnel}, was removed from {name}")
                }
                (_, _) => {}
            }
        }
    }

    /// Restores what other programs changed on this host.
    fn inspect(&mut self, host: &mut Host, gateway: &Gateway) {
        let now = Instant::now();
        let suspicion = host.inspect(&self.ingress.filters(), now);
        if suspicion.ruleset || suspicion.way_out {
            self.filter_trial.note_change();
        }
        self.filter_trial.turn(self.config);
        gateway.note_filter_findings(self.filter_trial.told());
        if suspicion.packet_filter {
            self.packet_filter.restore(self.config, &self.now, &self.device, host);
        }
        self.packet_filter.retry(self.config, &self.now, &self.device, host);
        if suspicion.steering {
            let what = "steering at tc ingress";
            if self.ingress.filters().are_there() {
                host.intact(what);
            } else if host.may_restore(Watched::Steering, what, "a filter was removed", now) {
                self.ingress.attach_again();
                host.ignore_filters();
            }
        }
        gateway.note_restored(host.restored());
        gateway.note_vrf_troubles(host.vrf_troubles());
    }

    /// Sets what the kernel needs at the moment; repeats settings that were lost with an interface, or refused.
    fn reach(&mut self, host: &mut Host) {
        let trouble = host.reach(&self.config.reach(&self.now)).err().map(|errors| told(&errors));
        if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            tracing::error!("{what}");
        }
        self.trouble = trouble;
    }

    /// Closes the sockets of removed addresses.
    fn let_go(&mut self, kept: &BTreeSet<Ipv4Addr>, gateway: &Gateway) {
        let old: Vec<Ipv4Addr> =
            self.senders.keys().filter(|address| !kept.contains(*address)).copied().collect();
        if old.is_empty() {
            return;
        }
        self.ingress.keep_only(kept);
        for address in old {
            self.senders.remove(&address);
            let removed =
                gateway.posts().first().map(|post| post.send(Command::RemoveInlet((address, None))));
            if let Some(Err(error)) = removed {
                tracing::warn!("the raw socket of {address} could not be closed: {error}");
            }
        }
        let all: Vec<Ipv4Addr> = self.senders.keys().copied().collect();
        if let Some(Err(error)) = self.errors.as_mut().map(|errors| errors.set_addresses(&all)) {
            tracing::warn!("the addresses for ICMP path errors could not be changed: {error}");
        }
    }

    /// The links with advertisements, and a summary of each.
    pub(super) fn advertised(&self) -> Vec<(String, String)> {
        let links = self.config.router_advertisements.iter().map(|it| {
            let link = it.interface.clone().or_else(|| it.over.clone()).unwrap_or_default();
            let settings = self.config.advertised(it, &self.now);
            let prefixes = settings.prefixes.iter().map(|prefix| prefix.prefix.to_string());
            let nat64 = settings.pref64.iter().map(|entry| format!("NAT64 {}", entry.prefix));
            let parts: Vec<String> = prefixes.chain(nat64).collect();
            (link, if parts.is_empty() { "no prefix yet".into() } else { parts.join(" · ") })
        });
        links.collect()
    }

    /// How things are, for `sixway show`.
    pub(super) fn view(&self) -> TunnelView {
        let view = TunnelView::of(self.config, (&self.now, &self.aftrs), &self.ingress.describe());
        let client = self.teredo.as_ref();
        let udp_ends = self.udp.ends().into_iter().chain(client.map(TeredoHost::end)).collect();
        let of_client = client.and_then(TeredoHost::trouble);
        TunnelView {
            udp_ends,
            udp_troubles: self.udp.troubles().into_iter().chain(of_client).collect(),
            ..view
        }
    }

    /// Sends final advertisements (RFC 4861 §6.2.5).
    pub(super) async fn send_final_advertisements(&mut self) {
        self.store_prefixes();
        self.advertisers.iter().for_each(|(_, advertiser)| advertiser.end());
        for (_, advertiser) in self.advertisers.drain(..) {
            advertiser.ended().await;
        }
    }

    /// Leaves everything unchanged for the next process. The raw sockets stay open until this is dropped.
    pub(super) fn leave(&mut self) {
        self.store_prefixes();
        self.advertisers.drain(..).for_each(|(_, advertiser)| advertiser.leave());
        self.ingress.leave();
    }

    /// The first part of the end: removes steering and the routes into the device. The raw sockets stay open until this is dropped.
    pub(super) fn finish(&mut self, host: &mut Host) {
        if let Some(leases) = &mut self.leases {
            leases.finish();
        }
        self.ingress.end();
        // Settings that are not removed end with the device, or are in the state file.
        let _ = host.reach(&crate::config::Reach::default());
    }
}

fn told(errors: &[HostError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Waits for a datagram of a Teredo client.
async fn hear(teredo: &Option<TeredoHost<'_>>) -> Heard {
    match teredo {
        Some(teredo) => teredo.hear().await,
        None => std::future::pending().await,
    }
}

/// Waits for path errors, passes them to the workers, and returns them.
async fn relay(errors: &mut Option<PathErrorRelay>, gateway: &Gateway) -> Vec<Arc<[u8]>> {
    let Some(relay) = errors else { return std::future::pending().await };
    match relay.next().await {
        Ok(found) => {
            path_errors::tell(&found, gateway);
            found
        }
        Err(error) => {
            tracing::error!("stopped receiving ICMP path errors; tunnel MTUs are no longer learnt: {error}");
            *errors = None;
            Vec::new()
        }
    }
}
