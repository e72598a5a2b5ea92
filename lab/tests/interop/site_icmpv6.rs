//! Which ICMPv6 messages the packet filter of a site lets pass, of every type: RFC 4890 §4.3 for those that pass the box, §4.4 for those to
//! itself.

use crate::Interop;
use crate::site_network::{HOST6, SERVER6, at, home, passes, socket, up};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::load::icmpv6_socket;
use sixway_lab::topology::Network;
use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("site_up_accepts_icmpv6_errors_about_flows_of_inside_hosts", &["sixway", "nft"], errors),
    Interop::new(
        "site_up_accepts_no_unsolicited_icmpv6_except_echo_requests",
        &["sixway", "nft"],
        unsolicited,
    ),
    Interop::new("site_up_drops_packets_that_would_loop_to_the_provider", &["sixway", "nft"], no_circle),
    Interop::new("site_up_keeps_icmpv6_of_the_site_within_it", &["sixway", "nft"], outward),
    Interop::new("site_up_does_not_filter_icmpv6_to_the_box", &["sixway", "nft"], to_the_box),
];

/// The box's addresses outside and inside.
const BOX6: &str = "2001:db8:f::1";

/// RFC 4890 §4.3.5, and §4.3.4 of Seamoby: not across the boundary of a site.
const WITHIN: [u8; 10] = [100, 101, 127, 138, 139, 140, 150, 200, 201, 255];

/// How long messages take at most, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(4);

fn raw(network: &Network, host: &str) -> Result<UdpSocket> {
    let socket = network.host(host)?.enter(icmpv6_socket)??;
    socket.set_read_timeout(Some(Duration::from_millis(50))).asking(|| "a socket's timeout".to_owned())?;
    Ok(socket)
}

/// A message of a type and a code: four octets of the header, and what follows. The kernel fills in the checksum.
fn message(kind: u8, code: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, code, 0, 0, 0, 0, 5, 0][..], body].concat()
}

/// Sends each message, and returns the types and codes that the receiver got. The last is an echo request that arrives.
fn arrived(
    from: &UdpSocket,
    to: &str,
    receiver: &UdpSocket,
    messages: &[Vec<u8>],
) -> Result<BTreeSet<(u8, u8)>> {
    let to: Ipv6Addr = to.parse().map_err(|_| Failure::Unexpected(to.to_owned()))?;
    let last = message(128, 0, b"the last of these messages");
    std::thread::scope(|scope| {
        // At the same time: a socket holds less than all of them.
        let sender = scope.spawn(|| {
            messages.iter().chain([&last]).try_for_each(|one| {
                std::thread::sleep(Duration::from_millis(2));
                from.send_to(one, SocketAddr::from((to, 0))).asking(|| format!("sending to {to}")).map(drop)
            })
        });
        let heard = hear(receiver, messages, &last);
        sender.join().unwrap_or_else(|_| Err(Failure::Unexpected("the sender".to_owned())))?;
        heard
    })
}

fn hear(receiver: &UdpSocket, messages: &[Vec<u8>], last: &[u8]) -> Result<BTreeSet<(u8, u8)>> {
    let (begun, mut heard, mut buffer) = (Instant::now(), BTreeSet::new(), [0; 2_048]);
    while begun.elapsed() < PATIENCE {
        let Ok((length, _)) = receiver.recv_from(&mut buffer) else { continue };
        let octets = &buffer[..length];
        if octets.get(4..) == last.get(4..) {
            return Ok(heard);
        }
        // Others of the kernel, such as neighbour discovery, have other bodies.
        if let Some(sent) =
            messages.iter().find(|one| one[..2] == octets[..2] && one.get(4..) == octets.get(4..))
        {
            heard.insert((sent[0], sent[1]));
        }
    }
    Err(Failure::Unexpected("the last message did not arrive".to_owned()))
}

fn of_every_type(body: &[u8]) -> Vec<Vec<u8>> {
    (0..=u8::MAX).map(|kind| message(kind, 0, body)).collect()
}

fn types(heard: &BTreeSet<(u8, u8)>) -> Vec<u8> {
    heard.iter().map(|(kind, _)| *kind).collect::<BTreeSet<_>>().into_iter().collect()
}

/// A packet of UDP as an error quotes it.
fn quoted(from: SocketAddr, to: SocketAddr) -> Result<Vec<u8>> {
    let (SocketAddr::V6(from), SocketAddr::V6(to)) = (from, to) else {
        return Err(Failure::Unexpected("addresses of IPv4".to_owned()));
    };
    let mut octets = vec![0x60, 0, 0, 0, 0, 16, 17, 60];
    octets.extend(from.ip().octets());
    octets.extend(to.ip().octets());
    octets.extend(from.port().to_be_bytes());
    octets.extend(to.port().to_be_bytes());
    octets.extend([0, 16, 0, 0]);
    octets.extend([7; 8]);
    Ok(octets)
}

