//! The configurations under test, for the engine and, in JSON, for the reference.

use sixway_dataplane::Limits;
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::translate::{HeaderByte, Policy, UdpZeroChecksum};
use std::sync::Arc;

/// One configuration.
#[derive(Clone, Debug)]
pub struct Setting {
    pub prefix: Option<&'static str>,
    pub eam: Vec<(&'static str, &'static str)>,
    pub hairpin: &'static str,
    pub mtu4: u16,
    pub mtu6: u16,
    pub lowest: u16,
    pub traffic_class: Option<u8>,
    pub tos: Option<u8>,
    pub udp_zero: &'static str,
    pub non_global: bool,
    pub pool: Vec<&'static str>,
}

pub const OWN4: &str = "198.18.0.254";
pub const OWN6: &str = "2001:db8:ffff::fe";

impl Default for Setting {
    fn default() -> Self {
        Self {
            prefix: Some("64:ff9b::/96"),
            eam: vec![("198.51.100.8/29", "2001:db8:1::/125"), ("9.9.9.9/32", "2001:db8:9::9/128")],
            hairpin: "intrinsic",
            mtu4: 1_500,
            mtu6: 1_500,
            lowest: 1_280,
            traffic_class: None,
            tos: None,
            udp_zero: "compute",
            non_global: false,
            pool: vec![],
        }
    }
}

impl Setting {
    pub fn all() -> Vec<Self> {
        vec![
            Self::default(),
            Self {
                prefix: Some("2001:db8:100::/40"),
                eam: vec![
                    ("198.51.100.0/24", "2001:db8:1::/64"),
                    ("198.51.100.8/29", "2001:db8:2::/125"),
                    ("198.51.100.9/32", "2001:db8:3::1/128"),
                    ("5.6.0.0/16", "2001:db8:4::/48"),
                ],
                hairpin: "simple",
                mtu6: 1_280,
                udp_zero: "drop",
                pool: vec!["203.0.113.9", "203.0.113.10"],
                ..Self::default()
            },
            Self {
                prefix: Some("2001:db8:122::/48"),
                hairpin: "off",
                mtu4: 1_000,
                mtu6: 9_000,
                lowest: 1_400,
                traffic_class: Some(0),
                tos: Some(0x20),
                ..Self::default()
            },
            Self { prefix: Some("2001:db8:122:344::/64"), mtu4: 576, non_global: true, ..Self::default() },
            Self {
                prefix: None,
                eam: vec![("198.51.100.0/24", "2001:db8:1::/64"), ("192.0.2.0/24", "2001:db8:2::/120")],
                ..Self::default()
            },
            Self { prefix: Some("64:ff9b::/96"), non_global: true, mtu4: 68, ..Self::default() },
            Self { prefix: Some("2001:db8::/32"), eam: vec![], mtu4: 9_000, mtu6: 2_000, ..Self::default() },
            Self { prefix: Some("2001:db8:122:300::/56"), pool: vec!["203.0.113.9"], ..Self::default() },
        ]
    }

    pub fn engine(&self) -> EngineConfig {
        let rows = self.eam.iter().map(|(four, six)| (four.parse().unwrap(), six.parse().unwrap()));
        let byte = |value: Option<u8>| value.map_or(HeaderByte::Copy, HeaderByte::Set);
        EngineConfig {
            own4: Some(OWN4.parse().unwrap()),
            own6: Some(OWN6.parse().unwrap()),
            limits: Limits { mtu4: self.mtu4, mtu6: self.mtu6 },
            icmp_errors_per_second: 1_000_000,
            siit: vec![SiitConfig {
                prefix: self.prefix.map(|text| Rfc6052::new(text.parse().unwrap(), self.non_global).unwrap()),
                eam: Arc::new(EamTable::new(rows).unwrap()),
                hairpinning: match self.hairpin {
                    "intrinsic" => Hairpinning::Intrinsic,
                    "simple" => Hairpinning::Simple,
                    _ => Hairpinning::Off,
                },
                icmp_source_pool: self.pool.iter().map(|text| text.parse().unwrap()).collect(),
                policy: Policy {
                    traffic_class: byte(self.traffic_class),
                    tos: byte(self.tos),
                    udp_zero_checksum: match self.udp_zero {
                        "drop" => UdpZeroChecksum::Drop,
                        _ => UdpZeroChecksum::Compute,
                    },
                    lowest_ipv6_mtu: self.lowest,
                    clamp_mss: false,
                },
                ..SiitConfig::default()
            }],
            ..EngineConfig::default()
        }
    }

    pub fn json(&self) -> String {
        let text = |value: Option<&str>| value.map_or("null".into(), |value| format!("\"{value}\""));
        let byte = |value: Option<u8>| value.map_or("\"copy\"".into(), |value| value.to_string());
        let rows: Vec<String> =
            self.eam.iter().map(|(four, six)| format!("[\"{four}\", \"{six}\"]")).collect();
        let pool: Vec<String> = self.pool.iter().map(|address| format!("\"{address}\"")).collect();
        format!(
            "{{\"pool6\": {}, \"eamt\": [{}], \"hairpin\": \"{}\", \"mtu4\": {}, \"mtu6\": {}, \"lowest_ipv6_mtu\": {}, \
             \"traffic_class\": {}, \"tos\": {}, \"udp_zero_checksum\": \"{}\", \"wkp_non_global\": \"{}\", \
             \"own_v4\": \"{OWN4}\", \"own_v6\": \"{OWN6}\", \"rfc6791_v4\": [{}]}}",
            text(self.prefix),
            rows.join(", "),
            self.hairpin,
            self.mtu4,
            self.mtu6,
            self.lowest,
            byte(self.traffic_class),
            byte(self.tos),
            self.udp_zero,
            if self.non_global { "translate" } else { "drop" },
            pool.join(", "),
        )
    }
}
