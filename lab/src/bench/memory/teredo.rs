//! Teredo's relay: to its clients and from them. It is measured in turn with a tunnel of 6in4.

use super::engine_bench::{EngineBench, wrong};
use super::packets::{Flow, IN_UDP, SIZE, read6, read6_in_udp, write6, write6_in_udp};
use super::yardstick::{Round, Yardstick};
use crate::failure::{Failure, Result};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::teredo::{RelayConfig, TeredoChange, TeredoConfig, TeredoRole};
use sixway_dataplane::{Frame, Outbox};
use sixway_wire::Endpoint4;
use sixway_wire::teredo::{TeredoAddress, TeredoInterface};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const LOCAL: Endpoint4 = Endpoint4::new(Ipv4Addr::new(192, 0, 2, 9), 3_544);
const RELAY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
const HERE: u128 = 0x2001_0db8 << 96;

/// Where the client of a flow is mapped.
fn mapped(number: u32) -> Endpoint4 {
    Endpoint4::new(Ipv4Addr::from_bits((198 << 24 | 51 << 16) + number / 4), 1_024 + (number % 4) as u16)
}

/// A client for each flow, each with a server of its own.
fn client(number: u32) -> Ipv6Addr {
    let interface = TeredoInterface { flags: 0, mapped: mapped(number) };
    TeredoAddress { server: Ipv4Addr::from_bits((198 << 24 | 18 << 16) + number), interface }.address()
}

fn flow(number: u32, inward: bool) -> Flow<Ipv6Addr> {
    let out = Flow {
        // Of one site each, which has a share of the list.
        source: Ipv6Addr::from_bits(HERE | u128::from(number % 0xffff) << 80),
        source_port: 1_024 + (number % 60_000) as u16,
        destination: client(number),
        destination_port: 53,
    };
    if inward { out.answers() } else { out }
}

/// A relay under test.
pub struct Relay(EngineBench);

impl Relay {
    /// One with a client for each number below `clients`.
    pub fn make(clients: u32) -> Result<Self> {
        let role = TeredoRole::Relay(RelayConfig { address: RELAY, serves: Vec::new() });
        let relay = TeredoConfig { max_peers: clients.max(1_024) * 2, ..TeredoConfig::new(role) };
        let config = EngineConfig { others: vec![relay.into()], seed: [1, 2], ..EngineConfig::default() };
        let fault = |error| Failure::Unexpected(format!("the benchmark's own configuration: {error:?}"));
        let mut machine = EngineBench::new(Engine::new(&config).map_err(fault)?);
        let mut out = Outbox::new(1_024);
        let now = machine.now();
        machine.engine().change_teredo(0, &TeredoChange::Local(Some(LOCAL), Vec::new()), now);
        let (mut plain, mut in_udp) = ([0; SIZE], [0; IN_UDP]);
        for number in 0..clients {
            if number % 1_000 == 0 {
                machine.advance(Duration::from_millis(60));
            }
            let now = machine.now();
            write6(&flow(number, false), &mut plain);
            write6_in_udp(&flow(number, true), mapped(number), LOCAL, &mut in_udp);
            for octets in [&plain[..], &in_udp] {
                let mut frames = [Frame::holding(octets)];
                machine.engine().process(&mut frames, now, &mut out);
                out.clear();
            }
        }
        Ok(Self(machine))
    }

    /// Sends each flow's packet both ways and checks the results.
    pub fn verify(&mut self, order: &[u32]) -> Result<()> {
        let write = |number: u32, octets: &mut _| write6(&flow(number, false), octets);
        self.0.pass(order, write, |number, octets| match read6_in_udp(octets, LOCAL, mapped(number)) {
            Some(read) if read == flow(number, false) => Ok(()),
            Some(_) | None => Err(wrong(number, octets)),
        })?;
        let write =
            |number: u32, octets: &mut _| write6_in_udp(&flow(number, true), mapped(number), LOCAL, octets);
        self.0.pass(order, write, |number, octets| match read6(octets) {
            Some(read) if read == flow(number, true) => Ok(()),
            Some(_) | None => Err(wrong(number, octets)),
        })
    }

    /// To clients.
    pub fn encap(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let write = |number, octets: &mut _| write6(&flow(number, false), octets);
        self.0.measure(order, batch, write, yardstick)
    }

    /// From clients.
    pub fn decap(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let write =
            |number, octets: &mut _| write6_in_udp(&flow(number, true), mapped(number), LOCAL, octets);
        self.0.measure(order, batch, write, yardstick)
    }

    /// Clients, and the octets that they take.
    pub fn memory(&mut self) -> (u32, usize) {
        let teredo = self.0.engine().teredo().first();
        teredo.map_or((0, 0), |relay| (relay.row().peers.iter().sum(), relay.memory_used()))
    }
}
