//! A power cut: the box starts again without anything but its files.

use crate::Interop;
use crate::day_network::{
    AGAIN, FAR4, FAR6, FAR64, FIRST, HOST4, TheBox, aims, comes_from, endpoint, follows, home, measured,
    provider4, solicit,
};
use crate::day_prober::Prober;
use crate::day_stream::{Echo, Stream};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::namespace;
use sixway_lab::port_mapping::MappingRequest;
use sixway_lab::process::Process;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[Interop::new(
    "a_day_with_a_power_cut_after_which_mappings_are_the_same_and_the_lan_was_never_open",
    &["sixway", "nft", "dnsmasq", "busybox"],
    power_cut,
)];

const BOX: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 1));
const REQUEST: MappingRequest = MappingRequest {
    client: IpAddr::V4(Ipv4Addr::new(192, 168, 1, 2)),
    port: 8_080,
    suggested: 0,
    lifetime: 3_600,
};

/// Starts the box with its system's clients and `sixway up`.
fn start(network: &Network, the_box: TheBox) -> Result<[u32; 2]> {
    the_box.plug_in(network)?;
    let client = the_box.lease4(network)?;
    the_box.has_prefix(network, "2001:db8:1::")?;
    Ok([client, the_box.up(network, &sixway()?, &[])?])
}

/// All that the box runs ends together, and what is in memory has gone.
fn cut(network: &Network, processes: [u32; 2]) -> Result<()> {
    for process in processes {
        network.with_process(process, Process::kill)?;
    }
    // The kernel of a box whose gateway was killed forwards on; the prober goes on, too.
    std::thread::sleep(Duration::from_millis(300));
    FIRST.unplug(network)?;
    let name = network.gateway_name("gateway");
    for folder in ["/run/sixway", "/run/sixway/bpf"] {
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if file.file_name().to_string_lossy().starts_with(&name) {
                std::fs::remove_file(file.path()).or_else(|_| std::fs::remove_dir_all(file.path())).ok();
            }
        }
    }
    namespace::end_what_runs_in(network.host("gateway")?.name());
    Ok(())
}

/// Somebody outside is let in to the host by its mapping.
fn is_reached(network: &Network, listener: &TcpListener, external: SocketAddr) -> Result<()> {
    let connected =
        network.host("far")?.enter(|| TcpStream::connect_timeout(&external, Duration::from_secs(2)))?;
    connected.asking(|| format!("connecting from outside to {external}"))?;
    listener.accept().map(drop).asking(|| "a connection from outside".to_owned())
}

fn power_cut() -> Result<()> {
    let network = home()?;
    provider4(&network, "203.0.113.10")?;
    let prober = Prober::start(&network, "far", "host", &aims(&[HOST4, "203.0.113.10"]))?;
    network.route("server", "192.168.1.0/24 via 203.0.113.10 onlink dev up0")?;
    network.route("server", "2001:db8:1::/64 via fe80::b dev up0")?;
    let processes = start(&network, FIRST)?;
    solicit(&network)?;
    let (host6, _) = follows(&network, "2001:db8:1:")?;
    aims(&[&host6]).into_iter().for_each(|aim| prober.also(aim));
    let _echo = Echo::start(&network, "far", &[endpoint(FAR4)?, endpoint(FAR6)?])?;
    let native = Stream::open(&network, "host", "native IPv6", endpoint(FAR6)?)?;
    native.goes_on()?;
    let host = network.host("host")?;
    let service = host.enter(|| TcpListener::bind((HOST4, 8_080)))?.asking(|| "a service".to_owned())?;
    REQUEST.send(host, BOX)?;
    // The file is written within a second.
    std::thread::sleep(Duration::from_millis(1_500));
    let (before, at_before) = (REQUEST.send(host, BOX)?, Instant::now());
    is_reached(&network, &service, before.external)?;
    native.mark();
    cut(&network, processes)?;
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    start(&network, AGAIN)?;
    // Nobody asked again.
    is_reached(&network, &service, before.external)?;
    measured("a power cut: the mapping is there again after", begun.elapsed());
    let (after, at_after) = (REQUEST.send(host, BOX)?, Instant::now());
    assert_eq!(after.external, before.external);
    let (client, server) =
        ((at_after - at_before).as_secs_f64(), f64::from(after.epoch) - f64::from(before.epoch));
    if lost_state(client, server) {
        return Err(Failure::Unexpected(format!(
            "{server} s of Epoch Time in {client:.1} s: clients would ask for all again"
        )));
    }
    comes_from(&network, FAR4, "203.0.113.10")?;
    comes_from(&network, FAR64, "203.0.113.10")?;
    measured("a power cut: new connections after", begun.elapsed());
    let stood = native.goes_on()?;
    measured("a power cut: native IPv6 stood still for", stood);
    prober.was_kept_out(&network, "host")
}

/// RFC 6887 §8.5: whether a client concludes that the server lost its mappings.
fn lost_state(client: f64, server: f64) -> bool {
    server < -1.0 || client + 2.0 < server - server / 16.0 || server + 2.0 < client - client / 16.0
}
