//! The trust anchors: read at the start, updated when their zones change their keys (RFC 5011), stored on disk.

use super::dns64_view::Dns64View;
use crate::config::dns64::Dns64;
use crate::dns64::{ReplyTo, ThreadMessage, UpstreamQuery};
use crate::view::AnchorRow;
use crate::worker::Clock;
use sixway_control::dns64::{Anchor, Payer, Wire};
use sixway_dnssec::trust_anchor::{Change, Event, TrustAnchors};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// The names that each upstream is queried for.
fn names_of_upstreams(dns64: &Dns64) -> Vec<Vec<Wire>> {
    let names = |names: &[crate::config::dns64::Name]| names.iter().map(|name| name.wire()).collect();
    dns64.upstreams.iter().map(|upstream| names(&upstream.names)).collect()
}

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// No wait is longer: the wall clock may be set in the meantime.
const LONGEST: Duration = Duration::from_secs(600);
/// RFC 4034 §2: DNSKEY.
const DNSKEY: u16 = 48;

/// The trust anchors while the gateway runs.
#[derive(Debug)]
pub(super) struct AnchorKeeper {
    anchors: TrustAnchors,
    file: PathBuf,
    clock: Clock,
    /// The names that each upstream is queried for.
    upstreams: Vec<Vec<Wire>>,
    /// The file cannot be written, and this was logged.
    failing: bool,
}

impl AnchorKeeper {
    /// The trust anchors at start, and their keeper if RFC 5011 updates are configured.
    ///
    /// # Errors
    /// An error in the configured anchors.
    pub(super) fn load(dns64: &Dns64, clock: Clock) -> Result<(Vec<Anchor>, Option<Self>), String> {
        let dnssec = &dns64.dnssec;
        if !dnssec.validate {
            return Ok((Vec::new(), None));
        }
        let configured = dnssec.anchors.clone();
        let Some(file) = dnssec.trust_anchor_state.clone() else { return Ok((configured, None)) };
        let anchors = restore(&configured, &file, clock.wall().unix_seconds)?;
        let upstreams = names_of_upstreams(dns64);
        Ok((anchors.anchors(), Some(Self { anchors, file, clock, upstreams, failing: false })))
    }

    /// The trust anchors.
    pub(super) fn anchors(&self) -> Vec<Anchor> {
        self.anchors.anchors()
    }

    /// Other upstreams are asked from now on.
    pub(super) fn ask_upstreams_of(&mut self, dns64: &Dns64) {
        self.upstreams = names_of_upstreams(dns64);
    }

    /// Follows them, for ever.
    pub(super) async fn keep(&mut self, streams: &mpsc::Sender<UpstreamQuery>, view: &Dns64View) {
        let mut warnings = Vec::new();
        loop {
            let now = self.clock.wall().unix_seconds;
            while let Some(zone) = self.anchors.poll_lookup(now) {
                warnings = self.look_up(&zone, streams, view).await;
            }
            view.see_trust(self.rows(), warnings.clone());
            let now = self.clock.wall().unix_seconds;
            let next = self.anchors.poll_timeout().map_or(u64::MAX, |at| at.saturating_sub(now).max(1));
            sleep(Duration::from_secs(next).min(LONGEST)).await;
        }
    }

    /// Queries a zone's keys, applies changes, and returns warnings for the operator.
    async fn look_up(
        &mut self,
        zone: &Wire,
        streams: &mpsc::Sender<UpstreamQuery>,
        view: &Dns64View,
    ) -> Vec<String> {
        let events = self.observe(zone, streams).await;
        let mut warnings = Vec::new();
        for event in &events {
            tracing::warn!("trust anchor: {event}");
            if is_failure(event) {
                warnings.push(format!("{event}; check that the upstreams return DNSSEC records"));
            }
        }
        if events.iter().any(|event| event.changes_anchors()) {
            view.tell(|| ThreadMessage::Anchors(self.anchors.anchors()));
        }
        self.write();
        warnings
    }

