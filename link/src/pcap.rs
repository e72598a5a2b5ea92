//! A link over pcap files: packets are received from one, and sent packets are written to another.
//!
//! ```text
//!   file:    magic · version 2.4 · 0 · 0 · longest packet · link type        24 octets
//!   packet:  seconds · fraction · octets here · octets on the wire           16 octets, and the packet
//! ```
//! The classic format in all four of its forms (either byte order, micro- or nanoseconds), with link types that carry bare
//! IP packets: RAW (101), IPV4 (228), IPV6 (229). Timestamps are not waited for.

use crate::segmentation::Plain;
use crate::{Link, LinkCounters};
use sixway_dataplane::frame::MAX_PACKET;
use sixway_dataplane::{Frame, Offload};
use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_RAW: u32 = 101;
const LINKTYPE_IPV4: u32 = 228;
const LINKTYPE_IPV6: u32 = 229;

/// Packets from a pcap file.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    big_endian: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// `InvalidData`: not a classic pcap file, or its packets are not raw IP packets. Else the error of `input`.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut header = [0; 24];
        input.read_exact(&mut header)?;
        let magic = [header[0], header[1], header[2], header[3]];
        let big_endian = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (MAGIC_MICROSECONDS | MAGIC_NANOSECONDS, _) => false,
            (_, MAGIC_MICROSECONDS | MAGIC_NANOSECONDS) => true,
            _ => return Err(invalid("no pcap file (pcapng is to be converted: editcap -F pcap)".into())),
        };
        let reader = Self { input, big_endian };
        match reader.number(&header, 20) & 0xffff {
            LINKTYPE_RAW | LINKTYPE_IPV4 | LINKTYPE_IPV6 => Ok(reader),
            other => {
                Err(invalid(format!("packets of link type {other}, not bare IP packets (101, 228, 229)")))
            }
        }
    }

    /// Reads the next packet into `frame`. Returns its length on the wire, `None` at the end of the file.
    ///
    /// # Errors
    /// `InvalidData`: a packet longer than any can be. `UnexpectedEof`: the file ends within a packet.
    pub fn next(&mut self, frame: &mut Frame) -> io::Result<Option<usize>> {
        let mut header = [0; 16];
        if self.input.read(&mut header[..1])? == 0 {
            return Ok(None);
        }
        self.input.read_exact(&mut header[1..])?;
        let (here, on_wire) = (self.number(&header, 8) as usize, self.number(&header, 12) as usize);
        if here > MAX_PACKET {
            return Err(invalid(format!("a packet of {here} octets")));
        }
        let space = frame.space();
        let fits = here.min(space.len());
        self.input.read_exact(&mut space[..fits])?;
        io::copy(&mut self.input.by_ref().take((here - fits) as u64), &mut io::sink())?;
        frame.received(fits, Offload::default());
        Ok(Some(on_wire))
    }

    fn number(&self, header: &[u8], at: usize) -> u32 {
        let octets = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        if self.big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
    }
}

/// Packets into a pcap file: nanoseconds, little-endian, link type RAW.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    /// The error of `output`.
    pub fn new(mut output: W) -> io::Result<Self> {
        let version = 2 | 4 << 16;
        for number in [MAGIC_NANOSECONDS, version, 0, 0, MAX_PACKET as u32, LINKTYPE_RAW] {
            output.write_all(&number.to_le_bytes())?;
        }
        Ok(Self { output })
    }

    /// Writes a packet seen `time` after 1970.
    ///
    /// # Errors
    /// The error of `output`.
    pub fn write(&mut self, packet: &[u8], time: Duration) -> io::Result<()> {
        let length = packet.len() as u32;
        for number in [time.as_secs() as u32, time.subsec_nanos(), length, length] {
            self.output.write_all(&number.to_le_bytes())?;
        }
        self.output.write_all(packet)
    }
}

/// A link that replays one pcap file and records into another. What is recorded is as on a wire: GSO packets are cut,
/// checksums finished.
#[derive(Debug)]
pub struct Pcap<R, W> {
    replay: Reader<R>,
    record: Writer<W>,
    /// The time stamped on packets sent, read from the clock once a batch.
    time: Duration,
    plain: Plain,
    counters: LinkCounters,
}

impl<R: Read, W: Write> Pcap<R, W> {
    /// Reads and writes the files' headers.
    ///
    /// # Errors
    /// As [`Reader::new`] and [`Writer::new`].
    pub fn new(replay: R, record: W) -> io::Result<Self> {
        Ok(Self {
            replay: Reader::new(replay)?,
            record: Writer::new(record)?,
            time: since_1970(),
            plain: Plain::default(),
            counters: LinkCounters::default(),
        })
    }
}

