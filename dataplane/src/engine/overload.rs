//! A batch while the engine is overloaded: packets above their senders' shares are dropped before they are parsed.

use super::assembly::Engine;
use crate::drop_reason::DropReason;
use crate::frame::Frame;
use crate::instant::Instant;
use crate::outbox::Outbox;
use crate::verdict::Verdict;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Engine {
    /// As [`Engine::process`], for frames that have been counted.
    #[inline(never)]
    pub(super) fn process_in_shares(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        let is_overloaded = self.shares.as_mut().is_some_and(|shares| shares.batch(frames.len(), now));
        match is_overloaded {
            true => self.process_by_shares(frames, now, out),
            false => self.process_counted(frames, now, out),
        }
    }

    #[cold]
    fn process_by_shares(&mut self, frames: &mut [Frame], now: Instant, out: &mut Outbox) {
        let mut rest = frames;
        while !rest.is_empty() {
            let refused = rest.iter().position(|frame| !self.is_in_share(frame));
            let (admitted, behind) = rest.split_at_mut(refused.unwrap_or(rest.len()));
            self.process_counted(admitted, now, out);
            let Some((refused, behind)) = behind.split_first_mut() else { return };
            refused.verdict = Verdict::Dropped(DropReason::Overload);
            self.path.effects.counters.drop_frames(DropReason::Overload, 1);
            rest = behind;
        }
    }

    /// Whether the packet's sender has room in its share. Packets that are not IP are admitted here, and dropped by the parser.
    fn is_in_share(&mut self, frame: &Frame) -> bool {
        match (&mut self.shares, source(frame.bytes())) {
            (Some(shares), Some(source)) => shares.admits(source),
            (None, _) | (_, None) => true,
        }
    }
}

/// The source address of a packet, which is not checked otherwise.
fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*packet.get(12..)?.first_chunk::<4>()?).into()),
        6 => Some(Ipv6Addr::from(*packet.get(8..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}
