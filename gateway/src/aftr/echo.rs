//! Echo requests to the AFTR's address in the softwire (RFC 6333 §6.5).

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, recv, sendto, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;
use sixway_dataplane::mechanism::ds_lite::AFTR_ADDRESS;
use sixway_wire::checksum::Sum;
use sixway_wire::icmpv4;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// The timeout of a request, and the number of attempts.
const PATIENCE: Duration = Duration::from_secs(1);
const TRIES: usize = 3;
/// Octets of an IPv4 header and of the part of the ICMP message that is examined.
const SEEN: usize = 128;

/// Sends an echo request to the AFTR's address in the softwire. Its reply is counted like any packet from the tunnel, and not read.
pub(crate) fn ask_aftr(host: Ipv4Addr, device: &OsString) -> nix::Result<()> {
    let socket = open(host, device, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)?;
    send(&socket)
}

/// Whether the AFTR answers an echo request within a few seconds.
///
/// # Errors
/// The kernel refused: the device is missing, or this is not root.
pub(crate) fn answers(host: Ipv4Addr, device: &OsString) -> nix::Result<bool> {
    let socket = open(host, device, SockFlag::SOCK_CLOEXEC)?;
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(0, 100_000))?;
    for _try in 0..TRIES {
        send(&socket)?;
        let until = Instant::now() + PATIENCE;
        let mut octets = [0; SEEN];
        while Instant::now() < until {
            if let Ok(length) = recv(socket.as_raw_fd(), &mut octets, MsgFlags::empty())
                && is_answer(octets.get(..length).unwrap_or_default())
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a packet, from its IPv4 header on, is an echo reply of the AFTR.
fn is_answer(octets: &[u8]) -> bool {
    let header = octets.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    octets.get(12..16) == Some(&AFTR_ADDRESS.octets()) && octets.get(header) == Some(&icmpv4::ECHO_REPLY)
}

fn open(host: Ipv4Addr, device: &OsString, flags: SockFlag) -> nix::Result<OwnedFd> {
    let socket = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)?;
    // The main table may lead elsewhere.
    setsockopt(&socket, sockopt::BindToDevice, device)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(host, 0)))?;
    Ok(socket)
}

fn send(socket: &OwnedFd) -> nix::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_request_has_its_checksum() {
        assert_eq!(echo_request(), [8, 0, 0xf7, 0xfe, 0, 0, 0, 1]);
    }

    #[test]
    fn only_an_echo_reply_of_the_aftr_is_its_answer() {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&AFTR_ADDRESS.octets());
        assert!(is_answer(&packet));
        packet[20] = icmpv4::ECHO_REQUEST;
        assert!(!is_answer(&packet), "its own request");
        (packet[20], packet[15]) = (icmpv4::ECHO_REPLY, 9);
        assert!(!is_answer(&packet), "another host's");
        assert!(!is_answer(&[]) && !is_answer(&packet[..19]));
    }
}
