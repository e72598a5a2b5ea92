//! The other half of the test, in a separate network namespace: interfaces with the names of the host's, its rules, and packets that are
//! sent into one interface and looked for at another.
//!
//! Every interface is a TUN device, so that no neighbour has to answer. The namespace ends with the process.

use super::program::run;
use serde::{Deserialize, Serialize};
use sixway_dataplane::{Frame, Offload};
use sixway_link::{Abilities, Link, NeighbourDiscovery, RawTunnel, Tun, TunConfig, TunQueue};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a packet is waited for.
const PATIENCE: Duration = Duration::from_millis(400);
/// How long all packets are waited for; after that, each further one only for [`SHORT`]: where many are dropped, so are those.
const BUDGET: Duration = Duration::from_secs(6);
const SHORT: Duration = Duration::from_millis(50);
const STEP: Duration = Duration::from_millis(5);
/// The most packets that are examined.
const MOST: usize = 64;
/// The most octets of the kernel's trace that are read.
const MOST_TEXT: u64 = 16 << 20;

/// The actions to take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Interfaces, with their addresses and prefix lengths.
    pub interfaces: Vec<(String, Vec<String>)>,
    /// Routes: destination and interface.
    pub routes: Vec<(String, String)>,
    /// Rulesets, each with the program that reads it.
    pub rules: Vec<(Vec<String>, String)>,
    /// Packets, one after the other.
    pub packets: Vec<Packet>,
}

/// A packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Where it comes in.
    pub into: String,
    /// Where it is to leave; `None`: it is for this host itself.
    pub expected: Option<String>,
    /// The address and UDP port of the service that it is for.
    pub service: Option<String>,
    /// The address where its tunnel ends, of protocol 41.
    pub tunnel_end: Option<Ipv4Addr>,
    /// Whether it is a router solicitation or advertisement, which comes in at a socket for these.
    #[serde(default)]
    pub is_discovery: bool,
    /// Its Identification or flow label, by which it is recognised; no two packets have the same.
    pub mark: u16,
    /// From the IP header on.
    pub octets: Vec<u8>,
}

/// The outcome of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// It arrived where it was expected.
    pub arrived: bool,
    /// With another source.
    pub translated: bool,
    /// The chain that dropped it: family, table, name.
    pub dropped_by: Option<String>,
    /// The chain that gave it another source.
    #[serde(default)]
    pub translated_by: Option<String>,
}

/// Reads a plan, carries it out, and prints each packet's fate. To be called in a new network namespace.
///
/// # Errors
/// The step that failed.
pub fn act() -> Result<String, String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let fates = carry_out(&plan)?;
    serde_json::to_string(&fates).map_err(|error| error.to_string())
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    run(Command::new("ip").args(arguments), &[]).map(drop)
}

fn set(name: &str, value: &str) -> Result<(), String> {
    match std::fs::write(format!("/proc/sys/net/{name}"), value) {
        // Nothing would be forwarded.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            Err("/proc/sys is read-only, as in a container".into())
        }
        // A kernel without IPv6 has no such settings.
        Ok(()) | Err(_) => Ok(()),
    }
}

fn carry_out(plan: &Plan) -> Result<Vec<Fate>, String> {
    ip(&["link", "set", "lo", "up"])?;
    for conf in ["all", "default"] {
        set(&format!("ipv6/conf/{conf}/forwarding"), "1")?;
        set(&format!("ipv6/conf/{conf}/accept_dad"), "0")?;
        set(&format!("ipv4/conf/{conf}/forwarding"), "1")?;
        set(&format!("ipv4/conf/{conf}/rp_filter"), "0")?;
        set(&format!("ipv4/conf/{conf}/accept_local"), "1")?;
    }
    let mut interfaces = BTreeMap::new();
    for (name, addresses) in &plan.interfaces {
        let config = TunConfig { name: name.clone(), abilities: Abilities::NONE, ..TunConfig::default() };
        let mut tun = Tun::open(&config).map_err(|error| format!("{name}: {error}"))?;
        for address in addresses {
            ip(&["addr", "add", address, "dev", name])?;
        }
        ip(&["link", "set", name, "up"])?;
        interfaces.extend(tun.queues.pop().map(|queue| (name.clone(), queue)));
    }
    for (destination, interface) in &plan.routes {
        let family = if destination.contains(':') { "-6" } else { "-4" };
        ip(&[family, "route", "replace", destination, "dev", interface])?;
    }
    for (program, text) in &plan.rules {
        let Some((name, arguments)) = program.split_first() else { continue };
        run(Command::new(name).args(arguments), text.as_bytes())?;
    }
    let mut trace = Trace::start();
    let mut waited = Duration::ZERO;
    let tried = plan.packets.iter().map(|packet| {
        let (begun, patience) = (Instant::now(), if waited < BUDGET { PATIENCE } else { SHORT });
        let fate = send(packet, &mut interfaces, patience);
        waited += begun.elapsed();
        fate
    });
    let mut fates: Vec<Fate> = tried.collect();
    let text = trace.end();
    let (drops, translates) = (chains(&text, drops), chains(&text, translates));
    for (fate, packet) in fates.iter_mut().zip(&plan.packets) {
        fate.dropped_by = drops.get(&packet.mark).filter(|_| !fate.arrived).cloned();
        fate.translated_by = translates.get(&packet.mark).filter(|_| fate.translated).cloned();
    }
    Ok(fates)
}

