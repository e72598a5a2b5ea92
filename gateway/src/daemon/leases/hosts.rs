//! Addresses that this host leases over IPv6: taken at the first IPv4 packet, released after a time without packets (RFC 7040, as in DSTM).
//!
//! A packet without a lease is passed to control. It waits here until there is a lease, and is then sent again. The address of the last
//! lease stays on the device, so that programs have a source address; it is requested again, which takes one round trip.

use super::file::{instant, unix};
use super::file_state::LeaseFiles;
use super::finished::finished;
use super::known_servers::KnownServers;
use super::query_sockets::QuerySockets;
use super::trouble::{LeaseTrouble, NoLease};
use crate::config::{Config, FourOverSix, HostEnd, HostLease};
use crate::view::LeaseRow;
use crate::worker::Clock;
use sixway_control::Instant;
use sixway_control::dhcp4o6::{Client, ClientEvent, ClientSettings, ClientState, Held, may_answer};
use sixway_dataplane::parse::{self, Addresses};
use sixway_link::PacketSender;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

/// Packets that wait for a lease; further ones are dropped.
const WAITING: usize = 64;
/// How long they wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the socket is examined while an answer is awaited.
const AWAITING: Duration = Duration::from_millis(5);

/// After this time a queried server counts as silent: two queries are lost by then.
const SILENCE: Duration = Duration::from_secs(10);

/// Leases of a previous process, by tunnel: their addresses stay on the device while this one starts, and with them the kernel keeps its routes.
pub(in crate::daemon) fn kept_leases(config: &Config) -> BTreeMap<String, HostLease> {
    let clock = Clock::start();
    let sections = config.others.four_over_six.iter();
    let leasing = sections.filter(|section| section.host().is_some_and(|end| end.address.is_none()));
    let kept = leasing.filter_map(|section| {
        let text = fs::read_to_string(section.lease_path(&config.gateway.name)).ok()?;
        let Held { ipv4, times: [_, _, end], .. } = read(&text, clock)?;
        Some((section.name.clone(), HostLease { ipv4, is_held: end > clock.now() }))
    });
    kept.collect()
}

/// All of this host's leases.
pub(in crate::daemon) struct LeaseHosts {
    clock: Clock,
    hosts: Vec<Host>,
    sockets: QuerySockets,
    sender: Option<PacketSender>,
    leases: BTreeMap<String, HostLease>,
    trouble: bool,
}

struct Host {
    name: String,
    client: Client,
    tunnel: Ipv6Addr,
    concentrator: Ipv6Addr,
    servers: KnownServers,
    idle: Option<Duration>,
    file: PathBuf,
    /// How it is.
    state: LeaseFiles,
    /// When the first query was sent of those that have had no answer since.
    asked: Option<Instant>,
    /// Whether that was logged.
    told_silence: bool,
    /// When a packet passed last.
    used: Instant,
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

impl LeaseHosts {
    /// Those of a configuration; `None`: there are none.
    pub(in crate::daemon) fn new(config: &Config, clock: Clock, seed: u64) -> Option<Self> {
        let sections = config.others.four_over_six.iter();
        let sections = sections.filter_map(|section| Some((section, section.host()?)));
        let leasing = sections.filter(|(_, end)| end.address.is_none());
        let hosts: Vec<Host> = leasing
            .zip(0..)
            .map(|((section, end), number)| {
                Host::new((section, end), &config.gateway.name, clock, seed ^ number)
            })
            .collect();
        (!hosts.is_empty()).then(|| Self {
            clock,
            hosts,
            sockets: QuerySockets::default(),
            sender: None,
            leases: BTreeMap::new(),
            trouble: false,
        })
    }

