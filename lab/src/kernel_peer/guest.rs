//! A guest: started in a namespace, given commands.

use super::{linux_uml, module_files};
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::process::{Finished, RunsCommands};
use crate::programs;
use crate::topology::Network;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What every test with a guest needs to be installed.
pub const NEEDS: [&str; 2] = ["linux.uml", "busybox"];

/// A guest is up after two or three seconds, on a busy machine later.
const BOOT: Duration = Duration::from_secs(60);
/// How long a command that configures something may take.
const SHORT: Duration = Duration::from_secs(20);

const INIT: &str = include_str!("init.sh");

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
    process: u32,
    control: PathBuf,
    commands: AtomicU32,
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
        let control = network.folder().join(format!("guest-{host}"));
        std::fs::create_dir(&control).asking(|| format!("creating {}", control.display()))?;
        let wanted: Vec<_> = ["ipv6"].into_iter().chain(features.modules.iter().copied()).collect();
        let modules = module_files::load_order(&wanted, features.instead.as_deref())?;
        let modules: Vec<_> = modules.iter().map(|file| file.display().to_string()).collect();
        let init = control.join("init");
        let text = format!(
            "#!/bin/sh\nFOLDER={}\nCONTROL={}\nMODULES=\"{}\"\n{INIT}",
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
        for (number, device) in devices.iter().enumerate() {
            let tap = plug(network, host, device)?;
            uml.arg(format!("eth{number}=tuntap,{tap},{}", link_address()));
        }
        let process = network.start(host, uml)?;
        Ok(Self { network, process, control, commands: AtomicU32::new(0) })
    }

    /// The guest's process id on the machine.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Runs a shell script in the guest that must succeed; what it wrote to standard output.
    pub fn sh(&self, script: &str) -> Result<String> {
        Ok(self.run_script(script, SHORT)?.succeeded()?.stdout)
    }

    /// Runs a shell script in the guest to its end, `limit` at most. What it starts with `&` goes on.
    pub fn run_script(&self, script: &str, limit: Duration) -> Result<Finished> {
        self.wait_until_up()?;
        let number = self.commands.fetch_add(1, Ordering::Relaxed) + 1;
        let file = |ending: &str| self.control.join(format!("{number}.{ending}"));
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text).asking(|| format!("writing {}", path.display()))
        };
        write(file("sh"), script)?;
        self.order(number)?;
        let what = format!("the end of `{script}` in a guest");
        let status = file("status");
        interrupt::wait_until(limit, &what, || {
            self.must_run()?;
            Ok(status.is_file())
        })?;
        let read = |ending: &str| {
            std::fs::read(file(ending))
                .map(|octets| String::from_utf8_lossy(&octets).into_owned())
                .asking(|| format!("reading the {ending} of `{script}`"))
        };
        let code: i32 = read("status")?.trim().parse().unwrap_or(255);
        Ok(Finished {
            typed: script.to_owned(),
            status: ExitStatus::from_raw(code << 8),
            stdout: read("out")?,
            stderr: read("err")?,
        })
    }

    /// Waits until the guest takes commands.
    pub fn wait_until_up(&self) -> Result<()> {
        let up = self.control.join("up");
        interrupt::wait_until(BOOT, "the guest's boot", || {
            self.must_run()?;
            Ok(up.is_file())
        })?;
        match std::fs::read_to_string(self.control.join("not-loaded")) {
            Ok(modules) => Err(Failure::Unexpected(format!("the guest did not load {}", modules.trim()))),
            Err(_) => Ok(()),
        }
    }

    fn order(&self, number: u32) -> Result<()> {
        let orders = self.control.join("orders");
        let mut pipe = std::fs::File::options()
            .write(true)
            .open(&orders)
            .asking(|| format!("opening {}", orders.display()))?;
        pipe.write_all(format!("{number}\n").as_bytes())
            .asking(|| "writing to the guest's console".to_owned())
    }

    fn must_run(&self) -> Result<()> {
        self.network.with_process(self.process, |process| process.must_run())?
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

/// Replaces a host's device with a tap device, for a guest to take; its name. The host itself keeps silent on all of them.
fn plug(network: &Network, host: &str, device: &str) -> Result<String> {
    let (host, bridge, tap) = (network.host(host)?, format!("bridge-{device}"), format!("tap-{device}"));
    host.sysctl("ipv6/conf/all/disable_ipv6", "1")?;
    host.sysctl("ipv6/conf/default/disable_ipv6", "1")?;
    host.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
    host.ip(&format!("tuntap add dev {tap} mode tap"))?;
    for port in [device, &tap] {
        host.ip(&format!("link set {port} master {bridge} up"))?;
    }
    host.ip(&format!("link set {bridge} up"))?;
    Ok(tap)
}

/// A link-layer address of one's own choice that no other guest has.
fn link_address() -> String {
    let [a, b, c, d, e, ..] = RandomState::new().build_hasher().finish().to_be_bytes();
    format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
}
