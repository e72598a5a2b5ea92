//! Packets as a link carries them, with their times: from which set-up times follow independently of a program's clock.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::namespace::command;
use crate::process::Process;
use crate::topology::Network;
use sixway_wire::{Ipv4Header, Ipv6Header, UDP_HEADER, protocol};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const GLOBAL: usize = 24;
const RECORD: usize = 16;
const ETHERNET: usize = 14;

/// tcpdump on a host's device. It ends when the network does, or before.
pub struct Capture<'a> {
    network: &'a Network,
    process: u32,
    file: PathBuf,
}

/// A packet that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When, since 1970.
    pub time: Duration,
    /// From its IP header on.
    pub packet: Vec<u8>,
}

impl<'a> Capture<'a> {
    /// Begins; `filter` is tcpdump's.
    ///
    /// # Errors
    /// tcpdump is not installed, or does not start.
    pub fn start(network: &'a Network, host: &str, device: &str, filter: &str) -> Result<Self> {
        let file = network.folder().join(format!("{host}-{device}.pcap"));
        let mut tcpdump = command("tcpdump")?;
        tcpdump.args([
            "-i",
            device,
            "-n",
            "-U",
            "--immediate-mode",
            "--time-stamp-precision=nano",
            "-s",
            "160",
        ]);
        // As root it writes as another user otherwise, who may not write there.
        tcpdump.args(["-Z", "root", "-w"]).arg(&file).arg(filter);
        let process = network.start(host, tcpdump)?;
        interrupt::wait_until(Duration::from_secs(5), "tcpdump listening", || {
            network.with_process(process, |process| {
                process.must_run()?;
                Ok(process.stderr().contains("listening on"))
            })?
        })?;
        Ok(Self { network, process, file })
    }

    /// The file, for a report's raw data.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Ends; what was seen.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn end(self) -> Result<Vec<Captured>> {
        std::thread::sleep(Duration::from_millis(100));
        self.network.with_process(self.process, Process::stop)?;
        let octets = std::fs::read(&self.file).asking(|| format!("reading {}", self.file.display()))?;
        read(&octets).ok_or_else(|| Failure::Unexpected(format!("{} is not a capture", self.file.display())))
    }
}

/// The packets of a file in nanoseconds, in the byte order of this machine, of Ethernet frames.
fn read(octets: &[u8]) -> Option<Vec<Captured>> {
    let number = |at: usize| Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?));
    if (number(0)?, number(20)? & 0xffff) != (0xa1b2_3c4d, 1) {
        return None;
    }
    let mut all = Vec::new();
    let mut at = GLOBAL;
    while let (Some(seconds), Some(fraction), Some(length)) = (number(at), number(at + 4), number(at + 8)) {
        let frame = octets.get(at + RECORD..at + RECORD + length as usize)?;
        let time = Duration::new(seconds.into(), fraction);
        all.extend(frame.get(ETHERNET..).map(|packet| Captured { time, packet: packet.to_vec() }));
        at += RECORD + length as usize;
    }
    Some(all)
}

/// One end of a connection, and the other.
type Pair = [(IpAddr, u16); 2];

/// How long each connection of TCP took to be set up: from its first SYN to the ACK that completes it, in the order in which they were completed. At the
/// client's link that is what the client waits; at a link of a router, from there to the server and to the client.
pub fn handshakes(packets: &[Captured]) -> Vec<Duration> {
    let mut begun: Vec<(Pair, Duration, bool)> = Vec::new();
    let mut all = Vec::new();
    for Captured { time, packet } in packets {
        let Some(([from, to], flags)) = segment(packet) else { continue };
        let (is_syn, is_ack) = (flags & 2 != 0, flags & 16 != 0);
        let at = begun.iter().position(|(pair, ..)| *pair == [from, to] || *pair == [to, from]);
        match (is_syn, is_ack, at) {
            (true, false, None) => begun.push(([from, to], *time, false)),
            (true, true, Some(at)) => begun[at].2 |= begun[at].0 == [to, from],
            (false, true, Some(at)) if begun[at].2 && begun[at].0 == [from, to] => {
                all.push(time.saturating_sub(begun.remove(at).1));
            }
            _ => {}
        }
    }
    all
}

/// How long answers took: from the first packet with data that begin with `request` to the next one back, between the same ends, whose data begin with
/// `answer`; over TCP or UDP, in the order of the answers. A request that is sent again while it is open counts from its first packet.
pub fn exchanges(packets: &[Captured], request: &[u8], answer: &[u8]) -> Vec<Duration> {
    let mut open: Vec<(Pair, Duration)> = Vec::new();
    let mut all = Vec::new();
    for Captured { time, packet } in packets {
        let Some(([from, to], data)) = data(packet) else { continue };
        if data.starts_with(request) && !open.iter().any(|(pair, _)| *pair == [from, to]) {
            open.push(([from, to], *time));
        } else if data.starts_with(answer)
            && let Some(at) = open.iter().position(|(pair, _)| *pair == [to, from])
        {
            all.push(time.saturating_sub(open.remove(at).1));
        }
    }
    all
}

