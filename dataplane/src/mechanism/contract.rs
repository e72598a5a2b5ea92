//! The interface between the engine and a mechanism: a mechanism decides and changes no octet.

use crate::classify::Ports4;
use crate::drop_reason::DropReason;
use crate::effects::Effects;
use crate::frame::{Frame, Ingress};
use crate::instant::Instant;
use crate::kind::Kind;
use crate::nat::offload::mark;
use crate::nat::{Arriving, NatProtocol};
use crate::parse::{self, Addresses, Packet, QuotedTuple, Transport};
use crate::stateful::Stateful;
use crate::translate::Policy;
use crate::tunnel::TunnelPolicy;
use crate::tunnel::address::{Domain, OwnAddresses};
use crate::tunnel::decision::Arrived;
use crate::tunnel::ends::{Concentrator, TunnelEnds};
use crate::tunnel::outer_nat::{OuterNat, OuterPacket};
use crate::verdict::{Decision, MechanismId, PolicyId, WorkerId};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::error::Error;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use sixway_wire::{Prefix4, Prefix6};

/// A packet as a mechanism decides on it.
#[derive(Clone, Copy)]
pub struct Arrival<'a> {
    /// Its octets, from the outermost IP header on, and where they came in.
    pub frame: &'a Frame,
    /// The packet; of one that came through a tunnel the outer one.
    pub packet: &'a Packet,
    /// The packet inside, if it came through a tunnel.
    pub inner: Option<&'a Packet>,
    /// What it quotes, if it is an ICMP error.
    pub quoted: Option<QuotedTuple>,
    /// The mark (see [`mark`]) that the packet left in an earlier pass, if any.
    pub earlier_mark: Option<u32>,
    /// Whether it is the result of an earlier pass.
    pub again: bool,
    /// Whether it is processed alone. Where this is known when it is compiled, as for a batch, what is not needed there costs nothing.
    pub alone: bool,
}

impl<'a> Arrival<'a> {
    /// A packet that came from a link.
    #[inline(always)]
    pub const fn new(frame: &'a Frame, packet: &'a Packet, inner: Option<&'a Packet>) -> Self {
        Self { frame, packet, inner, quoted: None, earlier_mark: None, again: false, alone: false }
    }

    /// Its octets.
    #[inline(always)]
    pub fn octets(&self) -> &'a [u8] {
        self.frame.bytes()
    }

    /// Packets on the wire: more than one for a GSO packet.
    #[inline(always)]
    pub fn segments(&self) -> u32 {
        let at = usize::from(self.packet.transport_at);
        self.frame.segment_count(at, self.packet.length as usize - at)
    }

    /// Where it came in.
    pub const fn ingress(&self) -> Ingress {
        self.frame.ingress
    }

    /// The mark that a TCP or UDP packet leaves at an armed entry of the fast path.
    pub fn mark(&self) -> Option<u32> {
        let protocol =
            NatProtocol::of(self.packet.protocol).filter(|protocol| *protocol != NatProtocol::Icmp)?;
        let transport = usize::from(self.packet.transport_at)..self.packet.length as usize;
        Some(mark(protocol, self.octets().get(transport)?))
    }
}

impl Arriving for Arrival<'_> {
    #[inline(always)]
    fn packet(&self) -> &Packet {
        self.packet
    }

    #[inline(always)]
    fn octets(&self) -> &[u8] {
        self.frame.bytes()
    }

    #[inline(always)]
    fn segments(&self) -> u32 {
        Arrival::segments(self)
    }

    fn earlier_mark(&self) -> Option<u32> {
        self.earlier_mark.filter(|_| self.again)
    }
}

/// How much of a quoted packet a mechanism needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// Its addresses.
    Addresses,
    /// Its addresses and ports.
    Ports,
    /// Nothing: the mechanism looks at the error itself.
    None,
}

