//! What outlives the process: maps and links, in the gateway's folder of a BPF file system.

use crate::bpf;
use crate::bpf_mount;
use crate::error::FastPathError;
use crate::interface;
use crate::layout::{self, COUNTERS, NEXT_HOPS};
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

/// Where clsact's filter stands: before those whose priority the kernel chooses, as steering's is.
pub(crate) const PRIORITY: u16 = 6;

/// Octets of a control map that every version has: magic and version.
const VERSIONED: usize = 8;

/// Names of the pins of programs that were loaded ahead, before their stamp.
const AHEAD: &str = "ahead_";

/// BPF_F_MMAPABLE.
const MMAPABLE: u32 = 1 << 10;

/// What a pinned map is to be like.
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
    shape("identifications", MapType::PerCpuArray, 4, 0, Some(1)),
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
    /// The file system, which nobody unmounts while it is open.
    _open: Option<File>,
}

impl Pins {
    /// The folder, whether it is there or not.
    pub fn of(pin_path: &Path, gateway: &str) -> Self {
        let folder = pin_path::folder(pin_path, gateway);
        Self { pin_path: pin_path.into(), folder, gateway: gateway.into(), _open: None }
    }

    /// The folder, made if it was not there.
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
        // Whoever may write there could put other maps and programs in the place of ours.
        if !folder.is_dir() || folder.uid() != own || folder.mode() & 0o022 != 0 {
            return Err(wrong("others may change what is pinned there; remove it, then start again".into()));
        }
        Ok(pins)
    }

    /// Names of the maps, and where each is pinned.
    pub fn maps(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        MAPS.iter().map(|shape| (shape.name, self.folder.join(shape.name)))
    }

    /// The kernel's numbers of the maps, each of which is one map's for ever; 0: it is not there.
    pub fn numbers(&self) -> Vec<u32> {
        self.maps().map(|(_, path)| MapInfo::from_pin(path).map_or(0, |info| info.id())).collect()
    }

    /// Where a link is pinned.
    pub fn link(&self, hook: &str, ifindex: u32) -> PathBuf {
        self.folder.join(format!("{hook}_{ifindex}"))
    }

    /// Indices of interfaces of which a link is pinned.
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

    /// Takes programs away that were loaded ahead: nobody waits for them any more.
    pub fn forget_ahead(&self) {
        let is_ahead =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(AHEAD));
        for path in self.entries().into_iter().filter(is_ahead) {
            // What stays is only in memory's way, and goes with the folder.
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

    /// Whether there is a control map, of whatever version: it can be mapped, as all of them are no larger than a page, and says which.
    pub fn has_version(&self) -> bool {
        MapInfo::from_pin(self.folder.join("control")).is_ok_and(|found| {
            found.map_type().is_ok_and(|kind| kind == MapType::Array)
                && found.value_size() as usize >= VERSIONED
                && found.map_flags() & MMAPABLE != 0
        })
    }

    /// Why the pinned maps are none that this program can use, by their sizes; `None`: they are, or there are none.
    pub fn strange(&self, buckets: u32) -> Option<String> {
        MAPS.iter().find_map(|shape| shape.differs(&self.folder.join(shape.name), buckets))
    }

    /// A pinned map.
    pub fn map(&self, name: &str) -> Result<MapData, FastPathError> {
        MapData::from_pin(self.folder.join(name)).map_err(FastPathError::when(format!("open map {name}")))
    }

    /// The handle of clsact's filter: the same for the same gateway, and nobody else's.
    pub fn handle(&self) -> TcHandle {
        let fold = |hash: u16, octet: u8| hash.wrapping_mul(251).wrapping_add(u16::from(octet));
        TcHandle::new(0x6477, self.gateway.bytes().fold(1, fold))
    }

    /// Ends a link and takes its pin away. Whether there was one.
    pub fn unlink(&self, hook: &str, ifindex: u32) -> bool {
        remove(&self.link(hook, ifindex)).is_ok()
    }

    /// Takes away the filter that hangs at an interface by clsact. Whether there was one.
    pub fn unfilter(&self, interface: &str) -> bool {
        let link =
            SchedClassifierLink::attached(interface, TcAttachType::Ingress, PRIORITY, self.handle(), None);
        link.is_ok_and(|link| link.detach().is_ok())
    }

    /// Takes away filters that hang by clsact at other interfaces than these.
    pub fn unfilter_all_but(&self, kept: &[String]) {
        interface::names().iter().filter(|name| !kept.contains(name)).for_each(|name| {
            self.unfilter(name);
        });
    }

    /// Takes everything away: links first, whoever has them open, then maps, then the folder. Returns how many things that were.
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

    /// The same, and then the file system, if a gateway mounted it and nothing is in it any more.
    pub fn end(self) -> Result<usize, FastPathError> {
        let count = self.remove_all()?;
        let pin_path = self.pin_path.clone();
        drop(self);
        bpf_mount::release(&pin_path);
        Ok(count)
    }
}

/// Takes everything away that a gateway of this name has left, of whatever version: programs at interfaces, maps with their flows, and the
/// file system, if a gateway mounted it and nothing is in it any more. Returns how many things were pinned; a folder that is not there is nothing.
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
        // No link, or its interface is gone.
        let _ = bpf::detach(object.as_fd());
    }
    std::fs::remove_file(path)
}
