//! Keys and sections: what values a key takes, and what holds when it is not written.

use std::fmt::Write as _;
use std::time::Duration;

use crate::text::{duration, grouped, octets};

pub(crate) const fn key(name: &'static str, kind: Kind, absent: Absent, meaning: &'static str) -> Key {
    Key { name, kind, absent, meaning }
}

/// What values a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Text,
    Path,
    /// A path, or the word.
    PathOr(&'static str),
    Boolean,
    Integer {
        min: u64,
        max: u64,
    },
    /// An integer, or the word.
    IntegerOr {
        word: &'static str,
        min: u64,
        max: u64,
    },
    Choice(&'static [&'static str]),
    /// A list of these words.
    Choices(&'static [&'static str]),
    /// Bounds in seconds.
    Duration {
        min: u64,
        max: u64,
    },
    /// A duration with bounds in seconds, or the word.
    DurationOr {
        word: &'static str,
        min: u64,
        max: u64,
    },
    /// Bounds in octets.
    Size {
        min: u64,
        max: u64,
    },
    /// A list of names.
    Texts,
    /// A domain name, or one of the words.
    NameOr(&'static [&'static str]),
    /// An address of either family.
    Address,
    Address4,
    Address6,
    Addresses4,
    /// A list of IPv4 addresses, or the word.
    Addresses4Or(&'static str),
    Addresses6,
    Prefix4,
    Prefix6,
    Prefixes4,
    Prefixes6,
    /// An IPv6 prefix, or one of the words.
    Prefix6Or(&'static [&'static str]),
    /// A list of prefixes of both families.
    Networks,
    /// `"auto"`, `"none"`, or a list of prefixes of both families and `"auto"`.
    Routes,
    Ports,
    Endpoint4,
    /// An IPv4 address, with a port where the protocol has ports.
    Endpoint4OrAddress,
    Endpoint6,
    Socket,
    /// A list of addresses, each with a port unless it is this one.
    Sockets(u16),
    /// An address, with a port unless it is the usual one.
    Server,
    /// A section of its own.
    Table(&'static Section),
    /// A list of sections.
    Tables(&'static Section),
}

impl Kind {
    /// In words, for the table of the document.
    pub fn in_words(self) -> String {
        self.phrase(false)
    }

    /// In words, for a message: with articles, and without Markdown.
    pub fn in_a_sentence(self) -> String {
        self.phrase(true).replace('`', "")
    }

    fn phrase(self, sentence: bool) -> String {
        let (a, an, from) = if sentence { ("a ", "an ", "from ") } else { ("", "", "") };
        let number = |number| if sentence { grouped(number) } else { number.to_string() };
        match self {
            Self::Text => format!("{a}string"),
            Self::Path => format!("{a}path"),
            Self::PathOr(word) => format!("`\"{word}\"` or {a}path"),
            Self::Boolean => "`true` or `false`".into(),
            Self::Integer { min, max } => format!("{an}integer {from}{} to {}", number(min), number(max)),
            Self::IntegerOr { word, min, max } => {
                format!("`\"{word}\"` or {}", Self::Integer { min, max }.phrase(sentence))
            }
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
                match words.split_last() {
                    Some((last, first)) if sentence && !first.is_empty() => {
                        format!("{} or {last}", first.join(", "))
                    }
                    Some(_) | None => words.join(" or "),
                }
            }
            Self::Choices(words) => format!("{a}list of {}", Self::Choice(words).phrase(sentence)),
            Self::Duration { min, max } => format!(
                "{a}duration {from}{} to {}",
                duration(Duration::from_secs(min)),
                duration(Duration::from_secs(max))
            ),
            Self::DurationOr { word, min, max } => {
                format!("`\"{word}\"` or {}", Self::Duration { min, max }.phrase(sentence))
            }
            Self::Size { min, max } => format!("{a}size {from}{} to {}", octets(min), octets(max)),
            Self::Texts => format!("{a}list of strings"),
            Self::NameOr(words) => format!("{} or {a}domain name", Self::Choice(words).phrase(sentence)),
            Self::Address => format!("{an}IPv4 or IPv6 address"),
            Self::Address4 => format!("{an}IPv4 address"),
            Self::Address6 => format!("{an}IPv6 address"),
            Self::Addresses4 => format!("{a}list of IPv4 addresses"),
            Self::Addresses4Or(word) => format!("`\"{word}\"` or {a}list of IPv4 addresses"),
            Self::Addresses6 => format!("{a}list of IPv6 addresses"),
            Self::Prefix4 => format!("{an}IPv4 prefix"),
            Self::Prefix6 => format!("{an}IPv6 prefix"),
            Self::Prefixes4 => format!("{a}list of IPv4 prefixes"),
            Self::Prefixes6 => format!("{a}list of IPv6 prefixes"),
            Self::Prefix6Or(words) => format!("{} or {an}IPv6 prefix", Self::Choice(words).phrase(sentence)),
            Self::Networks => format!("{a}list of prefixes"),
            Self::Routes => format!("`\"auto\"`, `\"none\"` or {a}list of prefixes"),
            Self::Ports => "ports".into(),
            Self::Endpoint4 => format!("{an}IPv4 address and port"),
            Self::Endpoint4OrAddress => {
                format!("{an}IPv4 address and port; without ports, {an}IPv4 address")
            }
            Self::Endpoint6 => format!("{an}IPv6 address and port"),
            Self::Socket => format!("{an}address and port"),
            Self::Sockets(port) => format!("{a}list of addresses, with a port if it is not {port}"),
            Self::Server => format!("{an}address, or {an}address and port"),
            Self::Table(section) => format!("{a}table, see `[{}]`", section.name),
            Self::Tables(section) => format!("{a}list of tables, see `{}`", section.name),
        }
    }

    /// A value as it is written, for faults.
    fn example(self) -> String {
        match self {
            Self::Text => "\"name\"".into(),
            Self::Path => "\"/etc/sixway/file\"".into(),
            Self::Boolean => "true".into(),
            Self::Integer { min, .. } => min.to_string(),
            Self::IntegerOr { word, .. } => format!("\"{word}\""),
            Self::Choice(words) | Self::NameOr(words) => {
                words.first().map(|word| format!("\"{word}\"")).unwrap_or_default()
            }
            Self::Choices(words) => format!("[\"{}\"]", words.first().unwrap_or(&"")),
            Self::Duration { min, .. } => format!("\"{}\"", duration(Duration::from_secs(min))),
            Self::DurationOr { word, .. } | Self::Addresses4Or(word) | Self::PathOr(word) => {
                format!("\"{word}\"")
            }
            Self::Texts => "[\"name\"]".into(),
            Self::Size { min, .. } => format!("\"{}\"", octets(min)),
            Self::Address | Self::Address4 => "\"192.0.2.254\"".into(),
            Self::Address6 => "\"2001:db8::fe\"".into(),
            Self::Addresses4 => "[\"192.0.2.254\"]".into(),
            Self::Addresses6 => "[\"2001:db8::fe\"]".into(),
            Self::Prefix4 => "\"192.0.2.0/28\"".into(),
            Self::Prefix6 => "\"2001:db8:64::/96\"".into(),
            Self::Prefixes4 => "[\"192.0.2.0/28\"]".into(),
            Self::Prefixes6 => "[\"2001:db8:1::/48\"]".into(),
            Self::Prefix6Or(_) => "\"64:ff9b::/96\"".into(),
            Self::Networks => "[\"2001:db8:1::/64\"]".into(),
            Self::Routes => "[\"auto\", \"198.51.100.0/24\"]".into(),
            Self::Ports => "\"1024-65535\"".into(),
            Self::Endpoint4 | Self::Endpoint4OrAddress => "\"192.0.2.1:80\"".into(),
            Self::Endpoint6 => "\"[2001:db8::80]:80\"".into(),
            Self::Socket => "\"[::1]:9464\"".into(),
            Self::Sockets(port) => format!("[\"[2001:db8:1::1]:{port}\"]"),
            Self::Server => "\"192.0.2.53\"".into(),
            Self::Table(section) | Self::Tables(section) => {
                let keys = section.keys().map(|key| format!("{} = {}", key.name, key.example()));
                let table = format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "));
                if matches!(self, Self::Tables(_)) { format!("[{table}]") } else { table }
            }
        }
    }
}

