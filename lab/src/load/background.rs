//! Traffic at a constant rate that runs while something else is measured.

use super::outcome::{Gaps, Outcome, Pace, Until};
use super::udp::{Trip, UdpStream};
use crate::failure::{Failure, Result};
use sixway_wire::{IPV4_HEADER, IPV6_HEADER, UDP_HEADER};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a frame has more on Ethernet than its IP packet: header, check sequence, preamble and gap.
const ETHERNET: usize = 14 + 4 + 8 + 12;

/// Background at work. It ends when it is dropped.
pub struct Background {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Outcome>>>,
    payload: usize,
    packet: usize,
}

/// What a background was.
#[derive(Clone, Debug)]
pub struct BackgroundReport {
    /// What was sent and arrived, one way.
    pub outcome: Outcome,
    /// Bits of UDP payload sent in a second.
    pub payload_bits: f64,
    /// Bits of IP packets sent in a second.
    pub packet_bits: f64,
    /// Bits sent in a second as Ethernet counts them, gaps between frames included: without a tunnel's header.
    pub wire_bits: f64,
}

impl Background {
    /// Begins to send one flow of IP packets of `packet` octets, at a rate of `bits` of IP packets a second. `stream` says who sends to whom; its flows,
    /// payload and trip do not matter.
    ///
    /// # Errors
    /// A socket is refused, or a packet has no room for its headers and a stamp.
    pub fn start(stream: &UdpStream<'_>, packet: usize, bits: f64) -> Result<Self> {
        let headers = match stream.target {
            SocketAddr::V4(_) => IPV4_HEADER + UDP_HEADER,
            SocketAddr::V6(_) => IPV6_HEADER + UDP_HEADER,
        };
        let payload = packet.saturating_sub(headers);
        if payload < super::stamp::STAMP {
            return Err(Failure::Unexpected(format!(
                "{packet} octets are too few for a packet with a stamp"
            )));
        }
        let stream = UdpStream { payload, flows: 1, trip: Trip::OneWay, ..*stream };
        let pace = Pace::Open { per_second: bits / (packet as f64 * 8.0), gaps: Gaps::Even };
        let (sockets, stop) = (stream.open()?, Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&stop);
        let thread =
            std::thread::spawn(move || sockets.run(Trip::OneWay, pace, Until::Time(Duration::MAX), &ends));
        Ok(Self { stop, thread: Some(thread), payload, packet })
    }

    /// Ends it, and waits for the last packets.
    ///
    /// # Errors
    /// It has failed meanwhile.
    pub fn end(mut self) -> Result<BackgroundReport> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().map(JoinHandle::join);
        let panicked = || Failure::Unexpected("the background panicked".to_owned());
        let outcome = thread.ok_or_else(panicked)?.map_err(|_| panicked())??;
        let bits =
            |octets: usize| outcome.sent as f64 * octets as f64 * 8.0 / outcome.took.as_secs_f64().max(1e-9);
        let (payload_bits, packet_bits) = (bits(self.payload), bits(self.packet));
        let wire_bits = bits(self.packet + ETHERNET);
        Ok(BackgroundReport { payload_bits, packet_bits, wire_bits, outcome })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}
