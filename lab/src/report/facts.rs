//! Facts about a whole run: the machine, the devices, the noise, and how to repeat it.

use super::figure::figure;
use crate::experiment;
use crate::results::{Asked, Header, Results, Sample, Unit, shifted};

/// The seed of a run that names none.
const DEFAULT_SEED: u64 = 1;

/// The machine in one line.
pub(super) fn machine(header: &Header) -> String {
    let machine = &header.machine;
    let below = if machine.virtualised { " (virtual)" } else { "" };
    let rootless = if machine.rootless { ", without root (in a user namespace)" } else { "" };
    let governor = machine.governor.as_deref().unwrap_or("not visible");
    let pinned = match header.asked.pin && machine.cpus > 1 {
        true => ", devices on CPU 1 and the tester on CPU 0",
        false => ", nothing pinned to a CPU",
    };
    format!(
        "{} × {}{below}{pinned}, {} MiB, Linux {}, clock {}, frequency governor {governor}, load {} at the start{rootless}",
        machine.cpus, machine.cpu, machine.memory_mb, machine.kernel, machine.clock, machine.load
    )
}

/// When and with which lab.
pub(super) fn version(header: &Header) -> String {
    let commit = header.commit.as_deref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    format!("{}, lab {}{commit}", header.started, header.lab)
}

/// How many cells are measured.
pub(super) fn progress(results: &Results) -> String {
    let measured = results.samples.iter().filter(|sample| sample.failed.is_none()).count();
    let why = results.header.minutes.map(|minutes| format!(" within {minutes} minutes")).unwrap_or_default();
    format!("{measured} of {} cells are measured{why}", results.header.plan.len())
}

/// The control's range: how different the same work took.
pub(super) fn noise(samples: &[Sample]) -> String {
    let controls = || samples.iter().filter_map(|sample| sample.control);
    let (low, high) = (controls().fold(f64::INFINITY, f64::min), controls().fold(0.0, f64::max));
    let share =
        crate::analyse::noise(samples).map(|noise| format!(" (standard deviation {:.1} %)", noise * 100.0));
    match low.is_finite() {
        true => format!(
            "a fixed piece of work took {} to {} ms between the measurements{}",
            figure(low, Unit::Milliseconds),
            figure(high, Unit::Milliseconds),
            share.unwrap_or_default()
        ),
        false => "not measured".to_owned(),
    }
}

/// The command that repeats an experiment.
pub(super) fn command(name: &str, asked: &Asked) -> String {
    let sudo = if asked.rootless { "" } else { "sudo " };
    let mut words = vec![format!("{sudo}sixway-lab run {name}")];
    words.push(format!("--scale {} --repeats {}", scale(asked), asked.repeats));
    if asked.quick {
        words.push("--quick".to_owned());
    }
    if !asked.devices.is_empty() {
        words.push(format!("--devices {}", word(&asked.devices.join(","))));
    }
    let set = asked.set.iter().filter(|(key, _)| has_setting(name, key));
    words.extend(set.map(|(key, value)| format!("--set {}", word(&format!("{key}={value}")))));
    if asked.seed != DEFAULT_SEED {
        words.push(format!("--seed {}", asked.seed));
    }
    if !asked.pin {
        words.push("--no-pin".to_owned());
    }
    words.extend(asked.guest.iter().map(|kind| format!("--guest {}", word(kind))));
    words.extend(asked.remote.iter().map(|device| format!("--remote {}", word(device))));
    words.extend(asked.remote_hosts.iter().map(|host| format!("--remote-host {}", word(host))));
    if asked.rootless {
        words.push("--rootless".to_owned());
    }
    words.join(" ")
}

/// Whether an experiment has this setting, which may be one of another experiment of the run. An unknown experiment may have any.
fn has_setting(name: &str, key: &str) -> bool {
    experiment::find(name).is_none_or(|experiment| experiment.settings().contains(&key))
}

/// A word of a shell's command line.
fn word(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "=,.:@/-_+%".contains(it);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The number that asks for this scale: a quick run divides it by ten.
fn scale(asked: &Asked) -> f64 {
    if asked.quick { shifted(asked.scale, 1) } else { asked.scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_root_says_so() {
        let header = |rootless| Header {
            schema: 1,
            machine: crate::results::Machine { rootless, ..Default::default() },
            ..Header::default()
        };
        assert!(machine(&header(true)).ends_with(", without root (in a user namespace)"));
        assert!(!machine(&header(false)).contains("without root"));
    }

    #[test]
    fn a_command_names_what_is_not_usual() {
        let usual = || Asked { scale: 0.02, repeats: 3, seed: 1, pin: true, ..Asked::default() };
        assert_eq!(command("tools", &usual()), "sudo sixway-lab run tools --scale 0.02 --repeats 3");
        let set = [("hosts".to_owned(), "1,4".to_owned())].into();
        let devices = ["sixway", "kernel"].map(str::to_owned).to_vec();
        // A tenth of 0.0096, of which ten times are 0.009600000000000001.
        let other = Asked { scale: 0.000_96, quick: true, devices, set, seed: 7, pin: false, ..usual() };
        let said = "sudo sixway-lab run relay-2013 --scale 0.0096 --repeats 3 --quick --devices sixway,kernel --set hosts=1,4 --seed 7 --no-pin";
        assert_eq!(command("relay-2013", &other), said);
        let remote = vec!["bsd=ssh:root@192.0.2.9,recipe=my recipe.sh,inside=eth1".to_owned()];
        let other = Asked {
            guest: Some("kvm".to_owned()),
            remote,
            remote_hosts: vec!["client=script:r.sh,link=a,link-there=b".to_owned()],
            rootless: true,
            ..Asked { quick: false, ..usual() }
        };
        let said = "sixway-lab run tools --scale 0.02 --repeats 3 --guest kvm \
                    --remote 'bsd=ssh:root@192.0.2.9,recipe=my recipe.sh,inside=eth1' \
                    --remote-host client=script:r.sh,link=a,link-there=b --rootless";
        assert_eq!(command("tools", &other), said);
        let rooted = command("tools", &Asked { rootless: false, ..other });
        assert!(rooted.starts_with("sudo sixway-lab run ") && !rooted.contains("--rootless"), "{rooted}");
        let other = Asked { devices: vec!["a; b".to_owned()], guest: Some("$c".to_owned()), ..usual() };
        let said = command("tools", &other);
        assert!(said.contains("--devices 'a; b'") && said.contains("--guest '$c'"), "{said}");
        assert_eq!([word("it's"), word("")], [r"'it'\''s'", "''"]);
    }

    #[test]
    fn a_command_has_the_settings_of_its_experiment_only() {
        let set = [("hosts", "1,4"), ("series", "all"), ("tools", "ping")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let asked = Asked { scale: 0.02, repeats: 3, seed: 1, pin: true, set, ..Asked::default() };
        let settings = |name| command(name, &asked).split_once(" --set ").map(|(_, set)| set.to_owned());
        assert_eq!(settings("relay-2013").as_deref(), Some("hosts=1,4 --set series=all"));
        assert_eq!(settings("tools").as_deref(), Some("tools=ping"));
        assert_eq!(settings("tester"), None);
        assert_eq!(settings("of-another-version").map(|set| set.matches("--set").count()), Some(2));
    }
}
