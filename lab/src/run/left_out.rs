//! The devices that were asked for and are not measured, with the reason.

use crate::results::{Asked, DeviceEntry};
use crate::terminal::printable;

/// A line for each device of a run that is left out: it cannot run here, or the experiments have no task for it. `entries` are the devices that
/// take part in the experiments.
pub(super) fn left_out(experiments: &[&str], asked: &Asked, entries: &[DeviceEntry]) -> Vec<String> {
    let unable = entries.iter().filter_map(|entry| Some((&entry.name, entry.cannot_run.clone()?)));
    let has = if experiments.len() == 1 { "has" } else { "have" };
    let without_task = asked.devices.iter().filter(|name| !entries.iter().any(|entry| entry.name == **name));
    let no_task = format!("{} {has} no task for it", experiments.join(", "));
    unable
        .chain(without_task.map(|name| (name, no_task.clone())))
        .map(|(name, why)| printable(&format!("left out: {name}: {why}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_measured_is_named_with_the_reason() {
        let entry = |name: &str, why: Option<&str>| DeviceEntry {
            name: name.to_owned(),
            realm: "here".to_owned(),
            version: String::new(),
            cannot_run: why.map(str::to_owned),
            is_plain: false,
        };
        let entries = [
            entry("sixway", None),
            entry("sixway-tc", Some("needs permission to load BPF programs: run sixway-lab as root")),
        ];
        let asked = Asked {
            devices: ["sixway", "sixway-tc", "unbound"].map(str::to_owned).to_vec(),
            ..Asked::default()
        };
        let tc = "left out: sixway-tc: needs permission to load BPF programs: run sixway-lab as root";
        assert_eq!(
            left_out(&["relay-2013"], &asked, &entries),
            [tc, "left out: unbound: relay-2013 has no task for it"]
        );
        assert_eq!(
            left_out(&["relay-2013", "overload"], &asked, &entries)[1],
            "left out: unbound: relay-2013, overload have no task for it"
        );
        assert_eq!(left_out(&["relay-2013"], &Asked::default(), &entries), [tc], "those of each experiment");
    }
}
