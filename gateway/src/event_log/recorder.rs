//! The log's thread: takes events from the workers' rings, and gives them to the sinks.

use super::bounded_thread::BoundedThread;
use super::clock_watch::ClockWatch;
use super::continuing::Continuing;
use super::file_sink::FileSink;
use super::listing::{Listed, Listing};
use super::notice::{LeaseNotice, Notice};
use super::port_block::{PortBlock, PortMapping};
use super::portless::Portless;
use super::quota::Quota;
use super::record::{Binding, Event, Phase, Record};
use super::remote::{Batch, Remote, micros};
use super::ring::{RING, RingEnd, Timed, Wants, ring};
use super::servers;
use super::sink_state::SinkState;
use crate::config::{self, LoggedEvent};
use crate::view::SinkRow;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::{BindingEvent, BlockEvent, NatEvent, SessionEvent};
use sixway_link::Clock;
use sixway_wire::Prefix6;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Events of a ring that are taken in a turn.
const TURN: usize = 8_192;
/// Between two looks at rings that were empty.
const PAUSE: Duration = Duration::from_millis(20);
/// Records of the gateway itself that wait.
const NOTES: usize = 4_096;
/// Parts of a listing that wait, and those that are written in a turn: events are taken in between.
const PARTS: usize = 8;
/// How long the end of the log may take: the next process waits for it.
const END: Duration = Duration::from_secs(1);
/// The part of it in which the rings are emptied.
const LAST_TURNS: Duration = Duration::from_millis(400);
/// The part of it in which the threads of servers end.
const LAST_OF_SERVERS: Duration = Duration::from_millis(900);
/// Between two readings of clocks that belong together; a thread that was put aside in between reads them again.
const READING: Duration = Duration::from_millis(100);
/// Bits of the prefix of IPv4-mapped addresses.
const MAPPED_BITS: u8 = 96;
/// The name of the sink of the workers' rings in records of losses.
const WORKERS: &str = "workers";

/// The log while the gateway runs.
pub struct EventLog {
    states: Vec<Arc<SinkState>>,
    notes: SyncSender<Record>,
    parts: SyncSender<Part>,
    limits: bool,
    leases: bool,
    /// Whether the bindings are to be listed again.
    due: Arc<AtomicBool>,
    /// When the end began.
    stop: Arc<OnceLock<Instant>>,
    thread: Mutex<Option<BoundedThread>>,
}

impl std::fmt::Debug for EventLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventLog").field("sinks", &self.states.len()).finish_non_exhaustive()
    }
}

/// A part of a listing.
enum Part {
    Begin,
    Rows(Vec<Listed>),
    /// Whether all rows were listed.
    End(bool),
}

/// What is logged: the engines, one for each worker, before they run.
pub struct Source<'a> {
    /// The engines, with the sessions of the previous process.
    pub engines: &'a mut [Engine],
    /// The names of their stateful translators, in the engines' order.
    pub translators: &'a [String],
    /// How they give port blocks; `None`: they do not.
    pub mappings: Vec<Option<PortMapping>>,
    /// The limits of the translators, in the same order.
    pub quotas: Arc<[Quota]>,
    /// The engines' clock.
    pub clock: Clock,
    /// The gateway's name: its spools have it in theirs.
    pub gateway: &'a str,
    /// Drops privileges that a thread does not need to send.
    pub confine: fn(),
}

/// The state of the thread.
struct Recorder {
    rings: Vec<RingEnd>,
    /// Records of the gateway itself.
    notes: Receiver<Record>,
    parts: Receiver<Part>,
    /// Rows of a listing, and its end, for which events of the rings are still to be taken.
    held: VecDeque<Part>,
    /// How many events of each ring.
    owed: Vec<usize>,
    listing: Listing,
    due: Arc<AtomicBool>,
    clock: Clock,
    /// The wall clock: microseconds since 1970.
    wall: fn() -> u64,
    watch: ClockWatch,
    bindings: bool,
    destinations: bool,
    file: Option<FileSink>,
    remotes: Vec<Remote>,
    /// Of the rings.
    workers: Arc<SinkState>,
}

