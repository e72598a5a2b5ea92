//! The CPU that threads run on.

use crate::failure::{Asking as _, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Binds all threads of a process to one CPU, if there are several.
pub fn pin_process(id: u32, cpu: usize) -> Result<()> {
    pin_process_to(id, &[cpu])
}

/// Binds all threads of a process to these CPUs together, if there are several.
///
/// # Errors
/// The process is gone, or the kernel refuses.
pub fn pin_process_to(id: u32, cpus: &[usize]) -> Result<()> {
    threads(id)?.into_iter().try_for_each(|thread| unless_gone(thread, pin(Pid::from_raw(thread), cpus)))
}

/// Lets all threads of a process run on every CPU again.
pub fn unpin_process(id: u32) -> Result<()> {
    let mut all = CpuSet::new();
    (0..cpus()).try_for_each(|cpu| all.set(cpu)).asking(|| "naming every CPU".to_owned())?;
    for thread in threads(id)? {
        let freed = sched_setaffinity(Pid::from_raw(thread), &all);
        unless_gone(thread, freed.asking(|| format!("freeing {id} (sched_setaffinity)")))?;
    }
    Ok(())
}

/// The CPUs that a thread may run on.
///
/// # Errors
/// It is gone.
pub fn cpus_of(thread: i32) -> Result<Vec<usize>> {
    let may = sched_getaffinity(Pid::from_raw(thread)).asking(|| format!("the CPUs of thread {thread}"))?;
    Ok((0..CpuSet::count()).filter(|cpu| may.is_set(*cpu).unwrap_or(false)).collect())
}

/// Threads that wait for the kernel on behalf of others end meanwhile.
fn unless_gone(thread: i32, outcome: Result<()>) -> Result<()> {
    match std::path::Path::new(&format!("/proc/{thread}")).exists() {
        true => outcome,
        false => Ok(()),
    }
}

/// Binds this thread to one CPU, if there are several.
pub fn pin_thread(cpu: usize) -> Result<()> {
    pin(Pid::from_raw(0), &[cpu])
}

/// Binds another thread, such as one of the kernel's, to one CPU, if there are several.
pub fn pin_thread_of(thread: i32, cpu: usize) -> Result<()> {
    pin(Pid::from_raw(thread), &[cpu])
}

fn pin(thread: Pid, to: &[usize]) -> Result<()> {
    if cpus() < 2 {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in to {
        set.set(cpu % cpus()).asking(|| format!("naming CPU {cpu}"))?;
    }
    sched_setaffinity(thread, &set).asking(|| format!("binding {thread} to CPUs {to:?} (sched_setaffinity)"))
}

/// How many CPUs there are.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The threads of a process.
///
/// # Errors
/// The process is gone.
pub fn threads(id: u32) -> Result<Vec<i32>> {
    let path = format!("/proc/{id}/task");
    let entries = std::fs::read_dir(&path).asking(|| format!("reading {path}"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}