impl Quotes {
    /// Reads what an ICMP error quotes. Fails as [`parse::quoted`] does.
    pub fn read(self, frame: &Frame, packet: &Packet) -> Result<Option<QuotedTuple>, DropReason> {
        let is_error = matches!(packet.transport, Transport::IcmpError { .. }) && packet.fragment.is_none();
        if !is_error || self == Self::None {
            return Ok(None);
        }
        if frame.offload.segments.is_some() {
            return Err(DropReason::BadGso);
        }
        let from = usize::from(packet.transport_at) + parse::ICMP_HEADER;
        let quote = frame.bytes().get(from..packet.length as usize).ok_or(DropReason::QuoteUnusable)?;
        let is_v4 = matches!(packet.addresses, Addresses::V4 { .. });
        let tuple = match self {
            Self::Addresses => parse::quoted_stateless(quote, is_v4)?,
            Self::Ports => parse::quoted(quote, is_v4)?,
            Self::None => return Ok(None),
        };
        Ok(Some(tuple))
    }
}

/// What a mechanism is built with in addition to its configuration: the worker and the host.
#[derive(Clone, Debug)]
pub struct BuildContext {
    /// The worker.
    pub worker: WorkerId,
    /// Number of workers.
    pub workers: u8,
    /// Secret randomness.
    pub seed: [u64; 2],
    /// The secret by which subscribers are spread over the workers.
    pub worker_key: [u64; 2],
    /// The gateway's own IPv4 address.
    pub own4: Option<Ipv4Addr>,
    /// The gateway's own IPv6 address.
    pub own6: Option<Ipv6Addr>,
    /// Prefixes of all NAT64s: no host has an address under one.
    pub translation_prefixes: Vec<Prefix6>,
    /// This host's IPv4 addresses.
    pub host4: Vec<Ipv4Addr>,
    /// This host's addresses, as tunnels see them.
    pub own_addresses: Arc<OwnAddresses>,
    /// NAT44s that translate what tunnels send, each with the prefixes of the local ends.
    pub outer_nats: Vec<(Vec<Prefix4>, OuterNat)>,
}

impl BuildContext {
    /// The NAT44 that translates what a tunnel with this local end sends.
    pub fn outer_nat(&self, local: Ipv4Addr) -> Option<OuterNat> {
        let mut nats = self.outer_nats.iter();
        let found = nats.find(|(inside, _)| inside.iter().any(|prefix| prefix.contains(local)));
        found.map(|(_, nat)| nat.clone())
    }
}

/// A mechanism, as the engine drives it. A batch is cut into runs of packets of one mechanism; each run is prepared, warmed stage by stage,
/// and decided packet by packet.
pub(crate) trait Mechanism {
    /// Its row of the table.
    const KIND: Kind;
    /// Whether its packets are reassembled before it decides.
    const WHOLE: bool = false;
    /// Whether the gateway decrements the hop limit. For tunnels the kernel has done so.
    const COUNTS_HOP: bool = true;
    /// Whether it hairpins its own results (RFC 7757 §4.2.2, RFC 6296 §4.3).
    const TURNS_AROUND: bool = false;
    /// Whether the only mechanism of its kind is asked about every IPv4 destination that no other one names. It refuses what it does not map.
    const NAMES_REST: bool = false;
    /// Whether a packet's family stays: the address that changes tells the direction.
    const KEEPS_FAMILY: bool = false;
    /// Whether what it renumbers comes out of a tunnel or goes into one.
    const RENUMBERS_IN_TUNNELS: bool = false;
    /// Whether packets from outside may not use its IPv4 destinations as sources.
    const OWNS_SOURCES: bool = false;
    /// What it needs of the packet that an ICMP error quotes.
    const QUOTES: Quotes = Quotes::None;
    /// Number of dependent lookups.
    const STAGES: usize = 0;
    /// Whether a packet alone is processed in a function of its own: that leaves more registers to the other mechanisms.
    const APART: bool = Self::STAGES > 0;
    /// The state of a packet's lookup.
    type Probe: Copy;
    /// An empty probe.
    const NO_PROBE: Self::Probe;

