//! A server of the log: a separate thread sends to it, and stores records that it cannot send in a spool.
//!
//! The thread never waits for the server alone: it takes records from its queue whatever the server does.

use super::backlog::Backlog;
use super::bounded_thread::BoundedThread;
use super::encode::Encode;
use super::record::{Event, Record};
use super::sink_state::SinkState;
use super::spool::Spool;
use super::transport::Transport;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Records that wait for the thread. With what they are about, they take less than 16 MB, once for all servers.
const QUEUE: usize = 131_072;
const _: () = assert!(size_of::<Record>() <= 112);
/// Batches that are taken from the queue between two messages.
const BATCHES: usize = 64;
/// How long the thread waits for records before it checks its connection.
const PAUSE: Duration = Duration::from_millis(200);
/// How long it waits for the server before it checks its queue.
const LOOK: Duration = Duration::from_millis(20);
/// Between two attempts to reach a server.
const RETRY: Duration = Duration::from_secs(1);
/// A server that takes nothing for this long is away.
const STALL: Duration = Duration::from_secs(5);
/// The time left at the end for the spool, after the last attempts to send.
const FOR_SPOOL: Duration = Duration::from_millis(300);
/// Over UDP, an absent server is detected after the first message: for this time no other one follows.
const TRIAL: Duration = Duration::from_millis(50);

/// Records for several servers.
pub(super) type Batch = Arc<[Record]>;

/// The thread of a server.
pub(super) struct Remote {
    queue: Option<Sender<Batch>>,
    /// Records in the queue.
    waiting: Arc<AtomicUsize>,
    /// When the end is over.
    until: Arc<OnceLock<Instant>>,
    thread: Option<BoundedThread>,
    state: Arc<SinkState>,
}

/// The state of the thread.
struct Sending {
    encode: Box<dyn Encode>,
    transport: Transport,
    backlog: Backlog,
    state: Arc<SinkState>,
    /// Records in transfer.
    message: Option<Message>,
    /// When the server is tried again.
    retry: Instant,
    /// Whether the next message is the first one, or the first after a failure.
    is_on_trial: bool,
    /// Whether the last attempt failed.
    is_away: bool,
    /// Whether the state says that there is no spool.
    lacks_spool: bool,
}

/// Records in transfer.
struct Message {
    parts: VecDeque<Vec<u8>>,
    /// Octets of the first part that were taken.
    taken: usize,
    /// Records of the backlog, and those of them that it carries.
    records: usize,
    carried: usize,
    /// When some of it was taken last.
    moved: Instant,
    /// When it will be known whether it was received.
    judged: Option<Instant>,
}

/// When the thread can continue.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// There is more to send.
    Now,
    /// When the server takes more.
    Server,
    /// When there are records, or after this time.
    Records(Duration),
}

impl Remote {
    /// Starts the thread; `confine` drops its unneeded privileges.
    ///
    /// # Errors
    /// The kernel has no thread left.
    pub(super) fn start(
        encode: Box<dyn Encode>,
        transport: Transport,
        spool: Spool,
        state: Arc<SinkState>,
        confine: fn(),
    ) -> io::Result<Self> {
        let (queue, batches) = channel();
        let (waiting, until) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceLock::new()));
        let sending = Sending {
            encode,
            transport,
            backlog: Backlog::new(spool),
            state: Arc::clone(&state),
            message: None,
            retry: Instant::now(),
            is_on_trial: true,
            is_away: false,
            lacks_spool: false,
        };
        let (left, end) = (Arc::clone(&waiting), Arc::clone(&until));
        let thread = BoundedThread::start(move || {
            confine();
            sending.run(&batches, &left, &end);
        })?;
        Ok(Self { queue: Some(queue), waiting, until, thread: Some(thread), state })
    }

    pub(super) fn state(&self) -> &Arc<SinkState> {
        &self.state
    }

    /// Passes records on. If too many wait, these are lost.
    pub(super) fn give(&self, batch: &Batch) {
        let Some(queue) = &self.queue else { return };
        let waiting = self.waiting.fetch_add(batch.len(), Relaxed);
        if waiting + batch.len() > QUEUE || queue.send(Arc::clone(batch)).is_err() {
            self.waiting.fetch_sub(batch.len(), Relaxed);
            self.state.lose(batch.len() as u64);
        }
    }

    /// Whether half of the queue is in use, so that listings should wait.
    pub(super) fn is_behind(&self) -> bool {
        self.waiting.load(Relaxed) > QUEUE / 2
    }

    /// Makes the thread send the waiting records, or leave them in the spool, until then.
    pub(super) fn stop(&mut self, until: Instant) {
        self.until.get_or_init(|| until);
        self.queue = None;
    }

    /// Waits for the end of the thread, until then.
    pub(super) fn wait(&mut self, until: Instant) {
        if self.thread.take().is_some_and(|thread| !thread.wait(until)) {
            tracing::error!("event log: {}: it does not end; its last events are lost", self.state.name);
        }
    }
}

