//! A host with a process through which packets between two devices pass.

use super::impairment::Impairment;
use super::ledger::Ledger;
use crate::failure::Result;
use crate::interrupt;
use crate::process::Process;
use crate::topology::Network;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const DEVICE: &str = "impair0";
/// The routing table that sends packets from the host's links to the process. Packets from the process are routed as usual.
const TABLE: u32 = 7_018;

/// A host that forwards between its links, through the process. It ends when it is dropped.
pub struct ImpairedWire {
    network: Arc<Network>,
    process: u32,
    ledger: PathBuf,
    command: String,
}

impl ImpairedWire {
    /// Makes `host` one, between these devices of its own. `program` is `sixway-lab`.
    ///
    /// # Errors
    /// The process does not start.
    pub fn start(
        network: &Arc<Network>,
        host: &str,
        devices: &[&str],
        (program, impairment): (&Path, Impairment),
    ) -> Result<Self> {
        network.forwards(host)?;
        let ledger = network.folder().join(format!("{host}-ledger.json"));
        std::fs::remove_file(&ledger).ok();
        let mut command = Command::new(program);
        command.args(["impair", "--device", DEVICE, "--ledger"]).arg(&ledger).args(impairment.arguments());
        let typed = crate::process::typed(&command);
        let process = network.start(host, command)?;
        // From here on it is ended in any case.
        let wire = Self { network: Arc::clone(network), process, ledger, command: typed };
        let namespace = network.host(host)?;
        interrupt::wait_until(Duration::from_secs(10), "the impaired link's device", || {
            network.with_process(process, Process::must_run)??;
            Ok(namespace.ip(&format!("link show {DEVICE}")).is_ok())
        })?;
        namespace.sysctl(&format!("ipv6/conf/{DEVICE}/addr_gen_mode"), "1")?;
        for key in ["all", DEVICE] {
            namespace.sysctl(&format!("ipv4/conf/{key}/rp_filter"), "0")?;
        }
        namespace.ip(&format!("link set {DEVICE} mtu 1500 up"))?;
        for family in ["-4", "-6"] {
            namespace.ip(&format!("{family} route add default dev {DEVICE} table {TABLE}"))?;
            for device in devices {
                let rule = format!("iif {device} lookup {TABLE} priority {TABLE}");
                // An earlier run left it: without the device it has no effect, and other rules follow.
                namespace.ip(&format!("{family} rule del {rule}")).ok();
                namespace.ip(&format!("{family} rule add {rule}"))?;
            }
        }
        Ok(wire)
    }

    /// Its process.
    pub const fn process(&self) -> u32 {
        self.process
    }

    /// The command line of its process.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Ends it; what it did.
    ///
    /// # Errors
    /// It left no ledger.
    pub fn end(self) -> Result<Ledger> {
        self.network.with_process(self.process, Process::stop)?;
        Ledger::read(&self.ledger)
    }
}

impl Drop for ImpairedWire {
    fn drop(&mut self) {
        self.network.with_process(self.process, Process::stop).ok();
    }
}
