//! `sixway trace` and `sixway replay`.

use super::failure::Failure;
use super::live::{self, Watched};
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::show::only_socket;
use crate::admin::Client;
use crate::config::Config;
use crate::host::{self, hop};
use crate::trace::{Asked, Fate, Kind, Offline, described, holder, in_softwire, note_ends, note_own, replay};
use crate::view::{BindingRow, LeaseRow, MechanismRow, Page, SessionRow, Status, TeredoRow};
use clap::Args;
use serde::Serialize;
use sixway_dataplane::DropReason;
use sixway_dataplane::parse::{ACK, SYN};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The packet that `sixway trace` is asked about.
#[derive(Debug, Args)]
#[group(required = false)]
pub(super) struct TraceArguments {
    /// Source address.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "live")]
    from: Option<IpAddr>,
    /// Destination address; an IPv4 address may be written in a prefix, as in 64:ff9b::203.0.113.2.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "live")]
    to: Option<IpAddr>,
    /// Show packets as they pass the running gateway, with their results. --from and --to apply to packets as they arrive.
    #[arg(long, conflicts_with_all = ["tcp", "udp", "icmp", "size"])]
    live: bool,
    /// With --live: only tcp, udp, icmp, gre, esp, ipv6 or ipip.
    #[arg(long, requires = "live")]
    protocol: Option<String>,
    /// With --live: only packets with this port, or ICMP identifier.
    #[arg(long, requires = "live")]
    port: Option<u16>,
    /// With --live: only packets that are dropped.
    #[arg(long, requires = "live")]
    drops: bool,
    /// With --live: end after this number of packets.
    #[arg(long, requires = "live", value_name = "PACKETS")]
    count: Option<u64>,
    /// With --live: end after this number of seconds; without it, when interrupted.
    #[arg(long, requires = "live")]
    seconds: Option<u64>,
    /// TCP, with these ports.
    #[arg(long, value_name = "SOURCE:DESTINATION", value_parser = ports, conflicts_with_all = ["udp", "icmp"])]
    tcp: Option<(u16, u16)>,
    /// UDP, with these ports.
    #[arg(long, value_name = "SOURCE:DESTINATION", value_parser = ports, conflicts_with = "icmp")]
    udp: Option<(u16, u16)>,
    /// An echo request with this identifier.
    #[arg(long, value_name = "IDENTIFIER")]
    icmp: Option<u16>,
    /// Size in octets, IP header included; 0: the minimum.
    #[arg(long, default_value_t = 0)]
    size: usize,
    /// At an AFTR: the IPv6 address of the B4 whose softwire the packet arrives through.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "live")]
    softwire: Option<Ipv6Addr>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// The admin socket of the gateway, if several run on this host.
    #[arg(long)]
    socket: Option<PathBuf>,
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let wrong = || "two ports are written as 50122:443".to_owned();
    let (source, destination) = text.split_once(':').ok_or_else(wrong)?;
    Ok((source.parse().map_err(|_| wrong())?, destination.parse().map_err(|_| wrong())?))
}

/// A step of the packet's way.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Step {
    step: &'static str,
    what: String,
}

/// Data from the running gateway.
#[derive(Debug, Default)]
struct Known {
    is_running: bool,
    mechanisms: Vec<String>,
    /// The packet's session.
    session: Option<SessionRow>,
    /// Sessions of the same inside endpoint: they tell its binding.
    related: Vec<SessionRow>,
    /// The leases of 4over6.
    leases: Vec<LeaseRow>,
    /// Its mechanisms.
    rows: Vec<MechanismRow>,
    /// Mappings of NAT46.
    mappings: Vec<BindingRow>,
    /// The address of its Teredo client.
    teredo: Option<Ipv6Addr>,
}

