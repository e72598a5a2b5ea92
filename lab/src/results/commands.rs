//! Commands and configurations of a run in a file of their own, each once: `data.csv` has none.

use super::cell::Name;
use super::sample::Sample;
use crate::failure::{Asking as _, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file's name.
pub const COMMANDS: &str = "commands.json";

/// What was run for a device in an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// The experiment.
    pub experiment: Name,
    /// The device.
    pub device: Name,
    /// Command lines and configurations.
    pub lines: Vec<String>,
}

/// The different ones of these samples: by experiment and device in the order in which they appear.
pub fn commands(samples: &[Sample]) -> Vec<Commands> {
    let mut all: Vec<(Name, Name, Vec<&[String]>)> = Vec::new();
    for sample in samples.iter().filter(|sample| !sample.commands.is_empty()) {
        let (experiment, device) = (&sample.cell.experiment, &sample.cell.device);
        match all.iter_mut().find(|(of, by, _)| of == experiment && by == device) {
            Some((.., lists)) if lists.contains(&&*sample.commands) => {}
            Some((.., lists)) => lists.push(&sample.commands),
            None => all.push((experiment.clone(), device.clone(), vec![&sample.commands])),
        }
    }
    let of = |(experiment, device, lists): (Name, Name, Vec<&[String]>)| {
        let each = |lines: &[String]| Commands {
            experiment: experiment.clone(),
            device: device.clone(),
            lines: lines.to_vec(),
        };
        lists.into_iter().map(each).collect::<Vec<_>>()
    };
    all.into_iter().flat_map(of).collect()
}

/// Gives samples that were read from a table the commands of a folder, if it has the file: each to a sample of its device.
///
/// # Errors
/// The file is another one.
pub fn add_commands(folder: &Path, samples: &mut [Sample]) -> Result<()> {
    let path = folder.join(COMMANDS);
    if !path.exists() {
        return Ok(());
    }
    let what = || format!("reading {}", path.display());
    let text = std::fs::read(&path).asking(what)?;
    let all: Vec<Commands> = serde_json::from_slice(&text).map_err(std::io::Error::other).asking(what)?;
    for Commands { experiment, device, lines } in all {
        let is_next = |sample: &&mut Sample| {
            sample.cell.experiment == experiment
                && sample.cell.device == device
                && sample.commands.is_empty()
                && sample.failed.is_none()
        };
        if let Some(sample) = samples.iter_mut().find(is_next) {
            sample.commands = lines;
        }
    }
    Ok(())
}
