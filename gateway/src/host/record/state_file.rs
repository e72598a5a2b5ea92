//! A gateway's state file: what it changed on the host, written before it is done.

use super::contents::{AddedAddress, AddedProxy, Contents, read, read_of};
use super::error::RecordError;
use super::found_device::FoundDevice;
use super::leftovers::Leftovers;
use super::listing::states;
use super::lock::{lock, lock_after_end, turn};
use super::persistent::{Persistent, Successor};
use super::settings::{self, Changed, sysctl};
use crate::config::{LinkAddress, ProxyNeighbour, SourceRule};
use crate::host::blackholes;
use crate::host::forwarding::Setting;
use crate::host::kernel::Route6;
use crate::host::namespace;
use crate::host::notrack;
use crate::host::proxy_neighbours;
use crate::host::realm_rules::{RealmDevice, RealmRule, remove_last_resort};
use crate::host::route_mark::RouteMark;
use crate::host::source_rules::Recorded;
use nix::fcntl::{Flock, FlockArg};
use sixway_fastpath::Steering;
use sixway_wire::{Prefix4, Prefix6};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Removes an unreachable destination. Whether it was there.
fn reachable_again(prefix: &str, mark: RouteMark) -> bool {
    prefix.parse().is_ok_and(|prefix: Prefix6| Route6::Unreachable(prefix).remove(mark).is_ok())
}

/// A gateway's state file, locked while this lives.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: Flock<File>,
    contents: Contents,
}

impl Record {
    /// Takes the state file of the gateway `name` in `directory`, which is made if need be. What a gateway of this name left
    /// behind is restored first; kernel settings are taken over if another gateway of this network namespace runs.
    ///
    /// # Errors
    /// Such a gateway runs, or a file operation failed.
    pub fn take(directory: &Path, name: &str) -> Result<(Self, Leftovers), RecordError> {
        Self::take_as(directory, name, None)
    }

