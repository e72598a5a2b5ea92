//! Clients of private DNS that have asked once and are idle, over TLS (RFC 7858) or HTTPS (RFC 8484): their cost for the gateway, and
//! whether the next one still gets an answer. Each is a separate subscriber.

use super::crowding::query;
use super::half_silent::{HalfSilent, good_name};
use super::tree::AUTHORITY;
use super::vm_rss;
use crate::failure::{Asking as _, Failure, Result};
use crate::gateway::run_sixway;
use crate::interrupt;
use crate::namespace::{Namespace, command};
use crate::topology::{Network, client_gateway_server};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn6, bind, connect, setsockopt, socket, sockopt,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddrV6, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Clients that are there before the memory is examined: what is needed for any number of them.
const FIRST: u32 = 100;
/// Files that this process and the gateway have open in addition to the connections.
const OTHER_FILES: u64 = 200;
/// Threads that connect.
const THREADS: u32 = 4;
/// Clients in a second: more handshakes than 5,000 in 5 s are refused (`handshake_limit`).
const HANDSHAKES: f64 = 800.0;
/// How long a client waits.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where the gateway listens.
const LISTEN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
/// The name in its certificate.
const NAME: &str = "dns.example";
/// RFC 9113 §3.4: the client's connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// By what clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// DNS over TLS.
    Tls,
    /// DNS over HTTPS, HTTP/2.
    Https,
}

impl Privacy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tls, Self::Https];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Https => "HTTPS",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Tls => 853,
            Self::Https => 443,
        }
    }

    const fn alpn(self) -> &'static [u8] {
        match self {
            Self::Tls => b"dot",
            Self::Https => b"h2",
        }
    }
}

/// What idle clients cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Clients with a connection.
    pub clients: u32,
    /// Connections that the gateway closed meanwhile.
    pub closed: u32,
    /// Octets of the gateway's memory (VmRSS) that each of them takes.
    pub each: f64,
    /// Octets of the gateway's memory with all of them.
    pub memory: u64,
    /// Handshakes in a second, with the first query and its answer.
    pub per_second: f64,
}

/// A gateway with clients.
struct Crowd {
    network: Network,
    process: u32,
    tls: Arc<ClientConfig>,
    privacy: Privacy,
    _upstream: HalfSilent,
}

/// Lets this number of clients send one query each, or as many as there are file descriptors for, and returns what they cost when they are idle. One more
/// client must be
/// answered.
///
/// # Errors
/// A client is not answered.
pub fn idle_clients(privacy: Privacy, clients: u32) -> Result<Cost> {
    let most = descriptors(u64::from(clients) + OTHER_FILES)?.saturating_sub(OTHER_FILES);
    let clients = clients.min(u32::try_from(most).unwrap_or(u32::MAX)).max(FIRST + 1);
    let crowd = Crowd::start(privacy, clients + 100)?;
    let mut open = crowd.connect_all(0..FIRST)?;
    let before = vm_rss(crowd.process)?;
    let begun = Instant::now();
    open.extend(crowd.connect_all(FIRST..clients)?);
    let per_second = f64::from(clients - FIRST) / begun.elapsed().as_secs_f64();
    let memory = vm_rss(crowd.process)?;
    let host = crowd.network.host("client")?;
    crowd.connect(host, clients)?;
    let closed = open.iter().filter(|stream| is_closed(stream)).count() as u32;
    let each = memory.saturating_sub(before) as f64 / f64::from(clients - FIRST);
    Ok(Cost { clients, closed, each, memory, per_second })
}

/// Lets this process, and those that it starts, have this number of files open, or as many as the machine permits; returns how many.
fn descriptors(wanted: u64) -> Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).asking(|| "reading RLIMIT_NOFILE".to_owned())?;
    let permitted = |most: &u64| setrlimit(Resource::RLIMIT_NOFILE, *most, *most).is_ok();
    Ok([wanted.max(hard), hard].into_iter().find(permitted).unwrap_or(soft))
}