impl<R: Read, W: Write> Link for Pcap<R, W> {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        self.time = since_1970();
        let mut count = 0;
        for frame in frames {
            let Some(on_wire) = self.replay.next(frame)? else { break };
            self.counters.received += 1;
            self.counters.received_octets += frame.len() as u64;
            self.counters.truncated += u64::from(frame.len() < on_wire);
            count += 1;
        }
        Ok(count)
    }

    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        let Self { record, time, plain, counters, .. } = self;
        plain.each(frame, counters, |frame, counters| {
            counters.sent += 1;
            counters.sent_octets += frame.len() as u64;
            record.write(frame.bytes(), *time)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.record.output.flush()
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segmentation::tests::{tcp, udp};
    use sixway_dataplane::{Checksum, SegmentKind, Segments};

    /// A file with two packets, in either byte order, with either kind of timestamp.
    fn file(magic: u32, linktype: u32, order: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let mut file: Vec<u8> = [magic, 2, 0, 0, 65_535, linktype].into_iter().flat_map(order).collect();
        for packet in [&b"first"[..], b"the second"] {
            let length = packet.len() as u32;
            file.extend([1, 2, length, length].into_iter().flat_map(order));
            file.extend(packet);
        }
        file
    }

    fn frames(count: usize) -> Vec<Frame> {
        (0..count).map(|_| Frame::with_capacity(2_000)).collect()
    }

    #[test]
    fn all_four_forms_are_read() {
        for magic in [MAGIC_MICROSECONDS, MAGIC_NANOSECONDS] {
            for order in [u32::to_le_bytes, u32::to_be_bytes] {
                let file = file(magic, 101, order);
                let mut link = Pcap::new(&file[..], Vec::new()).unwrap();
                let mut frames = frames(3);
                assert_eq!(link.receive(&mut frames).unwrap(), 2);
                assert_eq!((frames[0].bytes(), frames[1].bytes()), (&b"first"[..], &b"the second"[..]));
                assert_eq!(link.receive(&mut frames).unwrap(), 0);
            }
        }
    }

    #[test]
    fn what_was_sent_is_read_again() {
        let empty = file(MAGIC_NANOSECONDS, 101, u32::to_le_bytes);
        let mut link = Pcap::new(&empty[..], Vec::new()).unwrap();
        for packet in [tcp(6, 10), udp(4, 1)] {
            link.send(&mut Frame::holding(&packet)).unwrap();
        }
        link.flush().unwrap();
        let mut again = Pcap::new(&link.record.output[..], Vec::new()).unwrap();
        let mut frames = frames(2);
        assert_eq!(again.receive(&mut frames).unwrap(), 2);
        assert_eq!((frames[0].bytes(), frames[1].bytes()), (&tcp(6, 10)[..], &udp(4, 1)[..]));
    }

    #[test]
    fn a_gso_packet_is_recorded_as_its_segments() {
        let empty = file(MAGIC_NANOSECONDS, 101, u32::to_le_bytes);
        let mut link = Pcap::new(&empty[..], Vec::new()).unwrap();
        let mut frame = Frame::holding(&udp(6, 2_500));
        let segments = Some(Segments { size: 1_000, kind: SegmentKind::Udp });
        frame.offload = Offload { checksum: Checksum::Partial, segments, transport: 40 };
        link.send(&mut frame).unwrap();
        assert_eq!((link.counters().sent, link.counters().gso_segmented), (3, 1));
        assert_eq!(link.counters().sent_octets, 2_500 + 3 * 48);
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let ethernet = file(MAGIC_MICROSECONDS, 1, u32::to_le_bytes);
        let error = Reader::new(&ethernet[..]).unwrap_err();
        assert!(error.to_string().contains("link type 1,"), "{error}");
        assert!(Reader::new(&[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0][..]).is_err());
        assert!(Reader::new(&[0; 24][..]).unwrap_err().to_string().contains("no pcap file"));
    }

    #[test]
    fn a_file_cut_anywhere_ends_in_an_error_and_never_in_a_panic() {
        let file = file(MAGIC_MICROSECONDS, 228, u32::to_le_bytes);
        let ends: Vec<_> = (0..=file.len())
            .filter(|length| {
                let Ok(mut reader) = Reader::new(&file[..*length]) else { return false };
                let mut frame = Frame::with_capacity(100);
                loop {
                    match reader.next(&mut frame) {
                        Ok(Some(_)) => {}
                        Ok(None) => return true,
                        Err(_) => return false,
                    }
                }
            })
            .collect();
        assert_eq!(ends, [24, 24 + 16 + 5, file.len()]);
    }

    #[test]
    fn a_packet_longer_than_the_buffer_is_cut_and_the_next_one_is_whole() {
        let file = file(MAGIC_MICROSECONDS, 101, u32::to_le_bytes);
        let mut link = Pcap::new(&file[..], Vec::new()).unwrap();
        let mut frames = [Frame::with_capacity(3), Frame::with_capacity(100)];
        assert_eq!(link.receive(&mut frames).unwrap(), 2);
        assert_eq!((frames[0].bytes(), frames[1].bytes()), (&b"fir"[..], &b"the second"[..]));
        assert_eq!(link.counters().truncated, 1);
    }
}
