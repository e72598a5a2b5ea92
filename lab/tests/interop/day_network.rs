//! The line of a home: a host, the box with its system's own clients, the provider with its servers, and the Internet behind it.
//!
//! ```text
//!   host ── lan ──┬── in0  gateway  out0 ──┬── line ── server ── far
//!           switch└── in0  again    out0 ──┘           provider   1.2.3.4, 2001:db8:6::2
//! ```
//!
//! `again` is the box after a power cut: a host without anything. Only one of the two is plugged in at a time.

use crate::free_address::bound;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::process::{Finished, Process};
use sixway_lab::programs;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// The host's address of IPv4.
pub const HOST4: &str = "192.168.1.2";
/// Servers far away, for hosts with IPv4, by the NAT64 and with IPv6.
pub const FAR4: &str = "1.2.3.4:7000";
pub const FAR64: &str = "[64:ff9b::102:304]:7000";
pub const FAR6: &str = "[2001:db8:6::2]:7000";
/// A port of the host, at which the prober aims.
pub const AIM: u16 = 9_999;

/// The box's place before and after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TheBox(pub &'static str);

pub const FIRST: TheBox = TheBox("gateway");
pub const AGAIN: TheBox = TheBox("again");

/// All hosts but the box, which is not plugged in.
pub fn home() -> Result<Network> {
    let network = Network::new(&["host", "gateway", "again", "switch", "server", "far"])?;
    let switch = network.host("switch")?;
    for bridge in ["lan", "line"] {
        switch.ip(&format!("link add {bridge} type bridge"))?;
        switch.ip(&format!("link set {bridge} up"))?;
    }
    network.link(("host", "up0"), ("switch", "host"))?;
    network.link(("server", "up0"), ("switch", "provider"))?;
    network.link(("server", "far0"), ("far", "up0"))?;
    switch.ip("link set host master lan")?;
    switch.ip("link set provider master line")?;
    for (host, device, address) in [
        ("host", "up0", "192.168.1.2/24"),
        ("server", "up0", "203.0.113.2/24"),
        ("server", "up0", "fe80::2/64"),
        ("server", "far0", "1.2.3.1/24"),
        ("server", "far0", "2001:db8:6::1/64"),
        ("far", "up0", "1.2.3.4/24"),
        ("far", "up0", "2001:db8:6::2/64"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("host", "default via 192.168.1.1")?;
    network.route("far", "default via 1.2.3.1")?;
    network.route("far", "default via 2001:db8:6::1")?;
    network.forwards("server")?;
    let host = network.host("host")?;
    for (setting, value) in
        [("accept_ra", "1"), ("router_solicitations", "4"), ("router_solicitation_delay", "0")]
    {
        host.sysctl(&format!("ipv6/conf/up0/{setting}"), value)?;
    }
    Ok(network)
}

impl TheBox {
    /// Plugs the box in, with what its system sets at the start: the LAN's own address, and no forwarding.
    pub fn plug_in(self, network: &Network) -> Result<()> {
        let (own, switch) = (network.host(self.0)?, network.host("switch")?);
        for (device, port, bridge, mac) in [
            ("in0", "box-lan", "lan", "02:00:00:00:00:01"),
            ("out0", "box-line", "line", "02:00:00:00:00:02"),
        ] {
            network.link((self.0, device), ("switch", port))?;
            own.ip(&format!("link set {device} address {mac}"))?;
            switch.ip(&format!("link set {port} master {bridge}"))?;
        }
        own.sysctl("ipv4/ip_forward", "0")?;
        own.sysctl("ipv6/conf/all/forwarding", "0")?;
        network.address(self.0, "out0", "fe80::b/64")?;
        network.address(self.0, "in0", "192.168.1.1/24")
    }

    /// Pulls its cables.
    pub fn unplug(self, network: &Network) -> Result<()> {
        for port in ["box-lan", "box-line"] {
            network.host("switch")?.ip(&format!("link delete {port}"))?;
        }
        Ok(())
    }

    /// The IPv6 prefix of the LAN, and its default route, without a client.
    pub fn has_prefix(self, network: &Network, prefix: &str) -> Result<()> {
        network.address(self.0, "in0", &format!("{prefix}1/64"))?;
        network.host(self.0)?.ip("-6 route replace default via fe80::2 dev out0").map(drop)
    }

    /// Starts busybox's client of DHCP, and waits for its lease.
    pub fn lease4(self, network: &Network) -> Result<u32> {
        let script = network.file("lease4.sh", LEASE4)?;
        programs::make_executable(&script)?;
        let mut client = command("busybox")?;
        client.args(["udhcpc", "-f", "-t", "20", "-T", "1", "-A", "1", "-i", "out0", "-s"]).arg(script);
        let id = network.start(self.0, client)?;
        interrupt::wait_until(Duration::from_secs(20), "a lease of the provider", || {
            Ok(!self.public(network)?.is_empty())
        })?;
        Ok(id)
    }

    /// Its address outside, or nothing.
    pub fn public(self, network: &Network) -> Result<String> {
        let said = network.host(self.0)?.ip("-4 -brief address show")?;
        let own = said.lines().filter(|line| line.starts_with("out0") || line.starts_with("ppp0"));
        let found = own.filter_map(|line| line.split_whitespace().nth(2)).next();
        Ok(found.unwrap_or_default().split('/').next().unwrap_or_default().to_owned())
    }

    /// Starts `sixway up` of this program, and waits until it is ready.
    pub fn up(self, network: &Network, program: &std::path::Path, options: &[&str]) -> Result<u32> {
        let mut up = Command::new(program);
        up.args(["up", "--lan", "in0", "--name", &network.gateway_name("gateway")]).args(options);
        let id = network.start(self.0, up)?;
        interrupt::wait_until(Duration::from_secs(15), "sixway's \"ready\"", || {
            network.with_process(id, |process| {
                process.must_run()?;
                Ok(process.stdout().contains("ready in"))
            })?
        })?;
        Ok(id)
    }

    /// `sixway show` with these words.
    pub fn show(self, network: &Network, words: &[&str]) -> Result<String> {
        let mut show = Command::new(sixway()?);
        let socket = format!("/run/sixway/{}.sock", network.gateway_name("gateway"));
        show.arg("show").args(words).args(["--socket", &socket]);
        Ok(network.host(self.0)?.run(show, Duration::from_secs(10))?.succeeded()?.stdout)
    }

    /// Another command of this site.
    pub fn site(self, network: &Network, words: &[&str]) -> Result<Finished> {
        let mut command = Command::new(sixway()?);
        command.args(words).args(["--name", &network.gateway_name("gateway")]);
        network.host(self.0)?.run(command, Duration::from_secs(40))
    }
}

/// What busybox's client runs.
const LEASE4: &str = r#"#!/bin/sh
case $1 in
deconfig)
    ip -4 address flush dev $interface ;;
bound|renew)
    ip -4 address show dev $interface | grep -q "inet $ip/" || ip -4 address flush dev $interface
    ip address replace $ip/$mask dev $interface
    ip route replace default via $router dev $interface ;;
