//! What scenarios are written with: packets by builder, a gateway that receives and sends, counters that must match.
#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    clippy::unwrap_used,
    reason = "each test file uses its part"
)]

mod builder;
pub mod fast_path;
pub mod super_frame;

pub use builder::{Build, checksum_is_right, icmp4, icmp6, v4, v6};

use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::configured::ConfiguredConfig;
use sixway_dataplane::mechanism::isatap::{self, IsatapConfig};
use sixway_dataplane::mechanism::nat44::Nat44Config;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::six_rd::{self, Domain, SixRdConfig};
use sixway_dataplane::mechanism::six_to_four::{self, NativeSources, SixToFourConfig};
use sixway_dataplane::nat::StateLimits;
use sixway_dataplane::nat::{Filtering, PoolConfig, Timeouts};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::tunnel::TunnelPolicy;
use sixway_dataplane::tunnel::address::six_to_four::RELAY_ANYCAST;
use sixway_dataplane::{DropReason, Frame, Instant, Offload, Outbox, Verdict};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A gateway under test, in fake time.
pub struct Gateway {
    pub engine: Engine,
    pub now: Instant,
    out: Outbox,
    sent: Vec<(Vec<u8>, Offload)>,
    counted: BTreeMap<&'static str, u64>,
    pub last: Verdict,
}

/// A gateway with its own addresses 192.0.2.254 and 2001:db8::fe and what `edit` makes of the configuration.
pub fn gateway(edit: impl FnOnce(&mut EngineConfig)) -> Gateway {
    let mut config = EngineConfig {
        own4: Some("192.0.2.254".parse().unwrap()),
        own6: Some("2001:db8::fe".parse().unwrap()),
        seed: [0x5eed, 0x1ab],
        ..EngineConfig::default()
    };
    edit(&mut config);
    Gateway {
        engine: Engine::new(&config).unwrap(),
        now: Instant::from_secs(1_000),
        out: Outbox::new(1_024),
        sent: Vec::new(),
        counted: BTreeMap::new(),
        last: Verdict::Pending,
    }
}

/// A gateway with one stateless translator.
pub fn siit(edit: impl FnOnce(&mut SiitConfig)) -> Gateway {
    gateway(|config| {
        let mut siit = SiitConfig { prefix: Some(prefix("2001:db8:64::/96")), ..SiitConfig::default() };
        siit.policy = Policy { clamp_mss: false, ..Policy::default() };
        edit(&mut siit);
        config.siit.push(siit);
    })
}

/// A stateful translator: 64:ff9b::/96, pool 192.0.2.0/30, endpoint-independent filtering.
pub fn nat64() -> Nat64Config {
    Nat64Config {
        limits: StateLimits { sessions: 1_000, bindings: 1_000, ..StateLimits::default() },
        policy: Policy { clamp_mss: false, ..Policy::default() },
        ..Nat64Config::new(
            Rfc6052::new("64:ff9b::/96".parse().unwrap(), true).unwrap(),
            PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![1..=65_535] },
        )
    }
}

/// A NAT44: 10.0.0.0/8 inside, pool 192.0.2.0/30, endpoint-independent filtering.
pub fn nat44() -> Nat44Config {
    Nat44Config {
        limits: StateLimits { sessions: 1_000, bindings: 1_000, ..StateLimits::default() },
        policy: Policy { clamp_mss: false, ..Policy::default() },
        ..Nat44Config::new(
            vec!["10.0.0.0/8".parse().unwrap()],
            PoolConfig { addresses: vec!["192.0.2.0/30".parse().unwrap()], ports: vec![1..=65_535] },
        )
    }
}

/// A configured tunnel from 192.0.2.9 to 198.51.100.7, behind which 2001:db8:7::/48 is; TTL 64, MTU 1,280.
pub fn configured() -> ConfiguredConfig {
    ConfiguredConfig {
        local: "192.0.2.9".parse().unwrap(),
        remote: "198.51.100.7".parse().ok(),
        prefixes: vec!["2001:db8:7::/48".parse().unwrap()],
        strict_sources: true,
        policy: TunnelPolicy::default(),
    }
}

/// A gateway with one tunnel.
pub fn tunnelling(tunnel: TunnelConfig) -> Gateway {
    gateway(|config| config.tunnels.push(tunnel))
}

