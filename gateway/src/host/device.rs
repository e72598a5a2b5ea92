//! Sets up the host for a gateway, and restores it.

use super::error::HostError;
use super::forwarding::{Forwarding, Setting, device_settings, host_settings, proxy_ndp_settings};
use super::guard::{Guard, HostParts, Restored, RuleEvents, Suspicion, TcFilters, Watched};
use super::inherited::Inherited;
use super::kernel::Refusal;
use super::notrack;
use super::reach::AppliedReach;
use super::realm_rules::RealmDevice;
use super::realms::{RealmDevices, RealmPlan, VrfTrouble, prepare};
use super::record::{FoundDevice, Leftovers, Record, RecordError, Successor};
use super::reserved_ports;
use super::route::{Routes, restore4};
use super::route_mark::RouteMark;
use super::setting_name::setting_name;
use crate::config::{Ports, Reach, Untracked};
use sixway_dataplane::frame::Realm;
use sixway_dataplane::nat::Spread;
use sixway_link::tun::Steering;
use sixway_link::{Abilities, Persistence, Tun, TunConfig, TunQueue, interface, sysctl};
use sixway_wire::{Prefix4, Prefix6};
use std::ffi::OsStr;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the kernel's settings are.
const SETTINGS: &str = "/proc/sys";

/// The settings to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// The gateway's name.
    pub gateway: String,
    /// The directory of state files.
    pub directory: PathBuf,
    /// The device's name.
    pub device: String,
    /// Its MTU in octets.
    pub mtu: u32,
    /// Packets that the kernel queues for it.
    pub queue_length: u32,
    /// Its queues.
    pub queues: usize,
    /// How many workers; the kernel steers packets to them where each has one queue.
    pub workers: u8,
    /// The secret by which subscribers are spread over them.
    pub worker_key: [u64; 2],
    /// Ports of a block that belongs to a worker.
    pub ports_per_block: u16,
    /// Bits of the prefixes of subscribers, IPv6 and IPv4.
    pub subscriber_bits: (u8, u8),
    /// IPv4 sources that are subscribers.
    pub inside4: Vec<Prefix4>,
    /// The stateful translators' pools.
    pub pools: Vec<Prefix4>,
    /// Whether GSO packets pass unsegmented, as far as the kernel can.
    pub super_frames: bool,
    /// Realms, each with a device of its own.
    pub realms: Vec<RealmPlan>,
    /// IPv4 routes into it.
    pub routes4: Vec<Prefix4>,
    /// The metric of a default route of IPv4 among them, if others have precedence.
    pub last_resort: Option<u32>,
    /// Interfaces on which the host answers neighbour solicitations for other addresses.
    pub proxy_ndp: Vec<String>,
    /// IPv6 routes into it.
    pub routes6: Vec<Prefix6>,
    /// Which families this host must forward on other interfaces.
    pub forwarding: Forwarding,
    /// The directory of pinned programs and maps, if the fast path outlives the process; else empty.
    pub pins: PathBuf,
    /// Ports of this host's own addresses that its own connections must not take.
    pub shared_ports: Vec<Ports>,
    /// What a previous process left stays if the start fails: that process's configuration returns.
    pub returns: bool,
}

/// A configured host. What vanishes with the device is restored by closing the device; the rest by [`Host::end`], or
/// when this is dropped. Only a start that fails while the previous process's configuration can return leaves it to the next process.
#[derive(Debug)]
pub struct Host {
    record: Option<Record>,
    device: u32,
    name: String,
    pins: PathBuf,
    reached: AppliedReach,
    /// `None` without a device of the gateway's own.
    persistence: Option<Persistence>,
    realms: RealmDevices,
    adopted: bool,
    /// Dropping this leaves everything for the next process.
    leaves: bool,
    /// What was set up, and who watches it; `None` without a device.
    guarded: Option<(HostPlan, Vec<Setting>, Guard)>,
    /// Tells when rules of the packet filter change, where there is no [`Guard`].
    rules: Option<RuleEvents>,
}

