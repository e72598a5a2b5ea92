//! Values as text, in the configuration's format.

use std::fmt::Display;
use std::time::Duration;

use serde::ser::{SerializeSeq as _, Serializer};
use sixway_dataplane::translate::address::rfc6052::Rfc6052;

/// As text.
pub(crate) fn one<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// A list, each as text.
pub(crate) fn many<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(values.len()))?;
    for value in values {
        list.serialize_element(&format_args!("{value}"))?;
    }
    list.end()
}

/// As text, if it is there.
pub(crate) fn optional<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// A translation prefix, as text.
pub(crate) fn prefix<S: Serializer>(value: &Rfc6052, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&value.prefix())
}

/// A translation prefix as text, if there is one.
pub(crate) fn optional_prefix<S: Serializer>(
    value: &Option<Rfc6052>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    optional(&value.map(|prefix| prefix.prefix()), serializer)
}

/// As `2 h 4 min`.
pub(crate) fn as_duration<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&duration(*value))
}

/// As `2 h 4 min`, or not at all.
pub(crate) fn as_optional_duration<S: Serializer>(
    value: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => as_duration(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// As `16 MiB`.
pub(crate) fn as_octets<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&octets(*value))
}

/// A duration as an operator writes it: `2 h 4 min`.
pub(crate) fn duration(value: Duration) -> String {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let (mut rest, mut parts) = (value.as_nanos(), Vec::new());
    for (unit, nanos) in UNITS {
        if rest >= nanos {
            parts.push(format!("{} {unit}", rest / nanos));
            rest %= nanos;
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// A noun with its article: `an integer`.
pub(crate) fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// A number for a reader: `65,536`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of octets as an operator writes it: `16 MiB`.
pub(crate) fn octets(count: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    UNITS
        .iter()
        .find(|(_, shift)| count != 0 && count.trailing_zeros() >= *shift)
        .map_or_else(|| format!("{count} B"), |(unit, shift)| format!("{} {unit}", count >> shift))
}
