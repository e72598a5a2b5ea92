//! A DNS64 before upstreams that mean no good: what it says stays right, each query is answered, and its memory stays bounded.

pub mod crowd;
mod hostile;
pub mod message;
mod secured;
mod streams;
mod trouble;
pub mod upstream;

use crate::Interop;
use message::PREFIX;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::gateway::run_sixway;
use sixway_lab::topology::{Network, client_gateway_server};
use upstream::{Manner, Upstream};

/// All tests.
pub fn tests() -> Vec<Interop> {
    [hostile::TESTS, streams::TESTS, secured::TESTS, trouble::TESTS].concat()
}

/// Where the DNS64 listens.
const RESOLVER: &str = "2001:db8:1::1";

/// Does the same for each, four at a time, for most of the time they wait; all faults together.
fn for_each<T: Copy + Sync>(all: &[T], work: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
    let mut faults = Vec::new();
    for some in all.chunks(4) {
        std::thread::scope(|scope| {
            let started: Vec<_> = some.iter().map(|one| scope.spawn(|| work(*one))).collect();
            for one in started {
                let done = one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                faults.extend(done.err().map(|fault| fault.to_string()));
            }
        });
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(faults.join("\n  "))),
    }
}

/// A DNS64 on the host "gateway", and its upstreams on the host "server".
struct Scene {
    upstreams: Vec<Upstream>,
    network: Network,
    process: u32,
}

impl Scene {
    /// Upstreams of these manners, in this order.
    fn before(manners: &[Manner]) -> Result<Self> {
        Self::with(manners, "", "")
    }

    /// The same, with more lines in `[dns64]`, and in each upstream's section.
    fn with(manners: &[Manner], lines: &str, each: &str) -> Result<Self> {
        let network = client_gateway_server()?;
        let mut configuration = format!(
            "[gateway]\n[dns64]\nlisten = [\"{RESOLVER}\"]\nprefix = \"{PREFIX}\"\ntranslated_elsewhere = true\nspecial_names = \"upstream\"\n{lines}\n"
        );
        let mut upstreams = Vec::new();
        for (number, manner) in manners.iter().enumerate() {
            let address = format!("203.0.113.{}", 20 + number);
            network.address("server", "up0", &format!("{address}/24"))?;
            upstreams.push(Upstream::start(network.host("server")?, &address, *manner)?);
            configuration += &format!("[[dns64.upstream]]\naddress = \"{address}\"\n{each}\n");
        }
        let process = run_sixway(&network, &configuration)?;
        Ok(Self { upstreams, network, process })
    }

    /// What the gateway occupies in RAM (VmRSS), in octets.
    fn memory(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process);
        let status = std::fs::read_to_string(&path).asking(|| format!("reading {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
            .map(|kibibytes| kibibytes * 1_024)
            .ok_or_else(|| Failure::Unexpected(format!("no VmRSS in {path}")))
    }
}