impl Host {
    /// Sets the host up: state file, device, settings, routes. The device is up at the end.
    ///
    /// # Errors
    /// What could not be done; the host is as it was before.
    pub async fn set_up(plan: &HostPlan) -> Result<(Self, Tun), HostError> {
        if !super::has_capability(super::CAP_NET_ADMIN) {
            return Err(HostError::NotPermitted(plan.device.clone()));
        }
        let successor = Successor { device: &plan.device, pins: &plan.pins };
        let (record, left) =
            Record::take_as(&plan.directory, &plan.gateway, Some(&successor)).map_err(HostError::Record)?;
        tell_leftovers(&plan.gateway, &left);
        // From here on, any failure drops this, which reverts the changes.
        let mut host = Self::of(record);
        (host.adopted, host.pins) = (left.adopted, plan.pins.clone());
        host.leaves = left.adopted && plan.returns;
        let found = host.note_found(&plan.device).await?;
        let tun = open(plan, left.adopted, found)?;
        host.name.clone_from(&tun.name);
        let settings = device_settings(Path::new(SETTINGS), &tun.name);
        if let Err(error) = host.make_settings(&settings, plan, found) {
            return Err(read_only(&error, &settings, plan, &tun.name).unwrap_or(error));
        }
        let device = |error| HostError::Device(tun.name.clone(), error);
        interface::set_mtu(&tun.name, plan.mtu).map_err(device)?;
        interface::set_queue_length(&tun.name, plan.queue_length).map_err(device)?;
        interface::set_up(&tun.name, true).map_err(device)?;
        let index = interface::index(&tun.name).map_err(device)?;
        host.device = index;
        host.persistence = if found { None } else { Some(tun.persistence().map_err(device)?) };
        host.route(plan).await?;
        host.set_up_realms(plan)?;
        host.guarded = Some((plan.clone(), settings, Guard::start(Instant::now())));
        Ok((host, tun))
    }

    fn set_up_realms(&mut self, plan: &HostPlan) -> Result<(), HostError> {
        let conf = Path::new(SETTINGS).join("net/ipv4/conf");
        for interface in plan.realms.iter().flat_map(|realm| &realm.interfaces) {
            let path = conf.join(interface).join("rp_filter");
            // The way back is looked up in the main table, which may have it at another realm's interface.
            if holds(&path, "1") {
                self.change(&(path, "2".into()))?;
            }
        }
        let Some(record) = &mut self.record else { return Ok(()) };
        prepare(&plan.realms, record)?;
        for realm in &plan.realms {
            let steered = plan.workers > 1 && plan.queues == usize::from(plan.workers);
            let inside = HostPlan { inside4: realm.inside.clone(), pools: Vec::new(), ..plan.clone() };
            let config = TunConfig {
                queues: plan.queues,
                persist: self.adopted && record.inherited_realms().iter().any(|it| it.name == realm.device),
                abilities: abilities(plan),
                steering: steered.then(|| steering(&inside)),
                senders: Some(plan.subscriber_bits.0),
                ..TunConfig::default()
            };
            let settings = device_settings(Path::new(SETTINGS), &realm.device);
            self.realms.add(realm, (config, plan.mtu, plan.queue_length), settings, record)?;
        }
        Ok(())
    }

    /// The queues of the realms' devices, for the workers.
    pub fn take_realm_queues(&mut self) -> Vec<TunQueue> {
        self.realms.take_queues()
    }

    fn of(record: Record) -> Self {
        Self {
            record: Some(record),
            device: 0,
            name: String::new(),
            pins: PathBuf::new(),
            reached: AppliedReach::default(),
            persistence: None,
            realms: RealmDevices::default(),
            adopted: false,
            leaves: false,
            guarded: None,
            rules: None,
        }
    }

    /// Records the state of the device if another program created it. Returns whether one did.
    async fn note_found(&mut self, device: &str) -> Result<bool, HostError> {
        let Some(record) = &mut self.record else { return Ok(false) };
        if !self.adopted {
            let found = found(device).await.map_err(|error| HostError::Device(device.into(), error))?;
            if let Some(found) = found {
                tracing::info!("{device} exists: it is used as it is, and left as it was found");
                record.found(found).map_err(HostError::Record)?;
            }
        }
        Ok(record.found_device().is_some())
    }

    /// Makes the device's settings and the host's. Those of a device that was `found` are restored at the end.
    fn make_settings(
        &mut self,
        of_device: &[Setting],
        plan: &HostPlan,
        found: bool,
    ) -> Result<(), HostError> {
        for setting in of_device {
            if found {
                self.change(setting)?;
            } else {
                // They vanish with the device.
                make(setting)?;
            }
        }
        let root = Path::new(SETTINGS);
        let reserved = reserved_ports::reserve(root, &plan.shared_ports);
        let settings = host_settings(root, &self.name, plan.forwarding).into_iter();
        let answers = proxy_ndp_settings(root, &plan.proxy_ndp);
        for setting in settings.chain(reserved).chain(answers) {
            self.change(&setting)?;
        }
        Ok(())
    }

