//! Networks of namespaces, and the topologies that the experiments share: each is a function of about ten lines.
//!
//! Every name ends in a random suffix, no address leaves the namespaces, and everything is removed with the
//! [`Network`], whether the experiment ended, failed, panicked or was interrupted. What a killed process left is removed by [`remove`].

use super::owner::{self, FOLDER};
use crate::failure::{Asking as _, Failure, Result};
use crate::interrupt;
use crate::namespace::{self, Namespace};
use crate::observer;
use crate::process::Process;
use crate::rootless;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Names of namespaces begin with this.
const PREFIX: &str = "sixway-";

/// Hosts, the links between them and what runs on them.
pub struct Network {
    processes: Mutex<Vec<Process>>,
    hosts: Vec<(&'static str, Namespace)>,
    folder: Folder,
    suffix: String,
    received: Mutex<Vec<ReceivedOn>>,
    threads: Mutex<Vec<ThreadsOf>>,
}

/// A link, and the CPU that takes what it receives.
struct ReceivedOn {
    host: &'static str,
    device: String,
    cpu: usize,
}

/// A link, and the threads that take what it receives.
struct ThreadsOf {
    host: String,
    device: String,
    threads: Vec<i32>,
}

/// IPv6-only client, gateway, IPv4-only server: the demo's network and that of most experiments. The gateway routes between its two
/// links; what translates is for the caller to start.
///
/// ```text
/// client ──────────────────────── gateway ──────────────────────── server
/// up0 2001:db8:1::2     in0 2001:db8:1::1   out0 203.0.113.1     up0 203.0.113.2
/// ```
pub fn client_gateway_server() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "2001:db8:1::2/64")?;
    network.address("gateway", "in0", "2001:db8:1::1/64")?;
    network.address("gateway", "out0", "203.0.113.1/24")?;
    network.address("server", "up0", "203.0.113.2/24")?;
    network.route("client", "default via 2001:db8:1::1")?;
    network.route("server", "default via 203.0.113.1")?;
    network.forwards("gateway")?;
    Ok(network)
}

/// The same network, IPv6 on both sides (the server is 2001:db8:2::2): for the kernel's own forwarding, the yardstick.
pub fn client_router_server() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "2001:db8:1::2/64")?;
    network.address("gateway", "in0", "2001:db8:1::1/64")?;
    network.address("gateway", "out0", "2001:db8:2::1/64")?;
    network.address("server", "up0", "2001:db8:2::2/64")?;
    network.route("client", "default via 2001:db8:1::1")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.forwards("gateway")?;
    Ok(network)
}

