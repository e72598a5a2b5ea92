//! The keys that every translating mechanism has: the choices of RFC 7915.

use serde::ser::{Serialize, Serializer};

use super::fault::Report;
use super::section::Reader;
use super::text::words;

words! {
    /// What becomes of IPv4 UDP packets without checksum (RFC 7915 §4.5).
    UdpZeroChecksum {
        /// It is computed.
        Compute = "compute",
        /// The packet is dropped.
        Drop = "drop",
    }
}

/// What becomes of the TOS octet or Traffic Class (RFC 7915 §4.1, §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderByte {
    /// It is copied.
    Copy,
    /// It is set to this value.
    Set(u8),
}

impl Serialize for HeaderByte {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Copy => serializer.serialize_str("copy"),
            Self::Set(value) => serializer.serialize_u8(*value),
        }
    }
}

/// The choices of RFC 7915.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Translation {
    /// Whether the well-known prefix may stand before non-global IPv4 addresses.
    pub translate_non_global: bool,
    /// What becomes of IPv4 UDP packets without checksum.
    pub udp_zero_checksum: UdpZeroChecksum,
    /// IPv4 packets that may be fragmented become IPv6 packets of at most so many octets.
    pub lowest_ipv6_mtu: u16,
    /// Traffic Class of IPv6 packets.
    pub traffic_class: HeaderByte,
    /// TOS of IPv4 packets.
    pub tos: HeaderByte,
    /// Whether the MSS of TCP SYNs is lowered to what fits.
    pub clamp_mss: bool,
}

impl Translation {
    pub(super) fn read(section: &Reader, mtu: Option<u16>, report: &mut Report) -> Option<Self> {
        let translate_non_global =
            section.value("translate_non_global", report).and_then(|v| v.boolean(report));
        let udp_zero_checksum = section.value("udp_zero_checksum", report).and_then(|v| v.word(report));
        let lowest_ipv6_mtu = section.value("lowest_ipv6_mtu", report).and_then(|v| {
            let lowest: u16 = v.integer(report)?;
            if let Some(mtu) = mtu.filter(|mtu| lowest > *mtu) {
                report.fault(&v.place, format!("is more than tun.mtu, {mtu}; lower it, or raise that"));
            }
            Some(lowest)
        });
        let traffic_class = section.value("traffic_class", report).and_then(|v| v.integer_or(report));
        let tos = section.value("tos", report).and_then(|v| v.integer_or(report));
        let clamp_mss = section.value("clamp_mss", report).and_then(|v| v.boolean(report));
        let byte = |set: Option<u8>| set.map_or(HeaderByte::Copy, HeaderByte::Set);
        Some(Self {
            translate_non_global: translate_non_global?,
            udp_zero_checksum: udp_zero_checksum?,
            lowest_ipv6_mtu: lowest_ipv6_mtu?,
            traffic_class: byte(traffic_class?),
            tos: byte(tos?),
            clamp_mss: clamp_mss?,
        })
    }
}