    /// Reads answers and sends due queries. Returns the leases.
    pub(in crate::daemon) fn work(&mut self) -> &BTreeMap<String, HostLease> {
        let now = self.clock.now();
        if self.open().is_none() {
            return &self.leases;
        }
        self.hear(now);
        for host in &mut self.hosts {
            let servers = host.servers.now();
            // RFC 7341 §9: without the option, no server is queried. It is tried again when the option appears.
            while !servers.is_empty()
                && let Some(message) = host.client.poll_transmit(now)
            {
                servers.iter().for_each(|server| self.sockets.send(*server, host.concentrator, &message));
                // A release has no answer.
                if host.awaits() {
                    host.asked.get_or_insert(now);
                }
            }
            if servers.is_empty() {
                host.client.expire(now);
            }
            while let Some(event) = host.client.poll_event() {
                host.note(event, self.clock);
            }
            host.waiting.retain(|(since, _)| now.since(*since) < PATIENCE);
            match host.client.remembered() {
                Some(ipv4) => {
                    let lease = HostLease { ipv4, is_held: host.client.held().is_some() };
                    self.leases.insert(host.name.clone(), lease);
                }
                // It stays on the device until another one is leased: programs keep a source, and the kernel its IPv4 routes.
                None => {
                    if let Some(lease) = self.leases.get_mut(&host.name) {
                        lease.is_held = false;
                    }
                }
            }
        }
        if !self.hosts.iter().any(Host::awaits) {
            self.sockets.close();
        }
        &self.leases
    }

    fn open(&mut self) -> Option<()> {
        if self.sender.is_none() {
            match PacketSender::open() {
                Ok(sender) => self.sender = Some(sender),
                Err(error) if !self.trouble => {
                    tracing::error!("no lease can be taken: {error}; it is tried again");
                    self.trouble = true;
                }
                Err(_) => {}
            }
        }
        self.sender.as_ref().map(drop)
    }

    fn hear(&mut self, now: Instant) {
        let hosts = &mut self.hosts;
        self.sockets.hear(|source, octets| {
            for host in hosts.iter_mut().filter(|host| may_answer(host.servers.now(), source)) {
                match host.client.handle_response(now, octets) {
                    Ok(()) => host.note_answer(),
                    Err(why) => tracing::debug!("{}: response of {source} ignored: {why:?}", host.name),
                }
            }
        });
    }

    /// A packet that found no lease: it waits, and one is taken.
    pub(in crate::daemon) fn receive(&mut self, mut packet: Vec<u8>) {
        let now = self.clock.now();
        let Some((source, _)) = finished(&mut packet) else { return };
        // With several 4over6 hosts on one machine, the one that had the source address.
        let several = self.hosts.len() > 1;
        let host = self.hosts.iter_mut().find(|host| !several || host.client.remembered() == Some(source));
        let Some(host) = host else { return };
        host.used = now;
        host.client.want(now);
        if host.waiting.len() < WAITING {
            host.waiting.push_back((now, packet));
        }
    }

    /// A packet came through the tunnel without a lease: a client looked up this host's name. Its sender repeats the packet.
    pub(in crate::daemon) fn wake(&mut self, packet: &[u8]) {
        let Some(Addresses::V6 { destination, .. }) = parse::parse(packet).ok().map(|it| it.addresses) else {
            return;
        };
        let now = self.clock.now();
        for host in self.hosts.iter_mut().filter(|host| host.tunnel == destination) {
            host.used = now;
            host.client.want(now);
        }
    }

    /// The engines have the leases: the packets that waited for them are sent.
    pub(in crate::daemon) fn send_waiting(&mut self) {
        let Some(sender) = &self.sender else { return };
        for host in &mut self.hosts {
            let Some(held) = host.client.held() else { continue };
            for (_, mut packet) in host.waiting.drain(..) {
                let Some((source, destination)) = finished(&mut packet) else { continue };
                if source != held.ipv4 {
                    continue;
                }
                if let Err(error) = sender.send(&packet, destination) {
                    tracing::debug!("{}: {error}", host.name);
                }
            }
        }
    }

    /// Each second: whether packets passed. An unused lease is released.
    pub(in crate::daemon) fn each_second(&mut self, is_used: bool) {
        let now = self.clock.now();
        self.sockets.each_second();
        for host in &mut self.hosts {
            let before = host.servers.now().to_vec();
            host.servers.look(&host.name);
            if host.servers.are_withdrawn() && host.client.held().is_some() {
                // RFC 7341 §9: the option is gone, perhaps since before the start. The release goes to the servers that were known.
                host.client.release(now);
                while let Some(message) = host.client.poll_transmit(now) {
                    before.iter().for_each(|server| self.sockets.send(*server, host.concentrator, &message));
                }
            }
            if is_used {
                host.used = now;
            }
            if host.state.unwritten.is_some() {
                host.write_down(self.clock);
            }
            host.note_silence(now);
            let Some(idle) = host.idle else {
                host.client.want(now);
                continue;
            };
            if host.client.held().is_some() && now.since(host.used) >= idle {
                tracing::info!("{}: released after {} s without packets", host.name, idle.as_secs());
                host.client.release(now);
            }
        }
    }

