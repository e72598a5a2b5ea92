//! The addresses, routes, rules, packet filters and settings of a host: if they are the same before and after, nothing was left behind.

use crate::failure::Result;
use crate::namespace::{Namespace, command};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What a host has, each line by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostState(BTreeMap<String, String>);

/// What `ip` lists.
const LISTS: [&str; 6] = [
    "-brief link show",
    "-brief address show",
    "-4 route show table all",
    "-6 route show table all",
    "-4 rule show",
    "-6 rule show",
];

impl HostState {
    /// That of a host of a network.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(host: &Namespace) -> Result<Self> {
        let mut state = Self::default();
        for list in LISTS {
            state.note(list, &host.ip(list)?);
        }
        let mut nft = command("nft")?;
        nft.args(["list", "tables"]);
        state.note("nft list tables", &host.run(nft, Duration::from_secs(10))?.succeeded()?.stdout);
        state.0.extend(host.enter(settings)?);
        Ok(state)
    }

    /// That of this machine.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_this_machine() -> Result<Self> {
        let mut state = Self::default();
        for list in LISTS {
            let mut ip = command("ip")?;
            let said = ip.args(list.split_whitespace()).output();
            state.note(
                list,
                &said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default(),
            );
        }
        let said = command("nft")?.args(["list", "tables"]).output();
        state.note(
            "nft list tables",
            &said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default(),
        );
        state.0.extend(settings());
        Ok(state)
    }

    /// The differences from the other one.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let gone = self.0.iter().filter(|(what, how)| other.0.get(*what) != Some(how));
        let new = other.0.iter().filter(|(what, _)| !self.0.contains_key(*what));
        gone.map(|(what, how)| format!("{what} was {how:?}, is {:?}", other.0.get(what)))
            .chain(new.map(|(what, how)| format!("new: {what} {how}")))
            .collect()
    }

    fn note(&mut self, what: &str, said: &str) {
        for line in said.lines() {
            // Lifetimes of what a router advertised.
            let words = line.split_whitespace().filter(|word| !word.ends_with("sec"));
            self.0.insert(format!("{what}: {}", words.collect::<Vec<_>>().join(" ")), String::new());
        }
    }
}

/// All settings of IPv4 and IPv6 of this thread's namespace.
fn settings() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in ["/proc/sys/net/ipv4", "/proc/sys/net/ipv6"] {
        read_below(Path::new(folder), &mut found);
    }
    found
}

fn read_below(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_below(&path, found);
        } else if path.ends_with("tcp_fastopen_key") {
            // The kernel makes one for the first server that uses it.
        } else if let Ok(value) = fs::read_to_string(&path) {
            // Some can only be written.
            found.insert(path.display().to_string(), value.trim().to_owned());
        }
    }
}

/// Processes whose command lines have this text in them.
pub fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let line = |entry: fs::DirEntry| {
        let number = entry.file_name().into_string().ok()?;
        let is_process = number.bytes().all(|octet| octet.is_ascii_digit()) && number != own;
        let line = is_process.then(|| fs::read(entry.path().join("cmdline")).ok()).flatten()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(text).then(|| line.trim().to_owned())
    };
    entries.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appears_goes_or_changes_is_a_difference() {
        let mut before = HostState::default();
        before.note("-4 route show table all", "default via 192.0.2.1 dev eth0\nblackhole 192.0.2.9");
        before.0.insert("ip_forward".into(), "0".into());
        let mut after = HostState::default();
        after.note("-4 route show table all", "default via 192.0.2.1 dev eth0");
        after.note("nft list tables", "table inet x");
        after.0.insert("ip_forward".into(), "1".into());
        assert_eq!(before.differences(&before.clone()), [""; 0]);
        let told = before.differences(&after).join("\n");
        for part in [
            "blackhole 192.0.2.9 was",
            "ip_forward was \"0\", is Some(\"1\")",
            "new: nft list tables: table inet x",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}