impl EventLog {
    /// Opens the sinks, and starts the thread. A sink that cannot be opened is away, and is tried again. What the engines have is to be
    /// listed while they run.
    ///
    /// # Errors
    /// The kernel has no thread left.
    pub fn start(config: &config::EventLog, source: Source<'_>) -> Result<Self, String> {
        let Source { engines, translators, mappings, clock, .. } = source;
        let file = config.file.as_ref().map(FileSink::new);
        let remotes = servers::start(config, source.gateway, &source.quotas, source.confine)?;
        let names: Vec<Arc<str>> = translators.iter().map(|name| name.as_str().into()).collect();
        let continuing = Continuing::new(mappings, config.has(LoggedEvent::EachBinding));
        let mut listing = Listing::new(names.clone(), continuing);
        let began = micros();
        let first = match config.has_bindings() {
            true => listing.begin_with_log(began, bindings(engines, &listing)),
            false => Vec::new(),
        };
        let rings = rings(config, engines, &names);
        let ((note, notes), (part, parts)) = (sync_channel(NOTES), sync_channel(PARTS));
        let recorder = Recorder {
            owed: vec![0; rings.len()],
            rings,
            notes,
            parts,
            held: VecDeque::new(),
            listing,
            due: Arc::new(config.has_bindings().into()),
            clock,
            wall: micros,
            watch: ClockWatch::default(),
            bindings: config.has_bindings(),
            destinations: config.has(LoggedEvent::Destinations),
            file,
            remotes,
            workers: SinkState::new(WORKERS.into()),
        };
        let (states, due, stop) = (recorder.states(), Arc::clone(&recorder.due), Arc::default());
        let stops = Arc::clone(&stop);
        let thread = BoundedThread::start(move || recorder.run(began, first, &stops));
        let thread = Mutex::new(Some(thread.map_err(|error| format!("log: no thread: {error}"))?));
        let limits = config.has(LoggedEvent::Limits);
        Ok(Self {
            states,
            notes: note,
            parts: part,
            limits,
            leases: config.has_bindings(),
            due,
            stop,
            thread,
        })
    }

    /// A limit was reached: packets were dropped for this reason.
    pub fn limit(&self, reason: &str, packets: u64) {
        self.tell_of_limits(Event::Limit(reason.into(), packets));
    }

    /// Something is exhausted, or nearly.
    pub fn notice(&self, notice: Notice) {
        self.tell_of_limits(Event::Notice(notice));
    }

    /// A lease begins or ends: it is a binding of a whole address.
    /// Whether the thread has it; if not, it has too much to do, and the caller gives it again.
    pub fn lease(&self, lease: &LeaseNotice) -> bool {
        let event = Event::Notice(Notice::Lease(lease.clone()));
        !self.leases || self.notes.try_send(Record { micros: micros(), event }).is_ok()
    }

    fn tell_of_limits(&self, event: Event) {
        if self.limits {
            self.tell(event);
        }
    }

    fn tell(&self, event: Event) {
        let record = Record { micros: micros(), event };
        if self.notes.try_send(record).is_err()
            && let Some(workers) = self.states.first()
        {
            workers.lose(1);
        }
    }

    /// Whether the bindings are to be listed again.
    pub fn is_listing_due(&self) -> bool {
        self.due.load(Relaxed)
    }

    /// The bindings are listed from now on. Whether the thread has taken note; if not, it has too much to do.
    pub fn begin_listing(&self) -> bool {
        self.parts.try_send(Part::Begin).is_ok()
    }

    /// Bindings that there are.
    ///
    /// # Errors
    /// The thread has too much to do: the bindings.
    pub fn list(&self, bindings: Vec<Listed>) -> Result<(), Vec<Listed>> {
        match self.parts.try_send(Part::Rows(bindings)) {
            // At the end, no listing is made any more.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
            Err(TrySendError::Full(Part::Rows(bindings))) => Err(bindings),
            Err(TrySendError::Full(Part::Begin | Part::End(_))) => Ok(()),
        }
    }

    /// The bindings were listed, all of them if it `is_whole`. Whether the thread has taken note.
    pub fn end_listing(&self, is_whole: bool) -> bool {
        !matches!(self.parts.try_send(Part::End(is_whole)), Err(TrySendError::Full(_)))
    }

    /// The state of the sinks. The first entry is the workers' rings, which are always available.
    pub fn rows(&self) -> Vec<SinkRow> {
        self.states.iter().map(|state| state.row()).collect()
    }

    /// Writes what is left and ends the thread, within a second. The workers have ended before.
    pub fn end(&self) {
        let began = *self.stop.get_or_init(Instant::now);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| !thread.wait(began + END)) {
            tracing::error!("event log: it has not ended within {END:?}; its last events are lost");
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.end();
    }
}

