//! Files fetched by `wget` through a tunnel of OpenVPN over UDP for each client, which is what the translator sees: long flows. The paper's third load.

use super::topology::{CLIENTS, Translator, addresses, responder};
use crate::device::TaskKind;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::{HttpServer, Outcome};
use crate::measure::Reading;
use crate::probe::cpu::pin_thread;
use crate::probe::{Tool, openvpns, vpn_ends, wget_beside};
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Instant;

const PORT: u16 = 80;
/// Files that one `wget` fetches: it has a minute.
const AT_A_TIME: usize = 4_096;
/// The paper's downloads of one client at the same time.
const AT_ONCE: usize = 4;

/// A translator at work, and the tunnels through it.
pub struct Vpn {
    // Dropped first: its threads are in a host of the network.
    _server: HttpServer,
    translator: Translator,
    clients: usize,
}

impl Vpn {
    /// Builds the network, starts the device, both ends of a tunnel for each client, and a server at the far one.
    ///
    /// # Errors
    /// A program is not installed, or nothing comes back through the tunnel.
    pub fn build(clients: usize, line: &Line<'_>) -> Result<Self> {
        for tool in [Tool::Openvpn, Tool::Wget] {
            if let Some(why) = tool.cannot_run() {
                return Err(Failure::Unexpected(format!("{} cannot run here: {why}", tool.name())));
            }
        }
        let native = !line.device.tasks().contains(&TaskKind::Nat64);
        let translator = Translator::build(line, None)?;
        let network: &Network = &translator.network;
        let near = CLIENTS.get(..clients).unwrap_or(&CLIENTS);
        for client in near.iter().filter(|_| native) {
            network.route(client, "fdb9:a0ab:af17:fffe::/64 via fdb9:a0ab:af17:ffff::1")?;
        }
        // Both programs are on the tester's core, as what starts them.
        on_core(translator.cores.tester, || openvpns(network, near, ("responder", responder(native))))?;
        let listens = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT);
        let server = HttpServer::start(
            network.host("responder")?,
            listens,
            (2 * AT_ONCE * near.len()) as u16,
            translator.cores.tester,
        )?;
        Ok(Self { _server: server, translator, clients: near.len() })
    }
}

/// Files that each of several downloads has of `count`.
fn parts(count: usize) -> [usize; AT_ONCE] {
    std::array::from_fn(|at| (count + at) / AT_ONCE)
}

/// Fetches this number of files through the tunnel of each client, some at the same time.
fn fetch(translator: &Translator, clients: usize, octets: usize, count: usize) -> Result<Outcome> {
    let (network, core): (&Network, _) = (&translator.network, translator.cores.tester);
    let start = Instant::now();
    let one = |tunnel: u8, client: &str, at: usize, files: usize| -> Result<u64> {
        core.map_or(Ok(()), pin_thread)?;
        let [far, _] = vpn_ends(tunnel);
        let url = format!("http://{far}/{octets}");
        let starts = (0..files).step_by(AT_A_TIME);
        starts.map(|first| wget_beside((network, client), &url, (files - first).min(AT_A_TIME), at)).sum()
    };
    let arrived: u64 = std::thread::scope(|scope| {
        let one = &one;
        let of_client = |(tunnel, client): (u8, &&'static str)| {
            let client = *client;
            let own = (0..).zip(parts(count)).filter(|(_, files)| *files > 0);
            own.map(|(at, files)| scope.spawn(move || one(tunnel, client, at, files))).collect::<Vec<_>>()
        };
        let running: Vec<_> = (0..).zip(&CLIENTS[..clients]).flat_map(of_client).collect();
        let panicked = |_| Err(Failure::Unexpected("a client of the load panicked".to_owned()));
        running.into_iter().map(|one| one.join().unwrap_or_else(panicked)).sum::<Result<u64>>()
    })?;
    let count = (count * clients) as u64;
    let answered = arrived / octets.max(1) as u64;
    let lost = count.saturating_sub(answered);
    Ok(Outcome { sent: count, answered, lost, octets: arrived, took: start.elapsed(), ..Outcome::default() })
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
        let Translator { running, cores, scale, .. } = &self.translator;
        let count = addresses(*scale);
        fetch(&self.translator, self.clients, octets, 1)?;
        let measured = measure(running.as_ref(), (*cores, Reading::Ticks), sheet, || {
            fetch(&self.translator, self.clients, octets, count)
        })?;
        let outcome = &measured.outcome;
        let files = outcome.answered as f64;
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("files", outcome.per_second(), Unit::PerSecond);
        // Each client has one after the other in several downloads.
        let each = outcome.took.as_secs_f64() * 1e3 * self.clients as f64 / files.max(1.0);
        sheet.value("response", each * AT_ONCE as f64, Unit::Milliseconds);
        sheet.value("time-of-256", 256.0 * each, Unit::Milliseconds);
        sheet.value("cpu-per-file", measured.nanoseconds_each(files) / 1e6, Unit::CpuMilliseconds);
        measured.note_per_cpu_second("files-per-cpu-second", files, sheet);
        sheet.command("openvpn --proto udp6 through the translator; wget from its far end".to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_shared_out_to_the_downloads() {
        for count in [1, 2, 4, 66, 65_536] {
            assert_eq!(parts(count).iter().sum::<usize>(), count);
        }
        assert_eq!(parts(16_384), [4_096; AT_ONCE]);
    }
}
