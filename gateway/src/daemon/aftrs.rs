//! The AFTR of a B4, where it is a name or comes from a DHCPv6 lease (RFC 6334): resolved over IPv6, again after its TTL, and replaced by the
//! name's next address if it is silent.

use crate::aftr::{ask_aftr, resolve};
use crate::config::{AftrAt, B4, Config};
use crate::lease_text;
use crate::show::plural;
use sixway_control::b4::{AftrChoice, Observed, aftr_in};
use sixway_dataplane::Instant;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How often the lease file is examined.
const LOOK: Duration = Duration::from_secs(1);

/// When a name that could not be resolved is tried again: the delay doubles each time, since the uplink may come up soon.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Answers that wait.
const WAITING: usize = 16;

/// AFTRs that were set at run time, by the B4's name.
pub(super) type ToldAftrs = BTreeMap<String, AftrAt>;

/// Where the AFTR of a B4 is, or why that is not known.
type Answer = Result<Vec<Ipv6Addr>, String>;

/// A B4, the name that is followed, and where it leads.
type Answered = (String, Option<String>, Answer);

/// Where the AFTR of a B4 is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AftrSource {
    /// The name that resolved to the address in use; `None`: an address was given, or nothing is known yet.
    pub(super) found_by: Option<String>,
    /// The name that is resolved, which may have no address yet; `None`: an address, or nothing.
    pub(super) followed: Option<String>,
}

/// An AFTR that does not answer, without an alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SilentAftr {
    /// The B4.
    pub(super) b4: String,
    /// The AFTR.
    pub(super) aftr: Ipv6Addr,
    /// How many addresses it has, of which none answers.
    pub(super) addresses: usize,
    /// Packets that were sent to it since it is silent.
    pub(super) sent: u64,
    /// For how long.
    pub(super) seconds: u64,
}

impl SilentAftr {
    /// In words.
    pub(super) fn text(&self) -> String {
        let Self { b4, aftr, addresses, sent, seconds } = self;
        let since = format!("({}, {seconds} s)", plural(*sent, "packet"));
        match addresses {
            0 | 1 => format!("{b4}: the AFTR {aftr} does not answer {since}"),
            several => {
                format!("{b4}: none of the AFTR's {several} addresses answers; {aftr} is tried {since}")
            }
        }
    }
}

/// Where B4s' names lead, and which address each uses.
pub(super) struct Aftrs {
    /// The device, and this host's address in each softwire.
    device: OsString,
    hosts: BTreeMap<String, Ipv4Addr>,
    choices: BTreeMap<String, AftrChoice>,
    /// Why a B4's name has no usable address at the moment.
    faults: BTreeMap<String, String>,
    sources: BTreeMap<String, AftrSource>,
    answers: mpsc::Receiver<Answered>,
    /// Keeps the channel open without names.
    _open: mpsc::Sender<Answered>,
    /// They end with this.
    _asking: JoinSet<()>,
}

impl Aftrs {
    /// Starts to follow the AFTRs of all B4s.
    pub(super) fn new(config: &Config, told: &watch::Sender<ToldAftrs>) -> Self {
        let (sender, answers) = mpsc::channel(WAITING);
        let mut asking = JoinSet::new();
        for b4 in config.b4s() {
            asking.spawn(follow(b4.clone(), told.subscribe(), sender.clone()));
        }
        let hosts = config.b4s().map(|b4| (b4.name.clone(), b4.ipv4_address)).collect();
        let device = config.tun.name.clone().into();
        Self {
            device,
            hosts,
            choices: BTreeMap::new(),
            faults: BTreeMap::new(),
            sources: BTreeMap::new(),
            answers,
            _open: sender,
            _asking: asking,
        }
    }

    /// Waits until a name leads elsewhere.
    pub(super) async fn changed(&mut self) {
        match self.answers.recv().await {
            Some(answered) => self.note(answered),
            None => std::future::pending().await,
        }
    }

    fn note(&mut self, (b4, name, answer): Answered) {
        let source = self.sources.entry(b4.clone()).or_default();
        source.followed.clone_from(&name);
        match answer {
            Ok(addresses) => {
                source.found_by = name;
                self.faults.remove(&b4);
                self.choices.entry(b4).or_default().set(&addresses);
            }
            Err(why) => drop(self.faults.insert(b4, why)),
        }
    }

    /// Where the AFTRs are from, by B4.
    pub(super) const fn sources(&self) -> &BTreeMap<String, AftrSource> {
        &self.sources
    }

