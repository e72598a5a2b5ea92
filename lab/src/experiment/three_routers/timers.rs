//! How often the control plane of an idle mechanism sends.

use std::time::Duration;

/// The timers of a mechanism's ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// The defaults.
    #[default]
    Usual,
    /// The shortest that Sixway accepts, so that a short measurement has messages.
    Short,
}

/// The longest time between two messages of an idle end. The shortest time is the same share of it with all timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// With the default timers.
    pub usual: Duration,
    /// With short timers.
    pub short: Duration,
}

/// ISATAP: the lifetime of a router, of which half to three fifths pass until the next solicitation.
const LIFETIME: [Duration; 2] = [Duration::from_secs(1_800), Duration::from_secs(8)];
/// 4over6: the time of a lease, which is renewed after half of it (RFC 2131 §4.4.5).
const LEASE: [Duration; 2] = [Duration::from_secs(3_600), Duration::from_secs(60)];
/// Teredo: the refresh interval, of which three quarters to all pass (RFC 4380 §5.2).
const REFRESH: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(5)];

impl Timers {
    const fn short(self, of: [Duration; 2]) -> Option<Duration> {
        match self {
            Self::Usual => None,
            Self::Short => Some(of[1]),
        }
    }

    /// The lifetime of a router that ISATAP hosts are given, if it is not the default.
    pub const fn lifetime(self) -> Option<Duration> {
        self.short(LIFETIME)
    }

    /// The time of leases, if it is not the default.
    pub const fn lease(self) -> Option<Duration> {
        self.short(LEASE)
    }

    /// The refresh interval of a Teredo client, if it is not the default.
    pub const fn refresh(self) -> Option<Duration> {
        self.short(REFRESH)
    }
}

impl Interval {
    fn of(times: [Duration; 2], share: f64) -> Self {
        let [usual, short] = times.map(|time| time.mul_f64(share));
        Self { usual, short }
    }

    /// That of solicitations of an ISATAP host.
    pub fn of_solicitations() -> Self {
        Self::of(LIFETIME, 0.6)
    }

    /// That of renewals of a lease.
    pub fn of_leases() -> Self {
        Self::of(LEASE, 0.5)
    }

    /// That of a Teredo client.
    pub fn of_refreshes() -> Self {
        Self::of(REFRESH, 1.0)
    }
}
