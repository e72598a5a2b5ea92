//! Files fetched by `wget` through a tunnel of OpenVPN over UDP for each client, which is what the translator sees: long flows. The paper's third load.

use super::topology::{CLIENTS, Translator, responder};
use crate::device::TaskKind;
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::measure;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{HttpFetch, HttpServer, Load as _, Outcome, Pace, Until};
use crate::measure::Reading;
use crate::probe::cpu::pin_thread;
use crate::probe::{Tool, openvpns, vpn_ends, wget_beside};
use crate::results::{Cell, Unit};
use crate::topology::Network;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PORT: u16 = 80;
/// Files of one client at scale 1, as many as the paper's.
const FILES: f64 = 16_384.0;
/// The time between two fetches that are timed.
const PAUSE: Duration = Duration::from_millis(100);
/// Files that one `wget` fetches: its time is limited, and two files a second are enough.
const AT_A_TIME: usize = 256;
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

/// How many files a client fetches at this scale.
pub fn files(scale: f64) -> usize {
    (FILES * scale).round().clamp(8.0, FILES) as usize
}

/// Files that each of several downloads has of `count`.
fn parts(count: usize) -> [usize; AT_ONCE] {
    std::array::from_fn(|at| (count + at) / AT_ONCE)
}

/// Octets that came of this number of files, some after the other. After some of which nothing came, the rest is lost.
fn in_batches(files: usize, mut fetch: impl FnMut(usize) -> Result<u64>) -> Result<u64> {
    let mut came = 0;
    for first in (0..files).step_by(AT_A_TIME) {
        let some = fetch((files - first).min(AT_A_TIME))?;
        came += some;
        if some == 0 {
            break;
        }
    }
    Ok(came)
}

/// Fetches this number of files through the tunnel of each client, some at the same time.
fn fetch(translator: &Translator, clients: usize, octets: usize, count: usize) -> Result<Outcome> {
    let (network, core): (&Network, _) = (&translator.network, translator.cores.tester);
    let start = Instant::now();
    let one = |tunnel: u8, client: &str, at: usize, files: usize| -> Result<u64> {
        core.map_or(Ok(()), pin_thread)?;
        let [far, _] = vpn_ends(tunnel);
        let url = format!("http://{far}/{octets}");
        in_batches(files, |some| wget_beside((network, client), &url, some, at))
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

/// Fetches one file after the other with a client of our own through the first tunnel, each over a connection of its own, until the others have all theirs: wget
/// does not say how long a file took.
fn timed((network, core): (&Network, Option<usize>), octets: usize, is_done: &AtomicBool) -> Result<Outcome> {
    let [far, _] = vpn_ends(0);
    let far = far.parse().map_err(|_| Failure::Unexpected(format!("{far:?} is not an address")))?;
    let client = network.host(CLIENTS[0])?;
    let (targets, objects) = ([SocketAddr::new(far, PORT)], [octets]);
    let fetch =
        HttpFetch { client, core, targets: &targets, objects: &objects, keep_alive: false, workers: 1 };
    let one = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };
    until_done(is_done, || fetch.run(one, Until::Count(1)))
}

/// Does something again and again, with pauses, until the others are done: not once more after their end.
fn until_done(is_done: &AtomicBool, mut once: impl FnMut() -> Result<Outcome>) -> Result<Outcome> {
    let mut all = Outcome::default();
    loop {
        all.add(&once()?);
        let next = Instant::now() + PAUSE;
        while Instant::now() < next {
            if is_done.load(Ordering::Relaxed) {
                return Ok(all);
            }
            interrupt::pause(Duration::from_millis(1))?;
        }
    }
}

/// Sets a flag at its end, also when a load panics: others wait for it.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a load while single fetches are timed: what came of both.
fn while_timed(
    timed: impl FnOnce(&AtomicBool) -> Result<Outcome> + Send,
    load: impl FnOnce() -> Result<Outcome>,
) -> Result<[Outcome; 2]> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let timing = scope.spawn(|| timed(&is_done));
        let ended = Ended(&is_done);
        let outcome = load();
        drop(ended);
        let panicked = |_| Err(Failure::Unexpected("the thread that times fetches panicked".to_owned()));
        let times = timing.join().unwrap_or_else(panicked)?;
        Ok([outcome?, times])
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
        let Translator { running, cores, scale, .. } = &self.translator;
        let count = files(*scale);
        let (mut times, from) = (Outcome::default(), (&*self.translator.network, cores.tester));
        fetch(&self.translator, self.clients, octets, 1)?;
        let measured = measure(running.as_ref(), (*cores, Reading::Ticks), sheet, || {
            let timed = |is_done: &AtomicBool| timed(from, octets, is_done);
            let load = || fetch(&self.translator, self.clients, octets, count);
            let [outcome, of_single] = while_timed(timed, load)?;
            times = of_single;
            Ok(outcome)
        })?;
        let outcome = &measured.outcome;
        let files = outcome.answered as f64;
        sheet.value("sent", outcome.sent as f64, Unit::Count);
        sheet.value("loss", outcome.loss(), Unit::Lost);
        sheet.value("files", outcome.per_second(), Unit::PerSecond);
        note_times(&times, sheet)?;
        let each = outcome.took.as_secs_f64() * 1e3 * self.clients as f64 / files.max(1.0);
        sheet.value("time-of-256", 256.0 * each, Unit::Milliseconds);
        // The device has forwarded those that were timed, too.
        let files = files + times.answered as f64;
        sheet.value("cpu-per-file", measured.nanoseconds_each(files) / 1e6, Unit::CpuMilliseconds);
        measured.note_per_cpu_second("files-per-cpu-second", files, sheet);
        sheet.command("openvpn --proto udp6 through the translator; wget from its far end".to_owned());
        Ok(())
    }
}