fn send(packet: &Packet, interfaces: &mut BTreeMap<String, TunQueue>, patience: Duration) -> Fate {
    let service = packet.service.as_ref().and_then(|address| UdpSocket::bind(address).ok());
    if let Some(service) = &service {
        let _ = service.set_nonblocking(true);
    }
    let mut tunnel = packet.tunnel_end.and_then(|address| RawTunnel::open(address).ok());
    let discovery = packet.is_discovery.then(|| NeighbourDiscovery::open(&packet.into).ok()).flatten();
    let mut frames: Vec<Frame> = (0..MOST).map(|_| Frame::with_capacity(2_048)).collect();
    // What the kernel sent before, such as router solicitations.
    for queue in interfaces.values_mut() {
        let _ = queue.receive(&mut frames);
    }
    let mut frame = Frame::with_capacity(packet.octets.len());
    frame.fill(&packet.octets, Offload::default());
    let sent =
        interfaces.get_mut(&packet.into).map(|queue| queue.send(&mut frame).and_then(|()| queue.flush()));
    if !matches!(sent, Some(Ok(()))) {
        return Fate::default();
    }
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if let Some(service) = &service
            && service.recv(&mut [0; 100]).is_ok()
        {
            return Fate { arrived: true, ..Fate::default() };
        }
        // The type of the message.
        if let Some(discovery) = &discovery
            && discovery.receive(&mut [0; 1]).is_ok_and(|heard| heard.is_some())
        {
            return Fate { arrived: true, ..Fate::default() };
        }
        if let Some(tunnel) = &mut tunnel
            && tunnel.receive(&mut frames).is_ok_and(|count| count > 0)
        {
            return Fate { arrived: true, ..Fate::default() };
        }
        if let Some(queue) = packet.expected.as_ref().and_then(|name| interfaces.get_mut(name)) {
            let count = queue.receive(&mut frames).unwrap_or(0);
            let destination_is_same = |octets: &[u8]| to(octets) == to(&packet.octets);
            if let Some(found) = frames[..count].iter().find(|frame| destination_is_same(frame.bytes())) {
                let translated = from(found.bytes()) != from(&packet.octets);
                return Fate { arrived: true, translated, ..Fate::default() };
            }
        }
        std::thread::sleep(STEP);
    }
    Fate::default()
}

/// Source address and port.
fn from(octets: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    endpoint(octets, 0)
}

/// Destination address and port.
fn to(octets: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    endpoint(octets, 1)
}

fn endpoint(octets: &[u8], which: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let (address, length, transport) = match octets.first()? >> 4 {
        4 => (12 + 4 * which, 4, 20),
        _ => (8 + 16 * which, 16, 40),
    };
    let address = octets.get(address..address + length)?.to_vec();
    let port = octets.get(transport + 2 * which..transport + 2 * which + 2)?.to_vec();
    Some((address, port))
}

/// `nft monitor trace`, which tells the chain that drops a packet.
struct Trace {
    /// It, and what it prints; `None`: there is no nft.
    monitor: Option<(Child, JoinHandle<String>)>,
}

