//! Objects that outlive the process: maps and links, in the gateway's folder of a BPF file system.

use crate::bpf;
use crate::bpf_mount;
use crate::error::FastPathError;
use crate::interface;
use crate::layout::{self, COUNTERS, IDENTIFICATIONS, NEXT_HOPS};
use crate::pin_path;
use crate::stamp::Stamp;
use aya::maps::{MapData, MapInfo, MapType};
use aya::programs::TcAttachType;
use aya::programs::links::Link;
use aya::programs::tc::{SchedClassifierLink, TcHandle};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The priority of the clsact filter: before those whose priority the kernel chooses, such as steering's.
pub(crate) const PRIORITY: u16 = 6;

/// Octets of a control map that every version has: magic and version.
const VERSIONED: usize = 8;

/// Names of the pins of programs that were loaded ahead, before their stamp.
const AHEAD: &str = "ahead_";

/// BPF_F_MMAPABLE.
const MMAPABLE: u32 = 1 << 10;

/// The expected properties of a pinned map.
struct Shape {
    name: &'static str,
    kind: MapType,
    value: usize,
    flags: u32,
    /// Its number of elements, if that is the same for each gateway.
    elements: Option<usize>,
}

const fn shape(
    name: &'static str,
    kind: MapType,
    value: usize,
    flags: u32,
    elements: Option<usize>,
) -> Shape {
    Shape { name, kind, value, flags, elements }
}

/// The maps that are pinned; all keys have four octets.
const MAPS: [Shape; 7] = [
    shape("control", MapType::Array, size_of::<layout::Control>(), MMAPABLE, Some(1)),
    shape("flows", MapType::Array, size_of::<layout::Bucket>(), MMAPABLE, None),
    shape("next_hops", MapType::Array, size_of::<layout::NextHop>(), MMAPABLE, Some(NEXT_HOPS)),
    shape("counters", MapType::PerCpuArray, size_of::<layout::Counter>(), 0, Some(COUNTERS)),
    shape("identifications", MapType::PerCpuArray, 4, 0, Some(IDENTIFICATIONS)),
    shape("devices", MapType::Hash, size_of::<layout::Device>(), 0, None),
    shape("narrow_paths", MapType::Hash, 1, 0, None),
];

impl Shape {
    /// What is different about a map that is pinned there.
    fn differs(&self, path: &Path, buckets: u32) -> Option<String> {
        let Ok(found) = MapInfo::from_pin(path) else { return Some(format!("map {} is missing", self.name)) };
        let elements = match self.name {
            "flows" => Some(buckets),
            _ => self.elements.and_then(|elements| u32::try_from(elements).ok()),
        };
        let same = found.map_type().is_ok_and(|kind| kind == self.kind)
            && found.key_size() == 4
            && found.value_size() as usize == self.value
            && found.map_flags() & MMAPABLE == self.flags
            && elements.is_none_or(|elements| found.max_entries() == elements);
        (!same).then(|| format!("map {} has another size", self.name))
    }
}

/// A gateway's folder.
#[derive(Debug)]
pub(crate) struct Pins {
    pin_path: PathBuf,
    folder: PathBuf,
    gateway: String,
    /// Keeps the file system from being unmounted.
    _open: Option<File>,
}

impl Pins {
    /// The folder, whether it exists or not.
    pub fn of(pin_path: &Path, gateway: &str) -> Self {
        let folder = pin_path::folder(pin_path, gateway);
        Self { pin_path: pin_path.into(), folder, gateway: gateway.into(), _open: None }
    }

