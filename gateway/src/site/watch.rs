//! Changes while a site runs. When prefixes, MTUs or default routes change, the configuration is derived again and reloaded. A separate
//! thread guards the table of the packet filter, so that it never waits for this one.

use super::dhcp_server::DhcpServer;
use super::facts::SiteFacts;
use super::filter_guard::FilterTable;
use super::options::SiteOptions;
use super::plan::Site;
use super::standing::Standing;
use super::whole_file;
use crate::reload_pause::ReloadPause;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Interval between two checks whether the site ends.
const STEP: Duration = Duration::from_millis(100);
/// Interval between two checks of the host's state.
const FOLLOW: Duration = Duration::from_secs(3);
/// A line that is lost usually returns with the same address, and sessions continue: the site waits this long for it.
const RETURN: Duration = Duration::from_secs(300);
/// A process that takes over has done so within this time, or given up.
const TAKEOVER: Duration = Duration::from_secs(60);

/// The threads that watch.
#[derive(Debug)]
pub struct Watch {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch a site. Signals must be blocked before, so that these threads receive none.
    ///
    /// # Errors
    /// The kernel creates no thread.
    pub fn start(standing: &Standing, options: SiteOptions) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let mut watch = Self { ends: Arc::clone(&ends), threads: Vec::new() };
        let table = Arc::new(FilterTable::of(standing.clone()));
        let (guarded, told) = (Arc::clone(&table), Arc::clone(&ends));
        watch.spawn("site-filter", move || guarded.guard(&told))?;
        let standing = standing.clone();
        let follow = move || Plan::new(options, standing, table).keep(&ends);
        if let Err(error) = watch.spawn("site", follow) {
            watch.end();
            return Err(error);
        }
        Ok(watch)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(Builder::new().name(name.into()).spawn(run)?);
        Ok(())
    }

    /// Ends them. The DHCP server keeps running until the site is removed: another process may have the site from now on.
    pub fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // One that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// The plan, which follows the host.
struct Plan {
    options: SiteOptions,
    standing: Standing,
    table: Arc<FilterTable>,
    /// The site of the configuration that is in force.
    stands: Option<Site>,
    /// Whether a change waits for the end of the pause after the last reload.
    waits: bool,
    /// The configuration as this process knows it.
    written: Option<String>,
    /// Since when the file has another one.
    foreign: Option<Instant>,
    /// What is missing; logged once.
    trouble: Option<String>,
    /// Why the site has no uplink; logged once.
    uplink: Option<String>,
    /// Whether the interface to the provider had an IPv4 address.
    had_address: bool,
    /// Since when it has none.
    lost: Option<Instant>,
    /// The table could not be created and will be tried again; and whether the configuration had changed as well.
    pending: Option<bool>,
    dhcp: DhcpServer,
}

impl Plan {
    fn new(options: SiteOptions, standing: Standing, table: Arc<FilterTable>) -> Self {
        Self {
            options,
            written: standing.configuration(),
            dhcp: DhcpServer::of(standing.dhcp_servers()),
            standing,
            table,
            stands: None,
            waits: false,
            foreign: None,
            trouble: None,
            uplink: None,
            had_address: false,
            lost: None,
            pending: None,
        }
    }