impl Sending {
    fn run(mut self, batches: &Receiver<Batch>, waiting: &AtomicUsize, until: &OnceLock<Instant>) {
        let mut next = Next::Now;
        loop {
            let batch = match next {
                Next::Now => batches.try_recv(),
                Next::Server => {
                    self.transport.wait(LOOK);
                    batches.try_recv()
                }
                Next::Records(pause) => batches.recv_timeout(pause).map_err(|error| match error {
                    RecvTimeoutError::Timeout => TryRecvError::Empty,
                    RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
                }),
            };
            if batch == Err(TryRecvError::Disconnected) {
                break;
            }
            for batch in batch.into_iter().chain(batches.try_iter().take(BATCHES)) {
                waiting.fetch_sub(batch.len(), Relaxed);
                self.take(&batch);
            }
            next = self.work();
            self.tell_of_losses();
            self.look_at_spool();
            self.state.spools(self.backlog.octets());
        }
        self.end(until.get().copied().unwrap_or_else(Instant::now));
    }

    /// Sends as much as possible, and keeps the rest for the next process.
    fn end(mut self, until: Instant) {
        let sent_until = until.checked_sub(FOR_SPOOL).unwrap_or(until);
        while !self.backlog.is_empty() && Instant::now() < sent_until {
            match self.work() {
                Next::Now => {}
                Next::Server => self.transport.wait(LOOK),
                Next::Records(_) if self.transport.is_closed() => break,
                Next::Records(pause) => std::thread::sleep(pause.min(LOOK)),
            }
        }
        self.spill();
        if let Err(error) = self.backlog.keep_place() {
            tracing::warn!("event log: {}: the spool: {error}", self.state.name);
        }
        self.state.spools(self.backlog.octets());
    }

    fn take(&mut self, records: &[Record]) {
        let lost = self.backlog.push(records);
        self.state.lose(lost as u64);
        if self.is_away {
            self.spill();
        }
    }

    fn spill(&mut self) {
        let lost = self.backlog.spill();
        self.state.lose(lost as u64);
    }

    /// Does what can be done without waiting.
    fn work(&mut self) -> Next {
        if let Some(message) = self.message.take() {
            return self.go_on(message);
        }
        if self.backlog.is_empty() {
            if self.transport.is_open()
                && let Err(error) = self.transport.fault()
            {
                // Nothing was lost: it is tried again when there is something to send.
                tracing::debug!("event log: {}: {error}", self.state.name);
            }
            return Next::Records(PAUSE);
        }
        if !self.transport.is_open() {
            return self.connect();
        }
        let message = self.compose();
        self.go_on(message)
    }

    fn connect(&mut self) -> Next {
        let now_is = Instant::now();
        if self.transport.is_closed() && now_is < self.retry {
            return Next::Records(PAUSE.min(self.retry - now_is));
        }
        let begun = if self.transport.is_closed() { self.transport.begin() } else { Ok(()) };
        match begun.and_then(|()| self.transport.drive()) {
            Ok(true) => {
                self.is_on_trial = true;
                let parts = self.encode.connected(now());
                self.message = (!parts.is_empty()).then(|| Message::of(parts, 0, 0));
                Next::Now
            }
            Ok(false) => Next::Server,
            Err(error) => self.failed(&error, 0),
        }
    }