    /// The time until [`Self::work`] is to be called.
    pub(in crate::daemon) fn idle(&self) -> Option<Duration> {
        let now = self.clock.now();
        let of = |host: &Host| match host.awaits() && !host.servers.now().is_empty() {
            true => Some(AWAITING),
            false if host.servers.now().is_empty() => host.client.held().map(|held| held.times[2].since(now)),
            false => host.client.poll_timeout().map(|at| at.since(now)),
        };
        self.hosts.iter().filter_map(of).min()
    }

    /// How they are.
    pub(in crate::daemon) fn rows(&self) -> Vec<LeaseRow> {
        let now = self.clock.now();
        let row = |host: &Host| {
            let ipv4 = host.client.remembered()?;
            let held = host.client.held();
            Some(LeaseRow {
                mechanism: host.name.clone(),
                ipv4: ipv4.to_string(),
                host: host.tunnel.to_string(),
                state: if held.is_some() { "held" } else { "remembered" }.into(),
                ends_in_seconds: held.map(|held| held.times[2].since(now).as_secs()),
            })
        };
        self.hosts.iter().filter_map(row).collect()
    }

    /// The problems of their leases.
    pub(in crate::daemon) fn troubles(&self) -> Vec<LeaseTrouble> {
        let now = self.clock.now();
        self.hosts.iter().filter_map(|host| host.trouble(now)).collect()
    }

    /// How each is, in few words.
    pub(in crate::daemon) fn states(&self) -> Vec<(String, String)> {
        let state = |host: &Host| match (host.client.held(), host.client.remembered()) {
            (Some(held), _) => format!("{} leased", held.ipv4),
            (None, Some(ipv4)) => format!("{ipv4} remembered"),
            (None, None) => "no lease".into(),
        };
        self.hosts.iter().map(|host| (host.name.clone(), state(host))).collect()
    }

    /// How their files are.
    pub(in crate::daemon) fn files(&self) -> Vec<LeaseFiles> {
        self.hosts.iter().map(|host| host.state.clone()).collect()
    }

    /// At the end: leases are returned.
    pub(in crate::daemon) fn finish(&mut self) {
        let now = self.clock.now();
        self.hosts.iter_mut().for_each(|host| host.client.release(now));
        self.work();
    }
}

impl Host {
    fn new((section, end): (&FourOverSix, &HostEnd), gateway: &str, clock: Clock, seed: u64) -> Self {
        let file = section.lease_path(gateway);
        let now = clock.now();
        let settings = ClientSettings { tunnel: end.local, client_id: client_id(&section.name, end.local) };
        let known = fs::read_to_string(&file).ok().and_then(|text| read(&text, clock));
        let mut client = Client::new(settings, known.map(|held| held.ipv4), seed);
        match known {
            Some(held) => client.restore(held, now),
            // The lease has the address that this host may request again.
            None => client.want(now),
        }
        Self {
            name: section.name.clone(),
            client,
            tunnel: end.local,
            concentrator: end.concentrator,
            servers: KnownServers::new(end),
            idle: end.idle,
            file,
            state: LeaseFiles::of(&section.name),
            asked: None,
            told_silence: false,
            used: now,
            waiting: VecDeque::new(),
        }
    }

    /// Whether an answer may come.
    fn awaits(&self) -> bool {
        match self.client.state() {
            ClientState::Idle | ClientState::Bound(_) => false,
            ClientState::Rebooting(_)
            | ClientState::Selecting
            | ClientState::Requesting(..)
            | ClientState::Renewing(_)
            | ClientState::Rebinding(_) => true,
        }
    }

    /// A server has answered.
    fn note_answer(&mut self) {
        self.asked = None;
        if std::mem::take(&mut self.told_silence) {
            tracing::info!("{}: a DHCP 4o6 server answers", self.name);
        }
    }

    /// Logs once that no server answers.
    fn note_silence(&mut self, now: Instant) {
        if !self.awaits() {
            // No lease is needed: earlier queries are no longer awaited.
            (self.asked, self.told_silence) = (None, false);
        }
        if let (false, Some(trouble)) = (self.told_silence, self.trouble(now))
            && trouble.why.is_silence()
        {
            tracing::warn!("{}", trouble.text());
            self.told_silence = true;
        }
    }

