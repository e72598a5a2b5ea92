//! The settings that the fast path is started with, and the result of the start.

use crate::layout::Config;
use std::fmt;
use std::path::PathBuf;

/// Where packets are forwarded in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver where possible, else at tc ingress.
    #[default]
    Auto,
    /// At tc ingress.
    Tc,
    /// In the driver only.
    Xdp,
}

/// What the programs are made for: another configuration is another program.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Their constants. `can_decap_gso` is the loader's.
    pub config: Box<Config>,
    /// Maps that are filled before a packet comes.
    pub tables: Vec<Table>,
}

impl Rules {
    /// Whether others make the same programs.
    pub fn make_the_same(&self, other: &Self) -> bool {
        self.config.octets() == other.config.octets() && self.tables == other.tables
    }
}

/// What a map of the programs' own holds, which has room for these rows alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table {
    /// Its name.
    pub map: &'static str,
    /// Key and value of each element, as the map has them.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What the fast path is started with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// A folder of a BPF file system; one is mounted there if it is empty or missing.
    pub pin_path: PathBuf,
    /// The gateway's name: its folder in there.
    pub gateway: String,
    /// Where packets are forwarded.
    pub mode: Mode,
    /// At tc ingress by the clsact queueing discipline even where the kernel has TCX, as before Linux 6.6.
    pub clsact: bool,
    /// Stateful flows that there is room for, 192 octets each.
    pub capacity: u32,
    /// Interfaces that the programs are attached to.
    pub interfaces: Vec<String>,
    /// What they are made for.
    pub rules: Rules,
}

/// How the programs are attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// In the driver, and at tc ingress for what cannot leave from there.
    Xdp,
    /// At tc ingress, by a TCX link (Linux 6.6).
    Tcx,
    /// At tc ingress, by a filter of the clsact queueing discipline.
    Clsact,
}

impl fmt::Display for AttachPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xdp => "xdp",
            Self::Tcx => "tc (tcx)",
            Self::Clsact => "tc (clsact)",
        })
    }
}

/// An interface that the programs are attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its name.
    pub interface: String,
    /// Its index.
    pub ifindex: u32,
    /// How they are attached.
    pub place: AttachPoint,
    /// Why not otherwise, or what was found: a few words.
    pub why: String,
    /// A problem with this interface, and how to fix it.
    pub warning: Option<String>,
}

/// An interface that the programs could not be attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub interface: String,
    /// Its index; `None`: it no longer exists.
    pub ifindex: Option<u32>,
    /// Why not.
    pub why: String,
}

/// What was found where the maps are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the maps are new.
    Nothing,
    /// The maps of the previous process, with flows to be adopted.
    Kept,
    /// Maps that could not be reused, for this reason. They were removed with their attached programs; the maps are new.
    Replaced(String),
}
