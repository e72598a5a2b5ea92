//! Handover of a DNS64 to the next process of its gateway: the cache in a file, and the listening sockets, in which queries wait meanwhile.
//!
//! ```text
//!     NAME.dns64-cache    "6wdns", version 2, two zeroes, 16 octets from which secrets for cookies are made;
//!                         then each thread's part behind its length (8 octets, the lowest first); version 1: without the 16 octets
//!     NAME.sockets        where a process that takes over waits for the sockets; after `exec`, the environment names them
//! ```
//!
//! Only its owner can read the file. It is read once, and removed when the next process is ready.

use super::start::Start;
use crate::dns64::{Inherited, Left};
use crate::show::plural;
use nix::sys::stat::{Mode, umask};
use sixway_control::dns64::CookieSecret;
use sixway_link::Listeners;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The environment variable that names the sockets.
pub(super) const SOCKETS: &str = "SIXWAY_DNS64_SOCKETS";
/// The last octets but two are the version.
const MAGIC: [u8; 8] = *b"6wdns\x02\0\0";
const WITHOUT_SEED: [u8; 8] = *b"6wdns\x01\0\0";
/// How long a message with sockets may take: the other process has sent it, or is about to read it.
const PATIENCE: Duration = Duration::from_secs(1);
/// No cache is larger: the largest that can be configured, for 64 threads.
const LARGEST: u64 = 1 << 40;

fn cache_file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.dns64-cache"))
}

fn sockets_file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.sockets"))
}

/// Writes the cache for the next process. What cannot be written is fetched again.
pub(super) fn keep(directory: &Path, name: &str, left: &Left) {
    let path = cache_file(directory, name);
    if let Err(error) = write(&path, left.cookie_seed, &left.kept) {
        let _ = fs::remove_file(&path);
        tracing::warn!("DNS64: the next process begins with an empty cache: {}: {error}", path.display());
    }
}

/// Sends the sockets to the process that takes over, if it wants them.
pub(super) fn pass(directory: &Path, name: &str, listeners: &Listeners) {
    let path = sockets_file(directory, name);
    let is_ours =
        |it: fs::Metadata| it.file_type().is_socket() && it.uid() == nix::unistd::geteuid().as_raw();
    if !fs::symlink_metadata(&path).is_ok_and(is_ours) {
        return;
    }
    let sent = UnixStream::connect(&path).and_then(|stream| {
        stream.set_write_timeout(Some(PATIENCE))?;
        listeners.send(&stream)
    });
    match sent {
        Ok(()) => tracing::info!("DNS64: {} handed over", plural(listeners.len() as u64, "socket")),
        Err(error) => {
            tracing::warn!("DNS64: sockets were not handed over, queries in between are lost: {error}");
        }
    }
}

/// The state that the previous process left, with its sockets; the file stays until [`forget`].
pub(super) fn inherited(start: &Start<'_>, listeners: Listeners) -> Inherited {
    let path = cache_file(start.directory, &start.config.gateway.name);
    let (cookie_seed, kept) = read(&path).unwrap_or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            tracing::warn!("DNS64: the cache of the previous process is lost: {}: {error}", path.display());
        }
        Default::default()
    });
    Inherited { listeners, kept, cookie_seed }
}

/// What a process has that executed itself again.
pub(super) fn after_exec(start: &Start<'_>) -> Inherited {
    let listeners =
        std::env::var(SOCKETS).map_or_else(|_| Listeners::default(), |text| Listeners::inherited(&text));
    inherited(start, listeners)
}

/// The file is not needed any more.
pub(super) fn forget(start: &Start<'_>) {
    let _ = fs::remove_file(cache_file(start.directory, &start.config.gateway.name));
}

/// The socket on which the previous process can pass its sockets; removed with this.
#[derive(Debug)]
pub(super) struct Passage {
    path: PathBuf,
    listener: UnixListener,
}

impl Passage {
    /// Opens it; `None`: then the sockets are opened again.
    pub(super) fn open(directory: &Path, name: &str) -> Option<Self> {
        let path = sockets_file(directory, name);
        let _ = fs::remove_file(&path);
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(&path);
        umask(before);
        let opened = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match opened {
            Ok(listener) => Some(Self { path, listener }),
            Err(error) => {
                tracing::warn!("DNS64: sockets cannot be taken over: {}: {error}", path.display());
                None
            }
        }
    }

