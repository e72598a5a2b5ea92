//! The addresses of a dynamic pool on disk: read at start, appended to on changes, rewritten from time to time.

use sixway_dataplane::mechanism::siit::dynamic_pool::{Record, parse_records, write_records};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Minimum number of appended lines before the file is rewritten.
const FEW_LINES: usize = 1_024;

/// A pool's file.
#[derive(Debug)]
pub(super) struct PoolFile {
    path: PathBuf,
    /// Lines after the last rewrite, one for each host.
    whole: usize,
    /// Lines appended since.
    appended: usize,
}

/// The contents of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    /// The records, oldest line first.
    pub records: Vec<Record>,
    /// The numbers of invalid lines (a line may be truncated by a crash).
    pub faults: Vec<usize>,
}

impl PoolFile {
    /// Reads the file; one that does not exist is empty.
    ///
    /// # Errors
    /// It cannot be read, or it is something else: it would be overwritten.
    pub(super) fn load(path: &Path) -> io::Result<(Self, Loaded)> {
        let text = match fs::read(path) {
            Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut loaded = Loaded::default();
        for (line, record) in parse_records(&text) {
            match record {
                Ok(record) => loaded.records.push(record),
                Err(_) => loaded.faults.push(line),
            }
        }
        // Only the last line can be truncated. A file of complete lines without one record is not ours.
        if loaded.records.is_empty() && !loaded.faults.is_empty() && text.contains('\n') {
            return Err(io::Error::other(
                "not the state file of a dynamic pool; remove it, or set another `siit.dynamic_state`",
            ));
        }
        Ok((Self { path: path.into(), whole: 0, appended: loaded.records.len() }, loaded))
    }

    /// Appends records.
    pub(super) fn append(&mut self, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(text(records).as_bytes())?;
        self.appended += records.len();
        Ok(())
    }

    /// Rewrites the file atomically with all records.
    pub(super) fn rewrite(&mut self, records: &[Record]) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let fresh = PathBuf::from(name);
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(text(records).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        (self.whole, self.appended) = (records.len(), 0);
        Ok(())
    }

    /// Whether enough was appended that the file should be rewritten.
    pub(super) fn is_long(&self) -> bool {
        self.appended > FEW_LINES.max(2 * self.whole)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn text(records: &[Record]) -> String {
    let mut text = String::with_capacity(64 * records.len());
    // Writing to a string cannot fail.
    let _ = write_records(records.iter().copied(), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u32) -> Record {
        Record { address: number.into(), host: u128::from(number).into(), last_seen: u64::from(number) }
    }

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("sixway-pool-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_written_and_appended_is_read_again() {
        let directory = Directory::new("read");
        let path = directory.0.join("deep/dynamic.state");
        let (mut file, loaded) = PoolFile::load(&path).unwrap();
        assert_eq!(loaded, Loaded::default());
        file.rewrite(&[record(1)]).unwrap();
        file.append(&[record(2), record(3)]).unwrap();
        let (mut file, loaded) = PoolFile::load(&path).unwrap();
        assert_eq!(loaded.records, [record(1), record(2), record(3)]);
        file.rewrite(&[record(4)]).unwrap();
        assert_eq!(PoolFile::load(&path).unwrap().1.records, [record(4)]);
        assert!(!directory.0.join("deep/dynamic.state.new").exists());
    }

    #[test]
    fn what_is_not_a_state_is_refused() {
        let directory = Directory::new("other");
        fs::create_dir_all(&directory.0).unwrap();
        let path = directory.0.join("sixway.toml");
        fs::write(&path, "[siit]\nprefix = \"2001:db8::/32\"\n").unwrap();
        assert!(PoolFile::load(&path).unwrap_err().to_string().contains("not the state file"));
        fs::write(&path, "192.0.2.1 2001:d").unwrap();
        assert_eq!(PoolFile::load(&path).unwrap().1, Loaded { records: Vec::new(), faults: vec![1] });
    }

    #[test]
    fn a_line_that_was_cut_short_costs_only_itself() {
        let directory = Directory::new("cut");
        let path = directory.0.join("dynamic.state");
        let (mut file, _) = PoolFile::load(&path).unwrap();
        file.rewrite(&[record(1), record(2)]).unwrap();
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"172.16.0.9 2001:\n\xff\xfe\n")
            .unwrap();
        file.append(&[record(3)]).unwrap();
        let (_, loaded) = PoolFile::load(&path).unwrap();
        assert_eq!(loaded.records, [record(1), record(2), record(3)]);
        assert_eq!(loaded.faults, [3, 4]);
    }

    #[test]
    fn a_file_grows_long_by_appending() {
        let directory = Directory::new("long");
        let (mut file, _) = PoolFile::load(&directory.0.join("dynamic.state")).unwrap();
        file.rewrite(&[record(1)]).unwrap();
        file.append(&vec![record(2); FEW_LINES]).unwrap();
        assert!(!file.is_long());
        file.append(&[record(3)]).unwrap();
        assert!(file.is_long());
        file.rewrite(&[record(1)]).unwrap();
        assert!(!file.is_long());
    }
}
