//! The state file of a running gateway: a lock, so that there is one gateway of a name, and a record of what it changed
//! on the host, written before each change. Kernel settings of a gateway that ends while others of its network namespace run
//! stay in its file: they may need them. Who ends last puts back all of them. What was meant to outlive its process, so that
//! packets are carried on without it, goes to the next gateway of the name ([`Heir`]).

mod estate;
mod settings;

use super::forwarding::Setting;
use super::kernel::{self, Route6};
use super::namespace;
use super::notrack;
use super::source_rules::Recorded;
use crate::config::{LinkAddress, SourceRule};
use estate::Estate;
pub use estate::Heir;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use settings::{Changed, sysctl, turn};
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
    /// The process that writes it; 0 once it has ended.
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
    /// What outlives the process, so that the kernel goes on without it.
    #[serde(default)]
    estate: Option<Estate>,
    /// Rules that route by source.
    #[serde(default)]
    rules: Vec<Recorded>,
    /// Whether there is a table of ours in the packet filter.
    #[serde(default)]
    table: bool,
}

impl Contents {
    /// Whether only the network namespace that it was written in can be cleared up.
    fn is_of_namespace(&self) -> bool {
        !(self.settings.is_empty()
            && self.unreachable.is_empty()
            && self.rules.is_empty()
            && self.addresses.is_empty()
            && self.steered.is_empty()
            && self.estate.is_none()
            && !self.table)
    }