/// Traces a packet, or shows packets as they pass. A drop of the packet is a failure.
pub(super) fn run(arguments: &TraceArguments, config: &Config) -> Result<(), Failure> {
    if arguments.live {
        return live::run(&arguments.watched(), &Client::new(&arguments.socket(config)?));
    }
    let kind = |flags| match (arguments.tcp, arguments.udp, arguments.icmp) {
        (Some((source, destination)), _, _) => Kind::Tcp(source, destination, flags),
        (None, Some((source, destination)), _) => Kind::Udp(source, destination),
        (None, None, identifier) => Kind::Echo(identifier.unwrap_or(0)),
    };
    let (Some(from), Some(to)) = (arguments.from, arguments.to) else {
        return Err(Failure::Wrong("--from and --to are missing".into()));
    };
    let asked = |flags| Asked { from, to, kind: kind(flags), size: arguments.size };
    if from.is_ipv4() != to.is_ipv4() {
        return Err(Failure::Wrong(of_two_families(to, config)));
    }
    if arguments.tcp.is_none() && arguments.udp.is_none() && arguments.icmp.is_none() {
        let what = "the protocol is missing; add --tcp 50122:443, --udp 50122:53 or --icmp 7, with the ports in question";
        return Err(Failure::Wrong(what.into()));
    }
    let known = known(arguments, config, &asked(0))?;
    // Within a session, a segment; else what opens one.
    let flags = if known.session.is_some() { ACK } else { SYN };
    let octets = match (arguments.softwire, asked(flags).octets().unwrap_or_default()) {
        (Some(b4), packet) => in_softwire(b4, aftr_of(config, from)?, &packet),
        (None, packet) => packet,
    };
    let mut now = host::surroundings();
    note_own(&mut now, &known.leases);
    note_ends(&mut now, &known.rows, known.teredo);
    let mut offline = Offline::new(config, &now).map_err(Failure::Failed)?;
    offline.lend(config, &known.leases);
    offline.map(&known.mappings, from, to);
    let sessions: Vec<SessionRow> = known.session.iter().chain(&known.related).cloned().collect();
    offline.adopt(&known.mechanisms, &sessions);
    let fate = offline.pass(&octets);
    let mut steps = steps(&octets, &known, &fate);
    // While the gateway does not run, nothing is known of them.
    for address in [from, to].into_iter().filter(|_| known.is_running) {
        let IpAddr::V4(address) = address else { continue };
        if let Some(what) = holder(config, &known.leases, address) {
            steps.insert(1, Step { step: "lease", what });
        }
    }
    if !config.others.teredo_client.is_empty() || !config.others.teredo_relay.is_empty() {
        let what = "Teredo's peers are not copied: this is the result for a packet of a new peer";
        steps.push(Step { step: "note", what: what.into() });
    }
    if arguments.json {
        say(&serde_json::to_string_pretty(&steps).map_err(|error| Failure::Failed(error.to_string()))?);
    } else {
        for (number, step) in steps.iter().enumerate() {
            say(&format!("{} {:<9}  {}", number + 1, step.step, step.what));
        }
    }
    match fate.dropped {
        None => Ok(()),
        Some(reason) => Err(Failure::Failed(format!("dropped: {}", reason.name()))),
    }
}

/// Where softwires end.
fn aftr_of(config: &Config, from: IpAddr) -> Result<Ipv6Addr, Failure> {
    let first = config.aftrs().find_map(|aftr| aftr.addresses.first().copied());
    match (first, from) {
        (Some(first), IpAddr::V4(_)) => Ok(first),
        (Some(_), IpAddr::V6(_)) => {
            Err(Failure::Wrong("--softwire is for IPv4 packets: --from and --to are IPv4 addresses".into()))
        }
        (None, _) => Err(Failure::Wrong(
            "--softwire needs an AFTR in the configuration: [ds_lite] with role = \"aftr\"".into(),
        )),
    }
}

/// The error for an IPv6 source with an IPv4 destination, or the reverse.
fn of_two_families(to: IpAddr, config: &Config) -> String {
    let what = "--from and --to must be of the same family";
    match (to, config.nat64.first()) {
        (IpAddr::V4(server), Some(nat64)) => {
            format!("{what}; behind nat64, {server} is --to {}", nat64.prefix.embed_any(server))
        }
        (_, _) => what.to_owned(),
    }
}

