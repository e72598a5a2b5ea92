//! `[fastpath]`: what the kernel forwards, and where.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::fault::Report;
use crate::host::HostFacts;
use crate::interface_name::{InterfaceList, NO_FORWARDED, read_interfaces};
use crate::schema::LEAST_FLOWS;
use crate::section::Reader;
use crate::text;
use crate::value::Value;
use crate::word::words;

words! {
    /// Where the kernel is to forward packets.
    FastPathMode {
        /// In the driver where possible, else at tc ingress; not at all where the kernel allows neither.
        Auto = "auto",
        /// At tc ingress, or the gateway does not start.
        Tc = "tc",
        /// In the driver, or the gateway does not start.
        Xdp = "xdp",
        /// Nowhere.
        Off = "off",
    }
}

/// `[fastpath]`, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FastPath {
    /// Where packets are forwarded.
    pub mode: FastPathMode,
    /// The interfaces; none: every Ethernet device that is up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// The directory, of a BPF file system, for pinned objects.
    pub pin_path: PathBuf,
    /// Stateful flows that it has room for; `None`: from the translators' `max_sessions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Packets of a flow that the engine forwards before the flow is offloaded.
    pub packets: u32,
    /// Whether flows that the fast path may forward are excluded from connection tracking.
    pub notrack: bool,
    /// Whether TCP SYNs of stateless mechanisms are forwarded in the kernel too, past the packet filter.
    pub forward_syn: bool,
    /// How long the kernel continues to forward without the gateway.
    #[serde(serialize_with = "text::as_duration")]
    pub absence: Duration,
}

/// The default maximum of flows: 48 MiB of memory.
const USUAL_FLOWS: u64 = 262_144;
/// Maximum number of interfaces that the programs are attached to.
pub const FAST_PATH_INTERFACES: usize = 16;

impl FastPath {
    pub(crate) fn read(
        section: &Reader,
        device: Option<&str>,
        host: &HostFacts,
        report: &mut Report,
    ) -> Option<Self> {
        let mode = section.value("mode", report).and_then(|v| v.word(report));
        let interfaces = match section.value("interfaces", report) {
            None => Some(Vec::new()),
            Some(v) => interfaces(v, device, host, report),
        };
        let pin_path = section.value("pin_path", report).and_then(|v| {
            let path = v.path(report)?;
            if !path.is_absolute() {
                report.fault(&v.place, "is not an absolute path; write one such as \"/run/sixway/bpf\"");
                return None;
            }
            Some(path)
        });
        let flows = section.value("flows", report).and_then(|v| v.integer_or(report));
        let packets = section.value("packets", report).and_then(|v| v.integer(report));
        let notrack = section.value("notrack", report).and_then(|v| v.boolean(report));
        let forward_syn = section.value("forward_syn", report).and_then(|v| v.boolean(report));
        let absence = section.value("absence", report).and_then(|v| v.duration(report));
        Some(Self {
            mode: mode?,
            interfaces: interfaces?,
            pin_path: pin_path?,
            flows: flows?,
            packets: packets?,
            notrack: notrack?,
            forward_syn: forward_syn?,
            absence: absence?,
        })
    }

    /// Maximum number of flows: as configured, else enough for `sessions`, within limits.
    pub fn flows(&self, sessions: u64) -> u32 {
        let usual = sessions.clamp(LEAST_FLOWS, USUAL_FLOWS) as u32;
        self.flows.unwrap_or(usual)
    }

    /// Whether the fast path is enabled.
    pub fn is_on(&self) -> bool {
        self.mode != FastPathMode::Off
    }

    /// Whether the gateway does not start without it.
    pub fn is_demanded(&self) -> bool {
        matches!(self.mode, FastPathMode::Tc | FastPathMode::Xdp)
    }
}

fn interfaces(
    list: Value<'_>,
    device: Option<&str>,
    host: &HostFacts,
    report: &mut Report,
) -> Option<Vec<String>> {
    let place = list.place.clone();
    let until = "the program is attached when the interface appears";
    let list_of = InterfaceList { device, host, refused: NO_FORWARDED, until };
    let read = read_interfaces(list, list_of, |_| None, report)?;
    if read.len() > FAST_PATH_INTERFACES {
        report.fault(&place, format!("are {} interfaces; {FAST_PATH_INTERFACES} at most", read.len()));
        return None;
    }
    Some(read)
}
