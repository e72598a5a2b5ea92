//! A guest's machine: QEMU, and what shows it this machine's files.

use super::files::Image;
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::kernel_peer::{Console, INIT, Tap};
use crate::namespace::command;
use crate::topology::Network;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Shows files to the guest; a part of QEMU's package that is not in PATH.
pub const VIRTIOFSD: &str = "/usr/lib/qemu/virtiofsd";

/// How its CPU is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// Instructions are translated.
    Tcg,
    /// This machine's CPU runs them.
    Kvm,
}

impl Accelerator {
    /// As QEMU names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }
}

/// Boots a guest in the namespace of a host; its eth0, eth1, … are these tap devices there, and it loads these modules. It has this memory in MiB,
/// and these kernel command line parameters.
///
/// # Errors
/// It does not start.
pub fn boot(
    network: &Network,
    host: &str,
    taps: &[Tap],
    modules: &[&str],
    hardware: (Accelerator, u32),
    words: &str,
) -> Result<Console> {
    let image =
        Image::find().ok_or_else(|| Failure::Unexpected("needs a guest's kernel (make guest)".into()))?;
    let control = Console::folder(network, host)?;
    let init = control.join("init");
    let modules = image.modules(modules)?;
    let modules: Vec<_> = modules.iter().map(|file| file.display().to_string()).collect();
    let text = format!(
        "FOLDER={}\nCONTROL={}\nMODULES=\"{}\"\n{INIT}",
        network.folder().display(),
        control.display(),
        modules.join(" ")
    );
    std::fs::write(&init, text).asking(|| format!("writing {}", init.display()))?;
    image.first_files(&control.join("first.cpio"), network.folder(), &init)?;
    let files = control.join("files.sock");
    show_files(network, host, &files)?;
    let qemu = machine(&image, &control, taps, hardware, words)?;
    Ok(Console::new(network.start(host, qemu)?, control))
}

fn show_files(network: &Network, host: &str, socket: &Path) -> Result<()> {
    let mut shown = Command::new(VIRTIOFSD);
    shown.arg(format!("--socket-path={}", socket.display()));
    shown.args(["-o", "source=/", "-o", "cache=auto", "-o", "sandbox=chroot", "-o", "log_level=warn"]);
    let process = network.start(host, shown)?;
    interrupt::wait_until(Duration::from_secs(10), "the socket of virtiofsd", || {
        network.with_process(process, |process| process.must_run())??;
        Ok(socket.exists())
    })
}

fn machine(
    image: &Image,
    control: &Path,
    taps: &[Tap],
    (accelerator, memory): (Accelerator, u32),
    words: &str,
) -> Result<Command> {
    let mut qemu = Command::new("sh");
    // Both ends of the pipe are held open by QEMU, so the guest's console never ends.
    qemu.args(["-c", "mkfifo orders && exec \"$0\" \"$@\" <>orders"]).current_dir(control);
    qemu.arg(command("qemu-system-x86_64")?.get_program());
    qemu.args(["-accel", accelerator.name(), "-smp", "1", "-nodefaults", "-no-user-config", "-no-reboot"]);
    // Threads have names, by which that of the guest's CPU is found.
    qemu.args(["-display", "none", "-serial", "stdio", "-name", "guest,debug-threads=on"]);
    qemu.arg("-m").arg(format!("{memory}M"));
    // virtiofsd reads the guest's memory.
    qemu.arg("-object").arg(format!("memory-backend-memfd,id=ram,size={memory}M,share=on"));
    qemu.args(["-numa", "node,memdev=ram"]);
    qemu.arg("-kernel").arg(image.kernel()).args(["-initrd", "first.cpio"]);
    let usual = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check rdinit=/init";
    qemu.arg("-append").arg(format!("{usual} {words}"));
    qemu.args(["-chardev", "socket,id=files,path=files.sock"]);
    qemu.args(["-device", "vhost-user-fs-pci,chardev=files,tag=machine"]);
    for (number, tap) in taps.iter().enumerate() {
        qemu.arg("-netdev");
        qemu.arg(format!("tap,id=net{number},ifname={},script=no,downscript=no,vhost=off", tap.name));
        qemu.arg("-device");
        qemu.arg(format!("virtio-net-pci,netdev=net{number},mac={},romfile=", tap.address));
    }
    Ok(qemu)
}
