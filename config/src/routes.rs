//! The routes into the device that the mechanisms need, as plain data: the daemon sets them and removes them.

use std::fmt;

use serde::ser::{Serialize, SerializeSeq as _, Serializer};
use sixway_wire::{Prefix4, Prefix6};
use toml::de::DeValue;

use super::fault::Report;
use super::value::{Held, Value, parse_prefix4, parse_prefix6};

/// A destination that is routed into the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// IPv4 packets to these addresses.
    V4(Prefix4),
    /// IPv6 packets to these addresses.
    V6(Prefix6),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

/// `tun.routes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChoice {
    /// Whether the routes that the mechanisms need are set.
    pub auto: bool,
    /// Further routes.
    pub further: Vec<Route>,
}

impl RouteChoice {
    pub(super) fn read(value: Value, report: &mut Report) -> Option<Self> {
        let none = matches!(&value.held, Held::Written(DeValue::String(text)) if text == "none");
        if none {
            return Some(Self { auto: false, further: Vec::new() });
        }
        let (mut choice, mut whole) = (Self { auto: false, further: Vec::new() }, true);
        for item in value.items() {
            let Some(text) = item.text(report) else {
                whole = false;
                continue;
            };
            let route = match &*text {
                "auto" => {
                    choice.auto = true;
                    continue;
                }
                prefix if prefix.contains(':') => parse_prefix6(prefix).map(Route::V6),
                prefix if prefix.contains('.') => parse_prefix4(prefix).map(Route::V4),
                _ => Err("is no route; write \"auto\", \"none\" or prefixes".into()),
            };
            match route {
                Ok(route) => choice.further.push(route),
                Err(what) => {
                    report.fault(&item.place, format!("\"{text}\" {what}"));
                    whole = false;
                }
            }
        }
        whole.then_some(choice)
    }
}

impl Serialize for RouteChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.further.is_empty() {
            return serializer.serialize_str(if self.auto { "auto" } else { "none" });
        }
        let mut list = serializer.serialize_seq(None)?;
        if self.auto {
            list.serialize_element("auto")?;
        }
        for route in &self.further {
            list.serialize_element(&format_args!("{route}"))?;
        }
        list.end()
    }
}

/// A prefix that can be joined with its neighbour.
pub(super) trait Join: Copy + Ord {
    /// Whether all of `other` lies in it.
    fn holds(self, other: Self) -> bool;
    /// The prefix one bit shorter, if `self` and `other` are its two halves, in this order.
    fn join(self, other: Self) -> Option<Self>;
}

macro_rules! join {
    ($prefix:ty) => {
        impl Join for $prefix {
            fn holds(self, other: Self) -> bool {
                self.length() <= other.length() && self.overlaps(other)
            }
            fn join(self, other: Self) -> Option<Self> {
                let whole = Self::holding(self.address(), self.length().checked_sub(1)?);
                let halves = self.length() == other.length() && self != other && whole.holds(other);
                halves.then_some(whole)
            }
        }
    };
}
join!(Prefix4);
join!(Prefix6);

/// The fewest prefixes that hold exactly the same addresses, ascending.
pub(super) fn aggregated<P: Join>(mut prefixes: Vec<P>) -> Vec<P> {
    prefixes.sort_unstable();
    let mut joined: Vec<P> = Vec::new();
    for mut prefix in prefixes {
        if joined.last().is_some_and(|last| last.holds(prefix)) {
            continue;
        }
        while let Some(whole) = joined.last().and_then(|last| last.join(prefix)) {
            joined.pop();
            prefix = whole;
        }
        joined.push(prefix);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix4> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn neighbours_are_joined_and_what_lies_within_another_is_left_out() {
        let some = prefixes(&[
            "192.0.2.3",
            "192.0.2.0/31",
            "192.0.2.2",
            "192.0.2.1",
            "198.51.100.4/30",
            "192.0.2.4/30",
        ]);
        assert_eq!(aggregated(some), prefixes(&["192.0.2.0/29", "198.51.100.4/30"]));
    }

    #[test]
    fn prefixes_that_are_no_two_halves_stay_apart() {
        let some = prefixes(&["192.0.2.1", "192.0.2.2", "192.0.2.4/31"]);
        assert_eq!(aggregated(some.clone()), some);
        assert_eq!(aggregated(prefixes(&["0.0.0.0/1", "128.0.0.0/1"])), prefixes(&["0.0.0.0/0"]));
    }
}
