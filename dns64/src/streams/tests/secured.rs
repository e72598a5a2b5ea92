//! TLS and HTTPS, both ends.

use super::upstreams::Asker;
use super::{
    Authority, Folder, Resolver, answer, around, bounds, everybody, loopback, loopback4, query, serve,
};
use crate::streams::framing::append;
use crate::streams::upstream::{UpstreamTransport, client};
use crate::streams::{
    Bounds, Event, StreamFault, StreamSettings, Streams, TransportSettings, UpstreamSettings,
};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use sixway_control::dns64::Failure;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, HandshakeKind};

pub struct Secured {
    pub streams: Streams,
    authority: Authority,
    folder: Folder,
    _resolver: Resolver,
}

impl Secured {
    pub fn start(bounds: Bounds) -> Self {
        let (folder, authority, resolver) = (Folder::new(), Authority::new(), Resolver::start());
        let settings = StreamSettings {
            tls: vec![loopback4()],
            https: vec![loopback()],
            certificate: Some(authority.certify_in(&folder, "dns.example")),
            bounds,
            ..StreamSettings::default()
        };
        folder.write("ca.pem", &authority.pem());
        Self { streams: serve(&settings, &resolver), authority, folder, _resolver: resolver }
    }

    pub fn tls(&self) -> SocketAddr {
        self.streams.listening()[0]
    }

    pub fn https(&self) -> SocketAddr {
        self.streams.listening()[1]
    }

    pub fn transport(&self, name: &str, path: Option<&str>) -> UpstreamTransport {
        let (name, ca) = (name.to_owned(), Some(self.folder.file("ca.pem")));
        let way = match path {
            None => TransportSettings::Tls { name, ca },
            Some(path) => TransportSettings::Https { name, ca, path: path.to_owned() },
        };
        let address = if path.is_some() { self.https() } else { self.tls() };
        UpstreamSettings { address, way }.prepare().unwrap().transport
    }

    pub fn config(&self, is_https: bool) -> Arc<ClientConfig> {
        client(Some(&self.folder.file("ca.pem")), is_https).unwrap()
    }
}

/// A connection from this address of the loopback interface.
pub async fn tcp_from(own: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((own, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

/// The same, and TLS.
pub async fn connect_from(
    own: Ipv4Addr,
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("dns.example").unwrap();
    TlsConnector::from(Arc::clone(config)).connect(name, tcp_from(own, address).await).await
}

/// Puts a question.
pub async fn ask(stream: &mut (impl AsyncWrite + Unpin), id: u16, label: &str) {
    let mut framed = Vec::new();
    append(&mut framed, &query(id, label));
    stream.write_all(&framed).await.unwrap();
}

/// Sends a query and receives its answer.
pub async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), id: u16, label: &str) {
    ask(stream, id, label).await;
    let mut reply = vec![0; stream.read_u16().await.unwrap().into()];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply, answer(&query(id, label)));
}

async fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("dns.example").unwrap();
    TlsConnector::from(Arc::clone(config)).connect(name, stream).await
}

