//! A DNS64 at work in a network of its own, with its authority behind it.

use super::authority;
use super::configuration::{
    BIND, BIND_FORWARDS, HINTS, RECURSOR, RECURSOR_FORWARDS, UNBOUND, UNBOUND_FORWARDS,
    sixway as sixway_configuration,
};
use super::flags::Flags;
use super::likeness::Likeness;
use super::query::Asker;
use super::server::Server;
use super::tree::{AUTHORITY, Tree};
use crate::failure::{Asking as _, Failure, Result};
use crate::gateway::run_sixway;
use crate::interrupt;
use crate::programs;
use crate::topology::{Network, client_gateway_server};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The prefix of all of them.
pub const PREFIX: &str = "64:ff9b::/96";
/// Where they listen.
const LISTEN: &str = "2001:db8:1::1";

/// The address of a resolver, its upstream, and what it synthesises.
pub struct Position {
    /// Its IPv6 address.
    pub listen: String,
    /// The address of the authority of all names.
    pub authority: String,
    /// The prefix.
    pub prefix: String,
}

impl Default for Position {
    /// That on the host "gateway" of [`client_gateway_server`].
    fn default() -> Self {
        Self { listen: LISTEN.to_owned(), authority: AUTHORITY.to_owned(), prefix: PREFIX.to_owned() }
    }
}

/// One at work.
pub struct Running {
    /// Which.
    pub server: Server,
    /// Client, resolver (the host "gateway"), authority (the host "server").
    pub network: Network,
    /// The resolver's process.
    pub process: u32,
}

impl Server {
    /// Starts it and its authority in a network of their own, and waits for the first answer. It validates if the root has an anchor.
    pub fn start(self, tree: &Tree) -> Result<Running> {
        let network = client_gateway_server()?;
        authority::start(&network, tree)?;
        self.start_in(network, tree)
    }

    /// The same in a network that already has an authority or upstream.
    pub fn start_in(self, network: Network, tree: &Tree) -> Result<Running> {
        self.start_with(network, tree, None)
    }

    /// Starts it as a forwarder in a network whose host "server" has the only upstream, and waits for the first answer. It does not validate, and has
    /// clients in 2001:db8:1::/48.
    ///
    /// # Errors
    /// It is not installed, or does not answer.
    pub fn start_as_forwarder(self, network: Network) -> Result<Running> {
        let process = match self {
            Self::Sixway => {
                let allow = "allow = [\"2001:db8:1::/48\"]\n";
                let text = sixway_configuration(false, allow, "");
                run_sixway(&network, &text.replace("AUTHORITY", AUTHORITY).replace("LISTEN", LISTEN))?
            }
            peer => peer.run(&network, "gateway", peer.forwarding(&network), &Position::default())?,
        };
        let running = Running { server: self, network, process };
        running.wait()?;
        Ok(running)
    }

    fn forwarding(self, network: &Network) -> String {
        let text = self.text(network, "", None);
        match self {
            Self::Unbound => text + UNBOUND_FORWARDS,
            Self::Bind => text.replace("  recursion yes;\n", &format!("  recursion yes;\n{BIND_FORWARDS}")),
            Self::Recursor => text + RECURSOR_FORWARDS,
            // It is nothing else.
            Self::Sixway => text,
        }
    }

    fn start_with(self, network: Network, tree: &Tree, options: Option<&Likeness>) -> Result<Running> {
        network.file("anchor", &tree.anchor)?;
        let process = match self {
            Self::Sixway => run_sixway(&network, &self.configuration(&network, &tree.anchor, options))?,
            peer => peer.launch(&network, "gateway", &tree.anchor, &Position::default())?,
        };
        let running = Running { server: self, network, process };
        running.wait()?;
        Ok(running)
    }