fn is_closed(stream: &TcpStream) -> bool {
    let nonblocking = stream.set_nonblocking(true);
    let peeked = stream.peek(&mut [0]);
    nonblocking.is_err() || !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

impl Crowd {
    fn start(privacy: Privacy, connections: u32) -> Result<Self> {
        let network = client_gateway_server()?;
        // Each address of this prefix is the client's.
        network.host("client")?.ip("-6 route add local 2001:db8:2::/48 dev lo")?;
        network.host("gateway")?.ip("-6 route add 2001:db8:2::/48 via 2001:db8:1::2")?;
        let upstream = HalfSilent::start(&network, AUTHORITY)?;
        let at = |name: &str| network.folder().join(name);
        let (certificate, key) = (at("certificate.pem"), at("key.pem"));
        let mut openssl = command("openssl")?;
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj", "/CN=dns.example"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.arg("-addext").arg(format!("subjectAltName=DNS:{NAME}"));
        openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key);
        network.host("gateway")?.run(openssl, Duration::from_secs(20))?.succeeded()?;
        let (shown, key) = (certificate.display(), key.display());
        let process = run_sixway(
            &network,
            &format!(
                "[gateway]\n[dns64]\nlisten = [\"{LISTEN}\"]\nlisten_tls = [\"{LISTEN}\"]\nlisten_https = [\"{LISTEN}\"]\n\
                 certificate = \"{shown}\"\nkey = \"{key}\"\nspecial_names = \"upstream\"\nprefix = \"64:ff9b::/96\"\n\
                 translated_elsewhere = true\nallow = [\"2001:db8::/32\"]\nconnections = {connections}\nidle_timeout = \"10 min\"\n\
                 [[dns64.upstream]]\naddress = \"{AUTHORITY}\"\n"
            ),
        )?;
        let mut roots = RootCertStore::empty();
        let unreadable = |error: &dyn std::fmt::Display| Failure::Unexpected(format!("{shown}: {error}"));
        let own = CertificateDer::from_pem_file(&certificate).map_err(|error| unreadable(&error))?;
        roots.add(own).map_err(|error| unreadable(&error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| unreadable(&error))?;
        let mut tls = config.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![privacy.alpn().to_vec()];
        Ok(Self { network, process, tls: Arc::new(tls), privacy, _upstream: upstream })
    }

    /// Connects clients of these numbers, several at a time.
    fn connect_all(&self, numbers: std::ops::Range<u32>) -> Result<Vec<TcpStream>> {
        let (next, begun) = (AtomicU32::new(numbers.start), Instant::now());
        let host = self.network.host("client")?;
        let connect = || {
            let mut open = Vec::new();
            loop {
                interrupt::check()?;
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return Ok(open);
                }
                let due = Duration::from_secs_f64(f64::from(number - numbers.start) / HANDSHAKES);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
                open.push(self.connect(host, number)?);
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(connect)).collect();
            let mut open = Vec::new();
            for thread in threads {
                let some: Result<Vec<TcpStream>> =
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                open.extend(some?);
            }
            Ok(open)
        })
    }

    /// Makes a TLS handshake, sends a query, receives the answer, and keeps only the socket.
    fn connect(&self, host: &Namespace, number: u32) -> Result<TcpStream> {
        let asking = || format!("client {number} over {}", self.privacy.name());
        let own = Ipv6Addr::new(0x2001, 0xdb8, 2, number as u16, 0, 0, 0, 1);
        let stream = host.enter(|| connect_from(own, self.privacy.port()))?.asking(asking)?;
        stream.set_read_timeout(Some(PATIENCE)).asking(asking)?;
        stream.set_nodelay(true).asking(asking)?;
        let unexpected =
            |error: &dyn std::fmt::Display| Failure::Unexpected(format!("{}: {error}", asking()));
        let name = ServerName::try_from(NAME).map_err(|error| unexpected(&error))?;
        let connection =
            ClientConnection::new(Arc::clone(&self.tls), name).map_err(|error| unexpected(&error))?;
        let mut tls = StreamOwned::new(connection, stream);
        match self.privacy {
            Privacy::Tls => ask_by_tls(&mut tls),
            Privacy::Https => ask_by_https(&mut tls),
        }
        .asking(asking)?;
        Ok(tls.sock)
    }
}

/// A connection from one of the client's addresses.
fn connect_from(own: Ipv6Addr, port: u16) -> std::io::Result<TcpStream> {
    let fd = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // No interface has these addresses: the route says that they are this host's.
    setsockopt(&fd, sockopt::IpFreebind, &true)?;
    bind(fd.as_raw_fd(), &SockaddrIn6::from(SocketAddrV6::new(own, 0, 0, 0)))?;
    connect(fd.as_raw_fd(), &SockaddrIn6::from(SocketAddrV6::new(LISTEN, port, 0, 0)))?;
    Ok(fd.into())
}

type Secured = StreamOwned<ClientConnection, TcpStream>;

/// The same name for all: only connections are measured.
fn ask_by_tls(tls: &mut Secured) -> std::io::Result<()> {
    let query = query(7, &good_name(0));
    tls.write_all(&[&(query.len() as u16).to_be_bytes()[..], &query].concat())?;
    let mut length = [0; 2];
    tls.read_exact(&mut length)?;
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    tls.read_exact(&mut answer)?;
    must_be_right(&answer)
}

fn must_be_right(answer: &[u8]) -> std::io::Result<()> {
    match answer {
        [0, 7, _, flags, 0, 1, 0, answers, ..] if flags & 15 == 0 && *answers > 0 => Ok(()),
        _ => Err(std::io::Error::other(format!("another answer: {answer:02x?}"))),
    }
}

/// RFC 9113: the kinds of frames that are used here.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
/// END_STREAM, and ACK of SETTINGS.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, _, a, b, c] =
        [0, 0, (payload.len() >> 16) as u8, (payload.len() >> 8) as u8, payload.len() as u8];
    [&[a, b, c, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A POST request without compression of its header (RFC 7541 §6.2.2): the answer's body is the DNS message.
fn ask_by_https(tls: &mut Secured) -> std::io::Result<()> {
    let query = query(7, &good_name(0));
    let mut fields = vec![0x83, 0x87];
    // Names by their numbers in the static table: :path, :authority, content-type.
    for (number, value) in [(&[4_u8][..], "/dns-query"), (&[1], NAME), (&[15, 16], "application/dns-message")]
    {
        fields.extend(number);
        fields.push(value.len() as u8);
        fields.extend(value.as_bytes());
    }
    let said = [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, END_HEADERS, 1, &fields),
        frame(DATA, END_STREAM, 1, &query),
    ];
    tls.write_all(&said.concat())?;
    let mut body = Vec::new();
    loop {
        let mut head = [0; 9];
        tls.read_exact(&mut head)?;
        let [a, b, c, kind, flags, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        tls.read_exact(&mut payload)?;
        match kind {
            SETTINGS if flags & END_STREAM == 0 => tls.write_all(&frame(SETTINGS, END_STREAM, 0, &[]))?,
            DATA => body.extend(payload),
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return must_be_right(&body);
        }
    }
}
