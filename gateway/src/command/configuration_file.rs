//! The configuration file of a command that names none.

use super::failure::Failure;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/etc/sixway";

/// The file that was named, else the default.
///
/// # Errors
/// None was named, and there are several.
pub(super) fn named_or_default(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named.map_or_else(|| default_in(Path::new(FOLDER)), |named| Ok(named.to_owned()))
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
}