    /// The addresses in use.
    pub(super) fn in_use(&self) -> BTreeMap<String, Ipv6Addr> {
        let in_use = |(b4, choice): (&String, &AftrChoice)| Some((b4.clone(), choice.current()?));
        self.choices.iter().filter_map(in_use).collect()
    }

    /// AFTRs that do not answer, and that have no substitute.
    pub(super) fn silent(&self, now: Instant) -> Vec<SilentAftr> {
        let silent = |(b4, choice): (&String, &AftrChoice)| {
            let (aftr, (since, sent)) = (choice.current()?, choice.unanswered()?);
            let (addresses, seconds) = (choice.candidates().len(), now.since(since).as_secs());
            Some(SilentAftr { b4: b4.clone(), aftr, addresses, sent, seconds })
        };
        self.choices.iter().filter_map(silent).collect()
    }

    /// Why names of AFTRs have no usable address at the moment, by B4.
    pub(super) const fn faults(&self) -> &BTreeMap<String, String> {
        &self.faults
    }

    /// The packets of B4s in the last second, into the tunnel and out of it.
    pub(super) fn observe(&mut self, now: Instant, sent: u64, received: u64) {
        for (b4, choice) in &mut self.choices {
            let (before, was_silent) = (choice.current(), choice.unanswered().is_some());
            match (choice.observe(now, sent, received), before, choice.current()) {
                (Observed::GivenUp, Some(before), Some(after)) => tracing::warn!(
                    "{b4}: the AFTR {before} does not answer; using {after}, the name's next address"
                ),
                (Observed::Ask, _, _) => {
                    let asked = self.hosts.get(b4).map(|host| ask_aftr(*host, &self.device));
                    if let Some(Err(error)) = asked {
                        tracing::debug!("{b4}: no echo request to the AFTR: {error}");
                    }
                }
                (Observed::GivenUp | Observed::Nothing, _, _) => {}
            }
            let Some(aftr) = choice.current() else { continue };
            match (was_silent, choice.unanswered()) {
                (false, Some((since, sent))) => {
                    let (addresses, seconds) = (choice.candidates().len(), now.since(since).as_secs());
                    let silent = SilentAftr { b4: b4.clone(), aftr, addresses, sent, seconds };
                    tracing::warn!("{}", silent.text());
                }
                (true, None) => tracing::info!("{b4}: the AFTR {aftr} answers"),
                (_, _) => {}
            }
        }
    }
}

/// When a file was written, and its length.
type Version = (SystemTime, u64);

/// A lease file, and what was read of it.
struct Lease {
    path: Option<PathBuf>,
    seen: Option<Version>,
    /// The same of a file without the option, which may be half written.
    lacks: Option<Version>,
    aftr: Option<AftrAt>,
    /// What was last reported of it.
    told: Option<String>,
}

impl Lease {
    const fn at(path: Option<PathBuf>) -> Self {
        Self { path, seen: None, lacks: None, aftr: None, told: None }
    }

    /// Reads the file if it changed since the last time. Returns whether the AFTR has changed. A file that is missing or cannot be read leaves the
    /// last one
    /// known, and one without the option until it is the same at the next look: another AFTR for a moment would end all sessions.
    fn look(&mut self, b4: &str) -> bool {
        let Some(path) = &self.path else { return false };
        let Ok(metadata) = std::fs::metadata(path) else { return false };
        let seen = metadata.modified().ok().map(|time| (time, metadata.len()));
        if seen.is_some() && seen == self.seen {
            return false;
        }
        let read = lease_text::read(path);
        let aftr = match read.as_deref().map(|text| aftr_in(text).and_then(|name| AftrAt::parse(&name))) {
            Ok(aftr) => aftr,
            // It is tried again: permissions change without a new time.
            Err(error) => {
                let trouble = format!("{error}; the previous AFTR stays in use");
                self.tell(b4, Some(trouble));
                return false;
            }
        };
        if aftr.is_none() && self.aftr.is_some() && self.lacks != seen {
            self.lacks = seen;
            return false;
        }
        self.seen = seen;
        let lacks = aftr.is_none() && self.aftr.is_none();
        self.tell(b4, lacks.then(|| "no AFTR name (DHCPv6 option 64)".to_owned()));
        let changed = aftr != self.aftr;
        self.aftr = aftr;
        changed
    }

