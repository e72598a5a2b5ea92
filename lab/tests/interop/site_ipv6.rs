//! `sixway up` with IPv6 through a tunnel, on a link of PPPoE's size, and with addresses that change.

use crate::Interop;
use crate::site_network::{HOST4, HOST6, SERVER4, SERVER6, at, home, is_kept_out, passes, site, socket, up};
use nix::sys::socket::{getsockopt, sockopt::TcpMaxSeg};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway_on;
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("site_up_by_6rd_keeps_strangers_out_of_the_tunnel", &["sixway", "nft"], six_rd),
    Interop::new("site_up_lowers_the_mss_on_a_link_of_pppoe", &["sixway", "nft"], pppoe),
    Interop::new("site_up_follows_addresses_and_prefixes", &["sixway", "nft"], follows),
    Interop::new("site_up_goes_on_after_a_reconnect_of_its_uplink", &["sixway", "nft"], reconnect),
    Interop::new(
        "site_up_leases_addresses_by_dnsmasq_and_ends_it",
        &["sixway", "nft", "dnsmasq", "busybox"],
        leases,
    ),
    Interop::new("site_up_says_what_is_missing_and_changes_nothing", &["sixway", "nft"], missing),
];

/// The provider's border relay, and behind it a network that is native.
const BORDER_RELAY: &str = r#"[gateway]
ipv6_address = "2001:db8:bb::fe"

[six_rd]
role = "border_relay"
prefix = "2001:db9::/32"
address = "203.0.113.2"
"#;

