//! The state file of a running gateway: a lock, so that there is one gateway of a name, and a record of what it changed
//! on the host, written before each change.

use super::forwarding::Setting;
use super::kernel::{self, Route6};
use super::namespace;
use crate::config::LinkAddress;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sixway_fastpath::Steering;
use sixway_link::interface;
use sixway_wire::Prefix6;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::Ipv6Addr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// What a state file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Contents {
    /// The process that writes it.
    process: u32,
    /// The network namespace that the changes were made in, as `/proc/self/ns/net` names it.
    namespace: String,
    /// The Unix socket of the admin API.
    socket: Option<PathBuf>,
    /// Kernel settings changed, in order.
    settings: Vec<Changed>,
    /// Destinations made unreachable.
    #[serde(default)]
    unreachable: Vec<String>,
    /// Addresses given on interfaces that are not ours.
    #[serde(default)]
    addresses: Vec<Given>,
    /// Interfaces with a steering program that stays behind the process.
    #[serde(default)]
    steered: Vec<String>,
}

impl Contents {
    /// Whether only the network namespace that it was written in can be cleared up.
    fn is_of_namespace(&self) -> bool {
        !(self.settings.is_empty()
            && self.unreachable.is_empty()
            && self.addresses.is_empty()
            && self.steered.is_empty())
    }
}

/// An address given on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Given {
    interface: String,
    address: Ipv6Addr,
    length: u8,
}

impl From<&LinkAddress> for Given {
    fn from(it: &LinkAddress) -> Self {
        Self { interface: it.interface.clone(), address: it.address, length: it.length }
    }
}

impl Given {
    /// Takes it away. Whether it was there.
    fn remove(&self) -> bool {
        let index = interface::index(&self.interface);
        index.is_ok_and(|index| kernel::remove_address(index, self.address, self.length).is_ok())
    }
}

/// Removes an unreachable destination. Whether it was there.
fn reachable_again(prefix: &str) -> bool {
    prefix.parse().is_ok_and(|prefix: Prefix6| Route6::Unreachable(prefix).remove().is_ok())
}

/// A changed kernel setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Changed {
    path: PathBuf,
    before: String,
    value: String,
}

/// A gateway's state file, locked while this lives.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: Flock<File>,
    contents: Contents,
}

/// Why a state file cannot be had.
#[derive(Debug)]
pub enum RecordError {
    /// Another process holds it: its number, if it says so.
    Taken {
        /// The gateway's name.
        name: String,
        /// The process.
        process: Option<u32>,
    },
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// It was written in another network namespace that is still there: only from inside can its settings be put back.
    Elsewhere(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { name, process } => {
                write!(f, "a gateway named {name} runs already")?;
                if let Some(process) = process {
                    write!(f, " (process {process})")?;
                }
                f.write_str("; end it first, or give this one another `gateway.name`")
            }
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Elsewhere(name) => {
                write!(f, "{name} ran in another network namespace; clear up after it there")
            }
        }
    }
}

impl std::error::Error for RecordError {}

/// What was put back of a gateway that did not end properly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Kernel settings put back.
    pub settings: usize,
    /// Routes removed.
    pub routes: usize,
    /// Addresses removed.
    pub addresses: usize,
    /// Steering programs removed.
    pub programs: usize,
    /// Whether its socket was removed.
    pub socket: bool,
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |count: usize, one: &str, many: &str, done: [&str; 2]| match count {
            0 => None,
            1 => Some(format!("{one} was {}", done[0])),
            count => Some(format!("{count} {many} were {}", done[1])),
        };
        let removed = ["removed"; 2];
        let parts = [
            several(self.settings, "a kernel setting", "kernel settings", ["put back"; 2]),
            several(self.routes, "a route", "routes", removed),
            several(self.addresses, "an address", "addresses", removed),
            several(self.programs, "a steering program", "steering programs", removed),
            self.socket.then(|| "its socket was removed".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            f.write_str("nothing was to be put back")
        } else {
            f.write_str(&parts.join(", "))
        }
    }
}

