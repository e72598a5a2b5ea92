//! The tunnels while they run: how their packets come in, and what follows when an address changes.
//!
//! At the start: raw sockets, then workers, then routes and addresses, steering last. When an address changes: what is new comes in this
//! order before what is old goes. At the end: steering, routes, the workers, and the raw sockets last, so that the kernel never answers
//! a tunnel's packet with "protocol unreachable".

use super::advertiser::Advertiser;
use super::backend::Gateway;
use super::discovery::Discovery;
use super::error::RunError;
use super::offload::Offload;
use super::packet_filter::PacketFilter;
use super::path_errors::{self, PathErrorRelay};
use super::promises::Promises;
use super::remote_names::RemoteNames;
use super::tunnel_view::TunnelView;
use crate::config::{Config, RouterAdvertisement, Steering as Wanted, Surroundings};
use crate::host::{Host, HostError, kernel_tunnels};
use crate::metrics::Beside;
use crate::worker::{Clock, Command, Inlet, Post, TunnelSet};
use sixway_dataplane::engine::TunnelConfig;
use sixway_fastpath::{Hook, OwnAddress, Steering};
use sixway_link::{RawTunnel, TunnelSender};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// How often this host's addresses are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// An interface, and the kernel's number of it: one that is made anew has another, and nothing is steered from it.
type Interface = (String, Option<u32>);

fn names(interfaces: &[Interface]) -> String {
    interfaces.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ")
}

/// How tunnel packets come to the gateway.
#[derive(Debug)]
enum Way {
    /// Steered from these interfaces, as they were then.
    Steered(Steering, Vec<Interface>),
    /// Through raw sockets.
    Raw,
}

/// The tunnels of a gateway.
pub(super) struct Tunnels<'c> {
    config: &'c Config,
    pub(super) now: Surroundings,
    device: String,
    senders: BTreeMap<Ipv4Addr, TunnelSender>,
    /// Sockets that no worker has yet.
    opened: Vec<RawTunnel>,
    errors: Option<PathErrorRelay>,
    advertisers: Vec<(&'c RouterAdvertisement, Advertiser)>,
    promises: Promises,
    clock: Option<Clock>,
    discovery: Option<Discovery<'c>>,
    way: Way,
    packet_filter: PacketFilter,
    /// What the kernel refused, so that it is told once.
    trouble: Option<String>,
}