/// The delegated prefix of 203.0.113.1 is 2001:db9:cb00:7101::/64. The tunnel's packets are not translated, so the packet filter alone
/// keeps strangers out.
fn six_rd() -> Result<()> {
    let network = home()?;
    for (host, device, address) in [
        ("server", "lo", "2001:db8:aa::1/128"),
        ("server", "lo", "2001:db8:aa::2/128"),
        ("host", "up0", "2001:db9:cb00:7101::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    run_sixway_on(&network, "server", BORDER_RELAY)?;
    let options = ["--6rd", "2001:db9::/32,0,203.0.113.2"];
    let refused = site(&network, &[&["up", "--lan", "in0"][..], &options].concat())?;
    assert!(refused.stderr.contains("without a tunnel"), "{}", refused.stderr);
    network.host("gateway")?.ip("-6 route del default")?;
    up(&network, &options)?;
    interrupt::wait_until(Duration::from_secs(10), "the prefix on the LAN", || {
        Ok(network.host("gateway")?.ip("-6 address show dev in0")?.contains("2001:db9:cb00:7101::1/64"))
    })?;
    let host = socket(&network, "host", "2001:db9:cb00:7101::2", 4_000)?;
    let server = socket(&network, "server", "2001:db8:aa::1", 53)?;
    let stranger = socket(&network, "server", "2001:db8:aa::2", 53)?;
    is_kept_out(&server, at(&host)?, &host)?;
    for _ in 0..3 {
        let seen = passes(&host, at(&server)?, &server)?;
        assert_eq!(seen, at(&host)?);
        passes(&server, seen, &host)?;
        is_kept_out(&stranger, at(&host)?, &host)?;
    }
    // IPv4 next to it.
    let (host4, server4) =
        (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    let seen = passes(&host4, at(&server4)?, &server4)?;
    passes(&server4, seen, &host4)?;
    Ok(())
}

/// What the far end may send at most in a segment, as it sees it: with timestamps, 12 octets less than the option said.
fn segment(network: &Network, to: &str) -> Result<usize> {
    let far: IpAddr = to.parse().map_err(|_| Failure::Unexpected(to.into()))?;
    let far = SocketAddr::new(far, 80);
    let listener = network.host("server")?.enter(|| TcpListener::bind(far))?;
    let listener = listener.asking(|| format!("listening at {far}"))?;
    let asks = network.host("host")?.enter(|| TcpStream::connect_timeout(&far, Duration::from_secs(5)))?;
    let _asks = asks.asking(|| format!("connecting to {far}"))?;
    let (accepted, _) = listener.accept().asking(|| "accepting".to_owned())?;
    let segment = getsockopt(&accepted, TcpMaxSeg).map_err(std::io::Error::from);
    Ok(segment.asking(|| "TCP_MAXSEG".to_owned())? as usize)
}

fn pppoe() -> Result<()> {
    let network = home()?;
    network.host("gateway")?.ip("link set out0 mtu 1492")?;
    up(&network, &[])?;
    let said = site(&network, &["up", "--lan", "in0", "--print-config"])?.succeeded()?.stdout;
    assert_eq!(said.matches("mtu = 1492").count(), 2, "{said}");
    let (by4, by6) = (segment(&network, SERVER4)?, segment(&network, SERVER6)?);
    // 1492 less the headers and the timestamps.
    assert!((1_300..=1_440).contains(&by4), "IPv4: {by4}");
    assert!((1_300..=1_420).contains(&by6), "IPv6: {by6}");
    Ok(())
}

fn missing() -> Result<()> {
    let network = home()?;
    let before = crate::site_network::state(&network)?;
    network.host("gateway")?.ip("address del 192.168.1.1/24 dev in0")?;
    let said = site(&network, &["up", "--lan", "in0", "--wan", "out9"])?;
    assert_eq!(said.status.code(), Some(2), "{}", said.stderr);
    for part in ["no interface out9; there are", "in0 has no IPv4 address", "ip address add"] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    network.address("gateway", "in0", "192.168.1.1/24")?;
    assert_eq!(crate::site_network::state(&network)?, before);
    Ok(())
}

/// The provider assigns another address and delegates another prefix: the gateway reloads itself, and its end is as that of any other.
fn follows() -> Result<()> {
    let network = home()?;
    let id = up(&network, &["--wan", "out0"])?;
    let gateway = network.host("gateway")?;
    let (host4, server4) =
        (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    assert_eq!(passes(&host4, at(&server4)?, &server4)?.ip().to_string(), "203.0.113.1");
    gateway.ip("address del 203.0.113.1/24 dev out0")?;
    gateway.ip("address add 203.0.113.9/24 dev out0")?;
    gateway.ip("-4 route replace default via 203.0.113.2")?;
    let sees = |host: &std::net::UdpSocket| -> Result<Option<String>> {
        let seen = crate::site_network::comes(host, at(&server4)?, &server4, false)?;
        Ok(seen.map(|seen| seen.ip().to_string()))
    };
    interrupt::wait_until(Duration::from_secs(20), "the next address", || {
        Ok(sees(&host4)?.as_deref() == Some("203.0.113.9"))
    })?;
    gateway.ip("-6 address del 2001:db8:1::1/64 dev in0")?;
    network.address("gateway", "in0", "2001:db8:2::1/64")?;
    let advertises = || -> Result<String> {
        let mut show = Command::new(sixway()?);
        let socket = format!("/run/sixway/{}.sock", network.gateway_name("gateway"));
        show.args(["show", "router-advertisements", "--socket", &socket]);
        Ok(gateway.run(show, Duration::from_secs(10))?.stdout)
    };
    interrupt::wait_until(Duration::from_secs(20), "the next prefix", || {
        Ok(advertises()?.contains("2001:db8:2::/64"))
    })?;
    // The filter is the same, for the next prefix.
    network.address("host", "up0", "2001:db8:2::2/64")?;
    network.route("server", "2001:db8:2::/64 via 2001:db8:f::1")?;
    let host6 = socket(&network, "host", "2001:db8:2::2", 4_000)?;
    let server6 = socket(&network, "server", SERVER6, 53)?;
    is_kept_out(&server6, at(&host6)?, &host6)?;
    let said = site(&network, &["down"])?.succeeded()?.stdout;
    assert!(said.contains("has ended"), "{said}");
    let left = crate::site_network::tables(&network)?;
    assert!(left.is_empty(), "{left}\n{}", network.with_process(id, |process| process.stderr())?);
    assert_eq!(gateway.read_sysctl("ipv6/conf/all/forwarding")?.trim(), "0");
    Ok(())
}

/// As with PPPoE: the interface goes, and the next one of its name has another address. Meanwhile nobody gets in.
fn reconnect() -> Result<()> {
    let network = home()?;
    let id = up(&network, &["--wan", "out0"])?;
    let gateway = network.host("gateway")?;
    let (host4, host6) = (socket(&network, "host", HOST4, 4_000)?, socket(&network, "host", HOST6, 4_000)?);
    let server4 = socket(&network, "server", SERVER4, 53)?;
    assert_eq!(passes(&host4, at(&server4)?, &server4)?.ip().to_string(), "203.0.113.1");
    gateway.ip("link del out0")?;
    drop(server4);
    interrupt::wait_until(Duration::from_secs(20), "the loss of the uplink", || {
        let log = network.with_process(id, |process| process.stdout() + &process.stderr())?;
        Ok(log.contains("there is no interface out0"))
    })?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, device, address) in [
        ("gateway", "out0", "203.0.113.9/24"),
        ("gateway", "out0", "2001:db8:f::1/64"),
        ("server", "up0", "203.0.113.2/24"),
        ("server", "up0", "2001:db8:f::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    for (host, route) in [
        ("gateway", "default via 203.0.113.2"),
        ("gateway", "default via 2001:db8:f::2"),
        ("server", "2001:db8:1::/64 via 2001:db8:f::1"),
    ] {
        network.route(host, route)?;
    }
    let (server4, server6) =
        (socket(&network, "server", SERVER4, 53)?, socket(&network, "server", SERVER6, 53)?);
    is_kept_out(&server6, at(&host6)?, &host6)?;
    interrupt::wait_until(Duration::from_secs(20), "an answer to the next address", || {
        let seen = crate::site_network::comes(&host4, at(&server4)?, &server4, false)?;
        let Some(seen) = seen.filter(|seen| seen.ip().to_string() == "203.0.113.9") else { return Ok(false) };
        Ok(crate::site_network::comes(&server4, seen, &host4, false)?.is_some())
    })?;
    // Native IPv6, too.
    is_kept_out(&server6, at(&host6)?, &host6)?;
    passes(&host6, at(&server6)?, &server6)?;
    passes(&server6, at(&host6)?, &host6)?;
    network.with_process(id, sixway_lab::process::Process::must_run)?
}

/// What a lease says to busybox's client, as a line of each value.
pub fn lease(network: &Network) -> Result<String> {
    let told = network.folder().join("lease");
    let script = network
        .file("lease.sh", &format!("#!/bin/sh\n[ $1 = bound ] && env > {}\nexit 0\n", told.display()))?;
    let mut executable = command("busybox")?;
    executable.args(["chmod", "755"]).arg(&script);
    network.host("host")?.run(executable, Duration::from_secs(5))?.succeeded()?;
    let mut client = command("busybox")?;
    client
        .args(["udhcpc", "-f", "-q", "-n", "-t", "10", "-T", "1", "-i", "up0", "-O", "108", "-s"])
        .arg(script);
    network.host("host")?.run(client, Duration::from_secs(20))?.succeeded()?;
    std::fs::read_to_string(&told).asking(|| format!("reading {}", told.display()))
}

/// Processes of dnsmasq with this site's configuration.
fn dnsmasqs(network: &Network) -> usize {
    let file = format!("/run/sixway/{}.dnsmasq", network.gateway_name("gateway"));
    let lines = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = lines.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with("dnsmasq") && line.contains(&file)).count()
}

/// A process of dnsmasq that is killed is replaced; one that a killed gateway left is ended by `down`.
fn leases() -> Result<()> {
    let network = home()?;
    network.host("host")?.ip("-4 address flush dev up0")?;
    let id = up(&network, &["--dhcp"])?;
    let told = lease(&network)?;
    for part in ["ip=192.168.1.", "router=192.168.1.1", "dns=192.168.1.1", "subnet=255.255.255.0"] {
        assert!(told.lines().any(|line| line.starts_with(part)), "{part} in {told}");
    }
    assert_eq!(dnsmasqs(&network), 1);
    let name = network.gateway_name("gateway");
    let file = |ending: &str| -> Result<String> {
        let path = format!("/run/sixway/{name}.{ending}");
        std::fs::read_to_string(&path).asking(|| path.clone())
    };
    // It can be ended: it does not have the signal mask of the thread that started it.
    let process = file("dnsmasq-process")?.split(' ').next().unwrap_or_default().to_owned();
    let status = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&status).asking(|| status.clone())?;
    assert!(status.contains("SigBlk:\t0000000000000000\n"), "{status}");
    // Another prefix changes nothing for it: its own socket for DNS is not another program's.
    network.address("gateway", "in0", "2001:db8:2::1/64")?;
    interrupt::wait_until(Duration::from_secs(15), "the next prefix", || {
        Ok(file("toml")?.contains("2001:db8:2::/64"))
    })?;
    std::thread::sleep(Duration::from_secs(1));
    assert!(file("dnsmasq")?.contains("port=53\n"), "{}", file("dnsmasq")?);
    assert!(file("dnsmasq-process")?.starts_with(&format!("{process} ")), "it was not started again");
    network.with_process(id, sixway_lab::process::Process::kill)?;
    assert_eq!(dnsmasqs(&network), 1, "leases go on");
    let id = up(&network, &["--dhcp"])?;
    assert_eq!(dnsmasqs(&network), 1, "the next one continues with it");
    lease(&network)?;
    network.with_process(id, sixway_lab::process::Process::stop)?;
    assert_eq!(dnsmasqs(&network), 0);
    let id = up(&network, &["--dhcp"])?;
    network.with_process(id, sixway_lab::process::Process::kill)?;
    site(&network, &["down"])?.succeeded()?;
    assert_eq!(dnsmasqs(&network), 0);
    Ok(())
}