/// Ends and data of a segment or datagram.
fn data(packet: &[u8]) -> Option<(Pair, &[u8])> {
    let (pair, of, upper) = upper(packet)?;
    let header = match of {
        protocol::TCP => usize::from(*upper.get(12)? >> 4) * 4,
        protocol::UDP => UDP_HEADER,
        _ => return None,
    };
    Some((pair, upper.get(header..)?))
}

/// Ends and flags of a segment.
fn segment(packet: &[u8]) -> Option<(Pair, u8)> {
    let (pair, of, segment) = upper(packet)?;
    (of == protocol::TCP).then_some((pair, *segment.get(13)?))
}

/// Ends with their ports, the protocol, and what is above IP.
fn upper(packet: &[u8]) -> Option<(Pair, u8, &[u8])> {
    let (addresses, of, upper): ([IpAddr; 2], u8, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let (header, rest) = Ipv4Header::split_quoted(packet).ok()?;
            ([header.source.into(), header.destination.into()], header.protocol, rest)
        }
        6 => {
            let (header, rest) = Ipv6Header::split_quoted(packet).ok()?;
            ([header.source.into(), header.destination.into()], header.next_header, rest)
        }
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(upper.get(at..at + 2)?.try_into().ok()?));
    Some(([(addresses[0], port(0)?), (addresses[1], port(2)?)], of, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ipv6;

    const SYN: u8 = 2;
    const ACK: u8 = 16;

    fn packet(milliseconds: u64, (from, to): (u16, u16), flags: u8) -> Captured {
        let address = |port: u16| format!("2001:db8::{port:x}").parse().unwrap();
        let mut segment = [0; 20];
        segment[..2].copy_from_slice(&from.to_be_bytes());
        segment[2..4].copy_from_slice(&to.to_be_bytes());
        segment[13] = flags;
        let packet = ipv6(address(from), address(to), protocol::TCP, &segment);
        Captured { time: Duration::from_millis(milliseconds), packet }
    }

    #[test]
    fn a_connection_is_set_up_by_three_segments_and_repeated_ones_do_not_count() {
        let seen = [
            packet(0, (1, 80), SYN),
            packet(5, (2, 80), SYN),
            packet(6, (80, 2), SYN | ACK),
            packet(8, (2, 80), ACK),
            packet(1_000, (1, 80), SYN),
            packet(1_010, (80, 1), SYN | ACK),
            packet(1_011, (80, 1), SYN | ACK),
            packet(1_020, (1, 80), ACK),
            packet(1_030, (1, 80), ACK),
            packet(1_040, (3, 80), ACK),
        ];
        assert_eq!(handshakes(&seen), [3, 1_020].map(Duration::from_millis));
    }

    #[test]
    fn an_answer_belongs_to_the_first_request_between_its_ends() {
        let datagram = |milliseconds: u64, (from, to): (u16, u16), data: &[u8]| {
            let address = |port: u16| format!("2001:db8::{port:x}").parse().unwrap();
            let mut datagram = vec![0; UDP_HEADER];
            datagram[..2].copy_from_slice(&from.to_be_bytes());
            datagram[2..4].copy_from_slice(&to.to_be_bytes());
            datagram.extend_from_slice(data);
            let packet = ipv6(address(from), address(to), protocol::UDP, &datagram);
            Captured { time: Duration::from_millis(milliseconds), packet }
        };
        let seen = [
            datagram(0, (1, 5_060), b"INVITE sip:b SIP/2.0"),
            datagram(2, (3, 5_060), b"INVITE sip:b SIP/2.0"),
            datagram(500, (1, 5_060), b"INVITE sip:b SIP/2.0"),
            datagram(501, (5_060, 1), b"SIP/2.0 180 Ringing"),
            datagram(507, (5_060, 1), b"SIP/2.0 200 OK"),
            datagram(510, (5_060, 1), b"SIP/2.0 200 OK"),
            datagram(512, (5_060, 3), b"SIP/2.0 200 OK"),
        ];
        assert_eq!(exchanges(&seen, b"INVITE", b"SIP/2.0 200"), [507, 510].map(Duration::from_millis));
        assert_eq!(exchanges(&seen, b"BYE", b"SIP/2.0 200"), []);
    }

    #[test]
    fn a_file_is_read_to_its_last_whole_packet() {
        let mut file = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0, 0, 0, 160, 1] {
            file.extend(word.to_ne_bytes());
        }
        for (second, octets) in [(1_u32, &[9_u8; 16][..]), (2, &[7; 14])] {
            for word in [second, 5, octets.len() as u32, octets.len() as u32] {
                file.extend(word.to_ne_bytes());
            }
            file.extend(octets);
        }
        let seen = read(&file).unwrap();
        assert_eq!(seen[0], Captured { time: Duration::new(1, 5), packet: vec![9, 9] });
        assert!(seen.len() == 2 && seen[1].packet.is_empty());
        assert_eq!(read(&file[..file.len() - 1]), None, "cut");
        assert_eq!(read(&[0; 30]), None);
    }
}
