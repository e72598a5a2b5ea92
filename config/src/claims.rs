//! Claims of addresses: two mechanisms, or a mechanism and this host, must not claim the same.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use sixway_wire::{Prefix4, Prefix6};

use crate::fault::{Place, Report};
use crate::host::HostFacts;
use crate::ports::Range;
use crate::shared_pool::free_range;

/// The claimant of a prefix; mechanisms and pools by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This host, on an interface.
    Host(Arc<str>),
    /// The gateway's own address.
    Gateway,
    /// A pool's addresses.
    Pool(usize),
    /// A pool's addresses that are this host's own.
    Shared(usize),
    /// The addresses of a NAT44's inside hosts, and whether ends of this gateway's tunnels may be among them.
    Inside { ends: bool },
    /// The same of the realm of this number: other realms may have the same.
    InRealm(usize),
    /// A NAT64's prefix.
    Nat64(usize),
    /// A SIIT's translation prefix.
    Siit(usize),
    /// One side of an explicit address mapping of this SIIT, and whether that side is routed to the gateway.
    Eam(usize, bool),
    /// A SIIT's dynamic pool.
    Dynamic(usize),
    /// A SIIT's sources of ICMP errors.
    IcmpSource(usize),
    /// All of 6to4.
    SixToFour(usize),
    /// A 6rd domain.
    SixRd(usize),
    /// What is behind the other end of a configured tunnel.
    Tunnel(usize),
    /// An ISATAP site.
    Isatap(usize),
    /// An end of tunnels of IP in IP, which is not this host's address.
    TunnelEnd,
    /// A prefix of the mechanism of this section and number.
    Prefix(&'static str, usize),
    /// The addresses that represent a NAT46's servers.
    Nat46Pool,
    /// The way to the rest of IPv6.
    WayOut,
    /// The other end of a tunnel, where its packets go.
    OuterEnd,
}

#[derive(Debug)]
struct Claim<P> {
    prefix: P,
    owner: Owner,
    place: Place,
}

/// Every claim of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    v4: Vec<Claim<Prefix4>>,
    v6: Vec<Claim<Prefix6>>,
    /// The ports of this host that a shared pool may have, as they are written.
    free_ports: String,
}

/// The relation of two claims of the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Clash {
    Tolerated,
    /// The same prefix mapped twice.
    MappedTwice,
    Conflict,
    HostsOwn,
    HostsOwnPool,
    HostsOwnMinor,
    HostsOwnEnd,
    /// A tunnel's packets would be routed into the device.
    Outer,
}

impl Claims {
    /// Claims IPv4 addresses.
    pub fn v4(&mut self, prefix: Prefix4, owner: Owner, place: &Place) {
        self.v4.push(Claim { prefix, owner, place: place.clone() });
    }

    /// Claims IPv6 addresses.
    pub fn v6(&mut self, prefix: Prefix6, owner: Owner, place: &Place) {
        self.v6.push(Claim { prefix, owner, place: place.clone() });
    }

    /// Claims this host's addresses, other than those of the gateway's own device.
    pub fn host(&mut self, host: &HostFacts, device: Option<&str>) {
        self.free_ports = Range(&free_range(host)).to_string();
        let place = Place::file("");
        for own in host.addresses.iter().filter(|own| Some(&*own.interface) != device) {
            let owner = Owner::Host(own.interface.as_str().into());
            match own.address {
                IpAddr::V4(address) => self.v4(Prefix4::holding(address, 32), owner, &place),
                IpAddr::V6(address) => self.v6(Prefix6::holding(address, 128), owner, &place),
            }
        }
    }

    /// Reports every claim that clashes with another.
    pub fn check(&mut self, report: &mut Report) {
        sweep(&mut self.v4, &self.free_ports, report);
        sweep(&mut self.v6, &self.free_ports, report);
    }
}

/// A prefix, as far as claims compare them.
trait Block: Copy + Ord {
    fn holds(self, other: Self) -> bool;
    fn is_all(self) -> bool;
    /// As text; a single address without its length.
    fn plain(self) -> String;
}

macro_rules! block {
    ($prefix:ty, $bits:literal) => {
        impl Block for $prefix {
            fn holds(self, other: Self) -> bool {
                self.length() <= other.length() && self.overlaps(other)
            }
            fn is_all(self) -> bool {
                self.length() == 0
            }
            fn plain(self) -> String {
                if self.length() == $bits { self.address().to_string() } else { self.to_string() }
            }
        }
    };
}
block!(Prefix4, 32);
block!(Prefix6, 128);