    /// Routes into the device: those that an adopted one has already are left as they are.
    async fn route(&mut self, plan: &HostPlan) -> Result<(), HostError> {
        let mut inherited = Inherited::default();
        let mark = self.record.as_ref().map(Record::route_mark).unwrap_or_default();
        if let Some(record) = self.record.as_ref().filter(|_| self.adopted) {
            inherited = Inherited::of(self.device, record).map_err(HostError::Route)?;
        }
        let routes = Routes::connect(mark).map_err(HostError::Route)?;
        for prefix in plan.routes4.iter().filter(|prefix| !inherited.routes4.contains(prefix)) {
            let metric = plan.last_resort.filter(|_| prefix.length() == 0);
            routes.add4(*prefix, self.device, metric).await.map_err(HostError::Route)?;
        }
        for prefix in plan.routes6.iter().filter(|prefix| !inherited.has6(**prefix)) {
            routes.add6(*prefix, self.device).await.map_err(HostError::Route)?;
        }
        for prefix in inherited.routes4.iter().filter(|prefix| !plan.routes4.contains(prefix)) {
            routes.remove4(*prefix, self.device).await.map_err(HostError::Route)?;
        }
        // The others may be a tunnel's: whatever is not wanted goes when it is known what is.
        inherited.reach.routes.retain(|route| !plan.routes6.contains(&route.prefix));
        self.reached = AppliedReach::of(inherited.reach);
        Ok(())
    }

    /// Restores what other programs changed. Whether the packet filter's table and steering may have been removed.
    pub fn inspect(&mut self, filters: &TcFilters, now: Instant) -> Suspicion {
        let (Some(record), Some((plan, settings, guard))) = (&mut self.record, &mut self.guarded) else {
            let ruleset = self.rules.as_mut().is_some_and(RuleEvents::read);
            return Suspicion { ruleset, ..Suspicion::default() };
        };
        let mut parts = HostParts {
            name: &self.name,
            device: self.device,
            mtu: plan.mtu,
            settings,
            reserved_ports: &plan.shared_ports,
            routes4: &plan.routes4,
            last_resort: plan.last_resort,
            routes6: &plan.routes6,
            reached: &mut self.reached,
            record,
            filters,
        };
        let suspicion = guard.inspect(&mut parts, now);
        self.realms.inspect((record, guard), suspicion.routing, now);
        suspicion
    }

    /// Why realms are not in their VRFs, each with its name.
    pub fn vrf_troubles(&self) -> Vec<(String, VrfTrouble)> {
        self.realms.troubles()
    }

    /// As [`Self::inspect`], for what others restore: whether they are to.
    pub fn may_restore(&mut self, watched: Watched, what: &str, detail: &str, now: Instant) -> bool {
        let Some((_, _, guard)) = &mut self.guarded else { return false };
        guard.may_restore(watched, what, &detail, now)
    }

    /// This, which others restore, is as it should be.
    pub fn intact(&mut self, what: &str) {
        if let Some((_, _, guard)) = &mut self.guarded {
            guard.intact(what);
        }
    }

    /// The gateway changed its filters at tc itself.
    pub fn ignore_filters(&mut self) {
        if let Some((_, _, guard)) = &mut self.guarded {
            guard.ignore_filters();
        }
    }

    /// What was restored since the start.
    pub fn restored(&self) -> Restored {
        self.guarded.as_ref().map(|(_, _, guard)| guard.restored().clone()).unwrap_or_default()
    }

    /// Whether a previous process left the device, and the fast path, to this one.
    pub fn is_successor(&self) -> bool {
        self.adopted
    }

    /// The device's index.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// From now on the device outlives the process, and so does what is pinned.
    ///
    /// # Errors
    /// The state file cannot be written, or the kernel refused.
    pub fn keep_for_successor(&mut self) -> Result<(), HostError> {
        // Without a device there is nothing to keep.
        let Some(record) = self.record.as_mut().filter(|_| self.device != 0) else { return Ok(()) };
        let mut realms = self.realms.recorded();
        // When a start fails, the devices that it did not come to are the next one's, too.
        let is_new = |old: &RealmDevice| !realms.contains(old) && old.exists();
        let left: Vec<RealmDevice> = record.inherited_realms().into_iter().filter(is_new).collect();
        realms.extend(left);
        record
            .keep_for_successor((&self.name, self.device), &self.pins, realms)
            .map_err(HostError::Record)?;
        self.realms.persist(true)?;
        let Some(persistence) = &self.persistence else { return Ok(()) };
        persistence.set(true).map_err(|error| HostError::Device(self.name.clone(), error))
    }