    /// What was passed; the other process has ended.
    pub(super) fn take(self) -> Listeners {
        let received = self.listener.accept().and_then(|(stream, _)| {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Listeners::receive(&stream)
        });
        match received {
            Ok(listeners) => listeners,
            // It had no DNS64, or does not know how.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Listeners::default(),
            Err(error) => {
                tracing::warn!("DNS64: sockets were not taken over: {error}");
                Listeners::default()
            }
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn write(path: &Path, cookie_seed: Option<CookieSecret>, parts: &[Vec<u8>]) -> io::Result<()> {
    // An existing file may be open in another process.
    let _ = fs::remove_file(path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut out = BufWriter::new(file);
    match cookie_seed {
        Some(seed) => out.write_all(&[&MAGIC[..], &seed].concat())?,
        None => out.write_all(&WITHOUT_SEED)?,
    }
    for part in parts {
        out.write_all(&(part.len() as u64).to_le_bytes())?;
        out.write_all(part)?;
    }
    out.flush()
}

/// The cookie secret and the parts of the cache, as the file has them.
type Content = (Option<CookieSecret>, Vec<Arc<[u8]>>);

/// # Errors
/// It does not exist, belongs to another user, is damaged, or was written by another version.
fn read(path: &Path) -> io::Result<Content> {
    let strange = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut file = OpenOptions::new().read(true).custom_flags(libc_no_follow()).open(path)?;
    let there = file.metadata()?;
    if !there.is_file() || there.uid() != nix::unistd::geteuid().as_raw() || there.mode() & 0o077 != 0 {
        return Err(strange("not a file that only its owner may read"));
    }
    if there.len() > LARGEST {
        return Err(strange("too large"));
    }
    let mut magic = [0; MAGIC.len()];
    file.read_exact(&mut magic)?;
    let mut rest = there.len().saturating_sub(MAGIC.len() as u64);
    let cookie_seed = match magic {
        MAGIC => {
            let mut seed = CookieSecret::default();
            file.read_exact(&mut seed).map_err(|_| strange("damaged"))?;
            rest = rest.saturating_sub(seed.len() as u64);
            Some(seed)
        }
        WITHOUT_SEED => None,
        _ => return Err(strange("written by an incompatible version")),
    };
    let mut parts = Vec::new();
    while rest > 0 {
        let part = read_part(&mut file, rest).map_err(|_| strange("damaged"))?;
        rest = rest.saturating_sub(8 + part.len() as u64);
        parts.push(part);
    }
    Ok((cookie_seed, parts))
}

fn read_part(file: &mut File, rest: u64) -> io::Result<Arc<[u8]>> {
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > rest.saturating_sub(8) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut part = Vec::new();
    file.take(length).read_to_end(&mut part)?;
    if part.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(part.into())
}

fn libc_no_follow() -> i32 {
    nix::fcntl::OFlag::O_NOFOLLOW.bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sixway-kept-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_cache_is_read_as_it_was_written_and_is_its_owners_alone() {
        let path = place("whole");
        let parts = vec![b"one".to_vec(), Vec::new(), vec![7; 70_000]];
        for seed in [Some([9; 16]), None] {
            write(&path, seed, &parts).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            let (read_seed, read) = super::read(&path).unwrap();
            let read: Vec<Vec<u8>> = read.iter().map(|part| part.to_vec()).collect();
            assert_eq!((read_seed, read), (seed, parts.clone()));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(super::read(&path).is_err(), "others may have written it");
        let link = place("link");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(super::read(&link).is_err());
        fs::remove_file(link).unwrap();
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_cache_that_is_cut_off_or_of_another_version_is_refused() {
        let path = place("cut");
        write(&path, Some([9; 16]), &[b"one".to_vec(), b"another".to_vec()]).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let parts = super::read(&path).map(|(_, parts)| parts.len());
            let is_between = [8 + 16, 8 + 16 + 8 + 3].contains(&length);
            assert_eq!(parts.is_ok(), is_between, "{length}");
        }
        let mut older = whole.clone();
        older[5] = 9;
        fs::write(&path, &older).unwrap();
        assert!(super::read(&path).unwrap_err().to_string().contains("incompatible version"));
        let mut endless = whole;
        endless[31] = 0xff;
        fs::write(&path, &endless).unwrap();
        assert!(super::read(&path).is_err());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn sockets_pass_to_who_waits_for_them() {
        let directory = place("passage");
        fs::create_dir(&directory).unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut listeners = Listeners::default();
        listeners.share(std::os::fd::AsFd::as_fd(&socket)).unwrap();
        // Nobody waits.
        pass(&directory, "gw", &listeners);
        let passage = Passage::open(&directory, "gw").unwrap();
        let path = sockets_file(&directory, "gw");
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
        pass(&directory, "gw", &listeners);
        drop(listeners);
        let mut taken = passage.take();
        let address = socket.local_addr().unwrap();
        assert_eq!(taken.take(address, sixway_link::Listens::Datagrams).len(), 1);
        assert!(!path.exists());
        assert!(Passage::open(&directory, "gw").unwrap().take().is_empty());
        fs::remove_dir(&directory).unwrap();
    }
}
