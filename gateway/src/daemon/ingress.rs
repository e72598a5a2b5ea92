//! How the gateway receives tunnel packets and those for shared ports: steered into the device at tc ingress, or through raw sockets.

use super::error::RunError;
use crate::config::{Config, Steering as Wanted, Surroundings};
use crate::host::{Host, TcFilters, kernel_tunnels};
use sixway_fastpath::{Hook, InsideHosts, OwnAddress, RANGES, Steering, Taken};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

// `check` refuses more ranges than the map has room for.
const _: () = assert!(crate::config::SHARED_RANGES == RANGES);

/// An interface and its index. A recreated interface has another index, and no program is attached to it.
type Interface = (String, Option<u32>);

/// The interface of errors that this host's kernel makes about packets with one of its own addresses.
const LOOPBACK: &str = "lo";

/// The interfaces that packets of others arrive on.
fn outer(interfaces: &[Interface]) -> Vec<&str> {
    interfaces.iter().map(|(name, _)| &**name).filter(|name| *name != LOOPBACK).collect()
}

/// How tunnel packets come to the gateway.
#[derive(Debug)]
enum IngressPath {
    /// Steered from these interfaces, with their indices at that time.
    Steered(Box<Steering>, Vec<Interface>),
    /// Through raw sockets.
    Raw,
}

/// How packets for this host's own addresses are received.
#[derive(Debug)]
pub(super) struct Ingress<'c> {
    config: &'c Config,
    device: String,
    path: IngressPath,
}

impl<'c> Ingress<'c> {
    /// Through raw sockets, until something is steered into `device`.
    pub(super) fn new(config: &'c Config, device: &str) -> Self {
        Self { config, device: device.into(), path: IngressPath::Raw }
    }

    /// Whether any packets to this host's own addresses are the gateway's.
    pub(super) fn steers(&self) -> bool {
        self.config.has_tunnels() || self.shares()
    }

    /// Whether the gateway has ports of this host's own addresses.
    fn shares(&self) -> bool {
        !self.config.shared_ports().is_empty()
    }

    /// The packets that are steered, if tunnels end at these addresses.
    pub(super) fn own(&self, ends: impl IntoIterator<Item = Ipv4Addr>) -> Vec<OwnAddress> {
        let shared = self.config.shared_ports().into_iter();
        let shared = shared.map(|(address, ports)| OwnAddress::of_ports(address, ports.ranges().to_vec()));
        ends.into_iter().map(OwnAddress::of_tunnels).chain(shared).collect()
    }

    /// Attaches steering, if it is to be.
    pub(super) fn start(&mut self, now: &Surroundings, host: &mut Host) -> Result<(), RunError> {
        let why = match self.config.tunnels.steering {
            Wanted::Off => "tunnels.steering is \"off\"".to_owned(),
            Wanted::Auto | Wanted::On => match self.attach(now, host) {
                Ok(()) => return Ok(()),
                Err(why) if self.shares() => {
                    return Err(RunError::Tunnels(format!(
                        "a pool cannot share this host's own address: steering failed: {why}"
                    )));
                }
                Err(why) => why,
            },
        };
        if self.config.tunnels.steering == Wanted::On {
            return Err(RunError::Tunnels(format!(
                "protocol 41 cannot be steered: {why}; resolve this, or set tunnels.steering = \"auto\""
            )));
        }
        // Conditions that do not affect steered packets, but make the local stack answer the others.
        if let Some(device) = kernel_tunnels().into_iter().find(|device| device.local.is_none()) {
            return Err(RunError::Tunnels(format!(
                "the kernel tunnel device {} receives protocol 41 before raw sockets do, and steering is not available ({why}); remove the device: {}",
                device.name,
                device.how_to_remove()
            )));
        }
        tracing::info!("protocol 41 is received through raw sockets: {why}");
        self.path = IngressPath::Raw;
        Ok(())
    }