fn steps(octets: &[u8], known: &Known, fate: &Fate) -> Vec<Step> {
    let mut steps = vec![Step { step: "packet", what: described(octets) }];
    let session = match (&known.session, known.is_running) {
        (Some(row), _) => Some(format!(
            "{}: {} {} → {} with {}, {}; carried by: {}",
            row.mechanism, row.protocol, row.inside, row.outside, row.remote, row.state, row.path
        )),
        (None, true) if known.mechanisms.is_empty() => None,
        (None, true) => Some("the running gateway has none for it".to_owned()),
        (None, false) => Some("the gateway does not run: without any session".to_owned()),
    };
    steps.extend(session.map(|what| Step { step: "session", what }));
    let by = fate.counted.iter().filter(|(name, _)| !name.starts_with("icmp_errors"));
    let by: Vec<&str> = by.map(|(name, _)| name.as_str()).collect();
    if !by.is_empty() {
        steps.push(Step { step: "mechanism", what: in_words(&by) });
    }
    if let Some(reason) = fate.dropped {
        steps.push(Step { step: "dropped", what: format!("{}: {}", reason.name(), reason.help()) });
        let answer = match fate.sent.first() {
            Some(error) => format!("{} (rate-limited)", described(error)),
            None => no_answer(reason),
        };
        steps.push(Step { step: "answer", what: answer });
        return steps;
    }
    if fate.punted {
        steps.push(Step { step: "host", what: "no mechanism handles it: it is left to the host".into() });
    }
    if fate.held {
        steps.push(Step {
            step: "held",
            what: "it is held: a fragment waits for the others, a SYN from outside for a SYN from inside"
                .into(),
        });
    }
    steps.extend(fate.sent.iter().map(|packet| Step { step: "result", what: described(packet) }));
    if let Some(destination) = fate.destination() {
        let what = match hop(destination) {
            Some(hop) => {
                let router = hop.gateway.map_or_else(String::new, |router| format!(" via {router}"));
                format!("the kernel sends it to {}{router}", hop.interface)
            }
            None => format!("the kernel has no route to {destination}"),
        };
        steps.push(Step { step: "route", what });
    }
    steps
}

/// The meaning of counters that grew: the mechanism and direction, and what was created.
fn in_words(names: &[&str]) -> String {
    let made =
        |what: &str, words: &'static str| names.iter().any(|name| name.ends_with(what)).then_some(words);
    let way = names.iter().find(|name| !name.ends_with(".made") && !name.ends_with(".ended"));
    let way = way.map_or_else(String::new, |name| name.replace('.', ": ").replace('_', " "));
    let made = [
        made("bindings.made", "a binding is made (RFC 6146 §3.5)"),
        made("sessions.made", "a session is made"),
        made("portless.made", "a session without ports is made"),
    ];
    std::iter::once(way)
        .filter(|way| !way.is_empty())
        .chain(made.into_iter().flatten().map(str::to_owned))
        .collect::<Vec<_>>()
        .join("; ")
}

fn no_answer(reason: DropReason) -> String {
    let answer = reason.answer();
    match (answer.icmpv4, answer.icmpv6) {
        (None, None) => "none: no ICMP error is sent for this reason".into(),
        (_, _) => {
            "none: no ICMP error may be sent to this sender, or the gateway has no address to send it from"
                .into()
        }
    }
}

impl TraceArguments {
    fn watched(&self) -> Watched {
        Watched {
            from: self.from,
            to: self.to,
            protocol: self.protocol.clone(),
            port: self.port,
            drops: self.drops,
            count: self.count,
            seconds: self.seconds,
            json: self.json,
        }
    }

    /// The socket of the gateway that is meant.
    fn socket(&self, config: &Config) -> Result<PathBuf, Failure> {
        match &self.socket {
            Some(socket) => Ok(socket.clone()),
            None if config.gateway.admin_socket.exists() => Ok(config.gateway.admin_socket.clone()),
            None => only_socket(Path::new(RUN_DIRECTORY)),
        }
    }
}

