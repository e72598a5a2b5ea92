//! Changed kernel settings, possibly of several gateways, and their restoration.

use nix::time::ClockId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A changed kernel setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) before: String,
    pub(super) value: String,
    /// When, in nanoseconds since the machine's start: settings of several gateways have one order.
    #[serde(default)]
    pub(super) made: u64,
    /// `net.ipv4.conf.all.forwarding` at that time, if it is about forwarding.
    #[serde(default)]
    pub(super) ip_forward: Option<String>,
}

impl Changed {
    /// A setting that is about to be made.
    pub(super) fn now(path: &Path, before: &str, value: &str) -> Self {
        let made = ClockId::CLOCK_BOOTTIME.now().map_or(Duration::ZERO, Duration::from);
        let made = u64::try_from(made.as_nanos()).unwrap_or(u64::MAX);
        let ip_forward = ip_forward_of(path).and_then(|path| sysctl(&path).ok());
        Self { path: path.into(), before: before.into(), value: value.into(), made, ip_forward }
    }

    /// Whether it made a difference.
    pub(super) fn differs(&self) -> bool {
        self.before != self.value
    }
}

/// Restores settings, the last made first: those that still are what was set, except forwarding that another program enabled
/// meanwhile. How many made a difference, and how many were kept for others.
pub(super) fn put_back(mut settings: Vec<Changed>) -> (usize, usize) {
    let all = settings.len();
    settings.retain(|changed| !others_forward(changed));
    let kept = all - settings.len();
    settings.sort_by_key(|changed| changed.made);
    // Before the first is written: writing one setting changes others.
    let mut values: HashMap<&Path, String> = HashMap::new();
    for changed in &settings {
        values.extend(sysctl(&changed.path).ok().map(|value| (changed.path.as_path(), value)));
    }
    let mut ours = Vec::new();
    for changed in settings.iter().rev() {
        if let Some(value) = values.get_mut(changed.path.as_path()).filter(|value| **value == changed.value) {
            value.clone_from(&changed.before);
            ours.push(changed);
        }
    }
    // An empty one is written as an empty line: the kernel sees nothing of a write of no octets.
    let written =
        ours.into_iter().filter(|changed| fs::write(&changed.path, format!("{}\n", changed.before)).is_ok());
    (written.filter(|changed| changed.differs()).count(), kept)
}

/// What a setting is.
pub(super) fn sysctl(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

/// `net.ipv4.conf.all.forwarding`, for a setting that has to do with forwarding: `net/ipv4/conf/IF/forwarding`,
/// `net/ipv6/conf/IF/forwarding` and `net/ipv6/conf/IF/accept_ra`.
fn ip_forward_of(path: &Path) -> Option<PathBuf> {
    let conf = path.parent()?.parent()?;
    let (v4, v6) = (conf.ends_with("net/ipv4/conf"), conf.ends_with("net/ipv6/conf"));
    let found = match path.file_name()?.to_str()? {
        "forwarding" => v4 || v6,
        "accept_ra" => v6,
        _ => false,
    };
    found.then(|| Some(conf.parent()?.parent()?.join("ipv4/conf/all/forwarding")))?
}

/// Whether another program enabled forwarding since, as Docker and libvirt do by `net.ipv4.ip_forward`, which no gateway
/// writes. They find IPv6's enabled already and do not write it, so that only IPv4's tells.
fn others_forward(changed: &Changed) -> bool {
    let now = ip_forward_of(&changed.path).and_then(|path| sysctl(&path).ok());
    now.as_deref() == Some("1") && changed.ip_forward.as_deref() != Some("1")
}
