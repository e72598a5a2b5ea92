//! Programs for the kernel: compiled by clang, loaded and attached.

use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::{Namespace, command};
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiles a source of this name into a folder; where the programs are then.
pub(super) fn compile_source(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
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
    attach_loaded(programs.map_err(|error| refused("loading a program", &error))?, name, host, device)
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
    let programs = loader.load_file(object).map_err(|error| refused("loading a program", &error))?;
    attach_loaded(programs, name, host, device)
}

fn attach_loaded(mut programs: Ebpf, name: &'static str, host: &Namespace, device: &str) -> Result<Ebpf> {
    let program = program(&mut programs, name)?;
    program.load().map_err(|error| refused("loading a program", &error))?;
    host.enter(|| program.attach(device, XdpMode::Driver).map(drop))?
        .map_err(|error| refused(&format!("attaching {name} to {device}"), &error))?;
    Ok(programs)
}

pub(super) fn program<'a>(programs: &'a mut Ebpf, name: &'static str) -> Result<&'a mut Xdp> {
    let found = programs.program_mut(name).and_then(|program| program.try_into().ok());
    found.ok_or_else(|| strange(name))
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
