//! Where clients are: without an address but the link's, at any of the gateway's addresses, with IPv4; many at the same time, and one too many.

use super::{RECORDS, SERVER, address};
use crate::Interop;
use crate::dns64_upstreams::message::query;
use sixway_lab::dns64::{Asker, Flags};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::run_sixway;
use sixway_lab::name_service::{DNS64, RESOLVER, serve};
use sixway_lab::topology::{Network, client_gateway_server};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_client_with_a_link_local_address_only_is_answered",
        &["sixway", "nsd", "taskset"],
        link_local,
    ),
    Interop::new("answers_come_from_the_address_that_was_asked", &["sixway", "nsd", "taskset"], any_address),
    Interop::new(
        "a_client_beyond_its_rate_is_held_back_and_others_are_not",
        &["sixway", "nsd", "taskset"],
        rate,
    ),
];

/// A gateway whose section `[dns64]` begins otherwise.
fn gateway(listen: &str) -> Result<Network> {
    let network = client_gateway_server()?;
    serve(&network, RECORDS)?;
    let own = format!("listen = [\"{RESOLVER}\"]");
    run_sixway(&network, &format!("{NAT64}{}", DNS64.replace(&own, listen)))?;
    Ok(network)
}

fn by_tcp(network: &Network, host: &str, server: SocketAddr) -> Result<bool> {
    let asking = || format!("asking {server} by TCP");
    let mut stream = network.host(host)?.enter(|| TcpStream::connect(server))?.asking(asking)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).asking(asking)?;
    let question = query(1, "shop.example");
    stream.write_all(&[&(question.len() as u16).to_be_bytes()[..], &question].concat()).asking(asking)?;
    let mut head = [0; 10];
    stream.read_exact(&mut head).asking(asking)?;
    Ok(head[9] > 0)
}

fn link_local() -> Result<()> {
    let network = gateway(&format!("listen = [\"{RESOLVER}\"]"))?;
    let client = network.host("client")?;
    client.ip("-6 address flush dev up0 scope global")?;
    client.ip("-6 route replace 2001:db8:1::/64 dev up0")?;
    let server = SocketAddr::new(address(RESOLVER).into(), 53);
    let reply = Asker::open(client, server)?.ask("shop.example", "AAAA", Flags::NONE)?;
    assert_eq!(reply.data("AAAA"), [SERVER], "{reply:?}");
    assert!(by_tcp(&network, "client", server)?);
    Ok(())
}

/// The sockets are connected: they hear only whom they asked.
fn any_address() -> Result<()> {
    let network =
        gateway("listen = [\"[::]:53\", \"0.0.0.0:53\"]\nallow = [\"2001:db8:1::/64\", \"203.0.113.0/24\"]")?;
    network.address("gateway", "in0", "2001:db8:1::53/64")?;
    network.address("gateway", "out0", "203.0.113.53/24")?;
    for last in [RESOLVER, "2001:db8:1::53"] {
        let server = SocketAddr::new(address(last).into(), 53);
        let reply = Asker::open(network.host("client")?, server)?.ask("shop.example", "AAAA", Flags::NONE)?;
        assert_eq!(reply.data("AAAA"), [SERVER], "{last}");
        assert!(by_tcp(&network, "client", server)?, "{last}");
    }
    for last in [1, 53] {
        let four = Ipv4Addr::new(203, 0, 113, last);
        let mapped = SocketAddr::new(four.to_ipv6_mapped().into(), 53);
        let reply = Asker::open(network.host("server")?, mapped)?.ask("shop.example", "AAAA", Flags::NONE)?;
        assert_eq!(reply.data("AAAA"), [SERVER], "{four}");
        assert!(by_tcp(&network, "server", SocketAddr::new(IpAddr::V4(four), 53))?, "{four}");
    }
    Ok(())
}

/// 20 queries a second, 40 at the same time, for each /64; the other one is the gateway's second link's.
fn rate() -> Result<()> {
    let network =
        gateway(&format!("listen = [\"{RESOLVER}\", \"203.0.113.1\"]\nqueries_per_second = 20\nburst = 40"))?;
    let asking = || "asking".to_owned();
    let mapped = SocketAddr::new(Ipv4Addr::new(203, 0, 113, 1).to_ipv6_mapped().into(), 53);
    let other = || Asker::open(network.host("server")?, mapped)?.ask("shop.example", "AAAA", Flags::NONE);
    // What is in the cache is answered first. Else only TC is, and of 256 such answers the client's socket is full.
    other()?;
    let socket = network.host("client")?.enter(|| UdpSocket::bind("[::]:0"))?.asking(asking)?;
    socket.connect((RESOLVER, 53)).asking(asking)?;
    let begun = Instant::now();
    for number in 0..400 {
        socket.send(&query(number, "shop.example")).asking(asking)?;
    }
    // Every query has an answer, most of them without records and with TC; under load the first may take a while.
    socket.set_read_timeout(Some(Duration::from_secs(3))).asking(asking)?;
    let (mut room, mut records) = ([0; 2_048], 0);
    for _ in 0..400 {
        let Ok(length) = socket.recv(&mut room) else { break };
        records += usize::from(length > 7 && room[7] > 0);
    }
    let earned = 20 * (begun.elapsed().as_secs() as usize + 1);
    assert_eq!(other()?.data("AAAA"), [SERVER], "another client");
    std::thread::sleep(Duration::from_millis(1_500));
    let server = SocketAddr::new(address(RESOLVER).into(), 53);
    let later = Asker::open(network.host("client")?, server)?.ask("shop.example", "AAAA", Flags::NONE)?;
    assert_eq!(later.data("AAAA"), [SERVER], "the same client later");
    match (35..=40 + earned).contains(&records) {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{records} of 400 queries at once got records"))),
    }
}
