//! Router advertisements: another decoder reads ours, the kernel follows them, and they are octet for octet what radvd makes of the same
//! settings.

use crate::Interop;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::interrupt;
use sixway_lab::load::icmpv6_socket;
use sixway_lab::namespace::command;
use sixway_lab::topology::Network;
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "our_router_advertisement_is_that_of_radvd_option_by_option",
        &["sixway", "radvd", "rdisc6"],
        as_radvd,
    ),
    Interop::new("pref64_is_advertised_as_rfc_8781_draws_it", &["sixway", "rdisc6"], pref64),
    Interop::new("the_kernel_configures_itself_by_our_advertisements", &["sixway"], kernel_follows),
    Interop::new(
        "a_prefix_goes_out_of_use_when_the_6to4_address_changes",
        &["sixway"],
        changed_address_deprecates,
    ),
];

/// One router and one host on a link; the router's device has the same link-layer address in every network.
fn network() -> Result<Network> {
    let network = Network::new(&["gateway", "host"])?;
    network.link(("gateway", "in0"), ("host", "up0"))?;
    network.host("gateway")?.ip("link set in0 down")?;
    network.host("gateway")?.ip("link set in0 address 02:00:5e:10:00:01 up")?;
    network.address("gateway", "in0", "2001:db8:2::1/64")?;
    network.forwards("gateway")?;
    Ok(network)
}

const OURS: &str = r#"[tun]
name = "sixway0"

[[router_advertisement]]
interface = "in0"
max_interval = "10 min"
min_interval = "200 s"
router_lifetime = "30 min"
preference = "high"
other = true
hop_limit = 61
mtu = 1480
reachable_time = "30 s"
retransmit_timer = "2 s"
rdnss = ["2001:db8:2::53", "2001:db8:2::54"]
dnssl = ["example.org", "lab.example.org"]
dns_lifetime = "30 min"
prefixes = [
  { prefix = "2001:db8:2::/64", valid_lifetime = "30 d", preferred_lifetime = "7 d" },
  { prefix = "2001:db8:3::/64", autonomous = false, valid_lifetime = "infinite", preferred_lifetime = "infinite" },
]
routes = [{ prefix = "2001:db8:64::/96", preference = "low", lifetime = "20 min" }]

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const RADVD: &str = "interface in0 {
  AdvSendAdvert on;
  MaxRtrAdvInterval 600;
  MinRtrAdvInterval 200;
  AdvDefaultLifetime 1800;
  AdvDefaultPreference high;
  AdvOtherConfigFlag on;
  AdvCurHopLimit 61;
  AdvLinkMTU 1480;
  AdvReachableTime 30000;
  AdvRetransTimer 2000;
  prefix 2001:db8:2::/64 { AdvValidLifetime 2592000; AdvPreferredLifetime 604800; };
  prefix 2001:db8:3::/64 { AdvAutonomous off; AdvValidLifetime infinity; AdvPreferredLifetime infinity; };
  route 2001:db8:64::/96 { AdvRoutePreference low; AdvRouteLifetime 1200; };
  RDNSS 2001:db8:2::53 2001:db8:2::54 { AdvRDNSSLifetime 1800; };
  DNSSL example.org lab.example.org { AdvDNSSLLifetime 1800; };
};
";

fn as_radvd() -> Result<()> {
    let ours = network()?;
    run_sixway(&ours, OURS)?;
    let theirs = network()?;
    let file = theirs.file("radvd.conf", RADVD)?;
    let mut radvd = command("radvd")?;
    radvd.args(["-n", "-m", "stderr", "-u", "root", "-p"]).arg(theirs.folder().join("radvd.pid"));
    radvd.arg("-C").arg(file);
    theirs.start("gateway", radvd)?;
    let (ours, theirs) = (Advertisement::asked_for(&ours)?, Advertisement::asked_for(&theirs)?);
    assert_eq!(ours.header, theirs.header, "hop limit, flags, lifetime, timers");
    assert_eq!(ours.options, theirs.options);
    assert_eq!(ours.decoded, theirs.decoded, "as rdisc6 reads them");
    for line in ["Router lifetime : 1800", "2001:db8:2::/64", "Router preference : high", "lab.example.org"] {
        assert!(ours.decoded.iter().any(|said| said.contains(line)), "{line} is not in {:?}", ours.decoded);
    }
    Ok(())
}

/// A router advertisement as it came (RFC 4861 §4.2).
struct Advertisement {
    /// Behind the checksum, 12 octets.
    header: Vec<u8>,
    /// Each option's octets; their order says nothing.
    options: BTreeSet<Vec<u8>>,
    /// What rdisc6 says of it, its lines with white space folded.
    decoded: BTreeSet<String>,
}

impl Advertisement {
    /// The answer to a router solicitation of the host.
    fn asked_for(network: &Network) -> Result<Self> {
        let host = network.host("host")?;
        let socket = host.enter(icmpv6_socket)??;
        let mut said = String::new();
        interrupt::wait_until(Duration::from_secs(10), "a router advertisement", || {
            let mut rdisc6 = command("rdisc6")?;
            rdisc6.args(["-1", "-w", "1000", "up0"]);
            said = host.run(rdisc6, Duration::from_secs(10))?.stdout;
            Ok(said.contains("Router lifetime"))
        })?;
        let octets = last_advertisement(&socket)?;
        let folded = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        // What it says of the advertisement follows a name.
        let decoded = folded.filter(|line| line.contains(" : ") || line.contains(".: ")).collect();
        Ok(Self { header: octets[4..16].to_vec(), options: options(&octets[16..])?, decoded })
    }
}

