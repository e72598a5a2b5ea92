//! The configuration file of a command that names none.

use super::failure::Failure;
use super::run_directory::RUN_DIRECTORY;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/etc/sixway";

/// The file that was named, else the default.
///
/// # Errors
/// None was named, and there are several.
pub(super) fn named_or_default(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named.map_or_else(|| default_in(Path::new(FOLDER)), |named| Ok(named.to_owned()))
}

/// The same, else that of the site that runs: for commands that look at a gateway.
///
/// # Errors
/// As for [`named_or_default`].
pub(super) fn named_or_running(named: Option<&Path>) -> Result<PathBuf, Failure> {
    match named {
        Some(named) => Ok(named.to_owned()),
        None => running_in(Path::new(FOLDER), Path::new(RUN_DIRECTORY)),
    }
}

fn running_in(folder: &Path, directory: &Path) -> Result<PathBuf, Failure> {
    let usual = default_in(folder)?;
    if usual.exists() {
        return Ok(usual);
    }
    // If there is no site either, the error names the usual file.
    Ok(default_in(directory)?).map(|of_site| if of_site.exists() { of_site } else { usual })
}

/// `sixway.toml`, or the only configuration of the folder: a package's `sixway@home` runs `home.toml`, and advice such as "run
/// `sixway doctor`" must then work as it is.
fn default_in(folder: &Path) -> Result<PathBuf, Failure> {
    let usual = folder.join("sixway.toml");
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_configuration =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml") && path.is_file();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_configuration).collect();
    found.sort();
    match &*found {
        [] => Ok(usual),
        [only] => Ok(only.clone()),
        _ if found.contains(&usual) => Ok(usual),
        several => {
            let names: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::Wrong(format!(
                "there are several configurations; choose one with -c: {}",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_configuration_is_the_default() {
        let folder = std::env::temp_dir().join(format!("sixway-configurations-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let default = || default_in(&folder);
        assert_eq!(default().ok(), Some(at("sixway.toml")));
        assert_eq!(default_in(&at("nowhere")).ok(), Some(at("nowhere/sixway.toml")));
        std::fs::write(at("home.toml"), "").unwrap();
        std::fs::write(at("home.toml~"), "").unwrap();
        assert_eq!(default().ok(), Some(at("home.toml")));
        std::fs::write(at("office.toml"), "").unwrap();
        let Err(Failure::Wrong(said)) = default() else { panic!("two configurations, and one was chosen") };
        let both = format!("{}, {}", at("home.toml").display(), at("office.toml").display());
        assert_eq!(said, format!("there are several configurations; choose one with -c: {both}"));
        std::fs::write(at("sixway.toml"), "").unwrap();
        assert_eq!(default().ok(), Some(at("sixway.toml")));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn without_a_configuration_the_one_of_the_running_site_is_looked_at() {
        let folder = std::env::temp_dir().join(format!("sixway-running-{}", std::process::id()));
        let (etc, run) = (folder.join("etc"), folder.join("run"));
        [&etc, &run].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        assert_eq!(running_in(&etc, &run).ok(), Some(etc.join("sixway.toml")));
        std::fs::write(run.join("site.toml"), "").unwrap();
        assert_eq!(running_in(&etc, &run).ok(), Some(run.join("site.toml")));
        std::fs::write(etc.join("home.toml"), "").unwrap();
        assert_eq!(running_in(&etc, &run).ok(), Some(etc.join("home.toml")));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
