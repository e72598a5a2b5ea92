//! Two AFTRs with one anycast address, and a B4 whose route moves from one to the other (RFC 6908 §2.7): cold standby.
//!
//! ```text
//! one ─── b4 ─── middle ─┬─ gateway (AFTR, 2001:db8:a::1, 198.51.100.0/28) ──┬─ server
//! 10.1.0.2       IPv6    └─ spare   (AFTR, 2001:db8:a::1, 198.51.100.16/28) ─┘  203.0.113.2
//! ```

use crate::Interop;
use crate::counters::no_checksum_is_wrong;
use crate::tunnels::carriage::pings_come_back;
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::gateway::{run_sixway_on, show_on};
use sixway_lab::topology::Network;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "sessions_wait_at_their_aftr_while_a_route_leads_to_another_one_and_go_on_when_it_is_back",
    &["sixway", "ping"],
    route_moves,
)];

const SERVER: &str = "203.0.113.2";
const AFTRS: [&str; 2] = ["gateway", "spare"];
/// How long nothing comes where nothing is expected.
const SILENCE: Duration = Duration::from_secs(2);
/// How long TCP may take to send again what was lost.
const PATIENCE: Duration = Duration::from_secs(30);

const B4: &str =
    "[gateway]\nworkers = 1\n\n[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"2001:db8:a::1\"\n";

/// The same but for the pool (RFC 6333 §8.1): answers come back to the AFTR that has the session. Both forward the same port to the same host.
fn aftr(number: u8) -> String {
    let (own, pool, first) = (250 + number, 16 * number, 16 * number + 1);
    format!(
        r#"[gateway]
workers = 1
ipv4_address = "192.0.2.{own}"

[[pool]]
name = "main"
addresses = ["198.51.100.{pool}/28"]

[ds_lite]
role = "aftr"
addresses = ["2001:db8:a::1"]
clients = ["2001:db8:99::/48"]
pool = "main"

[[ds_lite.static]]
protocol = "udp"
softwire = "2001:db8:99::b4"
inside = "10.1.0.2:9000"
outside = "198.51.100.{first}:9000"
"#
    )
}

/// The AFTR's number that an address of a pool belongs to.
fn aftr_of(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..3] == [198, 51, 100] => usize::from(ip.octets()[3] / 16),
        _ => usize::MAX,
    }
}

