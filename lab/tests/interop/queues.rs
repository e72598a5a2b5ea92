//! Several workers: the kernel puts packets of NAT44 into the queue of the worker that owns their state, in both directions.

use crate::Interop;
use crate::counters::counter;
use crate::fast_path::endpoint;
use crate::nat44;
use sixway_lab::failure::Result;
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt::pause;
use sixway_lab::probe::cpu::process_cpu;
use sixway_lab::probe::numbered::{Numbered, Plan};
use sixway_lab::probe::ping;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "nat44_hands_hardly_any_packet_over_between_four_workers",
        &["sixway"],
        hardly_any_is_handed_over,
    ),
    Interop::new("workers_poll_after_a_packet_if_they_should", &["sixway", "ping"], poll_after_a_packet),
];

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
    pause(Duration::from_secs(3))?;
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

fn poll_after_a_packet() -> Result<()> {
    let mut used = Vec::new();
    for busy_poll in ["0 s", "1 s"] {
        let network = nat44::network()?;
        let own = format!("busy_poll = \"{busy_poll}\"\nworkers = 2");
        let process = run_sixway(&network, &nat44::SIXWAY.replace("workers = 2", &own))?;
        pause(Duration::from_secs(1))?;
        let id = network.with_process(process, |process| process.id())?;
        ping(network.host("client")?, nat44::SERVER, 1, 56, Duration::from_millis(5))?;
        let before = process_cpu(id)?;
        pause(Duration::from_millis(800))?;
        used.push(process_cpu(id)? - before);
    }
    // Other tests use the CPUs, too.
    assert!(used[1] > used[0] * 3 && used[1] > Duration::from_millis(100), "{used:?}");
    Ok(())
}
