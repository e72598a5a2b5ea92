//! A guest: started in a namespace, given commands.

use super::console::Console;
use super::plug::{Tap, plug};
use super::{linux_uml, module_files};
use crate::failure::{Asking as _, Result};
use crate::process::{Finished, RunsCommands};
use crate::programs;
use crate::topology::Network;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// What every test with a guest needs to be installed.
pub const NEEDS: [&str; 2] = ["linux.uml", "busybox"];

/// How long a command that configures something may take.
const SHORT: Duration = Duration::from_secs(20);

/// What a guest of any kind does once it sees its files; variables are set in front of it.
pub const INIT: &str = include_str!("init.sh");

/// What a guest has in addition to its devices.
#[derive(Clone, Debug)]
pub struct Features {
    /// Modules of Debian's package that it loads; IPv6 is always loaded.
    pub modules: Vec<&'static str>,
    /// A folder with modules that replace Debian's; see [`with_six_rd`].
    pub instead: Option<PathBuf>,
    /// Its memory in MiB.
    pub memory: u32,
}

impl Default for Features {
    /// A small host that knows tunnels over IPv4.
    fn default() -> Self {
        Self { modules: vec!["sit"], instead: None, memory: 96 }
    }
}

/// A Linux guest in a namespace of a network.
pub struct KernelPeer<'a> {
    network: &'a Network,
    console: Console,
}

impl<'a> KernelPeer<'a> {
    /// Starts a guest with the modules for tunnels over IPv4; see [`KernelPeer::start_with`].
    pub fn start(network: &'a Network, host: &str, devices: &[&str]) -> Result<Self> {
        Self::start_with(network, host, devices, &Features::default())
    }

    /// Starts a guest in the namespace of a host. Its eth0, eth1, … replace that host's devices; it boots while the caller goes
    /// on, and the first command waits for it.
    pub fn start_with(
        network: &'a Network,
        host: &str,
        devices: &[&str],
        features: &Features,
    ) -> Result<Self> {
        let taps = devices.iter().map(|device| plug(network, host, device)).collect::<Result<Vec<_>>>()?;
        Ok(Self { network, console: boot(network, host, &taps, features)? })
    }

    /// The guest's process id on the machine.
    pub fn process(&self) -> u32 {
        self.console.process()
    }

    /// Runs a shell script in the guest that must succeed; what it wrote to standard output.
    pub fn sh(&self, script: &str) -> Result<String> {
        Ok(self.run_script(script, SHORT)?.succeeded()?.stdout)
    }

    /// Runs a shell script in the guest to its end, `limit` at most. What it starts with `&` continues.
    pub fn run_script(&self, script: &str, limit: Duration) -> Result<Finished> {
        self.console.run_script(self.network, script, limit)
    }

    /// Waits until the guest takes commands.
    pub fn wait_until_up(&self) -> Result<()> {
        self.console.wait_until_up(self.network)
    }
}

impl RunsCommands for KernelPeer<'_> {
    fn run(&self, command: Command, limit: Duration) -> Result<Finished> {
        let mut script = String::new();
        for word in std::iter::once(command.get_program()).chain(command.get_args()) {
            let word = word.to_string_lossy().replace('\'', r"'\''");
            write!(script, "'{word}' ").ok();
        }
        self.run_script(script.trim_end(), limit)
    }
}

/// Boots a guest in the namespace of a host; its eth0, eth1, … are these tap devices there.
///
/// # Errors
/// It does not start.
pub fn boot(network: &Network, host: &str, taps: &[Tap], features: &Features) -> Result<Console> {
    let control = Console::folder(network, host)?;
    let wanted: Vec<_> = ["ipv6"].into_iter().chain(features.modules.iter().copied()).collect();
    let modules = module_files::load_order(&wanted, features.instead.as_deref())?;
    let modules: Vec<_> = modules.iter().map(|file| file.display().to_string()).collect();
    let init = control.join("init");
    let text = format!(
        "#!/bin/sh\nHOSTFS=yes\nFOLDER={}\nCONTROL={}\nMODULES=\"{}\"\n{INIT}",
        network.folder().display(),
        control.display(),
        modules.join(" ")
    );
    std::fs::write(&init, text).asking(|| format!("writing {}", init.display()))?;
    programs::make_executable(&init)?;
    let mut uml = Command::new("sh");
    // Both ends of the pipe are held open by the guest, so its console never ends.
    uml.args(["-c", "mkfifo orders && exec \"$0\" \"$@\" <>orders"]).current_dir(&control);
    uml.env_remove("TMPDIR");
    uml.args(linux_uml::words(&control)?);
    uml.arg(format!("mem={}M", features.memory));
    uml.args(["quiet", "noreboot", "panic=-1", "root=/dev/root", "rootfstype=hostfs"]);
    uml.args(["rootflags=/", "ro", "con=null", "con0=fd:0,fd:1"]);
    uml.arg(format!("umid={host}")).arg(format!("uml_dir={}", control.join("uml").display()));
    uml.arg(format!("init={}", init.display()));
    for (number, tap) in taps.iter().enumerate() {
        uml.arg(format!("eth{number}=tuntap,{},{}", tap.name, tap.address));
    }
    let process = network.start(host, uml)?;
    Ok(Console::new(process, control))
}
