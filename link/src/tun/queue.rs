//! One queue of a TUN device: a link.

use super::virtio::{self, Header};
use super::{Abilities, segmentation};
use crate::Link;
use crate::checksum::{Transport, finish};
use crate::counters::LinkCounters;
use crate::syscall::{annotate, read, write};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::{Checksum, Frame, Offload, SegmentKind};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A batch ends after this many octets, so that its super-frames are still in the processor's cache when they are sent.
const BATCH_OCTETS: usize = 512 * 1024;

/// One queue of a TUN device.
#[derive(Debug)]
pub struct TunQueue {
    fd: OwnedFd,
    abilities: Abilities,
    counters: LinkCounters,
    /// Where super-frames are cut that the kernel does not take.
    segment: Option<Frame>,
}

impl TunQueue {
    pub(super) fn new(fd: OwnedFd, abilities: Abilities) -> Self {
        Self { fd, abilities, counters: LinkCounters::default(), segment: None }
    }

    /// What the kernel granted this device.
    pub const fn abilities(&self) -> Abilities {
        self.abilities
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
        frame.offload = header.offload(frame.bytes_mut(), &mut self.counters);
        self.counters.received += 1;
        self.counters.received_octets += length as u64;
        self.counters.received_super_frames += u64::from(frame.offload.segments.is_some());
        self.counters.cut_short += u64::from(length == capacity);
        Ok(Some(()))
    }

    /// Whether the kernel takes this super-frame whole.
    const fn takes(&self, kind: SegmentKind) -> bool {
        match kind {
            SegmentKind::Tcp | SegmentKind::TcpEcn => self.abilities.tso,
            SegmentKind::Udp => self.abilities.uso,
        }
    }

    /// Writes a frame with its header, in one piece, and counts what became of it.
    #[inline]
    fn write(&mut self, header: Header, frame: &mut Frame) -> io::Result<()> {
        let octets = frame.len();
        if !self.abilities.vnet {
            return self.written(write(self.fd.as_fd(), frame.bytes()), octets, header);
        }
        let Some(all) = frame.bytes_behind(virtio::LENGTH) else {
            self.counters.refused += 1;
            return Ok(());
        };
        all[..virtio::LENGTH].copy_from_slice(&header.octets());
        self.written(write(self.fd.as_fd(), all), octets, header)
    }

    /// Counts what became of a packet of `octets` octets.
    #[inline]
    fn written(&mut self, written: io::Result<usize>, octets: usize, header: Header) -> io::Result<()> {
        match written {
            Ok(_) => {
                self.counters.sent += 1;
                self.counters.sent_octets += octets as u64;
                self.counters.sent_super_frames += u64::from(header.gso_size != 0);
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => self.counters.no_room += 1,
                // The device is gone, or this file is no longer a queue of it.
                Some(libc::EBADFD | libc::EBADF) => return Err(annotate(error, "write to the TUN device")),
                _ => self.counters.refused += 1,
            },
        }
        Ok(())
    }

    /// Sends a frame that the kernel cannot take as it is: cut, or with its checksum finished.
    #[cold]
    fn send_plainly(&mut self, frame: &mut Frame) -> io::Result<()> {
        let Some(segments) = frame.offload.segments else {
            let finished = Transport::of(frame.bytes()).is_some_and(|transport| {
                let offset = transport.checksum_offset();
                offset.is_some_and(|offset| finish(frame.bytes_mut(), transport.at, offset))
            });
            if !finished {
                self.counters.refused += 1;
                return Ok(());
            }
            self.counters.checksums_finished += 1;
            return self.write(Header::default(), frame);
        };
        let mut segment = self.segment.take().unwrap_or_else(|| Frame::with_capacity(MAX_PACKET));
        let mut result = Ok(());
        let cut = segmentation::cut(frame.bytes(), segments, &mut segment, |packet| {
            if result.is_ok() {
                result = self.write(Header::default(), packet);
            }
        });
        self.segment = Some(segment);
        match cut {
            Some(_) => self.counters.super_frames_cut += 1,
            None => self.counters.refused += 1,
        }
        result
    }
}

impl Link for TunQueue {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        let (mut count, mut octets) = (0, 0);
        for frame in frames {
            match self.read(frame) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(_) if count > 0 => break, // it will be said again
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
            Some(header) => self.write(header, frame),
            None => {
                self.counters.refused += 1;
                Ok(())
            }
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}
