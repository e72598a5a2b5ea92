//! A computer that boots an image: its firmware, its boot loader and its whole system come from the image. The lab sees what a user sees,
//! the serial line, and what the network sees.

use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::kernel_peer::{Console, Tap};
use crate::namespace::command;
use crate::process::Process;
use crate::programs::UEFI;
use crate::topology::Network;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How a computer starts.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Its BIOS starts the boot loader of this USB stick, a file that it may write.
    Bios(&'a Path),
    /// UEFI with Secure Boot starts the boot loader of this disk, which is virtio: the firmware reads emulated USB slowly.
    SecureUefi(&'a Path),
    /// A kernel, its first files and its command line, as from another boot loader or over the network.
    Kernel(&'a Path, &'a Path, &'a str),
}

/// A computer in a namespace, emulated.
pub struct Computer<'n> {
    network: &'n Network,
    process: u32,
    orders: PathBuf,
    /// How much of its output was examined.
    heard: usize,
}

impl<'n> Computer<'n> {
    /// Switches it on, with this memory in MiB. Its interfaces are these tap devices of the host: the first an Intel e1000, others virtio.
    ///
    /// # Errors
    /// QEMU does not start.
    pub fn start(
        network: &'n Network,
        host: &str,
        start: Start<'_>,
        taps: &[Tap],
        memory: u32,
    ) -> Result<Self> {
        let folder = Console::folder(network, host)?;
        let mut qemu = Command::new("sh");
        // Both ends of the pipe are held open by QEMU, so the serial line never ends.
        qemu.args(["-c", "mkfifo orders && exec \"$0\" \"$@\" <>orders"]).current_dir(&folder);
        qemu.arg(command("qemu-system-x86_64")?.get_program());
        qemu.args(["-accel", "tcg", "-smp", "1", "-nodefaults", "-no-user-config", "-no-reboot"]);
        qemu.args(["-display", "none", "-vga", "std", "-serial", "stdio", "-m"]).arg(format!("{memory}M"));
        match start {
            Start::Bios(stick) => {
                has_disk(&mut qemu, stick);
                qemu.args(["-device", "qemu-xhci", "-device", "usb-storage,drive=stick,bootindex=0"]);
            }
            Start::SecureUefi(stick) => {
                has_disk(&mut qemu, stick);
                let variables = folder.join("variables");
                let [code, initial] = UEFI;
                std::fs::copy(initial, &variables).asking(|| format!("copying {initial}"))?;
                qemu.args([
                    "-machine",
                    "q35,smm=on",
                    "-global",
                    "driver=cfi.pflash01,property=secure,value=on",
                ]);
                qemu.args(["-drive", &format!("if=pflash,format=raw,unit=0,readonly=on,file={code}")]);
                qemu.args(["-drive", "if=pflash,format=raw,unit=1,file=variables"]);
                qemu.args(["-device", "virtio-blk-pci,drive=stick,bootindex=0"]);
            }
            Start::Kernel(kernel, files, words) => {
                qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(files).args(["-append", words]);
            }
        }
        for (number, tap) in taps.iter().enumerate() {
            let card = if number == 0 { "e1000" } else { "virtio-net-pci" };
            qemu.arg("-netdev");
            qemu.arg(format!("tap,id=net{number},ifname={},script=no,downscript=no,vhost=off", tap.name));
            qemu.arg("-device").arg(format!("{card},netdev=net{number},mac={},romfile=", tap.address));
        }
        let process = network.start(host, qemu)?;
        Ok(Self { network, process, orders: folder.join("orders"), heard: 0 })
    }

    /// Waits for this text, after the output examined so far; returns the output up to it.
    ///
    /// # Errors
    /// It does not say so, or is off.
    pub fn hear(&mut self, text: &str, limit: Duration) -> Result<String> {
        let mut said = String::new();
        let waited = interrupt::wait_until(limit, text, || {
            self.must_run()?;
            said = self.said()?;
            Ok(said.get(self.heard..).is_some_and(|new| new.contains(text)))
        });
        let new = said.get(self.heard..).unwrap_or_default();
        if let Err(failure) = waited {
            let last: Vec<_> = new.lines().rev().take(12).collect();
            let last: Vec<_> = last.into_iter().rev().collect();
            return Err(Failure::Unexpected(format!("{failure}; on the serial line: {}", last.join("\n"))));
        }
        let end = new.find(text).map_or(0, |at| at + text.len());
        let heard = new.get(..end).unwrap_or_default().to_owned();
        self.heard += end;
        Ok(heard)
    }

    /// Types a line.
    ///
    /// # Errors
    /// The serial line is gone.
    pub fn write_line(&self, line: &str) -> Result<()> {
        let mut pipe = std::fs::File::options()
            .write(true)
            .open(&self.orders)
            .asking(|| format!("opening {}", self.orders.display()))?;
        pipe.write_all(format!("{line}\n").as_bytes()).asking(|| "writing to the serial line".to_owned())
    }

    /// Cuts its power.
    ///
    /// # Errors
    /// It is not a process of the network.
    pub fn cut_power(self) -> Result<()> {
        self.network.with_process(self.process, Process::kill)
    }

    /// Whether it is on; one that restarts is off.
    ///
    /// # Errors
    /// It is not a process of the network.
    pub fn is_on(&self) -> Result<bool> {
        self.network.with_process(self.process, Process::runs)?
    }

    fn must_run(&self) -> Result<()> {
        self.network.with_process(self.process, Process::must_run)?
    }

    fn said(&self) -> Result<String> {
        self.network.with_process(self.process, |process| process.stdout().replace('\r', ""))
    }
}

fn has_disk(qemu: &mut Command, disk: &Path) {
    qemu.arg("-drive").arg(format!("if=none,id=stick,format=raw,file={}", disk.display()));
}
