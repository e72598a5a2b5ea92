//! Files fetched by `wget` through a tunnel of OpenVPN over UDP, which is what the translator sees: one long flow. The paper's third load.

use super::topology::{CLIENTS, Translator, addresses, responder};
use crate::device::TaskKind;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{HttpServer, Outcome};
use crate::measure::Reading;
use crate::probe::cpu::pin_thread;
use crate::probe::{Tool, VPN_FAR, openvpn, wget};
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Instant;

const PORT: u16 = 80;
/// Files that one `wget` fetches: it has a minute.
const AT_A_TIME: usize = 4_096;

/// A translator at work, and the tunnel through it.
pub struct Vpn {
    // Dropped first: its threads are in a host of the network.
    _server: HttpServer,
    translator: Translator,
}

impl Vpn {
    /// Builds the network, starts the device, both ends of the tunnel, and a server at the far one.
    ///
    /// # Errors
    /// A program is not installed, or nothing comes back through the tunnel.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        for tool in [Tool::Openvpn, Tool::Wget] {
            if let Some(why) = tool.cannot_run() {
                return Err(Failure::Unexpected(format!("{} cannot run here: {why}", tool.name())));
            }
        }
        let native = !line.device.tasks().contains(&TaskKind::Nat64);
        let translator = Translator::build(line, None)?;
        let network: &Network = &translator.network;
        if native {
            network.route(CLIENTS[0], "fdb9:a0ab:af17:fffe::/64 via fdb9:a0ab:af17:ffff::1")?;
        }
        // Both programs are on the tester's core, as what starts them.
        on_core(translator.cores.tester, || openvpn(network, CLIENTS[0], ("responder", responder(native))))?;
        let listens = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT);
        let server = HttpServer::start(network.host("responder")?, listens, 4, translator.cores.tester)?;
        Ok(Self { _server: server, translator })
    }
}

/// Fetches this number of files through the tunnel.
fn fetch(network: &Network, octets: usize, count: usize) -> Result<Outcome> {
    let url = format!("http://{VPN_FAR}/{octets}");
    let (start, mut arrived) = (Instant::now(), 0);
    for first in (0..count).step_by(AT_A_TIME) {
        let files = (count - first).min(AT_A_TIME);
        arrived += wget(network, CLIENTS[0], &url, files)?;
    }
    let answered = arrived / octets.max(1) as u64;
    let lost = (count as u64).saturating_sub(answered);
    Ok(Outcome {
        sent: count as u64,
        answered,
        lost,
        octets: arrived,
        took: start.elapsed(),
        ..Outcome::default()
    })
}

/// What a thread on a CPU starts runs there, too.
fn on_core<T: Send>(core: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let working = scope.spawn(move || {
            core.map_or(Ok(()), pin_thread)?;
            work()
        });
        working.join().unwrap_or_else(|_| Err(Failure::Unexpected("a tool's thread panicked".to_owned())))
    })
}

impl Stage for Vpn {
    /// The device continues from row to row: the tunnel's session is its own.
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let octets = cell.at("octets") as usize;
        let Translator { running, network, cores, scale } = &self.translator;
        let network: &Network = network;
        let count = addresses(*scale);
        fetch(network, octets, 1)?;
        let measured = measure(running.as_ref(), (*cores, Reading::Ticks), sheet, || {
            on_core(cores.tester, || fetch(network, octets, count))
        })?;
        let outcome = &measured.outcome;
        let files = outcome.answered as f64;
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("files", outcome.per_second(), Unit::PerSecond);
        let each = outcome.took.as_secs_f64() * 1e3 / files.max(1.0);
        sheet.value("response", each, Unit::Milliseconds);
        sheet.value("time-of-256", 256.0 * each, Unit::Milliseconds);
        sheet.value("cpu-per-file", measured.nanoseconds_each(files) / 1e6, Unit::CpuMilliseconds);
        measured.note_per_cpu_second("files-per-cpu-second", files, sheet);
        sheet.command("openvpn --proto udp6 through the translator; wget from its far end".to_owned());
        Ok(())
    }
}