impl Leftovers {
    /// Whether there was nothing to put back.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Record {
    /// Takes the state file of the gateway `name` in `directory`, which is made if need be. What a gateway of this name left
    /// behind is put back first.
    ///
    /// # Errors
    /// Such a gateway runs, or a file operation failed.
    pub fn take(directory: &Path, name: &str) -> Result<(Self, Leftovers), RecordError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(|error| RecordError::Io(directory.into(), error))?;
        let path = directory.join(format!("{name}.state"));
        let file = lock(&path, name)?;
        let mut record = Self { contents: read(&file), path, file };
        // The gateway that made it is gone: who listens there now is somebody else.
        record.contents.socket.take_if(|socket| UnixStream::connect(socket).is_ok());
        let left = record.put_back();
        record.contents =
            Contents { process: std::process::id(), namespace: namespace::own(), ..Contents::default() };
        record.write()?;
        Ok((record, left))
    }

    /// Notes the socket that is about to be made, where nothing is that belongs to somebody else.
    pub fn socket(&mut self, path: &Path) -> Result<(), RecordError> {
        self.contents.socket = Some(path.into());
        self.write()
    }

    /// Notes a destination that is about to be made unreachable.
    pub(super) fn unreachable(&mut self, prefix: Prefix6) -> Result<(), RecordError> {
        self.contents.unreachable.push(prefix.to_string());
        self.write()
    }

    /// It was not made unreachable after all.
    pub(super) fn forget_unreachable(&mut self, prefix: Prefix6) -> Result<(), RecordError> {
        let text = prefix.to_string();
        self.contents.unreachable.retain(|one| *one != text);
        self.write()
    }

    /// Removes it, if it was made here.
    pub(super) fn remove_unreachable(&mut self, prefix: Prefix6) -> Result<(), RecordError> {
        let text = prefix.to_string();
        if self.contents.unreachable.contains(&text) {
            reachable_again(&text);
        }
        self.forget_unreachable(prefix)
    }

    /// Notes an address that is about to be given.
    pub(super) fn link_address(&mut self, address: &LinkAddress) -> Result<(), RecordError> {
        self.contents.addresses.push(address.into());
        self.write()
    }

    /// It was not given after all.
    pub(super) fn forget_link_address(&mut self, address: &LinkAddress) -> Result<(), RecordError> {
        let given = Given::from(address);
        self.contents.addresses.retain(|one| *one != given);
        self.write()
    }

    /// Takes it away, if it was given here.
    pub(super) fn remove_link_address(&mut self, address: &LinkAddress) -> Result<(), RecordError> {
        let given = Given::from(address);
        if self.contents.addresses.contains(&given) {
            given.remove();
        }
        self.forget_link_address(address)
    }

    /// Notes interfaces where a steering program is that would stay behind a sudden end.
    pub(super) fn steered(&mut self, interfaces: &[String]) -> Result<(), RecordError> {
        self.contents.steered = interfaces.to_vec();
        self.write()
    }

    /// Makes a kernel setting, having noted what it was. Whether it was another.
    pub fn change(&mut self, (path, value): &Setting) -> Result<bool, RecordError> {
        let before = sysctl(path).map_err(|error| RecordError::Io(path.clone(), error))?;
        self.contents.settings.push(Changed {
            path: path.clone(),
            before: before.clone(),
            value: value.clone(),
        });
        self.write()?;
        if before == *value {
            return Ok(false);
        }
        fs::write(path, value).map_err(|error| RecordError::Io(path.clone(), error))?;
        Ok(true)
    }

    /// Puts everything back and gives the file up. Settings stay as they are while another gateway runs in this network
    /// namespace: it may need them.
    pub fn end(mut self) -> Leftovers {
        if self.others_run() {
            self.contents.settings.clear();
        }
        let left = self.put_back();
        // Whoever comes next would find an empty record: nothing is lost if this fails.
        let _ = fs::remove_file(&self.path);
        left
    }

    /// Puts back what the record holds: settings in reverse order, those that still are what was set.
    fn put_back(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        if self.contents.namespace == namespace::own() {
            left.addresses = self.contents.addresses.iter().filter(|given| given.remove()).count();
            left.routes = self.contents.unreachable.iter().filter(|prefix| reachable_again(prefix)).count();
            let programs = self.contents.steered.iter();
            left.programs = programs.filter(|interface| Steering::remove_leftovers(interface)).count();
            let ours: Vec<&Changed> = self
                .contents
                .settings
                .iter()
                .filter(|changed| sysctl(&changed.path).is_ok_and(|value| value == changed.value))
                .collect();
            for changed in ours.into_iter().rev() {
                let done = fs::write(&changed.path, &changed.before).is_ok();
                left.settings += usize::from(done && changed.before != changed.value);
            }
        }
        if let Some(socket) = self.contents.socket.take() {
            let made = fs::symlink_metadata(&socket).is_ok_and(|there| there.file_type().is_socket());
            left.socket = made && fs::remove_file(socket).is_ok();
        }
        left
    }

    fn others_run(&self) -> bool {
        let Some(directory) = self.path.parent() else { return false };
        states(directory).into_iter().filter(|path| *path != self.path).any(|path| {
            let taken = lock(&path, "").is_err_and(|error| matches!(error, RecordError::Taken { .. }));
            taken && File::open(&path).is_ok_and(|file| read(&file).namespace == self.contents.namespace)
        })
    }

    /// Writes in place: the lock is the file's, not the name's.
    fn write(&mut self) -> Result<(), RecordError> {
        let text = serde_json::to_vec_pretty(&self.contents).map_err(io::Error::from);
        text.and_then(|text| {
            self.file.rewind()?;
            self.file.write_all(&text)?;
            self.file.set_len(text.len() as u64)
        })
        .map_err(|error| RecordError::Io(self.path.clone(), error))
    }
}

