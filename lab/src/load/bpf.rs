//! Programs for the kernel: compiled by clang, loaded and attached.

use super::outcome::{Histogram, histogram};
use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::{Namespace, command};
use aya::maps::{Array, MapData};
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What sources include.
const HEADER: &str = include_str!("stamp.bpf.h");

/// Compiles a source of this name into a folder; where the programs are then.
pub(super) fn compile_source(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let header = folder.join("stamp.bpf.h");
    std::fs::write(&header, HEADER).asking(|| format!("writing {}", header.display()))?;
    let (source, object) = (folder.join(format!("{name}.bpf.c")), folder.join(format!("{name}.o")));
    std::fs::write(&source, text).asking(|| format!("writing {}", source.display()))?;
    let mut clang = command("clang")?;
    clang.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c"]).arg(&source).arg("-o").arg(&object);
    // Debian keeps <asm/types.h> in a folder for each architecture.
    clang.arg("-I").arg(format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    let output = clang.output().asking(|| "starting clang".to_owned())?;
    match output.status.success() {
        true => Ok(object),
        false => Err(Failure::Program("clang".into(), String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// Attaches a sender to a device that carries nothing. A program that no device has is brought in and taken out of the kernel's dispatcher
/// (`bpf_dispatcher_change_prog`) by each BPF_PROG_RUN, which waits for two grace periods of RCU: some 25 ms a call.
pub(super) fn rest(sender: &mut Xdp, host: &Namespace) -> Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let device = format!("rest{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    host.ip(&format!("link add {device} type veth peer name {device}x"))?;
    host.enter(|| sender.attach(&device, XdpMode::Driver).map(drop))?
        .map_err(|error| refused(&format!("attaching a sender to {device}"), &error))
}

pub(super) fn attach(
    object: &Path,
    name: &'static str,
    host: &Namespace,
    (device, out): (&str, u32),
) -> Result<Ebpf> {
    let mut loader = EbpfLoader::new();
    let programs = loader.override_global("out", &out, out != 0).load_file(object);
    let mut programs = programs.map_err(|error| refused("loading a program", &error))?;
    attach_loaded(&mut programs, name, (host, device))?;
    Ok(programs)
}

/// The same with room for this number of states.
pub(super) fn attach_with_room(
    object: &Path,
    name: &'static str,
    host: &Namespace,
    device: &str,
    room: u32,
) -> Result<Ebpf> {
    let mut loader = EbpfLoader::new();
    let loader = loader.override_global("room", &room, true).map_max_entries("states", room);
    let mut programs = loader.load_file(object).map_err(|error| refused("loading a program", &error))?;
    attach_loaded(&mut programs, name, (host, device))?;
    Ok(programs)
}

/// Attaches one of some loaded programs, which stays as long as they do.
pub(super) fn attach_loaded(
    programs: &mut Ebpf,
    name: &'static str,
    (host, device): (&Namespace, &str),
) -> Result<()> {
    let program = program(programs, name)?;
    program.load().map_err(|error| refused("loading a program", &error))?;
    host.enter(|| program.attach(device, XdpMode::Driver).map(drop))?
        .map_err(|error| refused(&format!("attaching {name} to {device}"), &error))
}

pub(super) fn program<'a>(programs: &'a mut Ebpf, name: &'static str) -> Result<&'a mut Xdp> {
    let found = programs.program_mut(name).and_then(|program| program.try_into().ok());
    found.ok_or_else(|| strange(name))
}

/// The first entry of an array.
pub(super) fn first<T: aya::Pod>(programs: &Ebpf, name: &str) -> Result<T> {
    let map = programs.map(name).ok_or_else(|| strange(name))?;
    let map: Array<&MapData, T> = Array::try_from(map).map_err(|error| refused(name, &error))?;
    map.get(&0, 0).map_err(|error| refused(&format!("reading {name}"), &error))
}

/// The times that programs have counted by buckets.
pub(super) fn times(programs: &Ebpf, name: &str) -> Result<Histogram> {
    let map = programs.map(name).ok_or_else(|| strange(name))?;
    let map: Array<&MapData, u64> = Array::try_from(map).map_err(|error| refused(name, &error))?;
    let mut all = histogram();
    for bucket in 0..map.len() {
        let count = map.get(&bucket, 0).map_err(|error| refused(&format!("reading {name}"), &error))?;
        all.saturating_record_n(middle(bucket), count);
    }
    Ok(all)
}

/// The middle of a bucket of times, in nanoseconds: its number is that of the highest bit, less three, and the four bits that follow.
fn middle(bucket: u32) -> u64 {
    let (bits, fraction) = (bucket >> 4, u64::from(bucket & 15));
    match bits {
        0 => fraction,
        _ => {
            let step = 1_u64.checked_shl(bits - 1).unwrap_or(0);
            (16 + fraction).saturating_mul(step).saturating_add(step / 2)
        }
    }
}

pub(super) fn strange(name: &str) -> Failure {
    Failure::Unexpected(format!("{name} is not in the compiled programs"))
}

/// The kernel's error, with its causes.
pub(super) fn refused(doing: &str, error: &dyn std::error::Error) -> Failure {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said += &format!(": {error}");
        cause = error.source();
    }
    Failure::Unexpected(format!("{doing}: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_times_cover_them_to_six_percent() {
        let bucket = |time: u64| {
            let bits = time.checked_ilog2().unwrap_or(0);
            if bits < 4 { time as u32 } else { (bits - 3) << 4 | ((time >> (bits - 4)) & 15) as u32 }
        };
        for time in [0, 1, 15, 16, 17, 100, 1_000, 123_456, 10_000_000, 99_000_000_000_u64] {
            let middle = middle(bucket(time));
            assert!(middle.abs_diff(time) as f64 <= time as f64 * 0.035 + 1.0, "{time}: {middle}");
        }
    }
}
