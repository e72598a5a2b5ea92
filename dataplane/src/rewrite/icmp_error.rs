//! ICMP errors that the gateway sends about dropped packets (RFC 1812 §4.3.2, RFC 4443 §2.4,
//! RFC 7915 §4.4 and §5.4).
//!
//! They are limited: a bucket for all of them, and before it one for each source, out of a fixed number that sources share by
//! hash. So memory and rate are bounded, and a flood uses up only its own share.

use crate::counters::Counters;
use crate::drop_reason::{Answer, DropReason};
use crate::frame::{Frame, Realm};
use crate::instant::Instant;
use crate::outbox::Outbox;
use crate::parse::{
    Addresses, Fragment, ICMP_HEADER, IPV4_HEADER, IPV6_HEADER, Packet, Transport, last_next_header,
};
use crate::rewrite::segments::on_the_wire;
use crate::source_check::{is_martian4, is_martian6};
use crate::translate::header::{Ipv4Header, Ipv6Header};
use crate::tunnel::relayed_error::Relayed;
use arrayvec::ArrayVec;
use core::hash::BuildHasher as _;
use core::net::{Ipv4Addr, Ipv6Addr};
use foldhash::quality::FixedState;
use sixway_wire::IcmpHeader;
use sixway_wire::{icmpv6, protocol};

/// RFC 1812 §4.3.2.3: as much of the packet as keeps the error within 576 octets.
const LONGEST4: usize = 576;
/// RFC 4443 §2.4 c: as much of the packet as keeps the error within the least IPv6 MTU.
const LONGEST6: usize = 1_280;
/// RFC 1812 §4.3.2.5: errors have the precedence of internetwork control.
const INTERNETWORK_CONTROL: u8 = 0xc0;
/// RFC 1700: the default TTL, and IPv6's default hop limit (RFC 4861 §6.3.2 leaves it to the host).
const HOPS: u8 = 64;
/// How many buckets the sources share.
const SOURCE_BUCKETS: usize = 1_024;
/// One source may have at most one of this many errors.
const SHARE: u32 = 8;

/// The data of an ICMP error in addition to its type and code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IcmpDetail {
    /// Nothing.
    #[default]
    None,
    /// The largest packet that would fit, in octets, in the sender's family.
    Mtu(u32),
    /// Where in the packet the fault is, in octets from its start.
    Pointer(u32),
}

/// A packet that is dropped, for the error about it.
#[derive(Clone, Copy)]
pub struct DroppedPacket<'a> {
    /// Why.
    pub reason: DropReason,
    /// The packet as it was received.
    pub frame: &'a Frame,
    /// What was parsed of it; `None`: nothing, and no error is sent.
    pub packet: Option<&'a Packet>,
    /// What the error says in addition to its type and code.
    pub detail: IcmpDetail,
}

/// Sends ICMP errors, within the rate limits.
pub struct IcmpErrors {
    own4: Option<Ipv4Addr>,
    own6: Option<Ipv6Addr>,
    all: Rate,
    each: Rate,
    bucket: Bucket,
    sources: Box<[Bucket]>,
    hash: FixedState,
}

impl IcmpErrors {
    /// At most `per_second` errors a second, an eighth of that to one source (an IPv4 address, or an IPv6 /64); 0 disables them. They are sent
    /// from `own4` and `own6`; none to a family without such an address. `seed` makes the sharing of buckets unpredictable.
    pub fn new(per_second: u32, own4: Option<Ipv4Addr>, own6: Option<Ipv6Addr>, seed: u64) -> Self {
        Self {
            own4,
            own6,
            all: Rate::per_second(per_second),
            each: Rate::per_second(per_second.div_ceil(SHARE)),
            bucket: Bucket::default(),
            sources: vec![Bucket::default(); SOURCE_BUCKETS].into_boxed_slice(),
            hash: FixedState::with_seed(seed),
        }
    }

    /// Sets the source of errors to IPv6.
    pub const fn set_own6(&mut self, own6: Option<Ipv6Addr>) {
        self.own6 = own6;
    }

