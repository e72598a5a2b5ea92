//! `sixway run`.

use super::failure::Failure;
use super::run_directory::RUN_DIRECTORY;
use super::warnings::warn;
use crate::config::{Config, Faults, Sources, Warning};
use crate::{daemon, host};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A configuration, its remarks, and its text.
type Loaded = (Config, Vec<Warning>, Sources);

/// Runs a gateway. After a reload that failed, that is with the previous configuration. `ready` is set when it has started.
pub(super) fn run(file: &Path, takeover: bool, ready: &AtomicBool) -> Result<daemon::Ended, Failure> {
    let mut previous = daemon::Previous::of_this_process();
    let loaded = load(file, &mut previous).map_err(|faults| Failure::Wrong(faults.to_string()))?;
    let (config, warnings, sources) = loaded;
    warn(&warnings, config.gateway.log_format);
    let start = daemon::Start {
        config: &config,
        file,
        sources: &sources,
        previous: previous.as_ref(),
        directory: Path::new(RUN_DIRECTORY),
        takeover,
        ready,
    };
    daemon::run(&start).map_err(|error| Failure::Failed(error.to_string()))
}

/// The configuration. One that was on trial and cannot be read is given up for the previous one.
fn load(file: &Path, previous: &mut Option<(PathBuf, daemon::Previous)>) -> Result<Loaded, Faults> {
    let host = host::host_facts();
    let read = |sources: &Sources| {
        let (config, warnings) = sources.config(&host)?;
        Ok((config, warnings, sources.clone()))
    };
    let Some((_, previous)) = previous else { return Sources::load(file, &host) };
    let wanted = match previous.text() {
        Some(sources) => read(sources),
        None => Sources::load(file, &host),
    };
    match wanted {
        Err(faults) if previous.is_on_trial() => {
            previous.rolled_back = Some(faults.to_string());
            read(&previous.sources)
        }
        wanted => wanted,
    }
}