    /// Starts a peer on a host; without an anchor it does not validate. It is not waited for.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn launch(self, network: &Network, host: &str, anchor: &str, position: &Position) -> Result<u32> {
        network.file("anchor", anchor)?;
        network.file("anchor.lua", &recursor_anchor(anchor))?;
        self.run(network, host, self.text(network, anchor, None), position)
    }

    fn run(self, network: &Network, host: &str, text: String, position: &Position) -> Result<u32> {
        network.file("hints", &HINTS.replace("AUTHORITY", &position.authority))?;
        let text = text.replace("AUTHORITY", &position.authority).replace("LISTEN", &position.listen);
        let text = text.replace(PREFIX, &position.prefix);
        let name = if self == Self::Recursor { "recursor.conf" } else { "resolver.conf" };
        let file = network.file(name, &text)?;
        let mut command = Command::new(unconfined(network, self.program())?);
        match self {
            Self::Unbound => command.arg("-d").arg("-c").arg(file),
            Self::Bind => command.args(["-f", "-n", "1", "-c"]).arg(file),
            Self::Recursor => command.arg(format!("--config-dir={}", network.folder().display())),
            Self::Sixway => &mut command,
        };
        network.start(host, command)
    }

    fn configuration(self, network: &Network, anchor: &str, options: Option<&Likeness>) -> String {
        self.text(network, anchor, options).replace("AUTHORITY", AUTHORITY).replace("LISTEN", LISTEN)
    }

    fn text(self, network: &Network, anchor: &str, options: Option<&Likeness>) -> String {
        let validates = !anchor.is_empty();
        let folder = network.folder().display().to_string();
        let text = match (self, validates) {
            (Self::Unbound, false) => UNBOUND.replace("MODULES", "iterator").replace("ANCHOR", ""),
            (Self::Unbound, true) => UNBOUND
                .replace("MODULES", "validator iterator")
                .replace("ANCHOR", "trust-anchor-file: \"FOLDER/anchor\""),
            (Self::Bind, false) => BIND.replace("VALIDATION", "no").replace("ANCHOR", ""),
            (Self::Bind, true) => BIND.replace("VALIDATION", "yes").replace("ANCHOR", &bind_anchor(anchor)),
            (Self::Recursor, false) => RECURSOR.replace("VALIDATION", "off"),
            (Self::Recursor, true) => {
                let script = folder.clone() + "/anchor.lua";
                RECURSOR.replace("VALIDATION", "validate") + &format!("lua-config-file={script}\n")
            }
            (Self::Sixway, validates) => {
                let (keys, dnssec) = options.map_or(("", ""), |options| (options.keys, options.dnssec));
                sixway_configuration(validates, keys, dnssec)
            }
        };
        text.replace("FOLDER", &folder)
    }
}

impl Likeness {
    /// Starts Sixway with this option, as [`Server::start`] does.
    pub fn start(&self, tree: &Tree) -> Result<Running> {
        let network = client_gateway_server()?;
        authority::start(&network, tree)?;
        Server::Sixway.start_with(network, tree, Some(self))
    }
}

/// Words of the first DS record: key tag, algorithm, digest type, digest.
fn ds(anchor: &str) -> [String; 4] {
    let words: Vec<_> = anchor.lines().next().unwrap_or_default().split_whitespace().skip(3).collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default().to_owned();
    [word(0), word(1), word(2), words.get(3..).unwrap_or_default().concat()]
}

fn bind_anchor(anchor: &str) -> String {
    let [tag, algorithm, kind, digest] = ds(anchor);
    format!("trust-anchors {{ . static-ds {tag} {algorithm} {kind} \"{digest}\"; }};")
}

fn recursor_anchor(anchor: &str) -> String {
    let [tag, algorithm, kind, digest] = ds(anchor);
    format!("clearTA(\".\")\naddTA(\".\", \"{tag} {algorithm} {kind} {digest}\")\n")
}

/// Where the program is; with AppArmor a copy of it in the network's folder: its profile allows it the system's folders only, and is bound
/// to its path.
fn unconfined(network: &Network, program: &'static str) -> Result<PathBuf> {
    let installed = programs::require(program)?;
    let enabled = std::fs::read_to_string("/sys/module/apparmor/parameters/enabled").unwrap_or_default();
    if enabled.trim() != "Y" {
        return Ok(installed);
    }
    let copy = network.folder().join(program);
    std::fs::copy(&installed, &copy)
        .asking(|| format!("copying {} to {}", installed.display(), copy.display()))?;
    Ok(copy)
}

impl Running {
    /// Its address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(LISTEN.parse().unwrap_or(std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)), 53)
    }

    /// A client of it on the host "client".
    pub fn asker(&self) -> Result<Asker> {
        Asker::open(self.network.host("client")?, self.address())
    }

    /// What its process occupies in RAM (VmRSS), in octets.
    pub fn memory(&self) -> Result<u64> {
        vm_rss(self.process)
    }

    fn wait(&self) -> Result<()> {
        let asker = self.asker()?;
        let what = format!("the first answer of {}", self.server.name());
        interrupt::wait_until(Duration::from_secs(20), &what, || {
            self.network.with_process(self.process, |process| process.must_run())??;
            let reply = asker.ask_within("ns.test", "A", Flags::default(), Duration::from_millis(300));
            Ok(reply.is_ok_and(|reply| reply.rcode == "NOERROR" && !reply.answer.is_empty()))
        })
    }
}

/// What a process occupies in RAM (VmRSS), in octets.
pub(super) fn vm_rss(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).asking(|| format!("reading {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1_024)
        .ok_or_else(|| Failure::Unexpected(format!("no VmRSS in {path}")))
}
