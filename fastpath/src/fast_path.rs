//! The fast path as a whole: maps and links that outlive the process, programs that follow the configuration.

use crate::ahead::Ahead;
use crate::attach::{attach, detach, xdp_demand};
use crate::control::Control;
use crate::counts::Counts;
use crate::error::FastPathError;
use crate::flows::FlowTable;
use crate::inherited::{look, open_control, open_table};
use crate::interface;
use crate::layout::{COUNTERS, Counter, Device};
use crate::next_hops::NextHops;
use crate::pins::Pins;
use crate::probe::complete;
use crate::programs::{Objects, Programs};
use crate::settings::{Attached, Found, LeftOut, Mode, Rules, Settings};
use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray};
use aya::programs::{SchedClassifier, Xdp};
use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The programs, loaded, and the maps that they share with the gateway. Dropping it changes nothing: pinned objects continue until
/// [`FastPath::end`] or [`crate::remove_all`].
#[derive(Debug)]
pub struct FastPath {
    pins: Pins,
    /// See [`Settings::mode`] and [`Settings::clsact`].
    mode: (Mode, bool),
    buckets: u32,
    programs: Programs,
    attached: Vec<Attached>,
    left_out: Vec<LeftOut>,
    found: Found,
    control: Arc<Control>,
    table: Arc<FlowTable>,
    next_hops: Arc<NextHops>,
    counters: Map,
    devices: HashMap<MapData, u32, Device>,
    narrow_paths: HashMap<MapData, [u8; 4], u8>,
}

/// What the previous process left, opened. Attached programs keep running with their own configuration.
#[derive(Debug)]
pub struct Opened {
    pins: Pins,
    found: Found,
    buckets: u32,
    rules: Rules,
    /// If there were maps.
    table: Option<(Arc<Control>, Arc<FlowTable>)>,
    ahead: Option<Ahead>,
}

/// Programs with their maps, not verified yet.
#[derive(Debug)]
pub struct Prepared {
    objects: Objects,
    rules: Rules,
}

/// Programs that can be attached.
#[derive(Debug)]
pub struct Loaded {
    programs: Programs,
    rules: Rules,
}

impl Opened {
    /// The flow table of the previous process, whose flows may be adopted before programs are loaded; `None`: it does not exist.
    pub fn table(&self) -> Option<&Arc<FlowTable>> {
        self.table.as_ref().map(|(_, table)| table)
    }

    /// Takes programs that were loaded before, if they are what [`Self::load`] would load.
    pub fn with(self, ahead: Option<Ahead>) -> Self {
        Self { ahead, ..self }
    }

    /// Makes what is missing, and loads the programs, if they were not loaded ahead. No packet comes to them until [`FastPath::attach`].
    ///
    /// # Errors
    /// Why not, and how to fix it. New maps may remain, without a program.
    pub fn load(self, settings: &Settings) -> Result<FastPath, FastPathError> {
        let Self { pins, found, buckets, rules, table, ahead } = self;
        let xdp_demand = xdp_demand(settings.mode, &settings.interfaces);
        let stamp = Programs::stamp(&rules, xdp_demand, &pins);
        let given = ahead.and_then(|ahead| ahead.programs(stamp));
        let programs = match given.or_else(|| Programs::left(&pins, stamp, xdp_demand)) {
            Some(programs) => programs,
            None => Objects::open(&rules, &pins, buckets, xdp_demand)?.load()?,
        };
        pins.forget_ahead();
        let (control, table) = match table {
            Some(both) => both,
            None => {
                let control = open_control(&pins)?;
                control.begin(&settings.gateway, buckets).map_err(FastPathError::when("make a secret"))?;
                open_table(&pins, control, settings.capacity, &rules)?
            }
        };
        // Retires flows that were not adopted and belong to no translator, before programs are attached.
        table.set_translators(&rules.config);
        let hops = pins.map("next_hops")?;
        let next_hops = NextHops::of_map(hops.fd().as_fd(), control.clone());
        let failed = || FastPathError::when("open the maps");
        Ok(FastPath {
            counters: Map::PerCpuArray(pins.map("counters")?),
            devices: HashMap::try_from(Map::HashMap(pins.map("devices")?)).map_err(failed())?,
            narrow_paths: HashMap::try_from(Map::HashMap(pins.map("narrow_paths")?)).map_err(failed())?,
            next_hops: Arc::new(next_hops.map_err(FastPathError::when("map the next hops"))?),
            table,
            mode: (settings.mode, settings.clsact),
            attached: Vec::new(),
            left_out: Vec::new(),
            buckets,
            control,
            found,
            pins,
            programs,
        })
    }
}

