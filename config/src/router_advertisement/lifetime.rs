//! Lifetimes of advertised values.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::fault::{Place, Report};
use crate::text;
use crate::value::Value;
use crate::word::words;

words! {
    /// A router's or route's preference (RFC 4191 §2.1).
    RouterPreference {
        /// Below others.
        Low = "low",
        /// As others.
        Medium = "medium",
        /// Above others.
        High = "high",
    }
}

/// The duration of an advertised value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// For ever.
    Infinite,
    /// For this duration.
    For(Duration),
}

impl Serialize for Lifetime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Infinite => serializer.serialize_str("infinite"),
            Self::For(time) => text::as_duration(time, serializer),
        }
    }
}

impl Lifetime {
    pub(crate) fn of(read: Option<Duration>) -> Self {
        read.map_or(Self::Infinite, Self::For)
    }

    pub(crate) fn is_less_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::For(one), Self::For(two)) => one < two,
            (Self::For(_), Self::Infinite) => true,
            (Self::Infinite, Self::For(_) | Self::Infinite) => false,
        }
    }
}

pub(crate) fn read_lifetime(
    value: Option<Value>,
    default: Option<Duration>,
    three: Option<Duration>,
    report: &mut Report,
) -> Option<Lifetime> {
    match value {
        None => default.map(Lifetime::For),
        Some(v) => {
            let lifetime = Lifetime::of(v.duration_or(report)?);
            warn_of_short(lifetime, three, &v.place, report);
            Some(lifetime)
        }
    }
}

/// Two advertisements may be lost before a value expires. Zero is deliberate.
pub(crate) fn warn_of_short(lifetime: Lifetime, three: Option<Duration>, place: &Place, report: &mut Report) {
    let Some(three) = three else { return };
    if lifetime != Lifetime::For(Duration::ZERO) && lifetime.is_less_than(Lifetime::For(three)) {
        let what = "it expires when two advertisements are lost";
        report
            .warn(place, format!("is less than three times max_interval, {}: {what}", text::duration(three)));
    }
}
