//! Clients without manners: each costs others nothing.

use super::{RECORDS, SERVER, address};
use crate::Interop;
use crate::dns64_upstreams::message::query;
use sixway_lab::dns64::{Asker, Flags};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::{run_sixway, show};
use sixway_lab::name_service::{DNS64, RESOLVER, serve};
use sixway_lab::topology::{Network, client_gateway_server};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_client_with_hundreds_of_connections_takes_none_from_others",
        &["sixway", "nsd", "taskset"],
        many_connections,
    ),
    Interop::new(
        "a_client_that_has_said_all_or_says_it_slowly_is_answered",
        &["sixway", "nsd", "taskset"],
        odd_streams,
    ),
    Interop::new(
        "a_client_that_reads_late_gets_all_answers_or_an_end",
        &["sixway", "nsd", "taskset"],
        reads_late,
    ),
    Interop::new(
        "datagrams_that_are_no_queries_are_accounted_for",
        &["sixway", "nsd", "taskset"],
        no_queries,
    ),
];

/// A network whose client has the addresses 2 to 9 of its link.
fn gateway() -> Result<(Network, u32)> {
    let network = client_gateway_server()?;
    serve(&network, RECORDS)?;
    for last in 3..10 {
        network.address("client", "up0", &format!("2001:db8:1::{last}/64"))?;
    }
    let process = run_sixway(&network, &format!("{NAT64}{DNS64}"))?;
    Ok((network, process))
}

fn server() -> SocketAddr {
    SocketAddr::new(address(RESOLVER).into(), 53)
}

fn connect(network: &Network) -> Result<TcpStream> {
    let asking = || "connecting".to_owned();
    let stream = network.host("client")?.enter(|| TcpStream::connect(server()))?.asking(asking)?;
    stream.set_read_timeout(Some(Duration::from_secs(6))).asking(asking)?;
    stream.set_nodelay(true).asking(asking)?;
    Ok(stream)
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

/// The next message of a stream; `None`: it has ended.
fn next(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).ok()?;
    Some(message)
}

/// Whether a message has records in its answer section.
fn answers(message: &[u8]) -> bool {
    message.get(6..8).is_some_and(|count| count != [0, 0])
}

/// It asks from 2001:db8:1::2; who has another address is answered immediately.
fn many_connections() -> Result<()> {
    let (network, _) = gateway()?;
    let client = network.host("client")?;
    client.ip("-6 route replace 2001:db8:1::1/128 dev up0 src 2001:db8:1::2")?;
    let mut held: Vec<TcpStream> = (0..300).filter_map(|_| connect(&network).ok()).collect();
    let slow = framed(&query(1, "shop.example"));
    held.iter_mut().for_each(|stream| drop(stream.write_all(&slow[..5])));
    client.ip("-6 route replace 2001:db8:1::1/128 dev up0 src 2001:db8:1::9")?;
    let start = Instant::now();
    let mut stream = connect(&network)?;
    stream.write_all(&slow).asking(|| "asking".to_owned())?;
    let answer = next(&mut stream);
    let took = start.elapsed();
    assert!(answer.is_some_and(|answer| answers(&answer)), "another address by TCP");
    assert!(took < Duration::from_secs(3), "it took {took:?}");
    let reply = Asker::open(client, server())?.ask("shop.example", "AAAA", Flags::NONE)?;
    assert_eq!(reply.data("AAAA"), [SERVER], "by UDP");
    Ok(())
}

fn odd_streams() -> Result<()> {
    let (network, _) = gateway()?;
    let asking = || "asking".to_owned();
    let question = framed(&query(7, "shop.example"));
    let mut half = connect(&network)?;
    half.write_all(&question).asking(asking)?;
    half.shutdown(Shutdown::Write).asking(asking)?;
    assert!(next(&mut half).is_some_and(|answer| answers(&answer)), "it has said all");
    assert!(next(&mut half).is_none(), "and is at its end");
    let mut slow = connect(&network)?;
    for octet in &question {
        slow.write_all(&[*octet]).asking(asking)?;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(next(&mut slow).is_some_and(|answer| answers(&answer)), "octet after octet");
    let mut nonsense = connect(&network)?;
    nonsense.write_all(&[0xff; 40_000]).ok();
    assert!(next(&mut nonsense).is_none_or(|answer| !answers(&answer)), "nonsense");
    let mut after = connect(&network)?;
    after.write_all(&question).asking(asking)?;
    assert!(next(&mut after).is_some_and(|answer| answers(&answer)), "and others go on");
    Ok(())
}

/// 3,000 queries are written before the first answer is read.
fn reads_late() -> Result<()> {
    const COUNT: u16 = 3_000;
    let (network, process) = gateway()?;
    let mut stream = connect(&network)?;
    let mut writer = stream.try_clone().asking(|| "cloning".to_owned())?;
    let writing = std::thread::spawn(move || {
        (0..COUNT).take_while(|id| writer.write_all(&framed(&query(*id, "shop.example"))).is_ok()).count()
    });
    std::thread::sleep(Duration::from_secs(2));
    let reply = Asker::open(network.host("client")?, server())?.ask("shop.example", "AAAA", Flags::NONE)?;
    assert_eq!(reply.data("AAAA"), [SERVER], "others meanwhile");
    let mut seen = vec![false; COUNT.into()];
    let mut came = 0;
    while came < usize::from(COUNT)
        && let Some(answer) = next(&mut stream)
    {
        let id = usize::from(u16::from_be_bytes([answer[0], answer[1]]));
        assert!(!std::mem::replace(&mut seen[id], true), "{id} is answered twice");
        came += 1;
    }
    let written = writing.join().unwrap_or_default();
    network.with_process(process, |process| process.must_run())??;
    match came == written {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{came} answers to {written} queries"))),
    }
}

/// Cut queries, replies, random octets: what is a query has an outcome, the rest is not one; the next client is answered.
fn no_queries() -> Result<()> {
    let (network, process) = gateway()?;
    let asking = || "sending".to_owned();
    let socket = network.host("client")?.enter(|| UdpSocket::bind("[::]:0"))?.asking(asking)?;
    socket.connect(server()).asking(asking)?;
    let whole = query(9, "shop.example");
    let mut state = 1_u32;
    for number in 0..5_000_usize {
        let mut octets = whole.clone();
        for _ in 0..number % 4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 8) as usize % octets.len();
            octets[at] = state as u8;
        }
        octets.truncate(if number % 3 == 0 { number / 3 % (whole.len() + 1) } else { whole.len() });
        socket.send(&octets).asking(asking)?;
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(Duration::from_secs(6));
    let reply = Asker::open(network.host("client")?, server())?.ask("shop.example", "AAAA", Flags::NONE)?;
    assert_eq!(reply.data("AAAA"), [SERVER]);
    network.with_process(process, |process| process.must_run())??;
    let gateway = network.host("gateway")?;
    let said =
        gateway.run(show(&network, &["dns64", "--json"])?, Duration::from_secs(5))?.succeeded()?.stdout;
    let shown: serde_json::Value =
        serde_json::from_str(&said).map_err(|error| Failure::Unexpected(format!("{error}: {said}")))?;
    let outcomes: Option<u64> =
        shown["outcomes"].as_array().map(|rows| rows.iter().filter_map(|row| row["count"].as_u64()).sum());
    assert_eq!((shown["queries"].as_u64(), shown["waiting"].as_u64()), (outcomes, Some(0)), "{said}");
    Ok(())
}
