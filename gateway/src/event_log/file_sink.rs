//! The log's file as a sink: while it cannot be opened or written, events are lost, and it is tried again.

use super::file_access::refused;
use super::json_lines::JsonLines;
use super::record::{Event, Record};
use super::sink_state::SinkState;
use crate::config::EventLogFile;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two attempts to open or write it.
const RETRY: Duration = Duration::from_secs(1);

/// The file, which may be away.
pub(super) struct FileSink {
    config: EventLogFile,
    state: Arc<SinkState>,
    lines: Option<JsonLines>,
    /// Whether it was opened just now.
    is_new: bool,
    /// While it is away: when it is tried again.
    retry: Option<Instant>,
    /// The beginning of the log, as long as the file does not have it.
    started: Option<Record>,
    /// Whether bindings are missing in it, so that they should be listed again.
    is_incomplete: bool,
}

impl FileSink {
    /// Opens it, if that is possible now.
    pub(super) fn new(config: &EventLogFile) -> Self {
        let state = SinkState::new(config.path.display().to_string());
        let mut sink = Self {
            config: config.clone(),
            state,
            lines: None,
            is_new: false,
            retry: None,
            started: None,
            is_incomplete: false,
        };
        sink.open(Instant::now());
        sink
    }

    pub(super) fn state(&self) -> &Arc<SinkState> {
        &self.state
    }

    /// Full files that are kept.
    pub(super) const fn keeps(&self) -> u32 {
        self.config.rotate_keep
    }

    /// Files that became full since the last call.
    pub(super) fn take_filled(&mut self) -> u64 {
        self.lines.as_mut().map_or(0, JsonLines::take_filled)
    }

    /// Whether bindings are missing in it since the last call, and it can be written.
    pub(super) fn take_incomplete(&mut self) -> bool {
        self.lines.is_some() && self.retry.is_none() && std::mem::take(&mut self.is_incomplete)
    }

    /// Appends records. They are in the file after [`FileSink::flush`]. Records that cannot be written are lost and counted.
    pub(super) fn write(&mut self, records: &[Record]) {
        let micros = records.first().map_or(0, |record| record.micros);
        if let Some(lines) = self.there(micros) {
            lines.write(records);
            self.judge();
        } else {
            self.state.lose(records.len() as u64);
            self.is_incomplete = true;
        }
        if let Some(started) = records.iter().find(|record| record.event == Event::Started) {
            self.started = Some(started.clone());
        }
    }

    /// Passed records are in the file; once there is room, losses there are recorded, too. Tries a file that is away.
    pub(super) fn flush(&mut self, micros: u64) {
        let Some(lines) = self.there(micros) else { return };
        lines.flush();
        if !lines.is_failing() {
            lines.tell_of_losses(micros);
        }
        if self.judge() {
            self.started = None;
        }
    }

    /// After an attempt to write: whether it was good. An error is a reason to wait.
    fn judge(&mut self) -> bool {
        let is_good = self.lines.as_ref().is_some_and(|lines| !lines.is_failing());
        if !is_good {
            self.retry = Some(Instant::now() + RETRY);
            self.is_incomplete = true;
        }
        is_good
    }

    /// The file, if it is open or if it is time to try it. It first gets the events that it has missed.
    fn there(&mut self, micros: u64) -> Option<&mut JsonLines> {
        let now = Instant::now();
        if self.retry.is_some_and(|retry| now < retry) {
            return None;
        }
        let is_back = self.retry.take().is_some();
        if self.lines.as_ref().is_some_and(|lines| !lines.is_as_left())
            && let Some(lines) = self.lines.take()
        {
            tracing::warn!(
                "event log: {}: another program moved or cut it: a new one is begun",
                self.state.name
            );
            lines.forget_index();
            self.is_incomplete = true;
        }
        if self.lines.is_none() {
            self.open(now);
        }
        let lines = self.lines.as_mut()?;
        if std::mem::take(&mut self.is_new) {
            lines.tell_of_clock(micros);
        }
        if is_back {
            lines.try_again();
            lines.write(self.started.as_slice());
        }
        Some(lines)
    }

    fn open(&mut self, now: Instant) {
        match JsonLines::open(&self.config, &self.state) {
            Ok(lines) => {
                self.state.returns();
                (self.lines, self.is_new) = (Some(lines), true);
            }
            Err(error) => {
                self.state.goes(&refused("log.file", &self.config.path, &error));
                self.retry = Some(now + RETRY);
            }
        }
    }
}
