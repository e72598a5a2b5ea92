//! Any octets are requests of PCP and NAT-PMP or none. Whatever arrives, in any order, an answer is at most 1100 octets and hardly longer than its
//! request, no two hosts have one external port, no host has more than its share, and what is kept in a file is read again as the same.
//!
//! The input is a row of arrivals: whose it is (an octet), how many seconds passed before (an octet), its length (two octets), and the payload.

use sixway_control::Instant;
use sixway_control::pcp::{
    Arrival, Closed, ControlledNat, Existing, ExistingKind, Internal, Opened, Refusal, Server, Settings,
    Transport, Wanted, WantedPeer, kept,
};
use sixway_dataplane::rates::Rate;
use sixway_dataplane::translate::address::Rfc6052;
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MOST: u32 = 40;
const MOST_OF_SUBSCRIBER: u32 = 12;

/// A NAT of few ports.
#[derive(Default)]
struct Nat(BTreeMap<(Transport, Internal), u16>);

impl Nat {
    fn is_taken(&self, transport: Transport, port: u16) -> bool {
        self.0.iter().any(|((other, _), taken)| *other == transport && *taken == port)
    }

    fn give(
        &mut self,
        (transport, internal): (Transport, Internal),
        wanted: u16,
        exactly: bool,
    ) -> Result<u16, Refusal> {
        let range = 5_330..5_400;
        let is_free = |port: u16| range.contains(&port) && !self.is_taken(transport, port);
        let port = if is_free(wanted) {
            Some(wanted)
        } else if exactly {
            return Err(Refusal::ExternalTaken);
        } else {
            range.clone().find(|port| is_free(*port))
        };
        let port = port.ok_or(Refusal::Full)?;
        self.0.insert((transport, internal), port);
        Ok(port)
    }
}

impl ControlledNat for Nat {
    fn serves(&self, host: IpAddr) -> bool {
        match host {
            IpAddr::V4(host) => host.octets()[0] == 10,
            IpAddr::V6(host) => host.segments()[0] == 0x2001,
        }
    }

    fn open(&mut self, wanted: &Wanted<'_>) -> Result<Opened, Refusal> {
        let key = (wanted.transport, wanted.internal);
        let known = self.0.get(&key).copied();
        if known.is_some_and(|port| wanted.exactly && port != wanted.port) {
            return Err(Refusal::ExternalTaken);
        }
        let port = known.map_or_else(|| self.give(key, wanted.port, wanted.exactly), Ok)?;
        Ok(Opened { external: Endpoint4::new(EXTERNAL, port), is_static: false, used_for: 0 })
    }

    fn close(&mut self, transport: Transport, internal: Internal) -> Closed {
        self.0.remove(&(transport, internal));
        Closed::default()
    }

    fn end_host(&mut self, host: IpAddr) {
        self.0.retain(|(_, internal), _| internal.address != host);
    }

    fn find(&mut self, transport: Transport, internal: Internal) -> Option<Existing> {
        let port = *self.0.get(&(transport, internal))?;
        Some(Existing { external: Endpoint4::new(EXTERNAL, port), kind: ExistingKind::Explicit })
    }

    fn has_static(&mut self, _: Transport, _: IpAddr) -> bool {
        false
    }

    fn peer(&mut self, _: &WantedPeer) -> Result<(Endpoint4, u32), Refusal> {
        Ok((Endpoint4::new(EXTERNAL, 5_000), 60))
    }

    fn external_address(&mut self, _: IpAddr) -> Option<Ipv4Addr> {
        Some(EXTERNAL)
    }
}

pub fn run(octets: &[u8]) {
    let prefix = "2001:db8:64::/96".parse().expect("a prefix");
    let settings = Settings {
        third_party: vec![(Ipv4Addr::new(10, 0, 0, 1).into(), 32)],
        max_mappings: MOST,
        mappings_per_subscriber: MOST_OF_SUBSCRIBER,
        rate: Rate { rate: 100_000, burst: 100_000 },
        total_rate: Rate { rate: 100_000, burst: 100_000 },
        prefixes64: vec![Rfc6052::new(prefix, false).expect("a prefix of this length")],
        external_address: Some(EXTERNAL),
        ..Settings::default()
    };
    let (mut now, mut nat) = (Instant::from_secs(1_000), Nat::default());
    let mut server = Server::new(settings, 0, 7, now);
    let mut rest = octets;
    while let Some(([whose, pause, high, low], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        rest = behind;
        now = now + Duration::from_secs((*pause).into());
        let host = match whose % 4 {
            3 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, (*whose).into())),
            _ => IpAddr::V4(Ipv4Addr::new(10, 0, 0, whose % 4)),
        };
        let arrival = Arrival { from: SocketAddr::new(host, 40_000), at: None, payload };
        for answer in server.handle(&arrival, &mut nat, now).unwrap_or_default() {
            assert!(answer.len() <= 1_100 && answer.len() <= payload.len().next_multiple_of(4).max(24) + 24);
            let again = Arrival { from: arrival.from, at: None, payload: &answer };
            assert!(server.handle(&again, &mut nat, now).is_err(), "a response is answered");
        }
        server.handle_timeout(&mut nat, now);
        for _ in 0..100 {
            let Some(sent) = server.poll_transmit(now) else { break };
            assert!(sent.octets.len() <= 1_100);
        }
        judge(&server, &nat, now);
    }
}

fn judge(server: &Server, nat: &Nat, now: Instant) {
    let (_, total, _) = server.sizes();
    assert!(total <= MOST);
    let mut external = BTreeMap::new();
    let mut of_subscriber: BTreeMap<IpAddr, u32> = BTreeMap::new();
    for mapping in server.mappings() {
        assert!(mapping.expires > now);
        for (internal, outside) in mapping.ports() {
            let taken = external.insert((mapping.transport, outside.port), internal);
            assert_eq!(taken, None, "two hosts have one port");
            assert_eq!(nat.0.get(&(mapping.transport, internal)), Some(&outside.port), "the NAT has it");
            let is_own = mapping.transport == Transport::Udp && matches!(outside.port, 5_350 | 5_351);
            assert!(!is_own, "a port of the protocol itself");
            let subscriber = match internal.address {
                IpAddr::V4(_) => internal.address,
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            *of_subscriber.entry(subscriber).or_default() += 1;
        }
    }
    assert_eq!(external.len(), nat.0.len(), "the NAT has nothing else");
    assert!(of_subscriber.iter().all(|(host, has)| host.is_ipv6() || *has <= MOST_OF_SUBSCRIBER));
    let all = server.kept(now);
    let text = kept::write(5_000, &all);
    let read = kept::read(&text, 5_000).expect("what was written is read");
    assert_eq!((read.epoch, read.mappings.len()), (all.epoch, all.mappings.len()));
    assert!(read.peers.iter().all(|peer| all.peers.contains(peer)));
    for (one, other) in all.mappings.iter().zip(&read.mappings) {
        let mut mapping = one.mapping.clone();
        mapping.expires = Instant::default();
        assert_eq!((&mapping, one.remaining), (&other.mapping, other.remaining));
    }
}