/// Prefixes are nested or disjoint: in ascending order, those that contain the current one form a stack.
fn sweep<P: Block>(claims: &mut [Claim<P>], free_ports: &str, report: &mut Report) {
    claims.sort_by_key(|claim| claim.prefix);
    let mut holding: Vec<usize> = Vec::new();
    let mut told: HashSet<(usize, Clash)> = HashSet::new();
    for (index, inner) in claims.iter().enumerate() {
        while holding.last().is_some_and(|outer| !claims[*outer].prefix.holds(inner.prefix)) {
            holding.pop();
        }
        for outer_index in holding.iter().rev().copied() {
            let outer = &claims[outer_index];
            let clash = clash(outer, inner);
            if clash != Clash::Tolerated {
                let to_outer = is_later(outer, inner);
                let (earlier, later) = if to_outer { (inner, outer) } else { (outer, inner) };
                // A wide prefix is reported once, not for each prefix within it.
                if told.insert((if to_outer { outer_index } else { index }, clash)) {
                    tell(clash, (earlier, later), free_ports, report);
                }
                break;
            }
        }
        holding.push(index);
    }
}

/// Whether the remark on a clash belongs to `outer`: the one that was written later, never the host's.
fn is_later<P>(outer: &Claim<P>, inner: &Claim<P>) -> bool {
    match (&outer.owner, &inner.owner) {
        (Owner::Host(_), _) => false,
        (_, Owner::Host(_)) => true,
        (_, _) if outer.place.file == inner.place.file => outer.place.line > inner.place.line,
        // The mappings of a file come after those of the configuration.
        (_, _) => matches!(outer.owner, Owner::Eam(..)),
    }
}

fn clash<P: Block>(outer: &Claim<P>, inner: &Claim<P>) -> Clash {
    use Owner::{
        Dynamic, Eam, Gateway, Host, IcmpSource, InRealm, Inside, Isatap, Nat46Pool, Nat64, OuterEnd, Pool,
        Prefix, Shared, Siit, SixRd, SixToFour, Tunnel, TunnelEnd, WayOut,
    };
    match (&outer.owner, &inner.owner) {
        (Host(_), Host(_)) => Clash::Tolerated,
        // This host is a router among the inside hosts, with an address of theirs, and may have tunnels to some of them.
        (InRealm(one), InRealm(other)) if one != other => Clash::Tolerated,
        (InRealm(_), Inside { .. }) | (Inside { .. }, InRealm(_)) => Clash::Tolerated,
        (Inside { .. } | InRealm(_), Host(_) | OuterEnd | SixToFour(_) | SixRd(_) | Isatap(_)) => {
            Clash::Tolerated
        }
        (Host(_) | OuterEnd | SixToFour(_) | SixRd(_) | Isatap(_), Inside { .. } | InRealm(_)) => {
            Clash::Tolerated
        }
        (Inside { ends: true }, TunnelEnd) | (TunnelEnd, Inside { ends: true }) => Clash::Tolerated,
        // RFC 7757 §5: a mapping of everything is for addresses that nothing else claims.
        (Eam(..), _) if outer.prefix.is_all() => Clash::Tolerated,
        // A tunnel's prefixes are routes: a longer prefix has a route of its own.
        (Tunnel(_) | WayOut, _) if outer.prefix != inner.prefix => Clash::Tolerated,
        (OuterEnd, other) | (other, OuterEnd) => match other {
            Pool(_) | Dynamic(_) | Eam(_, true) | Nat46Pool | Nat64(_) | Siit(_) | Prefix(..) | TunnelEnd => {
                Clash::Outer
            }
            // Several tunnels may have the same remote end; that it is not this host's is checked with the key.
            OuterEnd | Host(_) | Gateway | Shared(_) | IcmpSource(_) | Eam(_, false) => Clash::Tolerated,
            // Tunnels in tunnels.
            SixToFour(_) | SixRd(_) | Isatap(_) | Tunnel(_) | WayOut | Inside { .. } | InRealm(_) => {
                Clash::Tolerated
            }
        },
        (Host(_), other) | (other, Host(_)) => match other {
            // Hosts at either end of a tunnel have such addresses, and this one may be one of them.
            SixToFour(_) | SixRd(_) | Isatap(_) | Tunnel(_) | WayOut | Inside { .. } | InRealm(_) => {
                Clash::Tolerated
            }
            Host(_) | Gateway | Shared(_) | IcmpSource(_) | OuterEnd | Eam(_, false) => Clash::Tolerated,
            Pool(_) => Clash::HostsOwnPool,
            // One of many: the host itself is not translated, hosts behind the other addresses are.
            Eam(_, true) if outer.prefix != inner.prefix => Clash::HostsOwnMinor,
            Dynamic(_) | Nat46Pool | Eam(_, true) => Clash::HostsOwn,
            Nat64(_) | Siit(_) | Prefix(..) => Clash::HostsOwnMinor,
            TunnelEnd => Clash::HostsOwnEnd,
        },
        (Gateway, Shared(_)) | (Shared(_), Gateway) => Clash::Tolerated,
        // Their ports are compared with the pools.
        (Pool(a) | Shared(a), Pool(b) | Shared(b)) if a != b => Clash::Tolerated,
        // The gateway's own address and local ends of tunnels are checked before any prefix. They may be the same.
        (Prefix(..) | TunnelEnd | Gateway, Gateway | TunnelEnd) | (TunnelEnd, Prefix(..)) => Clash::Tolerated,
        (Gateway | TunnelEnd, SixToFour(_) | SixRd(_) | Isatap(_)) => Clash::Tolerated,
        (SixToFour(_) | SixRd(_) | Isatap(_), Gateway | TunnelEnd) => Clash::Tolerated,
        // Several addresses of this host, each with its own 6to4.
        (SixToFour(_), SixToFour(_)) => Clash::Tolerated,
        // The image of the gateway's own IPv4 address under the prefix, or an address in a mapping: packets to it are the gateway's, not the
        // translator's.
        (Nat64(_) | Siit(_) | Eam(..), Gateway) => Clash::Tolerated,
        // The dynamic pool leaves out the gateway's own address and the addresses of mappings. So does a NAT46's.
        (Dynamic(_) | Nat46Pool, Gateway) => Clash::Tolerated,
        (Dynamic(a), Eam(b, _)) if a == b => Clash::Tolerated,
        (Gateway, IcmpSource(_)) | (IcmpSource(_), Gateway) => Clash::Tolerated,
        (IcmpSource(a), IcmpSource(b)) if a != b => Clash::Tolerated,
        (Siit(a), Eam(b, _)) | (Eam(b, _), Siit(a)) if a == b => Clash::Tolerated,
        // RFC 7757 §5: the longest prefix decides; identical ones cannot.
        (Eam(a, _), Eam(b, _)) if a == b && outer.prefix == inner.prefix => Clash::MappedTwice,
        (Eam(a, _), Eam(b, _)) if a == b => Clash::Tolerated,
        // Everything else, of any owners: an address belongs to one.
        (_, _) => Clash::Conflict,
    }
}