    /// The problem of its lease, or why its packets do not pass.
    fn trouble(&self, now: Instant) -> Option<LeaseTrouble> {
        let held = self.client.held().map(|held| held.ipv4);
        let why = match (self.client.bound_elsewhere(), held, self.asked) {
            (Some(end), Some(ipv4), _) => NoLease::BoundElsewhere { ipv4, end, local: self.tunnel },
            (_, _, _) if self.servers.now().is_empty() && self.awaits() => NoLease::NoServer,
            (_, _, Some(asked)) if self.awaits() && now.since(asked) >= SILENCE => {
                let servers = self.servers.now().to_vec();
                NoLease::NoAnswer { held, servers, seconds: now.since(asked).as_secs() }
            }
            (_, _, _) => return None,
        };
        Some(LeaseTrouble { mechanism: self.name.clone(), why })
    }

    fn note(&mut self, event: ClientEvent, clock: Clock) {
        match event {
            ClientEvent::Bound(ipv4, until) => {
                let left = until.since(clock.now()).as_secs();
                tracing::info!("{}: {ipv4} leased for {left} s", self.name);
                if self.client.bound_elsewhere().is_some()
                    && let Some(trouble) = self.trouble(clock.now())
                {
                    tracing::warn!("{}", trouble.text());
                }
            }
            ClientEvent::Lost => tracing::info!("{}: no lease", self.name),
        }
        self.write_down(clock);
    }

    /// Writes the lease to the file. What fails is tried again each second, and logged once.
    fn write_down(&mut self, clock: Clock) {
        let trouble = self.write(clock).err().map(|error| format!("{}: {error}", self.file.display()));
        if let (Some(what), None) = (&trouble, &self.state.unwritten) {
            tracing::error!("{}: {what}; the lease would not survive a restart", self.name);
        }
        self.state.unwritten = trouble;
    }

    fn write(&self, clock: Clock) -> io::Result<()> {
        let wall = clock.wall();
        let text = match (self.client.held(), self.client.remembered()) {
            (Some(held), _) => {
                let [t1, t2, end] = held.times.map(|at| unix(at, wall));
                format!("{} {} {t1} {t2} {end}\n", held.ipv4, held.server)
            }
            (None, Some(ipv4)) => format!("{ipv4} 0.0.0.0 0 0 0\n"),
            (None, None) => String::new(),
        };
        replace(&self.file, &text)
    }
}

fn replace(path: &FilePath, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut name = path.to_path_buf().into_os_string();
    name.push(".new");
    let fresh = PathBuf::from(name);
    // Only root may know which address this host had.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    // A file left by a killed process has the mode with which it was created.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

fn read(text: &str, clock: Clock) -> Option<Held> {
    let mut words = text.split_whitespace();
    let (ipv4, server): (Ipv4Addr, Ipv4Addr) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let wall = clock.wall();
    let mut time = || Some(instant(words.next()?.parse().ok()?, wall));
    Some(Held { ipv4, server, times: [time()?, time()?, time()?] })
}

/// RFC 4361 §6.1: type 255, an IAID of the tunnel's name, and a DUID of this machine (RFC 6355).
fn client_id(name: &str, tunnel: Ipv6Addr) -> Vec<u8> {
    let iaid =
        name.bytes().fold(0x811c_9dc5_u32, |hash, octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193));
    let machine = fs::read_to_string("/etc/machine-id").ok();
    let machine = machine.and_then(|text| u128::from_str_radix(text.trim(), 16).ok());
    let mut id = vec![255];
    id.extend(iaid.to_be_bytes());
    id.extend([0, 4]);
    id.extend(machine.unwrap_or_else(|| tunnel.to_bits()).to_be_bytes());
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type 255, an IAID of four octets, and a DUID of type 4 (RFC 6355) with 16 octets.
    #[test]
    fn a_client_identifier_has_the_form_of_rfc_4361_and_each_tunnel_has_another() {
        let tunnel = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x46);
        let (one, other) = (client_id("one", tunnel), client_id("other", tunnel));
        assert_eq!((one.len(), one[0], &one[5..7]), (23, 255, &[0, 4][..]));
        assert_eq!(one[5..], other[5..], "one machine");
        assert_ne!(one[1..5], other[1..5], "two tunnels");
    }

