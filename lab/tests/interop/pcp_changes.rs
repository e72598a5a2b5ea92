//! What PCP clients hear without asking: mapping updates and announcements (RFC 6887 §14), after a reload with another external address.

use crate::Interop;
use crate::pcp::{SIXWAY, map};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::{ask, run_sixway};
use sixway_lab::probe::{fetch, serve_page};
use sixway_lab::topology::Network;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[Interop::new(
    "a_reload_with_another_external_address_is_told_to_the_client_where_it_asked_and_to_all_by_announcements",
    &["sixway", "nginx", "curl"],
    renumbered,
)];

/// The client's port, on both hosts.
const PORT: u16 = 40_000;
/// Where announcements come to.
const CLIENT_PORT: u16 = 5_350;

fn socket(network: &Network, host: &str, at: (Ipv4Addr, u16)) -> Result<UdpSocket> {
    let socket = network.host(host)?.enter(|| UdpSocket::bind(at))?;
    let socket = socket.map_err(|error| Failure::Unexpected(format!("{host}: {at:?}: {error}")))?;
    let patience = Some(Duration::from_millis(100));
    socket.set_read_timeout(patience).map_err(|error| Failure::Unexpected(error.to_string()))?;
    Ok(socket)
}

fn send(socket: &UdpSocket, octets: &[u8], to: &str) -> Result<()> {
    socket.send_to(octets, to).map(drop).map_err(|error| Failure::Unexpected(format!("{to}: {error}")))
}

/// All datagrams until `enough` says so, or for ten seconds.
fn heard(
    socket: &UdpSocket,
    enough: impl Fn(&[(SocketAddr, Vec<u8>)]) -> bool,
) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut all, end, mut octets) = (Vec::new(), Instant::now() + Duration::from_secs(10), [0; 1_200]);
    while Instant::now() < end && !enough(&all) {
        if let Ok((length, from)) = socket.recv_from(&mut octets) {
            all.push((from, octets[..length].to_vec()));
        }
    }
    all
}

/// The Epoch Time of a response.
fn epoch(octets: &[u8]) -> u32 {
    octets.get(8..12).and_then(|it| it.try_into().ok()).map_or(u32::MAX, u32::from_be_bytes)
}

fn renumbered() -> Result<()> {
    let network = crate::nat44::network()?;
    // The client knows the gateway by its second address. The neighbour has the client's address, too: what leaves by the wrong interface is heard.
    network.address("gateway", "in0", "192.168.1.9/24")?;
    network.address("neighbour", "up0", "192.168.1.2/32")?;
    run_sixway(&network, SIXWAY)?;
    serve_page(&network, "client", "192.168.1.2", "from the client")?;
    let address = Ipv4Addr::new(192, 168, 1, 2);
    let asking = socket(&network, "client", (address, PORT))?;
    let wrong = socket(&network, "neighbour", (address, PORT))?;
    let neighbour = socket(&network, "neighbour", (Ipv4Addr::new(192, 168, 2, 2), PORT))?;
    let listening = [
        socket(&network, "client", (Ipv4Addr::UNSPECIFIED, CLIENT_PORT))?,
        socket(&network, "neighbour", (Ipv4Addr::UNSPECIFIED, CLIENT_PORT))?,
    ];
    send(&asking, &map("192.168.1.2", 0), "192.168.1.9:5351")?;
    let answer = heard(&asking, |all| !all.is_empty());
    let (from, octets) = answer.first().ok_or_else(|| Failure::Unexpected("no answer by PCP".into()))?;
    assert_eq!((from.to_string().as_str(), octets[3]), ("192.168.1.9:5351", 0));
    assert_eq!(octets[56..60], [192, 0, 2, 1]);
    // Those of the start are over for the next seconds, and the Epoch Time can be told from one that begins again.
    std::thread::sleep(Duration::from_millis(4_500));
    for socket in &listening {
        while socket.recv_from(&mut [0; 100]).is_ok() {}
    }
    let mut announce = vec![2, 0, 0, 0, 0, 0, 0, 0];
    announce.extend(Ipv4Addr::new(192, 168, 2, 2).to_ipv6_mapped().octets());
    send(&neighbour, &announce, "192.168.2.1:5351")?;
    let before = heard(&neighbour, |all| !all.is_empty());
    assert!(before.first().is_some_and(|(_, octets)| epoch(octets) >= 4), "{before:?}");

    let file = network.folder().join("sixway-gateway.toml");
    let text = std::fs::read_to_string(&file).asking(|| format!("reading {}", file.display()))?;
    let text = text.replace("addresses = [\"192.0.2.1\"]", "addresses = [\"192.0.2.2\"]");
    std::fs::write(&file, text).asking(|| format!("writing {}", file.display()))?;
    let reload = ask(&network, &["reload"])?;
    network.host("gateway")?.run(reload, Duration::from_secs(30))?.succeeded()?;

    let updates = heard(&asking, |all| all.len() >= 3);
    assert_eq!(updates.len(), 3, "{updates:?}");
    for (from, octets) in &updates {
        assert_eq!(from.to_string(), "192.168.1.9:5351", "where the client asked");
        assert_eq!((&octets[..4], octets.len()), (&[2, 0x81, 0, 0][..], 60));
        assert_eq!(octets[24..36], [7; 12], "the nonce");
        assert_eq!(octets[56..60], [192, 0, 2, 2]);
        assert!(epoch(octets) < 4, "the Epoch Time begins again: {octets:?}");
    }
    assert!(wrong.recv_from(&mut [0; 100]).is_err(), "an update left by another interface");
    for (socket, expected) in
        listening.iter().zip([&["192.168.1.1:5351", "192.168.1.9:5351"][..], &["192.168.2.1:5351"][..]])
    {
        let said = |all: &[(SocketAddr, Vec<u8>)], from: &str| {
            let is_reset = |octets: &[u8]| octets[..4] == [2, 0x80, 0, 0] && epoch(octets) < 4;
            all.iter().any(|(source, octets)| source.to_string() == from && is_reset(octets))
        };
        let all = heard(socket, |all| expected.iter().all(|from| said(all, from)));
        assert!(expected.iter().all(|from| said(&all, from)), "{expected:?}: {all:?}");
    }
    let port = u16::from_be_bytes([updates[0].1[42], updates[0].1[43]]);
    assert_eq!(fetch(&network, "server", &format!("http://192.0.2.2:{port}/"))?.body, "from the client");
    Ok(())
}
