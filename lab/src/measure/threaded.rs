//! The kernel's work on received packets, in threads of their own (threaded NAPI): each can be put on a core, and its CPU time is exact.
//!
//! A veth device takes packets by NAPI only if it has GRO or a program of XDP, and without a program only those of an end that does not send GSO packets: a program
//! of XDP always has its packets from such a thread, and of other devices this is for packet rates, and not for bulk TCP. A device keeps its threads with GRO, though a
//! program comes and goes.

use crate::affinity::{cpus_of, pin_thread_of};
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::load::before_all_others;
use crate::namespace::command;
use crate::topology::Network;
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::time::Duration;

/// How long `ethtool` and the like may take.
const SHORT: Duration = Duration::from_secs(20);
/// Where `ip netns` has its namespaces.
const NAMESPACES: &str = "/run/netns";

/// Threads of some devices.
#[derive(Clone, Debug)]
pub struct ReceivingThreads {
    threads: Vec<i32>,
}

impl ReceivingThreads {
    /// Lets what these devices of a host receive be worked on by threads on this core, before all other programs there.
    ///
    /// # Errors
    /// The kernel makes no threads.
    pub fn start(network: &Network, host: &str, devices: &[&str], core: Option<usize>) -> Result<Self> {
        let threads = Self::start_as_equals(network, host, devices, core)?;
        threads.threads.iter().try_for_each(|thread| before_all_others(*thread))?;
        Ok(threads)
    }

    /// The same, but they share the core with other programs in equal parts, as the kernel's own thread for received packets does: for
    /// a device that is a process there.
    ///
    /// # Errors
    /// The kernel makes no threads.
    pub fn start_as_equals(
        network: &Network,
        host: &str,
        devices: &[&str],
        core: Option<usize>,
    ) -> Result<Self> {
        let threads = devices.iter().map(|device| threads_of(network, host, device));
        let threads = threads.collect::<Result<Vec<_>>>()?.concat();
        for thread in &threads {
            core.map_or(Ok(()), |core| pin_thread_of(*thread, core))?;
        }
        Ok(Self { threads })
    }

    /// Puts them on these cores in turn.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn spread(&self, cores: &[usize]) -> Result<()> {
        let mut pairs = self.threads.iter().zip(cores.iter().cycle());
        pairs.try_for_each(|(thread, core)| pin_thread_of(*thread, *core))
    }

    /// How many CPUs they may run on, all of them together.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn cpus(&self) -> Result<usize> {
        let mut all = BTreeSet::new();
        for thread in &self.threads {
            all.extend(cpus_of(*thread)?);
        }
        Ok(all.len())
    }

    /// CPU time that they have spent.
    ///
    /// # Errors
    /// Their devices are gone.
    pub fn cpu(&self) -> Result<Duration> {
        cpu_of_all(&self.threads)
    }

    /// What reads the same from another thread.
    pub fn cpu_reader(&self) -> Box<dyn Fn() -> Result<Duration> + Send> {
        let threads = self.threads.clone();
        Box::new(move || cpu_of_all(&threads))
    }
}

/// The threads of a device, which are made if there are none yet.
fn threads_of(network: &Network, host: &str, device: &str) -> Result<Vec<i32>> {
    let of_device = |(_, name): &&(i32, String)| is_of(name, device);
    let known = network.threads_of(host, device);
    let now = receiving_threads()?;
    let is_there = |thread: &i32| now.iter().any(|entry| entry.0 == *thread && of_device(&entry));
    if !known.is_empty() && known.iter().all(is_there) {
        return Ok(known);
    }
    let mut ethtool = command("ethtool")?;
    ethtool.args(["-K", device, "gro", "on"]);
    network.host(host)?.run(ethtool, SHORT)?.succeeded()?;
    // Devices of other networks have the same names: who makes threads does so alone.
    let _alone = alone()?;
    let before = receiving_threads()?;
    let file = format!("/sys/class/net/{device}/threaded");
    // It mounts the /sys of that namespace.
    let mut exec = command("ip")?;
    let name = network.host(host)?.name();
    exec.args(["netns", "exec", name, "sh", "-c", &format!("echo 1 >{file}")]);
    network.host(host)?.run(exec, SHORT)?.succeeded()?;
    let after = receiving_threads()?;
    let threads: Vec<i32> = after.difference(&before).filter(of_device).map(|(thread, _)| *thread).collect();
    if threads.is_empty() {
        return Err(Failure::Unexpected(format!("the kernel has made no thread for {device} of {host}")));
    }
    network.note_threads(host, device, &threads);
    Ok(threads)
}

/// A lock that all processes on this machine know: on the folder of the namespaces.
fn alone() -> Result<File> {
    let asking = || format!("locking {NAMESPACES}");
    let folder = File::open(NAMESPACES).asking(asking)?;
    interrupt::wait_until(SHORT, "the lock on making threads", || match folder.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error).asking(asking),
    })?;
    Ok(folder)
}

fn cpu_of_all(threads: &[i32]) -> Result<Duration> {
    threads.iter().map(|thread| cpu_of(*thread)).sum()
}

fn cpu_of(thread: i32) -> Result<Duration> {
    let path = format!("/proc/{thread}/schedstat");
    let said = std::fs::read_to_string(&path).asking(|| format!("reading {path}"))?;
    let spent = said.split_whitespace().next().and_then(|word| word.parse().ok());
    spent.map(Duration::from_nanos).ok_or_else(|| Failure::Unexpected(format!("{path}: {said:?}")))
}

/// The kernel names them `napi/DEVICE-NUMBER`, and cuts names after 15 octets.
fn is_of(name: &str, device: &str) -> bool {
    name.strip_prefix("napi/")
        .and_then(|rest| rest.strip_prefix(device))
        .is_some_and(|rest| rest.starts_with('-'))
}

/// All of the kernel's threads for received packets, with their names.
fn receiving_threads() -> Result<BTreeSet<(i32, String)>> {
    let entries = std::fs::read_dir("/proc").asking(|| "reading /proc".to_owned())?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let named = numbers.filter_map(|number| {
        let name = std::fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
        Some((number, name.trim().to_owned()))
    });
    Ok(named.filter(|(_, name)| name.starts_with("napi/")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_by_their_device() {
        assert!(is_of("napi/in0-8193", "in0") && !is_of("napi/in01-8193", "in0"));
        assert!(!is_of("napi/out0-1", "in0") && !is_of("in0-1", "in0"));
    }
}
