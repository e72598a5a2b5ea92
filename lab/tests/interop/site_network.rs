//! A home's network, and what is sent through it: a host of the LAN, the box, and the provider with a stranger.

use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::process::Finished;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

/// The LAN host's addresses, the server's and a stranger's, who is next to the server.
pub const HOST4: &str = "192.168.1.2";
pub const HOST6: &str = "2001:db8:1::2";
pub const SERVER4: &str = "203.0.113.2";
pub const SERVER6: &str = "2001:db8:f::2";
pub const STRANGER4: &str = "203.0.113.3";
pub const STRANGER6: &str = "2001:db8:f::3";
/// The box's address outside.
pub const PUBLIC4: &str = "203.0.113.1";

/// How long a packet takes at most, on a busy machine.
const LONG: Duration = Duration::from_secs(2);
/// How long is waited for one that is not to come.
const SHORT: Duration = Duration::from_millis(200);

/// The box has its addresses and routes, as its system's clients set them, and forwards nothing. The provider routes the LAN's IPv6
/// prefix to it; the stranger tries its private IPv4 addresses as well.
pub fn home() -> Result<Network> {
    home_of(&["host", "gateway", "server"])
}

/// The same with further hosts, which are not linked yet.
pub fn home_of(roles: &[&'static str]) -> Result<Network> {
    let network = Network::new(roles)?;
    network.link(("host", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("host", "up0", "192.168.1.2/24"),
        ("host", "up0", "2001:db8:1::2/64"),
        ("gateway", "in0", "192.168.1.1/24"),
        ("gateway", "in0", "2001:db8:1::1/64"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("gateway", "out0", "2001:db8:f::1/64"),
        ("server", "up0", "203.0.113.2/24"),
        ("server", "up0", "203.0.113.3/24"),
        ("server", "up0", "2001:db8:f::2/64"),
        ("server", "up0", "2001:db8:f::3/64"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("host", "default via 192.168.1.1"),
        ("host", "default via 2001:db8:1::1"),
        ("gateway", "default via 203.0.113.2"),
        ("gateway", "default via 2001:db8:f::2"),
        ("server", "2001:db8:1::/64 via 2001:db8:f::1"),
        ("server", "192.168.1.0/24 via 203.0.113.1"),
    ] {
        network.route(host, route)?;
    }
    network.host("gateway")?.sysctl("ipv4/ip_forward", "0")?;
    network.host("gateway")?.sysctl("ipv6/conf/all/forwarding", "0")?;
    Ok(network)
}

/// `sixway up` on the box with these further options, started and ready; its process id.
pub fn up(network: &Network, options: &[&str]) -> Result<u32> {
    up_by(network, Command::new(sixway()?), options)
}

/// The same by this command, which runs sixway.
pub fn up_by(network: &Network, mut up: Command, options: &[&str]) -> Result<u32> {
    up.args(["up", "--lan", "in0", "--name", &network.gateway_name("gateway")]).args(options);
    let id = network.start("gateway", up)?;
    interrupt::wait_until(Duration::from_secs(10), "sixway's \"ready\"", || {
        network.with_process(id, |process| {
            process.must_run()?;
            Ok(process.stdout().contains("ready in"))
        })?
    })?;
    Ok(id)
}

/// Another command of sixway on the box, of this site.
pub fn site(network: &Network, words: &[&str]) -> Result<Finished> {
    let mut command = Command::new(sixway()?);
    command.args(words).args(["--name", &network.gateway_name("gateway")]);
    network.host("gateway")?.run(command, Duration::from_secs(40))
}

/// A UDP socket of a host.
pub fn socket(network: &Network, host: &str, address: &str, port: u16) -> Result<UdpSocket> {
    let at = SocketAddr::new(address.parse().map_err(|_| Failure::Unexpected(address.into()))?, port);
    let socket = network.host(host)?.enter(|| UdpSocket::bind(at))?;
    socket.asking(|| format!("binding {at} on {host}"))
}

/// Whether a packet comes from one socket to another; `to`: where it is sent. Its source as the receiver sees it.
pub fn comes(
    from: &UdpSocket,
    to: SocketAddr,
    receiver: &UdpSocket,
    soon: bool,
) -> Result<Option<SocketAddr>> {
    let mark: u64 = rand_mark();
    // The kernel may refuse immediately, which is an answer, too.
    let _ = from.send_to(&mark.to_be_bytes(), to);
    receiver
        .set_read_timeout(Some(if soon { LONG } else { SHORT }))
        .asking(|| "a socket's timeout".to_owned())?;
    let mut buffer = [0; 64];
    while let Ok((length, source)) = receiver.recv_from(&mut buffer) {
        if buffer[..length] == mark.to_be_bytes() {
            return Ok(Some(source));
        }
    }
    Ok(None)
}

/// No two packets of a test are the same.
fn rand_mark() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A packet that is to come; its source.
#[track_caller]
pub fn passes(from: &UdpSocket, to: SocketAddr, receiver: &UdpSocket) -> Result<SocketAddr> {
    let place = std::panic::Location::caller();
    let came = comes(from, to, receiver, true)?;
    came.ok_or_else(|| Failure::Unexpected(format!("{place}: nothing came from {from:?} by {to}")))
}

/// A packet that is not to come.
#[track_caller]
pub fn is_kept_out(from: &UdpSocket, to: SocketAddr, receiver: &UdpSocket) -> Result<()> {
    let place = std::panic::Location::caller();
    match comes(from, to, receiver, false)? {
        None => Ok(()),
        Some(source) => Err(Failure::Unexpected(format!("{place}: a packet of {source} to {to} came in"))),
    }
}

/// Where a socket is.
pub fn at(socket: &UdpSocket) -> Result<SocketAddr> {
    socket.local_addr().asking(|| "a socket's address".to_owned())
}

/// What the box's host has of settings, routes, rules and tables of the packet filter.
pub fn state(network: &Network) -> Result<Vec<String>> {
    let gateway = network.host("gateway")?;
    let mut state = Vec::new();
    for setting in [
        "ipv4/conf/in0/forwarding",
        "ipv4/conf/out0/forwarding",
        "ipv6/conf/all/forwarding",
        "ipv6/conf/out0/accept_ra",
        "ipv4/conf/all/rp_filter",
        "ipv4/ip_local_reserved_ports",
    ] {
        state.push(format!("{setting} {}", gateway.read_sysctl(setting)?));
    }
    for words in ["-4 route show table all", "-6 route show", "-4 rule show", "-6 rule show"] {
        state.push(gateway.ip(words)?);
    }
    state.push(tables(network)?);
    Ok(state)
}

/// The tables of the packet filter.
pub fn tables(network: &Network) -> Result<String> {
    let mut nft = sixway_lab::namespace::command("nft")?;
    nft.args(["list", "tables"]);
    Ok(network.host("gateway")?.run(nft, Duration::from_secs(5))?.succeeded()?.stdout)
}