    /// Answers a dropped packet with the ICMP error that [`DropReason::answer`] names, if the sender may be informed, through `out`.
    ///
    /// A Packet Too Big needs [`IcmpDetail::Mtu`], a parameter problem [`IcmpDetail::Pointer`] (that of a routing header is known from
    /// `packet`); without it no error is made.
    // Inlined: passing the struct in memory would let the caller's packet escape, and every decision would reload its fields.
    #[inline(always)]
    pub fn answer(
        &mut self,
        dropped: DroppedPacket<'_>,
        now: Instant,
        out: &mut Outbox,
        counters: &mut Counters,
    ) {
        let DroppedPacket { reason, frame, packet, detail } = dropped;
        let Some(packet) = packet.filter(|packet| may_be_answered(packet)) else {
            return;
        };
        let detail = match (reason, detail) {
            (DropReason::RoutingHeader, IcmpDetail::None) => {
                IcmpDetail::Pointer(packet.segments_left_at.into())
            }
            (DropReason::ProtocolUnknown, IcmpDetail::None) => {
                IcmpDetail::Pointer(last_next_header(frame.bytes(), packet))
            }
            (DropReason::ZeroInterfaceIdentifier, IcmpDetail::None) => {
                IcmpDetail::Pointer(zero_identifier(packet))
            }
            (_, given) => given,
        };
        let Some(head) = head_of(reason.answer(), packet, detail) else {
            return;
        };
        let made = match packet.addresses {
            Addresses::V4 { source, .. } => {
                let Some(own) = self.own4 else { return counters.icmp_errors_no_source += 1 };
                let quote = || Quote::new(frame, packet, LONGEST4 - IPV4_HEADER);
                self.limit(host(frame.realm(), source), now)
                    && compose4(head, own, source, &quote(), out).is_ok()
            }
            Addresses::V6 { source, .. } => {
                let Some(own) = self.own6 else { return counters.icmp_errors_no_source += 1 };
                let quote = || Quote::new(frame, packet, LONGEST6 - IPV6_HEADER);
                self.limit(network(source), now) && compose6(head, own, source, &quote(), out).is_ok()
            }
        };
        if made {
            counters.icmp_errors_made += 1;
        } else {
            counters.icmp_errors_limited += 1;
        }
    }

    /// As [`IcmpErrors::answer`] to an IPv4 sender, from this address, and limited by this number for the sender: others have its address, too.
    #[cold]
    pub fn answer_as(
        &mut self,
        (own, sender): (Ipv4Addr, u128),
        dropped: DroppedPacket<'_>,
        now: Instant,
        out: &mut Outbox,
        counters: &mut Counters,
    ) {
        let DroppedPacket { reason, frame, packet, detail } = dropped;
        let Some(packet) = packet.filter(|packet| may_be_answered(packet)) else { return };
        let detail = match (reason, detail) {
            (DropReason::ProtocolUnknown, IcmpDetail::None) => {
                IcmpDetail::Pointer(last_next_header(frame.bytes(), packet))
            }
            (_, given) => given,
        };
        let (Some(head), Addresses::V4 { source, .. }) =
            (head_of(reason.answer(), packet, detail), packet.addresses)
        else {
            return;
        };
        let quote = || Quote::new(frame, packet, LONGEST4 - IPV4_HEADER);
        if self.limit(sender, now) && compose4(head, own, source, &quote(), out).is_ok() {
            counters.icmp_errors_made += 1;
        } else {
            counters.icmp_errors_limited += 1;
        }
    }

    /// The ICMPv6 error to `to` about a packet that failed inside a tunnel and that starts with `quote` (RFC 4213 §3.4), if it
    /// may be informed.
    pub fn relay(
        &mut self,
        relayed: Relayed,
        to: Ipv6Addr,
        quote: &[u8],
        now: Instant,
        counters: &mut Counters,
    ) -> Option<ArrayVec<u8, LONGEST6>> {
        let Some(own) = self.own6 else {
            counters.icmp_errors_no_source += 1;
            return None;
        };
        if !self.limit(network(to), now) {
            counters.icmp_errors_limited += 1;
            return None;
        }
        let head = IcmpHeader::new(relayed.kind, relayed.code, relayed.rest);
        let quote = &quote[..quote.len().min(LONGEST6 - IPV6_HEADER - ICMP_HEADER)];
        let (header, head) = headers6(head, own, to, quote);
        Some([&header.octets()[..], &head.octets(), quote].into_iter().flatten().copied().collect())
    }

