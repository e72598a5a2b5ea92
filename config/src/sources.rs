//! The text that a configuration was read from, so that the same configuration can be read again after the files have changed.

use crate::config::Config;
use crate::fault::{Faults, Warning};
use crate::host::HostFacts;
use serde::{Deserialize, Serialize};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Files larger than this are not read.
const MAX_FILE: u64 = 512 << 20;

/// The text of a configuration file, and of the files that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The configuration file, as it was named.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// The files that it names, with their text.
    pub others: Vec<(PathBuf, String)>,
}

impl Sources {
    /// Reads and checks a configuration file as [`Config::load`] does, and keeps the text.
    ///
    /// # Errors
    /// Every fault in the file and in the files that it names.
    pub fn load(path: &Path, host: &HostFacts) -> Result<(Config, Vec<Warning>, Self), Faults> {
        let file = path.to_string_lossy();
        let text =
            read_file(path).map_err(|error| Faults::of_file(&file, format!("cannot be read: {error}")))?;
        let mut others = Vec::new();
        let mut read = |path: &Path| {
            let text = read_file(path)?;
            others.push((path.to_owned(), text.clone()));
            Ok(text)
        };
        let (config, warnings) = Config::parse(&file, &text, host, &mut read)?;
        Ok((config, warnings, Self { file: path.into(), text, others }))
    }

    /// The configuration of the text that was kept; no file is read.
    ///
    /// # Errors
    /// Every fault: the host may have changed.
    pub fn config(&self, host: &HostFacts) -> Result<(Config, Vec<Warning>), Faults> {
        let mut read = |path: &Path| {
            let kept = self.others.iter().find(|(other, _)| other == path);
            kept.map(|(_, text)| text.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        Config::parse(&self.file.to_string_lossy(), &self.text, host, &mut read)
    }
}

impl Config {
    /// Reads and checks a configuration file against the facts of a host.
    ///
    /// # Errors
    /// Every fault in the file and in the files that it names.
    pub fn load(path: &Path, host: &HostFacts) -> Result<(Self, Vec<Warning>), Faults> {
        Sources::load(path, host).map(|(config, warnings, _)| (config, warnings))
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    // Before it is opened: opening a named pipe would block for ever.
    let there = std::fs::metadata(path)?;
    if !there.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let too_large = || io::Error::other("larger than 512 MiB");
    if there.len() > MAX_FILE {
        return Err(too_large());
    }
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(too_large());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_text_gives_the_same_configuration_when_the_files_are_others() {
        let folder = std::env::temp_dir().join(format!("sixway-sources-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("sixway.toml");
        let text = "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n\
                    [siit]\nprefix = \"2001:db8:64::/96\"\neam_file = \"eam.txt\"\n";
        std::fs::write(&file, text).unwrap();
        std::fs::write(folder.join("eam.txt"), "192.0.2.1/32 2001:db8:1::1/128\n").unwrap();
        let (config, _, sources) = Sources::load(&file, &HostFacts::default()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let (again, _) = sources.config(&HostFacts::default()).unwrap();
        assert_eq!(again, config);
        assert_eq!(config.siit[0].mappings.table().len(), 1);
        assert!(Sources::load(&file, &HostFacts::default()).is_err());
    }
}