/// A ring for each translator of each engine.
fn rings(config: &config::EventLog, engines: &mut [Engine], names: &[Arc<str>]) -> Vec<RingEnd> {
    let sessions = config.has(LoggedEvent::Sessions);
    let wants = Wants { sessions, each_binding: config.has(LoggedEvent::EachBinding) };
    if !sessions && !config.has_bindings() {
        return Vec::new();
    }
    let mut ends = Vec::new();
    for engine in engines {
        for (translator, name) in engine.stateful().zip(names) {
            let (sink, end) = ring(Arc::clone(name), RING, wants);
            translator.set_event_sink(sink);
            ends.push(end);
        }
    }
    ends
}

/// The number of bindings to be listed.
fn bindings(engines: &mut [Engine], listing: &Listing) -> u64 {
    let of = |engine: &mut Engine| -> u64 {
        let translators = engine.stateful().enumerate().filter(|(place, _)| listing.has_records(*place));
        translators.map(|(_, translator)| u64::from(translator.occupancy().bindings)).sum()
    };
    engines.iter_mut().map(of).sum()
}

impl Recorder {
    /// How the sinks are: the workers' rings first.
    fn states(&self) -> Vec<Arc<SinkState>> {
        let file = self.file.iter().map(FileSink::state);
        let sinks = file.chain(self.remotes.iter().map(Remote::state));
        std::iter::once(&self.workers).chain(sinks).map(Arc::clone).collect()
    }

    fn run(mut self, began: u64, first: Vec<Record>, stop: &OnceLock<Instant>) {
        self.begin(began, first);
        loop {
            // Before the check: earlier records are taken.
            let stopped = stop.get();
            let taken = self.turn();
            match stopped {
                Some(stopped) if taken == 0 || stopped.elapsed() >= LAST_TURNS => break,
                Some(_) => {}
                None if taken == 0 => std::thread::park_timeout(PAUSE),
                None => {}
            }
        }
        self.end(*stop.get_or_init(Instant::now));
    }

    /// The log ends.
    fn end(&mut self, began: Instant) {
        let waiting: usize = self.rings.iter().map(RingEnd::backlog).sum();
        self.workers.lose(waiting as u64 + self.listing.unlisted() + self.listing.take_unlisted());
        let left = self.workers.take_untold();
        if left > 0 {
            let lost = Event::Lost(left, Arc::clone(&self.workers.name));
            self.give(vec![Record { micros: (self.wall)(), event: lost }]);
        }
        self.give(vec![Record { micros: (self.wall)(), event: Event::Stopped }]);
        self.flush();
        let until = began + LAST_OF_SERVERS;
        self.remotes.iter_mut().for_each(|remote| remote.stop(until));
        self.remotes.iter_mut().for_each(|remote| remote.wait(until));
    }

    /// The log begins: how ports are given.
    fn begin(&mut self, began: u64, first: Vec<Record>) {
        let (now, wall) = self.times();
        self.watch.look(now, wall);
        self.give(vec![Record { micros: began, event: Event::Started }]);
        self.give(first);
        self.flush();
    }

    /// Both clocks at one moment.
    fn times(&self) -> (sixway_dataplane::Instant, u64) {
        loop {
            let (now, wall) = (self.clock.now(), (self.wall)());
            if self.clock.now().since(now) < READING {
                return (now, wall);
            }
        }
    }

    /// Takes all events in the order of their times; returns their number.
    fn turn(&mut self) -> usize {
        let (now, wall) = self.times();
        let (mut records, mut lost) = (Vec::new(), 0);
        if let Some(by) = self.watch.look(now, wall) {
            records.push(Record { micros: wall, event: Event::Stepped(by) });
        }
        for (ring, owed) in self.rings.iter_mut().zip(&mut self.owed) {
            for _ in 0..TURN {
                let Some(timed) = ring.next() else { break };
                *owed = owed.saturating_sub(1);
                let ago = u64::try_from(now.since(timed.0).as_micros()).unwrap_or(u64::MAX);
                let micros = wall.saturating_sub(ago);
                let event = event(&ring.translator, timed, self.destinations);
                let is_logged = |event: &Event| self.bindings || matches!(event, Event::Session(..));
                records.extend(event.filter(is_logged).map(|event| Record { micros, event }));
            }
            lost += ring.take_lost();
        }
        self.workers.wrote(records.len());
        lost += self.listing.take_unlisted();
        if lost > 0 {
            self.workers.lose(lost);
            self.listing.want();
        }
        let untold = self.workers.take_untold();
        if untold > 0 {
            let event = Event::Lost(untold, Arc::clone(&self.workers.name));
            records.push(Record { micros: wall, event });
        }
        records.extend(self.notes.try_iter().take(NOTES));
        records.sort_by_key(|record| record.micros);
        let before = self.listing.note(&records);
        records.splice(0..0, before);
        let is_listed = self.parts(&records, wall);
        let taken = records.len();
        self.give(records);
        self.flush();
        taken + usize::from(is_listed)
    }