impl Prepared {
    /// Loads the programs, which takes the kernel a second or two.
    ///
    /// # Errors
    /// The kernel's.
    pub fn load(self) -> Result<Loaded, FastPathError> {
        Ok(Loaded { programs: self.objects.load()?, rules: self.rules })
    }
}

impl FastPath {
    /// Opens the maps of the previous process if their version and size match; removes them otherwise. Flows of mechanisms that the new
    /// configuration lacks can be retired immediately ([`Opened::table`], [`FlowTable::adopt`]).
    ///
    /// # Errors
    /// Why not, and how to fix it.
    pub fn open(settings: &Settings) -> Result<Opened, FastPathError> {
        let buckets = FlowTable::buckets_for(settings.capacity);
        let (pins, found) = look(settings, buckets)?;
        let rules = complete(&settings.rules);
        let table = match found {
            Found::Kept => Some(open_table(&pins, open_control(&pins)?, settings.capacity, &rules)?),
            _ => None,
        };
        Ok(Opened { pins, found, buckets, rules, table, ahead: None })
    }

    /// [`Self::open`], and [`Opened::load`].
    ///
    /// # Errors
    /// As there.
    pub fn load(settings: &Settings) -> Result<Self, FastPathError> {
        Self::open(settings)?.load(settings)
    }

    /// Attaches the programs to these interfaces, for which they were loaded, replacing earlier ones, and detaches them from all others.
    /// This does not enable the fast path: see [`Control::enable`]. An interface that no longer exists is [left out](Self::left_out); with
    /// [`Mode::Auto`] so is one that refuses the programs.
    ///
    /// # Errors
    /// A required interface refused, or all of them did. Programs attached so far stay attached until [`Self::end`].
    pub fn attach(&mut self, interfaces: &[String]) -> Result<&[Attached], FastPathError> {
        let (mut new, mut left_out, mut refused) = (Vec::new(), Vec::new(), None);
        for interface in interfaces {
            match attach(&mut self.programs, &self.pins, self.mode, interface) {
                Ok(attached) => new.push(attached),
                Err(error) => {
                    let ifindex = interface::index(interface);
                    let why = error.to_string();
                    left_out.push(LeftOut { interface: interface.clone(), ifindex, why });
                    // A vanished interface is never the reason of a failure.
                    refused = refused.or(ifindex.map(|_| error));
                }
            }
        }
        if let Some(error) = refused.filter(|_| self.mode.0 != Mode::Auto || new.is_empty()) {
            return Err(error);
        }
        for gone in self.attached.iter().filter(|old| !new.iter().any(|new| new.ifindex == old.ifindex)) {
            detach(&self.pins, gone);
        }
        if self.attached.is_empty() {
            // The previous process may have attached clsact filters elsewhere; they have no pins.
            let hung: Vec<String> = new.iter().map(|it| it.interface.clone()).collect();
            self.pins.unfilter_all_but(&hung);
        }
        for (hook, ifindex) in self.pins.linked() {
            if !new.iter().any(|attached| attached.ifindex == ifindex) {
                self.pins.unlink(&hook, ifindex);
            }
        }
        (self.attached, self.left_out) = (new, left_out);
        Ok(&self.attached)
    }

