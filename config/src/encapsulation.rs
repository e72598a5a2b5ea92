//! Keys that every tunnel has: how packets are put into the outer header (RFC 4213 §3, RFC 2473 §6).

use serde::{Serialize, Serializer};

use super::fault::Report;
use super::section::Reader;
use super::text::words;
use super::translation::HeaderByte;

words! {
    /// What goes into the ECN field of the outer header (RFC 6040 §4.1).
    Ecn {
        /// The field of the packet inside.
        Normal = "normal",
        /// Zero.
        Compatibility = "compatibility",
    }
}

words! {
    /// What becomes of a tunnel packet larger than the next link.
    OuterFragments {
        /// It may be cut.
        Allowed = "allowed",
        /// It is refused.
        Never = "never",
    }
}

/// Octets of packet that go in whole (RFC 4213 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelMtu {
    /// As many, whatever the path.
    Static(u16),
    /// What the path is found to carry.
    Dynamic,
}

impl Serialize for TunnelMtu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Static(octets) => serializer.serialize_u16(*octets),
            Self::Dynamic => serializer.serialize_str("dynamic"),
        }
    }
}

/// How packets are put into the outer header.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Encapsulation {
    /// The largest packet that goes in whole.
    pub mtu: TunnelMtu,
    /// TTL or hop limit of the outer header.
    pub ttl: HeaderByte,
    /// DSCP of the outer header.
    pub traffic_class: HeaderByte,
    /// ECN field of the outer header.
    pub ecn: Ecn,
    /// Tunnel packets larger than the next link.
    pub outer_fragments: OuterFragments,
    /// Whether the MSS of TCP SYNs is lowered to what fits.
    pub clamp_mss: bool,
}

impl Encapsulation {
    pub(super) fn read(section: &Reader, device: Option<u16>, report: &mut Report) -> Option<Self> {
        let mtu = section.value("mtu", report).and_then(|v| {
            let mtu = v.integer_or::<u16>(report)?;
            if let Some(device) = device.filter(|device| mtu.is_some_and(|mtu| mtu > *device)) {
                report.fault(&v.place, format!("is more than tun.mtu, {device}; lower it, or raise that"));
            }
            Some(mtu)
        });
        let ttl = section.value("ttl", report).and_then(|v| v.integer_or(report));
        let traffic_class = section.value("traffic_class", report).and_then(|v| v.integer_or(report));
        let ecn = section.value("ecn", report).and_then(|v| v.word(report));
        let outer_fragments = section.value("outer_fragments", report).and_then(|v| v.word(report));
        let clamp_mss = section.value("clamp_mss", report).and_then(|v| v.boolean(report));
        let byte = |set: Option<u8>| set.map_or(HeaderByte::Copy, HeaderByte::Set);
        Some(Self {
            mtu: mtu?.map_or(TunnelMtu::Dynamic, TunnelMtu::Static),
            ttl: byte(ttl?),
            traffic_class: byte(traffic_class?),
            ecn: ecn?,
            outer_fragments: outer_fragments?,
            clamp_mss: clamp_mss?,
        })
    }
}