/// Asks the running gateway, if there is one.
fn known(arguments: &TraceArguments, config: &Config, asked: &Asked) -> Result<Known, Failure> {
    let Ok(socket) = arguments.socket(config) else { return Ok(Known::default()) };
    let client = Client::new(&socket);
    let Ok(status) = client.get::<Status>("/v1/status", &[]) else { return Ok(Known::default()) };
    let stateful = |row: &&MechanismRow| row.stateful;
    let mechanisms: Vec<String> =
        status.mechanisms.iter().filter(stateful).map(|row| row.name.clone()).collect();
    let mut known = Known { is_running: true, mechanisms, rows: status.mechanisms, ..Known::default() };
    if config.nat46().is_some() {
        let outside = asked.to.is_ipv4().then(|| asked.to.to_string());
        let query = [("outside", outside), ("limit", Some("1000".to_owned()))];
        let page = client.get::<Page<BindingRow>>("/v1/bindings", &query);
        known.mappings = page.map(|page| page.rows).unwrap_or_default();
    }
    if !config.others.teredo_client.is_empty() {
        let rows: Vec<TeredoRow> = client.get("/v1/teredo", &[]).unwrap_or_default();
        let mut addresses = rows.iter().filter_map(|row| row.client.as_ref()?.address.as_ref()?.parse().ok());
        known.teredo = addresses.next_back();
    }
    if !config.others.four_over_six.is_empty() {
        known.leases = client.get("/v1/leases", &[]).unwrap_or_default();
    }
    if known.mechanisms.is_empty() {
        return Ok(known);
    }
    let (protocol, source, destination) = match asked.kind {
        Kind::Tcp(source, destination, _) => ("tcp", source, destination),
        Kind::Udp(source, destination) => ("udp", source, destination),
        Kind::Echo(identifier) => ("icmp", identifier, identifier),
    };
    let endpoint = |address, port| SocketAddr::new(address, port).to_string();
    let key = match (asked.from, arguments.softwire) {
        (IpAddr::V6(_), _) | (IpAddr::V4(_), Some(_)) => ("inside", endpoint(asked.from, source)),
        (IpAddr::V4(_), None) => ("outside", endpoint(asked.to, destination)),
    };
    let query =
        [(key.0, Some(key.1)), ("protocol", Some(protocol.to_owned())), ("limit", Some("100".to_owned()))];
    let page = client
        .get::<Page<SessionRow>>("/v1/sessions", &query)
        .map_err(|error| Failure::Failed(format!("the running gateway: {error}")))?;
    let remote = match (asked.from, asked.to) {
        (IpAddr::V4(_), to) if arguments.softwire.is_some() => {
            Some(format!("{to}:{}", if protocol == "icmp" { 0 } else { destination }))
        }
        (IpAddr::V4(remote), _) => Some(format!("{remote}:{}", if protocol == "icmp" { 0 } else { source })),
        (_, IpAddr::V6(to)) => config.nat64.iter().find_map(|nat64| {
            let remote = nat64.prefix.extract_any(to).ok()?;
            Some(format!("{remote}:{}", if protocol == "icmp" { 0 } else { destination }))
        }),
        (_, IpAddr::V4(_)) => None,
    };
    let softwire = arguments.softwire.map(|b4| b4.to_string());
    let of_softwire = |row: &SessionRow| softwire.is_none() || row.softwire == softwire;
    for row in page.rows.into_iter().filter(of_softwire) {
        match known.session.is_none() && Some(&row.remote) == remote.as_ref() {
            true => known.session = Some(row),
            false => known.related.push(row),
        }
    }
    Ok(known)
}

/// The arguments of `sixway replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArguments {
    /// The capture to read: classic pcap of bare IP packets, as `tcpdump -i sixway0 -w FILE` writes it.
    input: PathBuf,
    /// The capture to write.
    output: PathBuf,
}

/// Replays a capture.
pub(super) fn run_replay(arguments: &ReplayArguments, config: &Config) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let input = File::open(&arguments.input).map_err(|error| failed(&arguments.input, error))?;
    let output = File::create(&arguments.output).map_err(|error| failed(&arguments.output, error))?;
    let mut output = BufWriter::new(output);
    let replayed = replay(config, &host::surroundings(), BufReader::new(input), &mut output)
        .map_err(|error| failed(&arguments.input, error))?;
    output.flush().map_err(|error| failed(&arguments.output, error))?;
    say(&format!(
        "{} packets read, {} written, {} kept or left to the host",
        replayed.read, replayed.written, replayed.kept
    ));
    if replayed.cut > 0 {
        say(&format!("{} omitted: the capture has only their beginning (use tcpdump -s 0)", replayed.cut));
    }
    for (reason, count) in &replayed.dropped {
        say(&format!("{count} dropped: {reason}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_two_numbers() {
        assert_eq!(ports("50122:443"), Ok((50_122, 443)));
        for wrong in ["443", "a:b", "1:65536", ":"] {
            assert!(ports(wrong).unwrap_err().contains("50122:443"), "{wrong}");
        }
    }

    #[test]
    fn counters_become_words() {
        let names = ["nat.bindings.made", "nat.sessions.made", "nat64.v6_to_v4"];
        assert_eq!(in_words(&names), "nat64: v6 to v4; a binding is made (RFC 6146 §3.5); a session is made");
        assert_eq!(in_words(&["siit.v4_to_v6"]), "siit: v4 to v6");
    }
}
