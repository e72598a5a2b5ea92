//! The concentrator of 4over6: into its hosts' tunnels and out of them. It is measured in turn with a tunnel of 6in4, which does nearly the same
//! without a table.

use super::engine_bench::{EngineBench, wrong};
use super::packets::{Flow, read4, read4_in6, write4, write4_in6};
use super::yardstick::{Round, Yardstick};
use crate::failure::{Failure, Result};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::four_over_six::{Binding, ConcentratorConfig, FourOverSixConfig, Role};
use sixway_dataplane::tunnel::{TunnelMtu, TunnelPolicy};
use sixway_wire::Prefix4;
use std::net::{Ipv4Addr, Ipv6Addr};

const CONCENTRATOR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 10, 0, 0, 0, 0, 1);
const HOSTS: u128 = 0x2001_0db8_0099 << 80;
/// The leased addresses.
const LEASED: u32 = 198 << 24 | 18 << 16;
const THERE: u32 = 203 << 24 | 113 << 8;

const fn leased(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(LEASED | number)
}

fn host(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(HOSTS | u128::from(number) << 64 | 1)
}

fn flow(number: u32, from_host: bool) -> Flow<Ipv4Addr> {
    let out = Flow {
        source: leased(number),
        source_port: 1_024 + (number % 60_000) as u16,
        destination: Ipv4Addr::from_bits(THERE | (number % 251)),
        destination_port: 53,
    };
    if from_host { out } else { out.answers() }
}

/// A concentrator under test.
pub struct Concentrator(EngineBench);

impl Concentrator {
    /// One with a host for each of these flows.
    pub fn make(order: &[u32]) -> Result<Self> {
        let binding =
            |number| Binding { ipv4: Prefix4::holding(leased(number), 32), host: host(number), local: 0 };
        let concentrator = ConcentratorConfig {
            addresses: vec![CONCENTRATOR],
            client_bits: 56,
            lent: vec![Prefix4::holding(leased(0), 15)],
            max_bindings: 1 << 17,
            bindings: order.iter().copied().map(binding).collect(),
        };
        let policy =
            TunnelPolicy { mtu: TunnelMtu::Dynamic, encapsulation_limit: None, ..TunnelPolicy::default() };
        let ends = FourOverSixConfig { role: Role::Concentrator(concentrator), policy };
        let engine = Engine::new(&EngineConfig { others: vec![ends.into()], ..EngineConfig::default() });
        let fault = |error| Failure::Unexpected(format!("the benchmark's own configuration: {error:?}"));
        let mut machine = EngineBench::new(engine.map_err(fault)?);
        let write = |number: u32, octets: &mut _| write4(&flow(number, false), octets);
        machine.pass(order, write, |number, octets| match read4_in6(octets, CONCENTRATOR, host(number)) {
            Some(read) if read == flow(number, false) => Ok(()),
            Some(_) | None => Err(wrong(number, octets)),
        })?;
        let write =
            |number: u32, octets: &mut _| write4_in6(&flow(number, true), host(number), CONCENTRATOR, octets);
        machine.pass(order, write, |number, octets| match read4(octets) {
            Some(read) if read == flow(number, true) => Ok(()),
            Some(_) | None => Err(wrong(number, octets)),
        })?;
        Ok(Self(machine))
    }

    /// Into the hosts' tunnels.
    pub fn encap(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let write = |number, octets: &mut _| write4(&flow(number, false), octets);
        self.0.measure(order, batch, write, yardstick)
    }

    /// Out of them.
    pub fn decap(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let write =
            |number, octets: &mut _| write4_in6(&flow(number, true), host(number), CONCENTRATOR, octets);
        self.0.measure(order, batch, write, yardstick)
    }
}
