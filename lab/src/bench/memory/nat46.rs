//! NAT46 next to NAT64, in turn, in slices of some thousand packets: packets of clients next to packets from the IPv4 side, and those of servers next to
//! those of IPv6 hosts.

use super::engine_bench::{EngineBench, RUN, shuffled, wrong};
use super::established::{Established, PER_HOST, SLICE, fault, port};
use super::nat44::{Compared, Rounds};
use super::nat64::SixToFour;
use super::packets::{Flow, SIZE, read4, read6, write4, write6};
use super::yardstick::Yardstick;
use crate::bench::{Figure, Options, Section};
use crate::failure::Result;
use crate::terminal::thousands;
use sixway_dataplane::Instant;
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::nat46::{MappingSettings, Mappings, Nat46Config, Sharing};
use sixway_dataplane::translate::Policy;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

const CLIENTS: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const PREFIX: u128 = 0x2001_0db8_0046 << 80;
const SERVERS: u128 = 0x2001_0db8_0080 << 80;
const ROOM: u32 = 1 << 20;
/// Numbers of mappings, and what a packet may cost there, in packets of NAT64.
const MAPPINGS: [u32; 2] = [100_000, 1_000];
const MOST: f64 = 1.1;
/// A TTL that does not end while it is measured, in seconds.
const TTL: u32 = 1 << 30;

/// Mappings of clients with sixteen servers each.
struct Mapped {
    machine: EngineBench,
    /// The address of each flow's server.
    addresses: Vec<Ipv4Addr>,
}

const fn client(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(CLIENTS | (number / PER_HOST))
}

fn server(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(SERVERS | u128::from(number))
}

fn image(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(PREFIX | u128::from(client(number).to_bits()))
}

impl Mapped {
    fn make(count: u32) -> Result<Self> {
        let prefix = |text: &str| text.parse().map_err(|_| fault("no prefix"));
        let settings = MappingSettings {
            pool: "198.18.0.0/16".parse().map_err(|_| fault("no pool"))?,
            excluded: Vec::new(),
            statics: Vec::new(),
            clients: vec!["10.0.0.0/8".parse().map_err(|_| fault("no clients"))?],
            servers: vec![prefix("2000::/3")?],
            not_servers: Vec::new(),
            sharing: Sharing::Client,
            max_mappings: ROOM,
            max_per_client: 1_024,
            by_name: true,
        };
        let table = Mappings::in_memory(settings.clone(), [1, 2]).map_err(|_| fault("no mappings"))?;
        let map = |number: u32| table.map(client(number), server(number), TTL, Instant(0));
        let addresses: std::result::Result<Vec<_>, _> = (0..count).map(map).collect();
        let addresses = addresses.map_err(|refused| fault(refused.text()))?;
        let nat46 = Nat46Config {
            prefix: Rfc6052::new(prefix("2001:db8:46::/96")?, true).map_err(|_| fault("no prefix"))?,
            table: Some(Arc::new(table)),
            mappings: settings,
            policy: Policy::default(),
        };
        let config = EngineConfig { others: vec![nat46.into()], seed: [1, 2], ..EngineConfig::default() };
        let engine = Engine::new(&config).map_err(|error| fault(&error.to_string()))?;
        let mut made = Self { machine: EngineBench::new(engine), addresses };
        let order = shuffled(count, 0);
        let Self { machine, addresses } = &mut made;
        machine.pass(
            &order,
            |number, octets| write_out(number, addresses, octets),
            |number, octets| {
                let right = Flow {
                    source: image(number),
                    source_port: port(number),
                    destination: server(number),
                    destination_port: 443,
                };
                if read6(octets) == Some(right) { Ok(()) } else { Err(wrong(number, octets)) }
            },
        )?;
        machine.pass(&order, write_in, |number, octets| {
            let right = Flow {
                source: addresses[number as usize],
                source_port: 443,
                destination: client(number),
                destination_port: port(number),
            };
            if read4(octets) == Some(right) { Ok(()) } else { Err(wrong(number, octets)) }
        })?;
        Ok(made)
    }
}

/// A client's packet.
fn write_out(number: u32, addresses: &[Ipv4Addr], octets: &mut [u8; SIZE]) -> usize {
    let flow = Flow {
        source: client(number),
        source_port: port(number),
        destination: addresses[number as usize],
        destination_port: 443,
    };
    write4(&flow, octets)
}

/// A server's.
fn write_in(number: u32, octets: &mut [u8; SIZE]) -> usize {
    write6(
        &Flow {
            source: server(number),
            source_port: 443,
            destination: image(number),
            destination_port: port(number),
        },
        octets,
    )
}

/// Measures all of it.
pub fn measure(options: &Options, yardstick: &mut Yardstick) -> Result<Section> {
    let mut figures: Vec<Figure> = Vec::new();
    for count in MAPPINGS {
        let mut mapped = Mapped::make(count)?;
        let mut peer = Established::<SixToFour>::make(count, 24, ROOM)?;
        let order = peer.order();
        for batch in [RUN, 1] {
            let of = format!("{} mappings, batches of {batch}", thousands(u64::from(count)));
            options.say(&format!("memory: NAT46, {of}"));
            let (mut to6, mut to4) = (Rounds::default(), Rounds::default());
            for _ in 0..options.repeats() {
                let (mut out, mut home) = (Compared::default(), Compared::default());
                for slice in order.chunks(SLICE) {
                    let Mapped { machine, addresses } = &mut mapped;
                    let write = |number: u32, octets: &mut _| write_out(number, addresses, octets);
                    let this = machine.measure(slice, batch, write, yardstick)?;
                    out.push(&this, &peer.home(slice, batch, yardstick)?);
                    let this = machine.measure(slice, batch, write_in, yardstick)?;
                    home.push(&this, &peer.out(slice, batch, yardstick)?);
                }
                to6.push(&out);
                to4.push(&home);
            }
            figures.extend(to6.figures(&format!("{of}, IPv4 to IPv6"), "NAT64", "ns/packet", MOST));
            figures.extend(to4.figures(&format!("{of}, IPv6 to IPv4"), "NAT64", "ns/packet", MOST));
        }
    }
    Ok(Section {
        title: "NAT46 in memory",
        how: "As NAT64, with which it is measured in turn, in slices of 4,096 packets; clients have 16 servers each. Packets of clients are \
              compared with those that NAT64 translates from IPv4 to IPv6, and those of servers with those from IPv6 to IPv4."
            .to_owned(),
        figures,
        skipped: Vec::new(),
    })
}
