//! Removes the kernel's queueing discipline in front of a TUN device.
//!
//! By default the kernel puts a FIFO of the queue's length in front of each of the 256 queues that a multi-queue TUN device
//! might get: 98 MB of kernel memory and 170 ms at a length of 10,000, for queues that never hold a packet, since a TUN
//! device drops where others push back. Its own queues stay.

use crate::interface;
use crate::syscall::{annotate, netlink_socket, read, write};
use std::io;
use std::os::fd::AsFd;

const RTM_NEWQDISC: u16 = 36;
const TCA_KIND: u16 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;
const NLMSG_ERROR: u16 = 2;

/// Replaces the device's queueing discipline by `noqueue`: packets go straight into the device's own queues.
///
/// # Errors
/// The kernel's error of RTM_NEWQDISC; the device works as before.
pub fn remove(interface: &str) -> io::Result<()> {
    let call = format!("RTM_NEWQDISC noqueue {interface}");
    let request = request(interface::index(interface)?);
    let socket = netlink_socket()?;
    write(socket.as_fd(), &request).map_err(|error| annotate(error, &call))?;
    let mut answer = [0; 4_096];
    let length = read(socket.as_fd(), &mut answer).map_err(|error| annotate(error, &call))?;
    match error_of(&answer[..length]) {
        Some(0) => Ok(()),
        Some(error) => Err(annotate(io::Error::from_raw_os_error(-error), &call)),
        None => Err(annotate(io::ErrorKind::InvalidData.into(), &call)),
    }
}

/// struct nlmsghdr, struct tcmsg and one attribute.
fn request(index: u32) -> Vec<u8> {
    let kind = b"noqueue\0";
    let length = 16 + 20 + 4 + kind.len();
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(RTM_NEWQDISC.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence number and port: one request, one answer
    message.extend([0; 4]); // family and padding
    message.extend(index.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes()); // handle: the kernel's choice
    message.extend(TC_H_ROOT.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend((4 + kind.len() as u16).to_ne_bytes());
    message.extend(TCA_KIND.to_ne_bytes());
    message.extend(kind);
    message
}

/// The error number of an acknowledgement, zero for success.
fn error_of(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let error = i32::from_ne_bytes(*answer.get(16..)?.first_chunk()?);
    (kind == NLMSG_ERROR).then_some(error)
}