    /// Makes the device vanish with the process again.
    ///
    /// # Errors
    /// As for [`Self::keep_for_successor`].
    pub fn keep_to_itself(&mut self) -> Result<(), HostError> {
        let Some(record) = self.record.as_mut().filter(|_| self.device != 0) else { return Ok(()) };
        if let Some(persistence) = &self.persistence {
            persistence.set(false).map_err(|error| HostError::Device(self.name.clone(), error))?;
        }
        self.realms.persist(false)?;
        record.keep_to_itself().map_err(HostError::Record)
    }

    /// The start did not fail: from here on, dropping this restores the host.
    pub fn started(&mut self) {
        self.leaves = false;
    }

    /// Gives everything up as it is, for who takes over.
    ///
    /// # Errors
    /// As for [`Self::keep_for_successor`]; then everything is restored.
    pub fn leave(mut self) -> Result<(), HostError> {
        self.keep_for_successor()?;
        if let Some(record) = self.record.take() {
            record.leave();
        }
        Ok(())
    }

    /// Sets nothing up but the state file: a gateway that needs no device changes nothing on its host.
    ///
    /// # Errors
    /// The state file cannot be used.
    pub fn without_device(directory: &Path, gateway: &str) -> Result<Self, HostError> {
        let (record, left) = Record::take(directory, gateway).map_err(HostError::Record)?;
        tell_leftovers(gateway, &left);
        let rules = RuleEvents::open();
        if let Err(error) = &rules {
            tracing::info!("changes of the packet filter's rules are not noticed: {error}");
        }
        let mut host = Self::of(record);
        host.rules = rules.ok();
        Ok(host)
    }

    /// Notes the admin socket that is about to be made.
    ///
    /// # Errors
    /// The state file cannot be written.
    pub fn socket(&mut self, path: &Path) -> Result<(), HostError> {
        let Some(record) = &mut self.record else { return Ok(()) };
        record.socket(path).map_err(HostError::Record)
    }

    /// Configures what the tunnels need in the kernel, and removes what they no longer need.
    ///
    /// # Errors
    /// Everything that could not be done; it is tried again the next time.
    pub fn reach(&mut self, wanted: &Reach) -> Result<(), Vec<HostError>> {
        let Some(record) = &mut self.record else { return Ok(()) };
        let before: Vec<Ipv4Addr> = self.reached.addresses4().collect();
        let outcome = self.reached.change(wanted, self.device, record);
        let is_gone = |address: &Ipv4Addr| !self.reached.addresses4().any(|one| one == *address);
        if before.iter().any(is_gone)
            && let Some((plan, ..)) = &self.guarded
        {
            lead_again(plan, self.device, record.route_mark());
        }
        outcome
    }

    /// Notes interfaces where a steering program is that would stay behind a sudden end.
    ///
    /// # Errors
    /// The state file cannot be written.
    pub fn steered(&mut self, interfaces: &[String]) -> Result<(), HostError> {
        let Some(record) = &mut self.record else { return Ok(()) };
        record.steered(interfaces).map_err(HostError::Record)
    }

    /// Makes our table in the packet filter, with the device of this name, or changes it to what is wanted, or removes it.
    ///
    /// # Errors
    /// The state file cannot be written, or nft is missing or failed; the previous table is unchanged.
    pub fn untrack(&mut self, device: &str, wanted: Option<&Untracked>) -> Result<(), HostError> {
        let Some(record) = &mut self.record else { return Ok(()) };
        let Some(wanted) = wanted else { return record.remove_table().map_err(HostError::Record) };
        let gateway = record.name().to_owned();
        record.table().map_err(HostError::Record)?;
        let made = notrack::make(&gateway, (device, self.device), wanted).map_err(HostError::PacketFilter);
        if let Some((_, _, guard)) = &mut self.guarded {
            guard.ignore_packet_filter();
        }
        made
    }

    /// Puts everything back. To be called when the device is closed.
    pub fn end(mut self) -> Leftovers {
        // Then it vanishes with the last descriptor even if the record's removal fails.
        if let Some(Err(error)) = self.persistence.as_ref().map(|persistence| persistence.set(false)) {
            tracing::warn!("{}: {error}", self.name);
        }
        if let Err(error) = self.realms.persist(false) {
            tracing::warn!("{error}");
        }
        self.record.take().map(Record::end).unwrap_or_default()
    }

    fn change(&mut self, setting: &Setting) -> Result<(), HostError> {
        let Some(record) = &mut self.record else { return Ok(()) };
        if record.change(setting).map_err(HostError::Record)? {
            tracing::info!("{} set to {} until the gateway stops", setting_name(&setting.0), setting.1);
        }
        Ok(())
    }
}

