//! The properties of the measuring machine that figures depend on.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

/// What is known about this machine; what could not be read is empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's model.
    pub cpu: String,
    /// CPUs that this program may use.
    pub cpus: usize,
    /// Memory in MiB.
    pub memory_mb: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The frequency governors of its CPUs, each once; none visible in most virtual machines.
    pub governor: Option<String>,
    /// Whether a hypervisor is below.
    pub virtualised: bool,
    /// The kernel's source of time.
    pub clock: String,
    /// Whether the lab runs as root.
    pub root: bool,
    /// Whether that root is one of a user namespace only.
    #[serde(default)]
    pub rootless: bool,
    /// Whether programs of BPF may be loaded.
    pub bpf: bool,
    /// Entries of connection tracking that the kernel admits, if it tracks.
    pub conntrack_max: Option<u64>,
    /// Load average of the last minute when the run began.
    pub load: f64,
}

impl Machine {
    /// This machine as a run finds it: users other than root get a user namespace, in which they are root.
    pub fn of_a_run() -> Self {
        Self::here().in_a_run()
    }

    fn in_a_run(self) -> Self {
        if self.root { self } else { Self { root: true, rootless: true, ..self } }
    }

    /// Reads what this machine is.
    pub fn here() -> Self {
        let cpu = read("/proc/cpuinfo");
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let number = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let root = nix::unistd::geteuid().is_root();
        let rootless = crate::rootless::is_inside();
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mb: number(&memory).unwrap_or(0) / 1_024,
            kernel: read("/proc/sys/kernel/osrelease"),
            governor: governors(),
            virtualised: field(&cpu, "flags")
                .is_some_and(|flags| flags.split(' ').any(|it| it == "hypervisor")),
            clock: read(clock),
            root,
            rootless,
            bpf: (root && !rootless) || read("/proc/sys/kernel/unprivileged_bpf_disabled") == "0",
            conntrack_max: read("/proc/sys/net/netfilter/nf_conntrack_max").parse().ok(),
            load: read("/proc/loadavg").split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
            cpu: field(&cpu, "model name").unwrap_or_default(),
        }
    }
}

/// The frequency governors of this machine's CPUs, each once, if it shows them.
pub fn governors() -> Option<String> {
    let cpus = std::fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let governor = |path: std::path::PathBuf| read_to_string(path.join("cpufreq/scaling_governor")).ok();
    each_once(cpus.filter_map(|entry| governor(entry.path())))
}

fn each_once(names: impl Iterator<Item = String>) -> Option<String> {
    let all: std::collections::BTreeSet<String> = names.map(|name| name.trim().to_owned()).collect();
    let all: Vec<String> = all.into_iter().filter(|name| !name.is_empty()).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn read(path: &str) -> String {
    read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn governors_are_named_each_once() {
        let of = |names: &[&str]| each_once(names.iter().map(|name| format!("{name}\n")));
        assert_eq!(of(&["performance", "performance"]), Some("performance".to_owned()));
        assert_eq!(of(&["schedutil", "performance", "schedutil"]), Some("performance, schedutil".to_owned()));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[""]), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let here = Machine::here();
        assert!(here.cpus > 0 && here.memory_mb > 0 && !here.kernel.is_empty(), "{here:?}");
        assert_eq!(field("a : 1\nmodel name\t: X Y\n", "model name").as_deref(), Some("X Y"));
    }

    #[test]
    fn a_run_without_root_is_in_a_user_namespace() {
        let user = Machine { root: false, bpf: false, cpus: 2, ..Machine::default() };
        let run = Machine { root: true, rootless: true, ..user.clone() };
        assert_eq!(user.in_a_run(), run);
        let root = Machine { rootless: false, bpf: true, ..run };
        assert_eq!(root.clone().in_a_run(), root);
    }
}