impl<'c> Tunnels<'c> {
    /// Opens the raw sockets of all local addresses.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn open(config: &'c Config, now: Surroundings, device: &str) -> Result<Self, RunError> {
        let mut tunnels = Self {
            config,
            now,
            device: device.into(),
            senders: BTreeMap::new(),
            opened: Vec::new(),
            errors: None,
            advertisers: Vec::new(),
            promises: Promises::load(&config.gateway.name),
            clock: None,
            discovery: None,
            way: Way::Raw,
            packet_filter: PacketFilter::default(),
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
        let addresses = self.addresses();
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

    /// The local addresses of the tunnels that can be at the moment.
    fn addresses(&self) -> BTreeSet<Ipv4Addr> {
        self.config.tunnels(&self.now).iter().filter_map(|(_, tunnel)| tunnel.local()).collect()
    }

    /// Gives the opened sockets to the first worker.
    fn hand_over_sockets(&mut self, posts: &[Post]) {
        let Some(post) = posts.first() else { return };
        for raw in self.opened.drain(..) {
            let inlet = Inlet { address: raw.address(), link: Box::new(raw) };
            if let Err(error) = post.send(Command::AddInlet(inlet)) {
                tracing::error!("a raw socket is of no use: {error}");
            }
        }
    }

    /// Begins: sockets to the worker, routes and addresses, steering. The workers run.
    ///
    /// # Errors
    /// What could not be done.
    pub(super) fn begin(&mut self, host: &mut Host, posts: &[Post]) -> Result<(), RunError> {
        self.packet_filter.keep(self.config, &self.now, &self.device, host);
        if !self.steers() {
            host.steered(&[]).map_err(RunError::Host)?;
        }
        let reach = self.config.reach(&self.now);
        if !self.steers() && self.config.router_advertisements.is_empty() && reach.rules.is_empty() {
            // What a gateway before this one had for tunnels.
            let _ = host.reach(&crate::config::Reach::default());
            return Ok(());
        }
        self.hand_over_sockets(posts);
        host.reach(&reach).map_err(|errors| RunError::Tunnels(told(&errors)))?;
        if self.steers() {
            self.steer(host)?;
        }
        Ok(())
    }

    /// Whether anything comes to this host's own addresses that is the gateway's.
    fn steers(&self) -> bool {
        self.config.has_tunnels() || self.shares()
    }

    /// Whether the gateway has ports of this host's own addresses.
    fn shares(&self) -> bool {
        !self.config.shared_ports().is_empty()
    }

    /// What is steered, if tunnels end at these addresses.
    fn own(&self, ends: impl IntoIterator<Item = Ipv4Addr>) -> Vec<OwnAddress> {
        let shared = self.config.shared_ports().into_iter();
        let shared = shared.map(|(address, ports)| OwnAddress::of_ports(address, ports.ranges().to_vec()));
        ends.into_iter().map(OwnAddress::of_tunnels).chain(shared).collect()
    }

    /// Attaches steering, if it is to be.
    fn steer(&mut self, host: &mut Host) -> Result<(), RunError> {
        let why = match self.config.tunnels.steering {
            Wanted::Off => "tunnels.steering is off".to_owned(),
            Wanted::Auto | Wanted::On => match self.attach(host) {
                Ok(()) => return Ok(()),
                Err(why) if self.shares() => {
                    return Err(RunError::Tunnels(format!(
                        "this host's own address cannot be shared with a pool: its packets cannot be steered: {why}"
                    )));
                }
                Err(why) => why,
            },
        };
        if self.config.tunnels.steering == Wanted::On {
            return Err(RunError::Tunnels(format!(
                "protocol 41 cannot be steered: {why}; mend it, or write tunnels.steering = \"auto\""
            )));
        }
        // What keeps out of a steered packet's way answers one that comes by the local stack.
        if let Some(device) = kernel_tunnels().into_iter().find(|device| device.local.is_none()) {
            return Err(RunError::Tunnels(format!(
                "{}, a tunnel device of the kernel, answers protocol 41 before raw sockets do, and it cannot be steered past it \
                 ({why}); remove it: {}",
                device.name,
                device.how_to_remove()
            )));
        }
        tracing::info!("protocol 41 comes through raw sockets: {why}");
        self.way = Way::Raw;
        Ok(())
    }

    fn attach(&mut self, host: &mut Host) -> Result<(), String> {
        let interfaces = self.interfaces();
        let names: Vec<&str> = interfaces.iter().map(String::as_str).collect();
        let addresses = self.own(self.addresses());
        // Before it is known whether the kernel has TCX, with which nothing stays behind a sudden end.
        host.steered(&interfaces).map_err(|error| error.to_string())?;
        // Ports must not fall to the host while the gateway is away: clsact's programs stay.
        let steering = match self.shares() {
            true => Steering::attach_by(Hook::Clsact, &names, &self.device, &addresses),
            false => Steering::attach(&names, &self.device, &addresses),
        };
        if steering.as_ref().map_or(true, |steering| steering.hook() == Hook::Tcx) {
            host.steered(&[]).map_err(|error| error.to_string())?;
        }
        let steering = steering.map_err(|error| error.to_string())?;
        self.way = Way::Steered(steering, self.numbered(interfaces));
        Ok(())
    }

    fn numbered(&self, interfaces: Vec<String>) -> Vec<Interface> {
        interfaces.into_iter().map(|name| (name.clone(), self.now.number_of(&name))).collect()
    }

    /// The interfaces that packets are steered from: those that are written, else those that have the addresses. A packet for an address
    /// on `lo` may come by any other.
    fn interfaces(&self) -> Vec<String> {
        if !self.config.tunnels.interfaces.is_empty() {
            return self.config.tunnels.interfaces.clone();
        }
        let mut names = BTreeSet::new();
        for OwnAddress { address, .. } in self.own(self.addresses()) {
            match self.now.holder(address) {
                Some("lo") => names.extend(self.now.interfaces().filter(|name| *name != "lo")),
                Some(name) => drop(names.insert(name)),
                None => {}
            }
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// Begins to advertise on the links, and to look for ISATAP routers or to be one.
    pub(super) fn advertise(&mut self, clock: Clock, seed: u64) {
        for (number, it) in self.config.router_advertisements.iter().enumerate() {
            let Some(interface) = &it.interface else { continue };
            let settings = self.config.advertised(it, &self.now);
            let seed = seed.rotate_left(32).wrapping_add(number as u64);
            let promised = self.promises.of(interface, clock);
            self.advertisers.push((it, Advertiser::start(interface, settings, promised, seed, clock)));
        }
        self.clock = Some(clock);
        let mut discovery = Discovery::new(self.config, clock, seed);
        discovery.set(&self.now);
        self.discovery = Some(discovery);
    }

    /// Lives with changes: of this host's addresses, and of what names lead to. Gives path errors to the workers, and lets neighbour discovery speak through tunnels.
    /// For ever.
    pub(super) async fn keep(
        &mut self,
        host: &mut Host,
        gateway: &Gateway,
        control: &mut Receiver<Vec<u8>>,
        offload: Option<&Offload<'_>>,
    ) {
        let mut look = tokio::time::interval(LOOK);
        let Some((sender, answers)) = gateway.new_remotes() else { return std::future::pending().await };
        let mut names = RemoteNames::new(self.config, &sender, answers);
        gateway.see_tunnels(self.view());
        loop {
            let mut seen = self.now.clone();
            if let Some(discovery) = &mut self.discovery {
                seen.learnt.clone_from(discovery.work(&self.senders));
            }
            let idle = self.discovery.as_ref().and_then(Discovery::idle);
            if seen == self.now {
                tokio::select! {
                    _ = look.tick() => {
                        seen = seen.looked_up();
                        self.each_second(gateway);
                        if let Some(offload) = offload {
                            offload.narrow(&[]);
                        }
                        self.reach(host);
                    }
                    (tunnel, address) = names.changed() => drop(seen.remotes.insert(tunnel, address)),
                    found = relay(&mut self.errors, gateway) => {
                        if let Some(offload) = offload {
                            offload.narrow(&found);
                        }
                        if let Some(discovery) = &mut self.discovery {
                            found.iter().for_each(|error| discovery.note_path_error(error));
                        }
                    }
                    Some(packet) = control.recv() => {
                        if let Some(discovery) = &mut self.discovery {
                            discovery.receive(&packet);
                        }
                    }
                    () = tokio::time::sleep(idle.unwrap_or(LOOK)) => {}
                }
            }
            if seen != self.now {
                // What a rule stands for is there as long as the rule is in force.
                if let Some(offload) = offload {
                    offload.change(&seen);
                }
                self.change(seen, host, gateway).await;
            }
        }
    }

    /// Writes down what the hosts of the links believe in.
    fn keep_promises(&mut self) {
        let Some(clock) = self.clock.filter(|_| !self.advertisers.is_empty()) else { return };
        let links = self.advertisers.iter();
        let believed = links.map(|(it, one)| (it.interface.clone().unwrap_or_default(), one.believed()));
        self.promises.keep(&believed.collect::<Vec<_>>(), clock);
    }

    fn each_second(&mut self, gateway: &Gateway) {
        self.keep_promises();
        let Some(discovery) = &mut self.discovery else { return };
        if gateway.isatap_is_used() {
            discovery.note_traffic();
        }
        let lans = self.advertisers.iter().map(|(_, advertiser)| advertiser.row());
        let steered = match &self.way {
            Way::Steered(steering, _) => Some(steering.counters()),
            Way::Raw => None,
        };
        let advertisements = lans.chain(discovery.rows()).collect();
        gateway.see_beside(Beside { advertisements, steered, ..Beside::default() });
    }

    /// Other addresses from now on.
    pub(super) async fn change(&mut self, seen: Surroundings, host: &mut Host, gateway: &Gateway) {
        let before = self.addresses();
        let was = std::mem::replace(&mut self.now, seen);
        let after = self.addresses();
        for address in before.intersection(&after) {
            match (was.holder(*address), self.now.holder(*address)) {
                (Some(name), None) => {
                    tracing::info!(
                        "{address}, an end of tunnels, is no longer on {name}: nothing comes until it is back"
                    );
                }
                (None, Some(name)) => tracing::info!("{address}, an end of tunnels, is back on {name}"),
                (_, _) => {}
            }
        }
        self.tell_of_taken_ends(&was);
        if before != after {
            let list =
                |set: &BTreeSet<Ipv4Addr>| set.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::info!(
                "tunnels end at {} from now on",
                if after.is_empty() { "no address".into() } else { list(&after) }
            );
        }
        if self.config.has_tunnels() {
            if let Err(error) = self.open_sockets() {
                tracing::error!("tunnels: {error}");
            }
            self.hand_over_sockets(gateway.posts());
        }
        self.packet_filter.keep(self.config, &self.now, &self.device, host);
        if self.steers() {
            self.steer_to(&self.own(before.union(&after).copied()), host);
        }
        if self.config.has_tunnels() {
            let tunnels: Vec<TunnelConfig> =
                self.config.tunnels(&self.now).into_iter().map(|(_, tunnel)| tunnel).collect();
            let own6 = self.config.ipv6_address(&self.now);
            let (host4, host6) = (self.now.host4(), self.config.host6(&self.now));
            let set = Arc::new(TunnelSet { tunnels, host4, host6, own6 });
            for worker in 0..gateway.workers() {
                let change = |answer| Command::Tunnels(Arc::clone(&set), answer);
                if let Err(error) = gateway.ask(worker, change).await {
                    tracing::error!("tunnels of worker {worker} stay as they were: {error}");
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

    /// An address at which tunnels of IP in IP end is on an interface since a moment ago, or no longer.
    fn tell_of_taken_ends(&self, was: &Surroundings) {
        let holder = |seen: &Surroundings, address| {
            seen.holder_of(address).filter(|name| *name != self.device).map(str::to_owned)
        };
        for (tunnel, local) in self.config.others.locals() {
            match (holder(was, local), holder(&self.now, local)) {
                (None, Some(name)) => tracing::warn!(
                    "{local}, an end of {tunnel}, is an address of {name} now: the kernel takes the tunnel's packets; remove it there"
                ),
                (Some(name), None) => {
                    tracing::info!("{local}, an end of {tunnel}, is no longer an address of {name}")
                }
                (_, _) => {}
            }
        }
    }

    /// Gives the kernel what it needs at the moment: also again, what went with an interface that is back, and what it refused.
    fn reach(&mut self, host: &mut Host) {
        let trouble = host.reach(&self.config.reach(&self.now)).err().map(|errors| told(&errors));
        if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            tracing::error!("{what}");
        }
        self.trouble = trouble;
    }

    /// Steers to these addresses; where the interfaces are others, or could not be steered from before, from those.
    fn steer_to(&mut self, addresses: &[OwnAddress], host: &mut Host) {
        if self.config.tunnels.steering == Wanted::Off {
            return;
        }
        let interfaces = self.numbered(self.interfaces());
        let was_raw = matches!(self.way, Way::Raw);
        let stays = matches!(&self.way, Way::Steered(_, from) if *from == interfaces);
        let outcome = match &mut self.way {
            Way::Steered(steering, from) if *from == interfaces => {
                steering.set_addresses(addresses).map_err(|error| error.to_string())
            }
            Way::Steered(steering, from) if steering.hook() == Hook::Clsact => {
                hang_at(steering, from, interfaces, host)
                    .and_then(|()| steering.set_addresses(addresses).map_err(|error| error.to_string()))
            }
            Way::Steered(..) | Way::Raw => self.attach(host),
        };
        match outcome {
            Err(why) if self.shares() => tracing::error!("the pools' packets are not steered: {why}"),
            Err(why) if !was_raw => {
                tracing::warn!("protocol 41 comes through raw sockets from now on: {why}");
                self.way = Way::Raw;
            }
            Ok(()) if !stays => tracing::info!("{} from now on", self.way()),
            Err(_) | Ok(()) => {}
        }
    }

    /// Closes what belongs to addresses that are no more.
    fn let_go(&mut self, kept: &BTreeSet<Ipv4Addr>, gateway: &Gateway) {
        let old: Vec<Ipv4Addr> =
            self.senders.keys().filter(|address| !kept.contains(*address)).copied().collect();
        if old.is_empty() {
            return;
        }
        let kept = self.own(kept.iter().copied());
        if let Way::Steered(steering, _) = &mut self.way
            && let Err(error) = steering.set_addresses(&kept)
        {
            tracing::warn!("steering: {error}");
        }
        for address in old {
            self.senders.remove(&address);
            let removed = gateway.posts().first().map(|post| post.send(Command::RemoveInlet(address)));
            if let Some(Err(error)) = removed {
                tracing::warn!("the raw socket of {address} stays open: {error}");
            }
        }
        let all: Vec<Ipv4Addr> = self.senders.keys().copied().collect();
        if let Some(Err(error)) = self.errors.as_mut().map(|errors| errors.set_addresses(&all)) {
            tracing::warn!("path errors: {error}");
        }
    }

    /// How the packets come in, in a few words.
    pub(super) fn way(&self) -> String {
        let what = match (self.config.has_tunnels(), self.shares()) {
            (true, true) => "protocol 41 and the pools' ports",
            (false, true) => "the pools' ports",
            (_, false) => "protocol 41",
        };
        match &self.way {
            Way::Steered(_, from) if from.is_empty() => "nothing comes in without an address".into(),
            Way::Steered(_, from) => format!("{what} steered from {}", names(from)),
            Way::Raw => "protocol 41 through raw sockets".into(),
        }
    }

    /// What is advertised where, in a few words.
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
        TunnelView::of(self.config, &self.now, &self.way())
    }

    /// Says farewell to the links.
    pub(super) async fn say_farewell(&mut self) {
        self.keep_promises();
        self.advertisers.iter().for_each(|(_, advertiser)| advertiser.end());
        for (_, advertiser) in self.advertisers.drain(..) {
            advertiser.ended().await;
        }
    }

    /// Leaves everything as it is for who takes over. The raw sockets stay open while this lives.
    pub(super) fn leave(&mut self) {
        self.keep_promises();
        self.advertisers.drain(..).for_each(|(_, advertiser)| advertiser.leave());
        if let Way::Steered(steering, _) = std::mem::replace(&mut self.way, Way::Raw) {
            steering.leave();
        }
    }

    /// The first part of the end: nothing is steered, nothing is routed into the device. The raw sockets stay open while this lives.
    pub(super) fn finish(&mut self, host: &mut Host) {
        self.way = Way::Raw;
        // What is not removed vanishes with the device, or is in the record.
        let _ = host.reach(&crate::config::Reach::default());
    }
}

/// Hangs a program that stays at interfaces which are new or were made anew. Where it is already, it is not interrupted.
fn hang_at(
    steering: &mut Steering,
    from: &mut Vec<Interface>,
    interfaces: Vec<Interface>,
    host: &mut Host,
) -> Result<(), String> {
    let names: Vec<String> = interfaces.iter().map(|(name, _)| name.clone()).collect();
    host.steered(&names).map_err(|error| error.to_string())?;
    for (name, _) in interfaces.iter().filter(|one| !from.contains(one)) {
        steering.add_interface(name).map_err(|error| error.to_string())?;
    }
    *from = interfaces;
    Ok(())
}

fn told(errors: &[HostError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Gives path errors to the workers when there are some, and back.
async fn relay(errors: &mut Option<PathErrorRelay>, gateway: &Gateway) -> Vec<Arc<[u8]>> {
    let Some(relay) = errors else { return std::future::pending().await };
    match relay.next().await {
        Ok(found) => {
            path_errors::tell(&found, gateway);
            found
        }
        Err(error) => {
            tracing::error!("path errors are no longer heard: {error}");
            *errors = None;
            Vec::new()
        }
    }
}