/// The last router advertisement that a socket has received.
pub fn last_advertisement(socket: &UdpSocket) -> Result<Vec<u8>> {
    let limit = Some(Duration::from_millis(200));
    socket.set_read_timeout(limit).asking(|| "setting a time limit".to_owned())?;
    let start = Instant::now();
    let (mut octets, mut last) = ([0; 2_048], None);
    while let Ok(length) = socket.recv(&mut octets)
        && start.elapsed() < Duration::from_secs(5)
    {
        if octets[0] == 134 && length >= 16 {
            last = Some(octets[..length].to_vec());
        }
    }
    last.ok_or_else(|| Failure::Unexpected("no router advertisement was received".to_owned()))
}

/// Options are type, length in eights of octets, and the rest (RFC 4861 §4.6).
pub fn options(mut octets: &[u8]) -> Result<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    while let [_, eights, ..] = *octets {
        let length = usize::from(eights) * 8;
        if length == 0 || length > octets.len() {
            return Err(Failure::Unexpected(format!("an option of {length} octets in {}", octets.len())));
        }
        found.insert(octets[..length].to_vec());
        octets = &octets[length..];
    }
    Ok(found)
}

fn pref64() -> Result<()> {
    let network = network()?;
    let routed = "pref64 = \"2001:db8:64::/96\"\npref64_lifetime = \"30 min\"\n";
    let configuration = OURS.replace("mtu = 1480\n", &format!("mtu = 1480\n{routed}"));
    run_sixway(&network, &configuration)?;
    let advertised = Advertisement::asked_for(&network)?;
    // Type 38, 16 octets, 1,800 s in eights in the upper 13 bits with a length code of 0 for /96, and 96 bits of the prefix (RFC 8781 §4).
    let expected = [38, 2, 0x07, 0x08, 0x20, 0x01, 0x0d, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0];
    assert!(advertised.options.contains(&expected[..]), "{:x?}", advertised.options);
    Ok(())
}

/// Lets a host's kernel follow advertisements (RFC 4862, RFC 4191).
fn listens(network: &Network) -> Result<()> {
    let host = network.host("host")?;
    host.ip("link set up0 down")?;
    for (key, value) in [("accept_ra", "1"), ("autoconf", "1"), ("router_solicitations", "3")] {
        host.sysctl(&format!("ipv6/conf/up0/{key}"), value)?;
    }
    host.sysctl("ipv6/conf/up0/router_solicitation_delay", "0").ok();
    host.sysctl("ipv6/conf/up0/accept_ra_rt_info_max_plen", "96").ok();
    host.ip("link set up0 up").map(drop)
}

fn kernel_follows() -> Result<()> {
    let network = network()?;
    let process = run_sixway(&network, OURS)?;
    listens(&network)?;
    let host = network.host("host")?;
    interrupt::wait_until(Duration::from_secs(15), "an address from the advertisement", || {
        Ok(host.ip("-6 address show dev up0")?.contains("inet6 2001:db8:2:"))
    })?;
    let addresses = host.ip("-6 address show dev up0")?;
    assert!(!addresses.contains("2001:db8:3:"), "the second prefix makes no addresses: {addresses}");
    let routes = host.ip("-6 route show")?;
    for route in [
        "default via fe80::",
        "2001:db8:2::/64 dev up0",
        "2001:db8:3::/64 dev up0",
        "2001:db8:64::/96 via fe80::",
    ] {
        assert!(routes.contains(route), "no {route} in {routes}");
    }
    assert!(routes.contains("pref high") && routes.contains("pref low"), "{routes}");
    assert_eq!(host.read_sysctl("ipv6/conf/up0/mtu")?, "1480");
    assert_eq!(host.read_sysctl("ipv6/conf/up0/hop_limit")?, "61");
    assert_eq!(host.read_sysctl("ipv6/neigh/up0/retrans_time_ms")?, "2000");
    network.with_process(process, |process| process.stop())?;
    interrupt::wait_until(Duration::from_secs(5), "the end of the default route", || {
        Ok(!host.ip("-6 route show default")?.contains("via fe80::"))
    })
}

const SITE: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "router"
interface = "out0"

[[router_advertisement]]
interface = "in0"
prefixes = [{ from = "six_to_four", subnet = 1 }]

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

fn changed_address_deprecates() -> Result<()> {
    let network = network()?;
    let gateway = network.host("gateway")?;
    gateway.ip("link add out0 type veth peer name out1")?;
    gateway.ip("link set out0 up")?;
    gateway.ip("link set out1 up")?;
    gateway.ip("address add 192.0.2.8/24 dev out0")?;
    run_sixway(&network, SITE)?;
    listens(&network)?;
    let host = network.host("host")?;
    let address = |prefix: &str, deprecated: bool| {
        let said = host.ip("-6 -oneline address show dev up0 scope global")?;
        let mut lines = said.lines().filter(|line| line.contains(prefix));
        Ok(lines.any(|line| line.contains("deprecated") == deprecated))
    };
    let seconds = Duration::from_secs(15);
    interrupt::wait_until(seconds, "an address of the site", || address("2002:c000:208:1:", false))?;
    gateway.ip("address del 192.0.2.8/24 dev out0")?;
    gateway.ip("address add 192.0.2.77/24 dev out0")?;
    interrupt::wait_until(seconds, "an address of the new prefix", || address("2002:c000:24d:1:", false))?;
    interrupt::wait_until(seconds, "the old prefix out of use", || address("2002:c000:208:1:", true))
}
