//! Many datagrams in one call (recvmmsg, sendmmsg).

use super::stamp::{FILL, STAMP};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Datagrams of one call.
const BATCH: usize = 64;
/// Octets that there is room for in a datagram; what is longer is cut.
const ROOM: usize = 2_048;

/// Room for a batch of datagrams and the addresses that they came from.
pub(super) struct Batch {
    octets: Vec<[u8; ROOM]>,
    addresses: Vec<libc::sockaddr_storage>,
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

impl Batch {
    pub(super) fn new() -> Self {
        // SAFETY: all-zero values of these types are valid: an unspecified address, and null pointers with zero lengths.
        let (address, message) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let part = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            octets: vec![[0; ROOM]; BATCH],
            addresses: vec![address; BATCH],
            parts: vec![part; BATCH],
            messages: vec![message; BATCH],
        }
    }

    /// Receives what has come, without waiting; how many datagrams.
    pub(super) fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        let places = self.octets.iter_mut().zip(&mut self.addresses).zip(&mut self.parts);
        for (((octets, address), part), message) in places.zip(&mut self.messages) {
            *part = libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: ROOM };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_name = (&raw mut *address).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        }
        // SAFETY: the messages point to parts, these to octets, and to addresses, which all live in `self` through the call, with their lengths.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// The octets of a datagram that was received.
    pub(super) fn datagram(&self, at: usize) -> &[u8] {
        let length = self.messages.get(at).map_or(0, |message| message.msg_len as usize);
        self.octets.get(at).and_then(|octets| octets.get(..length)).unwrap_or(&[])
    }

    /// Gives a datagram another length. What follows a stamp is filled.
    pub(super) fn resize(&mut self, at: usize, length: usize) {
        if let (Some(message), Some(octets)) = (self.messages.get_mut(at), self.octets.get_mut(at)) {
            let length = length.min(ROOM);
            octets.iter_mut().take(length).skip(STAMP).for_each(|octet| *octet = FILL);
            message.msg_len = length as libc::c_uint;
        }
    }

    /// Sends the first `count` datagrams back to where they came from; what the kernel refuses is lost.
    pub(super) fn send_back(&mut self, socket: &impl AsFd, count: usize) {
        for (message, part) in self.messages.iter().zip(&mut self.parts).take(count) {
            part.iov_len = message.msg_len as usize;
        }
        let mut done = 0;
        while let Some(rest) = self.messages.get_mut(done..count).filter(|rest| !rest.is_empty()) {
            // SAFETY: these messages were filled by `receive`; they point into `self`, which was not moved or changed.
            let sent = unsafe {
                libc::sendmmsg(
                    socket.as_fd().as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            done += usize::try_from(sent).unwrap_or(1).max(1);
        }
    }
}

// SAFETY: the pointers in it are written before each call, and point to its own memory, which does not move with it.
unsafe impl Send for Batch {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_come_back_to_where_they_came_from() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let clients = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        for (client, text) in clients.iter().zip(["one", "another"]) {
            client.connect(server.local_addr().unwrap()).unwrap();
            client.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            client.send(text.as_bytes()).unwrap();
        }
        let mut batch = Batch::new();
        assert_eq!(batch.receive(&server).unwrap(), 2);
        assert_eq!((batch.datagram(0), batch.datagram(2)), (&b"one"[..], &b""[..]));
        batch.send_back(&server, 2);
        let mut octets = [0; 64];
        for (client, length) in clients.iter().zip([3, 7]) {
            assert_eq!(client.recv(&mut octets).unwrap(), length);
        }
        assert_eq!(batch.receive(&server).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