    fn attach(&mut self, now: &Surroundings, host: &mut Host) -> Result<(), String> {
        let interfaces = self.interfaces(now);
        let names: Vec<&str> = interfaces.iter().map(String::as_str).collect();
        let addresses = self.own(tunnel_ends(self.config, now));
        let (gateway, inside) = (&self.config.gateway.name, self.inside(now));
        // Before it is known whether the kernel has TCX, with which nothing remains after a crash.
        host.steered(&interfaces).map_err(|error| error.to_string())?;
        // The host must not get the ports while the gateway does not run: clsact's programs stay.
        let steering = match self.shares() {
            true => Steering::attach_by(Hook::Clsact, gateway, &names, &self.device, &addresses, &inside),
            false => Steering::attach(gateway, &names, &self.device, &addresses, &inside),
        };
        if steering.as_ref().map_or(true, |steering| steering.hook() == Hook::Tcx) {
            host.steered(&[]).map_err(|error| error.to_string())?;
        }
        let steering = steering.map_err(|error| error.to_string())?;
        self.path = IngressPath::Steered(Box::new(steering), Self::numbered(interfaces, now));
        Ok(())
    }

    /// The inside sources that are accepted at each interface.
    fn inside(&self, now: &Surroundings) -> InsideHosts {
        let (prefixes, interfaces) = self.config.inside_of_nat44(now);
        InsideHosts { prefixes, interfaces }
    }

    fn numbered(interfaces: Vec<String>, now: &Surroundings) -> Vec<Interface> {
        interfaces.into_iter().map(|name| (name.clone(), now.number_of(&name))).collect()
    }

    /// The interfaces from which packets are steered: those configured, else those that have the addresses. A packet for an address
    /// on `lo` may come by any other. Next to a pool of this host's own address, `lo` itself: this host's kernel sends its errors there. And
    /// those of inside hosts, which reach each other by such a pool (RFC 4787 REQ-9).
    fn interfaces(&self, now: &Surroundings) -> Vec<String> {
        let mut names = self.outer_interfaces(now);
        if self.shares() && !names.is_empty() && !names.iter().any(|name| name == LOOPBACK) {
            names.push(LOOPBACK.into());
        }
        names
    }

    fn outer_interfaces(&self, now: &Surroundings) -> Vec<String> {
        if !self.config.tunnels.interfaces.is_empty() {
            return self.config.tunnels.interfaces.clone();
        }
        let mut names = BTreeSet::new();
        for OwnAddress { address, .. } in self.own(tunnel_ends(self.config, now)) {
            match now.holder(address) {
                Some(LOOPBACK) => names.extend(now.interfaces().filter(|name| *name != LOOPBACK)),
                Some(name) => drop(names.insert(name)),
                None => {}
            }
        }
        let mut names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        if !names.is_empty() {
            let exists = |name: &String| now.interfaces().any(|there| there == name);
            names.extend(self.config.inside_of_shared(now).into_iter().filter(exists));
        }
        names.into_iter().collect()
    }

