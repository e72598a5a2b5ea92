//! The log's thread: takes events from the workers' rings, and gives them to the sinks.

use super::bounded_thread::BoundedThread;
use super::clock_watch::ClockWatch;
use super::continuing::Continuing;
use super::file_sink::FileSink;
use super::listing::{Listed, Listing};
use super::notice::Notice;
use super::port_block::{PortBlock, PortMapping};
use super::portless::Portless;
use super::record::{Binding, Event, Phase, Record};
use super::remote::{Batch, Remote, micros};
use super::ring::{RING, RingEnd, Timed, Wants, ring};
use super::servers;
use super::sink_state::SinkState;
use crate::config::{self, LoggedEvent};
use crate::view::SinkRow;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::{BindingEvent, BindingRow, BlockEvent, NatEvent, Selection, SessionEvent};
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
const NOTES: usize = 64;
/// Slots of a table of bindings that are looked at together.
const SLOTS: u32 = 4_096;
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
/// What the sink of the workers' rings is called in records of losses.
const WORKERS: &str = "workers";

/// The log while the gateway runs.
pub struct EventLog {
    states: Vec<Arc<SinkState>>,
    notes: SyncSender<Note>,
    limits: bool,
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

/// What the gateway itself tells the thread.
enum Note {
    Record(Record),
    ListingBegins,
    Listed(Vec<Listed>),
    ListingEnds,
}

/// What is logged: the engines, one for each worker, before they run.
pub struct Source<'a> {
    /// The engines, with the sessions of the previous process.
    pub engines: &'a mut [Engine],
    /// The names of their stateful translators, in the engines' order.
    pub translators: &'a [String],
    /// How they give port blocks; `None`: they do not.
    pub mappings: Vec<Option<PortMapping>>,
    /// The engines' clock.
    pub clock: Clock,
    /// The gateway's name: its spools have it in theirs.
    pub gateway: &'a str,
    /// Takes from a thread what it does not need to send.
    pub confine: fn(),
}

