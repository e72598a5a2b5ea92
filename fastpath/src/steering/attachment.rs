//! Loads the steering program, attaches it to interfaces and fills its maps.

use super::error::SteeringError;
use super::filter::{Filter, Handles};
use super::hook::{Hook, STEERING_PROGRAM, Taken};
use super::own_address::{ADDRESSES, INNER_INTERFACES, InsideHosts, OwnAddress, RANGES};
use crate::interface;
use crate::kernel_error::os_error;
use crate::patience::patiently;
use aya::maps::lpm_trie::{Key as TrieKey, LpmTrie};
use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader, Pod};
use sixway_wire::Prefix4;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;

/// The compiled program, aligned as an ELF file wants it.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/steer.bpf.o"));

/// An address as the program finds it in a header: its octets in their order.
type Key = [u8; 4];

/// In the program's map of interfaces to inside hosts: all of them.
const ANY: u32 = 0;

/// The program's `struct taken`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CounterEntry {
    packets: u64,
    octets: u64,
}

// SAFETY: two numbers without padding, for which any octets are a value.
unsafe impl Pod for CounterEntry {}

/// The program's `struct own`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OwnAddressEntry {
    tunnels: u8,
    ranges: u8,
    first: [u16; RANGES],
    last: [u16; RANGES],
}

// SAFETY: numbers without padding (two octets, then pairs of them), for which any octets are a value.
unsafe impl Pod for OwnAddressEntry {}

impl OwnAddressEntry {
    /// With what is taken of one address, perhaps by several.
    fn add(&mut self, own: &OwnAddress) -> Result<(), SteeringError> {
        self.tunnels |= u8::from(own.tunnels);
        for range in &own.ports {
            let at = usize::from(self.ranges);
            let (Some(first), Some(last)) = (self.first.get_mut(at), self.last.get_mut(at)) else {
                return Err(SteeringError::TooManyRanges(own.address));
            };
            (*first, *last) = (*range.start(), *range.end());
            self.ranges += 1;
        }
        Ok(())
    }
}

/// Steers tunnel packets (protocol 41) for the host's own IPv4 addresses, and packets for ports of theirs, into a TUN device, past the
/// local stack: past its packet filter's input chains, too, and past a `sit` of the kernel's. Dropping it ends that.
#[derive(Debug)]
pub struct Steering {
    /// Owns the program and its attachments.
    program: Ebpf,
    hook: Hook,
    handles: Handles,
    /// The filters of clsact, by interface.
    filters: BTreeMap<String, Filter>,
    addresses: BTreeMap<Ipv4Addr, OwnAddressEntry>,
    /// The indices of the interfaces that lead to inside hosts.
    inner: BTreeSet<u32>,
}

impl Steering {
    /// Loads the program and attaches it to the ingress of each interface: by TCX where the kernel has it, else by clsact. From then on
    /// packets for the addresses arrive at the TUN device.
    ///
    /// # Errors
    /// Why not, and how to fix it. No interface keeps the program.
    pub fn attach(
        gateway: &str,
        interfaces: &[&str],
        tun: &str,
        addresses: &[OwnAddress],
        inside: &InsideHosts,
    ) -> Result<Self, SteeringError> {
        match Self::attach_by(Hook::Tcx, gateway, interfaces, tun, addresses, inside) {
            Err(SteeringError::Refused { error, .. }) if knows_no_tcx(error.as_ref()) => {
                Self::attach_by(Hook::Clsact, gateway, interfaces, tun, addresses, inside)
            }
            result => result,
        }
    }

