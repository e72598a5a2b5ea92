//! The gateway's table in the host's packet filter, updated when addresses change; and warnings about conflicting rules.

use super::error::RunError;
use crate::config::{Config, FastPathMode, Steering, Surroundings, Untracked};
use crate::host::notrack::{listing, table_name};
use crate::host::{Host, NftError, Watched, masquerades, obstacles};
use std::time::{Duration, Instant};

/// The table as it was made.
#[derive(Debug, Default)]
pub(super) struct PacketFilter {
    /// Its content; `None`: no table.
    made: Option<Untracked>,
    /// The last failure, so that it is logged once.
    trouble: Option<String>,
    /// Whether it had the part that protects a Teredo client.
    trouble_is_clients: bool,
    /// The other rules were examined.
    looked: bool,
    /// The table as nft lists it; `None`: nft failed.
    listing: Option<String>,
    /// When making it failed.
    failed: Option<Instant>,
    /// Another program repeatedly removes or changes it.
    is_lost: bool,
    /// Another program may have removed or changed it, and nft could not list it.
    is_unknown: bool,
}

/// Then it is tried again.
const RETRY: Duration = Duration::from_secs(10);

impl PacketFilter {
    /// Creates, changes or removes the table as needed. A failure is logged, and the next call retries.
    pub(super) fn keep(&mut self, config: &Config, now: &Surroundings, device: &str, host: &mut Host) {
        let fast_path = config.fast_path.as_ref();
        let offloads = fast_path.is_some_and(|it| it.mode != FastPathMode::Off && it.notrack);
        let wanted = config.untracked(offloads, now);
        if self.made == wanted && wanted.is_some() {
            self.failed = None;
            return;
        }
        match host.untrack(device, wanted.as_ref()) {
            Ok(()) => {
                (self.failed, self.is_lost) = (None, false);
                self.forget_trouble(wanted.as_ref());
                self.listing = wanted.as_ref().and_then(|_| listing(&config.gateway.name).ok());
                self.made = wanted;
            }
            Err(error) => {
                self.failed = Some(Instant::now());
                self.tell(error.to_string(), wanted.as_ref());
            }
        }
        if self.made.as_ref().is_some_and(|made| made.is_any) && !std::mem::replace(&mut self.looked, true) {
            look(config, device);
        }
    }

    /// Whether this host's connection tracking leaves alone what the fast path may forward.
    pub(super) fn excludes_fast_path(&self, config: &Config) -> bool {
        let is_wanted = config.fast_path.as_ref().is_some_and(|it| it.notrack);
        let is_made = self.made.as_ref().is_some_and(|made| made.is_any);
        is_wanted && is_made && self.failed.is_none() && !self.is_lost && !self.is_unknown
    }

    /// Whether a Teredo client would have an address that the filter does not protect as it should.
    pub(super) fn leaves_client_open(&self, config: &Config) -> bool {
        (self.failed.is_some() || self.is_lost) && config.others.teredo_client.iter().any(|it| it.firewall)
    }

    /// Makes a table again that could not be made.
    pub(super) fn retry(&mut self, config: &Config, now: &Surroundings, device: &str, host: &mut Host) {
        if self.failed.is_some_and(|at| at.elapsed() >= RETRY) {
            self.keep(config, now, device, host);
        }
    }

    /// Another program may have removed or changed the table: checks it, and makes it again.
    pub(super) fn restore(&mut self, config: &Config, now: &Surroundings, device: &str, host: &mut Host) {
        if self.made.is_none() {
            return;
        }
        let what = format!("table inet {}", table_name(&config.gateway.name));
        let is_intact = match listing(&config.gateway.name) {
            Ok(listed) => self.listing.as_ref().is_none_or(|listing| *listing == listed),
            Err(NftError::Refused(_)) => false,
            Err(NftError::Missing | NftError::Io(_)) => {
                self.is_unknown = true;
                return;
            }
        };
        self.is_unknown = false;
        if is_intact {
            self.is_lost = false;
            host.intact(&what);
            return;
        }
        let may = host.may_restore(Watched::PacketFilter, &what, "it was removed or changed", Instant::now());
        self.is_lost = !may;
        if may {
            self.made = None;
            self.keep(config, now, device, host);
        }
    }

    /// A table that had failed was created. A table without the client's part does not count for the client, whose table is retried.
    fn forget_trouble(&mut self, made: Option<&Untracked>) {
        if !self.trouble_is_clients || made.is_some_and(|made| made.guards_client) {
            (self.trouble, self.trouble_is_clients) = (None, false);
        }
    }