/// What the thread has.
struct Recorder {
    rings: Vec<RingEnd>,
    notes: Receiver<Note>,
    /// Rows of a listing, and its end, for which events of the rings are still to be taken.
    held: VecDeque<Note>,
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
    /// Opens the sinks, lists what the engines have, and starts the thread. A sink that cannot be opened is away, and is tried again.
    ///
    /// # Errors
    /// The kernel has no thread left.
    pub fn start(config: &config::EventLog, source: Source<'_>) -> Result<Self, String> {
        let Source { engines, translators, mappings, clock, .. } = source;
        let file = config.file.as_ref().map(FileSink::new);
        let remotes = servers::start(config, source.gateway, source.confine)?;
        let names: Vec<Arc<str>> = translators.iter().map(|name| name.as_str().into()).collect();
        let mut continuing = Continuing::new(mappings, config.has(LoggedEvent::EachBinding));
        let first =
            if config.has_bindings() { first_records(engines, &names, &mut continuing) } else { Vec::new() };
        let rings = rings(config, engines, &names);
        let (note, notes) = sync_channel(NOTES);
        let recorder = Recorder {
            owed: vec![0; rings.len()],
            rings,
            notes,
            held: VecDeque::new(),
            listing: Listing::new(names, continuing),
            due: Arc::default(),
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
        let thread = BoundedThread::start(move || recorder.run(first, &stops));
        let thread = Mutex::new(Some(thread.map_err(|error| format!("log: no thread: {error}"))?));
        Ok(Self { states, notes: note, limits: config.has(LoggedEvent::Limits), due, stop, thread })
    }

    /// A limit was reached: packets were dropped for this reason.
    pub fn limit(&self, reason: &str, packets: u64) {
        self.tell_of_limits(Event::Limit(reason.into(), packets));
    }

    /// Something is used up, or nearly.
    pub fn notice(&self, notice: Notice) {
        self.tell_of_limits(Event::Notice(notice));
    }

    fn tell_of_limits(&self, event: Event) {
        if !self.limits {
            return;
        }
        let record = Record { micros: micros(), event };
        if self.notes.try_send(Note::Record(record)).is_err()
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
        self.notes.try_send(Note::ListingBegins).is_ok()
    }

    /// Bindings that there are.
    ///
    /// # Errors
    /// The thread has too much to do: the bindings.
    pub fn list(&self, bindings: Vec<Listed>) -> Result<(), Vec<Listed>> {
        match self.notes.try_send(Note::Listed(bindings)) {
            // At the end nobody lists any more.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
            Err(TrySendError::Full(Note::Listed(bindings))) => Err(bindings),
            Err(TrySendError::Full(Note::Record(_) | Note::ListingBegins | Note::ListingEnds)) => Ok(()),
        }
    }

    /// All bindings were listed. Whether the thread has taken note.
    pub fn end_listing(&self) -> bool {
        !matches!(self.notes.try_send(Note::ListingEnds), Err(TrySendError::Full(_)))
    }

    /// How the sinks are. The first one are the rings of the workers, which are never away.
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

/// What is there from the start: how ports are given, static bindings, and those of the previous process or their blocks.
fn first_records(engines: &mut [Engine], names: &[Arc<str>], continuing: &mut Continuing) -> Vec<Record> {
    let micros = micros();
    let (mut found, mut rows) = (continuing.begin(micros), Vec::new());
    for engine in engines {
        for (place, (translator, name)) in engine.stateful().zip(names).enumerate() {
            let mut from = Some(0);
            while let Some(slot) = from {
                from = translator.bindings(slot, SLOTS, &Selection::default(), &mut rows);
                found.extend(rows.drain(..).flat_map(|row: BindingRow| {
                    let binding = Binding {
                        translator: Arc::clone(name),
                        protocol: row.protocol,
                        inside: row.inside.0,
                        outside: row.outside.0,
                        is_static: row.is_static,
                    };
                    continuing.records(micros, place, binding)
                }));
            }
        }
    }
    found
}

impl Recorder {
    /// How the sinks are: the workers' rings first.
    fn states(&self) -> Vec<Arc<SinkState>> {
        let file = self.file.iter().map(FileSink::state);
        let sinks = file.chain(self.remotes.iter().map(Remote::state));
        std::iter::once(&self.workers).chain(sinks).map(Arc::clone).collect()
    }

    fn run(mut self, first: Vec<Record>, stop: &OnceLock<Instant>) {
        self.begin(first);
        loop {
            // Before the look: what was recorded until then is taken.
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
        let left: usize = self.rings.iter().map(RingEnd::backlog).sum();
        if left > 0 {
            self.workers.lose(left as u64);
            let lost = Event::Lost(left as u64, Arc::clone(&self.workers.name));
            self.give(vec![Record { micros: (self.wall)(), event: lost }]);
        }
        self.give(vec![Record { micros: (self.wall)(), event: Event::Stopped }]);
        self.flush();
        let until = began + LAST_OF_SERVERS;
        self.remotes.iter_mut().for_each(|remote| remote.stop(until));
        self.remotes.iter_mut().for_each(|remote| remote.wait(until));
    }

    /// The log begins, with the bindings that are there.
    fn begin(&mut self, first: Vec<Record>) {
        let (now, wall) = self.times();
        self.watch.look(now, wall);
        let micros = first.iter().map(|record| record.micros).min().unwrap_or(wall);
        self.give(vec![Record { micros, event: Event::Started }]);
        let mut first = first.into_iter().peekable();
        while first.peek().is_some() {
            self.give(first.by_ref().take(TURN).collect());
        }
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

    /// Takes what is there, in the order of its time; how much.
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
        if lost > 0 {
            self.workers.lose(lost);
            self.listing.want();
        }
        let untold = self.workers.take_untold();
        if untold > 0 {
            let event = Event::Lost(untold, Arc::clone(&self.workers.name));
            records.push(Record { micros: wall, event });
        }
        let is_noted = self.notes(&mut records, wall);
        records.sort_by_key(|record| record.micros);
        let taken = records.len();
        self.give(records);
        self.flush();
        taken + usize::from(is_noted)
    }

    /// Takes the notes of the gateway itself; whether there were any. A row of a listing was read before events that are in the rings now:
    /// it waits until those were taken, because one of them may be the end of its binding.
    fn notes(&mut self, records: &mut Vec<Record>, wall: u64) -> bool {
        self.listing.note(records);
        let mut any = !self.held.is_empty();
        if !any {
            for note in self.notes.try_iter().take(NOTES) {
                any = true;
                match note {
                    Note::Record(record) => records.push(record),
                    Note::ListingBegins => {
                        // Rows of the last one are of no use any more.
                        self.held.clear();
                        let begun = self.listing.begin(wall, records);
                        if let Some(file) = &mut self.file {
                            file.write(&begun);
                        }
                        self.due.store(false, Relaxed);
                    }
                    Note::Listed(_) | Note::ListingEnds => self.held.push_back(note),
                }
            }
            self.owed = self.rings.iter().map(RingEnd::backlog).collect();
        }
        if self.owed.iter().all(|owed| *owed == 0) {
            for note in std::mem::take(&mut self.held) {
                self.list(note);
            }
        }
        any
    }

    fn list(&mut self, note: Note) {
        match note {
            Note::Listed(rows) => {
                if let Some(file) = &mut self.file {
                    file.write(&self.listing.records(&rows));
                }
            }
            Note::ListingEnds => self.listing.end(),
            // They do not wait.
            Note::Record(_) | Note::ListingBegins => {}
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

    /// What was given is in the file; once there is room, what was lost there is a record itself.
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
        inside: it.inside.0,
        outside: it.outside.0,
        is_static: it.is_static,
    };
    let session = |phase, it: SessionEvent| {
        let SessionEvent { protocol, inside, outside, remote } = it;
        let binding = binding(BindingEvent { protocol, inside, outside, is_static: false });
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
