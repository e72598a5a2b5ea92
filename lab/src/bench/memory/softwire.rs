//! The B4 of DS-Lite: into its softwire and out of it. It is measured in turn with a tunnel of 6in4, which does nearly the same.

use super::engine_bench::{EngineBench, wrong};
use super::packets::{Flow, read4, read4_in6, write4, write4_in6};
use super::yardstick::{Round, Yardstick};
use crate::failure::{Failure, Result};
use sixway_dataplane::engine::{Engine, EngineConfig, TunnelConfig};
use sixway_dataplane::mechanism::b4::B4Config;
use sixway_dataplane::tunnel::{TunnelMtu, TunnelPolicy};
use sixway_wire::Prefix4;
use std::net::{Ipv4Addr, Ipv6Addr};

const LOCAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xb4);
const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 10, 0, 0, 0, 0, 1);
const HERE: u32 = 10 << 24;
const THERE: u32 = 198 << 24 | 51 << 16 | 100 << 8;

fn flow(number: u32, inward: bool) -> Flow<Ipv4Addr> {
    let out = Flow {
        source: Ipv4Addr::from_bits(HERE | (number + 1)),
        source_port: 1_024 + (number % 60_000) as u16,
        destination: Ipv4Addr::from_bits(THERE | (number % 251)),
        destination_port: 53,
    };
    if inward { out.answers() } else { out }
}

/// A B4 under test.
pub struct Softwire(EngineBench);

impl Softwire {
    /// One that carries these flows.
    pub fn make(order: &[u32]) -> Result<Self> {
        let b4 = B4Config {
            local: LOCAL,
            remote: Some(AFTR),
            inside: vec![Prefix4::holding(Ipv4Addr::from_bits(HERE), 8)],
            policy: TunnelPolicy {
                mtu: TunnelMtu::Dynamic,
                encapsulation_limit: None,
                ..TunnelPolicy::default()
            },
        };
        let tunnels = vec![TunnelConfig::B4(b4)];
        let engine = Engine::new(&EngineConfig { tunnels, ..EngineConfig::default() });
        let fault = |error| Failure::Unexpected(format!("the benchmark's own configuration: {error:?}"));
        let mut machine = EngineBench::new(engine.map_err(fault)?);
        let write = |number: u32, octets: &mut _| write4(&flow(number, false), octets);
        machine.pass(order, write, |number, octets| match read4_in6(octets, LOCAL, AFTR) {
            Some(read) if read == flow(number, false) => Ok(()),
            Some(_) | None => Err(wrong(number, octets)),
        })?;
        let write = |number: u32, octets: &mut _| write4_in6(&flow(number, true), AFTR, LOCAL, octets);
        machine.pass(order, write, |number, octets| match read4(octets) {
            Some(read) if read == flow(number, true) => Ok(()),
            Some(_) | None => Err(wrong(number, octets)),
        })?;
        Ok(Self(machine))
    }

    /// Into the softwire.
    pub fn encap(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let write = |number, octets: &mut _| write4(&flow(number, false), octets);
        self.0.measure(order, batch, write, yardstick)
    }

    /// Out of it.
    pub fn decap(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let write = |number, octets: &mut _| write4_in6(&flow(number, true), AFTR, LOCAL, octets);
        self.0.measure(order, batch, write, yardstick)
    }
}