/// 6to4 in a role at an address, with a relay for hosts and routers: 192.88.99.1.
pub fn six_to_four(role: six_to_four::Role, address: &str) -> SixToFourConfig {
    let relay = (role != six_to_four::Role::Relay).then_some(RELAY_ANYCAST);
    SixToFourConfig {
        role,
        address: address.parse().unwrap(),
        nat_address: None,
        relay,
        native_sources: NativeSources::AnyRelay,
        subnets: Vec::new(),
        policy: TunnelPolicy::default(),
    }
}

/// A part in the 6rd domain of RFC 5969 §7.1.1: 2001:db8::/32 for 10.0.0.0/8, border relay 10.0.0.1.
pub fn six_rd(role: six_rd::Role, address: &str) -> SixRdConfig {
    let shared = "10.0.0.0/8".parse().unwrap();
    SixRdConfig {
        domain: Domain::new("2001:db8::/32".parse().unwrap(), shared).unwrap(),
        role,
        address: address.parse().unwrap(),
        border_relays: vec!["10.0.0.1".parse().unwrap()],
        other_relays: Vec::new(),
        subnets: Vec::new(),
        policy: TunnelPolicy::default(),
    }
}

/// An ISATAP interface on 2001:db8:1:2::/64, whose router is 10.0.0.1.
pub fn isatap(role: isatap::Role, address: &str) -> IsatapConfig {
    IsatapConfig {
        role,
        address: address.parse().unwrap(),
        prefixes: vec!["2001:db8:1:2::/64".parse().unwrap()],
        routers: vec!["10.0.0.1".parse().unwrap()],
        locators: Vec::new(),
        subnets: Vec::new(),
        policy: TunnelPolicy::default(),
    }
}

/// A packet in an outer IPv4 header, protocol 41, as our tunnels write it: DF clear, TTL 64.
pub fn in_ipv4(source: &str, destination: &str, inner: impl Into<Vec<u8>>) -> Build {
    v4(source, destination).may_fragment().protocol(41, &inner.into(), None)
}

/// A prefix of RFC 6052.
pub fn prefix(text: &str) -> Rfc6052 {
    Rfc6052::new(text.parse().unwrap(), false).unwrap()
}

/// A table of explicit address mappings.
pub fn eam(rows: &[(&str, &str)]) -> Arc<EamTable> {
    let rows = rows.iter().map(|(v4, v6)| (v4.parse().unwrap(), v6.parse().unwrap()));
    Arc::new(EamTable::new(rows).unwrap())
}

impl Gateway {
    /// One packet comes in.
    #[track_caller]
    pub fn receives(&mut self, packet: impl Into<Vec<u8>>) {
        self.receives_with(packet, Offload::default());
    }

    /// Whether a packet is forwarded; what is sent for it is dropped.
    pub fn passes(&mut self, packet: impl Into<Vec<u8>>) -> bool {
        self.receives(packet);
        let passed = self.last == Verdict::Forward;
        while self.waiting() > 0 {
            self.sent();
        }
        passed
    }

    /// How many of these new flows of a host pass, each from another port.
    pub fn flows(&mut self, host: &str, server: &str, ports: std::ops::Range<u16>) -> usize {
        ports.filter(|port| self.passes(v4(host, server).udp(*port, 53, b""))).count()
    }

    /// One packet or GSO packet comes in, described by `offload`.
    #[track_caller]
    pub fn receives_with(&mut self, packet: impl Into<Vec<u8>>, offload: Offload) {
        let mut frame = Frame::holding(&packet.into());
        frame.offload = offload;
        self.engine.process(std::slice::from_mut(&mut frame), self.now, &mut self.out);
        assert_ne!(frame.verdict, Verdict::Pending);
        self.last = frame.verdict;
        if frame.verdict.leaves() {
            self.sent.push((frame.bytes().to_vec(), frame.offload));
        }
        self.collect();
    }

    /// Time passes, with a tick at its end.
    #[track_caller]
    pub fn waits(&mut self, time: Duration) {
        self.now = self.now + time;
        self.engine.tick(self.now, &mut self.out);
        self.collect();
    }

    #[track_caller]
    fn collect(&mut self) {
        for frame in self.out.frames() {
            self.sent.push((frame.bytes().to_vec(), frame.offload));
        }
        self.out.clear();
        assert!(self.engine.counters().frames_are_conserved(), "{:?}", self.engine.counters());
    }