/// Response times of single fetches, their connections included, and how many of these were lost.
fn note_times(times: &Outcome, sheet: &mut Sheet) -> Result<()> {
    sheet.value("timed-lost", times.lost as f64, Unit::Count);
    if times.answered == 0 {
        sheet.not_measurable("response", "no single file came".to_owned());
        return Ok(());
    }
    sheet.times("response", &times.latency)?;
    sheet.times("connection", &times.setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_are_those_of_single_fetches_while_the_load_lasts() {
        let mut single = Outcome { sent: 2, lost: 1, ..Outcome::default() };
        single.answer(Duration::from_millis(7));
        let timed = |is_done: &AtomicBool| {
            while !is_done.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(single)
        };
        let load = || Ok(Outcome { sent: 400, took: Duration::from_secs(4), ..Outcome::default() });
        let [outcome, times] = while_timed(timed, load).unwrap();
        let folder = std::env::temp_dir().join(format!("sixway-lab-vpn-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut sheet = Sheet::new(folder.clone());
        note_times(&times, &mut sheet).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let response = &sheet.values()["response"];
        assert_eq!((outcome.sent, response.n), (400, 1));
        assert!((6.9..7.1).contains(&response.value) && response.quantiles.is_some(), "{response:?}");
        let mut sheet = Sheet::new(std::path::PathBuf::new());
        note_times(&Outcome { sent: 1, lost: 1, ..Outcome::default() }, &mut sheet).unwrap();
        assert!(!sheet.values().contains_key("response"), "no time was measured");
    }

    #[test]
    fn a_client_fetches_as_many_files_as_the_papers() {
        assert_eq!([1.0, 0.02, 0.001, 0.0].map(files), [16_384, 328, 16, 8]);
    }

    #[test]
    fn all_files_are_shared_out_to_the_downloads() {
        for count in [1, 2, 4, 66, 65_536] {
            assert_eq!(parts(count).iter().sum::<usize>(), count);
        }
        assert_eq!(parts(16_384), [4_096; AT_ONCE]);
    }

    #[test]
    fn files_are_fetched_in_batches_until_nothing_comes() {
        let mut batches = Vec::new();
        let all = in_batches(600, |some| {
            batches.push(some);
            Ok(some as u64 * 10)
        });
        assert_eq!((all.unwrap(), batches), (6_000, vec![256, 256, 88]));
        let mut tries = 0;
        let dead = in_batches(4_096, |_| {
            tries += 1;
            Ok(if tries == 1 { 7 } else { 0 })
        });
        assert_eq!((dead.unwrap(), tries), (7, 2));
        assert!(in_batches(1, |_| Err(Failure::Unexpected(String::new()))).is_err());
    }

    #[test]
    fn no_fetch_follows_the_end_of_the_load() {
        let (done, mut count, start) = (AtomicBool::new(true), 0, Instant::now());
        let once = || {
            count += 1;
            Ok(Outcome::default())
        };
        until_done(&done, once).unwrap();
        assert!(count == 1 && start.elapsed() < PAUSE);
    }

    #[test]
    fn a_load_that_panics_ends_what_waits_for_it() {
        let waits = |is_done: &AtomicBool| until_done(is_done, || Ok(Outcome::default()));
        let run = || while_timed(waits, || panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
