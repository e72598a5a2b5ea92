//! Keys that every tunnel has: how packets are put into the outer header (RFC 4213 §3, RFC 2473 §6).

use serde::{Serialize, Serializer};

use crate::fault::Report;
use crate::section::Reader;
use crate::translation::header_byte;
use crate::word::{self, words_of};
use sixway_dataplane::translate::HeaderByte;

pub use sixway_dataplane::tunnel::{Ecn, OuterFragments, TunnelMtu};

words_of! {
    OuterFragments {
        Allowed = "allowed",
        Never = "never",
    }
}

words_of! {
    Ecn {
        Normal = "normal",
        Compatibility = "compatibility",
    }
}

fn tunnel_mtu<S: Serializer>(mtu: &TunnelMtu, serializer: S) -> Result<S::Ok, S::Error> {
    match mtu {
        TunnelMtu::Static(octets) => serializer.serialize_u16(*octets),
        TunnelMtu::Dynamic => serializer.serialize_str("dynamic"),
    }
}

/// How packets are put into the outer header.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Encapsulation {
    /// The largest packet that goes in whole.
    #[serde(serialize_with = "tunnel_mtu")]
    pub mtu: TunnelMtu,
    /// TTL or hop limit of the outer header.
    #[serde(serialize_with = "header_byte")]
    pub ttl: HeaderByte,
    /// DSCP of the outer header.
    #[serde(serialize_with = "header_byte")]
    pub traffic_class: HeaderByte,
    /// ECN field of the outer header.
    #[serde(serialize_with = "word::serialize")]
    pub ecn: Ecn,
    /// Tunnel packets larger than the next link.
    #[serde(serialize_with = "word::serialize")]
    pub outer_fragments: OuterFragments,
    /// Whether the MSS of TCP SYNs is lowered to what fits.
    pub clamp_mss: bool,
}

impl Encapsulation {
    pub(crate) fn read(section: &Reader, device: Option<u16>, report: &mut Report) -> Option<Self> {
        let mtu = section.value("mtu", report).and_then(|v| {
            let mtu = v.integer_or::<u16>(report)?;
            if let Some(device) = device.filter(|device| mtu.is_some_and(|mtu| mtu > *device)) {
                report.fault(&v.place, format!("is more than tun.mtu, {device}; lower it, or raise tun.mtu"));
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