    /// Prepares programs with these rules, for these interfaces. [`Prepared::load`] loads them while the old ones keep running, and
    /// [`Self::exchange`] attaches them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn prepare(&self, rules: &Rules, interfaces: &[String]) -> Result<Prepared, FastPathError> {
        let rules = complete(rules);
        let objects = Objects::open(&rules, &self.pins, self.buckets, xdp_demand(self.mode.0, interfaces))?;
        Ok(Prepared { objects, rules })
    }

    /// Attaches new programs to the interfaces that they were prepared for, each replacing the old one atomically: every packet sees exactly
    /// one of them. Maps and flows are kept; the caller first removes flows that the new rules do not allow.
    ///
    /// # Errors
    /// As [`Self::attach`]. Where a program was not replaced the old one keeps running.
    pub fn exchange(&mut self, loaded: Loaded, interfaces: &[String]) -> Result<&[Attached], FastPathError> {
        self.programs = loaded.programs;
        self.table.set_translators(&loaded.rules.config);
        self.attach(interfaces)
    }

    /// All three together: [`Self::prepare`], [`Prepared::load`], [`Self::exchange`].
    ///
    /// # Errors
    /// As there.
    pub fn replace(&mut self, rules: &Rules, interfaces: &[String]) -> Result<&[Attached], FastPathError> {
        let loaded = self.prepare(rules, interfaces)?.load()?;
        self.exchange(loaded, interfaces)
    }

    /// Removes everything: detaches the programs, removes the maps with their flows, and unmounts the file system if a gateway mounted it and
    /// it is empty.
    ///
    /// # Errors
    /// The kernel's error; some objects may remain.
    pub fn end(self) -> Result<usize, FastPathError> {
        self.control.enable(false);
        self.pins.end()
    }

    /// Where the programs are attached.
    pub fn attached(&self) -> &[Attached] {
        &self.attached
    }

    /// Interfaces where they could not be attached, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What was found when the maps were opened.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The page that the programs read while they run.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// The flow table.
    pub fn table(&self) -> &Arc<FlowTable> {
        &self.table
    }

    /// The next hops that the programs have found.
    pub fn next_hops(&self) -> &Arc<NextHops> {
        &self.next_hops
    }

    /// What the programs have counted since the maps were made.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counts(&self) -> Result<Counts, FastPathError> {
        let mut counts = Counts::default();
        let failed = || FastPathError::when("read the counters");
        let map: PerCpuArray<&MapData, Counter> = PerCpuArray::try_from(&self.counters).map_err(failed())?;
        for number in 0..COUNTERS {
            let shares = map.get(&(number as u32), 0).map_err(failed())?;
            shares.iter().for_each(|share| counts.add(number, *share));
        }
        Ok(counts)
    }

    /// Sets the devices by which the programs may send, keyed by interface index. Devices that remain in the set are not
    /// interrupted.
    ///
    /// # Errors
    /// The kernel's error, for example more than 1,024 devices.
    pub fn set_devices(&mut self, devices: &BTreeMap<u32, Device>) -> Result<(), FastPathError> {
        let changed = set(&mut self.devices, devices).map_err(FastPathError::when("name the devices"))?;
        self.ask_again(changed);
        Ok(())
    }

    /// Sets the tunnels' IPv4 destinations whose path MTU is below the configured one: packets to them are left to the engine.
    ///
    /// # Errors
    /// The kernel's error, for example more than 4,096 destinations.
    pub fn set_narrow_paths(&mut self, destinations: &[Ipv4Addr]) -> Result<(), FastPathError> {
        let wanted = destinations.iter().map(|address| (address.octets(), 1)).collect();
        let changed =
            set(&mut self.narrow_paths, &wanted).map_err(FastPathError::when("name the narrow paths"))?;
        self.ask_again(changed);
        Ok(())
    }

    /// The programs cache what they find for a next hop; a new generation makes them look again.
    fn ask_again(&self, changed: bool) {
        if changed {
            self.control.bump();
        }
    }

    /// The program at tc ingress, for test runs.
    ///
    /// # Errors
    /// Only if the program was compiled wrongly.
    pub fn tc(&mut self) -> Result<&mut SchedClassifier, FastPathError> {
        self.programs.tc()
    }

    /// The program in the driver, for test runs.
    ///
    /// # Errors
    /// It was not loaded.
    pub fn xdp(&mut self) -> Result<&mut Xdp, FastPathError> {
        self.programs.xdp()
    }
}

/// Makes a map hold exactly these elements. Returns whether it changed.
fn set<K: aya::Pod + Ord + Eq + Hash, V: aya::Pod + PartialEq>(
    map: &mut HashMap<MapData, K, V>,
    wanted: &BTreeMap<K, V>,
) -> Result<bool, MapError> {
    let there: BTreeMap<K, V> = map.iter().collect::<Result<_, _>>()?;
    let is_new = |(key, value): &(&K, &V)| there.get(*key) != Some(*value);
    let new: Vec<_> = wanted.iter().filter(is_new).collect();
    let gone: Vec<_> = there.keys().filter(|key| !wanted.contains_key(key)).collect();
    // Removes first: a full map has no room for new elements.
    for key in gone.iter().copied() {
        map.remove(key)?;
    }
    for (key, value) in new.iter().copied() {
        map.insert(key, value, 0)?;
    }
    Ok(!new.is_empty() || !gone.is_empty())
}
