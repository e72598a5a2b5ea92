//! Several workers: the kernel puts packets of NAT44 into the queue of the worker that owns their state, in both directions.

use crate::Interop;
use crate::counters::counter;
use crate::fast_path::endpoint;
use crate::nat44;
use sixway_lab::failure::Result;
use sixway_lab::gateway::run_sixway;
use sixway_lab::probe::numbered::{Numbered, Plan};
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "nat44_hands_hardly_any_packet_over_between_four_workers",
    &["sixway"],
    hardly_any_is_handed_over,
)];

/// Hosts, each with flows to a port of its own of the server, so that ports tell nothing about the hosts' workers.
const HOSTS: u16 = 16;

fn hardly_any_is_handed_over() -> Result<()> {
    let network = nat44::network()?;
    run_sixway(&network, &nat44::SIXWAY.replace("workers = 2", "workers = 4"))?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let mut streams = Vec::new();
    for number in 0..HOSTS {
        let address = format!("192.168.1.{}", 10 + number);
        network.address("client", "up0", &format!("{address}/24"))?;
        streams.push(Numbered::start(&Plan {
            client,
            source: endpoint(&address, 20_000)?,
            server,
            target: endpoint(nat44::SERVER, 1_000 + 37 * number)?,
            listens: endpoint(nat44::SERVER, 1_000 + 37 * number)?,
            flows: 20,
            per_second: 400,
            octets: 64,
        })?);
    }
    sixway_lab::interrupt::pause(Duration::from_secs(3))?;
    for stream in streams {
        let account = stream.end()?;
        assert_eq!((account.lost(), account.reordered()), ([0, 0], [0, 0]));
    }
    let (received, handed_over) = (counter(&network, "link.received")?, counter(&network, "handed_over")?);
    println!("{handed_over} of {received} packets were handed over");
    assert!(received > 20_000, "{received} packets");
    assert!(handed_over * 100 < received, "{handed_over} of {received} packets were handed over");
    Ok(())
}
