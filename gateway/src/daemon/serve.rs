//! The sockets of the admin API and of the metrics. Connections are bounded in number and in time, so that
//! no client can exhaust the gateway's memory or descriptors.

use super::gateway::Gateway;
use crate::admin::{self, AdminError, Asker};
use axum::Router;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use std::fs;
use std::future::{Future, IntoFuture, pending};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Connections at a time, on each socket.
const CONNECTIONS: usize = 32;
/// In addition, those of members of the group with read access: they must not block users who may change something.
const CONNECTIONS_OF_MEMBERS: usize = 16;
/// How long a connection may last.
const LIFETIME: Duration = Duration::from_secs(60);

/// Removes a stale admin socket. Until this has succeeded, an existing path belongs to another process and must not be recorded as
/// ours.
///
/// # Errors
/// A process listens there, something else is in its place, or the kernel refused.
pub(super) fn make_way(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    if let Ok(there) = fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the path exists and is not a socket; remove it, or set another `gateway.admin_socket`",
            ));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process listens on it; stop that, or set another `gateway.admin_socket`",
            ));
        }
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Makes the admin socket, which only its owner may open, and the members of `group`.
///
/// # Errors
/// The kernel refused, or there is no such group.
pub(super) fn unix(path: &Path, group: Option<&str>) -> io::Result<UnixListener> {
    let group = group.map(group_of).transpose()?;
    let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(path);
    nix::sys::stat::umask(before);
    let listener = listener?;
    if let Some(group) = group {
        std::os::unix::fs::chown(path, None, Some(group))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    }
    Ok(listener)
}

fn group_of(name: &str) -> io::Result<u32> {
    match nix::unistd::Group::from_name(name)? {
        Some(group) => Ok(group.gid.as_raw()),
        None => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("gateway.admin_group: there is no group {name}; create it: groupadd --system {name}"),
        )),
    }
}

/// The user at the other end of the admin socket.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// This process's own user, or root. Others are members of the group, with read access.
    may_change: bool,
}

impl Connected<IncomingStream<'_, Bounded<UnixListener>>> for Peer {
    fn connect_info(incoming: IncomingStream<'_, Bounded<UnixListener>>) -> Self {
        Self { may_change: may_change(&incoming.io().stream) }
    }
}

/// Whether this process's own user, or root, is at the other end.
fn may_change(stream: &UnixStream) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| [0, own].contains(&peer.uid()))
}

async fn only_who_may(ConnectInfo(peer): ConnectInfo<Peer>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Asker { may_change: peer.may_change });
    if peer.may_change || matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    AdminError::NotPermitted.into_response()
}

/// Makes the socket of the metrics.
///
/// # Errors
/// The kernel refused.
pub(super) async fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves the admin API, for ever.
pub(super) async fn admin(listener: UnixListener, gateway: Arc<Gateway>) {
    let router = admin::router(gateway).layer(axum::middleware::from_fn(only_who_may));
    let service = router.into_make_service_with_connect_info::<Peer>();
    serve(axum::serve(bounded(listener, |stream| !may_change(stream)), service)).await;
}

/// Serves the metrics, without end, if they are configured.
pub(super) async fn metrics(listener: Option<TcpListener>, gateway: Arc<Gateway>) {
    match listener {
        Some(listener) => {
            let router: Router = admin::metrics_route().with_state(gateway);
            serve(axum::serve(bounded(listener, |_| false), router)).await;
        }
        None => pending().await,
    }
}

/// `is_member`: whether a connection is one of [`CONNECTIONS_OF_MEMBERS`].
fn bounded<L: Listener>(listener: L, is_member: fn(&L::Io) -> bool) -> Bounded<L> {
    let free = |connections| Arc::new(Semaphore::new(connections));
    let free_for_members = free(CONNECTIONS_OF_MEMBERS);
    Bounded { listener, is_member, free: free(CONNECTIONS), free_for_members }
}