impl Trace {
    fn start() -> Self {
        let rules = "table inet sixway_trace { chain prerouting { type filter hook prerouting priority -400; meta nftrace set 1; }; }";
        let traced = run(Command::new("nft").args(["-f", "-"]), rules.as_bytes());
        let monitor = || {
            let mut command = Command::new("nft");
            command
                .args(["monitor", "trace"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut monitor = command.spawn().ok()?;
            let stdout = monitor.stdout.take()?;
            // It is read meanwhile: a pipe holds less than many rules print, and what finds it full is lost.
            Some((monitor, std::thread::spawn(|| read(stdout))))
        };
        let monitor = traced.ok().and_then(|_| monitor());
        if monitor.is_some() {
            // Until it listens.
            std::thread::sleep(PATIENCE);
        }
        Self { monitor }
    }

    /// What it printed.
    fn end(&mut self) -> String {
        let Some((mut monitor, text)) = self.monitor.take() else { return String::new() };
        std::thread::sleep(PATIENCE);
        let _ = monitor.kill();
        let _ = monitor.wait();
        text.join().unwrap_or_default()
    }
}

fn read(from: impl Read) -> String {
    let mut octets = Vec::new();
    let _ = from.take(MOST_TEXT).read_to_end(&mut octets);
    String::from_utf8_lossy(&octets).into_owned()
}

/// The Identification or flow label in a line of the trace.
fn mark(words: &[&str]) -> Option<u16> {
    let named = |name: [&str; 2]| words.windows(3).find(|three| three[..2] == name)?[2].parse().ok();
    named(["ip", "id"]).or_else(|| named(["ip6", "flowlabel"])).filter(|mark| *mark != 0)
}

/// Whether a line of the trace, behind the chain's name, tells that the chain dropped the packet.
fn drops(rest: &[&str]) -> bool {
    rest.ends_with(&["policy", "drop"]) || rest.ends_with(&["(verdict", "drop)"])
}

/// Whether it tells that a rule gave the packet another source.
fn translates(rest: &[&str]) -> bool {
    let translating = ["masquerade", "snat", "netmap"];
    let names = |word: &&str| translating.contains(&&*word.trim_matches('"').to_ascii_lowercase());
    rest.first() == Some(&"rule") && rest.iter().any(names)
}

/// The chains of which the trace tells this, by the packets' marks. Lines are as `trace id 8f1a2b3c inet filter forward policy drop`; the
/// first of a packet has its headers.
fn chains(text: &str, tells: fn(&[&str]) -> bool) -> BTreeMap<u16, String> {
    let (mut marks, mut chains) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["trace", "id", id, family, table, chain, rest @ ..] = words.as_slice() else { continue };
        if let Some(mark) = mark(rest) {
            marks.entry((*id).to_owned()).or_insert(mark);
        }
        if tells(rest)
            && let Some(mark) = marks.get(*id)
        {
            chains.insert(*mark, format!("{family} {table} {chain}"));
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_that_drops_is_read_from_the_trace() {
        let text = "trace id 6f0a inet sixway_trace prerouting packet: iif \"lan0\" ip6 saddr 2001:db8::1 ip6 hoplimit 64 ip6 flowlabel 40001 tcp sport 50000\n\
                    trace id 6f0a inet sixway_trace prerouting rule meta nftrace set 1 (verdict continue)\n\
                    trace id 6f0a inet filter forward packet: iif \"lan0\" ip6 flowlabel 40001 tcp sport 50000\n\
                    trace id 6f0a inet filter forward policy drop\n\
                    trace id 7000 ip filter FORWARD packet: iif \"eth0\" ip saddr 192.0.2.1 ip ttl 64 ip id 40002 ip protocol tcp tcp sport 443\n\
                    trace id 7000 ip filter DOCKER-USER rule counter packets 0 bytes 0 drop (verdict drop)\n\
                    trace id 7001 ip filter FORWARD packet: iif \"eth0\" ip id 40003 tcp sport 443\n\
                    trace id 7001 ip filter FORWARD rule accept (verdict accept)\n";
        let expected =
            [(40_001, "inet filter forward".to_owned()), (40_002, "ip filter DOCKER-USER".to_owned())];
        assert_eq!(chains(text, drops), expected.into_iter().collect());
    }

    #[test]
    fn the_chain_that_gives_another_source_is_read_from_the_trace() {
        let text = "trace id 6f0a ip nat post packet: iif \"sixway0\" oif \"out0\" ip saddr 192.0.2.1 ip id 40001 tcp sport 443\n\
                    trace id 6f0a ip nat post rule oifname \"out0\" masquerade (verdict accept)\n\
                    trace id 7000 ip nat POSTROUTING packet: iif \"sixway0\" ip id 40002 tcp sport 443\n\
                    trace id 7000 ip nat POSTROUTING rule oifname \"out0\" counter xt target \"MASQUERADE\" (verdict accept)\n\
                    trace id 7001 ip nat post packet: iif \"sixway0\" ip id 40003 tcp sport 443\n\
                    trace id 7001 ip nat post policy accept\n";
        let expected = [(40_001, "ip nat post".to_owned()), (40_002, "ip nat POSTROUTING".to_owned())];
        assert_eq!(chains(text, translates), expected.into_iter().collect());
    }
}