    /// The folder, created if it does not exist.
    pub fn open(pin_path: &Path, gateway: &str) -> Result<Self, FastPathError> {
        let open = pin_path::ensure(pin_path)?;
        let pins = Self { _open: Some(open), ..Self::of(pin_path, gateway) };
        let wrong = |why: String| FastPathError::PinPath { path: pins.folder.clone(), why };
        match std::fs::DirBuilder::new().mode(0o700).create(&pins.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(wrong(format!("make the folder: {error}")));
            }
            _ => {}
        }
        let folder = std::fs::symlink_metadata(&pins.folder);
        let folder = folder.map_err(|error| wrong(format!("look at the folder: {error}")))?;
        // SAFETY: no argument, and it always succeeds.
        let own = unsafe { libc::geteuid() };
        // A process that may write there could replace our maps and programs.
        if !folder.is_dir() || folder.uid() != own || folder.mode() & 0o022 != 0 {
            return Err(wrong(
                "other users may change what is pinned there; remove the folder, then start again".into(),
            ));
        }
        Ok(pins)
    }

    /// Names of the maps, and where each is pinned.
    pub fn maps(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        MAPS.iter().map(|shape| (shape.name, self.folder.join(shape.name)))
    }

    /// The maps' ids, which the kernel never reuses; 0: the map does not exist.
    pub fn numbers(&self) -> Vec<u32> {
        self.maps().map(|(_, path)| MapInfo::from_pin(path).map_or(0, |info| info.id())).collect()
    }

    /// Where a link is pinned.
    pub fn link(&self, hook: &str, ifindex: u32) -> PathBuf {
        self.folder.join(format!("{hook}_{ifindex}"))
    }

    /// Indices of interfaces that have a pinned link.
    pub fn linked(&self) -> Vec<(String, u32)> {
        let names =
            self.entries().into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let read = names.filter_map(|name| {
            let (hook, ifindex) = name.split_once('_')?;
            matches!(hook, "xdp" | "tc").then(|| Some((hook.to_owned(), ifindex.parse().ok()?)))?
        });
        read.collect()
    }

    /// Where a program is pinned that was loaded ahead.
    pub fn ahead(&self, hook: &str, stamp: Stamp) -> PathBuf {
        self.folder.join(format!("{AHEAD}{hook}_{:016x}", stamp.0))
    }

    /// Removes programs that were loaded ahead and are no longer needed.
    pub fn forget_ahead(&self) {
        let is_ahead =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(AHEAD));
        for path in self.entries().into_iter().filter(is_ahead) {
            // A failure only costs memory until the folder is removed.
            let _ = std::fs::remove_file(path);
        }
    }

    fn entries(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Whether there is a control map of any version: every version fits into a page, can be mapped and starts with its version.
    pub fn has_version(&self) -> bool {
        MapInfo::from_pin(self.folder.join("control")).is_ok_and(|found| {
            found.map_type().is_ok_and(|kind| kind == MapType::Array)
                && found.value_size() as usize >= VERSIONED
                && found.map_flags() & MMAPABLE != 0
        })
    }

    /// Why the pinned maps cannot be used, by their sizes; `None`: they can.
    pub fn strange(&self, buckets: u32) -> Option<String> {
        MAPS.iter().find_map(|shape| shape.differs(&self.folder.join(shape.name), buckets))
    }

    /// A pinned map.
    pub fn map(&self, name: &str) -> Result<MapData, FastPathError> {
        MapData::from_pin(self.folder.join(name)).map_err(FastPathError::when(format!("open map {name}")))
    }

    /// The handle of the clsact filter, derived from the gateway's name.
    pub fn handle(&self) -> TcHandle {
        let fold = |hash: u16, octet: u8| hash.wrapping_mul(251).wrapping_add(u16::from(octet));
        TcHandle::new(0x6477, self.gateway.bytes().fold(1, fold))
    }

    /// Detaches a link and removes its pin. Returns whether there was one.
    pub fn unlink(&self, hook: &str, ifindex: u32) -> bool {
        remove(&self.link(hook, ifindex)).is_ok()
    }

    /// Removes the clsact filter of an interface. Returns whether there was one.
    pub fn unfilter(&self, interface: &str) -> bool {
        let link =
            SchedClassifierLink::attached(interface, TcAttachType::Ingress, PRIORITY, self.handle(), None);
        link.is_ok_and(|link| link.detach().is_ok())
    }

    /// Removes the clsact filters of all other interfaces.
    pub fn unfilter_all_but(&self, kept: &[String]) {
        interface::names().iter().filter(|name| !kept.contains(name)).for_each(|name| {
            self.unfilter(name);
        });
    }

    /// Removes everything: links first, even if other processes have them open, then maps, then the folder. Returns the number of objects.
    pub fn remove_all(&self) -> Result<usize, FastPathError> {
        let mut count = interface::names().iter().filter(|interface| self.unfilter(interface)).count();
        let mut entries = self.entries();
        // Links have a number behind their name; a name without comes last.
        entries.sort_by_key(|path| !path.to_string_lossy().ends_with(|last: char| last.is_ascii_digit()));
        for path in entries {
            remove(&path).map_err(FastPathError::when(format!("remove {}", path.display())))?;
            count += 1;
        }
        match std::fs::remove_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FastPathError::new(format!("remove {}", self.folder.display()), error))
            }
            _ => Ok(count),
        }
    }

    /// The same, then unmounts the file system if a gateway mounted it and it is empty.
    pub fn end(self) -> Result<usize, FastPathError> {
        let count = self.remove_all()?;
        let pin_path = self.pin_path.clone();
        drop(self);
        bpf_mount::release(&pin_path);
        Ok(count)
    }
}

/// Removes everything that a gateway of this name left, of any version: attached programs, maps with their flows, and the file system if a
/// gateway mounted it and it is empty. Returns the number of pinned objects; 0 for a folder that does not exist.
///
/// # Errors
/// What the kernel said; something may be left then.
pub fn remove_all(pin_path: &Path, gateway: &str) -> Result<usize, FastPathError> {
    Pins::of(pin_path, gateway).end()
}

/// The gateways that have something pinned in a folder, running or not.
pub fn gateways(pin_path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(pin_path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
    folders.filter_map(|entry| pin_path::gateway(entry.file_name().to_str()?)).collect()
}

fn remove(path: &Path) -> io::Result<()> {
    if let Ok(object) = bpf::open(path) {
        // Fails for other objects, and for a link whose interface no longer exists.
        let _ = bpf::detach(object.as_fd());
    }
    std::fs::remove_file(path)
}