/// The kernel removes an interface's IPv4 routes with its last IPv4 address: they are set again immediately. What it refuses is tried again by the guard.
fn lead_again(plan: &HostPlan, device: u32, mark: RouteMark) {
    for prefix in &plan.routes4 {
        let metric = plan.last_resort.filter(|_| prefix.length() == 0);
        match restore4(*prefix, device, mark, metric) {
            Ok(()) | Err(Refusal::Exists) => {}
            Err(error) => tracing::debug!("route to {prefix}: {error}"),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let leaves = self.leaves && self.keep_for_successor().is_ok();
        let Some(record) = self.record.take() else { return };
        if leaves {
            record.leave();
        } else {
            record.end();
        }
    }
}

/// Makes a setting of a new device. It is written even if it is right already: only a setting that was written does not follow `default`.
fn make((path, value): &Setting) -> Result<(), HostError> {
    const CLOSED: [io::ErrorKind; 2] = [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied];
    match std::fs::write(path, value) {
        // As in a container that was given the setting for new devices.
        Err(error) if CLOSED.contains(&error.kind()) && holds(path, value) => Ok(()),
        written => written.map_err(|error| HostError::Setting(path.clone(), error)),
    }
}

fn holds(path: &Path, value: &str) -> bool {
    sysctl::read(path).is_ok_and(|now| now == value)
}

/// If that is why: everything that is not as it has to be, a new device's settings as those that new devices get.
fn read_only(error: &HostError, of_device: &[Setting], plan: &HostPlan, device: &str) -> Option<HostError> {
    let (HostError::Setting(_, error) | HostError::Record(RecordError::Io(_, error))) = error else {
        return None;
    };
    if error.kind() != io::ErrorKind::ReadOnlyFilesystem {
        return None;
    }
    let root = Path::new(SETTINGS);
    let of_host = host_settings(root, device, plan.forwarding).into_iter();
    let of_host = of_host.chain(reserved_ports::reserve(root, &plan.shared_ports));
    let all = of_device.iter().cloned().chain(of_host).filter(|(path, value)| !holds(path, value));
    let mut missing: Vec<(String, String)> = Vec::new();
    for (path, value) in all {
        let words = path.iter().map(|word| if word == device { OsStr::new("default") } else { word });
        let name = setting_name(&words.collect::<PathBuf>());
        // With what a new device gets, the host's own of that name is right too.
        if !missing.iter().any(|(known, _)| *known == name) {
            missing.push((name, value));
        }
    }
    let missing = missing.into_iter().map(|(name, value)| format!("{name}={value}"));
    Some(HostError::ReadOnly(missing.collect()))
}

/// The device of this name, if another program created it. The device of a killed process vanishes soon, so this waits for its end.
async fn found(device: &str) -> io::Result<Option<FoundDevice>> {
    const PATIENCE: Duration = Duration::from_secs(1);
    const STEP: Duration = Duration::from_millis(10);
    let begun = Instant::now();
    loop {
        match FoundDevice::of(device) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(STEP).await;
            }
            found => return found,
        }
    }
}

fn open(plan: &HostPlan, adopted: bool, found: bool) -> Result<Tun, HostError> {
    // A steering program would stay with a device that stays.
    let steered = !found && plan.workers > 1 && plan.queues == usize::from(plan.workers);
    let config = TunConfig {
        name: plan.device.clone(),
        queues: plan.queues,
        persist: adopted || found,
        found,
        realm: Realm(0),
        abilities: abilities(plan),
        steering: steered.then(|| steering(plan)),
        senders: Some(plan.subscriber_bits.0),
    };
    Tun::open(&config).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => HostError::NotPermitted(plan.device.clone()),
        _ => HostError::Device(plan.device.clone(), error),
    })
}

fn abilities(plan: &HostPlan) -> Abilities {
    if plan.super_frames { Abilities::ALL } else { Abilities { tso: false, uso: false, ..Abilities::ALL } }
}

/// Which worker's queue the kernel puts a packet into.
fn steering(plan: &HostPlan) -> Steering {
    let (bits6, bits4) = plan.subscriber_bits;
    let spread = |bits| Spread::new(plan.worker_key, bits);
    let by_ports = Steering::by_ports(plan.ports_per_block, plan.workers, spread(bits6));
    by_ports.with_addresses(spread(bits4), plan.inside4.clone(), plan.pools.clone())
}

fn tell_leftovers(name: &str, left: &Leftovers) {
    if left.adopted {
        tracing::info!("{name}: continuing with the device and programs of the previous process");
    }
    if !left.is_empty() {
        tracing::warn!("{name}: the previous process crashed: {left}");
    }
}
