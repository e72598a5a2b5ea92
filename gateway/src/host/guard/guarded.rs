//! Compares the host with what the gateway configured, and restores the difference.

use super::events::{Events, Own, Suspects};
use super::restored::{Restored, Watched};
use super::restraint::{Reaction, Restraint};
use super::tc_filters::TcFilters;
use crate::config::Ports;
use crate::host::forwarding::Setting;
use crate::host::inherited::Inherited;
use crate::host::kernel::{self, Refusal, Route6};
use crate::host::notrack::table_name;
use crate::host::reach::AppliedReach;
use crate::host::record::Record;
use crate::host::reserved_ports;
use crate::host::route::{message4, restore4};
use crate::host::setting_name::setting_name;
use sixway_link::interface;
use sixway_wire::{Prefix4, Prefix6};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Routes are compared at least this often, even if the kernel reported no change.
const ROUTES: Duration = Duration::from_secs(30);

/// RFC 8200 §5.
const MIN_IPV6_MTU: u32 = 1_280;

/// The gateway's configuration of the host.
pub(in crate::host) struct HostParts<'h> {
    /// The device's name.
    pub name: &'h str,
    /// Its index.
    pub device: u32,
    /// Its MTU in octets.
    pub mtu: u32,
    /// The device's own settings.
    pub settings: &'h [Setting],
    /// IPv4 routes into it.
    pub routes4: &'h [Prefix4],
    /// The metric of a default route of IPv4.
    pub last_resort: Option<u32>,
    /// IPv6 routes into it, except those of tunnels.
    pub routes6: &'h [Prefix6],
    /// Ports that this host's own connections leave alone.
    pub reserved_ports: &'h [Ports],
    /// What tunnels and prefix translators need.
    pub reached: &'h mut AppliedReach,
    /// The host's settings, among others.
    pub record: &'h Record,
    /// Filters at tc.
    pub filters: &'h TcFilters,
}

/// What may have been changed that others look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspicion {
    /// The gateway's table in the packet filter.
    pub packet_filter: bool,
    /// Steering at tc ingress.
    pub steering: bool,
    /// Rules of others in the packet filter.
    pub ruleset: bool,
    /// Default routes of others.
    pub way_out: bool,
    /// Rules and routes.
    pub routing: bool,
}

/// Watches the host.
#[derive(Debug)]
pub(in crate::host) struct Guard {
    /// `None`: the kernel tells nothing, and routes are compared every [`ROUTES`].
    events: Option<Events>,
    restraint: Restraint,
    restored: Restored,
    compared: Instant,
    suspicious: bool,
    /// Prefixes for which another program has a route in place of the gateway's.
    replaced: BTreeSet<String>,
}

impl Guard {
    /// From now on.
    pub fn start(now: Instant) -> Self {
        let events = Events::open();
        if let Err(error) = &events {
            tracing::info!("changes of routes are found only every {} s: {error}", ROUTES.as_secs());
        }
        Self {
            events: events.ok(),
            restraint: Restraint::default(),
            restored: Restored::default(),
            compared: now,
            suspicious: false,
            replaced: BTreeSet::new(),
        }
    }

    /// What was restored since the start.
    pub fn restored(&self) -> &Restored {
        &self.restored
    }

    /// The gateway changed its table in the packet filter itself.
    pub fn ignore_packet_filter(&mut self) {
        if let Some(events) = &mut self.events {
            events.ignore_packet_filter();
        }
    }

    /// The gateway changed its filters at tc itself. Routes are compared the next time, since others may have changed them too.
    pub fn ignore_filters(&mut self) {
        if let Some(events) = &mut self.events {
            events.ignore_routes();
            self.suspicious = true;
        }
    }

    /// Restores what others changed. Whether the packet filter's table and steering may have been removed: they are restored by
    /// those who made them, by [`Self::may_restore`].
    pub fn inspect(&mut self, host: &mut HostParts<'_>, now: Instant) -> Suspicion {
        let table = table_name(host.record.name());
        let protocol = host.record.route_mark().number();
        let own = Own { device: host.device, protocol, table: &table, filters: host.filters };
        let suspects = self.events.as_mut().map_or_else(Suspects::default, |events| events.read(own));
        let what = format!("{}: renamed or removed", host.name);
        // An error, such as that no file descriptor is left, tells nothing.
        let is_there = interface::find(host.name).map_or(true, |index| index == Some(host.device));
        if is_there {
            self.restored.left_alone.remove(&what);
        } else {
            if self.restored.left_alone.insert(what.clone()) {
                tracing::error!("{what} by another program; restart the gateway");
            }
            return Suspicion::default();
        }
        let link = self.link((host.name, host.mtu), now);
        // The kernel flushes IPv6 routes where IPv6 is disabled, and may not tell.
        let ipv6 = self.sysctls(host, now);
        let due = now.duration_since(self.compared) >= ROUTES;
        let routing = link || ipv6 || suspects.routing || std::mem::take(&mut self.suspicious) || due;
        if routing {
            self.compared = now;
            self.routing(host, now);
        }
        Suspicion {
            packet_filter: suspects.packet_filter || due,
            steering: (suspects.steering || due) && !host.filters.interfaces.is_empty(),
            ruleset: suspects.ruleset,
            way_out: suspects.way_out,
            routing,
        }
    }

