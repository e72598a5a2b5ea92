//! What an idle client of private DNS costs. Both ends are in this process, but of a client that has asked only the socket is left.

#[allow(dead_code, reason = "another test needs the rest")]
#[path = "../src/streams/tests/certificates.rs"]
mod certificates;

use certificates::{Authority, Folder};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sixway_control::dns64::Access;
use sixway_dns64::streams::{Bounds, StreamContext, StreamSettings, Streams};
use sixway_dns64::{Posts, ThreadMessage, mailbox};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Clients, if nothing else is said: handshakes take a while in a program that is not optimised.
const CLIENTS: usize = 1_500;
/// Octets of a connection over TLS, without what the kernel needs.
const OF_ONE: usize = 20 * 1_024;

/// Resident memory of this process, in octets.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1_024
}

/// As many clients as are wanted, and as there are descriptors for.
fn clients() -> usize {
    let wanted = std::env::var("SIXWAY_CLIENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(CLIENTS);
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let needed = 2 * wanted as u64 + 200;
    let most =
        if setrlimit(Resource::RLIMIT_NOFILE, needed, hard.max(needed)).is_ok() { needed } else { hard };
    setrlimit(Resource::RLIMIT_NOFILE, most, hard.max(most)).unwrap();
    wanted.min((most as usize - 200) / 2)
}

/// Makes a TLS handshake, sends a query, receives the answer, and keeps only the socket.
async fn ask(number: usize, server: SocketAddr, config: &Arc<ClientConfig>) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let own = Ipv4Addr::from_bits(0x7f10_0001 + number as u32);
    socket.bind((own, 0).into()).unwrap();
    let name = ServerName::try_from("dns.example").unwrap();
    let connector = TlsConnector::from(Arc::clone(config));
    let mut stream = connector.connect(name, socket.connect(server).await.unwrap()).await.unwrap();
    stream.write_all(b"\0\x03ask").await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"\0\x03ask");
    stream.into_inner().0.into_std().unwrap()
}

#[test]
fn an_idle_client_of_private_dns_costs_no_more_than_20_kib() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let (post, mailbox) = mailbox().unwrap();
    let resolver = std::thread::spawn(move || {
        loop {
            match mailbox.next() {
                Some(ThreadMessage::Query(query)) => {
                    let (message, answer) = query.take();
                    answer.send(message).unwrap();
                }
                Some(ThreadMessage::Stop) => return,
                Some(_) | None => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    });
    let settings = StreamSettings {
        tls: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        certificate: Some(authority.certify_in(&folder, "dns.example")),
        bounds: Bounds { connections: 100_000, idle: Duration::from_secs(600), ..Bounds::default() },
        ..StreamSettings::default()
    };
    let access = Access { v4: vec!["127.0.0.0/8".parse().unwrap()], ..Access::default() };
    let context =
        StreamContext { posts: Posts::new(vec![post.clone()], 64), access, queries: mpsc::channel(1).1 };
    let streams = Streams::start(&settings, context).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());

    let clients = clients();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (open, before) = runtime.block_on(async {
        let server = streams.listening()[0];
        let mut open = Vec::with_capacity(clients);
        // What is there for any number of clients.
        for number in 0..100 {
            open.push(ask(number, server, &config).await);
        }
        let before = resident();
        for number in 100..clients {
            open.push(ask(number, server, &config).await);
        }
        (open, before)
    });
    let each = resident().saturating_sub(before) / (clients - 100);
    assert_eq!(streams.view().connections(), clients);
    eprintln!("{clients} clients, {each} octets each");
    assert!(each <= OF_ONE, "{each} octets each");
    drop((streams, open));
    post.send(ThreadMessage::Stop).unwrap();
    resolver.join().unwrap();
}
