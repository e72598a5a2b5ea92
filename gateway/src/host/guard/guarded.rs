//! Compares the host with what the gateway configured, and restores the difference.

use super::events::{Events, Own, Suspects};
use super::restored::{Restored, Watched};
use super::restraint::{Reaction, Restraint};
use super::tc_filters::TcFilters;
use crate::host::forwarding::Setting;
use crate::host::inherited::Inherited;
use crate::host::kernel::Route6;
use crate::host::notrack::table_name;
use crate::host::reach::AppliedReach;
use crate::host::record::Record;
use crate::host::route::restore4;
use crate::host::setting_name::setting_name;
use sixway_link::interface;
use sixway_wire::{Prefix4, Prefix6};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Routes are compared at least this often, also if the kernel told of no change.
const ROUTES: Duration = Duration::from_secs(30);

/// What the gateway configured.
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
    /// IPv6 routes into it, except those of tunnels.
    pub routes6: &'h [Prefix6],
    /// What tunnels and prefix translators need.
    pub reached: &'h mut AppliedReach,
    /// The host's settings, among others.
    pub record: &'h Record,
    /// Filters at tc.
    pub filters: &'h TcFilters,
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
    pub fn inspect(&mut self, host: &mut HostParts<'_>, now: Instant) -> (bool, bool) {
        let table = table_name(host.record.name());
        let protocol = host.record.route_mark().number();
        let own = Own { device: host.device, protocol, table: &table, filters: host.filters };
        let suspects = self.events.as_mut().map_or_else(Suspects::default, |events| events.read(own));
        if !interface::index(host.name).is_ok_and(|index| index == host.device) {
            let what = format!("{}: renamed or removed", host.name);
            if self.restored.left_alone.insert(what.clone()) {
                tracing::error!("{what} by another program; restart the gateway");
            }
            return (false, false);
        }
        let link = self.link(host, now);
        self.sysctls(host, now);
        if link
            || suspects.routing
            || std::mem::take(&mut self.suspicious)
            || now.duration_since(self.compared) >= ROUTES
        {
            self.compared = now;
            self.routing(host, now);
        }
        (suspects.packet_filter, suspects.steering)
    }

    /// Whether something that was found changed is to be restored; reports that, and counts it.
    pub fn may_restore(&mut self, watched: Watched, what: &str, detail: &dyn Display, now: Instant) -> bool {
        match self.restraint.changed(what, now) {
            Reaction::Restore => {
                tracing::warn!("{what}: changed by another program, restored: {detail}");
                *self.restored.times.entry(watched).or_default() += 1;
                return true;
            }
            Reaction::GiveUp => {
                tracing::error!(
                    "{what}: changed three times within a minute by another program, left alone for ten minutes: {detail}"
                );
                self.restored.left_alone.insert(what.to_owned());
            }
            Reaction::Leave => {}
        }
        false
    }

    /// It is as it should be.
    fn intact(&mut self, what: &str) {
        if self.restraint.intact(what) {
            tracing::info!("{what}: as configured again");
        }
        self.restored.left_alone.remove(what);
    }

    /// Whether the device was taken up again.
    fn link(&mut self, host: &HostParts<'_>, now: Instant) -> bool {
        let name = host.name;
        let (up, mtu) = (interface::is_up(name).unwrap_or(true), interface::mtu(name).unwrap_or(host.mtu));
        if up && mtu == host.mtu {
            self.intact(name);
            return false;
        }
        let detail = if up { format!("MTU {mtu}, not {}", host.mtu) } else { "it was down".to_owned() };
        if !self.may_restore(Watched::Device, name, &detail, now) {
            return false;
        }
        let restored = interface::set_mtu(name, host.mtu).and_then(|()| interface::set_up(name, true));
        if let Err(error) = restored {
            tracing::error!("{error}");
        }
        !up
    }

    fn sysctls(&mut self, host: &HostParts<'_>, now: Instant) {
        let of_host = host.record.settings();
        for (path, wanted) in host.settings.iter().map(|(path, value)| (&**path, &**value)).chain(of_host) {
            // An interface may be gone.
            let Ok(value) = std::fs::read_to_string(path) else { continue };
            let (what, value) = (setting_name(path), value.trim_end());
            if value == wanted {
                self.intact(&what);
            } else if self.may_restore(Watched::Sysctl, &what, &format!("{value}, not {wanted}"), now)
                && let Err(error) = std::fs::write(path, wanted)
            {
                tracing::error!("{what}: {error}");
            }
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
        let mark = host.record.route_mark();
        let lost4: Vec<Prefix4> =
            host.routes4.iter().filter(|prefix| !there.routes4.contains(prefix)).copied().collect();
        let lost6: Vec<Prefix6> =
            host.routes6.iter().filter(|prefix| !there.has6(**prefix)).copied().collect();
        let lost = host.reached.missing(&there.reach);
        let routes: Vec<String> = (lost4.iter().map(ToString::to_string))
            .chain(lost6.iter().map(ToString::to_string))
            .chain(lost.routes.iter().map(|route| route.prefix.to_string()))
            .chain(lost.unreachable.iter().map(|prefix| format!("unreachable {prefix}")))
            .collect();
        let what = format!("routes into {}", host.name);
        if routes.is_empty() {
            self.intact(&what);
        } else if self.may_restore(Watched::Route, &what, &listed(&routes), now) {
            for prefix in lost4 {
                report(&prefix, restore4(prefix, host.device, mark));
            }
            for prefix in lost6 {
                report(&prefix, Route6::Into(prefix, host.device, None).add(mark));
            }
            host.reached.forget_routes(&lost);
        }
        let addresses: Vec<String> = lost.addresses.iter().map(ToString::to_string).collect();
        let what = format!("addresses of {}", host.name);
        if addresses.is_empty() {
            self.intact(&what);
        } else if self.may_restore(Watched::Address, &what, &listed(&addresses), now) {
            host.reached.forget_addresses(&lost);
        }
        let rules: Vec<String> = lost.rules.iter().map(|rule| rule.from.to_string()).collect();
        if rules.is_empty() {
            self.intact("rules by source");
        } else if self.may_restore(Watched::Rule, "rules by source", &listed(&rules), now) {
            host.reached.forget_rules(&lost);
        }
    }
}

fn report(prefix: &impl Display, outcome: Result<(), impl Display>) {
    if let Err(error) = outcome {
        tracing::error!("route to {prefix}: {error}");
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