    /// Whether something that was found changed is to be restored; reports that, and counts it.
    pub fn may_restore(&mut self, watched: Watched, what: &str, detail: &dyn Display, now: Instant) -> bool {
        let may = self.may_try(what, detail, now);
        if may {
            self.note_restored(watched, what, detail);
        }
        may
    }

    fn note_restored(&mut self, watched: Watched, what: &str, detail: &dyn Display) {
        tracing::warn!("{what}: changed by another program, restored: {detail}");
        *self.restored.times.entry(watched).or_default() += 1;
    }

    /// Whether something that was found changed is to be restored; reports it if not.
    fn may_try(&mut self, what: &str, detail: &dyn Display, now: Instant) -> bool {
        match self.restraint.changed(what, now) {
            Reaction::Restore => {
                self.restored.left_alone.remove(what);
                return true;
            }
            Reaction::GiveUp => {
                tracing::error!(
                    "{what}: changed three times within a minute by another program, not restored for ten minutes: {detail}"
                );
                self.restored.left_alone.insert(what.to_owned());
            }
            Reaction::Leave => {}
        }
        false
    }

    /// It is as it should be.
    pub fn intact(&mut self, what: &str) {
        if self.restraint.intact(what) {
            tracing::info!("{what}: as configured again");
        }
        self.restored.left_alone.remove(what);
    }

    /// Whether a device was restored from a state in which the kernel removes its routes.
    pub fn link(&mut self, (name, wanted): (&str, u32), now: Instant) -> bool {
        let (up, mtu) = (interface::is_up(name).unwrap_or(true), interface::mtu(name).unwrap_or(wanted));
        if up && mtu == wanted {
            self.intact(name);
            return false;
        }
        let detail = if up { format!("MTU {mtu}, not {wanted}") } else { "it was down".to_owned() };
        if !self.may_restore(Watched::Device, name, &detail, now) {
            return false;
        }
        let restored = interface::set_mtu(name, wanted).and_then(|()| interface::set_up(name, true));
        if let Err(error) = restored {
            tracing::error!("{error}");
        }
        // The kernel removes the IPv6 routes of a device with a smaller MTU.
        !up || mtu < MIN_IPV6_MTU
    }

    /// Whether one was restored on which the device's IPv6 depends.
    fn sysctls(&mut self, host: &HostParts<'_>, now: Instant) -> bool {
        let mut ipv6 = false;
        let of_host = host.record.settings();
        for (path, wanted) in host.settings.iter().map(|(path, value)| (&**path, &**value)).chain(of_host) {
            // An interface may be gone.
            let Ok(value) = std::fs::read_to_string(path) else { continue };
            let (what, value) = (setting_name(path), value.trim_end());
            let wanted = match reserved_ports::is_it(path) {
                // Reservations of other programs are not changed.
                true => reserved_ports::with(value, host.reserved_ports),
                false => (value != wanted).then(|| wanted.to_owned()),
            };
            let Some(wanted) = wanted else {
                self.intact(&what);
                continue;
            };
            if !self.may_restore(Watched::Sysctl, &what, &format!("{value}, not {wanted}"), now) {
                continue;
            }
            match std::fs::write(path, wanted) {
                Ok(()) => ipv6 |= path.components().any(|part| part.as_os_str() == "ipv6"),
                Err(error) => tracing::error!("{what}: {error}"),
            }
        }
        ipv6
    }

    /// Whether another program's route is known to be in this one's place; it is added when that is gone.
    fn is_replaced(&mut self, prefix: &dyn Display, add: impl FnOnce() -> Result<(), Refusal>) -> bool {
        let prefix = prefix.to_string();
        if !self.replaced.contains(&prefix) {
            return false;
        }
        if add().is_ok() {
            tracing::info!("the gateway's route to {prefix} is back: the other program's is gone");
            self.replaced.remove(&prefix);
        }
        true
    }

