//! As many packets as one thread can send in a given time.

use crate::failure::{Asking as _, Result};
use crate::interrupt;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

/// Packets handed to the kernel in one call.
const BATCH: usize = 64;

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flood {
    /// Packets that the kernel took.
    pub sent: u64,
    /// How long it took.
    pub time: Duration,
    /// CPU time that the sending thread spent, the kernel's work on its behalf included.
    pub cpu: Duration,
}

/// What one connected socket sends: its payloads in turn.
pub type Train<'a> = (&'a UdpSocket, Vec<&'a [u8]>);

/// Sends a batch of each train in turn until `time` has passed.
pub fn flood(trains: &[Train<'_>], time: Duration) -> Result<Flood> {
    // SAFETY: an all-zero mmsghdr is a valid one: null pointers with zero lengths.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    let before = thread_cpu();
    let start = Instant::now();
    let mut done = Flood::default();
    while start.elapsed() < time {
        interrupt::check()?;
        for (socket, payloads) in trains {
            for ((message, part), payload) in messages.iter_mut().zip(&mut parts).zip(payloads.iter().cycle())
            {
                part.iov_base = payload.as_ptr().cast_mut().cast();
                part.iov_len = payload.len();
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
            }
            // SAFETY: `messages` and what they point to (`parts`, the payloads) live through the call; the kernel only reads the
            // payloads, and writes nothing but msg_len. Messages without payload have no parts.
            let sent = unsafe {
                libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as libc::c_uint, 0)
            };
            match sent {
                0.. => done.sent += u64::from(sent.unsigned_abs()),
                _ => ignore_full_queue()?,
            }
        }
    }
    done.time = start.elapsed();
    done.cpu = thread_cpu().saturating_sub(before);
    Ok(done)
}

/// A full queue, or an ICMP error that a packet before provoked, is not a failure of the generator.
fn ignore_full_queue() -> Result<()> {
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH) => Ok(()),
        Some(_) | None => Err(error).asking(|| "sending a batch (sendmmsg)".to_owned()),
    }
}

/// CPU time that this thread has spent, the kernel's work in its time included.
pub fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a place that holds one.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives_and_is_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let done = flood(&[(&sender, vec![&[0x36; 16]])], Duration::from_millis(1)).unwrap();
        assert!(done.sent >= BATCH as u64 && done.time >= Duration::from_millis(1));
        let mut octets = [0; 64];
        assert_eq!(receiver.recv(&mut octets).unwrap(), 16);
        assert_eq!(octets[..16], [0x36; 16]);
    }
}
