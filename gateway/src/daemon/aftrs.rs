//! The AFTR of a B4, where it is a name or comes from a DHCPv6 lease (RFC 6334): resolved over IPv6, again after its TTL, and replaced by the
//! name's next address if it is silent.

use super::lease_text;
use super::name_servers::name_servers;
use crate::config::{AftrAt, B4, Config};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, sendto, setsockopt, socket,
    sockopt,
};
use sixway_control::b4::{AftrAddresses, AftrChoice, AftrQuery, Observed, ReplyFault, aftr_in};
use sixway_dataplane::Instant;
use sixway_dataplane::mechanism::ds_lite::AFTR_ADDRESS;
use sixway_wire::checksum::Sum;
use sixway_wire::icmpv4;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How often the lease file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a name server has for a reply.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often each name server is asked in a row.
const TRIES: usize = 2;

/// When a name that could not be resolved is tried again: twice as late each time, for the uplink may come up in a moment.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Answers that wait.
const WAITING: usize = 16;

/// AFTRs that were set while the gateway runs, by the B4's name.
pub(super) type ToldAftrs = BTreeMap<String, AftrAt>;

/// Where B4s' names lead, and which address each uses.
pub(super) struct Aftrs {
    /// The device, and this host's address in each softwire.
    device: OsString,
    hosts: BTreeMap<String, Ipv4Addr>,
    choices: BTreeMap<String, AftrChoice>,
    answers: mpsc::Receiver<(String, Vec<Ipv6Addr>)>,
    /// Keeps the channel open without names.
    _open: mpsc::Sender<(String, Vec<Ipv6Addr>)>,
    /// They end with this.
    _asking: JoinSet<()>,
}

impl Aftrs {
    /// Starts to follow the AFTRs of all B4s.
    pub(super) fn new(config: &Config, told: &watch::Sender<ToldAftrs>) -> Self {
        let (sender, answers) = mpsc::channel(WAITING);
        let mut asking = JoinSet::new();
        for b4 in config.b4s() {
            asking.spawn(follow(b4.clone(), told.subscribe(), sender.clone()));
        }
        let hosts = config.b4s().map(|b4| (b4.name.clone(), b4.ipv4_address)).collect();
        let device = config.tun.name.clone().into();
        Self { device, hosts, choices: BTreeMap::new(), answers, _open: sender, _asking: asking }
    }

    /// Waits until a name leads elsewhere.
    pub(super) async fn changed(&mut self) {
        match self.answers.recv().await {
            Some((b4, addresses)) => self.choices.entry(b4).or_default().set(&addresses),
            None => std::future::pending().await,
        }
    }

    /// The addresses in use.
    pub(super) fn in_use(&self) -> BTreeMap<String, Ipv6Addr> {
        let in_use = |(b4, choice): (&String, &AftrChoice)| Some((b4.clone(), choice.current()?));
        self.choices.iter().filter_map(in_use).collect()
    }

    /// The packets of B4s in the last second, into the tunnel and out of it.
    pub(super) fn observe(&mut self, now: Instant, sent: u64, received: u64) {
        for (b4, choice) in &mut self.choices {
            let before = choice.current();
            match (choice.observe(now, sent, received), before, choice.current()) {
                (Observed::GivenUp, Some(before), Some(after)) => tracing::warn!(
                    "{b4}: the AFTR {before} does not answer; using {after}, the name's next address"
                ),
                (Observed::Ask, _, _) => {
                    let asked = self.hosts.get(b4).map(|host| ask_aftr(*host, &self.device));
                    if let Some(Err(error)) = asked {
                        tracing::debug!("{b4}: no echo request to the AFTR: {error}");
                    }
                }
                (Observed::GivenUp | Observed::Nothing, _, _) => {}
            }
        }
    }
}

/// Sends an echo request to the AFTR's address in the softwire. Its reply is counted as any packet that comes out, and read by nobody.
fn ask_aftr(host: Ipv4Addr, device: &OsString) -> nix::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)?;
    // The main table may lead elsewhere.
    setsockopt(&socket, sockopt::BindToDevice, device)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(host, 0)))?;
    let to = SockaddrIn::from(SocketAddrV4::new(AFTR_ADDRESS, 0));
    sendto(socket.as_raw_fd(), &echo_request(), &to, MsgFlags::empty()).map(drop)
}