    /// Whether a gateway of this will goes on with what is here.
    fn goes_to(&self, heir: Option<&Heir>) -> bool {
        let Some(estate) = self.estate.as_ref().filter(|_| self.namespace == namespace::own()) else {
            return false;
        };
        heir.is_some_and(|heir| heir.device == estate.device) && estate.is_there()
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

/// What was put back of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Kernel settings put back.
    pub settings: usize,
    /// Kernel settings that stay, because another gateway runs in this network namespace.
    pub staying: usize,
    /// Routes removed.
    pub routes: usize,
    /// Addresses removed.
    pub addresses: usize,
    /// Steering programs removed.
    pub programs: usize,
    /// The device that was removed.
    pub device: Option<String>,
    /// Whether the fast path was removed.
    pub fast_path: bool,
    /// Nothing was put back: what carries packets on goes on.
    pub adopted: bool,
    /// Whether the table in the packet filter was removed.
    pub table: bool,
    /// Whether its socket was removed.
    pub socket: bool,
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |count: usize, one: &str, many: &str, done: [&str; 2]| match count {
            0 => None,
            1 => Some(format!("{one} {}", done[0])),
            count => Some(format!("{count} {many} {}", done[1])),
        };
        let removed = ["was removed", "were removed"];
        let staying = ["stays while another gateway runs here", "stay while another gateway runs here"];
        let parts = [
            several(self.settings, "a kernel setting", "kernel settings", ["was put back", "were put back"]),
            several(self.routes, "a route", "routes", removed),
            several(self.addresses, "an address", "addresses", removed),
            several(self.programs, "a steering program", "steering programs", removed),
            self.fast_path.then(|| "the fast path was removed".to_owned()),
            self.device.as_ref().map(|device| format!("{device} was removed")),
            self.table.then(|| "the packet filter's table was removed".to_owned()),
            self.socket.then(|| "its socket was removed".to_owned()),
            several(self.staying, "a kernel setting", "kernel settings", staying),
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
    /// Whether nothing was put back.
    pub fn is_empty(&self) -> bool {
        *self == Self { staying: self.staying, adopted: self.adopted, ..Self::default() }
    }
}

impl Record {
    /// Takes the state file of the gateway `name` in `directory`, which is made if need be. What a gateway of this name left
    /// behind is put back first; kernel settings are taken over if another gateway of this network namespace runs.
    ///
    /// # Errors
    /// Such a gateway runs, or a file operation failed.
    pub fn take(directory: &Path, name: &str) -> Result<(Self, Leftovers), RecordError> {
        Self::take_as(directory, name, None)
    }

    /// As [`Self::take`]; but what the gateway before it meant to outlive it is left as it is, if this one is its heir.
    ///
    /// # Errors
    /// As there.
    pub fn take_as(
        directory: &Path,
        name: &str,
        heir: Option<&Heir>,
    ) -> Result<(Self, Leftovers), RecordError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(|error| RecordError::Io(directory.into(), error))?;
        let _turn = turn(directory);
        Self::take_in_turn(directory, name, heir)
    }

    fn take_in_turn(
        directory: &Path,
        name: &str,
        heir: Option<&Heir>,
    ) -> Result<(Self, Leftovers), RecordError> {
        let path = directory.join(format!("{name}.state"));
        let file = lock(&path, name)?;
        let mut record = Self { contents: read(&file), path, file };
        // The gateway that made it is gone: who listens there now is somebody else.
        record.contents.socket.take_if(|socket| UnixStream::connect(socket).is_ok());
        if record.contents.goes_to(heir) {
            let other =
                record.contents.estate.as_ref().filter(|it| heir.is_some_and(|heir| heir.pins != it.pins));
            if let Some(estate) = other {
                estate.remove_fast_path(name);
            }
            record.contents.process = std::process::id();
            record.write()?;
            return Ok((record, Leftovers { adopted: true, ..Leftovers::default() }));
        }
        // What keeps packets from the host's own stack stays until it is made anew.
        let guards = record.take_guards();
        let left = record.put_back();
        record.contents = Contents {
            process: std::process::id(),
            namespace: namespace::own(),
            settings: std::mem::take(&mut record.contents.settings),
            steered: guards.0,
            table: guards.1,
            ..Contents::default()
        };
        record.write()?;
        Ok((record, left))
    }

    /// Interfaces where a steering program is, and whether there is a table in the packet filter: in this network namespace.
    fn take_guards(&mut self) -> (Vec<String>, bool) {
        if self.contents.namespace != namespace::own() {
            return (Vec::new(), false);
        }
        (std::mem::take(&mut self.contents.steered), std::mem::take(&mut self.contents.table))
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

    /// Notes a rule that is about to be made.
    pub(super) fn rule(&mut self, rule: Recorded) -> Result<(), RecordError> {
        self.contents.rules.push(rule);
        self.write()
    }

    /// Removes a rule, if it was made here.
    pub(super) fn remove_rule(&mut self, rule: &Recorded) -> Result<(), RecordError> {
        if self.contents.rules.contains(rule) {
            rule.remove();
            self.contents.rules.retain(|one| one != rule);
        }
        self.write()
    }

    /// Rules that a gateway before this one made.
    pub(super) fn inherited_rules(&self) -> Vec<SourceRule> {
        self.contents.rules.iter().filter_map(Recorded::rule).collect()
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

    /// Notes interfaces where a steering program is that would stay behind a sudden end. From others that were noted it is removed.
    pub(super) fn steered(&mut self, interfaces: &[String]) -> Result<(), RecordError> {
        let before = std::mem::replace(&mut self.contents.steered, interfaces.to_vec());
        for gone in before.iter().filter(|name| !interfaces.contains(name)) {
            Steering::remove_leftovers(gone);
        }
        self.write()
    }

    /// Notes that the device outlives the process from now on, and what carries packets on.
    pub fn bequeath(&mut self, device: &str, index: u32, pins: &Path) -> Result<(), RecordError> {
        self.contents.estate = Some(Estate { device: device.into(), index, pins: pins.into() });
        self.write()
    }

    /// Nothing outlives the process.
    pub fn keep_to_itself(&mut self) -> Result<(), RecordError> {
        self.contents.estate = None;
        self.write()
    }

    /// Destinations that a gateway before this one made unreachable.
    pub(super) fn inherited_unreachable(&self) -> Vec<Prefix6> {
        self.contents.unreachable.iter().filter_map(|prefix| prefix.parse().ok()).collect()
    }

    /// Addresses that a gateway before this one gave on links.
    pub(super) fn inherited_addresses(&self) -> Vec<LinkAddress> {
        let given = self.contents.addresses.iter();
        given
            .map(|it| LinkAddress { interface: it.interface.clone(), address: it.address, length: it.length })
            .collect()
    }

    /// Leaves everything as it is, for who takes over.
    pub fn leave(mut self) {
        self.contents.process = 0;
        // The number is told in messages alone.
        let _ = self.write();
    }

    /// Notes that the table in the packet filter is about to be made.
    pub(super) fn table(&mut self) -> Result<(), RecordError> {
        if self.contents.table {
            return Ok(());
        }
        self.contents.table = true;
        self.write()
    }

    /// Removes the table in the packet filter, if it was made here or by a gateway before this one.
    pub(super) fn remove_table(&mut self) -> Result<(), RecordError> {
        if !std::mem::take(&mut self.contents.table) {
            return Ok(());
        }
        notrack::remove(self.name());
        self.write()
    }

    /// Makes a kernel setting, having noted what it was. Whether it was another.
    pub fn change(&mut self, (path, value): &Setting) -> Result<bool, RecordError> {
        let before = sysctl(path).map_err(|error| RecordError::Io(path.clone(), error))?;
        if self.contents.settings.iter().any(|it| it.path == *path && it.value == *value && before == *value)
        {
            return Ok(false);
        }
        self.contents.settings.push(Changed::now(path, &before, value));
        self.write()?;
        if before == *value {
            return Ok(false);
        }
        fs::write(path, value).map_err(|error| RecordError::Io(path.clone(), error))?;
        Ok(true)
    }

    /// Puts everything back and gives the file up. Settings stay as they are, and in the file, while another gateway runs in
    /// this network namespace: it may need them. Who ends last puts back those of all.
    pub fn end(self) -> Leftovers {
        let _turn = self.path.parent().and_then(turn);
        self.end_in_turn()
    }

    fn end_in_turn(mut self) -> Leftovers {
        let left = self.put_back();
        self.give_up();
        left
    }

    /// Puts back what the record holds, and the settings of others that ended. What is to stay is in the record afterwards.
    fn put_back(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        let contents = std::mem::take(&mut self.contents);
        self.forget_sessions();
        if contents.namespace == namespace::own() {
            if let Some(estate) = &contents.estate {
                left.fast_path = estate.remove_fast_path(self.name());
                left.device = estate.remove_device();
            }
            left.addresses = contents.addresses.iter().filter(|given| given.remove()).count();
            left.routes = contents.unreachable.iter().filter(|prefix| reachable_again(prefix)).count();
            // What leads into the device before what is excepted.
            left.routes += contents.rules.iter().rev().filter(|rule| rule.remove()).count();
            let programs = contents.steered.iter();
            left.programs = programs.filter(|interface| Steering::remove_leftovers(interface)).count();
            left.table = contents.table && notrack::remove(self.name());
            let mut settings = contents.settings;
            match self.ended_here(&contents.namespace) {
                Some(ended) => {
                    let mut ended: Vec<Self> =
                        ended.into_iter().filter(|one| !one.contents.settings.is_empty()).collect();
                    ended.iter_mut().for_each(|one| settings.append(&mut one.contents.settings));
                    left.settings = settings::put_back(settings);
                    ended.into_iter().for_each(Self::give_up);
                }
                None => {
                    left.staying = settings.iter().filter(|changed| changed.differs()).count();
                    self.contents.settings = settings;
                }
            }
        }
        self.contents.namespace = contents.namespace;
        if let Some(socket) = contents.socket {
            let made = fs::symlink_metadata(&socket).is_ok_and(|there| there.file_type().is_socket());
            left.socket = made && fs::remove_file(socket).is_ok();
        }
        left
    }

    /// Gives the file up: it stays if there is still something to put back.
    fn give_up(mut self) {
        if self.contents.is_of_namespace() || self.contents.socket.is_some() {
            self.contents.process = 0;
            // What it said before is what it would say, and more: nothing is lost if this fails.
            let _ = self.write();
        } else {
            // Whoever comes next would find an empty record: nothing is lost if this fails.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Removes what nobody is to read any more.
    fn forget_sessions(&self) {
        for extension in ["handover", "ports"] {
            // They are not always there.
            let _ = fs::remove_file(self.path.with_extension(extension));
        }
    }

    /// The gateway's name.
    pub(super) fn name(&self) -> &str {
        self.path.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The records of other gateways of the network namespace, all of which have ended; none if one still runs.
    fn ended_here(&self, namespace: &str) -> Option<Vec<Self>> {
        let mut ended = Vec::new();
        for path in states(self.path.parent()?).into_iter().filter(|path| *path != self.path) {
            match lock(&path, "") {
                Ok(file) => ended.push(Self { contents: read(&file), path, file }),
                Err(RecordError::Taken { .. }) => {
                    // One that is being written cannot be read: it counts as one of here, whose settings can be put back later.
                    let its = File::open(&path).map(|file| read(&file).namespace).unwrap_or_default();
                    if its.is_empty() || its == namespace {
                        return None;
                    }
                }
                Err(RecordError::Io(..) | RecordError::Elsewhere(_)) => {}
            }
        }
        ended.retain(|one| one.contents.namespace == namespace);
        Some(ended)
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

/// The gateways that have programs and maps pinned, as their state files say, and where.
pub fn pinned(directory: &Path) -> Vec<(String, PathBuf)> {
    let of = |path: PathBuf| {
        let pins = read(&File::open(&path).ok()?).estate?.pins;
        let name = path.file_stem()?.to_str()?.to_owned();
        (!pins.as_os_str().is_empty()).then_some((name, pins))
    };
    states(directory).into_iter().filter_map(of).collect()
}

/// A gateway that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningGateway {
    /// Its process, if it says so.
    pub process: Option<u32>,
    /// Its admin API's socket, if it says so.
    pub socket: Option<PathBuf>,
}

/// The gateway `name`, if it runs.
pub fn running(directory: &Path, name: &str) -> Option<RunningGateway> {
    let path = directory.join(format!("{name}.state"));
    let file = File::open(&path).ok()?;
    match lock(&path, name) {
        Err(RecordError::Taken { process, .. }) => {
            Some(RunningGateway { process, socket: read(&file).socket })
        }
        Ok(_) | Err(RecordError::Io(..) | RecordError::Elsewhere(_)) => None,
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
        if !path.exists() {
            // It held settings alone, which were put back with those of one before.
            continue;
        }
        done.push((name.to_owned(), clear(directory, &path, name, may_exist)));
    }
    done
}

/// Puts back what the gateway `name` left behind, which does not run any more.
///
/// # Errors
/// As for [`leftovers`].
pub fn clear_up(directory: &Path, name: &str) -> Result<Leftovers, RecordError> {
    clear(directory, &directory.join(format!("{name}.state")), name, namespace::may_exist)
}

fn clear(
    directory: &Path,
    path: &Path,
    name: &str,
    may_exist: fn(&str) -> bool,
) -> Result<Leftovers, RecordError> {
    let _turn = turn(directory);
    let left = read(&*lock(path, name)?);
    let elsewhere = !left.namespace.is_empty() && left.namespace != namespace::own();
    // What is the kernel's vanishes with its namespace.
    if elsewhere && left.is_of_namespace() && may_exist(&left.namespace) {
        return Err(RecordError::Elsewhere(name.into()));
    }
    let (record, left) = Record::take_in_turn(directory, name, None)?;
    let guards = record.end_in_turn();
    Ok(Leftovers { programs: guards.programs, table: guards.table, ..left })
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

#[cfg(test)]
mod tests;