    /// Follows the host until the end.
    fn keep(&mut self, ends: &AtomicBool) {
        let mut follow_at = Instant::now() + FOLLOW;
        self.dhcp.keep();
        while !ends.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= follow_at {
                self.dhcp.keep();
                follow_at = now + FOLLOW;
                if self.follow() {
                    self.dhcp.keep();
                }
            }
            std::thread::sleep(STEP);
        }
    }

    /// Whether the site stays as it was, since the line is lost: the interface to the provider has no IPv4 address any more. A reload now
    /// would end all sessions. A new prefix of IPv6 does not wait.
    fn awaits_line(&mut self, site: &Site, before: &str) -> bool {
        if site.public.is_some() {
            (self.had_address, self.lost) = (true, None);
        } else if self.had_address {
            self.lost.get_or_insert_with(Instant::now);
        }
        let prefixes = site.lans.iter().flat_map(|lan| &lan.prefixes);
        let has_new = prefixes.into_iter().any(|prefix| !before.contains(&format!("\"{prefix}\"")));
        self.lost.is_some_and(|lost| lost.elapsed() < RETURN) && !has_new
    }

    /// The configuration in the file. If another process wrote it, that process is taking over, and the file is not changed for some time.
    fn before(&mut self) -> Option<String> {
        let now = self.standing.configuration()?;
        if self.written.as_ref() == Some(&now) {
            self.foreign = None;
        } else if self.foreign.get_or_insert_with(Instant::now).elapsed() < TAKEOVER {
            return None;
        }
        Some(now)
    }

    /// Derives the configuration again; the process reloads another one. Whether it is another one.
    fn follow(&mut self) -> bool {
        let Some(before) = self.before() else { return false };
        let facts = self.standing.facts(true);
        let site = match Site::plan(&self.options, &facts) {
            Ok(site) => site.continuing(&before),
            Err(faults) => return self.stays(faults.join("; ")),
        };
        self.look_at_uplink(&site, &facts);
        if self.awaits_line(&site, &before) {
            return self.stays(format!("{} has no IPv4 address", site.wan));
        }
        let changed = site.configuration() != before;
        // What is not taken would stay in the file.
        if let (true, Err(faults)) = (changed, site.check(&self.standing.configuration_file())) {
            return self.stays(faults.replace('\n', "; "));
        }
        if self.trouble.take().is_some() {
            tracing::info!("nothing is missing for the site any more");
        }
        if changed && self.waits_for_pause() {
            self.filter_meanwhile(site);
            return false;
        }
        self.waits = false;
        // The interface of IPv6's default route is not part of the configuration.
        if !changed && self.pending.is_none() && !self.standing.filters_otherwise(&site) {
            self.stands = Some(site);
            return false;
        }
        let changed = changed || self.pending == Some(true);
        self.pending = None;
        match self.standing.configure(&site).and_then(|()| self.table.replace(&site)) {
            Ok(()) if !changed => {
                tracing::info!("the packet filter: outside interfaces are {}", site.outside.join(", "))
            }
            Ok(()) => {
                self.written = self.standing.configuration();
                self.note_reload();
                tracing::info!(
                    "addresses, prefixes or routes of this host changed: the site's configuration is reloaded"
                );
                // What is pending is read by the gateway.
                let _ = kill(Pid::this(), Signal::SIGHUP);
            }
            Err(error) => {
                tracing::error!("the site cannot follow this host: {error}");
                self.pending = Some(changed);
                self.written = self.standing.configuration();
                return false;
            }
        }
        self.stands = Some(site);
        true
    }
}

impl Plan {
    /// Whether the next reload must wait because of the last one.
    fn waits_for_pause(&mut self) -> bool {
        let left = self.pause().left();
        if !left.is_zero() && !self.waits {
            tracing::info!("the site changes often: the next reload is in {} s", left.as_secs());
        }
        self.waits = !left.is_zero();
        self.waits
    }

    fn pause(&self) -> ReloadPause {
        let text = fs::read_to_string(self.standing.pause_file()).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Stores the pause: the reload re-executes this process.
    fn note_reload(&self) {
        let pause = self.pause().after_reload();
        let written = serde_json::to_string(&pause).map_err(io::Error::other);
        let path = self.standing.pause_file();
        if let Err(error) = written.and_then(|text| whole_file::write(&path, &text)) {
            tracing::warn!("{}: {error}: the next reload does not wait", path.display());
        }
    }

    /// The site stays as it is until the end of the pause, but the packet filter uses the current outside interfaces.
    fn filter_meanwhile(&mut self, site: Site) {
        let outside = site.outside.clone();
        // After a reload, the plan that is in force is not known before the first look at the host finds no change.
        let stands = self.stands.get_or_insert(site);
        stands.outside = outside;
        if self.standing.filters_otherwise(stands) {
            match self.table.replace(stands) {
                Ok(()) => {
                    tracing::info!("the packet filter: outside interfaces are {}", stands.outside.join(", "))
                }
                Err(error) => tracing::error!("the packet filter: {error}"),
            }
        }
    }
}

impl Plan {
    /// Logs once that the uplink is lost, and that it is back.
    fn look_at_uplink(&mut self, site: &Site, facts: &SiteFacts) {
        let lacks = lacks(site, facts);
        match (&lacks, &self.uplink) {
            (Some(why), before) if before.as_ref() != Some(why) => {
                tracing::warn!("the uplink is lost: {why}")
            }
            (None, Some(_)) => tracing::info!("the uplink {} is back", site.wan),
            (Some(_) | None, _) => {}
        }
        self.uplink = lacks;
    }