async fn serve(serving: impl IntoFuture<Output = io::Result<()>>) {
    if let Err(error) = serving.await {
        tracing::error!("stopped serving a socket: {error}");
        pending().await
    }
}

/// A listener that accepts up to a limit of connections.
struct Bounded<L: Listener> {
    listener: L,
    is_member: fn(&L::Io) -> bool,
    free: Arc<Semaphore>,
    free_for_members: Arc<Semaphore>,
}

impl<L: Listener> Listener for Bounded<L> {
    type Io = Guarded<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await;
            // The semaphores are never closed; without them, there would be nothing to bound.
            let permit = match (self.is_member)(&stream) {
                // A connection above the limit is closed: if it waited, others would wait, too.
                true => match Arc::clone(&self.free_for_members).try_acquire_owned() {
                    Ok(permit) => Some(permit),
                    Err(_) => continue,
                },
                false => Arc::clone(&self.free).acquire_owned().await.ok(),
            };
            let deadline = Box::pin(tokio::time::sleep(LIFETIME));
            return (Guarded { stream, deadline, _permit: permit }, address);
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that ends in time.
struct Guarded<S> {
    stream: S,
    deadline: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// Sends one request and reads the response for this long.
    fn answer(mut asking: &UnixStream, patience: Duration) -> String {
        asking.set_read_timeout(Some(patience)).unwrap();
        let mut octets = [0; 64];
        let length = asking.read(&mut octets).unwrap_or(0);
        String::from_utf8_lossy(&octets[..length]).into_owned()
    }

    #[test]
    fn only_a_socket_that_nobody_listens_at_makes_way() {
        let path = std::env::temp_dir().join(format!("sixway-way-{}.sock", std::process::id()));
        std::fs::write(&path, "precious").unwrap();
        assert_eq!(make_way(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();

        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(make_way(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(listener);
        make_way(&path).unwrap();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_connection_ends_in_time_whatever_its_client_does() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (stream, mut client) = tokio::io::duplex(4);
        let deadline = Box::pin(tokio::time::sleep(Duration::from_millis(50)));
        let mut served = Guarded { stream, deadline, _permit: None };
        client.write_all(b"GET").await.unwrap();
        assert_eq!(served.read(&mut [0; 4]).await.unwrap(), 3);
        assert_eq!(served.read(&mut [0; 4]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // A reader that does not read.
        assert_eq!(served.write_all(&[0; 9]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// The path of a socket that is served, with connections of this kind.
    fn serving(name: &str, is_member: fn(&tokio::net::UnixStream) -> bool) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("sixway-{name}-{}.sock", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let router = Router::new().route("/", axum::routing::get(|| async { "here" }));
                let listener = bounded(UnixListener::from_std(listener).unwrap(), is_member);
                serve(axum::serve(listener, router)).await;
            });
        });
        path
    }

    #[test]
    fn connections_of_members_beyond_their_limit_are_closed_and_do_not_wait_before_others() {
        let path = serving("members", |_| true);
        let mut idle: Vec<UnixStream> =
            (0..CONNECTIONS_OF_MEMBERS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut one_more = UnixStream::connect(&path).unwrap();
        one_more.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(one_more.read(&mut [0; 64]).unwrap(), 0);
        idle.pop();
        let begun = std::time::Instant::now();
        loop {
            let mut asking = UnixStream::connect(&path).unwrap();
            // It may be closed already.
            let _ = asking.write_all(b"GET / HTTP/1.0\r\n\r\n");
            if answer(&asking, Duration::from_secs(5)).contains("200 OK") {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn connections_beyond_the_limit_wait_until_another_ends() {
        let path = serving("serve", |_| false);
        let mut idle: Vec<UnixStream> =
            (0..CONNECTIONS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut one_more = UnixStream::connect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        one_more.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(answer(&one_more, Duration::from_millis(300)), "");
        idle.pop();
        let said = answer(&one_more, Duration::from_secs(20));
        assert!(said.contains("200 OK"), "{said}");
    }
}