    /// Logs what is wrong with the file, once.
    fn tell(&mut self, b4: &str, trouble: Option<String>) {
        if let (Some(what), Some(path)) = (trouble.as_ref().filter(|_| trouble != self.told), &self.path) {
            tracing::warn!("{b4}: {}: {what}", path.display());
        }
        self.told = trouble;
    }
}

/// Follows the AFTR of a B4: that set at run time, else that of the lease, else that of the configuration.
async fn follow(b4: B4, mut told: watch::Receiver<ToldAftrs>, answers: mpsc::Sender<Answered>) {
    let mut lease = Lease::at(b4.aftr_lease_file.clone());
    let (mut known, mut reported, mut retry) = (Vec::new(), None, RETRY[0]);
    loop {
        lease.look(&b4.name);
        let by_command = told.borrow_and_update().get(&b4.name).cloned();
        let at = by_command.or_else(|| lease.aftr.clone()).or_else(|| b4.aftr.clone());
        let name = match &at {
            Some(AftrAt::Name(name)) => Some(name.clone()),
            Some(AftrAt::Address(_)) | None => None,
        };
        let (found, again) = match at {
            Some(AftrAt::Address(address)) => (Ok(vec![address]), None),
            Some(AftrAt::Name(name)) => {
                let resolved = tokio::select! {
                    resolved = resolve(&name, &b4) => resolved,
                    // A command does not wait for a name server.
                    Ok(()) = told.changed() => continue,
                };
                match resolved {
                    Ok(found) => (Ok(found.addresses), Some(found.again)),
                    Err(what) => {
                        let again = retry;
                        retry = (retry * 2).min(RETRY[1]);
                        (Err(format!("{name}: {what}")), Some(again))
                    }
                }
            }
            None => (Err("no lease with an AFTR name yet".to_owned()), None),
        };
        match found {
            Ok(addresses) => {
                // Name servers rotate the records of a name.
                let mut sorted = addresses.clone();
                sorted.sort_unstable();
                if known != sorted {
                    let list = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                    tracing::info!("{}: AFTR {list}", b4.name);
                    known = sorted;
                }
                (reported, retry) = (None, RETRY[0]);
                if answers.send((b4.name.clone(), name, Ok(addresses))).await.is_err() {
                    return;
                }
            }
            Err(what) if reported.as_ref() != Some(&what) => {
                let stays = if known.is_empty() { "" } else { "; the previous AFTR stays in use" };
                tracing::warn!("{}: {what}{stays}", b4.name);
                if answers.send((b4.name.clone(), name, Err(what.clone()))).await.is_err() {
                    return;
                }
                reported = Some(what);
            }
            Err(_) => {}
        }
        let until = again.map(|again| tokio::time::Instant::now() + again);
        loop {
            tokio::select! {
                _ = told.changed() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            if lease.look(&b4.name) || until.is_some_and(|until| tokio::time::Instant::now() >= until) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_lease_is_read_again_only_when_the_file_changes_and_a_lost_file_changes_nothing() {
        let path = std::env::temp_dir().join(format!("sixway-lease-{}", std::process::id()));
        let mut lease = Lease::at(Some(path.clone()));
        assert!(!lease.look("b4"));
        std::fs::write(&path, "aftr.example\n").unwrap();
        assert!(lease.look("b4") && !lease.look("b4"));
        assert_eq!(lease.aftr, Some(AftrAt::Name("aftr.example".into())));
        std::fs::write(&path, b"\xff\xfe 2001:db8:a::1").unwrap();
        assert!(!lease.look("b4") && lease.aftr.is_some(), "it may be half written");
        assert!(lease.look("b4") && lease.aftr.is_none());
        std::fs::write(&path, "2001:db8:a::1").unwrap();
        assert!(lease.look("b4"));
        std::fs::remove_file(&path).unwrap();
        assert!(!lease.look("b4"));
        assert_eq!(lease.aftr, Some(AftrAt::Address("2001:db8:a::1".parse().unwrap())));
    }

    #[test]
    fn a_lease_that_is_no_regular_file_does_not_block() {
        let path = std::env::temp_dir().join(format!("sixway-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(lease_text::read(&path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let mut lease = Lease::at(Some(path.clone()));
        assert!(!lease.look("b4") && lease.seen.is_none(), "it is tried again");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "aftr.example\n").unwrap();
        assert_eq!(lease_text::read(&path).unwrap(), "aftr.example\n");
        std::fs::remove_file(&path).unwrap();
    }
}
