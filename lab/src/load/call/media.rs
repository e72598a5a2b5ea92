//! One direction of a call's audio.

use super::rtp::{PER_SECOND, RTP_HEADER, Rtp, SAMPLES};
use crate::failure::Result;
use crate::load::account::{Account, Told};
use crate::load::clock;
use crate::load::ends::{join, on};
use crate::load::flood::thread_cpu;
use crate::load::jitter::Jitter;
use crate::load::outcome::{Gaps, Outcome, Pace, ThreadCost, Until};
use crate::load::pacer::{Sent, pace};
use crate::load::stamp::{FILL, Stamp};
use nix::poll::{PollFd, PollFlags, poll};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Octets of a packet above UDP.
pub(super) const PACKET: usize = RTP_HEADER + SAMPLES;

/// Sends audio from one socket to an address, which is where the other end listens, as far as it knows; what arrives at the other socket is measured.
/// The jitter is that of RFC 3550 §A.8, by the timestamps of the packets.
pub(super) fn talk(
    from: (&UdpSocket, Option<SocketAddr>),
    to: &UdpSocket,
    (time, core): (Duration, Option<usize>),
    source: u32,
) -> Result<Outcome> {
    let told = Told::new();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| on(core, || receive(to, &told)));
        let sending = scope.spawn(|| {
            on(core, || {
                let cpu = thread_cpu();
                let sent = send(from, time, &told, source);
                told.ends(sent.as_ref().map_or(0, |sent| sent.count));
                Ok((sent?, thread_cpu().saturating_sub(cpu)))
            })
        });
        let (sent, received) = (join(sending), join(receiving));
        let ((sent, sending), (mut outcome, last, receiving)) = (sent?, received?);
        outcome.sent = sent.count;
        outcome.refused = sent.refused;
        outcome.lost = sent.count.saturating_sub(outcome.answered);
        outcome.octets = sent.count * PACKET as u64;
        outcome.lateness = sent.lateness;
        outcome.took = Duration::from_nanos(last.max(sent.last).saturating_sub(sent.first));
        outcome.cost = ThreadCost { cpu: sending, answering: receiving };
        Ok(outcome)
    })
}

fn send(
    (socket, target): (&UdpSocket, Option<SocketAddr>),
    time: Duration,
    told: &Told,
    source: u32,
) -> Result<Sent> {
    let mut packet = [FILL; PACKET];
    let rate = Pace::Open { per_second: PER_SECOND, gaps: Gaps::Even };
    pace(&AtomicBool::new(false), rate, Until::Time(time), |due| {
        let timestamp = due.sequence.wrapping_mul(SAMPLES as u32);
        let header = Rtp { sequence: due.sequence as u16, timestamp, source };
        packet[..RTP_HEADER].copy_from_slice(&header.octets());
        Stamp { flow: 0, sequence: due.sequence, due: due.due }.write(&mut packet[RTP_HEADER..]);
        told.sends(due.sequence, due.now - due.due);
        // Without an address, or with one of the other family, there is nowhere to send to.
        Ok(target.is_some_and(|target| socket.send_to(&packet, target).is_ok()))
    })
}

fn receive(socket: &UdpSocket, told: &Told) -> Result<(Outcome, u64, Duration)> {
    let cpu = thread_cpu();
    let (mut account, mut jitter) = (Account::new(told, 1), Jitter::default());
    let mut octets = [0; 2 * PACKET];
    let mut one = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    while !told.is_over(account.came()) {
        poll(&mut one, 20_u16).ok();
        while let Ok(length) = socket.recv(&mut octets) {
            let now = clock::now();
            let Some((header, payload)) = Rtp::split(&octets[..length]) else { continue };
            let before = account.came();
            account.note(payload, now);
            if account.came() > before {
                jitter.note(header.nanoseconds(), now);
            }
        }
    }
    let (mut outcome, last) = account.end();
    outcome.jitter = jitter.nanoseconds();
    Ok((outcome, last, thread_cpu().saturating_sub(cpu)))
}