    /// As [`Steering::attach`], by this hook alone. With clsact, the filter of a previous process of this gateway
    /// is removed then; the queueing discipline itself stays at the end, others may use it.
    ///
    /// # Errors
    /// As there.
    pub fn attach_by(
        hook: Hook,
        gateway: &str,
        interfaces: &[&str],
        tun: &str,
        addresses: &[OwnAddress],
        inside: &InsideHosts,
    ) -> Result<Self, SteeringError> {
        let index = index(tun)?;
        for interface in interfaces {
            self::index(interface)?;
        }
        let program = EbpfLoader::new()
            .override_global("tun", &index, true)
            .map_max_entries("inside", u32::try_from(inside.prefixes.len()).unwrap_or(u32::MAX).max(1))
            .load(OBJECT)
            .map_err(|error| SteeringError::new(format!("load {STEERING_PROGRAM}"), error))?;
        let mut steering = Self {
            program,
            hook,
            handles: Handles::of(gateway),
            filters: BTreeMap::new(),
            addresses: BTreeMap::new(),
            inner: BTreeSet::new(),
        };
        steering.set_addresses(addresses)?;
        steering.write_inside(&inside.prefixes)?;
        steering.set_inner_interfaces(&inside.interfaces)?;
        let classifier = steering.classifier()?;
        patiently(|| classifier.load())
            .map_err(|error| SteeringError::new(format!("load {STEERING_PROGRAM}"), error))?;
        for interface in interfaces {
            steering.attach_to(interface)?;
        }
        Ok(steering)
    }

    /// Attaches the program to another interface, or again to one that was removed and returned, such as PPP.
    ///
    /// # Errors
    /// As for [`Steering::attach`].
    pub fn add_interface(&mut self, interface: &str) -> Result<(), SteeringError> {
        index(interface)?;
        self.attach_to(interface)
    }

    /// The priority and the handles of the filters of clsact.
    pub fn filters(&self) -> (u16, [u32; 2]) {
        self.handles.numbers()
    }

    /// How the program is attached to the interfaces.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Replaces the local addresses. Those that stay are not interrupted.
    ///
    /// # Errors
    /// More than [`ADDRESSES`], more than [`RANGES`] of one, or what the kernel said; some may have been replaced then.
    pub fn set_addresses(&mut self, addresses: &[OwnAddress]) -> Result<(), SteeringError> {
        let mut wanted: BTreeMap<Ipv4Addr, OwnAddressEntry> = BTreeMap::new();
        for own in addresses {
            wanted.entry(own.address).or_default().add(own)?;
        }
        if wanted.len() > ADDRESSES {
            return Err(SteeringError::TooManyAddresses(wanted.len()));
        }
        let failed = |error| SteeringError::new("write the local addresses".into(), error);
        let Some(map) = self.program.map_mut("addresses") else { return Err(strange("addresses")) };
        let mut map: HashMap<&mut MapData, Key, OwnAddressEntry> = HashMap::try_from(map).map_err(failed)?;
        for gone in self.addresses.keys().filter(|address| !wanted.contains_key(*address)) {
            map.remove(&gone.octets()).map_err(failed)?;
        }
        for (new, own) in wanted.iter().filter(|(address, own)| self.addresses.get(*address) != Some(*own)) {
            map.insert(new.octets(), own, 0).map_err(failed)?;
        }
        self.addresses = wanted;
        Ok(())
    }

    fn write_inside(&mut self, prefixes: &[Prefix4]) -> Result<(), SteeringError> {
        let failed = |error| SteeringError::new("write the prefixes of inside hosts".into(), error);
        let Some(map) = self.program.map_mut("inside") else { return Err(strange("inside")) };
        let mut map: LpmTrie<&mut MapData, Key, u8> = LpmTrie::try_from(map).map_err(failed)?;
        for prefix in prefixes {
            let key = TrieKey::new(u32::from(prefix.length()), prefix.address().octets());
            map.insert(&key, 1, 0).map_err(failed)?;
        }
        Ok(())
    }

    /// Replaces the interfaces that lead to inside hosts; none: all do. Those that do not exist are left out, until this is called again.
    ///
    /// # Errors
    /// More than [`INNER_INTERFACES`], or what the kernel said; some may have been replaced then.
    pub fn set_inner_interfaces(&mut self, interfaces: &[String]) -> Result<(), SteeringError> {
        let mut wanted: BTreeSet<u32> = interfaces.iter().filter_map(|name| interface::index(name)).collect();
        if interfaces.is_empty() {
            wanted.insert(ANY);
        }
        if wanted.len() > INNER_INTERFACES {
            return Err(SteeringError::TooManyInterfaces(wanted.len()));
        }
        let failed = |error| SteeringError::new("write the interfaces of inside hosts".into(), error);
        let Some(map) = self.program.map_mut("inner") else { return Err(strange("inner")) };
        let mut map: HashMap<&mut MapData, u32, u8> = HashMap::try_from(map).map_err(failed)?;
        for gone in self.inner.difference(&wanted) {
            map.remove(gone).map_err(failed)?;
        }
        for new in wanted.difference(&self.inner) {
            map.insert(new, 1, 0).map_err(failed)?;
        }
        self.inner = wanted;
        Ok(())
    }