    /// Takes parts of a listing; whether there were any. A row was read before events that are in the rings now: it waits until those were
    /// taken, because one of them may be the end of its binding. `records`: those of this turn.
    fn parts(&mut self, records: &[Record], wall: u64) -> bool {
        let mut any = !self.held.is_empty();
        if !any {
            for part in self.parts.try_iter().take(PARTS) {
                any = true;
                match part {
                    Part::Begin => {
                        let begun = self.listing.begin(wall, records);
                        if let Some(file) = &mut self.file {
                            file.write(&begun);
                        }
                        self.due.store(false, Relaxed);
                    }
                    Part::Rows(_) | Part::End(_) => self.held.push_back(part),
                }
            }
            self.owed = self.rings.iter().map(RingEnd::backlog).collect();
        }
        if self.owed.iter().any(|owed| *owed > 0) {
            return any;
        }
        // All sinks get the first listing, slow servers more slowly.
        if self.listing.is_first() && self.remotes.iter().any(Remote::is_behind) {
            return false;
        }
        for part in std::mem::take(&mut self.held) {
            self.list(part);
        }
        any
    }

    fn list(&mut self, part: Part) {
        match part {
            Part::Rows(rows) => {
                let (is_first, listed) = (self.listing.is_first(), self.listing.records(&rows));
                match &mut self.file {
                    _ if is_first => self.give(listed),
                    Some(file) => file.write(&listed),
                    None => {}
                }
            }
            Part::End(is_whole) => self.listing.end(is_whole),
            // It does not wait.
            Part::Begin => {}
        }
    }

    fn give(&mut self, mut records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        if let Some(file) = &mut self.file {
            file.write(&records);
        }
        while !self.remotes.is_empty() && !records.is_empty() {
            let rest = records.split_off(TURN.min(records.len()));
            let batch: Batch = std::mem::replace(&mut records, rest).into();
            self.remotes.iter().for_each(|remote| remote.give(&batch));
        }
    }

    /// Passed records are in the file; once there is room, losses there are recorded, too.
    fn flush(&mut self) {
        let Some(file) = &mut self.file else { return };
        file.flush((self.wall)());
        self.listing.filled(file.take_filled());
        if file.take_incomplete() {
            self.listing.want();
        }
        if self.bindings && self.listing.is_due(file.keeps()) {
            self.due.store(true, Relaxed);
        }
    }
}

/// A port block, with the translator's name.
fn block(
    translator: &Arc<str>,
    BlockEvent { subscriber, bits, address, first, size }: BlockEvent,
) -> PortBlock {
    let bits = if subscriber.0.to_ipv4_mapped().is_some() { MAPPED_BITS + bits } else { bits };
    let subscriber = Prefix6::holding(subscriber.0, bits);
    PortBlock { translator: Arc::clone(translator), subscriber, address: address.0, first, size }
}

/// What happened, with the translator's name.
fn event(translator: &Arc<str>, (_, event): Timed, destinations: bool) -> Option<Event> {
    let binding = |it: BindingEvent| Binding {
        translator: Arc::clone(translator),
        protocol: it.protocol,
        softwire: it.softwire,
        inside: it.inside.0,
        outside: it.outside.0,
        is_static: it.is_static,
    };
    let session = |phase, it: SessionEvent| {
        let SessionEvent { protocol, softwire, inside, outside, remote } = it;
        let binding = binding(BindingEvent { protocol, softwire, inside, outside, is_static: false });
        Event::Session(phase, binding, destinations.then_some(remote))
    };
    let portless = |phase, it| Some(Event::Portless(phase, Portless::of(translator, &it, destinations)?));
    Some(match event {
        NatEvent::PortlessCreated(it) => return portless(Phase::Created, it),
        NatEvent::PortlessDeleted(it) => return portless(Phase::Deleted, it),
        NatEvent::BindingCreated(it) => Event::Binding(Phase::Created, binding(it)),
        NatEvent::BindingDeleted(it) => Event::Binding(Phase::Deleted, binding(it)),
        NatEvent::BlockAllocated(it) => Event::Block(Phase::Created, block(translator, it)),
        NatEvent::BlockReleased(it) => Event::Block(Phase::Deleted, block(translator, it)),
        NatEvent::SessionCreated(it) => session(Phase::Created, it),
        NatEvent::SessionDeleted(it) => session(Phase::Deleted, it),
    })
}

#[cfg(test)]
mod tests;