    /// Steers packets to these addresses, also from interfaces that are new or failed before.
    pub(super) fn steer_to(&mut self, addresses: &[OwnAddress], now: &Surroundings, host: &mut Host) {
        if self.config.tunnels.steering == Wanted::Off {
            return;
        }
        let interfaces = Self::numbered(self.interfaces(now), now);
        let was_raw = matches!(self.path, IngressPath::Raw);
        let stays = matches!(&self.path, IngressPath::Steered(_, from) if *from == interfaces);
        let inner = self.inside(now).interfaces;
        let write = |steering: &mut Steering| {
            let written =
                steering.set_inner_interfaces(&inner).and_then(|()| steering.set_addresses(addresses));
            written.map_err(|error| error.to_string())
        };
        let outcome = match &mut self.path {
            IngressPath::Steered(steering, from) if *from == interfaces => write(steering),
            IngressPath::Steered(steering, from) if steering.hook() == Hook::Clsact => {
                add_interfaces(steering, from, interfaces, host).and_then(|()| write(steering))
            }
            IngressPath::Steered(..) | IngressPath::Raw => self.attach(now, host),
        };
        match outcome {
            Err(why) if self.shares() => {
                tracing::error!("packets for the pools' shared ports are not steered and are lost: {why}")
            }
            Err(why) if !was_raw => {
                tracing::warn!(
                    "steering failed; protocol 41 is received through raw sockets, which is slower: {why}"
                );
                self.path = IngressPath::Raw;
            }
            Ok(())
                if !stays
                    && matches!(&self.path, IngressPath::Steered(_, from) if outer(from).is_empty()) =>
            {
                tracing::warn!(
                    "steering changed: {}; check the addresses of tunnels and shared pools",
                    self.describe()
                );
            }
            Ok(()) if !stays => tracing::info!("steering changed: {}", self.describe()),
            Err(_) | Ok(()) => {}
        }
    }

    /// A summary of how packets come in.
    pub(super) fn describe(&self) -> String {
        let what = match (self.config.has_tunnels(), self.shares()) {
            (true, true) => "protocol 41 and the pools' ports",
            (false, true) => "the pools' ports",
            (_, false) => "protocol 41",
        };
        match &self.path {
            IngressPath::Steered(_, from) if outer(from).is_empty() => {
                "no packets are received: no interface has the address".into()
            }
            IngressPath::Steered(_, from) => format!("{what} steered from {}", outer(from).join(", ")),
            IngressPath::Raw => "protocol 41 received through raw sockets".into(),
        }
    }

    /// What was steered; `None` where nothing is.
    pub(super) fn counters(&self) -> Option<Taken> {
        match &self.path {
            IngressPath::Steered(steering, _) => Some(steering.counters()),
            IngressPath::Raw => None,
        }
    }

    /// The filters at tc; none with TCX, which other programs cannot remove by mistake.
    pub(super) fn filters(&self) -> TcFilters {
        match &self.path {
            IngressPath::Steered(steering, from) if steering.hook() == Hook::Clsact => {
                let (priority, handles) = steering.filters();
                TcFilters {
                    interfaces: from.iter().filter_map(|(_, index)| *index).collect(),
                    priority,
                    handles,
                }
            }
            IngressPath::Steered(..) | IngressPath::Raw => TcFilters::default(),
        }
    }

    /// Attaches the filters again.
    pub(super) fn attach_again(&mut self) {
        let IngressPath::Steered(steering, from) = &mut self.path else { return };
        for (name, _) in from {
            if let Err(error) = steering.add_interface(name) {
                tracing::error!("steering from {name}: {error}");
            }
        }
    }

    /// Steers only packets for tunnels that end at these addresses, and for shared ports.
    pub(super) fn keep_only(&mut self, ends: &BTreeSet<Ipv4Addr>) {
        let kept = self.own(ends.iter().copied());
        if let IngressPath::Steered(steering, _) = &mut self.path
            && let Err(error) = steering.set_addresses(&kept)
        {
            tracing::warn!("steering: {error}");
        }
    }

    /// Leaves the programs for who takes over.
    pub(super) fn leave(&mut self) {
        if let IngressPath::Steered(steering, _) = std::mem::replace(&mut self.path, IngressPath::Raw) {
            steering.leave();
        }
    }

    /// Stops steering.
    pub(super) fn end(&mut self) {
        self.path = IngressPath::Raw;
    }
}

/// The addresses at which tunnels can end at the moment.
pub(super) fn tunnel_ends(config: &Config, now: &Surroundings) -> BTreeSet<Ipv4Addr> {
    config.tunnels(now).iter().filter_map(|(_, tunnel)| tunnel.local()).collect()
}

/// Attaches the program to interfaces that are new or were recreated. Existing attachments are not interrupted.
fn add_interfaces(
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
