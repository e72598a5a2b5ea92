//! A site at work: `sixway up` on its box.

use super::lan_host::{Kind, LanHost, join};
use super::network::{INSIDE4, INSIDE6, PROVIDER};
use crate::failure::Result;
use crate::interrupt;
use crate::name_service::Resolving;
use crate::namespace::Namespace;
use crate::process::Finished;
use crate::sixway::sixway;
use crate::topology::Network;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The site at work.
pub struct Site {
    /// Its hosts.
    pub network: Network,
    /// The process of `sixway up`.
    pub process: u32,
}

impl Site {
    /// Starts `sixway up` in this network with these further options, and waits until it is ready and all hosts have their addresses.
    ///
    /// # Errors
    /// It does not start, or hosts get no addresses.
    pub fn start(network: Network, options: &[&str]) -> Result<Self> {
        let resolving = Resolving::with(&network, "gateway", &format!("nameserver {PROVIDER}\n"))?;
        let mut up = Command::new(resolving.script());
        up.arg(sixway()?).args(["up", "--lan", "lan0", "--name", &network.gateway_name("gateway")]);
        let process = network.start("gateway", {
            up.args(options);
            up
        })?;
        interrupt::wait_until(Duration::from_secs(10), "sixway's \"ready\"", || {
            network.with_process(process, |process| {
                process.must_run()?;
                Ok(process.stdout().contains("ready in"))
            })?
        })?;
        join(&network)?;
        Ok(Self { network, process })
    }

    /// What `sixway up` said.
    ///
    /// # Errors
    /// It is not known.
    pub fn said(&self) -> Result<String> {
        self.network.with_process(self.process, |process| process.stdout())
    }

    /// The box.
    ///
    /// # Errors
    /// There is none.
    pub fn gateway(&self) -> Result<&Namespace> {
        self.network.host("gateway")
    }

    /// Where its gateway takes requests.
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(format!("/run/sixway/{}.sock", self.network.gateway_name("gateway")))
    }

    /// `sixway show` with these words.
    ///
    /// # Errors
    /// There is no `sixway`.
    pub fn show(&self, words: &[&str]) -> Result<Command> {
        let mut show = Command::new(sixway()?);
        show.arg("show").args(words).arg("--socket").arg(self.socket());
        Ok(show)
    }

    /// Ends the site by `sixway down`.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn down(&self) -> Result<Finished> {
        let mut down = Command::new(sixway()?);
        down.args(["down", "--name", &self.network.gateway_name("gateway")]);
        self.gateway()?.run(down, Duration::from_secs(40))
    }

    /// A host whose programs ask the DNS server that the box gave it: the DNS64 if it has no IPv4.
    ///
    /// # Errors
    /// The host's files cannot be written.
    pub fn resolving(&self, host: &LanHost) -> Result<Resolving<'_>> {
        let resolver = if host.kind == Kind::Ipv6 { INSIDE6 } else { INSIDE4 };
        Resolving::by(&self.network, host.role, resolver)
    }
}
