//! Listening sockets that a process hands over to the next one: connections and datagrams wait in them meanwhile, and are not refused.
//!
//! Two ways lead there: through `exec`, when a process becomes the next one, and over a Unix socket, when another one takes over.

use crate::syscall::failed;
use std::collections::HashSet;
use std::io;
use std::mem::size_of_val;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Descriptors in a message: SCM_MAX_FD is 253.
const BATCH: usize = 64;
/// No gateway listens at more sockets than this.
const MOST: usize = 16_384;
/// Octets of a control message with a batch, in units that are aligned as the kernel wants it.
const CONTROL: usize = (BATCH * size_of::<RawFd>() + 64) / size_of::<u64>();

/// How datagrams or connections come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listens {
    /// UDP.
    Datagrams,
    /// TCP.
    Connections,
}

/// Listening sockets, by their addresses.
#[derive(Debug, Default)]
pub struct Listeners(Vec<(SocketAddr, Listens, OwnedFd)>);

impl Listeners {
    /// One more; `false`: it does not listen at an address of IP, and is closed.
    pub fn add(&mut self, fd: OwnedFd) -> bool {
        let found = match (number(fd.as_fd(), libc::SO_TYPE), number(fd.as_fd(), libc::SO_ACCEPTCONN)) {
            (Ok(libc::SOCK_DGRAM), Ok(0)) => {
                let socket = UdpSocket::from(fd);
                let address = socket.local_addr();
                address.map(|address| (address, Listens::Datagrams, OwnedFd::from(socket)))
            }
            (Ok(libc::SOCK_STREAM), Ok(1)) => {
                let listener = TcpListener::from(fd);
                let address = listener.local_addr();
                address.map(|address| (address, Listens::Connections, OwnedFd::from(listener)))
            }
            _ => return false,
        };
        let found = found.ok().filter(|(address, ..)| address.port() != 0 && self.0.len() < MOST);
        let is_added = found.is_some();
        self.0.extend(found);
        is_added
    }

    /// One more, which stays open here as well.
    ///
    /// # Errors
    /// The kernel has no file descriptor left.
    pub fn share(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.add(fd.try_clone_to_owned()?);
        Ok(())
    }

    /// Takes those at an address.
    pub fn take(&mut self, address: SocketAddr, listens: Listens) -> Vec<OwnedFd> {
        let is_wanted = |it: &mut (SocketAddr, Listens, OwnedFd)| (it.0, it.1) == (address, listens);
        self.0.extract_if(.., is_wanted).map(|(_, _, fd)| fd).collect()
    }

    /// Adds those of another.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is not one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets them outlive `exec`, and returns the argument for [`Self::inherited`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn outlive_exec(&self) -> io::Result<String> {
        let numbers = self.0.iter().map(|(_, _, fd)| {
            close_on_exec(fd.as_fd(), false)?;
            Ok(fd.as_raw_fd().to_string())
        });
        let numbers: Vec<String> = numbers.collect::<io::Result<_>>()?;
        Ok(format!("{}:{}", std::process::id(), numbers.join(",")))
    }

    /// Those that outlived `exec`, as this process said before; none if another process said so, or if they were taken already.
    #[must_use]
    pub fn inherited(text: &str) -> Self {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let mut all = Self::default();
        let Some((process, numbers)) = text.split_once(':') else { return all };
        if process.parse() != Ok(std::process::id()) || TAKEN.swap(true, Ordering::Relaxed) {
            return all;
        }
        for number in descriptors(numbers) {
            // SAFETY: fcntl touches no memory of ours.
            let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
            // What this program opened itself is closed on exec: an open descriptor without that mark is an inherited one.
            if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
                continue;
            }
            // SAFETY: it is open, it was inherited, and as each number is taken once in a process's life, nothing else owns it.
            let fd = unsafe { OwnedFd::from_raw_fd(number) };
            if close_on_exec(fd.as_fd(), true).is_ok() {
                all.add(fd);
            }
        }
        all
    }

    /// Sends them to another process; here they stay open.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, stream: &UnixStream) -> io::Result<()> {
        let mut rest = &self.0[..];
        loop {
            let (now, later) = rest.split_at(rest.len().min(BATCH));
            let numbers: Vec<RawFd> = now.iter().map(|(_, _, fd)| fd.as_raw_fd()).collect();
            // The octet says whether more come.
            send_batch(stream, u8::from(!later.is_empty()), &numbers)?;
            if later.is_empty() {
                return Ok(());
            }
            rest = later;
        }
    }

    /// Receives what another process [sends](Self::send). What does not listen is closed.
    ///
    /// # Errors
    /// The kernel's, or the other process ended.
    pub fn receive(stream: &UnixStream) -> io::Result<Self> {
        let mut all = Self::default();
        loop {
            let (more, fds) = receive_batch(stream)?;
            for fd in fds {
                let _ = all.add(fd);
            }
            if !more {
                return Ok(all);
            }
        }
    }
}

