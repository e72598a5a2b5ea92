//! Names that the kernel gives interfaces.

use crate::fault::{Report, did_you_mean};
use crate::host::HostFacts;
use crate::value::Value;

/// What is said of a name that [no interface](is_interface_name) can have.
pub(crate) const NO_INTERFACE: &str =
    "is not a valid interface name (at most 15 characters); write one that `ip link` shows";

/// Why forwarded packets do not come by the device or the loopback interface.
pub(crate) const NO_FORWARDED: &str =
    "cannot be used: no forwarded packets arrive on it; write the interfaces that packets arrive on";

/// Whether the kernel could call an interface so (dev_valid_name).
pub(crate) fn is_interface_name(name: &str) -> bool {
    let allowed = |b: u8| !(b.is_ascii_whitespace() || b.is_ascii_control() || b"/:".contains(&b));
    name.len() <= INTERFACE_NAME && !matches!(name, "" | "." | "..") && name.bytes().all(allowed)
}

/// What is said of an interface in a list of those that packets arrive on.
pub(crate) struct InterfaceList<'a> {
    /// The gateway's device, which cannot be one, nor can the loopback interface.
    pub device: Option<&'a str>,
    /// The interfaces that there are.
    pub host: &'a HostFacts,
    /// Why the device and the loopback interface are refused, and what to write.
    pub refused: &'a str,
    /// What holds while an interface does not exist.
    pub until: &'a str,
}

/// A list of interfaces, ascending. `warning` may have one about an interface that exists.
pub(crate) fn read_interfaces(
    list: Value<'_>,
    InterfaceList { device, host, refused, until }: InterfaceList<'_>,
    warning: impl Fn(&str) -> Option<String>,
    report: &mut Report,
) -> Option<Vec<String>> {
    let items = list.items();
    let known = || host.interfaces.iter().map(String::as_str);
    let read = items.iter().filter_map(|item| {
        let name = item.text(report)?;
        if !is_interface_name(&name) {
            report.fault(&item.place, format!("\"{name}\" {NO_INTERFACE}"));
            return None;
        }
        if name == "lo" || Some(&*name) == device {
            report.fault(&item.place, format!("\"{name}\" {refused}"));
            return None;
        }
        if known().next().is_some() && !known().any(|own| own == name) {
            let near = did_you_mean(&name, known().filter(|own| !items.iter().any(|item| item.is_word(own))));
            let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            report.warn(&item.place, format!("interface \"{name}\" does not exist; {until}{near}"));
        } else if let Some(warning) = warning(&name) {
            report.warn(&item.place, warning);
        }
        Some(name)
    });
    let mut read: Vec<String> = read.collect();
    let whole = read.len() == items.len();
    read.sort_unstable();
    read.dedup();
    whole.then_some(read)
}

/// IFNAMSIZ without its terminating zero.
const INTERFACE_NAME: usize = 15;
