//! A worker's reports of single packets: the last sample of each drop reason, and all packets during a live trace. Without a live trace, a
//! forwarded packet costs nothing more, and a dropped one a comparison of times.

use crate::admin::LiveFilter;
use crate::trace::{Detail, described, in_words};
use crate::view::LiveRow;
use sixway_dataplane::{DropReason, Frame, Instant, Verdict};
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// A sample of a reason is taken at most this often.
const FRESH: Duration = Duration::from_secs(1);
/// Packets that a worker tells of in a second, at most.
const ROWS: u32 = 200;

/// The last packet that was dropped for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropSample {
    /// The reason.
    pub reason: DropReason,
    /// The packet in words.
    pub packet: String,
    /// The same with prefixes instead of addresses.
    pub prefixes: String,
    /// When: the engine's time.
    pub at: Instant,
}

/// A live trace: it ends with its time, or when its receiver is gone.
#[derive(Debug)]
pub struct Watch {
    /// Which packets.
    pub filter: LiveFilter,
    /// For how long.
    pub lasts: Duration,
    /// Where they go.
    pub rows: Sender<LiveRow>,
    /// The number of the worker, in each row.
    pub worker: usize,
}

#[derive(Debug)]
struct Watching {
    watch: Watch,
    until: Instant,
    /// The second that is counted, and the number of packets that may be shown in it.
    second: Instant,
    left: u32,
    /// Packets that were not reported.
    skipped: u64,
    /// Packets of the batch that match: their places, and how they arrived; `None` where only drops are watched, since those are as they
    /// arrived, and most packets are not dropped.
    arrived: Vec<(usize, Option<String>)>,
}

/// A worker's reports of single packets.
#[derive(Debug)]
pub(super) struct Tap {
    samples: [Option<DropSample>; DropReason::COUNT],
    watching: Option<Box<Watching>>,
    now: Instant,
}

impl Default for Tap {
    fn default() -> Self {
        Self { samples: [const { None }; DropReason::COUNT], watching: None, now: Instant::from_secs(0) }
    }
}

impl Tap {
    /// Starts to watch; another watch ends.
    pub fn watch(&mut self, watch: Watch, now: Instant) {
        let until = now + watch.lasts;
        self.watching = Some(Box::new(Watching {
            watch,
            until,
            second: now,
            left: ROWS,
            skipped: 0,
            arrived: Vec::new(),
        }));
    }

    /// The samples.
    pub fn samples(&self) -> Vec<DropSample> {
        self.samples.iter().flatten().cloned().collect()
    }

    /// A batch arrived.
    #[inline]
    pub fn arrived(&mut self, frames: &[Frame], now: Instant) {
        self.now = now;
        if self.watching.is_some() {
            self.note(frames, now);
        }
    }

    #[cold]
    fn note(&mut self, frames: &[Frame], now: Instant) {
        let Some(watching) = &mut self.watching else { return };
        if now >= watching.until || watching.watch.rows.is_closed() {
            self.watching = None;
            return;
        }
        watching.arrived.clear();
        if now.since(watching.second) >= Duration::from_secs(1) {
            (watching.second, watching.left) = (now, ROWS);
        }
        let filter = &watching.watch.filter;
        for (place, frame) in frames.iter().enumerate().filter(|(_, frame)| filter.admits(frame.bytes())) {
            match (filter.dropped, watching.left) {
                // Those that are dropped are known only afterwards.
                (true, _) => watching.arrived.push((place, None)),
                (false, 0) => watching.skipped += 1,
                (false, _) => {
                    watching.left -= 1;
                    watching.arrived.push((place, Some(described(frame.bytes()))));
                }
            }
        }
    }

    /// The engine has decided about a frame of the batch.
    #[inline]
    pub fn decided(&mut self, place: usize, frame: &Frame) {
        if let Verdict::Dropped(reason) = frame.verdict {
            self.sample(reason, frame);
        }
        if self.watching.is_some() {
            self.tell(place, frame);
        }
    }

