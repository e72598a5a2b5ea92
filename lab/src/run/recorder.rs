//! Which networks the cell that is measured has, and what is stored about them if it fails: the state of their hosts and, in the second attempt,
//! captures of their links. Networks of other stages, which rest meanwhile, are left out.
//!
//! A build that fails drops its network, so the state is read before: when a wait is given up, while the devices are at work, or when the network ends.

use super::failure_kit::{Capture, state};
use crate::interrupt;
use crate::observer::Observer;
use crate::results::write_whole;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The networks of a run, and the data of the current attempt.
#[derive(Default)]
pub(super) struct Recorder(RefCell<Record>);

#[derive(Default)]
struct Record {
    networks: Vec<Known>,
    attempt: Option<Current>,
}

/// A network that exists.
struct Known {
    name: String,
    namespaces: Vec<String>,
    stage: String,
}

/// The attempt to measure a cell.
struct Current {
    stage: String,
    /// Names of networks that began in it.
    begun: Vec<String>,
    /// Networks and the state of their hosts.
    states: Vec<(String, String)>,
    /// The folder of captures, if there are any.
    captures_in: Option<PathBuf>,
    captures: Vec<(String, Capture)>,
}

impl Recorder {
    /// A cell of this stage is measured from here on, with captures into a folder if there is one.
    pub(super) fn begin(&self, stage: &str, captures_in: Option<&Path>) {
        self.0.borrow_mut().attempt = Some(Current {
            stage: stage.to_owned(),
            begun: Vec::new(),
            states: Vec::new(),
            captures_in: captures_in.map(Path::to_owned),
            captures: Vec::new(),
        });
    }

    /// The stage has been built: captures begin again, without the packets of the build.
    pub(super) fn is_built(&self) {
        let mut record = self.0.borrow_mut();
        if let Some(attempt) = &mut record.attempt {
            attempt.captures.drain(..).for_each(|(_, capture)| capture.remove());
        }
        record.capture(|_| true);
    }

    /// The attempt is over; the names of the files that it leaves in this folder if it has failed.
    pub(super) fn end(&self, folder: &Path, has_failed: bool) -> Vec<String> {
        let mut record = self.0.borrow_mut();
        if has_failed {
            record.note_all();
        }
        let Some(attempt) = record.attempt.take() else { return Vec::new() };
        if !has_failed {
            attempt.captures.into_iter().for_each(|(_, capture)| capture.remove());
            return Vec::new();
        }
        let mut kept: Vec<_> =
            attempt.captures.into_iter().filter_map(|(_, capture)| capture.keep()).collect();
        let text: String = attempt.states.into_iter().map(|(_, text)| text).collect();
        let name = "failed.txt";
        if !text.is_empty() && write_whole(&folder.join(name), &text).is_ok() {
            kept.push(name.to_owned());
        }
        kept
    }
}

impl Record {
    /// Notes the state of all networks of the stage as it is.
    fn note_all(&mut self) {
        let Some(attempt) = &mut self.attempt else { return };
        for network in self.networks.iter().filter(|network| network.stage == attempt.stage) {
            attempt.states.retain(|(of, _)| *of != network.name);
            attempt.states.push((network.name.clone(), state(&network.namespaces)));
        }
    }

    /// Starts captures on those networks of the stage, if there are to be any.
    fn capture(&mut self, is_meant: impl Fn(&Known) -> bool) {
        let Some(attempt) = &mut self.attempt else { return };
        let Some(folder) = &attempt.captures_in else { return };
        let of_stage = self.networks.iter().filter(|network| network.stage == attempt.stage);
        for network in of_stage.filter(|network| is_meant(network)) {
            let started = network.namespaces.iter().filter_map(|host| Capture::start(folder, host));
            attempt.captures.extend(started.map(|capture| (network.name.clone(), capture)));
        }
    }
}

impl Observer for Recorder {
    /// Networks that ended before in the same attempt did their work: nothing about them is kept.
    fn begins(&self, network: &str, namespaces: Vec<String>) {
        let Ok(mut record) = self.0.try_borrow_mut() else { return };
        let Record { networks, attempt } = &mut *record;
        let Some(attempt) = attempt else { return };
        let exists = |name: &String| networks.iter().any(|known| known.name == *name);
        attempt.states.retain(|(of, _)| exists(of));
        let (captures, ended): (Vec<_>, Vec<_>) = attempt.captures.drain(..).partition(|(of, _)| exists(of));
        attempt.captures = captures;
        ended.into_iter().for_each(|(_, capture)| capture.remove());
        attempt.begun.push(network.to_owned());
        networks.push(Known { name: network.to_owned(), namespaces, stage: attempt.stage.clone() });
        record.capture(|known| known.name == network);
    }

    fn ends(&self, network: &str) {
        let Ok(mut record) = self.0.try_borrow_mut() else { return };
        let Some(at) = record.networks.iter().position(|known| known.name == network) else { return };
        let known = record.networks.remove(at);
        let Some(attempt) = &mut record.attempt else { return };
        let of_it = attempt.captures.iter_mut().filter(|(of, _)| of == network);
        of_it.for_each(|(_, capture)| capture.stop());
        let is_noted = attempt.states.iter().any(|(of, _)| of == network);
        if attempt.begun.iter().any(|name| name == network) && !is_noted && interrupt::check().is_ok() {
            attempt.states.push((known.name, state(&known.namespaces)));
        }
    }

    fn timed_out(&self) {
        if let Ok(mut record) = self.0.try_borrow_mut() {
            record.note_all();
        }
    }
}
