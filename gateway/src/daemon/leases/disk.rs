//! A concentrator's leases on disk: its own, and Kea's. Only the control thread reads and writes it, and never while others wait for the leases.

use super::file::{LeaseFile, Line};
use super::file_state::LeaseFiles;
use super::kea::{self, KeaBindings, KeaFile};
use crate::config::{Concentrator, FourOverSix};
use sixway_dataplane::mechanism::siit::dynamic_pool::WallClock;
use sixway_wire::Prefix6;
use std::io;
use std::net::Ipv4Addr;

/// The files of a concentrator.
#[derive(Debug)]
pub(super) struct Disk {
    file: LeaseFile,
    kea: Option<KeaFile>,
    clients: Vec<Prefix6>,
    /// What failed, so that it is logged once.
    state: LeaseFiles,
}

impl Disk {
    /// With the leases of the time before.
    ///
    /// # Errors
    /// The lease file cannot be read, or is not one.
    pub(super) fn load(
        (section, concentrator): (&FourOverSix, &Concentrator),
        gateway: &str,
        wall: WallClock,
    ) -> io::Result<(Self, Vec<Line>)> {
        let path = section.lease_path(gateway);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let (file, leases, faults) = LeaseFile::load(&path, wall).map_err(named)?;
        if faults > 0 {
            tracing::warn!("{}: {faults} invalid lines", path.display());
        }
        let disk = Self {
            file,
            kea: concentrator.kea_leases.as_deref().map(KeaFile::new),
            clients: concentrator.clients.clone(),
            state: LeaseFiles::of(&section.name),
        };
        Ok((disk, leases))
    }

    /// Appends what has changed.
    pub(super) fn append(&mut self, lines: &[Line], wall: WallClock) {
        let outcome = self.file.append(lines, wall);
        if outcome.is_err() {
            self.tell(outcome);
        }
    }

    /// Rewrites the whole file if it has become long or lacks lines.
    pub(super) fn tidy(&mut self, page: impl FnMut(Option<Ipv4Addr>) -> Vec<Line>, wall: WallClock) {
        if self.file.is_to_be_rewritten(wall.now) {
            let outcome = self.file.rewrite(page, wall);
            self.tell(outcome);
        }
    }

    /// Writes the whole a last time.
    pub(super) fn finish(&mut self, page: impl FnMut(Option<Ipv4Addr>) -> Vec<Line>, wall: WallClock) {
        if self.kea.is_none() {
            let outcome = self.file.rewrite(page, wall);
            self.tell(outcome);
        }
    }

    fn tell(&mut self, outcome: io::Result<()>) {
        let (path, name) = (self.file.path().display(), &self.state.mechanism);
        let trouble = outcome.err().map(|error| format!("{path}: {error}"));
        match (&trouble, &self.state.unwritten) {
            (None, Some(_)) => tracing::info!("{name}: {path} is whole again"),
            (Some(what), None) => tracing::error!("{name}: {what}; leases would not survive a restart"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.state.unwritten = trouble;
    }

    /// The file that cannot be written or read.
    pub(super) const fn state(&self) -> &LeaseFiles {
        &self.state
    }

    /// What Kea has leased; `None`: as before.
    pub(super) fn kea(&mut self, wall: WallClock) -> Option<KeaBindings> {
        let file = self.kea.as_mut()?;
        match file.changed() {
            Ok(text) => {
                self.state.unread = None;
                text.map(|text| kea::bindings(&text, &self.clients, wall.unix_seconds))
            }
            Err(error) => {
                let trouble = format!("{}: {error}", file.path().display());
                if self.state.unread.is_none() {
                    tracing::error!("{trouble}; bindings stay as they are");
                }
                self.state.unread = Some(trouble);
                None
            }
        }
    }
}
