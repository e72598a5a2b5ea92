//! The log's thread: takes events from the workers' rings, and gives them to the sinks.

use super::ipfix::Ipfix;
use super::json_lines::JsonLines;
use super::listing::{Listed, Listing};
use super::portless::Portless;
use super::record::{Binding, Event, Phase, Record};
use super::remote::{Batch, Remote, micros};
use super::ring::{RING, RingEnd, Timed, ring};
use super::sink_state::SinkState;
use super::spool::Spool;
use super::syslog::Syslog;
use super::tls::Tls;
use super::transport::{Transport, Way};
use crate::config::{self, LogTransport, LoggedEvent, SyslogServer};
use crate::view::SinkRow;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::{BindingEvent, BindingRow, NatEvent, Selection, SessionEvent};
use sixway_link::Clock;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Events of a ring that are taken in a turn.
const TURN: usize = 8_192;
/// Between two looks at rings that were empty.
const PAUSE: Duration = Duration::from_millis(20);
/// Records of the gateway itself that wait.
const NOTES: usize = 64;
/// Slots of a table of bindings that are looked at together.
const SLOTS: u32 = 4_096;
/// What the sink of the workers' rings is called in records of losses.
const WORKERS: &str = "workers";

/// The log while the gateway runs.
pub struct EventLog {
    states: Vec<Arc<SinkState>>,
    notes: SyncSender<Note>,
    limits: bool,
    /// Whether the bindings are to be listed again.
    due: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
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
    listing: Listing,
    due: Arc<AtomicBool>,
    clock: Clock,
    bindings: bool,
    destinations: bool,
    file: Option<JsonLines>,
    remotes: Vec<Remote>,
    /// Of the rings.
    workers: Arc<SinkState>,
}

impl EventLog {
    /// Opens the sinks, lists what the engines have, and starts the thread.
    ///
    /// # Errors
    /// What cannot be opened, and why.
    pub fn start(config: &config::EventLog, source: Source<'_>) -> Result<Self, String> {
        let Source { engines, translators, clock, .. } = source;
        let file = match &config.file {
            Some(file) => {
                Some(JsonLines::open(file).map_err(|error| refused("log.file", &file.path, &error))?)
            }
            None => None,
        };
        let remotes = remotes(config, source.gateway, source.confine)?;
        let names: Vec<Arc<str>> = translators.iter().map(|name| name.as_str().into()).collect();
        let bindings = if config.has(LoggedEvent::Bindings) { bindings(engines, &names) } else { Vec::new() };
        let rings = rings(config, engines, &names);
        let workers = SinkState::new(WORKERS.into());
        let states = [Arc::clone(&workers)]
            .into_iter()
            .chain(file.iter().map(|file| Arc::clone(file.state())))
            .chain(remotes.iter().map(|remote| Arc::clone(remote.state())))
            .collect();
        let (note, notes) = sync_channel(NOTES);
        let (of_bindings, destinations) =
            (config.has(LoggedEvent::Bindings), config.has(LoggedEvent::Destinations));
        let (stop, due) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let recorder = Recorder {
            rings,
            notes,
            listing: Listing::new(names),
            due: Arc::clone(&due),
            clock,
            bindings: of_bindings,
            destinations,
            file,
            remotes,
            workers,
        };
        let stops = Arc::clone(&stop);
        let thread = Builder::new().name("event-log".into()).spawn(move || recorder.run(bindings, &stops));
        let thread = thread.map_err(|error| format!("log: no thread: {error}"))?;
        let limits = config.has(LoggedEvent::Limits);
        Ok(Self { states, notes: note, limits, due, stop, thread: Mutex::new(Some(thread)) })
    }

    /// A limit was reached: packets were dropped for this reason.
    pub fn limit(&self, reason: &str, packets: u64) {
        if !self.limits {
            return;
        }
        let record = Record { micros: micros(), event: Event::Limit(reason.into(), packets) };
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

    /// Writes what is left and ends the thread. The workers have ended before.
    pub fn end(&self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.end();
    }
}

fn refused(key: &str, path: &Path, error: &io::Error) -> String {
    let mend = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; give the process write access to it, for example by LogsDirectory= in the unit"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; write another path",
        _ => "",
    };
    format!("{key}: {}: {error}{mend}", path.display())
}

/// A ring for each translator of each engine.
fn rings(config: &config::EventLog, engines: &mut [Engine], names: &[Arc<str>]) -> Vec<RingEnd> {
    let sessions = config.has(LoggedEvent::Sessions);
    if !sessions && !config.has(LoggedEvent::Bindings) {
        return Vec::new();
    }
    let mut ends = Vec::new();
    for engine in engines {
        for (translator, name) in engine.stateful().zip(names) {
            let (sink, end) = ring(Arc::clone(name), RING, sessions);
            translator.set_event_sink(sink);
            ends.push(end);
        }
    }
    ends
}

/// The bindings that are there from the start: static ones, and those of the previous process.
fn bindings(engines: &mut [Engine], names: &[Arc<str>]) -> Vec<Binding> {
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    for engine in engines {
        for (translator, name) in engine.stateful().zip(names) {
            let mut from = Some(0);
            while let Some(slot) = from {
                from = translator.bindings(slot, SLOTS, &Selection::default(), &mut rows);
                found.extend(rows.drain(..).map(|row: BindingRow| Binding {
                    translator: Arc::clone(name),
                    protocol: row.protocol,
                    inside: row.inside.0,
                    outside: row.outside.0,
                    is_static: row.is_static,
                }));
            }
        }
    }
    found
}

