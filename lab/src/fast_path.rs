//! Experiments with the fast path on: every gateway that a thread starts inside [`with`] has it, and the packets that it forwarded are
//! added up.

use crate::failure::{Failure, Result};

use crate::interrupt;
use crate::namespace::{Namespace, command};
use crate::sixway::{sixway, socket};
use crate::topology::Network;
use serde_json::Value;
use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(5);

/// Where the programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// At tc ingress.
    Tc,
    /// In the driver.
    Xdp,
}

impl Hook {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tc, Self::Xdp];

    /// `fastpath.mode`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tc => "tc",
            Self::Xdp => "xdp",
        }
    }

    /// A section for a configuration. Flows are moved early, for tests are short.
    pub fn section(self) -> String {
        self.section_with_room(4_096)
    }

    /// The same with room for this many flows.
    pub fn section_with_room(self, flows: u32) -> String {
        format!("\n[fastpath]\nmode = \"{}\"\nflows = {flows}\npackets = 2\n", self.name())
    }
}

/// What the programs did with packets of the gateway's, by their own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Packets that they carried.
    pub carried: u64,
    /// Packets of the gateway's that they looked at and left to the engine.
    pub left: u64,
    /// Packets for which they have no rule: the host's own, and ICMP errors.
    pub others: u64,
    /// They were attached to the requested hook.
    pub hung: bool,
}

impl Share {
    /// By what `show fastpath` says, at this hook.
    fn of(shown: &Value, hook: Hook) -> Self {
        let rows = shown["passed"].as_array().into_iter().flatten();
        let (mut left, mut others) = (0, 0);
        for row in rows {
            let sum = if row["cause"] == NOT_OURS { &mut others } else { &mut left };
            *sum += row["packets"].as_u64().unwrap_or(0);
        }
        let places = shown["summary"]["attached"].as_str().unwrap_or_default().to_lowercase();
        Self { carried: carried_of(shown), left, others, hung: places.contains(hook.name()) }
    }

    fn plus(self, more: Self) -> Self {
        Self {
            carried: self.carried + more.carried,
            left: self.left + more.left,
            others: self.others + more.others,
            hung: self.hung || more.hung,
        }
    }
}

/// The cause of those without a rule.
const NOT_OURS: &str = "not_ours";

/// Requirements for the gateways of a thread.
#[derive(Clone)]
pub(crate) struct Demand {
    pub hook: Hook,
    share: Arc<Mutex<Share>>,
}

thread_local! {
    static DEMAND: RefCell<Option<Demand>> = const { RefCell::new(None) };
}

/// Does `work`; the gateways that this thread starts meanwhile have the fast path. What `work` gave, and what the fast paths did.
pub fn with<T>(hook: Hook, work: impl FnOnce() -> T) -> (T, Share) {
    let share = Arc::new(Mutex::new(Share::default()));
    let demand = Demand { hook, share: Arc::clone(&share) };
    let restored = Restored(DEMAND.replace(Some(demand)));
    let done = work();
    drop(restored);
    let share = *share.lock().unwrap_or_else(PoisonError::into_inner);
    (done, share)
}

/// Sets the demand of before again, also after a panic: the thread's next test may be one without the fast path.
struct Restored(Option<Demand>);

impl Drop for Restored {
    fn drop(&mut self) {
        DEMAND.set(self.0.take());
    }
}

/// The hook that is demanded of this thread's gateways.
pub fn demanded() -> Option<Hook> {
    DEMAND.with_borrow(|demand| demand.as_ref().map(|demand| demand.hook))
}

/// The configuration with the requested section, unless it has one; also prepares the hosts.
pub(crate) fn as_demanded(network: &Network, host: &str, configuration: &str) -> Result<String> {
    let Some(hook) = demanded() else { return Ok(configuration.to_owned()) };
    if configuration.contains("[fastpath]") {
        return Ok(configuration.to_owned());
    }
    if hook == Hook::Xdp {
        make_ready_for_xdp(network, host)?;
    }
    Ok(format!("{configuration}{}", hook.section()))
}

/// The counters of a gateway's fast path are added up before the gateway ends. After a failed assertion the gateway's drops are printed,
/// too.
pub(crate) fn account_for(network: &Network, process: u32, socket: &Path) -> Result<()> {
    let demand = DEMAND.with_borrow(Clone::clone);
    let socket = socket.to_owned();
    network.with_process(process, |process| {
        process.before_its_end(move || {
            if std::thread::panicking() {
                eprintln!("{}", dropped_at(&socket).unwrap_or_default());
            }
            let Some(demand) = demand else { return };
            let done = shown_at(&socket).map(|shown| Share::of(&shown, demand.hook)).unwrap_or_default();
            let mut share = demand.share.lock().unwrap_or_else(PoisonError::into_inner);
            *share = share.plus(done);
        });
    })
}

