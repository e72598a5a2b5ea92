//! The keys that every translating mechanism has: the choices of RFC 7915.

use serde::Serializer;

use crate::fault::Report;
use crate::section::Reader;
use crate::word::{self, words_of};

pub use sixway_dataplane::translate::{HeaderByte, UdpZeroChecksum};

words_of! {
    UdpZeroChecksum {
        Compute = "compute",
        Drop = "drop",
    }
}

pub(crate) fn header_byte<S: Serializer>(byte: &HeaderByte, serializer: S) -> Result<S::Ok, S::Error> {
    match byte {
        HeaderByte::Copy => serializer.serialize_str("copy"),
        HeaderByte::Set(value) => serializer.serialize_u8(*value),
    }
}

/// The choices of RFC 7915.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Translation {
    /// Whether the well-known prefix may be used with non-global IPv4 addresses.
    pub translate_non_global: bool,
    /// The handling of IPv4 UDP packets without checksum.
    #[serde(serialize_with = "word::serialize")]
    pub udp_zero_checksum: UdpZeroChecksum,
    /// Maximum size of IPv6 packets translated from IPv4 packets with DF=0, in octets.
    pub lowest_ipv6_mtu: u16,
    /// Traffic Class of IPv6 packets.
    #[serde(serialize_with = "header_byte")]
    pub traffic_class: HeaderByte,
    /// TOS of IPv4 packets.
    #[serde(serialize_with = "header_byte")]
    pub tos: HeaderByte,
    /// Whether the MSS of TCP SYNs is lowered to what fits.
    pub clamp_mss: bool,
}

impl Translation {
    pub(crate) fn read(section: &Reader, mtu: Option<u16>, report: &mut Report) -> Option<Self> {
        let translate_non_global =
            section.value("translate_non_global", report).and_then(|v| v.boolean(report));
        let udp_zero_checksum = section.value("udp_zero_checksum", report).and_then(|v| v.word(report));
        let lowest_ipv6_mtu = section.value("lowest_ipv6_mtu", report).and_then(|v| {
            let lowest: u16 = v.integer(report)?;
            if let Some(mtu) = mtu.filter(|mtu| lowest > *mtu) {
                report.fault(&v.place, format!("is more than tun.mtu, {mtu}; lower it, or raise tun.mtu"));
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