fn remotes(config: &config::EventLog, gateway: &str, confine: fn()) -> Result<Vec<Remote>, String> {
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut remotes = Vec::new();
    let mut start = |name: String, encode, transport| {
        let file = format!("{gateway}-{}.spool", name.replace(' ', "-").replace(['/', ':', '[', ']'], "_"));
        let path = config.spool.join(file);
        let failed = |error| refused("log.spool", &path, &error);
        let spool = Spool::open(&path, config.spool_size).map_err(failed)?;
        let state = SinkState::new(name);
        remotes.push(Remote::start(encode, transport, spool, state, confine).map_err(failed)?);
        Ok::<(), String>(())
    };
    for syslog in &config.syslog {
        let is_stream = syslog.transport != LogTransport::Udp;
        let way = way(syslog).map_err(|error| format!("log.syslog: {}: {error}", syslog.server))?;
        let name = format!("syslog {} {}", syslog.transport.as_str(), syslog.server);
        let encode = Box::new(Syslog::new(syslog.facility, &host, is_stream));
        start(name, encode, Transport::new(syslog.server, way))?;
    }
    for ipfix in &config.ipfix {
        let repeats = ipfix.transport == LogTransport::Udp;
        let name = format!("ipfix {} {}", ipfix.transport.as_str(), ipfix.collector);
        let encode = Box::new(Ipfix::new(ipfix.observation_domain, repeats));
        start(name, encode, Transport::new(ipfix.collector, if repeats { Way::Udp } else { Way::Tcp }))?;
    }
    Ok(remotes)
}

/// By what messages go to a syslog server.
fn way(syslog: &SyslogServer) -> io::Result<Way> {
    Ok(match (syslog.transport, &syslog.name) {
        (LogTransport::Udp, _) => Way::Udp,
        (LogTransport::Tls, Some(name)) => Way::Tls(Tls::new(name, syslog.ca.as_deref())?),
        // Without a name there is no TLS: the configuration was checked.
        (LogTransport::Tcp | LogTransport::Tls, _) => Way::Tcp,
    })
}

impl Recorder {
    fn run(mut self, bindings: Vec<Binding>, stop: &AtomicBool) {
        self.begin(bindings);
        loop {
            // Before the look: what was recorded until then is taken.
            let is_last = stop.load(Relaxed);
            let taken = self.turn();
            if taken > 0 {
                continue;
            }
            if is_last {
                break;
            }
            std::thread::park_timeout(PAUSE);
        }
        self.give(vec![Record { micros: micros(), event: Event::Stopped }]);
        self.flush();
        self.remotes.iter_mut().for_each(Remote::end);
    }

    /// The log begins, with the bindings that are there.
    fn begin(&mut self, bindings: Vec<Binding>) {
        let micros = micros();
        self.give(vec![Record { micros, event: Event::Started }]);
        let mut bindings = bindings.into_iter().peekable();
        while bindings.peek().is_some() {
            let some = bindings.by_ref().take(TURN);
            let event = |binding| Record { micros, event: Event::Binding(Phase::Continues, binding) };
            self.give(some.map(event).collect());
        }
        self.flush();
    }

    /// Takes what is there, in the order of its time; how much.
    fn turn(&mut self) -> usize {
        let (now, wall) = (self.clock.now(), micros());
        let (mut records, mut lost) = (Vec::new(), 0);
        for ring in &mut self.rings {
            for _ in 0..TURN {
                let Some(timed) = ring.next() else { break };
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
        }
        let untold = self.workers.take_untold();
        if untold > 0 {
            let event = Event::Lost(untold, Arc::clone(&self.workers.name));
            records.push(Record { micros: wall, event });
        }
        // After the rings: whatever a listing has to know of has been taken.
        let is_noted = self.notes(&mut records, wall);
        records.sort_by_key(|record| record.micros);
        let taken = records.len();
        self.give(records);
        self.flush();
        taken + usize::from(is_noted)
    }

    /// Takes the notes of the gateway itself; whether there were any.
    fn notes(&mut self, records: &mut Vec<Record>, wall: u64) -> bool {
        self.listing.note(records);
        let mut any = false;
        for note in self.notes.try_iter().take(NOTES) {
            any = true;
            match note {
                Note::Record(record) => records.push(record),
                Note::ListingBegins => {
                    self.listing.begin(wall, records);
                    self.due.store(false, Relaxed);
                }
                Note::Listed(rows) => {
                    if let Some(file) = &mut self.file {
                        file.write(&self.listing.records(&rows));
                    }
                }
                Note::ListingEnds => self.listing.end(),
            }
        }
        any
    }

    fn give(&mut self, records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        if let Some(file) = &mut self.file {
            file.write(&records);
        }
        if !self.remotes.is_empty() {
            let batch: Batch = records.into();
            self.remotes.iter().for_each(|remote| remote.give(&batch));
        }
    }

    /// What was given is in the file; once there is room, what was lost there is a record itself.
    fn flush(&mut self) {
        let Some(file) = &mut self.file else { return };
        file.flush();
        file.tell_of_losses(micros());
        self.listing.filled(file.take_filled());
        if self.bindings && self.listing.is_due(file.keeps()) {
            self.due.store(true, Relaxed);
        }
    }
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
        NatEvent::SessionCreated(it) => session(Phase::Created, it),
        NatEvent::SessionDeleted(it) => session(Phase::Deleted, it),
    })
}

#[cfg(test)]
mod tests;
