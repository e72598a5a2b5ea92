//! The requirements of a device or an experiment.

use crate::programs;
use crate::results::Machine;
use serde::Serialize;

/// What must be there.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Needs {
    /// Programs, as [`programs::PROGRAMS`] names them.
    pub programs: &'static [&'static str],
    /// Root, or a user namespace in which the lab is.
    pub root: bool,
    /// Programs of BPF can be loaded.
    pub bpf: bool,
    /// CPUs; with fewer, the tester shares the device's.
    pub cpus: usize,
    /// Memory in MiB.
    pub memory_mb: u64,
}

impl Needs {
    /// Nothing but a namespace.
    pub const NAMESPACE: Self = Self { programs: &["ip"], root: true, bpf: false, cpus: 1, memory_mb: 256 };

    /// All of it in words, whether it is there or not.
    pub fn text(&self) -> String {
        let mut all = Vec::new();
        all.extend(self.root.then(|| "root".to_owned()));
        all.extend(self.bpf.then(|| "BPF".to_owned()));
        all.extend(self.programs.iter().map(|program| (*program).to_owned()));
        all.extend((self.cpus > 1).then(|| format!("{} CPUs", self.cpus)));
        all.extend((self.memory_mb > 0).then(|| format!("{} MiB", self.memory_mb)));
        if all.is_empty() { "–".to_owned() } else { all.join(", ") }
    }

    /// What is missing on this machine, as a sentence.
    pub fn lacking(&self, here: &Machine) -> Option<String> {
        if self.root && !here.root {
            return Some("needs root".to_owned());
        }
        if self.bpf && !here.bpf {
            return Some("needs permission to load BPF programs: run sixway-lab as root".to_owned());
        }
        if here.cpus < self.cpus {
            return Some(format!("needs {} CPUs, and here are {}", self.cpus, here.cpus));
        }
        if here.memory_mb < self.memory_mb {
            return Some(format!("needs {} MiB of memory, and here are {}", self.memory_mb, here.memory_mb));
        }
        let missing = self.programs.iter().find_map(|program| programs::require(program).err());
        missing.map(|failure| failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_named_also_where_it_is_there() {
        let needs = Needs { programs: &["ip", "nft"], bpf: true, cpus: 2, ..Needs::NAMESPACE };
        assert_eq!(needs.text(), "root, BPF, ip, nft, 2 CPUs, 256 MiB");
        assert_eq!(Needs { programs: &[], root: false, bpf: false, cpus: 1, memory_mb: 0 }.text(), "–");
    }

    #[test]
    fn what_is_missing_is_named() {
        let here = Machine { cpus: 2, memory_mb: 1_000, root: true, ..Machine::default() };
        let needs = Needs { programs: &[], ..Needs::NAMESPACE };
        let lacking = |needs: Needs| needs.lacking(&here).unwrap_or_default();
        assert_eq!(lacking(needs), "");
        assert_eq!(
            lacking(Needs { bpf: true, ..needs }),
            "needs permission to load BPF programs: run sixway-lab as root"
        );
        assert_eq!(lacking(Needs { cpus: 3, ..needs }), "needs 3 CPUs, and here are 2");
        assert!(lacking(Needs { programs: &["no-such-program"], ..needs }).contains("no-such-program"));
        assert_eq!(needs.lacking(&Machine { root: false, ..here.clone() }).as_deref(), Some("needs root"));
    }
}
