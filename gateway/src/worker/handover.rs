//! Packets that belong to another worker: copied into a bounded ring for each ordered pair of workers, whose buffers
//! travel back on a second ring.

use rtrb::{Consumer, Producer, RingBuffer};
use sixway_dataplane::Frame;
use sixway_dataplane::verdict::WorkerId;
use sixway_link::Wake;

/// Frames that wait in one ring.
const RING: usize = 256;
/// The least room of a buffer in octets of packet.
const BUFFER: usize = 2_048;

/// A packet is handed on at most this often: its fragments to the worker that joins them, the whole to the worker of its
/// host, a hairpin to that of the other host. More steps mean that workers disagree and pass it back and forth.
const STEPS: u8 = 3;

/// One worker's ends of all rings.
#[derive(Default)]
pub struct Handover {
    outgoing: Vec<Option<Outgoing>>,
    incoming: Vec<Incoming>,
    /// Frames taken out of a ring, while the engine has them.
    taken: Vec<Frame>,
    /// How often each of them was handed on.
    steps: Vec<u8>,
}

/// The way onward for a batch of frames.
pub struct Onward<'a> {
    outgoing: &'a mut [Option<Outgoing>],
    /// How often each frame of the batch was handed on; none of them if there are no figures.
    steps: &'a [u8],
}

struct Handed {
    frame: Frame,
    steps: u8,
}

struct Outgoing {
    frames: Producer<Handed>,
    spare: Consumer<Frame>,
    wake: Wake,
    sent: bool,
}

struct Incoming {
    frames: Consumer<Handed>,
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

impl Onward<'_> {
    /// Gives a copy of the frame, which has this place in the batch, to another worker. `false`: its ring is full, there is
    /// no such worker, or the packet was handed on often enough.
    pub fn give(&mut self, place: usize, frame: &Frame, to: WorkerId) -> bool {
        let steps = self.steps.get(place).copied().unwrap_or(0);
        let Some(Some(outgoing)) = self.outgoing.get_mut(usize::from(to.0)) else { return false };
        if steps >= STEPS || outgoing.frames.is_full() {
            return false;
        }
        let spare = outgoing.spare.pop().ok();
        let mut copy = spare
            .and_then(|mut spare| (spare.space().len() >= frame.len()).then_some(spare))
            .unwrap_or_else(|| Frame::with_capacity(frame.len().max(BUFFER)));
        copy.fill(frame.bytes(), frame.offload);
        (copy.passes, copy.ingress) = (frame.passes, frame.ingress);
        outgoing.sent = true;
        outgoing.frames.push(Handed { frame: copy, steps: steps + 1 }).is_ok()
    }

    /// Wakes the workers that were given something.
    pub fn wake(&mut self) {
        for outgoing in self.outgoing.iter_mut().flatten() {
            if std::mem::take(&mut outgoing.sent) {
                outgoing.wake.wake();
            }
        }
    }
}

impl Handover {
    /// The way onward for a batch that came from a link.
    pub fn onward(&mut self) -> Onward<'_> {
        Onward { outgoing: &mut self.outgoing, steps: &[] }
    }

    /// Whether something of other workers waits.
    pub fn waits(&self) -> bool {
        self.incoming.iter().any(|incoming| !incoming.frames.is_empty())
    }

    /// Takes what other workers gave, up to `limit` frames from each, and lets `work` have it. Whether there was any.
    pub fn take<E>(
        &mut self,
        limit: usize,
        mut work: impl FnMut(&mut [Frame], Onward<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut any = false;
        for incoming in &mut self.incoming {
            self.steps.clear();
            while self.taken.len() < limit
                && let Ok(handed) = incoming.frames.pop()
            {
                self.taken.push(handed.frame);
                self.steps.push(handed.steps);
            }
            if self.taken.is_empty() {
                continue;
            }
            any = true;
            let outcome = work(&mut self.taken, Onward { outgoing: &mut self.outgoing, steps: &self.steps });
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

    fn taken(end: &mut Handover) -> Vec<(Vec<u8>, Offload, u8)> {
        let mut all = Vec::new();
        let work = |frames: &mut [Frame], _: Onward<'_>| {
            all.extend(frames.iter().map(|frame| (frame.bytes().to_vec(), frame.offload, frame.passes)));
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
        frame.passes = 1;
        for _ in 0..3 {
            assert!(near.onward().give(0, &frame, WorkerId(1)));
            assert_eq!(taken(&mut far), [(vec![7; 3_000], frame.offload, 1)]);
        }
        assert!(taken(&mut far).is_empty());
    }

    #[test]
    fn a_full_ring_refuses_and_a_worker_hands_nothing_to_itself() {
        let (mut near, mut far) = pair();
        let frame = Frame::holding(&[1]);
        assert_eq!((0..RING + 9).filter(|_| near.onward().give(0, &frame, WorkerId(1))).count(), RING);
        assert_eq!(taken(&mut far).len(), RING);
        assert!(near.onward().give(0, &frame, WorkerId(1)));
        assert!(!near.onward().give(0, &frame, WorkerId(0)));
        assert!(!near.onward().give(0, &frame, WorkerId(2)));
    }

    #[test]
    fn a_packet_is_handed_on_three_times_and_not_a_fourth_time() {
        let (mut near, mut far) = pair();
        assert!(near.onward().give(0, &Frame::holding(&[1]), WorkerId(1)));
        let mut relayed = Vec::new();
        let mut relay = |end: &mut Handover, to: u8| {
            let work = |frames: &mut [Frame], mut onward: Onward<'_>| {
                relayed.push(onward.give(0, &frames[0], WorkerId(to)));
                Ok::<_, ()>(())
            };
            end.take(RING, work).unwrap();
        };
        relay(&mut far, 0);
        relay(&mut near, 1);
        relay(&mut far, 0);
        assert_eq!(relayed, [true, true, false]);
    }
}