    fn sample(&mut self, reason: DropReason, frame: &Frame) {
        let now = self.now;
        let last = &mut self.samples[reason as usize];
        if last.as_ref().is_some_and(|sample| now.since(sample.at) < FRESH) {
            return;
        }
        *last = Some(DropSample {
            reason,
            packet: described(frame.bytes()),
            prefixes: in_words(frame.bytes(), Detail::Prefixes),
            at: now,
        });
    }

    #[cold]
    fn tell(&mut self, place: usize, frame: &Frame) {
        let Some(watching) = &mut self.watching else { return };
        let Some(index) = watching.arrived.iter().position(|(at, _)| *at == place) else { return };
        let (_, packet) = watching.arrived.swap_remove(index);
        if packet.is_none() {
            if !matches!(frame.verdict, Verdict::Dropped(_)) {
                return;
            }
            let Some(left) = watching.left.checked_sub(1) else {
                watching.skipped += 1;
                return;
            };
            watching.left = left;
        }
        let packet = packet.unwrap_or_else(|| described(frame.bytes()));
        let (fate, sent) = fate(frame);
        let worker = watching.watch.worker;
        let row = LiveRow { worker, packet, fate, sent, skipped: std::mem::take(&mut watching.skipped) };
        if let Err(error) = watching.watch.rows.try_send(row) {
            watching.skipped += error.into_inner().skipped + 1;
        }
    }
}

