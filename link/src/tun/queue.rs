//! One queue of a TUN device: a link.

use super::Abilities;
use super::overload_filter::OverloadFilter;
use super::virtio::{self, Header};
use crate::counters::LinkCounters;
use crate::segmentation::Plain;
use crate::syscall::{annotate, read, write};
use crate::{BATCH_OCTETS, Link};
use sixway_dataplane::fair_share::SenderTable;
use sixway_dataplane::frame::{Ingress, Realm};
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One queue of a TUN device.
#[derive(Debug)]
pub struct TunQueue {
    fd: OwnedFd,
    abilities: Abilities,
    counters: LinkCounters,
    /// Makes what the kernel does not take whole.
    plain: Plain,
    /// It only sends: another one reads.
    sends_only: bool,
    realm: Realm,
    filter: Option<OverloadFilter>,
}

impl TunQueue {
    pub(super) fn new(fd: OwnedFd, abilities: Abilities, realm: Realm) -> Self {
        let (counters, plain) = (LinkCounters::default(), Plain::default());
        Self { fd, abilities, counters, plain, sends_only: false, realm, filter: None }
    }

    /// Another end of the same queue, that only sends.
    ///
    /// # Errors
    /// The kernel has no file descriptor left.
    pub(super) fn sender(&self) -> io::Result<Self> {
        Ok(Self { sends_only: true, ..Self::new(self.fd.try_clone()?, self.abilities, self.realm) })
    }

    /// What the kernel granted this device.
    pub const fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// The filter that is in front of it.
    pub(super) fn set_filter(&mut self, filter: OverloadFilter) {
        self.filter = Some(filter);
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Reads one packet. `None`: nothing waits.
    ///
    /// The header is read into the headroom, in one piece with the packet: a `readv` of two pieces costs 100 ns more.
    #[inline]
    fn read(&mut self, frame: &mut Frame) -> io::Result<Option<()>> {
        let prefix = if self.abilities.vnet { virtio::LENGTH } else { 0 };
        let space = frame.space_behind(prefix);
        let capacity = space.len() - prefix;
        let read = read(self.fd.as_fd(), space);
        let header = match space.first_chunk() {
            Some(octets) if self.abilities.vnet => Header::from_octets(octets),
            _ => Header::default(),
        };
        let length = match read {
            Ok(octets) => octets.saturating_sub(prefix),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        frame.received(length, Offload::default());
        frame.ingress = Ingress::Device(self.realm);
        frame.offload = header.offload(frame.bytes_mut(), &mut self.counters);
        self.counters.received += 1;
        self.counters.received_octets += length as u64;
        self.counters.received_gso += u64::from(frame.offload.segments.is_some());
        self.counters.truncated += u64::from(length == capacity);
        Ok(Some(()))
    }

    /// Whether the kernel takes this GSO packet whole.
    const fn takes(&self, kind: SegmentKind) -> bool {
        match kind {
            SegmentKind::Tcp | SegmentKind::TcpEcn => self.abilities.tso,
            SegmentKind::Udp => self.abilities.uso,
        }
    }

    /// Sends a frame that the kernel cannot take as it is: cut, or with its checksum finished.
    #[cold]
    fn send_plainly(&mut self, frame: &mut Frame) -> io::Result<()> {
        let Self { fd, abilities, plain, counters, sends_only: _, realm: _, filter: _ } = self;
        plain.each(frame, counters, |frame, counters| {
            write_frame(fd.as_fd(), *abilities, Header::default(), frame, counters)
        })
    }
}

impl Link for TunQueue {
    fn realm(&self) -> Realm {
        self.realm
    }

    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        if self.sends_only {
            return Ok(0);
        }
        let (mut count, mut octets) = (0, 0);
        for frame in frames {
            match self.read(frame) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(_) if count > 0 => break, // the next call reports it again
                Err(error) => return Err(annotate(error, "read from the TUN device")),
            }
            count += 1;
            octets += frame.len();
            if octets >= BATCH_OCTETS {
                break;
            }
        }
        Ok(count)
    }

    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        let plain = match frame.offload.segments {
            Some(segments) => !self.takes(segments.kind),
            None => frame.offload.checksum == Checksum::Partial && !self.abilities.vnet,
        };
        if plain {
            return self.send_plainly(frame);
        }
        match Header::describing(frame) {
            Some(header) => write_frame(self.fd.as_fd(), self.abilities, header, frame, &mut self.counters),
            None => {
                self.counters.refused += 1;
                Ok(())
            }
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.sends_only).then(|| self.descriptor())
    }

    fn take_filter(&mut self) -> Option<Box<dyn SenderTable>> {
        Some(Box::new(self.filter.take()?))
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

/// Writes a frame with its header, in one piece, and counts what became of it.
#[inline]
fn write_frame(
    fd: BorrowedFd<'_>,
    abilities: Abilities,
    header: Header,
    frame: &mut Frame,
    counters: &mut LinkCounters,
) -> io::Result<()> {
    let octets = frame.len() as u64;
    let all = if abilities.vnet { frame.bytes_behind(virtio::LENGTH) } else { Some(frame.bytes_mut()) };
    let Some(all) = all else {
        counters.refused += 1;
        return Ok(());
    };
    if abilities.vnet {
        all[..virtio::LENGTH].copy_from_slice(&header.octets());
    }
    let Err(error) = write(fd, all) else {
        counters.sent += 1;
        counters.sent_octets += octets;
        counters.sent_gso += u64::from(header.gso_size != 0);
        return Ok(());
    };
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => counters.no_room += 1,
        // The device was removed, or this file is no longer one of its queues.
        Some(libc::EBADFD | libc::EBADF) => return Err(annotate(error, "write to the TUN device")),
        _ => counters.refused += 1,
    }
    Ok(())
}