    /// Takes the oldest packet that was sent, octets and all.
    #[track_caller]
    pub fn sent(&mut self) -> Vec<u8> {
        self.sent_with().0
    }

    /// The same with its offload description.
    #[track_caller]
    pub fn sent_with(&mut self) -> (Vec<u8>, Offload) {
        assert!(!self.sent.is_empty(), "nothing was sent; the last verdict: {:?}", self.last);
        self.sent.remove(0)
    }

    /// The oldest packet sent is this one, octet for octet.
    #[track_caller]
    pub fn sends(&mut self, expected: impl Into<Vec<u8>>) {
        let (sent, expected) = (self.sent(), expected.into());
        assert_eq!(hex(&sent), hex(&expected), "\nleft: sent, right: expected");
    }

    /// The oldest packet sent is this one in an outer IPv4 header as our tunnels write it.
    #[track_caller]
    pub fn sends_in_ipv4(&mut self, source: &str, destination: &str, inner: impl Into<Vec<u8>>) {
        let sent = self.sent();
        let identification = u32::from(u16::from_be_bytes([sent[4], sent[5]]));
        let expected = in_ipv4(source, destination, inner).identification(identification);
        assert_eq!(hex(&sent), hex(&expected.octets()), "\nleft: sent, right: expected");
    }

    /// A packet comes in, is dropped for this reason, and no ICMP error is sent.
    #[track_caller]
    pub fn refuses(&mut self, packet: impl Into<Vec<u8>>, reason: DropReason) {
        self.counted_before();
        self.receives(packet);
        assert_eq!(self.last, Verdict::Dropped(reason));
        self.sends_nothing();
        self.counted([(reason.name(), 1)]);
    }

    /// An ICMPv4 error from inside a tunnel, host unreachable, about this packet that went into it, is relayed to its sender (RFC
    /// 4213 §3.4).
    #[track_caller]
    pub fn relays_an_error(&mut self, local: &str, remote: &str, inner: Build) {
        let quote = in_ipv4(local, remote, inner.clone()).octets();
        self.receives(v4("198.18.0.1", local).icmp(icmp4(3, 1, [0; 4], &quote)));
        let sent = self.sent();
        assert_eq!((sent[6], sent[40], sent[41]), (58, 1, 3), "{}", hex(&sent));
        let inner = inner.octets();
        assert_eq!(hex(&sent[24..40]), hex(&inner[8..24]), "to the sender");
        assert_eq!(hex(&sent[48..88]), hex(&inner[..40]), "about his packet");
        self.sends_nothing();
    }

    /// How many packets were sent and not yet looked at.
    pub fn waiting(&self) -> usize {
        self.sent.len()
    }

    /// Nothing (more) was sent.
    #[track_caller]
    pub fn sends_nothing(&mut self) {
        assert!(
            self.sent.is_empty(),
            "sent: {:?}",
            self.sent.iter().map(|(sent, _)| hex(sent)).collect::<Vec<_>>()
        );
    }

    /// What was counted so far is of no interest.
    pub fn counted_before(&mut self) {
        self.counted.extend(all_counters(&self.engine));
    }

    /// Since the last call exactly these counters rose, by so much; drops are named by their reason, bookkeeping of
    /// frames (`received`, `forwarded`, `packets`, `octets` …) is left out.
    #[track_caller]
    pub fn counted<const N: usize>(&mut self, expected: [(&str, u64); N]) {
        let mut rose = BTreeMap::new();
        for (name, value) in all_counters(&self.engine) {
            let before = self.counted.insert(name, value).unwrap_or(0);
            if value != before {
                rose.insert(name, value - before);
            }
        }
        for bookkeeping in ["received", "forwarded", "packets", "octets"] {
            rose.remove(bookkeeping);
        }
        let expected: BTreeMap<&str, u64> = expected.into_iter().collect();
        assert_eq!(rose, expected, "\nleft: counted, right: expected");
    }
}

fn all_counters(engine: &Engine) -> Vec<(&'static str, u64)> {
    let counters = engine.counters();
    let drops = sixway_dataplane::DropReason::ALL.iter().map(|r| (r.name(), counters.dropped[*r as usize]));
    counters.named().map(|(name, _, value)| (name, value)).chain(drops).collect()
}

/// Octets as text, for messages.
pub fn hex(octets: &[u8]) -> String {
    octets
        .chunks(4)
        .map(|four| four.iter().map(|o| format!("{o:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}
