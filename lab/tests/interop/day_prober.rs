//! Somebody outside who tries all day to reach a host of the LAN, and a count of what came there.

use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::namespace::command;
use sixway_lab::topology::Network;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The prober's addresses, which nobody inside contacts.
const PROBER4: &str = "1.2.3.66";
const PROBER6: &str = "2001:db8:6::66";
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(10);

/// Counts at the host, before its own rules: also what no program listens for.
const SEEN: &str = "table inet seen {
  chain from_prober {
    type filter hook prerouting priority -400
    ip saddr 1.2.3.66 counter
    ip6 saddr 2001:db8:6::66 counter
  }
}
";

/// The prober at work.
pub struct Prober {
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    sent: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Begins to send from a host to these targets, and to count at another one.
    pub fn start(network: &Network, from: &str, host: &str, targets: &[SocketAddr]) -> Result<Self> {
        network.address(from, "up0", &format!("{PROBER4}/24"))?;
        network.address(from, "up0", &format!("{PROBER6}/64"))?;
        let rules = network.file("seen.nft", SEEN)?;
        let mut nft = command("nft")?;
        nft.arg("-f").arg(rules);
        network.host(host)?.run(nft, Duration::from_secs(5))?.succeeded()?;
        let bind = |address: &str| {
            let socket = network.host(from)?.enter(|| UdpSocket::bind((address, 0)))?;
            socket.asking(|| "the prober's socket".to_owned())
        };
        let (four, six) = (bind(PROBER4)?, bind(PROBER6)?);
        let targets = Arc::new(Mutex::new(targets.to_vec()));
        let (sent, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (where_to, count, told) = (Arc::clone(&targets), Arc::clone(&sent), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let now = where_to.lock().unwrap_or_else(PoisonError::into_inner).clone();
                for target in now {
                    let socket = if target.is_ipv4() { &four } else { &six };
                    // While the line is down the kernel refuses.
                    if socket.send_to(b"let me in", target).is_ok() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                std::thread::sleep(PAUSE);
            }
        });
        Ok(Self { targets, sent, ends, thread: Some(thread) })
    }

    /// Tries this one as well.
    pub fn also(&self, target: SocketAddr) {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).push(target);
    }

    /// Nothing came to the host, of many that were sent.
    pub fn was_kept_out(&self, network: &Network, host: &str) -> Result<()> {
        let mut nft = command("nft")?;
        nft.args(["list", "table", "inet", "seen"]);
        let said = network.host(host)?.run(nft, Duration::from_secs(5))?.succeeded()?.stdout;
        let sent = self.sent.load(Ordering::Relaxed);
        let clean = said.matches("counter packets 0 ").count() == 2;
        match clean && sent > 200 {
            true => Ok(()),
            false => {
                Err(Failure::Unexpected(format!("of {sent} packets from outside some came in:\n{said}")))
            }
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
