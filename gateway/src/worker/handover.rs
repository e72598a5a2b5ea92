//! Packets that belong to another worker: copied into a bounded ring for each ordered pair of workers, whose buffers
//! travel back on a second ring.

use super::wake::Wake;
use rtrb::{Consumer, Producer, RingBuffer};
use sixway_dataplane::Frame;
use sixway_dataplane::verdict::WorkerId;

/// Frames that wait in one ring.
const RING: usize = 256;
/// The least room of a buffer in octets of packet.
const BUFFER: usize = 2_048;

/// One worker's ends of all rings.
#[derive(Default)]
pub struct Handover {
    outgoing: Vec<Option<Outgoing>>,
    incoming: Vec<Incoming>,
    /// Frames taken out of a ring, while the engine has them.
    taken: Vec<Frame>,
}

struct Outgoing {
    frames: Producer<Frame>,
    spare: Consumer<Frame>,
    wake: Wake,
    sent: bool,
}

struct Incoming {
    frames: Consumer<Frame>,
    spare: Producer<Frame>,
}

/// The ends for as many workers as there are `wakes`, in their order.
pub fn rings(wakes: &[Wake]) -> Vec<Handover> {
    let count = wakes.len();
    let mut ends: Vec<Handover> = (0..count).map(|_| Handover::default()).collect();
    for from in 0..count {
        for (to, wake) in wakes.iter().enumerate() {
            if from == to {
                ends[from].outgoing.push(None);
                continue;
            }
            let (frames_in, frames_out) = RingBuffer::new(RING);
            let (spare_in, spare_out) = RingBuffer::new(RING);
            let outgoing = Outgoing { frames: frames_in, spare: spare_out, wake: wake.clone(), sent: false };
            ends[from].outgoing.push(Some(outgoing));
            ends[to].incoming.push(Incoming { frames: frames_out, spare: spare_in });
        }
    }
    ends
}

impl Handover {
    /// Gives a copy of the frame to another worker. `false`: its ring is full, or there is no such worker.
    pub fn give(&mut self, frame: &Frame, to: WorkerId) -> bool {
        let Some(Some(outgoing)) = self.outgoing.get_mut(usize::from(to.0)) else { return false };
        if outgoing.frames.is_full() {
            return false;
        }
        let spare = outgoing.spare.pop().ok();
        let mut copy = spare
            .and_then(|mut spare| (spare.space().len() >= frame.len()).then_some(spare))
            .unwrap_or_else(|| Frame::with_capacity(frame.len().max(BUFFER)));
        copy.fill(frame.bytes(), frame.offload);
        outgoing.sent = true;
        outgoing.frames.push(copy).is_ok()
    }

    /// Wakes the workers that were given something.
    pub fn wake(&mut self) {
        for outgoing in self.outgoing.iter_mut().flatten() {
            if std::mem::take(&mut outgoing.sent) {
                outgoing.wake.wake();
            }
        }
    }

    /// Takes what other workers gave, up to `limit` frames from each, and lets `work` have it. Whether there was any.
    pub fn take<E>(
        &mut self,
        limit: usize,
        mut work: impl FnMut(&mut [Frame]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut any = false;
        for incoming in &mut self.incoming {
            while self.taken.len() < limit
                && let Ok(frame) = incoming.frames.pop()
            {
                self.taken.push(frame);
            }
            if self.taken.is_empty() {
                continue;
            }
            any = true;
            let outcome = work(&mut self.taken);
            for frame in self.taken.drain(..) {
                // No room: there are buffers enough.
                let _ = incoming.spare.push(frame);
            }
            outcome?;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_dataplane::{Checksum, Offload};

    fn pair() -> (Handover, Handover) {
        let wakes = [Wake::new().unwrap(), Wake::new().unwrap()];
        let mut ends = rings(&wakes).into_iter();
        (ends.next().unwrap(), ends.next().unwrap())
    }

    fn taken(end: &mut Handover) -> Vec<(Vec<u8>, Offload)> {
        let mut all = Vec::new();
        let work = |frames: &mut [Frame]| {
            all.extend(frames.iter().map(|frame| (frame.bytes().to_vec(), frame.offload)));
            Ok::<_, ()>(())
        };
        end.take(RING, work).unwrap();
        all
    }

    #[test]
    fn a_frame_arrives_whole_and_its_buffer_is_used_again() {
        let (mut near, mut far) = pair();
        let mut frame = Frame::holding(&[7; 3_000]);
        frame.offload = Offload { checksum: Checksum::Partial, segments: None, transport: 40 };
        for _ in 0..3 {
            assert!(near.give(&frame, WorkerId(1)));
            assert_eq!(taken(&mut far), [(vec![7; 3_000], frame.offload)]);
        }
        assert!(taken(&mut far).is_empty());
    }

    #[test]
    fn a_full_ring_refuses_and_a_worker_hands_nothing_to_itself() {
        let (mut near, mut far) = pair();
        let frame = Frame::holding(&[1]);
        assert_eq!((0..RING + 9).filter(|_| near.give(&frame, WorkerId(1))).count(), RING);
        assert_eq!(taken(&mut far).len(), RING);
        assert!(near.give(&frame, WorkerId(1)));
        assert!(!near.give(&frame, WorkerId(0)));
        assert!(!near.give(&frame, WorkerId(2)));
    }
}