esac
exit 0
"#;

/// The provider's DHCP server, which assigns this address.
pub fn provider4(network: &Network, address: &str) -> Result<u32> {
    let leases = network.folder().join("provider.leases");
    let text = format!(
        "port=0\nbind-interfaces\ninterface=up0\nno-ping\nno-hosts\nlog-facility=-\ndhcp-authoritative\n\
         dhcp-leasefile={}\ndhcp-range={address},{address},255.255.255.0,10m\ndhcp-option=3,203.0.113.2\n",
        leases.display()
    );
    let file = network.file(&format!("provider-{address}.conf"), &text)?;
    let mut dnsmasq = command("dnsmasq")?;
    dnsmasq.arg("--keep-in-foreground").arg(format!("--conf-file={}", file.display()));
    network.start("server", dnsmasq)
}

/// The same without what it remembers.
pub fn renumbered4(network: &Network, before: u32, address: &str) -> Result<u32> {
    network.with_process(before, Process::stop)?;
    std::fs::remove_file(network.folder().join("provider.leases")).ok();
    provider4(network, address)
}

/// The host's global addresses of IPv6, and whether each is preferred.
pub fn addresses6(network: &Network) -> Result<Vec<(String, bool)>> {
    let said = network.host("host")?.ip("-6 -oneline address show dev up0 scope global")?;
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(" inet6 ")?;
        Some((rest.split('/').next()?.to_owned(), !line.contains("deprecated")))
    };
    Ok(said.lines().filter_map(of_line).collect())
}

