//! Inconsistent advertisements of other routers on the link (RFC 4861 §6.2.7, RFC 8781 §5.2): hosts would switch with every advertisement.

use super::prefixes::Prefixes;
use super::settings::Settings;
use crate::neighbour_discovery::{NdOption, Pref64, PrefixInformation, RouterAdvertisement, ScaledLifetime};
use core::fmt;
use core::net::Ipv6Addr;
use core::time::Duration;
use sixway_dataplane::Instant;
use sixway_wire::Prefix6;

/// Seconds by which lifetimes may differ that count down in real time, for delays and clocks (§6.2.7).
const SKEW: u32 = 10;
/// The same inconsistency of the same router is logged once in this time.
const SILENCE: Duration = Duration::from_secs(3_600);
/// How many logged inconsistencies are remembered; further ones are not logged until some are forgotten.
const MAX_TOLD: usize = 32;

/// A parameter that another router advertises otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// Cur Hop Limit.
    HopLimit,
    /// The M flag: 1 or 0.
    Managed,
    /// The O flag: 1 or 0.
    Other,
    /// Reachable Time in milliseconds.
    ReachableTime,
    /// Retrans Timer in milliseconds.
    RetransTimer,
    /// The MTU option in octets.
    Mtu,
    /// The valid lifetime of a prefix in seconds.
    Valid(Prefix6),
    /// The preferred lifetime of a prefix in seconds.
    Preferred(Prefix6),
    /// Whether this NAT64 prefix may be used: 1 or 0 (RFC 8781 §5.2).
    Pref64(Prefix6),
}

/// Another router advertises another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The other router.
    pub router: Ipv6Addr,
    /// What it is about.
    pub parameter: Parameter,
    /// What is advertised here.
    pub ours: u32,
    /// What is advertised there.
    pub theirs: u32,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, parameter, ours, theirs } = self;
        match parameter {
            Parameter::HopLimit => write!(f, "{router} advertises hop limit {theirs}, not {ours}"),
            Parameter::Managed => write!(f, "{router} advertises M = {theirs}, not {ours}"),
            Parameter::Other => write!(f, "{router} advertises O = {theirs}, not {ours}"),
            Parameter::ReachableTime => {
                write!(f, "{router} advertises reachable time {theirs} ms, not {ours}")
            }
            Parameter::RetransTimer => write!(f, "{router} advertises retrans timer {theirs} ms, not {ours}"),
            Parameter::Mtu => write!(f, "{router} advertises an MTU of {theirs}, not {ours}"),
            Parameter::Valid(prefix) => {
                write!(f, "{router} advertises {prefix} as valid for {theirs} s, not {ours}")
            }
            Parameter::Preferred(prefix) => {
                write!(f, "{router} advertises {prefix} as preferred for {theirs} s, not {ours}")
            }
            Parameter::Pref64(prefix) if *theirs == 0 => {
                write!(f, "{router} takes NAT64 prefix {prefix} back")
            }
            Parameter::Pref64(prefix) => {
                write!(f, "{router} advertises NAT64 prefix {prefix}, which is not used here")
            }
        }
    }
}

/// Compares a valid advertisement of another router with what is advertised here. Zero in a field that may be unspecified, and options
/// that only one of the two sends, are not inconsistent.
pub(super) fn compare(
    settings: &Settings,
    prefixes: &Prefixes,
    router: Ipv6Addr,
    theirs: &RouterAdvertisement,
    now: Instant,
) -> Vec<Inconsistency> {
    let mut found = Vec::new();
    let mut differ = |parameter, ours: u32, theirs: u32, unequal: bool| {
        if unequal {
            found.push(Inconsistency { router, parameter, ours, theirs });
        }
    };
    let specified = |ours: u32, theirs: u32| ours != 0 && theirs != 0 && ours != theirs;
    let fields = [
        (Parameter::HopLimit, u32::from(settings.hop_limit), u32::from(theirs.hop_limit)),
        (Parameter::ReachableTime, settings.reachable_time, theirs.reachable_time),
        (Parameter::RetransTimer, settings.retrans_timer, theirs.retrans_timer),
    ];
    for (parameter, ours, theirs) in fields {
        differ(parameter, ours, theirs, specified(ours, theirs));
    }
    let flags = [
        (Parameter::Managed, settings.managed, theirs.managed),
        (Parameter::Other, settings.other, theirs.other),
    ];
    for (parameter, ours, theirs) in flags {
        differ(parameter, u32::from(ours), u32::from(theirs), ours != theirs);
    }
    for option in &theirs.options {
        match option {
            NdOption::Mtu(theirs) => {
                let ours = settings.mtu.map_or(0, u32::from);
                differ(Parameter::Mtu, ours, *theirs, specified(ours, *theirs));
            }
            NdOption::Prefix(theirs) => of_prefix(prefixes, theirs, now, &mut differ),
            NdOption::Pref64(theirs) => of_pref64(settings, theirs, &mut differ),
            NdOption::SourceLinkLayer(_)
            | NdOption::TargetLinkLayer(_)
            | NdOption::Route(_)
            | NdOption::Rdnss { .. }
            | NdOption::Dnssl { .. }
            | NdOption::CaptivePortal(_) => {}
        }
    }
    found
}

fn of_prefix(
    prefixes: &Prefixes,
    theirs: &PrefixInformation,
    now: Instant,
    differ: &mut impl FnMut(Parameter, u32, u32, bool),
) {
    let Some(entry) = prefixes.live().find(|entry| entry.prefix == theirs.prefix) else { return };
    let skew = if entry.ends.is_some() { SKEW } else { 0 };
    let (valid, preferred) = entry.lifetimes(now);
    let prefix = entry.prefix;
    differ(Parameter::Valid(prefix), valid, theirs.valid, valid.abs_diff(theirs.valid) > skew);
    differ(
        Parameter::Preferred(prefix),
        preferred,
        theirs.preferred,
        preferred.abs_diff(theirs.preferred) > skew,
    );
}

/// A NAT64 prefix that one router advertises and the other withdraws; or, where both advertise some, one that is not advertised here.
fn of_pref64(settings: &Settings, theirs: &Pref64, differ: &mut impl FnMut(Parameter, u32, u32, bool)) {
    let own = settings.pref64.iter().find(|entry| entry.prefix == theirs.prefix());
    let given = |lifetime: u32| u32::from(lifetime > 0);
    let theirs_given = given(theirs.lifetime.as_secs());
    let unequal = match own {
        Some(own) => given(own.lifetime.unwrap_or(1)) != theirs_given,
        None => !settings.pref64.is_empty() && theirs.lifetime != ScaledLifetime::ZERO,
    };
    differ(Parameter::Pref64(theirs.prefix()), 1 - theirs_given, theirs_given, unequal);
}

/// Inconsistencies logged lately, so that a router that advertises every few seconds does not fill the log.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportLimit(Vec<(Ipv6Addr, Parameter, Instant)>);

impl ReportLimit {
    /// Those that have not been logged within the hour.
    pub(super) fn untold(&mut self, found: Vec<Inconsistency>, now: Instant) -> Vec<Inconsistency> {
        self.0.retain(|(_, _, at)| now.since(*at) < SILENCE);
        let mut untold = found;
        untold.retain(|fault| {
            let known =
                self.0.iter().any(|(router, what, _)| (*router, *what) == (fault.router, fault.parameter));
            let tell = !known && self.0.len() < MAX_TOLD;
            if tell {
                self.0.push((fault.router, fault.parameter, now));
            }
            tell
        });
        untold
    }
}
