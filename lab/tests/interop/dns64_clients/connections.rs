//! While two subnets take all connections that they can get, what does a third one lose?

use super::{RECORDS, address};
use crate::Interop;
use crate::dns64_upstreams::message::query;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::name_service::{DNS64, RESOLVER, serve};
use sixway_lab::topology::{Network, client_gateway_server};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[Interop::new(
    "two_subnets_of_twenty_addresses_leave_a_third_its_connections",
    &["sixway", "nsd", "taskset"],
    two_subnets,
)];

/// Subnets behind the client; it has the addresses 1 to 20 of each.
const SUBNETS: [&str; 3] = ["2001:db8:1:a", "2001:db8:1:b", "2001:db8:1:c"];

fn gateway() -> Result<Network> {
    let network = client_gateway_server()?;
    serve(&network, RECORDS)?;
    for subnet in SUBNETS {
        for host in 1..=20 {
            network.address("client", "up0", &format!("{subnet}::{host:x}/128"))?;
        }
        network.host("gateway")?.ip(&format!("-6 route add {subnet}::/64 dev in0"))?;
    }
    let listen = format!("listen = [\"{RESOLVER}\"]");
    let limited = format!("{listen}\nallow = [\"2001:db8:1::/48\"]\nconnections = 600");
    run_sixway(&network, &format!("{NAT64}{}", DNS64.replace(&listen, &limited)))?;
    Ok(network)
}

/// A connection from one of the client's addresses.
fn connect(network: &Network, own: &str) -> Result<TcpStream> {
    let client = network.host("client")?;
    client.ip(&format!("-6 route replace {RESOLVER}/128 dev up0 src {own}"))?;
    let server = SocketAddr::new(address(RESOLVER).into(), 53);
    let asking = || format!("connecting from {own}");
    let stream = client.enter(|| TcpStream::connect(server))?.asking(asking)?;
    stream.set_read_timeout(Some(Duration::from_secs(3))).asking(asking)?;
    Ok(stream)
}

fn is_answered(stream: &mut TcpStream) -> bool {
    let question = query(1, "shop.example");
    let framed = [&(question.len() as u16).to_be_bytes()[..], &question].concat();
    let mut head = [0; 10];
    stream.write_all(&framed).is_ok() && stream.read_exact(&mut head).is_ok() && head[9] > 0
}

fn two_subnets() -> Result<()> {
    let network = gateway()?;
    let mut held = Vec::new();
    for subnet in &SUBNETS[..2] {
        for host in 1..=20 {
            let own = format!("{subnet}::{host:x}");
            held.push(connect(&network, &own)?);
            // The route stays that of this address.
            let client = network.host("client")?;
            let server = SocketAddr::new(address(RESOLVER).into(), 53);
            let more = client.enter(|| (1..20).filter_map(|_| TcpStream::connect(server).ok()).collect())?;
            held.extend::<Vec<_>>(more);
        }
    }
    for host in 1..=20 {
        let begun = Instant::now();
        let mut stream = connect(&network, &format!("{}::{host:x}", SUBNETS[2]))?;
        let is_answered = is_answered(&mut stream);
        let took = begun.elapsed();
        if !is_answered || took > Duration::from_secs(2) {
            let what = format!("host {host}: answered {is_answered} after {took:?}, {} held", held.len());
            return Err(Failure::Unexpected(what));
        }
        held.push(stream);
    }
    Ok(())
}