fn tell<P: Block>(
    clash: Clash,
    (earlier, later): (&Claim<P>, &Claim<P>),
    free_ports: &str,
    report: &mut Report,
) {
    let there = earlier.place.seen_from(&later.place);
    let of = earlier.place.path();
    match (clash, &earlier.owner) {
        (Clash::HostsOwn, Owner::Host(interface)) => {
            let address = earlier.prefix.plain();
            let what = "packets for it would never reach the gateway; choose another address";
            report
                .fault(&later.place, format!("{address} is this host's own address on {interface}; {what}"));
        }
        (Clash::HostsOwnPool, Owner::Host(interface)) => {
            let address = earlier.prefix.plain();
            let what = format!(
                "remove it from the pool, or put it in a separate [[pool]] with shared = true and ports = \"{free_ports}\""
            );
            report
                .fault(&later.place, format!("{address} is this host's own address on {interface}; {what}"));
        }
        (Clash::HostsOwnMinor, Owner::Host(interface)) => {
            let address = earlier.prefix.plain();
            let what = "and is within this prefix; packets for it will not reach the gateway";
            report.warn(&later.place, format!("{address} is this host's own address on {interface} {what}"));
        }
        (Clash::HostsOwnEnd, Owner::Host(interface)) => {
            let address = earlier.prefix.plain();
            let what = "the kernel would receive the tunnel's packets; remove it from the interface, or use an address that is routed to this host but not configured on an interface";
            report
                .fault(&later.place, format!("{address} is this host's own address on {interface}; {what}"));
        }
        (Clash::MappedTwice, _) => {
            let what = "each prefix may be mapped once (RFC 7757 §5)";
            report
                .fault(&later.place, format!("{} is already mapped ({there}); {what}", later.prefix.plain()));
        }
        (Clash::Outer, _) => {
            let what = "the tunnel's packets would be routed back into the device; choose other addresses";
            let (this, that) = (later.prefix.plain(), earlier.prefix.plain());
            report.fault(&later.place, format!("{this} overlaps {that} of {of} ({there}); {what}"));
        }
        (_, _) => {
            let what = "an address can belong to only one of them; choose prefixes that do not overlap";
            let (this, that) = (later.prefix.plain(), earlier.prefix.plain());
            report.fault(&later.place, format!("{this} overlaps {that} of {of} ({there}); {what}"));
        }
    }
}