    /// A host whose lease, of an earlier process, lasts this long, and whose DHCPv6 client wrote this.
    fn restarted(name: &str, seconds: u64, option: Option<&str>) -> LeaseHosts {
        let directory = std::env::temp_dir().join(format!("sixway-host-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (lease, servers) = (directory.join("host.leases"), directory.join("servers"));
        let clock = Clock::start();
        let end = clock.wall().unix_seconds + seconds;
        fs::write(&lease, format!("192.0.2.7 192.0.2.1 {end} {end} {end}\n")).unwrap();
        if let Some(option) = option {
            fs::write(&servers, option).unwrap();
        }
        let text = format!(
            "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\nserver_lease_file = {servers:?}\nlease_file = {lease:?}\n"
        );
        LeaseHosts::new(&crate::sample::config(&text), clock, 7).unwrap()
    }

    fn forget(name: &str) {
        let directory = std::env::temp_dir().join(format!("sixway-host-{name}-{}", std::process::id()));
        fs::remove_dir_all(directory).unwrap();
    }

    fn holds(hosts: &mut LeaseHosts) -> bool {
        hosts.work();
        hosts.hosts[0].client.held().is_some()
    }

    /// The kernel is given the address before the client runs.
    #[test]
    fn a_lease_of_before_the_start_is_known_before_the_first_query() {
        let hosts = restarted("kept", 3_600, None);
        let path = hosts.hosts[0].file.clone();
        let text = format!(
            "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:b::1\"\nconcentrator = \"2001:db8:c::1\"\nservers = \"2001:db8::547\"\nlease_file = {path:?}\n"
        );
        let config = crate::sample::config(&text);
        let ipv4 = Ipv4Addr::new(192, 0, 2, 7);
        let kept = |is_held| BTreeMap::from([("four_over_six".to_owned(), HostLease { ipv4, is_held })]);
        assert_eq!(kept_leases(&config), kept(true));
        fs::write(&path, "192.0.2.7 0.0.0.0 0 0 0\n").unwrap();
        assert_eq!(kept_leases(&config), kept(false), "its address stays on the device");
        fs::write(&path, "").unwrap();
        assert_eq!(kept_leases(&config), BTreeMap::new());
        let fixed = text.replace("servers = \"2001:db8::547\"", "address = \"192.0.2.20\"");
        fs::write(&path, "192.0.2.7 0.0.0.0 0 0 0\n").unwrap();
        assert_eq!(kept_leases(&crate::sample::config(&fixed)), BTreeMap::new());
        forget("kept");
    }

    #[test]
    fn only_root_reads_the_file_with_the_lease_also_after_a_crash() {
        let hosts = restarted("mode", 3_600, None);
        let host = &hosts.hosts[0];
        let mode = || fs::metadata(&host.file).unwrap().permissions().mode() & 0o777;
        let readable = fs::Permissions::from_mode(0o644);
        let fresh = host.file.with_extension("leases.new");
        fs::write(&fresh, "half").unwrap();
        fs::set_permissions(&fresh, readable.clone()).unwrap();
        fs::set_permissions(&host.file, readable).unwrap();
        host.write(hosts.clock).unwrap();
        assert_eq!(mode(), 0o600);
        assert!(!fresh.exists());
        forget("mode");
    }

    /// RFC 7341 §9.
    #[test]
    fn a_lease_of_before_the_start_is_given_up_if_the_option_is_gone() {
        let mut gone = restarted("gone", 3_600, Some("reason=BOUND6\n"));
        assert!(holds(&mut gone));
        gone.each_second(true);
        assert!(!holds(&mut gone) && gone.idle().is_none());
        let mut there = restarted("there", 3_600, Some("2001:db8::547\n"));
        there.each_second(true);
        assert!(holds(&mut there));
        ["gone", "there"].into_iter().for_each(forget);
    }

    #[test]
    fn a_lease_ends_at_its_time_while_no_server_is_known() {
        let mut unknown = restarted("unknown", 1, None);
        unknown.each_second(true);
        assert!(holds(&mut unknown), "the file may be written yet");
        assert!(unknown.idle().is_some_and(|time| time <= Duration::from_secs(2)));
        std::thread::sleep(Duration::from_millis(2_100));
        assert!(!holds(&mut unknown));
        forget("unknown");
    }
}
