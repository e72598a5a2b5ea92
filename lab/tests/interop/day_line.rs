//! The line is lost and returns with the same address: what was open goes on.

use crate::Interop;
use crate::day_network::{
    FAR4, FAR6, FAR64, FIRST, HOST4, aims, endpoint, follows, home, log, logged, measured, provider4, solicit,
};
use crate::day_prober::Prober;
use crate::day_stream::{Echo, Stream};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_day_in_which_pppoe_reconnects_with_the_same_address_and_open_connections_go_on",
        &["sixway", "nft", "python3"],
        || pppoe_reconnects(|network| Access::own(network)),
    ),
    Interop::new(
        "a_day_in_which_pppoe_reconnects_with_debians_pppoe_server_and_open_connections_go_on",
        &["sixway", "nft", "python3", "pppoe-server", "pppd", "linux.uml", "busybox"],
        || pppoe_reconnects(|network| Access::debian(network)),
    ),
    Interop::new(
        "a_day_in_which_the_cable_is_pulled_and_open_connections_go_on",
        &["sixway", "nft", "dnsmasq", "busybox"],
        || cable_is_pulled(false),
    ),
    Interop::new(
        "a_day_in_which_the_system_takes_addresses_away_with_the_line_and_open_connections_go_on",
        &["sixway", "nft", "dnsmasq", "busybox"],
        || cable_is_pulled(true),
    ),
];

/// How long the line is down.
const DOWN: Duration = Duration::from_secs(3);
/// TCP retransmits later and later meanwhile: at most as long again.
const STOOD: Duration = Duration::from_secs(40);

/// One end of PPPoE.
const PPPOE: &str = include_str!("day_pppoe.py");

/// Starts an end of PPPoE.
pub fn pppoe(network: &Network, host: &str, words: &[&str]) -> Result<u32> {
    let program = network.file("pppoe.py", PPPOE)?;
    let mut python = command("python3")?;
    python.arg(program).args(words);
    network.start(host, python)
}