/// The outcome of a frame, and what leaves in its place.
fn fate(frame: &Frame) -> (String, Option<String>) {
    let sent = || Some(described(frame.bytes()));
    match frame.verdict {
        Verdict::Forward => ("forwarded".into(), sent()),
        Verdict::Answered => ("answered".into(), sent()),
        Verdict::Control => ("received by the gateway itself".into(), None),
        Verdict::Punted => ("left to the host".into(), None),
        Verdict::InPieces => ("forwarded in several packets".into(), None),
        Verdict::Merged => ("joined with other packets".into(), None),
        Verdict::HandOver(worker) => (format!("handed over to worker {}", worker.0), None),
        Verdict::Dropped(reason) => (format!("dropped: {}: {}", reason.name(), reason.help()), None),
        Verdict::Absorbed => ("for the mechanism itself, with nothing to forward".into(), None),
        Verdict::Held => ("held: a fragment, or a SYN from outside".into(), None),
        Verdict::Pending => ("not decided".into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Asked, Kind};
    use sixway_dataplane::Offload;
    use tokio::sync::mpsc::channel;

    fn frame(from: &str, port: u16, verdict: Verdict) -> Frame {
        let to = if from.contains(':') { "64:ff9b::1" } else { "192.0.2.1" };
        let asked = Asked {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            kind: Kind::Udp(port, 53),
            size: 0,
        };
        let octets = asked.octets().unwrap();
        let mut frame = Frame::with_capacity(2_048);
        frame.fill(&octets, Offload::default());
        frame.verdict = verdict;
        frame
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::from_secs(100) + Duration::from_millis(milliseconds)
    }

    fn pass(tap: &mut Tap, frames: &[Frame], now: Instant) {
        tap.arrived(frames, now);
        frames.iter().enumerate().for_each(|(place, frame)| tap.decided(place, frame));
    }

    #[test]
    fn a_sample_of_a_drop_is_the_last_packet_but_not_every_packet() {
        let mut tap = Tap::default();
        let dropped = |port| frame("203.0.113.2", port, Verdict::Dropped(DropReason::NoBinding));
        pass(&mut tap, &[frame("203.0.113.2", 1, Verdict::Forward), dropped(2), dropped(3)], at(0));
        pass(&mut tap, &[dropped(4)], at(900));
        let samples = tap.samples();
        assert_eq!(samples.len(), 1);
        assert!(samples[0].packet.contains("203.0.113.2:2 > 192.0.2.1:53"), "{samples:?}");
        assert!(samples[0].prefixes.contains("203.0.113.0/24:2"), "{samples:?}");
        pass(&mut tap, &[dropped(5)], at(1_000));
        assert!(tap.samples()[0].packet.contains(":5 >"));
    }

    #[test]
    fn what_is_watched_is_told_with_its_fate_and_no_more_than_a_second_bears() {
        let mut tap = Tap::default();
        let (rows, mut told) = channel(1_024);
        let filter = LiveFilter { from: "2001:db8::1".parse().ok(), ..LiveFilter::default() };
        tap.watch(Watch { filter, lasts: Duration::from_secs(10), rows, worker: 3 }, at(0));
        let mine = || frame("2001:db8::1", 7, Verdict::Forward);
        let others = frame("2001:db8::2", 7, Verdict::Forward);
        pass(
            &mut tap,
            &[others, mine(), frame("2001:db8::1", 8, Verdict::Dropped(DropReason::NoBinding))],
            at(1),
        );
        let row = told.try_recv().unwrap();
        assert!(row.worker == 3 && row.packet.contains("[2001:db8::1]:7") && row.fate == "forwarded");
        assert!(row.sent.is_some());
        assert!(told.try_recv().unwrap().fate.starts_with("dropped: NoBinding: "));
        assert!(told.try_recv().is_err());

        let many: Vec<Frame> = (0..500).map(|_| mine()).collect();
        pass(&mut tap, &many, at(2));
        let rows: Vec<LiveRow> = std::iter::from_fn(|| told.try_recv().ok()).collect();
        assert_eq!((rows.len(), rows.iter().map(|row| row.skipped).sum::<u64>()), (198, 302));
        pass(&mut tap, &[mine()], at(1_500));
        assert_eq!(told.try_recv().unwrap().skipped, 0);
        pass(&mut tap, &[mine()], at(10_000));
        assert!(told.try_recv().is_err() && tap.watching.is_none(), "its time is over");
    }

    #[test]
    fn a_watch_that_nobody_receives_ends_and_one_of_drops_has_drops_alone() {
        let mut tap = Tap::default();
        let (rows, mut told) = channel(8);
        let filter = LiveFilter { dropped: true, port: Some(7), ..LiveFilter::default() };
        tap.watch(Watch { filter, lasts: Duration::from_secs(10), rows, worker: 0 }, at(0));
        let dropped = |port| frame("203.0.113.2", port, Verdict::Dropped(DropReason::NoBinding));
        pass(&mut tap, &[frame("203.0.113.2", 7, Verdict::Forward), dropped(8), dropped(7)], at(1));
        assert!(told.try_recv().unwrap().packet.contains(":7 >"));
        assert!(told.try_recv().is_err());
        drop(told);
        pass(&mut tap, &[dropped(7)], at(2));
        assert!(tap.watching.is_none());
    }

    #[test]
    fn of_drops_too_no_more_are_told_than_a_second_bears_and_what_is_forwarded_does_not_count() {
        let mut tap = Tap::default();
        let (rows, mut told) = channel(1_024);
        let filter = LiveFilter { dropped: true, ..LiveFilter::default() };
        tap.watch(Watch { filter, lasts: Duration::from_secs(10), rows, worker: 0 }, at(0));
        let dropped = || frame("203.0.113.2", 7, Verdict::Dropped(DropReason::NoBinding));
        let forwarded: Vec<Frame> = (0..64).map(|_| frame("203.0.113.2", 7, Verdict::Forward)).collect();
        tap.arrived(&forwarded, at(1));
        let texts = tap.watching.as_ref().unwrap().arrived.iter().filter(|(_, text)| text.is_some()).count();
        assert_eq!(texts, 0, "a forwarded packet is not put into words");
        forwarded.iter().enumerate().for_each(|(place, frame)| tap.decided(place, frame));
        for _ in 0..5 {
            pass(&mut tap, &(0..64).map(|_| dropped()).collect::<Vec<_>>(), at(2));
            pass(&mut tap, &forwarded, at(2));
        }
        assert_eq!(std::iter::from_fn(|| told.try_recv().ok()).count(), 200);
        pass(&mut tap, &[dropped()], at(1_500));
        assert_eq!(told.try_recv().unwrap().skipped, 120);
    }
}