    /// The outcome of a route that was to be restored.
    fn settle(&mut self, prefix: String, outcome: Result<(), Refusal>, restored: &mut Vec<String>) {
        let Err(error) = outcome else { return };
        restored.retain(|one| *one != prefix);
        match error {
            Refusal::Exists => {
                tracing::error!(
                    "another program's route to {prefix} has taken the place of the gateway's: remove it, or take {prefix} out of tun.routes"
                );
                self.replaced.insert(prefix);
            }
            error => tracing::error!("route to {prefix}: {error}"),
        }
    }

    fn routing(&mut self, host: &mut HostParts<'_>, now: Instant) {
        let there = match Inherited::now(host.device, host.record) {
            Ok(there) => there,
            Err(error) => {
                tracing::error!("{error}");
                return;
            }
        };
        let (mark, last_resort) = (host.record.route_mark(), host.last_resort);
        let metric = |prefix: Prefix4| last_resort.filter(|_| prefix.length() == 0);
        let there4: HashSet<Prefix4> = there.routes4.iter().copied().collect();
        let mut lost4: Vec<Prefix4> =
            host.routes4.iter().filter(|prefix| !there4.contains(prefix)).copied().collect();
        let there6: HashSet<Prefix6> = there.reach.routes.iter().map(|route| route.prefix).collect();
        let mut lost6: Vec<Prefix6> =
            host.routes6.iter().filter(|prefix| !there6.contains(prefix)).copied().collect();
        let all: BTreeSet<String> =
            lost4.iter().map(ToString::to_string).chain(lost6.iter().map(ToString::to_string)).collect();
        self.replaced.retain(|prefix| all.contains(prefix));
        if !self.replaced.is_empty() {
            let device = host.device;
            lost4.retain(|prefix| {
                !self.is_replaced(prefix, || restore4(*prefix, device, mark, metric(*prefix)))
            });
            lost6
                .retain(|prefix| !self.is_replaced(prefix, || Route6::Into(*prefix, device, None).add(mark)));
        }
        let lost = host.reached.missing(&there.reach);
        let routes: Vec<String> = (lost4.iter().map(ToString::to_string))
            .chain(lost6.iter().map(ToString::to_string))
            .chain(lost.routes.iter().map(|route| route.prefix.to_string()))
            .chain(lost.unreachable.iter().map(|prefix| format!("unreachable {prefix}")))
            .chain(lost.blackholes.iter().map(|prefix| format!("blackhole {prefix}")))
            .collect();
        let what = format!("routes into {}", host.name);
        if routes.is_empty() {
            self.intact(&what);
        } else if self.may_try(&what, &listed(&routes), now) {
            let mut restored = routes;
            let device = host.device;
            let (names, messages): (Vec<String>, Vec<_>) = lost4
                .into_iter()
                .map(|prefix| (prefix.to_string(), message4(prefix, device, mark, metric(prefix))))
                .chain(
                    lost6
                        .into_iter()
                        .map(|prefix| (prefix.to_string(), Route6::Into(prefix, device, None).message(mark))),
                )
                .unzip();
            for (name, outcome) in names.into_iter().zip(kernel::add_routes(messages)) {
                self.settle(name, outcome, &mut restored);
            }
            host.reached.forget_routes(&lost);
            if !restored.is_empty() {
                self.note_restored(Watched::Route, &what, &listed(&restored));
            }
        }
        let addresses: Vec<String> = lost.addresses.iter().map(ToString::to_string).collect();
        let what = format!("addresses of {}", host.name);
        if addresses.is_empty() {
            self.intact(&what);
        } else if self.may_restore(Watched::Address, &what, &listed(&addresses), now) {
            host.reached.forget_addresses(&lost);
        }
        let proxies: Vec<String> = lost.proxies.iter().map(|proxy| proxy.address.to_string()).collect();
        let what = "proxy neighbour entries";
        if proxies.is_empty() {
            self.intact(what);
        } else if self.may_restore(Watched::Address, what, &listed(&proxies), now) {
            host.reached.forget_proxies(&lost);
        }
        let rules: Vec<String> = lost.rules.iter().map(|rule| rule.from.to_string()).collect();
        if rules.is_empty() {
            self.intact("rules by source");
        } else if self.may_restore(Watched::Rule, "rules by source", &listed(&rules), now) {
            host.reached.forget_rules(&lost);
        }
    }
}

/// The first of many.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