/// RFC 792: an echo request without data.
fn echo_request() -> [u8; 8] {
    let mut octets = [icmpv4::ECHO_REQUEST, 0, 0, 0, 0, 0, 0, 1];
    let checksum = Sum::ZERO.bytes(&octets).checksum();
    octets[2..4].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// A lease file, and what was read of it.
struct Lease {
    path: Option<PathBuf>,
    seen: Option<(SystemTime, u64)>,
    aftr: Option<AftrAt>,
}

impl Lease {
    /// Reads the file if it changed since the last time. Whether the AFTR is another one. A file that is missing leaves the last one known.
    fn look(&mut self, b4: &str) -> bool {
        let Some(path) = &self.path else { return false };
        let Ok(metadata) = std::fs::metadata(path) else { return false };
        let seen = metadata.modified().ok().map(|time| (time, metadata.len()));
        if seen.is_some() && seen == self.seen {
            return false;
        }
        self.seen = seen;
        let aftr = match lease_text::read(path) {
            Ok(text) => aftr_in(&text).and_then(|name| AftrAt::parse(&name)),
            Err(error) => {
                tracing::warn!("{b4}: {}: {error}; the previous AFTR stays in use", path.display());
                return false;
            }
        };
        if aftr.is_none() && self.aftr.is_none() {
            tracing::warn!("{b4}: {} contains no AFTR name (DHCPv6 option 64)", path.display());
        }
        let changed = aftr != self.aftr;
        self.aftr = aftr;
        changed
    }
}

/// Follows the AFTR of a B4: that told while the gateway runs, else that of the lease, else that of the configuration.
async fn follow(
    b4: B4,
    mut told: watch::Receiver<ToldAftrs>,
    answers: mpsc::Sender<(String, Vec<Ipv6Addr>)>,
) {
    let mut lease = Lease { path: b4.aftr_lease_file.clone(), seen: None, aftr: None };
    let (mut known, mut reported, mut retry) = (Vec::new(), None, RETRY[0]);
    loop {
        lease.look(&b4.name);
        let by_command = told.borrow_and_update().get(&b4.name).cloned();
        let at = by_command.or_else(|| lease.aftr.clone()).or_else(|| b4.aftr.clone());
        let (found, again) = match at {
            Some(AftrAt::Address(address)) => (Ok(vec![address]), None),
            Some(AftrAt::Name(name)) => {
                let resolved = tokio::select! {
                    resolved = resolve(&name, &b4) => resolved,
                    // A command does not wait for a name server.
                    Ok(()) = told.changed() => continue,
                };
                match resolved {
                    Ok(found) => (Ok(found.addresses), Some(found.again)),
                    Err(what) => {
                        let again = retry;
                        retry = (retry * 2).min(RETRY[1]);
                        (Err(format!("{name}: {what}")), Some(again))
                    }
                }
            }
            None => (Err("no lease with an AFTR name yet".to_owned()), None),
        };
        match found {
            Ok(addresses) => {
                if known != addresses {
                    let list = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                    tracing::info!("{}: AFTR {list}", b4.name);
                    known.clone_from(&addresses);
                }
                (reported, retry) = (None, RETRY[0]);
                if answers.send((b4.name.clone(), addresses)).await.is_err() {
                    return;
                }
            }
            Err(what) if reported.as_ref() != Some(&what) => {
                let stays = if known.is_empty() { "" } else { "; the previous AFTR stays in use" };
                tracing::warn!("{}: {what}{stays}", b4.name);
                reported = Some(what);
            }
            Err(_) => {}
        }
        let until = again.map(|again| tokio::time::Instant::now() + again);
        loop {
            tokio::select! {
                _ = told.changed() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            if lease.look(&b4.name) || until.is_some_and(|until| tokio::time::Instant::now() >= until) {
                break;
            }
        }
    }
}

/// Asks the name servers, each in turn.
async fn resolve(name: &str, b4: &B4) -> Result<AftrAddresses, String> {
    let servers = name_servers(&b4.name_servers);
    if servers.is_empty() {
        return Err("no name server with an IPv6 address is known; write name_servers".to_owned());
    }
    let mut failure = String::new();
    for server in std::iter::repeat_n(&servers, TRIES).flatten() {
        let id = RandomState::new().hash_one(server) as u16;
        let query = AftrQuery::new(name, id).ok_or("not a domain name")?;
        match ask(*server, &query).await {
            Ok(found) => return allowed(found, b4),
            Err(what) => failure = format!("{what} (name server {})", server.ip()),
        }
    }
    Err(failure)
}

/// Those of the addresses that the AFTR may have.
fn allowed(mut found: AftrAddresses, b4: &B4) -> Result<AftrAddresses, String> {
    let first = found.addresses.first().map(ToString::to_string).unwrap_or_default();
    let is_allowed = |address: &Ipv6Addr| {
        b4.aftr_within.is_empty() || b4.aftr_within.iter().any(|prefix| prefix.contains(*address))
    };
    found.addresses.retain(is_allowed);
    if found.addresses.is_empty() { Err(format!("{first} is not within aftr_within")) } else { Ok(found) }
}

async fn ask(server: SocketAddr, query: &AftrQuery) -> Result<AftrAddresses, String> {
    let any: SocketAddr = if server.is_ipv4() { ([0_u8; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let exchange = async {
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        socket.send(&query.message()).await?;
        let mut reply = [0; 4_096];
        loop {
            let length = socket.recv(&mut reply).await?;
            match query.read(&reply[..length]) {
                Err(ReplyFault::Foreign) => {}
                Err(ReplyFault::Truncated) => return ask_by_stream(server, query).await,
                read => return Ok(read),
            }
        }
    };
    match timeout(PATIENCE, exchange).await {
        Err(_) => Err("no reply".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(read)) => read.map_err(|fault| fault.to_string()),
    }
}

async fn ask_by_stream(
    server: SocketAddr,
    query: &AftrQuery,
) -> io::Result<Result<AftrAddresses, ReplyFault>> {
    let mut stream = TcpStream::connect(server).await?;
    let message = query.message();
    stream.write_u16(message.len() as u16).await?;
    stream.write_all(&message).await?;
    let length = stream.read_u16().await?;
    let mut reply = vec![0; length.into()];
    stream.read_exact(&mut reply).await?;
    Ok(query.read(&reply))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{IpAddr, Ipv4Addr};

    /// A reply to a query: its header's flags, and this address with a TTL of 300 s.
    fn reply(query: &[u8], flags: u16, address: Ipv6Addr) -> Vec<u8> {
        let mut octets = query[..query.len() - 11].to_vec();
        octets[2..4].copy_from_slice(&flags.to_be_bytes());
        octets[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
        octets.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 1, 44, 0, 16]);
        octets.extend(address.octets());
        octets
    }

    fn aftr() -> Ipv6Addr {
        "2001:db8:a::1".parse().unwrap()
    }

    /// A name server that answers one query with each of these flags, and streams in any case.
    fn server(flags: &'static [u16]) -> SocketAddr {
        let local = (Ipv4Addr::LOCALHOST, 0);
        let datagrams = std::net::UdpSocket::bind(local).unwrap();
        let address = datagrams.local_addr().unwrap();
        let streams = std::net::TcpListener::bind(address).unwrap();
        std::thread::spawn(move || {
            for flags in flags {
                let mut query = [0; 512];
                let (length, from) = datagrams.recv_from(&mut query).unwrap();
                datagrams.send_to(&reply(&query[..length], *flags, aftr()), from).unwrap();
            }
        });
        std::thread::spawn(move || {
            let (mut stream, _) = streams.accept().unwrap();
            let (mut length, mut query) = ([0; 2], [0; 512]);
            stream.read_exact(&mut length).unwrap();
            let query = &mut query[..u16::from_be_bytes(length).into()];
            stream.read_exact(query).unwrap();
            let reply = reply(query, 0x8180, aftr());
            stream.write_all(&(reply.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&reply).unwrap();
        });
        address
    }

    fn asked(server: SocketAddr) -> Result<AftrAddresses, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask(server, &AftrQuery::new("aftr.example", 7).unwrap()))
    }

    #[test]
    fn a_name_server_s_addresses_are_taken_by_datagram_or_if_they_are_cut_by_stream() {
        let found = AftrAddresses { addresses: vec![aftr()], again: Duration::from_secs(300) };
        for flags in [&[0x8180][..], &[0x8380]] {
            assert_eq!(asked(server(flags)), Ok(found.clone()));
        }
        assert_eq!(asked(server(&[0x8183])), Err("the name does not exist".to_owned()));
        let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = silent.local_addr().unwrap();
        assert!(matches!(address.ip(), IpAddr::V4(_)));
        assert_eq!(asked(address), Err("no reply".to_owned()));
    }

    #[test]
    fn an_echo_request_has_its_checksum() {
        assert_eq!(echo_request(), [8, 0, 0xf7, 0xfe, 0, 0, 0, 1]);
    }

    #[test]
    fn a_lease_is_read_again_only_when_the_file_changes_and_a_lost_file_changes_nothing() {
        let path = std::env::temp_dir().join(format!("sixway-lease-{}", std::process::id()));
        let mut lease = Lease { path: Some(path.clone()), seen: None, aftr: None };
        assert!(!lease.look("b4"));
        std::fs::write(&path, "aftr.example\n").unwrap();
        assert!(lease.look("b4") && !lease.look("b4"));
        assert_eq!(lease.aftr, Some(AftrAt::Name("aftr.example".into())));
        std::fs::write(&path, b"\xff\xfe 2001:db8:a::1").unwrap();
        assert!(lease.look("b4") && lease.aftr.is_none());
        std::fs::write(&path, "2001:db8:a::1").unwrap();
        assert!(lease.look("b4"));
        std::fs::remove_file(&path).unwrap();
        assert!(!lease.look("b4"));
        assert_eq!(lease.aftr, Some(AftrAt::Address(aftr())));
    }

    #[test]
    fn a_lease_that_is_no_regular_file_does_not_block() {
        let path = std::env::temp_dir().join(format!("sixway-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(lease_text::read(&path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "aftr.example\n").unwrap();
        assert_eq!(lease_text::read(&path).unwrap(), "aftr.example\n");
        std::fs::remove_file(&path).unwrap();
    }
}
