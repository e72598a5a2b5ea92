//! Flows through a stateful translator of any kind: they are opened and checked once, and their packets measured.

use super::engine_bench::{EngineBench, RUN, shuffled, wrong};
use super::packets::{Flow, SIZE, read4, write4};
use super::yardstick::{Round, Yardstick};
use crate::failure::{Asking as _, Failure, Result};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::{QUARANTINE, UDP_DEFAULT};
use sixway_wire::Endpoint4;
use std::marker::PhantomData;
use std::net::Ipv4Addr;

/// Flows of one inside host.
pub const PER_HOST: u32 = 16;
/// Ports of an outside address: 1024 to 65535.
pub const PORTS: u32 = 64_512;
/// The orders in which sessions are created, and in which their packets come.
const CREATION: u64 = 0;
const USE: u64 = 1;

/// A stateful translator, and the packets that inside hosts send and receive.
pub trait Translation {
    /// Its name.
    const NAME: &'static str;

    /// An engine with a pool of `2^(32 - length)` addresses and room for this number of sessions.
    fn engine(length: u8, room: u32) -> Result<Engine>;

    /// Writes a flow's packet, as its inside host sends it; its length.
    fn write_out(number: u32, octets: &mut [u8; SIZE]) -> usize;

    /// Whether these are the octets of the answer, as the inside host receives it.
    fn is_answer(number: u32, octets: &[u8]) -> bool;

    /// Octets that the tables have reserved.
    fn reserved(engine: &mut Engine) -> usize;
}

/// The server of a flow.
pub fn server(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([203, 0, 113, 0]) | (number % 251))
}

/// The port of a flow's inside host: sixteen different ones, odd and even alike.
pub const fn port(number: u32) -> u16 {
    1_024 + (number.wrapping_mul(40_503) % 64_000) as u16
}

/// The server's answer.
pub fn inbound(number: u32, outside: Endpoint4) -> Flow<Ipv4Addr> {
    Flow {
        source: server(number),
        source_port: 443,
        destination: outside.address,
        destination_port: outside.port,
    }
}

/// A fault of the benchmark's own configuration.
pub fn fault(what: &str) -> Failure {
    Failure::Unexpected(format!("the benchmark's own configuration: {what}"))
}

/// Flows of a translator.
pub struct Established<T> {
    /// The engine.
    pub machine: EngineBench,
    /// Their number.
    pub sessions: u32,
    outside: Vec<Endpoint4>,
    translation: PhantomData<T>,
}

impl<T: Translation> Established<T> {
    /// Makes the sessions, and checks that each is translated rightly both ways.
    pub fn make(sessions: u32, length: u8, room: u32) -> Result<Self> {
        let mut machine = EngineBench::new(T::engine(length, room)?);
        let order = shuffled(sessions, CREATION);
        let mut outside = vec![Endpoint4::new(Ipv4Addr::UNSPECIFIED, 0); sessions as usize];
        machine.pass(&order, T::write_out, |number, octets| {
            let flow = read4(octets).ok_or_else(|| wrong(number, octets))?;
            outside[number as usize] = Endpoint4::new(flow.source, flow.source_port);
            let is_right = flow.destination == server(number) && flow.destination_port == 443;
            if is_right { Ok(()) } else { Err(wrong(number, octets)) }
        })?;
        let mut flows = Self { machine, sessions, outside, translation: PhantomData };
        let Self { machine, outside, .. } = &mut flows;
        let write = |number: u32, octets: &mut _| write4(&inbound(number, outside[number as usize]), octets);
        machine.pass(&order, write, |number, octets| {
            if T::is_answer(number, octets) { Ok(()) } else { Err(wrong(number, octets)) }
        })?;
        Ok(flows)
    }

    /// The order in which packets come: each flow once, but at least 100,000 packets.
    pub fn order(&self) -> Vec<u32> {
        shuffled(self.sessions, USE).repeat((100_000 / self.sessions as usize).max(1))
    }

    /// Packets of these flows from their hosts.
    pub fn out(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        self.machine.measure(order, batch, T::write_out, yardstick)
    }

    /// The answers.
    pub fn home(&mut self, order: &[u32], batch: usize, yardstick: &mut Yardstick) -> Result<Round> {
        let Self { machine, outside, .. } = self;
        let write = |number: u32, octets: &mut _| write4(&inbound(number, outside[number as usize]), octets);
        machine.measure(order, batch, write, yardstick)
    }
}

/// A translator whose pool of sixteen addresses is empty again after a million sessions: its memory comes from the kernel already.
pub fn used<T: Translation>() -> Result<EngineBench> {
    let mut machine = EngineBench::new(T::engine(28, 1 << 20)?);
    let numbers: Vec<u32> = (0..16 * PORTS).collect();
    machine.pass(&numbers, T::write_out, |_, _| Ok(()))?;
    emptied(&mut machine)?;
    Ok(machine)
}

/// Waits, in the engine's world, until every session has expired and no port is in quarantine.
pub fn emptied(machine: &mut EngineBench) -> Result<()> {
    machine.rest(UDP_DEFAULT, |engine| engine.stateful().all(|one| one.occupancy().bindings == 0))?;
    machine.rest(QUARANTINE, |engine| engine.stateful().all(|one| one.quarantined() == 0))
}

/// Packets after which two translators that are compared change places.
pub const SLICE: usize = 16 * RUN;

/// Memory of this process that lies in RAM.
pub fn resident_octets() -> Result<u64> {
    let said =
        std::fs::read_to_string("/proc/self/status").asking(|| "reading /proc/self/status".to_owned())?;
    said.lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| kib * 1_024)
        .ok_or_else(|| Failure::Unexpected("no VmRSS in /proc/self/status".to_owned()))
}