/// What holds when a key is not written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Absent {
    /// It must be written.
    Fault,
    /// It must be written, and this value (in TOML) shows how better than another of its kind.
    FaultSuch(&'static str),
    /// This value (in TOML) is read in its place.
    Default(&'static str),
    /// As these words say.
    Means(&'static str),
}

/// What holds without a limit's key.
pub(crate) const NO_LIMIT: &str = "no limit";

/// A key of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub absent: Absent,
    pub meaning: &'static str,
}

impl Key {
    /// A value as it is written, for messages: of numbers the default, else one within the bounds.
    pub fn example(&self) -> String {
        match (self.absent, self.kind) {
            (Absent::FaultSuch(example), _) => example.to_owned(),
            (Absent::Default(value), Kind::Integer { .. } | Kind::Duration { .. } | Kind::Size { .. }) => {
                value.to_owned()
            }
            (Absent::Fault | Absent::Default(_) | Absent::Means(_), kind) => kind.example(),
        }
    }
}

/// How often a section may be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Times {
    /// `[section]`, at most once.
    Once,
    /// `[section]`, or `[[section]]` as often as needed.
    Several,
}

/// A section: its name as a path, and its keys in groups (sections share some).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Section {
    pub name: &'static str,
    pub times: Times,
    pub groups: &'static [&'static [Key]],
}

impl Section {
    /// The keys, in the order of the document.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    /// The table of keys in Markdown, for `docs/configuration.md`.
    pub fn table(&self) -> String {
        let mut text = String::from("| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
        for key in self.keys() {
            let default = match key.absent {
                Absent::Fault | Absent::FaultSuch(_) => "required".into(),
                Absent::Default(value) => format!("`{value}`"),
                Absent::Means(words) => words.to_owned(),
            };
            let (name, kind, meaning) = (key.name, key.kind.in_words(), key.meaning);
            let _ = writeln!(text, "| `{name}` | {kind} | {default} | {meaning} |");
        }
        text
    }
}