    /// Begins the lookup of a packet, and of the packet inside, of one that came through a tunnel.
    fn prepare(&self, _packet: &Packet, _inner: Option<&Packet>, _probe: &mut Self::Probe) {}

    /// The next stage of a lookup, whose loads do not depend on those of the other packets of the run.
    fn warm(&self, _stage: usize, _probe: &mut Self::Probe) {}

    /// What to do with a packet.
    fn decide(
        &mut self,
        arrival: &Arrival<'_>,
        probe: &Self::Probe,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Decision, DropReason>;

    /// Whether a fragment, also one of a softwire's packet, may be held until its packet is complete: one that no session and no client could take
    /// only fills the table.
    ///
    /// # Errors
    /// Why not.
    fn may_hold(&self, _packet: &Packet) -> Result<(), DropReason> {
        Ok(())
    }

    /// Whether a fragment comes from inside, so that it waits in the table of inside hosts.
    fn is_from_inside(&self, packet: &Packet) -> bool {
        matches!(packet.addresses, Addresses::V6 { .. })
    }

    /// Itself, if it keeps sessions ([`Kind::is_stateful`]).
    fn stateful(&mut self) -> Option<&mut dyn Stateful> {
        None
    }

    /// Ends what is due, examining at most `budget` entries of each table.
    fn expire(&mut self, _now: Instant, _budget: usize, _effects: &mut Effects) {}

    /// The worker that has the state for a packet; `None`: any worker will do.
    fn worker_of(&self, _packet: &Packet, _quoted: Option<&QuotedTuple>) -> Option<WorkerId> {
        None
    }

    /// The NAT44 that translates the outer header which a tunnel puts in front of this packet, and the outer destination.
    fn outer_nat(&self, _packet: &Packet) -> Option<(MechanismId, Ipv4Addr)> {
        None
    }

    /// The worker that has a NAT's sessions without ports with a remote host.
    fn worker_of_remote(&self, _remote: Ipv4Addr) -> Option<WorkerId> {
        None
    }

    /// The outside address that a NAT gives to a tunnel packet of this gateway.
    ///
    /// # Errors
    /// Why the packet is dropped.
    fn outer_source(
        &mut self,
        _outer: OuterPacket,
        _now: Instant,
        _effects: &mut Effects,
    ) -> Result<Ipv4Addr, DropReason> {
        Err(DropReason::NoMechanism)
    }

    /// Whether the mechanism names an IPv4 destination by a table of its own, or an assignment.
    fn names4(&self, _address: Ipv4Addr) -> bool {
        false
    }

    /// The length of the longest prefix by which a table of the mechanism names an IPv6 destination.
    fn names6(&self, _address: Ipv6Addr) -> Option<u8> {
        None
    }

    /// Whether a tunnel of IP in IP carries packets to this destination.
    fn carries_to(&self, _destination: IpAddr) -> bool {
        false
    }

    /// Whether packets with this inner source enter it.
    fn carries_from(&self, _source: IpAddr) -> bool {
        true
    }

    /// Whether packets to this inner destination go through the softwire of that client.
    fn sends_to(&self, _destination: Ipv4Addr, _client: Ipv6Addr) -> bool {
        false
    }

    /// The only outer source of a tunnel's packets, if it has one.
    fn remote(&self) -> Option<Ipv4Addr> {
        None
    }

    /// Whether a packet is the tunnel's, when several end at one address.
    fn claims(&self, _arrived: Arrived) -> bool {
        false
    }

    /// Whether the tunnel's packets may have this outer source: for fragments, which contain nothing else to check.
    fn may_come_from(&self, _outer: Ipv4Addr) -> bool {
        false
    }

    /// Whether the tunnel sends packets between these inner addresses to that outer destination.
    fn sent(&self, _source: Ipv6Addr, _destination: Ipv6Addr, _outer: Ipv4Addr) -> bool {
        false
    }
}

/// The packets that a mechanism handles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// IPv6 destinations, by longest prefix.
    pub destinations6: Vec<Prefix6>,
    /// IPv4 destinations, by longest prefix.
    pub destinations4: Vec<Prefix4>,
    /// IPv4 destinations that it may own together with others, each with ports of its own. Its packets are reassembled ([`Mechanism::WHOLE`]).
    pub ports4: Option<Ports4>,
    /// IPv6 packets whose destination no mechanism claims, by source: the longest prefix decides.
    pub inside6: Vec<InsideClaim<Prefix6>>,
    /// IPv4 packets by source, whatever their destination but those behind tunnels: the longest prefix decides.
    pub inside4: Vec<InsideClaim<Prefix4>>,
    /// The mechanism names IPv4 destinations, or IPv6 ones, by a table of its own ([`Mechanism::names4`], [`Mechanism::names6`]).
    pub names: bool,
    /// It handles the IPv4 destinations that no mechanism names.
    pub rest4: bool,
}