    /// A message of the first records that wait.
    fn compose(&mut self) -> Message {
        let (mut out, mut records, mut carried) = (Vec::new(), 0, 0);
        for record in self.backlog.head() {
            carried += usize::from(self.encode.carries(record));
            self.encode.encode(record, &mut out);
            records += 1;
            if !self.encode.is_joined() || self.is_on_trial || self.encode.is_full(&out) {
                break;
            }
        }
        Message::of(self.encode.finish(carried, now(), out), records, carried)
    }

    /// Sends what the server takes of a message.
    fn go_on(&mut self, mut message: Message) -> Next {
        let carried = message.carried;
        match self.pass(&mut message) {
            Ok(true) => {}
            Ok(false) if message.moved.elapsed() < STALL => {
                let judged = message.judged;
                self.message = Some(message);
                // While it is on trial, the server is not asked.
                return match judged {
                    Some(judged) => Next::Records(judged.saturating_duration_since(Instant::now())),
                    None => Next::Server,
                };
            }
            Ok(false) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the server takes nothing");
                return self.failed(&error, carried);
            }
            Err(error) => return self.failed(&error, carried),
        }
        self.backlog.advance(message.records);
        self.state.wrote(message.carried);
        if message.records > 0 && std::mem::take(&mut self.is_on_trial) {
            self.is_away = false;
            self.state.returns();
        }
        Next::Now
    }

    /// Whether a message was sent, as far as that is known.
    fn pass(&mut self, message: &mut Message) -> io::Result<bool> {
        while let Some(part) = message.parts.front() {
            if message.taken == 0 {
                self.transport.fault()?;
            }
            let taken = self.transport.send(&part[message.taken..])?;
            if taken == 0 && !part.is_empty() {
                return Ok(false);
            }
            (message.taken, message.moved) = (message.taken + taken, Instant::now());
            if message.taken >= part.len() {
                message.parts.pop_front();
                message.taken = 0;
            }
        }
        if !self.transport.flush()? {
            return Ok(false);
        }
        if !self.is_on_trial || message.records == 0 {
            return Ok(true);
        }
        let judged = *message.judged.get_or_insert_with(|| Instant::now() + TRIAL);
        if Instant::now() < judged {
            return Ok(false);
        }
        self.transport.fault().map(|()| true)
    }

    /// The server is unreachable: waiting records go to the spool.
    fn failed(&mut self, error: &io::Error, carried: usize) -> Next {
        self.transport.close();
        self.encode.not_sent(carried);
        self.state.goes(&error.to_string());
        self.retry = Instant::now() + RETRY;
        self.is_away = true;
        self.spill();
        Next::Records(RETRY.min(PAUSE))
    }

    /// A spool that cannot be opened is a problem also while the server can be reached.
    fn look_at_spool(&mut self) {
        if self.is_away {
            return;
        }
        match self.backlog.fault() {
            Some(why) => {
                self.state.goes(&why);
                self.lacks_spool = true;
            }
            None if std::mem::take(&mut self.lacks_spool) => self.state.returns(),
            None => {}
        }
    }

    /// Once there is room, the loss is recorded, too.
    fn tell_of_losses(&mut self) {
        if !self.transport.is_open() {
            return;
        }
        let lost = self.state.take_untold();
        if lost > 0 {
            let record = Record { micros: micros(), event: Event::Lost(lost, Arc::clone(&self.state.name)) };
            if self.backlog.push(std::slice::from_ref(&record)) > 0 {
                self.state.untell(lost);
            }
        }
    }
}

impl Message {
    fn of(parts: Vec<Vec<u8>>, records: usize, carried: usize) -> Self {
        Self { parts: parts.into(), taken: 0, records, carried, moved: Instant::now(), judged: None }
    }
}

/// Microseconds since 1970.
pub(super) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn now() -> u64 {
    micros() / 1_000_000
}

#[cfg(test)]
mod tests;
