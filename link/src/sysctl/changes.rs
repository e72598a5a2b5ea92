//! All the settings that a process changes, put back together: at its end, or, if it was killed, at the next start.

use super::{Sysctl, read, write};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the kernel's network settings are.
const NET: &str = "/proc/sys/net";

/// Settings changed so far. Dropping it puts them back, the last first; [`Changes::restore`] also says what failed.
#[derive(Debug)]
pub struct Changes {
    made: Vec<Sysctl>,
    journal: Option<PathBuf>,
    net: PathBuf,
}

impl Changes {
    /// Starts with no changes. `journal` is a file in which they are written down before they are made, so that they survive
    /// the process: what a killed process left in it is put back first, unless somebody changed the setting since.
    ///
    /// # Errors
    /// The journal cannot be read or written, or a setting in it cannot be put back; the message names the path.
    pub fn begin(journal: Option<PathBuf>) -> io::Result<Self> {
        if let Some(path) = &journal {
            undo(path)?;
        }
        Ok(Self { made: Vec::new(), journal, net: NET.into() })
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// As [`Sysctl::set`]; and the journal cannot be written, in which case nothing was changed.
    pub fn set(&mut self, path: impl Into<PathBuf>, value: &str) -> io::Result<()> {
        let path = path.into();
        if let Some(journal) = &self.journal {
            note(journal, &path, &read(&path)?, value)?;
        }
        self.made.push(Sysctl::set(path, value)?);
        Ok(())
    }

    /// Lets `interface` receive packets whose IPv4 source is one of this host's own addresses, which the kernel otherwise
    /// drops without counting them: `accept_local` on, reverse path filtering off.
    ///
    /// The filter in force is the larger of `all` and the interface's. So `all` is turned off, and whatever `all` gave to other
    /// interfaces, present and future ones (`default`), they are given themselves: theirs stays as it was.
    ///
    /// # Errors
    /// As [`Changes::set`].
    pub fn accept_own_addresses(&mut self, interface: &str) -> io::Result<()> {
        let conf = self.net.join("ipv4/conf");
        self.set(conf.join(interface).join("accept_local"), "1")?;
        self.set(conf.join(interface).join("rp_filter"), "0")?;
        let for_all = level(&conf.join("all/rp_filter"))?;
        if for_all == 0 {
            return Ok(());
        }
        for entry in fs::read_dir(&conf)? {
            let name = entry?.file_name();
            let own = conf.join(&name).join("rp_filter");
            // Interfaces come and go at any time.
            if name == "all" || name == interface || !own.exists() {
                continue;
            }
            if level(&own)? < for_all {
                self.set(own, &for_all.to_string())?;
            }
        }
        self.set(conf.join("all/rp_filter"), "0")
    }

    /// Keeps the kernel from giving `interface` a link-local address, and with it from most of the router solicitations and
    /// multicast listener reports that it would send there. To be called before the device is up.
    ///
    /// # Errors
    /// As [`Changes::set`]. `NotFound`: the kernel has no IPv6.
    pub fn no_link_local_address(&mut self, interface: &str) -> io::Result<()> {
        self.set(self.net.join("ipv6/conf").join(interface).join("addr_gen_mode"), "1")
    }

    /// The settings that differ from what they were, in the order of their change: path and earlier value.
    pub fn list(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.made.iter().filter_map(|change| Some((change.path(), change.before()?)))
    }

    /// Puts everything back, the last change first.
    ///
    /// # Errors
    /// The first failure; the other settings are put back nonetheless, and the journal stays for the next start.
    pub fn restore(mut self) -> io::Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        while let Some(change) = self.made.pop() {
            result = result.and(change.restore());
        }
        match (&result, self.journal.take()) {
            (Ok(()), Some(journal)) => remove(&journal),
            _ => result,
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; who wants to know calls `restore`.
        let _ = self.put_back();
    }
}

fn level(path: &Path) -> io::Result<u8> {
    let value = read(path)?;
    value
        .parse()
        .map_err(|_| named(path, io::Error::new(io::ErrorKind::InvalidData, format!("holds \"{value}\""))))
}

/// Writes a line to the journal: path, earlier value, new value.
fn note(journal: &Path, path: &Path, before: &str, value: &str) -> io::Result<()> {
    let line = format!("{}\t{before}\t{value}\n", path.display());
    let file = fs::OpenOptions::new().create(true).append(true).open(journal);
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| named(journal, error))
}