/// Waits until the host has a preferred address with this beginning, and no other; the address, and the time that it took.
pub fn follows(network: &Network, prefix: &str) -> Result<(String, Duration)> {
    let begun = Instant::now();
    let mut found = String::new();
    interrupt::wait_until(Duration::from_secs(25), &format!("a host in {prefix}"), || {
        std::thread::sleep(Duration::from_millis(50));
        let preferred: Vec<String> = addresses6(network)?
            .into_iter()
            .filter(|(_, preferred)| *preferred)
            .map(|(address, _)| address)
            .collect();
        found = preferred.first().cloned().unwrap_or_default();
        Ok(preferred.len() == 1 && found.starts_with(prefix))
    })?;
    Ok((found, begun.elapsed()))
}

/// A link that comes up asks for routers.
pub fn solicit(network: &Network) -> Result<()> {
    let host = network.host("host")?;
    host.ip("link set up0 down")?;
    host.ip("link set up0 up")?;
    host.ip("-4 route replace default via 192.168.1.1").map(drop)
}

/// An address with a port.
pub fn endpoint(text: &str) -> Result<SocketAddr> {
    text.parse().map_err(|_| Failure::Unexpected(format!("{text} is not an endpoint")))
}

/// Ports of the host and of the box at which the prober aims.
pub fn aims(addresses: &[&str]) -> Vec<SocketAddr> {
    let at = |address: &&str| Some(SocketAddr::new(address.parse().ok()?, AIM));
    addresses.iter().filter_map(at).collect()
}

/// Makes a new connection from the host to a server far away, and says from which address it came there; `None`: it did not, within a second.
pub fn seen_by_server(network: &Network, server: &str) -> Result<Option<IpAddr>> {
    let at = SocketAddr::new(endpoint(server)?.ip(), 7_001);
    // The NAT64's addresses are of the server's IPv4 address.
    let listens = if server == FAR64 { endpoint("1.2.3.4:7001")? } else { at };
    let listener = network.host("far")?.enter(|| bound(|| TcpListener::bind(listens)))?;
    let listener = listener.asking(|| format!("listening at {listens}"))?;
    let connected =
        network.host("host")?.enter(|| TcpStream::connect_timeout(&at, Duration::from_secs(1)))?;
    let Ok(_connected) = connected else { return Ok(None) };
    let (_, peer) = listener.accept().asking(|| "a connection".to_owned())?;
    Ok(Some(peer.ip()))
}

/// Waits until new connections to a server come from an address with this beginning; how long that took.
pub fn comes_from(network: &Network, server: &str, beginning: &str) -> Result<Duration> {
    let begun = Instant::now();
    let mut seen = None;
    let what = format!("a new connection to {server} from {beginning}");
    interrupt::wait_until(Duration::from_secs(25), &what, || {
        seen = seen_by_server(network, server)?;
        Ok(seen.is_some_and(|seen| seen.to_string().starts_with(beginning)))
    })?;
    Ok(begun.elapsed())
}

/// Figures of the documentation come from here: `MEASURED=1`.
pub fn measured(what: &str, time: Duration) {
    if std::env::var_os("MEASURED").is_some() {
        eprintln!("{what}: {:.2} s", time.as_secs_f64());
    }
}

/// What a process of `sixway up` has logged.
pub fn log(network: &Network, id: u32) -> Result<String> {
    network.with_process(id, |process| process.stdout() + &process.stderr())
}

/// It has logged this.
#[track_caller]
pub fn logged(network: &Network, id: u32, what: &str) -> Result<()> {
    let place = std::panic::Location::caller();
    let said = log(network, id)?;
    match said.contains(what) {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{place}: {what:?} is not in the log:\n{said}"))),
    }
}