/// Two IPv6-only hosts behind one gateway, and the IPv4-only server: for hairpins.
pub fn two_clients() -> Result<Network> {
    let network = Network::new(&["client", "neighbour", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("neighbour", "up0"), ("gateway", "in1"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    network.address("client", "up0", "2001:db8:1::2/64")?;
    network.address("gateway", "in0", "2001:db8:1::1/64")?;
    network.address("neighbour", "up0", "2001:db8:3::2/64")?;
    network.address("gateway", "in1", "2001:db8:3::1/64")?;
    network.address("gateway", "out0", "203.0.113.1/24")?;
    network.address("server", "up0", "203.0.113.2/24")?;
    network.route("client", "default via 2001:db8:1::1")?;
    network.route("neighbour", "default via 2001:db8:3::1")?;
    network.route("server", "default via 203.0.113.1")?;
    network.forwards("gateway")?;
    Ok(network)
}

impl Network {
    /// Hosts without links.
    pub fn new(roles: &[&'static str]) -> Result<Self> {
        interrupt::watch()?;
        let suffix = format!("{:06x}", RandomState::new().build_hasher().finish() & 0xff_ffff);
        let folder = Folder::create(&suffix)?;
        let mut network = Self {
            processes: Mutex::default(),
            hosts: Vec::new(),
            folder,
            suffix,
            received: Mutex::default(),
            threads: Mutex::default(),
        };
        for role in roles {
            let host = Namespace::create(format!("{PREFIX}{role}-{}", network.suffix), network.folder())?;
            host.sysctl("ipv6/conf/default/accept_dad", "0")?;
            host.sysctl("ipv6/conf/default/router_solicitations", "0")?;
            host.sysctl("ipv6/conf/default/accept_ra", "0")?;
            network.hosts.push((role, host));
        }
        let names = network.hosts().map(|host| host.name().to_owned()).collect();
        observer::tell(|observer| observer.begins(&network.suffix, names));
        Ok(network)
    }

    /// The host of this role.
    pub fn host(&self, role: &str) -> Result<&Namespace> {
        let found = self.hosts.iter().find(|(name, _)| *name == role);
        found.map(|(_, host)| host).ok_or_else(|| Failure::Unexpected(format!("no host named {role}")))
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Namespace> {
        self.hosts.iter().map(|(_, host)| host)
    }

    /// Joins two hosts by a pair of veth devices; no device appears outside of them.
    pub fn link(&self, a: (&str, &str), b: (&str, &str)) -> Result<()> {
        let peer = self.host(b.0)?.name();
        self.host(a.0)?.ip(&format!("link add {} type veth peer name {} netns {peer}", a.1, b.1))?;
        self.host(a.0)?.ip(&format!("link set {} up", a.1))?;
        self.host(b.0)?.ip(&format!("link set {} up", b.1))?;
        Ok(())
    }

    /// Gives a device an address, usable immediately.
    pub fn address(&self, host: &str, device: &str, address: &str) -> Result<()> {
        let nodad = if address.contains(':') { "nodad" } else { "" };
        self.host(host)?.ip(&format!("address add {address} dev {device} {nodad}")).map(drop)
    }

    /// Adds a route, written as `ip route add` takes it.
    pub fn route(&self, host: &str, route: &str) -> Result<()> {
        let family = if route.contains(':') { "-6" } else { "-4" };
        self.host(host)?.ip(&format!("{family} route add {route}")).map(drop)
    }

    /// Makes a host a router.
    pub fn forwards(&self, host: &str) -> Result<()> {
        self.host(host)?.sysctl("ipv4/ip_forward", "1")?;
        self.host(host)?.sysctl("ipv6/conf/all/forwarding", "1")
    }

    /// Lets a CPU take the packets that a device receives (RPS), wherever they were sent. The kernel grants that to root only: in a user namespace
    /// packets are received where they were sent.
    pub fn receive_on(&self, host: &str, device: &str, cpu: usize) -> Result<()> {
        if rootless::is_inside() {
            return Ok(());
        }
        if let Some((role, _)) = self.hosts.iter().find(|(name, _)| *name == host) {
            locked(&self.received).push(ReceivedOn { host: role, device: device.to_owned(), cpu });
        }
        let host = self.host(host)?;
        let file = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
        // It mounts the /sys of that namespace.
        let mut exec = namespace::command("ip")?;
        exec.args(["netns", "exec", host.name(), "sh", "-c", &format!("echo {:x} >{file}", 1_u64 << cpu)]);
        host.run(exec, Duration::from_secs(20))?.succeeded().map(drop)
    }

    /// Hosts and links of which this CPU takes the received packets, by [`Network::receive_on`].
    pub fn received_on(&self, cpu: usize) -> Vec<(&'static str, String)> {
        let received = locked(&self.received);
        let of = received.iter().filter(|link| link.cpu == cpu);
        of.map(|link| (link.host, link.device.clone())).collect()
    }

    /// The threads that were noted for a link; none if there are none.
    pub fn threads_of(&self, host: &str, device: &str) -> Vec<i32> {
        let all = locked(&self.threads);
        let found = all.iter().rfind(|link| link.host == host && link.device == device);
        found.map(|link| link.threads.clone()).unwrap_or_default()
    }

    /// Notes which threads take what a link receives.
    pub fn note_threads(&self, host: &str, device: &str, threads: &[i32]) {
        let (host, device, threads) = (host.to_owned(), device.to_owned(), threads.to_vec());
        locked(&self.threads).push(ThreadsOf { host, device, threads });
    }

    /// Starts a child on a host that runs until the network goes; its process id.
    pub fn start(&self, host: &str, command: Command) -> Result<u32> {
        let process = self.host(host)?.start(command)?;
        let id = process.id();
        self.processes().push(process);
        Ok(id)
    }

    /// Does something with a child that [`Network::start`] started.
    pub fn with_process<T>(&self, id: u32, work: impl FnOnce(&mut Process) -> T) -> Result<T> {
        let mut processes = self.processes();
        let found = processes.iter_mut().find(|process| process.id() == id);
        found.map(work).ok_or_else(|| Failure::Unexpected(format!("no child has the id {id}")))
    }

    fn processes(&self) -> MutexGuard<'_, Vec<Process>> {
        locked(&self.processes)
    }

    /// A folder for configurations and logs, removed with the network.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Writes a file into the folder; its path.
    pub fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder().join(name);
        std::fs::write(&path, text).asking(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// What a gateway on a host of this network calls itself; its state file goes away with the network.
    pub fn gateway_name(&self, host: &str) -> String {
        format!("{}{host}", gateway_names(&self.suffix))
    }

    /// What the names of this network end in.
    pub fn suffix(&self) -> &str {
        &self.suffix
    }

    /// Leaves everything there and running; [`remove`] takes it away by its suffix.
    pub fn keep(mut self) {
        self.hosts.iter_mut().for_each(|(_, host)| host.keep());
        self.folder.kept = true;
        owner::disown(&self.folder.path);
        std::mem::take(&mut *self.processes()).into_iter().for_each(std::mem::forget);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        observer::tell(|observer| observer.ends(&self.suffix));
        let mut processes = std::mem::take(&mut *self.processes());
        while let Some(process) = processes.pop() {
            drop(process);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Existing namespaces with this suffix.
pub fn left_over(suffix: &str) -> Vec<String> {
    let ending = format!("-{suffix}");
    let Ok(names) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    names
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(PREFIX) && name.ends_with(&ending))
        .collect()
}

/// Removes a network that was kept: ends what runs in its namespaces, removes them and its folder. How many namespaces went.
pub fn remove(suffix: &str) -> Result<usize> {
    if !owner::is_suffix(suffix) {
        return Err(Failure::Unexpected(format!(
            "{suffix:?} is not a valid suffix: use six hexadecimal digits"
        )));
    }
    let names = left_over(suffix);
    for name in &names {
        namespace::remove(name).map_err(|said| Failure::Program(format!("ip netns del {name}"), said))?;
    }
    std::fs::remove_dir_all(Folder::of(suffix)).ok();
    remove_state_files(suffix);
    Ok(names.len())
}

/// What the names of this network's gateways begin with.
fn gateway_names(suffix: &str) -> String {
    format!("lab-{suffix}-")
}

/// Where gateways note what they changed, and pin what outlives them. Those that were killed leave it there.
fn remove_state_files(suffix: &str) {
    for folder in ["/run/sixway", "/run/sixway/bpf", "/var/lib/sixway"] {
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        for file in files.flatten() {
            if file.file_name().to_string_lossy().starts_with(&gateway_names(suffix)) {
                std::fs::remove_file(file.path()).or_else(|_| std::fs::remove_dir_all(file.path())).ok();
            }
        }
    }
}

struct Folder {
    path: PathBuf,
    suffix: String,
    kept: bool,
}

impl Folder {
    fn of(suffix: &str) -> PathBuf {
        std::env::temp_dir().join(format!("{FOLDER}{suffix}"))
    }

    fn create(suffix: &str) -> Result<Self> {
        let path = Self::of(suffix);
        std::fs::create_dir(&path).asking(|| format!("creating {}", path.display()))?;
        owner::own(&path)?;
        Ok(Self { path, suffix: suffix.to_owned(), kept: false })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            std::fs::remove_dir_all(&self.path).ok();
            remove_state_files(&self.suffix);
        }
    }
}
