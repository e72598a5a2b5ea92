//! What else the machine does: a full run needs it to do nothing, and each part of a run notes it.

use crate::failure::{Asking as _, Failure, Result};
use crate::measure::Environment;
use crate::results::open_to_append;
use std::io::Write as _;
use std::path::Path;

/// More than this share of stolen time is said.
const STOLEN: f64 = 0.01;

/// Refuses a run at scale 1 on a machine with other load.
///
/// # Errors
/// The machine is not quiet.
pub(super) fn is_quiet_for(scale: f64, before: &Environment, folder: &Path) -> Result<()> {
    // Full-scale runs take hours.
    if scale < 1.0 || before.is_quiet() {
        return Ok(());
    }
    let own = match folder.join("run.json").exists() {
        true => " (the load average still contains the run itself for about two minutes)",
        false => "",
    };
    Err(Failure::Unexpected(format!(
        "a run at scale 1 needs a machine that does nothing else, and its load is {}{own}: wait, or use --noisy",
        before.load
    )))
}

/// Does a part of a run, and notes the machine before and after it, however it ends.
///
/// # Errors
/// That of the part, or the file cannot be written.
pub(super) fn noted(folder: &Path, before: &Environment, part: impl FnOnce() -> Result<()>) -> Result<()> {
    let done = part();
    let noted = Environment::read().and_then(|after| {
        note(folder, [before, &after])?;
        Ok(after)
    });
    done?;
    let share = noted?.steal_since(before);
    if share > STOLEN {
        eprintln!("the hypervisor took {:.1} % of the CPUs' time meanwhile", share * 100.0);
    }
    Ok(())
}

/// Adds a line to `environment.jsonl`.
fn note(folder: &Path, [before, after]: [&Environment; 2]) -> Result<()> {
    let line = serde_json::json!({
        "before": before,
        "after": after,
        "stolen": after.steal_since(before),
    });
    let path = folder.join("environment.jsonl");
    let mut file = open_to_append(&path)?;
    writeln!(file, "{line}").asking(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("sixway-lab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_part_that_is_interrupted_notes_its_environment_too() {
        let folder = folder("noted");
        let before = Environment::read().unwrap();
        let interrupted = noted(&folder, &before, || Err(Failure::Interrupted));
        assert!(matches!(interrupted, Err(Failure::Interrupted)), "{interrupted:?}");
        noted(&folder, &before, || Ok(())).unwrap();
        let lines = std::fs::read_to_string(folder.join("environment.jsonl")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(lines.lines().count(), 2, "{lines}");
    }

    #[test]
    fn a_busy_machine_is_refused_and_the_load_of_the_run_itself_is_explained() {
        let folder = folder("quiet");
        let of = |load| Environment { load, ..Environment::read().unwrap() };
        let said =
            |scale, load| is_quiet_for(scale, &of(load), &folder).map_err(|failure| failure.to_string());
        assert_eq!([said(0.5, 9.0), said(1.0, 0.1)], [Ok(()), Ok(())]);
        let new = said(1.0, 9.0).unwrap_err();
        assert!(new.ends_with("its load is 9: wait, or use --noisy"), "{new}");
        std::fs::write(folder.join("run.json"), "{}").unwrap();
        let resumed = said(1.0, 9.0).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        let own =
            "(the load average still contains the run itself for about two minutes): wait, or use --noisy";
        assert!(resumed.ends_with(own), "{resumed}");
    }
}