fn close_on_exec(fd: BorrowedFd<'_>, closes: bool) -> io::Result<()> {
    // SAFETY: fcntl touches no memory of ours.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, if closes { libc::FD_CLOEXEC } else { 0 }) } {
        -1 => Err(failed("F_SETFD")),
        _ => Ok(()),
    }
}

/// An option of a socket that is a number.
fn number(fd: BorrowedFd<'_>, option: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    let at = std::ptr::from_mut(&mut value).cast();
    // SAFETY: value and length are valid for the call, and the length is the value's.
    match unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, at, &raw mut length) } {
        -1 => Err(failed("getsockopt")),
        _ => Ok(value),
    }
}

/// A message with room for an octet and a batch of descriptors.
fn message(piece: &mut libc::iovec, control: &mut [u64; CONTROL], octets: usize) -> libc::msghdr {
    // SAFETY: msghdr is plain data for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (piece, 1);
    if octets > 0 {
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = octets as _;
    }
    header
}

fn send_batch(stream: &UnixStream, mut octet: u8, numbers: &[RawFd]) -> io::Result<()> {
    let mut piece = libc::iovec { iov_base: std::ptr::from_mut(&mut octet).cast(), iov_len: 1 };
    let mut control = [0_u64; CONTROL];
    let length = size_of_val(numbers) as libc::c_uint;
    // SAFETY: CMSG_SPACE computes.
    let space = if numbers.is_empty() { 0 } else { unsafe { libc::CMSG_SPACE(length) as usize } };
    let header = message(&mut piece, &mut control, space);
    if !numbers.is_empty() {
        // SAFETY: the header's control buffer is larger than one message with a batch, aligned, and lives on; the data behind the first
        // header is within it.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(length) as _;
            let to = libc::CMSG_DATA(first).cast::<RawFd>();
            std::ptr::copy_nonoverlapping(numbers.as_ptr(), to, numbers.len());
        }
    }
    // SAFETY: the header points to a piece and a control buffer that outlive the call, with their true lengths.
    match unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) } {
        1 => Ok(()),
        _ => Err(failed("sendmsg")),
    }
}

fn receive_batch(stream: &UnixStream) -> io::Result<(bool, Vec<OwnedFd>)> {
    let mut octet = 0_u8;
    let mut piece = libc::iovec { iov_base: std::ptr::from_mut(&mut octet).cast(), iov_len: 1 };
    let mut control = [0_u64; CONTROL];
    let mut header = message(&mut piece, &mut control, CONTROL * size_of::<u64>());
    // SAFETY: the header points to a piece and a control buffer that outlive the call, with their true lengths.
    match unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC) } {
        -1 => return Err(failed("recvmsg")),
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        _ => {}
    }
    let mut fds = Vec::new();
    // SAFETY: the kernel wrote the control messages, and the macros stay within the length that it set.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !next.is_null() {
        // SAFETY: as above.
        let (level, kind, length) =
            unsafe { ((*next).cmsg_level, (*next).cmsg_type, (*next).cmsg_len as usize) };
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: CMSG_LEN computes.
            let count = (length - unsafe { libc::CMSG_LEN(0) as usize }) / size_of::<RawFd>();
            // SAFETY: as above; the data need not be aligned.
            let data = unsafe { libc::CMSG_DATA(next).cast::<RawFd>() };
            for place in 0..count {
                // SAFETY: the descriptor is within the message; the kernel made it for this process, and nothing else owns it.
                fds.push(unsafe { OwnedFd::from_raw_fd(data.add(place).read_unaligned()) });
            }
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(&raw const header, next) };
    }
    Ok((octet != 0, fds))
}

