//! Netlink requests and responses, on a separate socket without events.

use super::octets::{message, messages, number32};
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket,
};
use nix::sys::time::TimeVal;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_REPLACE: u16 = 0x100;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// Maximum size of a message from the kernel, in octets.
const DATAGRAM: usize = 64 << 10;

/// A netlink socket.
#[derive(Debug)]
pub(super) struct NetlinkSocket {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl NetlinkSocket {
    /// A socket of a protocol of netlink's.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(protocol: SockProtocol) -> io::Result<Self> {
        Self::by(open(protocol, 0)?)
    }

    /// The same with an open socket.
    ///
    /// # Errors
    /// The kernel's.
    pub fn by(socket: OwnedFd) -> io::Result<Self> {
        // The kernel answers immediately; if it does not, the heartbeat must not stop forever.
        setsockopt(&socket, ReceiveTimeout, &TimeVal::new(1, 0))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// Dumps all objects of a kind: passes the messages' bodies to `take`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn dump(&mut self, kind: u16, body: &[u8], take: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(kind, NLM_F_DUMP, body, take)
    }

    /// Sends one request.
    ///
    /// # Errors
    /// The kernel's.
    pub fn request(&mut self, kind: u16, body: &[u8], take: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(kind, NLM_F_ACK, body, take)
    }

    /// Changes an existing object.
    ///
    /// # Errors
    /// The kernel's error: it does not exist.
    pub fn change(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.ask(kind, NLM_F_ACK | NLM_F_REPLACE, body, |_| {})
    }

    fn ask(&mut self, kind: u16, flags: u16, body: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = message(kind, NLM_F_REQUEST | flags, self.sequence, body);
        send(self.socket.as_raw_fd(), &question, MsgFlags::empty())?;
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            for answer in messages(&self.buffer[..length]).filter(|one| one.sequence == self.sequence) {
                match answer.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return outcome(answer.body),
                    _ => take(answer.body),
                }
            }
        }
    }
}

/// A socket that is not waited for, with events of these groups.
pub(super) fn listening(groups: u32) -> io::Result<OwnedFd> {
    use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
    const ROOM: usize = 4 << 20;
    let socket = open(SockProtocol::NetlinkRoute, groups)?;
    // Without the privilege for a larger buffer, events are lost sooner; the loss is reported.
    if setsockopt(&socket, RcvBufForce, &ROOM).is_err() {
        setsockopt(&socket, RcvBuf, &ROOM)?;
    }
    Ok(socket)
}

fn open(protocol: SockProtocol, groups: u32) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(socket)
}

fn outcome(body: &[u8]) -> io::Result<()> {
    match number32(body, 0).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
