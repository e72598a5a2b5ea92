//! Small packets: as many as one core can send, receive, forward and count.

use super::column::{Column, Rate};
use super::frame::{CLIENTS, PORT, ethernet, in_ipv4, udp4, udp6};
use super::scene::Middle;
use crate::bench::{Figure, Options, Section, Target};
use crate::failure::Result;
use crate::load::Pattern;
use crate::probe::cpu::cpus;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Flows where there are few.
const FEW: u32 = 1_000;
/// Flows where there are many.
pub const MANY: u32 = 1_000_000;

const SITE4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const RELAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2);

/// What is measured, in the order of the table; the first is the sender alone, the second the yardstick.
const ALONE: &str = "sender alone";
const KERNEL6: &str = "kernel IPv6";
const TAYGA: &str = "tayga";

struct Measured {
    name: &'static str,
    rates: Vec<Rate>,
}

fn pattern(program: &'static str, frame: Vec<u8>) -> Pattern {
    Pattern { program, frame, flows: FEW, at_random: false, train: None }
}

fn to6(destination: Ipv6Addr) -> impl Fn([u8; 6]) -> Pattern {
    move |door| pattern("frames6", ethernet(door, &udp6(CLIENTS, destination)))
}

fn to4(door: [u8; 6]) -> Pattern {
    pattern("frames4", ethernet(door, &udp4(SITE4, 0, SERVER4, PORT)))
}

fn through(prefix: &str) -> Result<Ipv6Addr> {
    format!("{prefix}203.0.113.2")
        .parse()
        .map_err(|_| crate::failure::Failure::Unexpected(format!("{prefix} is no prefix")))
}

fn columns() -> Result<(Vec<Column>, Vec<String>)> {
    let tayga = through("2001:db8:64::")?;
    let middles: Vec<(&'static str, Middle, Box<dyn Fn([u8; 6]) -> Pattern>)> = vec![
        (ALONE, Middle::Nothing, Box::new(to6(SERVER6))),
        (KERNEL6, Middle::Kernel, Box::new(to6(SERVER6))),
        ("kernel IPv4", Middle::Kernel, Box::new(to4)),
        ("kernel IPv4, masquerade", Middle::Masquerade, Box::new(to4)),
        (TAYGA, Middle::Tayga, Box::new(to6(tayga))),
    ];
    let mut ready = Vec::new();
    let mut skipped = Vec::new();
    for (name, middle, pattern) in middles {
        if let Some(why) = middle.cannot_run() {
            skipped.push(format!("{name}: {why}"));
            continue;
        }
        let mut column = Column::new(name, middle.start()?, "client", pattern)?;
        column.settle(4)?;
        ready.push(column);
    }
    Ok((ready, skipped))
}

/// Measures all that can run here.
pub fn run(options: &Options, time: Duration) -> Result<Section> {
    let (columns, skipped) = columns()?;
    let mut measured: Vec<_> =
        columns.iter().map(|column| Measured { name: column.name, rates: Vec::new() }).collect();
    for number in 1..=options.repeats() {
        options.say(&format!("fast path, small packets: round {number} of {}", options.repeats()));
        for (column, measured) in columns.iter().zip(&mut measured) {
            measured.rates.push(column.measure(time)?);
        }
    }
    let mut figures = Vec::new();
    for one in &measured {
        let rate = one.rates.iter().map(|rate| rate.per_second / 1e6).collect();
        figures.push(Figure::new(one.name, "Mpps", rate));
    }
    for one in &measured {
        figures.push(Figure::new(one.name, "ns CPU/packet", one.rates.iter().map(|rate| rate.ns).collect()));
    }
    Ok(Section { title: "Small packets", how: format!("{} CPUs", cpus()), figures, skipped })
}