/// The numbers in a list, each once. They stay in their order: it is that of the sockets of a group, which the kernel numbers as they were bound.
fn descriptors(list: &str) -> Vec<RawFd> {
    let mut seen = HashSet::new();
    let numbers = list.split(',').filter_map(|it| it.parse().ok());
    numbers.filter(|number| *number > 2 && seen.insert(*number)).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_stay_in_the_order_in_which_they_are_named() {
        assert_eq!(descriptors("20,21,7,x,2,,21,22,0"), [20, 21, 7, 22]);
    }
    use std::io::{Read, Write};

    #[test]
    fn sockets_are_passed_with_what_waits_in_them() {
        let datagrams: Vec<UdpSocket> = (0..BATCH + 3).map(|_| UdpSocket::bind("[::1]:0").unwrap()).collect();
        let (address, connections) =
            (datagrams[70 % (BATCH + 3)].local_addr().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let client = UdpSocket::bind("[::1]:0").unwrap();
        client.send_to(b"query", address).unwrap();
        let mut connection = std::net::TcpStream::connect(connections.local_addr().unwrap()).unwrap();
        connection.write_all(b"query").unwrap();

        let mut leaving = Listeners::default();
        datagrams.iter().for_each(|socket| leaving.share(socket.as_fd()).unwrap());
        leaving.share(connections.as_fd()).unwrap();
        // What does not listen is not passed on.
        assert!(!leaving.add(connection.try_clone().unwrap().into()));
        let (ours, theirs) = UnixStream::pair().unwrap();
        leaving.send(&ours).unwrap();
        drop((leaving, datagrams));
        let tcp = connections.local_addr().unwrap();
        drop(connections);

        let mut taken = Listeners::receive(&theirs).unwrap();
        assert_eq!(taken.len(), BATCH + 4);
        let mut room = [0; 8];
        let socket = UdpSocket::from(taken.take(address, Listens::Datagrams).pop().unwrap());
        let length = socket.recv(&mut room).unwrap();
        assert_eq!(&room[..length], b"query");
        assert!(taken.take(address, Listens::Datagrams).is_empty());
        let listener = TcpListener::from(taken.take(tcp, Listens::Connections).pop().unwrap());
        let mut served = listener.accept().unwrap().0;
        served.read_exact(&mut room[..5]).unwrap();
        assert_eq!(&room[..5], b"query");
    }

    #[test]
    fn without_sockets_nothing_is_passed_and_an_end_is_told() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        Listeners::default().send(&ours).unwrap();
        assert!(Listeners::receive(&theirs).unwrap().is_empty());
        drop(ours);
        assert!(Listeners::receive(&theirs).is_err());
    }

    #[test]
    fn what_another_process_said_is_not_taken() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let number = socket.as_raw_fd();
        let others = format!("{}:{number}", std::process::id() + 1);
        assert!(Listeners::inherited(&others).is_empty());
        assert!(Listeners::inherited("").is_empty());
        // It has the mark of what this program opened.
        let own = format!("{}:{number},99999,0,x", std::process::id());
        assert!(Listeners::inherited(&own).is_empty());
        assert!(socket.local_addr().is_ok());
    }
}