    /// Queries one upstream after the other until one replies with verified keys: some may strip DNSSEC records.
    async fn observe(&mut self, zone: &Wire, streams: &mpsc::Sender<UpstreamQuery>) -> Vec<Event> {
        let (mut events, mut failures) = (Vec::new(), Vec::new());
        for upstream in self.upstreams_for(zone) {
            let reply = ask(upstream, zone, streams).await;
            let now = self.clock.wall().unix_seconds;
            let (failed, happened): (Vec<_>, Vec<_>) =
                self.anchors.handle_reply(now, zone, reply.as_deref()).into_iter().partition(is_failure);
            events.extend(happened);
            if failed.is_empty() {
                return events;
            }
            // Wrong keys are more informative than no keys.
            if failures.is_empty() || failed.iter().any(|event| event.change == Change::Unverified) {
                failures = failed;
            }
        }
        if failures.is_empty() {
            failures = self.anchors.handle_reply(self.clock.wall().unix_seconds, zone, None);
        }
        events.extend(failures);
        events
    }

    /// The upstreams with the longest name that the zone is at or below.
    fn upstreams_for(&self, zone: &Wire) -> Vec<usize> {
        let length = |names: &[Wire]| {
            let matching = names.iter().filter(|name| is_within(zone, name)).map(|name| name.0.len()).max();
            if names.is_empty() { Some(0) } else { matching }
        };
        let lengths: Vec<Option<usize>> = self.upstreams.iter().map(|names| length(names)).collect();
        let longest = lengths.iter().copied().flatten().max();
        (0..lengths.len()).filter(|place| lengths[*place].is_some() && lengths[*place] == longest).collect()
    }

    fn rows(&self) -> Vec<AnchorRow> {
        let rows = self.anchors.rows();
        rows.map(|row| AnchorRow { zone: row.zone, tag: row.tag, state: row.state.into() }).collect()
    }

    fn write(&mut self) {
        match write(&self.file, &self.anchors.text()) {
            Ok(()) => self.failing = false,
            Err(_) if self.failing => {}
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; changes of trust anchors are lost when the gateway ends; make the file writable",
                    self.file.display()
                );
                self.failing = true;
            }
        }
    }
}

/// The stored anchors, or the configured ones.
fn restore(configured: &[Anchor], file: &Path, now: u64) -> Result<TrustAnchors, String> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(TrustAnchors::restored(configured, &text, now).unwrap_or_else(|damaged| {
            tracing::warn!("{}: {damaged}; using the configured trust anchors instead", file.display());
            TrustAnchors::new(configured, now)
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TrustAnchors::new(configured, now)),
        Err(error) => Err(format!("dns64.dnssec.trust_anchor_state = {}: {error}", file.display())),
    }
}

/// Replaces the file atomically: a truncated file would be damaged.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let fresh = file.with_extension("new");
    fs::write(&fresh, text)?;
    fs::rename(&fresh, file)
}

/// Queries an upstream for a zone's keys.
async fn ask(upstream: usize, zone: &Wire, streams: &mpsc::Sender<UpstreamQuery>) -> Option<Vec<u8>> {
    let (reply, waiting) = ReplyTo::waiting();
    streams.try_send(UpstreamQuery { upstream, payer: Payer::OWN, message: question(zone), reply }).ok()?;
    timeout(PATIENCE, waiting.reply()).await.ok()?.ok()
}

/// Whether no verified keys were received.
fn is_failure(event: &Event) -> bool {
    matches!(event.change, Change::Unverified | Change::Unanswered)
}

/// A query for a zone's DNSKEY records with RD, CD and DO (RFC 4035 §3.2.2, RFC 6891 §6.1.2).
fn question(zone: &Wire) -> Vec<u8> {
    // The ID means nothing on a stream of our own.
    let mut message = vec![0x53, 0x11, 0x01, 0x10, 0, 1, 0, 0, 0, 0, 0, 1];
    message.extend_from_slice(&zone.0);
    message.extend(DNSKEY.to_be_bytes());
    message.extend([0, 1]);
    message.extend([0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0]);
    message
}

/// Whether a name is `other` or below it.
fn is_within(name: &Wire, other: &Wire) -> bool {
    let mut rest = &name.0[..];
    while rest.len() > other.0.len() {
        let length = usize::from(rest[0]);
        rest = rest.get(1 + length..).unwrap_or_default();
    }
    *rest == other.0[..]
}

#[cfg(test)]
mod tests;