/// RFC 4890 §4.3.1 and §4.3.2: all errors with all codes that are known, if they are about a flow that a host of the LAN opened; §4.3.5: none
/// of the experimental types. Errors about a packet that was not sent are dropped.
fn errors() -> Result<()> {
    let network = home()?;
    up(&network, &[])?;
    let (host, server) = (socket(&network, "host", HOST6, 4_000)?, socket(&network, "server", SERVER6, 53)?);
    passes(&host, at(&server)?, &server)?;
    let (from, receiver) = (raw(&network, "server")?, raw(&network, "host")?);
    let about = quoted(at(&host)?, at(&server)?)?;
    let known = [(1, 0..=8), (2, 0..=0), (3, 0..=1), (4, 0..=3)];
    let known: Vec<(u8, u8)> =
        known.into_iter().flat_map(|(kind, codes)| codes.map(move |code| (kind, code))).collect();
    let with_codes =
        |about: &[u8]| known.iter().map(|(kind, code)| message(*kind, *code, about)).collect::<Vec<_>>();
    let heard = arrived(&from, HOST6, &receiver, &with_codes(&about))?;
    assert_eq!(heard.into_iter().collect::<Vec<_>>(), known);
    let unassigned: Vec<Vec<u8>> = (5..128).map(|kind| message(kind, 0, &about)).collect();
    let heard = types(&arrived(&from, HOST6, &receiver, &unassigned)?);
    let expected: Vec<u8> = (5..128).filter(|kind| !WITHIN.contains(kind)).collect();
    assert_eq!(heard, expected);
    // About a flow of another host of the LAN (§4.1).
    network.address("host", "up0", "2001:db8:1::3/64")?;
    let heard = arrived(&from, "2001:db8:1::3", &receiver, &with_codes(&about))?;
    assert_eq!(heard, BTreeSet::new());
    let mut other = at(&host)?;
    other.set_port(4_001);
    let heard = arrived(&from, HOST6, &receiver, &with_codes(&quoted(other, at(&server)?)?))?;
    assert_eq!(heard, BTreeSet::new());
    Ok(())
}

/// RFC 4890 §4.3: unsolicited messages. Mobile IPv6 replies (RFC 6275) cannot be distinguished from unsolicited ones.
fn unsolicited() -> Result<()> {
    let network = home()?;
    up(&network, &[])?;
    let (from, receiver) = (raw(&network, "server")?, raw(&network, "host")?);
    let heard = arrived(&from, HOST6, &receiver, &of_every_type(b"nobody asked for this"))?;
    assert_eq!(types(&heard), [128, 145, 147]);
    Ok(())
}

/// RFC 4890 §4.1: what is for an unused part of the delegated prefix. The provider would return it to the box, until its hop limit ends.
fn no_circle() -> Result<()> {
    let network = home()?;
    network.forwards("server")?;
    network.route("server", "2001:db8:77::/64 via 2001:db8:f::1")?;
    up(&network, &[])?;
    let from = raw(&network, "server")?;
    let to: Ipv6Addr = "2001:db8:77::7".parse().map_err(|_| Failure::Unexpected("an address".to_owned()))?;
    let request = message(128, 0, b"to nobody");
    from.send_to(&request, SocketAddr::from((to, 0))).asking(|| format!("sending to {to}"))?;
    let (begun, mut buffer) = (Instant::now(), [0; 2_048]);
    while begun.elapsed() < Duration::from_millis(500) {
        let Ok((length, source)) = from.recv_from(&mut buffer) else { continue };
        // Time Exceeded.
        assert!(length == 0 || buffer[0] != 3, "it went to and fro until {source} discarded it");
    }
    Ok(())
}

/// The LAN's hosts send what they want, but for what is not to leave a site.
fn outward() -> Result<()> {
    let network = home()?;
    up(&network, &[])?;
    let (from, receiver) = (raw(&network, "host")?, raw(&network, "server")?);
    let heard = arrived(&from, SERVER6, &receiver, &of_every_type(b"to the Internet"))?;
    let expected: Vec<u8> = (0..=u8::MAX).filter(|kind| !WITHIN.contains(kind)).collect();
    assert_eq!(types(&heard), expected);
    Ok(())
}

/// RFC 4890 §4.4: all types reach the box, from the LAN and from outside. What it does not know, its kernel discards silently (RFC 4443
/// §2.4).
fn to_the_box() -> Result<()> {
    let network = home()?;
    up(&network, &[])?;
    let receiver = raw(&network, "gateway")?;
    let all: Vec<u8> = (0..=u8::MAX).collect();
    for (host, to) in [("server", BOX6), ("host", "2001:db8:1::1")] {
        let from = raw(&network, host)?;
        let heard = arrived(&from, to, &receiver, &of_every_type(b"to the box"))?;
        assert_eq!(types(&heard), all, "from {host}");
    }
    Ok(())
}