/// The provider's end.
enum Access<'n> {
    /// The lab's own.
    Own(&'n Network, u32),
    /// Debian's, on a Linux guest: this kernel has no PPP.
    Debian(KernelPeer<'n>),
}

/// Options of pppd in addition to the addresses.
const OPTIONS: &str = "noauth\nmtu 1492\nmru 1492\nlcp-echo-interval 1\nlcp-echo-failure 3\n+ipv6\n";

/// The guest forwards between the lines of its customers and the Internet.
const ROUTER: &str = "mkdir -p /dev/pts
mount -t devpts none /dev/pts
ip address add 1.2.3.1/24 dev eth1
ip address add 2001:db8:6::1/64 dev eth1
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
while sleep 0.1; do
    ip -4 route replace 192.168.1.0/24 dev ppp0
    ip -6 route replace 2001:db8:1::/64 dev ppp0
done >/dev/null 2>&1 &
";

impl<'n> Access<'n> {
    fn own(network: &'n Network) -> Result<Self> {
        let process = pppoe(network, "server", &["server", "up0", "ppp0", "203.0.113.2", "203.0.113.10"])?;
        Ok(Self::Own(network, process))
    }

    fn debian(network: &'n Network) -> Result<Self> {
        let features = Features { modules: vec!["ppp_async"], ..Features::default() };
        let guest = KernelPeer::start_with(network, "server", &["up0", "far0"], &features)?;
        guest.wait_until_up()?;
        // The guest has taken the place of its namespace: that is not a router any more.
        for device in ["up0", "far0"] {
            network.host("server")?.ip(&format!("address flush dev {device}"))?;
        }
        network.host("server")?.sysctl("ipv4/ip_forward", "0")?;
        network.host("server")?.sysctl("ipv6/conf/all/forwarding", "0")?;
        guest.sh(ROUTER)?;
        let mut access = Self::Debian(guest);
        access.begin()?;
        Ok(access)
    }

    fn begin(&mut self) -> Result<()> {
        match self {
            Self::Own(network, _) => *self = Self::own(network)?,
            Self::Debian(guest) => {
                let text = format!("printf '{}' >/run/options\n", OPTIONS.replace('\n', "\\n"));
                guest.sh(&text)?;
                guest.sh("pppoe-server -I eth0 -L 203.0.113.2 -R 203.0.113.10 -N 1 -O /run/options")?;
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<()> {
        match self {
            Self::Own(network, process) => network.with_process(*process, Process::kill),
            Self::Debian(guest) => guest.sh("kill -9 $(pidof pppoe-server pppd)").map(drop),
        }
    }
}

fn has_session(network: &Network) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(20), "a session of PPPoE", || {
        Ok(FIRST.public(network)? == "203.0.113.10")
    })
}

/// By NAT44, by NAT64 and by native IPv6.
fn streams(network: &Network) -> Result<[Stream; 3]> {
    let open = |name, to| Stream::open(network, "host", name, endpoint(to)?);
    let streams = [open("NAT44", FAR4)?, open("NAT64", FAR64)?, open("native IPv6", FAR6)?];
    for stream in &streams {
        stream.goes_on()?;
    }
    Ok(streams)
}

/// Each has stood still while the line was down, and goes on.
fn all_go_on(streams: &[Stream; 3], what: &str) -> Result<()> {
    for stream in streams {
        let stood = stream.goes_on()?;
        measured(&format!("{what}: {} stood still for", stream.name()), stood);
        assert!(stood < STOOD, "{what}: {} stood still for {stood:?}", stream.name());
    }
    Ok(())
}

fn stand(streams: &[Stream; 3]) -> Result<()> {
    interrupt::wait_until(Duration::from_secs(5), "streams that stand still", || {
        Ok(streams.iter().all(|stream| stream.stands(Duration::from_millis(500))))
    })
}

/// Once the provider's end is started again, once the cable is pulled: the device goes and returns, with another number.
fn pppoe_reconnects(start: for<'n> fn(&'n Network) -> Result<Access<'n>>) -> Result<()> {
    let network = home()?;
    let prober = Prober::start(&network, "far", "host", &aims(&[HOST4, "203.0.113.10"]))?;
    FIRST.plug_in(&network)?;
    network.address("gateway", "in0", "2001:db8:1::1/64")?;
    let mut provider = start(&network)?;
    pppoe(&network, "gateway", &["client", "out0", "ppp0"])?;
    has_session(&network)?;
    let up = FIRST.up(&network, &sixway()?, &["--wan", "ppp0"])?;
    logged(&network, up, "1492, that of ppp0")?;
    solicit(&network)?;
    let (host6, _) = follows(&network, "2001:db8:1:")?;
    aims(&[&host6]).into_iter().for_each(|aim| prober.also(aim));
    let _echo = Echo::start(&network, "far", &[endpoint(FAR4)?, endpoint(FAR6)?])?;
    let streams = streams(&network)?;
    for what in ["the provider's end starts again", "the cable is pulled"] {
        streams.iter().for_each(Stream::mark);
        let by_cable = what == "the cable is pulled";
        if by_cable {
            network.host("switch")?.ip("link set provider down")?;
        } else {
            provider.end()?;
        }
        interrupt::wait_until(Duration::from_secs(10), "the end of the device", || {
            Ok(FIRST.public(&network)?.is_empty())
        })?;
        stand(&streams)?;
        std::thread::sleep(DOWN);
        tells_of_the_loss(&network, up, "ppp0")?;
        if by_cable {
            network.host("switch")?.ip("link set provider up")?;
        } else {
            provider.begin()?;
        }
        has_session(&network)?;
        all_go_on(&streams, what)?;
    }
    let said = log(&network, up)?;
    assert_eq!(said.matches("the pool address 203.0.113.10 is on ppp0").count(), 2, "{said}");
    assert!(!said.contains("ERROR"), "{said}");
    has_session(&network)?;
    prober.was_kept_out(&network, "host")
}

/// The log, and `sixway show` while it lasts.
fn tells_of_the_loss(network: &Network, up: u32, interface: &str) -> Result<()> {
    logged(network, up, &format!("{interface} lost the pool address 203.0.113.10"))?;
    let shown = FIRST.show(network, &[])?;
    match shown.contains(interface) {
        true => Ok(()),
        false => {
            Err(Failure::Unexpected(format!("`sixway show` does not say that {interface} is lost:\n{shown}")))
        }
    }
}

/// The addresses stay meanwhile, as the leases do, or the system's clients take them away until the line is back.
fn cable_is_pulled(loses_addresses: bool) -> Result<()> {
    let network = home()?;
    provider4(&network, "203.0.113.10")?;
    let prober = Prober::start(&network, "far", "host", &aims(&[HOST4, "203.0.113.10"]))?;
    FIRST.plug_in(&network)?;
    network.route("server", "192.168.1.0/24 via 203.0.113.10 onlink dev up0")?;
    network.route("server", "2001:db8:1::/64 via fe80::b dev up0")?;
    FIRST.lease4(&network)?;
    FIRST.has_prefix(&network, "2001:db8:1::")?;
    let up = FIRST.up(&network, &sixway()?, &["--wan", "out0"])?;
    solicit(&network)?;
    let (host6, _) = follows(&network, "2001:db8:1:")?;
    aims(&[&host6]).into_iter().for_each(|aim| prober.also(aim));
    let _echo = Echo::start(&network, "far", &[endpoint(FAR4)?, endpoint(FAR6)?])?;
    let streams = streams(&network)?;
    // The site knows the address of the line.
    std::thread::sleep(DOWN + Duration::from_secs(1));
    streams.iter().for_each(Stream::mark);
    // The box's own end has no carrier.
    network.host("switch")?.ip("link set box-line down")?;
    if loses_addresses {
        let gateway = network.host("gateway")?;
        gateway.ip("-4 address flush dev out0")?;
        gateway.ip("-6 address del 2001:db8:1::1/64 dev in0")?;
        // Longer than the site needs to see it.
        std::thread::sleep(2 * DOWN);
        tells_of_the_loss(&network, up, "out0")?;
        logged(&network, up, "the site stays as it was: out0 has no IPv4 address")?;
    }
    stand(&streams)?;
    std::thread::sleep(DOWN);
    network.host("switch")?.ip("link set box-line up")?;
    if loses_addresses {
        network.address("gateway", "out0", "203.0.113.10/24")?;
        network.host("gateway")?.ip("-4 route replace default via 203.0.113.2")?;
        FIRST.has_prefix(&network, "2001:db8:1::")?;
    }
    all_go_on(&streams, "the cable of a line with DHCP is pulled")?;
    network.with_process(up, Process::must_run)??;
    prober.was_kept_out(&network, "host")
}