#[tokio::test]
async fn questions_go_by_tls_and_by_https_and_connections_are_kept() {
    let secured = Secured::start(Bounds::default());
    let ways = [
        (secured.tls(), secured.transport("dns.example", None)),
        (secured.https(), secured.transport("dns.example", Some("/dns-query"))),
    ];
    for (address, transport) in ways {
        let mut asker = Asker::new(address, transport);
        for number in 0..300 {
            asker.put(number, query(number as u16, if number % 7 == 0 { "late" } else { "prompt" }));
        }
        for _ in 0..300 {
            let (number, reply) = asker.reply().await;
            assert_eq!(reply.unwrap()[..2], (number as u16).to_be_bytes());
        }
        assert_eq!(asker.ask("big0").await.unwrap().len(), 60_000);
        let opened = asker.counters.of(Event::UpstreamOpened);
        assert!((1..=4).contains(&opened), "{opened}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_name_or_of_a_strange_authority_is_not_believed() {
    let secured = Secured::start(Bounds::default());
    let start = Instant::now();
    let mut other = Asker::new(secured.tls(), secured.transport("other.example", None));
    assert_eq!(other.ask("prompt").await, Err(Failure::Untrusted));
    secured.folder.write("ca.pem", &Authority::new().pem());
    let mut stranger = Asker::new(secured.https(), secured.transport("dns.example", Some("/dns-query")));
    assert_eq!(stranger.ask("prompt").await, Err(Failure::Untrusted));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn an_upstream_without_such_a_path_is_reported_as_malformed() {
    let secured = Secured::start(Bounds::default());
    let mut asker = Asker::new(secured.https(), secured.transport("dns.example", Some("/elsewhere")));
    assert_eq!(asker.ask("prompt").await, Err(Failure::Malformed));
}

#[tokio::test]
async fn who_never_agrees_on_tls_is_told_within_two_seconds() {
    let secured = Secured::start(Bounds::default());
    let silent = TcpListener::bind(loopback()).await.unwrap();
    let start = Instant::now();
    let mut asker = Asker::new(silent.local_addr().unwrap(), secured.transport("dns.example", None));
    assert_eq!(asker.ask("prompt").await, Err(Failure::Unreachable));
    assert!(start.elapsed() < Duration::from_millis(2_500));
}

#[tokio::test]
async fn sessions_are_resumed() {
    let secured = Secured::start(Bounds::default());
    let config = secured.config(false);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(secured.tls(), &config).await.unwrap();
        exchange(&mut stream, 1, "prompt").await;
        kinds.push(stream.get_ref().1.handshake_kind());
    }
    assert_eq!(kinds, [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]);
}

#[tokio::test]
async fn a_client_that_says_nothing_or_nonsense_instead_of_tls_is_cut() {
    let secured = Secured::start(bounds());
    let mut silent = TcpStream::connect(secured.tls()).await.unwrap();
    let mut loud = TcpStream::connect(secured.https()).await.unwrap();
    loud.write_all(b"GET /dns-query HTTP/1.1\r\nHost: dns.example\r\n\r\n").await.unwrap();
    let start = Instant::now();
    let mut octets = Vec::new();
    let _ = silent.read_to_end(&mut octets).await;
    let _ = loud.read_to_end(&mut octets).await;
    assert!(start.elapsed() < Duration::from_secs(2));
    sleep(Duration::from_millis(50)).await;
    assert_eq!((secured.streams.view().of(Event::TlsFailed), secured.streams.view().connections()), (2, 0));
}

/// One request by HTTP/1.1.
async fn get(secured: &Secured, uri: &str) -> Response<Bytes> {
    let mut config = (*secured.config(true)).clone();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = connect(secured.https(), &Arc::new(config)).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(uri).header("host", "dns.example").body(Empty::<Bytes>::new()).unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn http_1_1_is_spoken_too_and_says_how_long_an_answer_is_fresh() {
    let secured = Secured::start(Bounds::default());
    let found = get(&secured, "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB").await;
    assert_eq!(found.status(), 200);
    assert_eq!(found.headers()["content-type"], "application/dns-message");
    assert_eq!(found.headers()["cache-control"], "max-age=60");
    assert_eq!(found.body()[found.body().len() - 4..], [192, 0, 2, 1]);
    assert_eq!(get(&secured, "/").await.status(), 404);
    assert_eq!(get(&secured, "/dns-query?dns=AAAA").await.status(), 400);
    assert_eq!(secured.streams.view().of(Event::HttpError), 2);
}

#[tokio::test]
async fn an_idle_connection_over_https_is_closed() {
    let secured = Secured::start(bounds());
    let mut stream = connect(secured.https(), &secured.config(true)).await.unwrap();
    let start = Instant::now();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut octets = Vec::new();
    let _ = stream.read_to_end(&mut octets).await;
    let took = start.elapsed();
    assert!((200..7_000).contains(&took.as_millis()), "{took:?}");
    sleep(Duration::from_millis(50)).await;
    assert_eq!(secured.streams.view().connections(), 0);
}

async fn served(secured: &Secured) -> Vec<u8> {
    let stream = connect(secured.tls(), &secured.config(false)).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn a_new_certificate_serves_and_a_faulty_one_does_not() {
    let secured = Secured::start(Bounds::default());
    let first = served(&secured).await;
    fs::write(secured.folder.file("certificate.pem"), "nothing of use").unwrap();
    secured.streams.look_at_certificate();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(served(&secured).await, first);
    secured.authority.certify_in(&secured.folder, "dns.example");
    secured.streams.look_at_certificate();
    sleep(Duration::from_millis(50)).await;
    assert_ne!(served(&secured).await, first);
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let (folder, authority, resolver) = (Folder::new(), Authority::new(), Resolver::start());
    let (certificate, key) = authority.certify_in(&folder, "dns.example");
    let other = folder.write("other.pem", &authority.certify("dns.example").1);
    let fault = |certificate: &Path, key: &Path| {
        let settings = StreamSettings {
            tls: vec![loopback()],
            certificate: Some((certificate.to_owned(), key.to_owned())),
            ..StreamSettings::default()
        };
        let started = Streams::start(&settings, around(&resolver, everybody()));
        started.err().map(|fault: StreamFault| fault.to_string()).unwrap_or_default()
    };
    assert_eq!(fault(&certificate, &key), "");
    assert!(fault(&folder.file("gone.pem"), &key).contains("gone.pem cannot be read: No such file"));
    assert!(fault(&key, &key).contains("holds no certificate"));
    assert!(fault(&certificate, &certificate).contains("holds no private key"));
    assert!(fault(&certificate, &other).contains("does not match the first certificate"));
}
