//! Files fetched by HTTP, each from another address: one client's one after the other.

use super::topology::{CLIENTS, Translator, addresses, target};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{HttpFetch, HttpServer, Load as _, Outcome, Pace, Until};
use crate::measure::Reading;
use crate::results::{Cell, Unit};
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

const PORT: u16 = 80;
/// The paper gives the time of this number of files.
const FILES: f64 = 256.0;

/// A translator at work, and a server behind it that has all addresses.
pub struct Http {
    // Dropped first: its threads are in a host of the network.
    _server: HttpServer,
    translator: Translator,
    clients: usize,
    targets: Vec<Vec<SocketAddr>>,
}

impl Http {
    /// Builds the network, starts the device and the server.
    pub fn build(clients: usize, line: &Line<'_>) -> Result<Self> {
        let translator = Translator::build(line, None)?;
        // It has IPv4 clients, too.
        let listens = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT);
        let responder = translator.network.host("responder")?;
        // Files of one client come one after the other, and a connection may end a moment after its file.
        let workers = 2 * CLIENTS.len() as u16;
        let server = HttpServer::start(responder, listens, workers, translator.cores.tester)?;
        let of = |client| {
            let all = 0..addresses(translator.scale);
            all.map(|number| SocketAddr::new(target(client, number), PORT)).collect()
        };
        let targets = (1..=clients).map(of).collect();
        Ok(Self { _server: server, translator, clients, targets })
    }

    fn load(&self, octets: usize, count: usize) -> Result<Outcome> {
        let (network, core) = (&*self.translator.network, self.translator.cores.tester);
        let one = |(name, targets): (&&'static str, &Vec<SocketAddr>)| {
            let client = network.host(name)?;
            let objects = [octets];
            let fetch = HttpFetch { client, core, targets, objects: &objects, keep_alive: false, workers: 1 };
            let pace = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };
            fetch.run(pace, Until::Count(count as u64))
        };
        std::thread::scope(|scope| {
            let one = &one;
            let all = CLIENTS.iter().zip(&self.targets);
            let running: Vec<_> = all.map(|client| scope.spawn(move || one(client))).collect();
            let mut all = Outcome::default();
            for client in running {
                let panicked = |_| Err(Failure::Unexpected("a client of the load panicked".to_owned()));
                all.add(&client.join().unwrap_or_else(panicked)?);
            }
            Ok(all)
        })
    }
}

impl Stage for Http {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        self.translator.running.restart()?;
        let octets = cell.at("octets") as usize;
        interrupt::wait_until(Duration::from_secs(10), "a file for every client", || {
            Ok(self.load(octets, 1)?.lost == 0)
        })?;
        let Translator { running, cores, scale, .. } = &self.translator;
        let count = addresses(*scale);
        let measured =
            measure(running.as_ref(), (*cores, Reading::Ticks), sheet, || self.load(octets, count))?;
        let outcome = &measured.outcome;
        let files = outcome.answered as f64;
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("files", outcome.per_second(), Unit::PerSecond);
        sheet.times("response", &outcome.latency)?;
        sheet.times("connection", &outcome.setup)?;
        let took = outcome.took.as_secs_f64() * 1e3;
        let each = took * self.clients as f64 / files.max(1.0);
        sheet.value("time-of-256", FILES * each, Unit::Milliseconds);
        sheet.value("cpu-per-file", measured.nanoseconds_each(files) / 1e6, Unit::CpuMilliseconds);
        measured.note_per_cpu_second("files-per-cpu-second", files, sheet);
        Ok(())
    }
}
