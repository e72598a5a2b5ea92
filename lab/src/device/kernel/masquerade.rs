//! The kernel's NAT44 by nftables: masquerade behind an outside link's address, or the addresses of a pool.

use super::connections::{delete_connections, memory_of_connections};
use super::forward::Forwarding;
use crate::device::card::{Card, Realm};
use crate::device::contract::{Device, Running};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::device::reading::{CpuReader, CpuReading, MemoryReading};
use crate::device::task::{Task, TaskKind};
use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::command;
use crate::results::Machine;
use std::net::Ipv4Addr;
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(5);

/// The kernel's NAT44.
pub struct KernelMasquerade;

const CARD: Card = Card {
    name: "kernel-masquerade",
    what: "this kernel's NAT44 (nftables)",
    realm: Realm::Here,
    needs: Needs { programs: &["ip", "nft"], ..Needs::NAMESPACE },
};

impl Device for KernelMasquerade {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Nat44]
    }

    fn version(&self) -> Result<String> {
        Ok(format!("Linux {}", Machine::here().kernel))
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let task = task.nat44(CARD.name)?;
        place.network.forwards(place.host)?;
        let masquerade = Masquerade::new(place, &task.inside, &task.pool)?;
        let rules = masquerade.apply(place)?;
        let forwarding = Forwarding { place: place.clone(), commands: vec![rules] };
        Ok(Box::new(Translating { forwarding, masquerade }))
    }
}

/// NAT rules of nftables.
#[derive(Clone, Debug)]
pub struct Masquerade {
    rules: String,
}

impl Masquerade {
    /// For hosts of these networks, behind this pool, or the address of the outside link by which their packets leave.
    ///
    /// # Errors
    /// The kernel cannot take addresses from more than one prefix.
    pub fn new(place: &Place, inside: &[String], pool: &[String]) -> Result<Self> {
        let to = match pool {
            [] => "masquerade".to_owned(),
            [pool] => format!("snat to {}", range(pool)?),
            _ => {
                return Err(Failure::Unexpected(
                    "the kernel's NAT44 takes addresses of one prefix".to_owned(),
                ));
            }
        };
        let (inside, links) = (inside.join(", "), place.outside.join(", "));
        let rules = format!(
            "table ip sixway_lab {{\n  chain leaving {{\n    type nat hook postrouting priority srcnat\n    \
             ip saddr {{ {inside} }} oifname {{ {links} }} {to}\n  }}\n}}\n"
        );
        Ok(Self { rules })
    }

    /// Sets the rules on the device's host, in place of earlier ones; the command.
    ///
    /// # Errors
    /// nft refuses.
    pub fn apply(&self, place: &Place) -> Result<String> {
        let text = format!("table ip sixway_lab {{}}\ndelete table ip sixway_lab\n{}", self.rules);
        let file = place.network.file(&format!("{}.nft", place.host), &text)?;
        let mut nft = command("nft")?;
        nft.arg("-f").arg(file);
        place.network.host(place.host)?.run(nft, SHORT)?.succeeded()?;
        Ok(format!("nft -f - <<END\n{}END", self.rules))
    }
}

/// A prefix of IPv4, or an address, as its first and last address: otherwise the kernel would translate prefix by prefix.
fn range(prefix: &str) -> Result<String> {
    let strange = || Failure::Unexpected(format!("{prefix:?} is not a prefix of IPv4"));
    let (address, length) = prefix.split_once('/').unwrap_or((prefix, "32"));
    let address: Ipv4Addr = address.parse().map_err(|_| strange())?;
    let length: u32 = length.parse().ok().filter(|length| *length <= 32).ok_or_else(strange)?;
    let last = Ipv4Addr::from_bits(address.to_bits() | u32::MAX.checked_shr(length).unwrap_or(0));
    Ok(if last == address { address.to_string() } else { format!("{address}-{last}") })
}

/// A host whose kernel translates.
struct Translating {
    forwarding: Forwarding,
    masquerade: Masquerade,
}

impl Running for Translating {
    /// With its rules the table of connections stays: it is the kernel's. Entries without rules expire.
    fn restart(&mut self) -> Result<()> {
        self.masquerade.apply(&self.forwarding.place)?;
        self.forwarding.restart()
    }

    fn forget(&mut self) -> Result<()> {
        delete_connections(&self.forwarding.place)
    }

    fn cpu(&self) -> Result<CpuReading> {
        self.forwarding.cpu()
    }

    fn cpu_reader(&self) -> Option<CpuReader> {
        self.forwarding.cpu_reader()
    }

    fn memory(&self) -> Result<MemoryReading> {
        memory_of_connections(&self.forwarding.place)
    }

    fn counters(&self) -> Result<Vec<(String, u64)>> {
        connections(&self.forwarding.place)
    }

    fn commands(&self) -> Vec<String> {
        self.forwarding.commands()
    }
}

/// The connection table's size, and what it refused.
///
/// # Errors
/// The kernel does not say.
pub fn connections(place: &Place) -> Result<Vec<(String, u64)>> {
    let host = place.network.host(place.host)?;
    let count = host.read_sysctl("netfilter/nf_conntrack_count")?.parse().unwrap_or(0);
    let text = host
        .enter(|| std::fs::read_to_string("/proc/thread-self/net/stat/nf_conntrack"))?
        .asking(|| "reading /proc/net/stat/nf_conntrack".to_owned())?;
    let mut all = vec![("connections".to_owned(), count)];
    all.extend(["insert_failed", "drop", "early_drop"].map(|name| (name.to_owned(), sum(&text, name))));
    Ok(all)
}

/// A line of names, then one of hexadecimal numbers for each CPU.
fn sum(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let column = lines.next().and_then(|names| names.iter().position(|it| *it == name));
    let Some(column) = column else { return 0 };
    lines.filter_map(|line| u64::from_str_radix(line.get(column)?, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_given_as_a_range() {
        assert_eq!(range("198.19.1.0/27").unwrap(), "198.19.1.0-198.19.1.31");
        assert_eq!(range("198.19.1.1/32").unwrap(), "198.19.1.1");
        assert_eq!(range("198.19.1.1").unwrap(), "198.19.1.1");
        assert!(range("198.19.1").is_err() && range("198.19.1.0/33").is_err());
    }

    #[test]
    fn counters_of_all_cpus_are_added() {
        let text = "entries  insert_failed drop\n00000011  0000000a 00000001\n00000011  00000001 00000000\n";
        assert_eq!((sum(text, "insert_failed"), sum(text, "drop"), sum(text, "none")), (11, 1, 0));
    }
}