    /// The same to an IPv4 sender, in ICMPv4 (RFC 2473 §8.3).
    pub fn relay4(
        &mut self,
        relayed: Relayed,
        to: Ipv4Addr,
        quote: &[u8],
        now: Instant,
        counters: &mut Counters,
    ) -> Option<ArrayVec<u8, LONGEST6>> {
        let Some(own) = self.own4 else {
            counters.icmp_errors_no_source += 1;
            return None;
        };
        if !self.limit(to.to_bits().into(), now) {
            counters.icmp_errors_limited += 1;
            return None;
        }
        let head = IcmpHeader::new(relayed.kind, relayed.code, relayed.rest);
        let quote = &quote[..quote.len().min(LONGEST4 - IPV4_HEADER - ICMP_HEADER)];
        let (header, head) = headers4(head, own, to, quote);
        Some([&header.octets()[..], &head.octets(), quote].into_iter().flatten().copied().collect())
    }

    /// Takes from the source's bucket and then from the one for all.
    fn limit(&mut self, source: u128, now: Instant) -> bool {
        let at = self.hash.hash_one(source) as usize % SOURCE_BUCKETS;
        self.sources[at].take(self.each, now) && self.bucket.take(self.all, now)
    }
}

/// Where the address is whose interface identifier is all zeros: the source, or else the destination.
const fn zero_identifier(packet: &Packet) -> u32 {
    match packet.addresses {
        Addresses::V6 { source, .. } if source.to_bits() as u64 == 0 => 8,
        Addresses::V6 { .. } | Addresses::V4 { .. } => 24,
    }
}

/// The key of a bucket in IPv4: hosts of several realms may have the same address.
fn host(realm: Realm, source: Ipv4Addr) -> u128 {
    u128::from(source.to_bits()) | u128::from(realm.0) << 32
}

/// The key of a bucket in IPv6: a /64. The bit above distinguishes it from an IPv4 address.
const fn network(source: Ipv6Addr) -> u128 {
    source.to_bits() >> 64 | 1 << 64
}

/// What may be answered with an ICMP error: no ICMP error or redirect, no later fragment of IPv4 (RFC 4443 has no such rule, and
/// §3.2 demands a Packet Too Big for each packet), nothing that was sent to many or whose source is not unicast (RFC 1812
/// §4.3.2.7, RFC 4443 §2.4 e).
#[inline(always)]
fn may_be_answered(packet: &Packet) -> bool {
    let v6 = matches!(packet.addresses, Addresses::V6 { .. });
    if !v6 && !packet.fragment.is_none_or(Fragment::is_first) {
        return false;
    }
    let is_error = match packet.transport {
        Transport::IcmpError { .. } => true,
        Transport::IcmpQuery { kind, .. } => v6 && kind == icmpv6::REDIRECT,
        Transport::Ports { .. } | Transport::Opaque => false,
    };
    let single_hosts = match packet.addresses {
        Addresses::V4 { source, destination } => !(is_martian4(source) || is_martian4(destination)),
        Addresses::V6 { source, destination } => !(is_martian6(source) || is_martian6(destination)),
    };
    !is_error && single_hosts
}