    /// Logs the reason once.
    fn stays(&mut self, trouble: String) -> bool {
        if self.trouble.as_ref() != Some(&trouble) {
            tracing::warn!("the site stays as it was: {trouble}");
        }
        self.trouble = Some(trouble);
        false
    }
}

/// What the uplink lacks, as far as this host can see.
fn lacks(site: &Site, facts: &SiteFacts) -> Option<String> {
    let wan = &site.wan;
    match site.public {
        None => Some(format!("{wan} has no IPv4 address")),
        Some(_) if !facts.defaults.contains(wan) => Some(format!("no default route of IPv4 leads to {wan}")),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{facts, options};
    use super::*;

    /// One without a site's files, and what is left of them when it is dropped.
    struct Bench(Plan, std::path::PathBuf);

    impl Bench {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("sixway-watch-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            let standing = Standing::of(&folder, "site");
            let table = Arc::new(FilterTable::of(standing.clone()));
            Self(Plan::new(options(), standing, table), folder)
        }

        fn writes(&self, text: &str) {
            fs::write(self.0.standing.configuration_file(), text).unwrap();
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.1).unwrap();
        }
    }

    /// Until then it would overwrite the file that the other one reads.
    #[test]
    fn a_process_that_takes_over_has_a_minute_for_it() {
        let mut bench = Bench::new("takeover");
        assert_eq!(bench.0.before(), None);
        bench.writes("own");
        bench.0.written = Some("own".into());
        assert_eq!(bench.0.before().as_deref(), Some("own"));
        bench.writes("another's");
        assert_eq!(bench.0.before(), None);
        bench.0.foreign = Instant::now().checked_sub(TAKEOVER - Duration::from_secs(5));
        assert_eq!(bench.0.before(), None);
        bench.0.foreign = Instant::now().checked_sub(TAKEOVER);
        assert_eq!(bench.0.before().as_deref(), Some("another's"), "it has given up");
        bench.0.written = Some("another's".into());
        assert_eq!(bench.0.before().as_deref(), Some("another's"));
        assert_eq!(bench.0.foreign, None);
    }

    #[test]
    fn a_lost_line_is_waited_for_unless_there_is_another_prefix() {
        let mut bench = Bench::new("line");
        let mut facts = facts();
        let site = |facts: &SiteFacts| Site::plan(&options(), facts).unwrap();
        let before = site(&facts).configuration();
        let with = site(&facts);
        facts.host.addresses.remove(1);
        let mut without = site(&facts);
        assert!(!bench.0.awaits_line(&without, &before), "it never had an address");
        assert!(!bench.0.awaits_line(&with, &before));
        assert!(bench.0.awaits_line(&without, &before));
        without.lans[0].prefixes.push("2001:db8:2::/64".parse().unwrap());
        assert!(!bench.0.awaits_line(&without, &before));
        without.lans[0].prefixes.pop();
        assert!(bench.0.awaits_line(&without, &before));
        bench.0.lost = Instant::now().checked_sub(RETURN);
        assert!(!bench.0.awaits_line(&without, &before), "it does not return");
        assert!(!bench.0.awaits_line(&with, &before));
        assert!(bench.0.awaits_line(&without, &before), "it is another loss");
    }

    #[test]
    fn an_uplink_without_an_address_or_a_default_route_is_lost() {
        let of = |facts: &SiteFacts| lacks(&Site::plan(&options(), facts).unwrap(), facts);
        let mut facts = facts();
        assert_eq!(of(&facts), None);
        facts.defaults = vec!["eth1".into()];
        assert_eq!(of(&facts).as_deref(), Some("no default route of IPv4 leads to eth0"));
        facts.host.addresses.retain(|own| own.interface != "eth0");
        assert_eq!(of(&facts).as_deref(), Some("eth0 has no IPv4 address"));
    }
}
