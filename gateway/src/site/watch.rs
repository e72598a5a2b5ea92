//! What changes while a site runs. Other programs may remove the table, as a reload of the packet filter does (`flush ruleset`): it is
//! made again. Prefixes, MTUs and default routes change with the provider: the configuration is derived again, and reloaded.

use super::dhcp_server::DhcpServer;
use super::facts::SiteFacts;
use super::options::SiteOptions;
use super::plan::Site;
use super::standing::Standing;
use crate::host::RuleEvents;
use crate::host::nft::{self, NftError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long the LAN may be open.
const STEP: Duration = Duration::from_millis(100);
/// Without notifications of the kernel, and after a failure, the table is looked at this often.
const LOOK: Duration = Duration::from_secs(10);
/// Against a program that removes it again and again.
const PAUSE: Duration = Duration::from_secs(1);

/// How often the host is looked at.
const FOLLOW: Duration = Duration::from_secs(3);
/// A line that is lost usually returns with the same address, and sessions continue: the site waits this long for it.
const RETURN: Duration = Duration::from_secs(300);
/// A process that takes over has done so within this time, or given up.
const TAKEOVER: Duration = Duration::from_secs(60);

/// A thread that watches.
#[derive(Debug)]
pub struct Watch {
    ends: Arc<AtomicBool>,
    /// Whether another process continues: then the DHCP server runs on.
    leaves: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Watches a site from now on. Signals are to be blocked before, so that this thread takes none.
    ///
    /// # Errors
    /// The kernel grants no thread.
    pub fn start(standing: &Standing, options: SiteOptions) -> io::Result<Self> {
        let (ends, leaves) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (standing, told, stays) = (standing.clone(), Arc::clone(&ends), Arc::clone(&leaves));
        let thread = Builder::new().name("site".into()).spawn(move || {
            let listing = standing.listing().ok();
            let dhcp = DhcpServer::of(standing.dhcp_servers());
            let mut plan = Plan {
                options,
                written: standing.configuration(),
                foreign: None,
                trouble: None,
                uplink: None,
                had_address: false,
                lost: None,
                pending: None,
                dhcp,
            };
            Table { standing, listing }.keep(&mut plan, &told);
            if !stays.load(Ordering::Relaxed) {
                plan.dhcp.end();
            }
        })?;
        Ok(Self { ends, leaves, thread })
    }

    /// Ends it. `continues`: another process has the site, and its DHCP server, from now on.
    pub fn end(self, continues: bool) {
        self.leaves.store(continues, Ordering::Relaxed);
        self.ends.store(true, Ordering::Relaxed);
        // One that panicked has ended as well.
        let _ = self.thread.join();
    }
}

/// The plan, which follows the host.
struct Plan {
    options: SiteOptions,
    /// The configuration as this process knows it.
    written: Option<String>,
    /// Since when the file has another one.
    foreign: Option<Instant>,
    /// What is missing, so that it is logged once.
    trouble: Option<String>,
    /// Why the site has no uplink, so that it is logged once.
    uplink: Option<String>,
    /// Whether the interface to the provider had an IPv4 address.
    had_address: bool,
    /// Since when it has none.
    lost: Option<Instant>,
    /// The table could not be made, and whether the configuration had changed as well: it is tried again.
    pending: Option<bool>,
    dhcp: DhcpServer,
}

impl Plan {
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

    /// The configuration in the file. What another process wrote is left alone for a while: it is taking over.
    fn before(&mut self, standing: &Standing) -> Option<String> {
        let now = standing.configuration()?;
        if self.written.as_ref() == Some(&now) {
            self.foreign = None;
        } else if self.foreign.get_or_insert_with(Instant::now).elapsed() < TAKEOVER {
            return None;
        }
        Some(now)
    }

    /// Derives the configuration again; the process reloads another one. Whether it is another one.
    fn follow(&mut self, standing: &Standing) -> bool {
        let Some(before) = self.before(standing) else { return false };
        let facts = standing.facts(true);
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
        if let (true, Err(faults)) = (changed, site.check(&standing.configuration_file())) {
            return self.stays(faults.replace('\n', "; "));
        }
        if self.trouble.take().is_some() {
            tracing::info!("nothing is missing for the site any more");
        }
        // The interface by which the IPv6 Internet comes is not part of the configuration.
        if !changed && self.pending.is_none() && !standing.filters_otherwise(&site) {
            return false;
        }
        let changed = changed || self.pending == Some(true);
        self.pending = None;
        match standing.raise(&site) {
            Ok(()) if !changed => {
                tracing::info!("the packet filter: strangers come by {}", site.outside.join(", "))
            }
            Ok(()) => {
                self.written = standing.configuration();
                // It reads its configuration at its start alone.
                self.dhcp.end();
                tracing::info!(
                    "addresses, prefixes or routes of this host changed: the site's configuration is reloaded"
                );
                // What is pending is read by the gateway.
                let _ = kill(Pid::this(), Signal::SIGHUP);
            }
            Err(error) => {
                tracing::error!("the site cannot follow this host: {error}");
                self.pending = Some(changed);
                self.written = standing.configuration();
                return false;
            }
        }
        true
    }
}

impl Plan {
    /// Says once that the uplink is lost, and that it is back.
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

    /// Says why, once.
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

struct Table {
    standing: Standing,
    listing: Option<String>,
}

impl Table {
    fn keep(&mut self, plan: &mut Plan, ends: &AtomicBool) {
        let mut events = RuleEvents::open().ok();
        let (mut look_at, mut follow_at) = (Instant::now(), Instant::now() + FOLLOW);
        plan.dhcp.keep();
        while !ends.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= follow_at {
                plan.dhcp.keep();
                follow_at = now + FOLLOW;
                if plan.follow(&self.standing) {
                    plan.dhcp.keep();
                    self.listing = self.standing.listing().ok();
                }
            }
            let changed = events.as_mut().is_some_and(RuleEvents::read);
            if changed || now >= look_at {
                look_at = now + LOOK;
                if self.restore() {
                    std::thread::sleep(PAUSE);
                }
            }
            std::thread::sleep(STEP);
        }
    }

    /// Whether it was made again.
    fn restore(&mut self) -> bool {
        // Without commands there is to be none.
        let Some(script) = self.standing.script() else { return false };
        match self.standing.listing() {
            Ok(listed) if self.listing.as_ref() == Some(&listed) => return false,
            Ok(_) | Err(NftError::Refused(_)) => {}
            // It is not known.
            Err(NftError::Missing | NftError::Io(_)) => return false,
        }
        match nft::execute(&script) {
            Ok(()) => {
                tracing::warn!(
                    "the packet filter: the site's table was removed or changed, and was made again"
                );
                self.listing = self.standing.listing().ok();
            }
            Err(error) => {
                tracing::error!("the packet filter: the site's table is missing and cannot be made: {error}");
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{facts, options};
    use super::*;

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
