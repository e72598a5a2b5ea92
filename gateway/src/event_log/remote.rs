//! A server of the log: a thread of its own sends to it, and keeps what it cannot send in a spool.

use super::record::{Event, Record};
use super::sink_state::SinkState;
use super::spool::Spool;
use super::transport::{Encode, Transport};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// Batches that wait for the thread.
const QUEUE: usize = 256;
/// How long the thread waits for records before it looks after its spool.
const PAUSE: Duration = Duration::from_millis(200);
/// Between two attempts to reach a server.
const RETRY: Duration = Duration::from_secs(1);
/// How long the spool is emptied at the end.
const LAST: Duration = Duration::from_secs(1);
/// Over UDP, a server that is not there is noticed after the first message: this long nothing follows it.
const TRIAL: Duration = Duration::from_millis(50);

/// Records for several servers.
pub(super) type Batch = Arc<[Record]>;

/// The thread of a server.
pub(super) struct Remote {
    queue: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<SinkState>,
}

/// What the thread has.
struct Sender {
    encode: Box<dyn Encode>,
    transport: Transport,
    spool: Spool,
    state: Arc<SinkState>,
    /// When the server is tried again.
    retry: Instant,
    /// Whether the next message is the first one, or the first after a failure.
    is_on_trial: bool,
}

impl Remote {
    /// Starts the thread; `confine` takes from it what it does not need.
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
        let (queue, batches) = sync_channel(QUEUE);
        let (state_of_sender, retry) = (Arc::clone(&state), Instant::now());
        let sender = Sender { encode, transport, spool, state: state_of_sender, retry, is_on_trial: true };
        let thread = Builder::new().name("event-log".into()).spawn(move || {
            confine();
            sender.run(&batches);
        })?;
        Ok(Self { queue: Some(queue), thread: Some(thread), state })
    }

    pub(super) fn state(&self) -> &Arc<SinkState> {
        &self.state
    }

    /// Passes records on. If too many wait, these are lost.
    pub(super) fn give(&self, batch: &Batch) {
        let given = self.queue.as_ref().map(|queue| queue.try_send(Arc::clone(batch)));
        if let Some(Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch))) = given {
            self.state.lose(batch.len() as u64);
        }
    }

    /// Sends what waits, or leaves it in the spool, and ends the thread.
    pub(super) fn end(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

impl Sender {
    fn run(mut self, batches: &Receiver<Batch>) {
        loop {
            match batches.recv_timeout(PAUSE) {
                Ok(batch) => self.take(&batch),
                Err(RecvTimeoutError::Timeout) => self.work_off(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.tell_of_losses();
        }
        let end = Instant::now() + LAST;
        while self.spool.octets() > 0 && self.is_there() && Instant::now() < end {
            self.work_off();
        }
        if let Err(error) = self.spool.compact() {
            tracing::warn!("event log: {}: the spool: {error}", self.state.name);
        }
    }

    /// Sends records, or keeps them.
    fn take(&mut self, records: &[Record]) {
        if self.spool.octets() > 0 {
            self.work_off();
        }
        let sent = if self.spool.octets() == 0 && self.is_there() { self.send(records) } else { 0 };
        self.keep(&records[sent..]);
    }

    fn keep(&mut self, records: &[Record]) {
        let kept = self.spool.append(records);
        self.state.lose((records.len() - kept) as u64);
        self.state.spools(self.spool.octets());
    }

    /// Whether there is a connection; if not, it is tried from time to time.
    fn is_there(&mut self) -> bool {
        if self.transport.is_open() {
            return true;
        }
        if Instant::now() < self.retry {
            return false;
        }
        let connected = self.transport.connect().and_then(|()| {
            self.encode.connected(now()).iter().try_for_each(|message| self.transport.send(message))
        });
        match connected {
            Ok(()) => true,
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.state.goes(&error.to_string());
        self.retry = Instant::now() + RETRY;
        self.is_on_trial = true;
    }

    /// Sends records; how many were sent. Fewer than all: the connection is closed.
    fn send(&mut self, records: &[Record]) -> usize {
        let mut sent = 0;
        while sent < records.len() {
            let (mut out, mut count, mut carried) = (Vec::new(), 0, 0);
            for record in &records[sent..] {
                carried += usize::from(self.encode.carries(record));
                self.encode.encode(record, &mut out);
                count += 1;
                if !self.encode.is_joined() || self.is_on_trial || self.encode.is_full(&out) {
                    break;
                }
            }
            let messages = self.encode.finish(carried, now(), out);
            let outcome = messages.iter().try_for_each(|message| self.transport.send(message));
            if let Err(error) = outcome.and_then(|()| self.end_trial()) {
                self.encode.not_sent(carried);
                self.failed(&error);
                return sent;
            }
            self.state.wrote(carried);
            sent += count;
        }
        sent
    }

    /// After the first message: over UDP, an ICMP error says that nobody is there.
    fn end_trial(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_on_trial) {
            return Ok(());
        }
        std::thread::sleep(TRIAL);
        self.transport.fault()?;
        self.state.returns();
        Ok(())
    }

    /// Sends from the spool.
    fn work_off(&mut self) {
        if self.spool.octets() == 0 || !self.is_there() {
            return;
        }
        let outcome = self.spool.first().and_then(|first| {
            let (records, octets): (Vec<Record>, Vec<u64>) = first.into_iter().unzip();
            let sent = self.send(&records);
            self.spool.advance(octets[..sent].iter().sum())
        });
        if let Err(error) = outcome {
            tracing::warn!("event log: {}: the spool: {error}", self.state.name);
        }
        self.state.spools(self.spool.octets());
    }

    /// Once there is room, what was lost is a record itself.
    fn tell_of_losses(&mut self) {
        let is_crowded = !self.transport.is_open();
        if is_crowded {
            return;
        }
        let lost = self.state.take_untold();
        if lost > 0 {
            let record = Record { micros: micros(), event: Event::Lost(lost, Arc::clone(&self.state.name)) };
            if self.spool.append(std::slice::from_ref(&record)) == 0 {
                self.state.untell(lost);
            }
            self.state.spools(self.spool.octets());
        }
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