    /// What was taken since attaching.
    pub fn counters(&self) -> Taken {
        let map = self.program.map("counters").map(PerCpuArray::<&MapData, CounterEntry>::try_from);
        let Some(Ok(map)) = map else { return Taken::default() };
        let Ok(shares) = map.get(&0, 0) else { return Taken::default() };
        shares.iter().fold(Taken::default(), |sum, share| Taken {
            packets: sum.packets + share.packets,
            octets: sum.octets + share.octets,
        })
    }

    /// Detaches the clsact filters of this gateway from an interface, which a killed process left behind on kernels
    /// without TCX. Returns whether there were any.
    pub fn remove_leftovers(gateway: &str, interface: &str) -> bool {
        Handles::of(gateway).remove(interface)
    }

    /// Leaves clsact filters attached, for the next process to take over or remove.
    pub fn leave(self) {
        match self.hook {
            Hook::Clsact => std::mem::forget(self),
            Hook::Tcx => drop(self),
        }
    }

    fn classifier(&mut self) -> Result<&mut SchedClassifier, SteeringError> {
        let program = self.program.program_mut(STEERING_PROGRAM).ok_or_else(|| strange(STEERING_PROGRAM))?;
        program.try_into().map_err(|error| SteeringError::new(format!("load {STEERING_PROGRAM}"), error))
    }

    fn attach_to(&mut self, interface: &str) -> Result<(), SteeringError> {
        let failed = |error| SteeringError::new(format!("attach {STEERING_PROGRAM} to {interface}"), error);
        let (hook, handles) = (self.hook, self.handles);
        let used = self.filters.get(interface).map(Filter::handle);
        let classifier = self.classifier()?;
        match hook {
            // Last in the chain: other programs see the packets first.
            Hook::Tcx => {
                let last = TcAttachOptions::TcxOrder(LinkOrder::last());
                classifier.attach_with_options(interface, TcAttachType::Ingress, last).map_err(failed)?;
            }
            Hook::Clsact => {
                let filter = handles.attach(classifier, interface, used).map_err(failed)?;
                self.filters.insert(interface.to_owned(), filter);
            }
        }
        Ok(())
    }
}

/// Before Linux 6.6, bpf(2) does not know the kind of link.
fn knows_no_tcx(error: &(dyn std::error::Error + 'static)) -> bool {
    os_error(error).is_some_and(|error| error.kind() == io::ErrorKind::InvalidInput)
}

/// The interface's index.
fn index(name: &str) -> Result<u32, SteeringError> {
    interface::index(name).ok_or_else(|| SteeringError::NoInterface(name.to_owned()))
}

/// The object file lacks an expected program or map.
fn strange(name: &str) -> SteeringError {
    let error = io::Error::new(io::ErrorKind::InvalidData, "not in the compiled program");
    SteeringError::Refused { doing: format!("find {name}"), error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aya::programs::ProgramError;
    use aya::sys::SyscallError;

    fn kernel_says(number: i32) -> SteeringError {
        let io_error = io::Error::from_raw_os_error(number);
        let error = ProgramError::from(SyscallError { call: "bpf_link_create", io_error });
        SteeringError::new("attach".into(), error)
    }

    #[test]
    fn what_the_kernel_said_is_found_at_the_end_of_the_chain() {
        let SteeringError::Refused { error, .. } = kernel_says(libc::EINVAL) else { panic!() };
        assert!(knows_no_tcx(error.as_ref()), "clsact is tried next");
        assert!(matches!(kernel_says(libc::EPERM), SteeringError::NotPermitted { .. }));
        let busy = kernel_says(libc::EBUSY);
        assert_eq!(busy.to_string().matches("busy").count(), 1, "{busy}");
    }
}