/// Puts back what the journal holds, the last change first, and removes it.
fn undo(journal: &Path) -> io::Result<()> {
    let lines = match fs::read_to_string(journal) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(named(journal, error)),
    };
    for line in lines.lines().rev() {
        // A line that was cut in the middle was not yet followed by its change.
        let mut fields = line.split('\t');
        let (Some(path), Some(before), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let path = Path::new(path);
        if before != value && path.exists() && read(path)? == value {
            write(path, before)?;
        }
    }
    remove(journal)
}

fn remove(journal: &Path) -> io::Result<()> {
    match fs::remove_file(journal) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(journal, error)),
        _ => Ok(()),
    }
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like `/proc/sys/net`, removed at the end.
    struct Net(PathBuf);

    impl Net {
        fn new(test: &str, rp_filters: &[(&str, &str)]) -> Self {
            let path = std::env::temp_dir().join(format!("sixway-net-{}-{test}", std::process::id()));
            for (interface, value) in rp_filters {
                let conf = path.join("ipv4/conf").join(interface);
                fs::create_dir_all(&conf).unwrap();
                fs::write(conf.join("rp_filter"), value).unwrap();
                fs::write(conf.join("accept_local"), "0\n").unwrap();
            }
            Self(path)
        }

        fn changes(&self) -> Changes {
            let mut changes = Changes::begin(Some(self.0.join("journal"))).unwrap();
            changes.net = self.0.clone();
            changes
        }

        fn rp_filters(&self, interfaces: &[&str]) -> Vec<String> {
            let conf = self.0.join("ipv4/conf");
            interfaces.iter().map(|name| read(&conf.join(name).join("rp_filter")).unwrap()).collect()
        }
    }

    impl Drop for Net {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const NAMES: [&str; 5] = ["all", "default", "eth0", "eth1", "tun"];

    fn strict(test: &str) -> Net {
        Net::new(
            test,
            &[("all", "1\n"), ("default", "0\n"), ("eth0", "0\n"), ("eth1", "2\n"), ("tun", "1\n")],
        )
    }

    #[test]
    fn the_filter_is_off_for_one_interface_and_unchanged_for_the_others() {
        let net = strict("off");
        let mut changes = net.changes();
        changes.accept_own_addresses("tun").unwrap();
        assert_eq!(net.rp_filters(&NAMES), ["0", "1", "1", "2", "0"]);
        changes.restore().unwrap();
        assert_eq!(net.rp_filters(&NAMES), ["1", "0", "0", "2", "1"]);
        assert!(!net.0.join("journal").exists());
    }

    #[test]
    fn what_a_killed_process_left_is_put_back_at_the_next_start() {
        let net = strict("killed");
        let mut changes = net.changes();
        changes.accept_own_addresses("tun").unwrap();
        std::mem::forget(changes);
        assert_eq!(net.rp_filters(&NAMES), ["0", "1", "1", "2", "0"]);
        let changes = net.changes();
        assert_eq!(net.rp_filters(&NAMES), ["1", "0", "0", "2", "1"]);
        assert_eq!(changes.list().count(), 0);
    }

    #[test]
    fn a_setting_that_somebody_changed_since_is_left_to_him() {
        let net = strict("since");
        let mut changes = net.changes();
        changes.accept_own_addresses("tun").unwrap();
        std::mem::forget(changes);
        fs::write(net.0.join("ipv4/conf/eth0/rp_filter"), "2\n").unwrap();
        drop(net.changes());
        assert_eq!(net.rp_filters(&NAMES), ["1", "0", "2", "2", "1"]);
    }

    #[test]
    fn a_setting_that_cannot_be_written_is_an_error_that_names_it() {
        let net = Net::new("missing", &[("all", "0\n")]);
        let error = net.changes().accept_own_addresses("tun").unwrap_err();
        assert!(error.to_string().contains("ipv4/conf/tun/accept_local"), "{error}");
    }
}