    fn tell(&mut self, what: String, wanted: Option<&Untracked>) {
        self.trouble_is_clients |= wanted.is_some_and(|wanted| wanted.guards_client);
        if self.trouble.as_ref() != Some(&what) {
            if wanted.is_none_or(|wanted| wanted.is_any) {
                let then = "connection tracking sees only some packets of a flow, and a stateful firewall may drop them";
                tracing::warn!("{what}: the nftables table is missing: {then}");
            }
            if wanted.is_some_and(|wanted| wanted.guards_client) {
                let then = "the Teredo client is off until it can be made; firewall = false if this host has rules of its own";
                tracing::warn!("{what}: the nftables table is missing: {then}");
            }
            if wanted.is_some_and(|wanted| !wanted.reverse_path.is_empty()) {
                let then = "nat64.reverse_path has no effect, and sources may be forged";
                tracing::warn!("{what}: the nftables table is missing: {then}");
            }
        }
        self.trouble = Some(what);
    }
}

/// Refuses rules by which the host's own connections would get ports of a shared pool.
///
/// # Errors
/// Such a rule, and the one to write instead.
pub(super) fn check_masquerading(config: &Config, now: &Surroundings) -> Result<(), RunError> {
    let shared = config.shared_ports();
    let ports: Vec<_> = shared.iter().flat_map(|(_, ports)| ports.ranges().iter().cloned()).collect();
    if ports.is_empty() {
        return Ok(());
    }
    let interfaces: Vec<&str> = shared.iter().filter_map(|(address, _)| now.holder(*address)).collect();
    match masquerades(&ports, &interfaces) {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => {
            let all = found.iter().map(|one| {
                format!(
                    "{} masquerades connections to ports of a shared pool, and the gateway would receive their answers; limit its ports: {}",
                    one.chain, one.cure
                )
            });
            Err(RunError::Tunnels(all.collect::<Vec<_>>().join("\n")))
        }
        Err(error) => {
            tracing::info!("the packet filter's rules were not checked for masquerading: {error}");
            Ok(())
        }
    }
}

/// Warns about chains that drop untracked packets. Next to a NAT64 the rules are tested instead.
fn look(config: &Config, device: &str) {
    if !config.nat64.is_empty() {
        return;
    }
    let by_raw_sockets = config.has_tunnels() && config.tunnels.steering == Steering::Off;
    match obstacles(device, by_raw_sockets) {
        Ok(found) => found.iter().for_each(|one| {
            tracing::warn!(
                "the packet filter's chain {} {}; add this rule: {}",
                one.chain,
                one.why,
                one.cure
            );
        }),
        Err(error) => tracing::info!("the packet filter's rules were not checked for conflicts: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_tracking_leaves_the_fast_path_alone_while_the_table_is_there() {
        let config = |keys: &str| {
            let text = format!("[siit]\nprefix = \"2001:db8:64::/96\"\n[fastpath]\n{keys}\n");
            let missing = &mut |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
            Config::parse("f", &text, &Default::default(), missing).unwrap().0
        };
        let made = || {
            let table = Untracked { is_any: true, ..Untracked::default() };
            PacketFilter { made: Some(table), ..PacketFilter::default() }
        };
        let for_a_client = Untracked { guards_client: true, ..Untracked::default() };
        assert!(!PacketFilter { made: Some(for_a_client), ..made() }.excludes_fast_path(&config("")));
        assert!(made().excludes_fast_path(&config("")));
        assert!(!made().excludes_fast_path(&config("notrack = false")));
        assert!(!PacketFilter::default().excludes_fast_path(&config("")), "it was never made");
        assert!(!PacketFilter { is_unknown: true, ..made() }.excludes_fast_path(&config("")));
        assert!(!PacketFilter { is_lost: true, ..made() }.excludes_fast_path(&config("")));
        assert!(!PacketFilter { failed: Some(Instant::now()), ..made() }.excludes_fast_path(&config("")));
    }

    /// Without nft, the client's table fails every ten seconds, and the gateway runs without the client.
    #[test]
    fn a_table_that_fails_again_and_again_is_logged_once_until_it_is_made() {
        let with = Untracked { guards_client: true, ..Untracked::default() };
        let without = Untracked::default();
        let mut filter = PacketFilter::default();
        for _ in 0..3 {
            filter.tell("no nft".into(), Some(&with));
            assert!(filter.trouble.is_some());
            for made in [None, Some(&without)] {
                filter.forget_trouble(made);
                assert!(filter.trouble.is_some(), "the same failure is not told again");
            }
        }
        filter.forget_trouble(Some(&with));
        assert_eq!(filter.trouble, None);
        filter.tell("no nft".into(), Some(&without));
        filter.forget_trouble(None);
        assert_eq!(filter.trouble, None);
    }
}