/// Packets that a mechanism claims by where they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsideClaim<P> {
    /// Their sources.
    pub sources: P,
    /// Where they come in; `None`: anywhere.
    pub ingress: Option<Ingress>,
    /// Destinations inside the site, which are not claimed.
    pub except: Vec<P>,
}

macro_rules! inside_claim {
    ($prefix:ty, $address:ty) => {
        impl InsideClaim<$prefix> {
            /// Whether a packet is claimed.
            pub(crate) fn claims(&self, ingress: Ingress, source: $address, destination: $address) -> bool {
                self.sources.contains(source)
                    && self.ingress.is_none_or(|only| only == ingress)
                    && !self.except.iter().any(|own| own.contains(destination))
            }
        }
    };
}
inside_claim!(Prefix6, Ipv6Addr);

/// The configuration of any mechanism.
pub(crate) trait Configured {
    /// The packets that it handles.
    fn claims(&self) -> Claims;

    /// Options of its translation.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// Options of its tunnel.
    fn tunnel_policy(&self) -> TunnelPolicy {
        TunnelPolicy::default()
    }

    /// The IPv4 address of this host at which its tunnel ends.
    fn local(&self) -> Option<Ipv4Addr> {
        None
    }

    /// The ends of a tunnel of IP in IP that is not of IPv6 in IPv4.
    fn ends(&self) -> Option<TunnelEnds> {
        None
    }

    /// Where its tunnels end, if their remote ends are many.
    fn concentrator(&self) -> Option<Concentrator> {
        None
    }

    /// The remote ends through which packets of any sender come: those with the way to most of the Internet. Others are a customer's.
    fn relays(&self) -> Vec<IpAddr> {
        let remote = self.ends().and_then(|ends| ends.remote);
        remote.filter(|_| self.leads_everywhere()).into_iter().collect()
    }

    /// Whether a prefix as short as 2000::/3 is behind it.
    fn leads_everywhere(&self) -> bool {
        let Claims { destinations4, destinations6, .. } = self.claims();
        let all =
            destinations4.iter().map(|it| it.length()).chain(destinations6.iter().map(|it| it.length()));
        all.min().is_some_and(|length| length <= 3)
    }

    /// The IPv4 address embedded in its site's prefix: this host's, or that of a NAT in front of it.
    fn stands_for(&self) -> Option<Ipv4Addr> {
        None
    }

    /// The 6rd domain whose addresses embed this host's (RFC 5969).
    fn domain(&self) -> Option<Domain> {
        None
    }
}

/// How a mechanism is built.
pub(crate) trait Build {
    /// The mechanism.
    type State: Mechanism;
    /// Why it cannot be built.
    type Fault: Into<BuildFault>;

    /// Builds the mechanism for a worker.
    fn build(&self, policy: PolicyId, context: &BuildContext) -> Result<Self::State, Self::Fault>;
}

/// Why a mechanism cannot be built, in words: each mechanism's own fault becomes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFault(String);

impl BuildFault {
    /// Of the mechanism's own fault.
    pub(crate) fn of(fault: &impl Error) -> Self {
        Self(fault.to_string())
    }
}

impl From<Infallible> for BuildFault {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for BuildFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BuildFault {}