fn network() -> Result<Network> {
    let network = Network::new(&["one", "b4", "middle", "gateway", "spare", "server"])?;
    network.link(("one", "up0"), ("b4", "in0"))?;
    network.link(("b4", "out0"), ("middle", "down0"))?;
    for (number, aftr) in AFTRS.into_iter().enumerate() {
        network.link(("middle", &format!("up{number}")), (aftr, "out0"))?;
        network.link((aftr, "in0"), ("server", &format!("down{number}")))?;
        network.address("middle", &format!("up{number}"), &format!("2001:db8:{number}::1/64"))?;
        network.address(aftr, "out0", &format!("2001:db8:{number}::8/64"))?;
        network.address(aftr, "in0", &format!("203.0.113.{}/24", 10 + number))?;
        network.route(aftr, &format!("default via 2001:db8:{number}::1"))?;
    }
    for change in [
        "link add lan0 type bridge",
        "link set down0 master lan0",
        "link set down1 master lan0",
        "link set lan0 up",
    ] {
        network.host("server")?.ip(change)?;
    }
    for (host, device, address) in [
        ("one", "up0", "10.1.0.2/24"),
        ("b4", "in0", "10.1.0.1/24"),
        ("b4", "out0", "2001:db8:99::1/64"),
        ("middle", "down0", "2001:db8:99::2/64"),
        ("server", "lan0", "203.0.113.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("one", "default via 10.1.0.1"),
        ("b4", "default via 2001:db8:99::2"),
        ("server", "198.51.100.0/28 via 203.0.113.10"),
        ("server", "198.51.100.16/28 via 203.0.113.11"),
    ] {
        network.route(host, route)?;
    }
    network.forwards("middle")?;
    Ok(network)
}

/// From now on the B4's packets for the anycast address go to this AFTR.
fn leads_to(network: &Network, number: usize) -> Result<()> {
    let route = format!("-6 route replace 2001:db8:a::1 via 2001:db8:{number}::8");
    network.host("middle")?.ip(&route).map(drop)
}

/// What comes within this time.
fn read(stream: &mut TcpStream, within: Duration) -> Result<Option<Vec<u8>>> {
    stream.set_read_timeout(Some(within)).asking(|| "setting a timeout".to_owned())?;
    let mut octets = [0; 64];
    match stream.read(&mut octets) {
        Ok(count) => Ok(Some(octets[..count].to_vec())),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => Ok(None),
        Err(error) => Err(error).asking(|| "reading".to_owned()),
    }
}

/// A connection from the host to the server: both ends, and the AFTR that it passes.
fn connection(network: &Network, listener: &TcpListener) -> Result<(TcpStream, TcpStream, usize)> {
    let to = listener.local_addr().asking(|| "asking for a socket's address".to_owned())?;
    let connected = network.host("one")?.enter(|| TcpStream::connect_timeout(&to, PATIENCE))?;
    let near = connected.asking(|| "connecting to the server".to_owned())?;
    let (far, from) = listener.accept().asking(|| "accepting a connection".to_owned())?;
    Ok((near, far, aftr_of(from)))
}

/// Where a datagram of the host comes from, as the server sees it.
fn datagram(near: &UdpSocket, far: &UdpSocket, number: u8) -> Result<SocketAddr> {
    let to = far.local_addr().asking(|| "asking for a socket's address".to_owned())?;
    near.send_to(&[number], to).asking(|| "sending a datagram".to_owned())?;
    let mut octets = [0; 8];
    let (count, from) = far.recv_from(&mut octets).asking(|| "waiting for a datagram".to_owned())?;
    assert_eq!(octets[..count], [number]);
    Ok(from)
}

fn socket(network: &Network, host: &str, address: SocketAddr) -> Result<UdpSocket> {
    let socket = network.host(host)?.enter(|| UdpSocket::bind(address))?;
    let socket = socket.asking(|| format!("binding {address}"))?;
    socket.set_read_timeout(Some(Duration::from_secs(10))).asking(|| "setting a timeout".to_owned())?;
    Ok(socket)
}

fn drops(network: &Network, host: &str) -> Result<String> {
    shown(network, host, "drops")
}

fn sessions(network: &Network, host: &str) -> Result<String> {
    shown(network, host, "sessions")
}

fn shown(network: &Network, host: &str, what: &str) -> Result<String> {
    let words = show_on(network, host, &[what])?;
    Ok(network.host(host)?.run(words, Duration::from_secs(5))?.succeeded()?.stdout)
}

fn route_moves() -> Result<()> {
    let network = network()?;
    leads_to(&network, 0)?;
    for (number, host) in (0..).zip(AFTRS) {
        run_sixway_on(&network, host, &aftr(number))?;
    }
    run_sixway_on(&network, "b4", B4)?;
    pings_come_back(network.host("one")?, SERVER, 56)?;
    let server = SocketAddr::new(SERVER.parse().expect("an address"), 7_000);
    let listener = network.host("server")?.enter(|| TcpListener::bind(server))?;
    let listener = listener.asking(|| "listening".to_owned())?;
    let (mut near, mut far, by) = connection(&network, &listener)?;
    assert_eq!(by, 0);
    near.write_all(b"first").asking(|| "writing".to_owned())?;
    assert_eq!(read(&mut far, PATIENCE)?.as_deref(), Some(&b"first"[..]));
    let near_udp = socket(&network, "one", SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 5_000))?;
    let far_udp = socket(&network, "server", server)?;
    let first = datagram(&near_udp, &far_udp, 1)?;
    assert_eq!(aftr_of(first), 0);

    leads_to(&network, 1)?;
    // The session is the first AFTR's. The second one has none, and makes none in the middle of a connection.
    near.write_all(b"second").asking(|| "writing".to_owned())?;
    assert_eq!(read(&mut far, SILENCE)?, None);
    assert!(drops(&network, "spare")?.contains("NoSession"), "{}", drops(&network, "spare")?);
    // What the server sends still comes by the first one: the B4 sees one AFTR, the anycast address.
    far.write_all(b"answer").asking(|| "writing".to_owned())?;
    assert_eq!(read(&mut near, PATIENCE)?.as_deref(), Some(&b"answer"[..]));
    // Whatever is new has an address of the second one; so has a UDP flow, whose peer sees another host.
    pings_come_back(network.host("one")?, SERVER, 56)?;
    pings_come_back(network.host("one")?, SERVER, 1_401)?;
    let (mut new, mut new_far, by) = connection(&network, &listener)?;
    assert_eq!(by, 1);
    let second = datagram(&near_udp, &far_udp, 2)?;
    assert_eq!(aftr_of(second), 1);
    // Both leads of the static binding are open: each by the pool of its AFTR.
    let inside = socket(&network, "one", SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 9_000))?;
    for number in 0..2_u8 {
        let outside = SocketAddr::new(Ipv4Addr::new(198, 51, 100, 16 * number + 1).into(), 9_000);
        far_udp.send_to(&[number], outside).asking(|| "sending a datagram".to_owned())?;
        let mut octets = [0; 8];
        let (count, _) = inside.recv_from(&mut octets).asking(|| "waiting for a datagram".to_owned())?;
        assert_eq!(octets[..count], [number]);
    }
    for (number, host) in AFTRS.into_iter().enumerate() {
        let said = sessions(&network, host)?;
        assert!(said.contains("2001:db8:99::b4") && said.contains("203.0.113.2:7000"), "{number}:\n{said}");
    }

    // TCP sends again what was lost, and the session is still there: the connection goes on as if packets had been lost. That of the other AFTR waits.
    leads_to(&network, 0)?;
    assert_eq!(read(&mut far, PATIENCE)?.as_deref(), Some(&b"second"[..]));
    near.write_all(b"third").asking(|| "writing".to_owned())?;
    assert_eq!(read(&mut far, PATIENCE)?.as_deref(), Some(&b"third"[..]));
    assert_eq!(datagram(&near_udp, &far_udp, 3)?, first, "its binding is still there");
    new.write_all(b"lost").asking(|| "writing".to_owned())?;
    assert_eq!(read(&mut new_far, SILENCE)?, None);
    no_checksum_is_wrong(&network)
}