/// Puts back what gateways in `directory` left that no longer run. For each state file its name, and what was done or
/// why not.
pub fn leftovers(directory: &Path) -> Vec<(String, Result<Leftovers, RecordError>)> {
    leftovers_among(directory, namespace::may_exist)
}

/// The same, told whether a network namespace may still be there.
fn leftovers_among(
    directory: &Path,
    may_exist: fn(&str) -> bool,
) -> Vec<(String, Result<Leftovers, RecordError>)> {
    let mut done = Vec::new();
    for path in states(directory) {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        done.push((name.to_owned(), clear(directory, &path, name, may_exist)));
    }
    done
}

fn clear(
    directory: &Path,
    path: &Path,
    name: &str,
    may_exist: fn(&str) -> bool,
) -> Result<Leftovers, RecordError> {
    let left = read(&*lock(path, name)?);
    let elsewhere = !left.namespace.is_empty() && left.namespace != namespace::own();
    // What is the kernel's vanishes with its namespace.
    if elsewhere && left.is_of_namespace() && may_exist(&left.namespace) {
        return Err(RecordError::Elsewhere(name.into()));
    }
    let (record, left) = Record::take(directory, name)?;
    record.end();
    Ok(left)
}

fn states(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut states: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "state")).collect();
    states.sort();
    states
}

/// Opens and locks the file; whoever held it before may have removed it in between, then there is a new one.
fn lock(path: &Path, name: &str) -> Result<Flock<File>, RecordError> {
    let failed = |error| RecordError::Io(path.into(), error);
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let file =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(file, error)| match error {
                nix::errno::Errno::EWOULDBLOCK => {
                    let process = read(&file).process;
                    RecordError::Taken { name: name.into(), process: (process != 0).then_some(process) }
                }
                error => failed(error.into()),
            })?;
        let locked = file.metadata().map_err(failed)?.ino();
        if fs::metadata(path).is_ok_and(|named| named.ino() == locked) {
            return Ok(file);
        }
    }
}

/// What the file says; nothing if it was cut short.
fn read(mut file: &File) -> Contents {
    let mut text = String::new();
    let whole = file.rewind().and_then(|()| file.read_to_string(&mut text));
    whole.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn sysctl(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