/// Drops and problems of a gateway.
fn dropped_at(socket: &Path) -> Result<String> {
    let mut said = String::new();
    for table in ["problems", "drops"] {
        let mut show = Command::new(sixway()?);
        show.args(["show", table, "--socket"]).arg(socket);
        let shown = show.output().map_err(|error| Failure::Io(format!("reading {table}"), error))?;
        said += &String::from_utf8_lossy(&shown.stdout);
    }
    Ok(said)
}

fn shown_at(socket: &Path) -> Result<Value> {
    let mut show = Command::new(sixway()?);
    show.args(["show", "fastpath", "--json", "--socket"]).arg(socket);
    let said =
        show.output().map_err(|error| Failure::Io("reading the state of the fast path".to_owned(), error))?;
    Ok(serde_json::from_slice(&said.stdout).unwrap_or_default())
}

/// How many packets the fast path has forwarded, by `show fastpath`.
pub fn carried_of(shown: &Value) -> u64 {
    let ways = |row: &Value| ["packets_out", "packets_in"].map(|way| row[way].as_u64().unwrap_or(0));
    shown["carried"].as_array().into_iter().flatten().flat_map(ways).sum()
}

/// How many packets of its TUN device the gateway's engine has sent.
pub fn sent_by_engine(network: &Network) -> Result<u64> {
    network.host("gateway")?.received_packets("sixway0")
}

/// Waits until the engine has nothing more to do, though there is load: all flows have been moved to the fast path.
pub fn wait_until_moved(network: &Network) -> Result<()> {
    let mut last = sent_by_engine(network)?;
    interrupt::wait_until(Duration::from_secs(25), "all flows on the fast path", || {
        std::thread::sleep(Duration::from_millis(450));
        let sent = sent_by_engine(network)?;
        Ok(std::mem::replace(&mut last, sent) == sent)
    })
}

/// How many packets the fast path of the gateway on the host "gateway" has carried.
pub fn carried(network: &Network) -> Result<u64> {
    Ok(carried_of(&shown(network)?))
}

/// `show fastpath` of the gateway on the host "gateway".
pub fn shown(network: &Network) -> Result<Value> {
    shown_at(&socket(network, "gateway"))
}

/// XDP between veths: frames of local senders must be finished (checksums, no GSO packets), and the ends that receive what is redirected need
/// GRO or a program of their own: GRO that joins nothing, so that what is seen there is what was sent.
pub fn make_ready_for_xdp(network: &Network, gateway: &str) -> Result<()> {
    for host in
        network.hosts().filter(|host| host.name() != network.host(gateway).map_or("", Namespace::name))
    {
        for device in veths(host)? {
            offloads(host, &device, &["tx", "off", "gro", "on"])?;
            host.ip(&format!("link set {device} gro_max_size 1"))?;
        }
    }
    Ok(())
}

fn veths(host: &Namespace) -> Result<Vec<String>> {
    let said = host.ip("-o link show type veth")?;
    let name = |line: &str| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned());
    Ok(said.lines().filter_map(name).collect())
}

/// Changes a device's offloads by `ethtool -K`.
pub fn offloads(host: &Namespace, device: &str, words: &[&str]) -> Result<()> {
    let mut ethtool = command("ethtool")?;
    ethtool.args(["-K", device]).args(words);
    host.run(ethtool, SHORT)?.succeeded().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_holds_for_its_thread_and_its_time() {
        assert_eq!(demanded(), None);
        let (inside, share) = with(Hook::Xdp, || (demanded(), std::thread::spawn(demanded).join().ok()));
        assert_eq!((inside, share), ((Some(Hook::Xdp), Some(None)), Share::default()));
        assert_eq!(demanded(), None);
    }

    #[test]
    fn packets_without_a_rule_are_distinguished() {
        let shown = serde_json::json!({
            "summary": { "attached": "in0 XDP · out0 XDP" },
            "carried": [{ "packets_out": 3, "packets_in": 4 }, { "packets_out": 0, "packets_in": 1 }],
            "passed": [{ "cause": "not_ours", "packets": 100 }, { "cause": "flags", "packets": 2 }],
        });
        assert_eq!(Share::of(&shown, Hook::Xdp), Share { carried: 8, left: 2, others: 100, hung: true });
        assert!(!Share::of(&shown, Hook::Tc).hung);
        assert_eq!(Share::of(&Value::Null, Hook::Tc), Share::default());
    }
}
