//! Processes a capture with a separate engine.

use super::offline::Offline;
use crate::config::{Config, Surroundings};
use sixway_dataplane::Frame;
use sixway_dataplane::frame::MAX_PACKET;
use sixway_link::pcap::{Reader as PcapReader, Writer as PcapWriter};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;

/// The outcome of a capture's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Packets that were read.
    pub read: u64,
    /// Packets that were written: translated ones, fragments, ICMP errors.
    pub written: u64,
    /// Packets that were cut short in the capture, and left out.
    pub cut: u64,
    /// Packets that are the host's, or wait for others.
    pub kept: u64,
    /// Drops, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// Lets a capture's packets through an engine of this configuration, a millisecond apart, and writes what leaves.
///
/// # Errors
/// The capture cannot be read, or the other file not be written.
pub fn replay(
    config: &Config,
    now: &Surroundings,
    input: impl Read,
    output: impl Write,
) -> io::Result<Replayed> {
    let mut offline = Offline::new(config, now).map_err(io::Error::other)?;
    let (mut reader, mut writer) = (PcapReader::new(input)?, PcapWriter::new(output)?);
    let mut frame = Frame::with_capacity(MAX_PACKET);
    let mut replayed = Replayed::default();
    while let Some(on_wire) = reader.next(&mut frame)? {
        let at = Duration::from_millis(replayed.read);
        replayed.read += 1;
        if on_wire > frame.len() {
            replayed.cut += 1;
            continue;
        }
        let fate = offline.pass(frame.bytes());
        replayed.kept += u64::from(fate.punted || fate.held);
        if let Some(reason) = fate.dropped {
            *replayed.dropped.entry(reason.name()).or_default() += 1;
        }
        for packet in &fate.sent {
            writer.write(packet, at)?;
            replayed.written += 1;
        }
    }
    Ok(replayed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::packet::{Asked, Kind};

    #[test]
    fn a_capture_goes_through_and_what_leaves_is_a_capture() {
        let text = "[siit]\nprefix = \"2001:db8:64::/96\"\n";
        let config = crate::sample::config(text);
        let packet = |from: &str, to: &str| {
            Asked { from: from.parse().unwrap(), to: to.parse().unwrap(), kind: Kind::Udp(1, 2), size: 100 }
                .octets()
                .unwrap()
        };
        let mut capture = Vec::new();
        let mut writer = PcapWriter::new(&mut capture).unwrap();
        writer
            .write(&packet("2001:db8:64::198.51.100.1", "2001:db8:64::203.0.113.2"), Duration::ZERO)
            .unwrap();
        writer.write(&packet("198.51.100.1", "203.0.113.2"), Duration::ZERO).unwrap();
        writer.write(&packet("2001:db8:9::1", "2001:db8:64::203.0.113.2"), Duration::ZERO).unwrap();
        let mut output = Vec::new();
        let replayed = replay(&config, &Surroundings::default(), &capture[..], &mut output).unwrap();
        assert_eq!((replayed.read, replayed.dropped.get("SourceUnmapped")), (3, Some(&1)));
        let mut reader = PcapReader::new(&output[..]).unwrap();
        let mut frame = Frame::with_capacity(2_048);
        assert_eq!(reader.next(&mut frame).unwrap(), Some(80), "IPv4's header is 20 octets shorter");
        assert_eq!(reader.next(&mut frame).unwrap(), Some(120));
        assert_eq!(reader.next(&mut frame).unwrap(), None);
        assert!(
            replay(&config, &Surroundings::default(), &b"no capture at all, but long enough"[..], Vec::new())
                .is_err()
        );
    }
}