    /// As [`Self::take`]; but persistent objects of the previous process are kept, if this process is its successor.
    ///
    /// # Errors
    /// As there.
    pub fn take_as(
        directory: &Path,
        name: &str,
        successor: Option<&Successor>,
    ) -> Result<(Self, Leftovers), RecordError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(|error| RecordError::Io(directory.into(), error))?;
        let _turn = turn(directory);
        Self::take_in_turn(directory, name, successor)
    }

    pub(super) fn take_in_turn(
        directory: &Path,
        name: &str,
        successor: Option<&Successor>,
    ) -> Result<(Self, Leftovers), RecordError> {
        let path = directory.join(format!("{name}.state"));
        let file = lock_after_end(&path, name)?;
        let contents = read_of(&path, &file)?;
        let mut record = Self { contents, path, file };
        // The gateway that made it is gone: what listens there now is another process.
        record.contents.socket.take_if(|socket| UnixStream::connect(socket).is_ok());
        if record.contents.goes_to(successor) {
            let other = record
                .contents
                .persistent
                .as_ref()
                .filter(|it| successor.is_some_and(|successor| successor.pins != it.pins));
            if let Some(persistent) = other {
                persistent.remove_fast_path(name);
            }
            record.contents.process = std::process::id();
            record.write()?;
            return Ok((record, Leftovers { adopted: true, ..Leftovers::default() }));
        }
        // What keeps packets from the host's own stack stays until it is replaced.
        let guards = record.take_guards();
        let left = record.put_back();
        // Sessions that were handed over stay: also a process with another device continues with them.
        record.forget(&["ports"]);
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

    /// Notes the socket that is about to be made, where nothing is that belongs to another process.
    pub fn socket(&mut self, path: &Path) -> Result<(), RecordError> {
        self.contents.socket = Some(path.into());
        self.write()
    }

    /// Notes a destination that is about to be made unreachable.
    pub(in crate::host) fn unreachable(&mut self, prefix: Prefix6) -> Result<(), RecordError> {
        let text = prefix.to_string();
        if self.contents.unreachable.contains(&text) {
            return Ok(());
        }
        self.contents.unreachable.push(text);
        self.write()
    }

    /// It was not made unreachable after all.
    pub(in crate::host) fn forget_unreachable(&mut self, prefix: Prefix6) -> Result<(), RecordError> {
        let text = prefix.to_string();
        self.contents.unreachable.retain(|one| *one != text);
        self.write()
    }

    /// Removes it, if it was made here.
    pub(in crate::host) fn remove_unreachable(&mut self, prefix: Prefix6) -> Result<(), RecordError> {
        let text = prefix.to_string();
        if self.contents.unreachable.contains(&text) {
            reachable_again(&text, self.contents.route_mark);
        }
        self.forget_unreachable(prefix)
    }

    /// Notes a rule that is about to be made.
    pub(in crate::host) fn rule(&mut self, rule: Recorded) -> Result<(), RecordError> {
        if self.contents.rules.contains(&rule) {
            return Ok(());
        }
        self.contents.rules.push(rule);
        self.write()
    }

    /// Removes a rule, if it was made here.
    pub(in crate::host) fn remove_rule(&mut self, rule: &Recorded) -> Result<(), RecordError> {
        if self.contents.rules.contains(rule) {
            rule.remove(self.contents.route_mark);
            self.contents.rules.retain(|one| one != rule);
            if !self.contents.rules.iter().any(|other| other.shares_table(rule)) {
                rule.remove_last_resort(self.contents.route_mark);
            }
        }
        self.write()
    }

    /// Records the state of a device that another program created.
    pub(in crate::host) fn found(&mut self, device: FoundDevice) -> Result<(), RecordError> {
        self.contents.found_device = Some(device);
        self.write()
    }

    /// The device, if another program created it.
    pub(in crate::host) fn found_device(&self) -> Option<&FoundDevice> {
        self.contents.found_device.as_ref()
    }

    /// The protocol number of the gateway's routes and rules.
    pub(in crate::host) fn route_mark(&self) -> RouteMark {
        self.contents.route_mark
    }

    /// The kernel settings that were changed, and their values: of one that was changed several times, the last.
    pub(in crate::host) fn settings(&self) -> impl Iterator<Item = (&Path, &str)> {
        let all = &self.contents.settings;
        let changed = all.iter().enumerate().filter(|(place, changed)| {
            let is_last = !all[place + 1..].iter().any(|later| later.path == changed.path);
            is_last && all.iter().any(|it| it.path == changed.path && it.differs())
        });
        changed.map(|(_, changed)| (&*changed.path, &*changed.value))
    }

    /// Rules of a previous process.
    pub(in crate::host) fn inherited_rules(&self) -> Vec<SourceRule> {
        self.contents.rules.iter().filter_map(Recorded::rule).collect()
    }

    /// Notes an address that is about to be added.
    pub(in crate::host) fn link_address(&mut self, address: &LinkAddress) -> Result<(), RecordError> {
        self.contents.addresses.push(address.into());
        self.write()
    }

    /// It was not added after all.
    pub(in crate::host) fn forget_link_address(&mut self, address: &LinkAddress) -> Result<(), RecordError> {
        let added = AddedAddress::from(address);
        self.contents.addresses.retain(|one| *one != added);
        self.write()
    }

    /// Takes it away, if it was added here.
    pub(in crate::host) fn remove_link_address(&mut self, address: &LinkAddress) -> Result<(), RecordError> {
        let added = AddedAddress::from(address);
        if self.contents.addresses.contains(&added) {
            added.remove();
        }
        self.forget_link_address(address)
    }

    /// Notes proxy neighbour entries that are about to be made.
    pub(in crate::host) fn proxies(&mut self, proxies: &[ProxyNeighbour]) -> Result<(), RecordError> {
        let noted: HashSet<AddedProxy> = self.contents.proxies.iter().cloned().collect();
        let new = proxies.iter().map(AddedProxy::from).filter(|one| !noted.contains(one));
        self.contents.proxies.extend(new);
        self.write()
    }

    /// Removes those that were made here.
    pub(in crate::host) fn remove_proxies(&mut self, proxies: &[ProxyNeighbour]) -> Result<(), RecordError> {
        let wanted: HashSet<AddedProxy> = proxies.iter().map(AddedProxy::from).collect();
        let gone: Vec<ProxyNeighbour> = self
            .contents
            .proxies
            .extract_if(.., |one| wanted.contains(one))
            .map(|one| (&one).into())
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        proxy_neighbours::remove(&gone);
        self.write()
    }

    /// Those that were made here, by a previous process perhaps.
    pub(in crate::host) fn added_proxies(&self) -> Vec<ProxyNeighbour> {
        self.contents.proxies.iter().map(ProxyNeighbour::from).collect()
    }

    /// Notes interfaces where a steering program is that would stay behind a sudden end. From others that were noted it is removed.
    pub(in crate::host) fn steered(&mut self, interfaces: &[String]) -> Result<(), RecordError> {
        let before = std::mem::replace(&mut self.contents.steered, interfaces.to_vec());
        for gone in before.iter().filter(|name| !interfaces.contains(name)) {
            Steering::remove_leftovers(self.name(), gone);
        }
        self.write()
    }

    /// Notes that the device and the fast path outlive the process.
    pub(in crate::host) fn keep_for_successor(
        &mut self,
        (device, index): (&str, u32),
        pins: &Path,
        realms: Vec<RealmDevice>,
    ) -> Result<(), RecordError> {
        self.contents.persistent =
            Some(Persistent { device: device.into(), index, pins: pins.into(), realms });
        self.write()
    }

    /// The devices of realms that a previous process left.
    pub(in crate::host) fn inherited_realms(&self) -> Vec<RealmDevice> {
        self.contents.persistent.as_ref().map(|it| it.realms.clone()).unwrap_or_default()
    }

    /// Notes rules of realms that are about to be made.
    pub(in crate::host) fn realm_rules(&mut self, rules: &[RealmRule]) -> Result<(), RecordError> {
        let known = &mut self.contents.realm_rules;
        rules.iter().for_each(|rule| {
            if !known.contains(rule) {
                known.push(rule.clone());
            }
        });
        self.write()
    }

    /// Removes the default routes into devices of realms whose table is not among these rules any more. What is looked up there is
    /// unreachable then.
    pub(in crate::host) fn remove_realm_defaults_but(&self, wanted: &[RealmRule]) {
        let devices = self.inherited_realms();
        for rule in self.contents.realm_rules.iter().filter(|rule| !wanted.contains(rule)) {
            if let Some(device) = devices.iter().find(|device| device.name == rule.interface) {
                device.remove_default(rule.table, self.contents.route_mark);
            }
        }
    }

    /// Removes all rules of realms but these.
    pub(in crate::host) fn keep_realm_rules(&mut self, wanted: &[RealmRule]) -> Result<(), RecordError> {
        let mark = self.contents.route_mark;
        let gone: Vec<RealmRule> =
            self.contents.realm_rules.extract_if(.., |rule| !wanted.contains(rule)).collect();
        for rule in &gone {
            rule.remove(mark);
            if !wanted.iter().any(|other| other.shares_table(rule)) {
                remove_last_resort(rule.table, mark);
            }
        }
        if gone.is_empty() { Ok(()) } else { self.write() }
    }

    /// Notes that the rest of a VRF's table is about to become unreachable.
    pub(in crate::host) fn vrf_table(&mut self, table: u32) -> Result<(), RecordError> {
        if self.contents.vrf_tables.contains(&table) {
            return Ok(());
        }
        self.contents.vrf_tables.push(table);
        self.write()
    }

    /// Removes what is in tables of VRFs, but for these devices and tables.
    pub(in crate::host) fn keep_vrf_tables(&mut self, wanted: &[(&str, u32)]) -> Result<(), RecordError> {
        let mark = self.contents.route_mark;
        for device in self.inherited_realms() {
            let strange = |table: &&u32| !wanted.contains(&(&device.name, **table));
            let tables = self.contents.vrf_tables.iter().filter(strange);
            tables.for_each(|table| device.remove_default(*table, mark));
        }
        let is_wanted = |table: &u32| wanted.iter().any(|(_, other)| other == table);
        let gone: Vec<u32> = self.contents.vrf_tables.extract_if(.., |table| !is_wanted(table)).collect();
        gone.iter().for_each(|table| remove_last_resort(*table, mark));
        if gone.is_empty() { Ok(()) } else { self.write() }
    }

    /// Records IPv4 destinations that are about to be made unreachable without the device.
    pub(in crate::host) fn blackholes(&mut self, prefixes: &[Prefix4]) -> Result<(), RecordError> {
        let noted: HashSet<String> = self.contents.blackholes.iter().cloned().collect();
        let new = prefixes.iter().map(ToString::to_string).filter(|text| !noted.contains(text));
        self.contents.blackholes.extend(new);
        self.write()
    }

    /// Removes those that were made here.
    pub(in crate::host) fn remove_blackholes(&mut self, prefixes: &[Prefix4]) -> Result<(), RecordError> {
        let wanted: HashSet<String> = prefixes.iter().map(ToString::to_string).collect();
        let gone = self.contents.blackholes.extract_if(.., |text| wanted.contains(text));
        let gone: Vec<Prefix4> = gone.filter_map(|text| text.parse().ok()).collect();
        if gone.is_empty() {
            return Ok(());
        }
        blackholes::remove(&gone, self.contents.route_mark);
        self.write()
    }

    /// Those of a previous process.
    pub(in crate::host) fn inherited_blackholes(&self) -> Vec<Prefix4> {
        self.contents.blackholes.iter().filter_map(|prefix| prefix.parse().ok()).collect()
    }

    /// Nothing outlives the process.
    pub fn keep_to_itself(&mut self) -> Result<(), RecordError> {
        self.contents.persistent = None;
        self.write()
    }

    /// Unreachable routes of a previous process.
    pub(in crate::host) fn inherited_unreachable(&self) -> Vec<Prefix6> {
        self.contents.unreachable.iter().filter_map(|prefix| prefix.parse().ok()).collect()
    }

    /// Addresses that a previous process added to links.
    pub(in crate::host) fn inherited_addresses(&self) -> Vec<LinkAddress> {
        let added = self.contents.addresses.iter();
        added
            .map(|it| LinkAddress { interface: it.interface.clone(), address: it.address, length: it.length })
            .collect()
    }

    /// Leaves everything as it is, for who takes over.
    pub fn leave(mut self) {
        self.contents.process = 0;
        // The process ID is used only in messages.
        let _ = self.write();
    }

    /// Notes that the table in the packet filter is about to be made.
    pub(in crate::host) fn table(&mut self) -> Result<(), RecordError> {
        if self.contents.table {
            return Ok(());
        }
        self.contents.table = true;
        self.write()
    }

    /// Removes the table in the packet filter, if this process or a previous one created it.
    pub(in crate::host) fn remove_table(&mut self) -> Result<(), RecordError> {
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

    pub(super) fn end_in_turn(mut self) -> Leftovers {
        let left = self.put_back();
        self.forget(&["handover", "ports"]);
        self.give_up();
        left
    }

    /// Puts back what the record holds, and the settings of others that ended. What is to stay is in the record afterwards.
    fn put_back(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        let contents = std::mem::take(&mut self.contents);
        if contents.namespace == namespace::own() {
            if let Some(persistent) = &contents.persistent {
                left.fast_path = persistent.remove_fast_path(self.name());
                if contents.found_device.is_none() {
                    left.device = persistent.remove_device();
                }
                persistent.realms.iter().for_each(|realm| drop(realm.remove()));
            }
            let mark = contents.route_mark;
            if let Some(device) = &contents.found_device {
                (left.routes, left.addresses) = device.put_back(mark);
            }
            let proxies: Vec<ProxyNeighbour> = contents.proxies.iter().map(ProxyNeighbour::from).collect();
            left.proxies = if proxies.is_empty() { 0 } else { proxy_neighbours::remove(&proxies) };
            left.addresses += contents.addresses.iter().filter(|added| added.remove()).count();
            left.routes += contents.unreachable.iter().filter(|prefix| reachable_again(prefix, mark)).count();
            let blackholes: Vec<Prefix4> =
                contents.blackholes.iter().filter_map(|prefix| prefix.parse().ok()).collect();
            left.routes += blackholes::remove(&blackholes, mark);
            // What leads into the device before what is excepted.
            left.routes += contents.rules.iter().rev().filter(|rule| rule.remove(mark)).count();
            contents.rules.iter().for_each(|rule| rule.remove_last_resort(mark));
            left.routes += contents.realm_rules.iter().filter(|rule| rule.remove(mark)).count();
            let of_rules = contents.realm_rules.iter().map(|rule| rule.table);
            of_rules.chain(contents.vrf_tables).for_each(|table| remove_last_resort(table, mark));
            let programs = contents.steered.iter();
            left.programs =
                programs.filter(|interface| Steering::remove_leftovers(self.name(), interface)).count();
            left.table = contents.table && notrack::remove(self.name());
            let mut settings = contents.settings;
            match self.ended_here(&contents.namespace) {
                Some(ended) => {
                    let mut ended: Vec<Self> =
                        ended.into_iter().filter(|one| !one.contents.settings.is_empty()).collect();
                    ended.iter_mut().for_each(|one| settings.append(&mut one.contents.settings));
                    (left.settings, left.forwarding) = settings::put_back(settings);
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

    /// Releases the file. It stays if something still has to be restored.
    fn give_up(mut self) {
        if self.contents.is_of_namespace() || self.contents.socket.is_some() {
            self.contents.process = 0;
            // What it said before is what it would say, and more: nothing is lost if this fails.
            let _ = self.write();
        } else {
            // The next process would find an empty record: nothing is lost if this fails.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Removes files that are no longer valid.
    fn forget(&self, extensions: &[&str]) {
        for extension in extensions {
            // They are not always there.
            let _ = fs::remove_file(self.path.with_extension(extension));
        }
    }

    /// The gateway's name.
    pub(in crate::host) fn name(&self) -> &str {
        self.path.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The records of the other gateways of the network namespace if all have ended; `None` if one still runs.
    fn ended_here(&self, namespace: &str) -> Option<Vec<Self>> {
        let mut ended = Vec::new();
        for path in states(self.path.parent()?).into_iter().filter(|path| *path != self.path) {
            match lock(&path, "") {
                Ok(file) => match read(&file) {
                    Ok(contents) => ended.push(Self { contents, path, file }),
                    // Its changes are unknown; it stays, to be repaired.
                    Err(error) => tracing::warn!("{}", RecordError::Damaged(path, error)),
                },
                Err(RecordError::Taken { .. }) => {
                    // One that cannot be read counts as one of here: settings can be restored later.
                    let its = File::open(&path)
                        .and_then(|file| read(&file))
                        .map(|it| it.namespace)
                        .unwrap_or_default();
                    if its.is_empty() || its == namespace {
                        return None;
                    }
                }
                Err(RecordError::Io(..) | RecordError::Damaged(..) | RecordError::Elsewhere(_)) => {}
            }
        }
        ended.retain(|one| one.contents.namespace == namespace);
        Some(ended)
    }

    /// Writes another file, locks it and gives it the name: a crash leaves the one or the other, and the name's file is locked
    /// at any time.
    fn write(&mut self) -> Result<(), RecordError> {
        let replace = || {
            let text = serde_json::to_vec_pretty(&self.contents)?;
            let aside = self.path.with_extension("new");
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&aside)?;
            let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
            file.write_all(&text)?;
            file.sync_data()?;
            fs::rename(&aside, &self.path)?;
            Ok(file)
        };
        self.file = replace().map_err(|error: io::Error| RecordError::Io(self.path.clone(), error))?;
        Ok(())
    }
}