/// The ICMP header in front of the quote, the checksum still 0.
#[inline(always)]
fn head_of(answer: Answer, packet: &Packet, detail: IcmpDetail) -> Option<IcmpHeader> {
    let (v4, (kind, code)) = match packet.addresses {
        Addresses::V4 { .. } => (true, answer.icmpv4?),
        Addresses::V6 { .. } => (false, answer.icmpv6?),
    };
    let rest = match (v4, kind, code) {
        // RFC 1191 §4: the next hop's MTU in the low 16 bits. RFC 4443 §3.2: in all 32.
        (true, 3, 4) | (false, 2, _) => match detail {
            IcmpDetail::Mtu(mtu) if v4 => mtu.min(0xffff),
            IcmpDetail::Mtu(mtu) => mtu.max(1_280),
            IcmpDetail::None | IcmpDetail::Pointer(_) => return None,
        },
        // RFC 792: the pointer is the first octet. RFC 4443 §3.4: all 32 bits.
        (true, 12, 0) | (false, 4, _) => match detail {
            IcmpDetail::Pointer(pointer) if v4 => pointer.min(255) << 24,
            IcmpDetail::Pointer(pointer) => pointer,
            IcmpDetail::None | IcmpDetail::Mtu(_) => return None,
        },
        (true | false, _, _) => 0,
    };
    Some(IcmpHeader::new(kind, code, rest))
}

/// The start of the dropped packet, as it would have been on the wire; of a GSO packet, that of the first segment.
struct Quote(ArrayVec<u8, LONGEST6>);

impl Quote {
    /// `longest` counts the ICMP header too.
    fn new(frame: &Frame, packet: &Packet, longest: usize) -> Self {
        let octets = on_the_wire(frame, packet);
        Self(octets.iter().copied().take((longest - ICMP_HEADER).min(LONGEST6)).collect())
    }
}

fn compose4(
    head: IcmpHeader,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    Quote(quote): &Quote,
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let (header, head) = headers4(head, source, destination, quote);
    emit(&[&header.octets(), &head.octets(), quote], IPV4_HEADER, out)
}

/// The IPv4 header in front of an error, and the error's head with its checksum.
fn headers4(
    head: IcmpHeader,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    quote: &[u8],
) -> (Ipv4Header, IcmpHeader) {
    let head = head.with_checksum4(quote);
    let header = Ipv4Header {
        tos: INTERNETWORK_CONTROL,
        // Errors that differ have different checksums, but for one in 65,536; parts of equal ones may mix.
        identification: head.checksum,
        dont_fragment: false,
        ttl: HOPS,
        ..Ipv4Header::new(source, destination, protocol::ICMPV4, ICMP_HEADER + quote.len())
    };
    (header, head)
}

fn compose6(
    head: IcmpHeader,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    Quote(quote): &Quote,
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let (header, head) = headers6(head, source, destination, quote);
    emit(&[&header.octets(), &head.octets(), quote], IPV6_HEADER, out)
}

/// The IPv6 header in front of an error, and the error's head with its checksum.
fn headers6(
    head: IcmpHeader,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    quote: &[u8],
) -> (Ipv6Header, IcmpHeader) {
    let head = head.with_checksum6(source, destination, quote);
    let header = Ipv6Header {
        hop_limit: HOPS,
        ..Ipv6Header::new(source, destination, protocol::ICMPV6, ICMP_HEADER + quote.len())
    };
    (header, head)
}

fn emit(parts: &[&[u8]], transport: usize, out: &mut Outbox) -> Result<(), DropReason> {
    let frame = out.push(parts.iter().map(|part| part.len()).sum())?;
    let mut rest = frame.bytes_mut();
    for part in parts {
        let (here, behind) = rest.split_at_mut(part.len());
        here.copy_from_slice(part);
        rest = behind;
    }
    frame.offload.transport = transport as u16;
    Ok(())
}

/// A rate, with a second's worth as burst: nanoseconds for one error; 0: no errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    interval: u64,
}

impl Rate {
    const SECOND: u64 = 1_000_000_000;

    const fn per_second(number: u32) -> Self {
        Self { interval: if number == 0 { 0 } else { Self::SECOND.div_ceil(number as u64) } }
    }
}

/// A token bucket, kept as the time at which it is full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    full_at: u64,
}

impl Bucket {
    /// Takes a token, if there is one.
    fn take(&mut self, rate: Rate, Instant(now): Instant) -> bool {
        let full_at = self.full_at.max(now).saturating_add(rate.interval);
        let allowed = rate.interval != 0 && full_at - now <= Rate::SECOND;
        if allowed {
            self.full_at = full_at;
        }
        allowed
    }
}

#[cfg(test)]
mod tests;
