//! One value as it was written, read as its kind in the schema; a value that does not fit is reported with an example.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6, PrefixError};
use toml::Spanned;
use toml::de::DeValue;

use crate::document::Document;
use crate::fault::{Place, Report, did_you_mean};
use crate::ports::Ports;
use crate::route::Route;
use crate::schema::{Absent, Key, Kind, NO_LIMIT};
use crate::text::{duration, grouped, octets, with_article};
use crate::word::Word;

/// A value from the document, or a default of the schema.
#[derive(Debug)]
pub(crate) enum Held<'a> {
    Written(&'a DeValue<'a>),
    Default(DeValue<'static>),
}

/// A value with its key and place.
#[derive(Debug)]
pub(crate) struct Value<'a> {
    pub document: &'a Document,
    pub key: &'static Key,
    pub place: Place,
    pub held: Held<'a>,
}

impl<'a> Value<'a> {
    /// A value of the document; its place shows it, if it is short.
    pub fn written(
        document: &'a Document,
        key: &'static Key,
        path: String,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Self {
        let scalar = !value.get_ref().is_array() && !value.get_ref().is_table();
        let shown = match document.short_text(value.span()) {
            Some(text) if scalar => format!("{path} = {text}"),
            Some(_) | None => path,
        };
        let place = document.place(value.span(), &shown);
        Self { document, key, place, held: Held::Written(value.get_ref()) }
    }

    /// Whether it is set in the document.
    pub fn is_written(&self) -> bool {
        matches!(self.held, Held::Written(_))
    }

    fn get(&self) -> &DeValue<'_> {
        match &self.held {
            Held::Written(value) => value,
            Held::Default(value) => value,
        }
    }

    /// The items of a list; a single value is a list of one.
    pub fn items(self) -> Vec<Value<'a>> {
        let Held::Written(DeValue::Array(items)) = self.held else { return vec![self] };
        items
            .iter()
            .map(|item| Value {
                place: self.document.place(item.span(), &self.place.key),
                document: self.document,
                key: self.key,
                held: Held::Written(item.get_ref()),
            })
            .collect()
    }

    fn wrong<T>(&self, what: &str, report: &mut Report) -> Option<T> {
        report.fault(&self.place, what);
        None
    }

    fn wrong_type<T>(&self, report: &mut Report) -> Option<T> {
        let (kind, example) = (self.key.kind.in_a_sentence(), self.key.example());
        let found = with_article(self.get().type_str());
        self.wrong(&format!("must be {kind}, not {found}; write one such as {example}"), report)
    }

    /// The text of a string.
    pub fn text(&self, report: &mut Report) -> Option<String> {
        match self.get().as_str() {
            Some("") => self.wrong(&format!("is empty; write {}", self.key.example()), report),
            Some(text) if text.contains(char::is_control) => {
                self.wrong("contains control characters; remove them", report)
            }
            Some(text) => Some(text.to_owned()),
            None => self.wrong_type(report),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self, report: &mut Report) -> Option<bool> {
        self.get().as_bool().or_else(|| self.wrong_type(report))
    }

    /// An integer within the key's bounds.
    pub fn integer<T: TryFrom<u64>>(&self, report: &mut Report) -> Option<T> {
        let (Kind::Integer { min, max } | Kind::IntegerOr { min, max, .. }) = self.key.kind else {
            return self.wrong_type(report);
        };
        let Some(integer) = self.get().as_integer() else { return self.wrong_type(report) };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) if (min..=max).contains(&value) => T::try_from(value).ok(),
            Ok(value) if value == 0 && self.key.absent == Absent::Means(NO_LIMIT) => {
                let mend =
                    format!("write {} to {}, or remove the key for no limit", grouped(min), grouped(max));
                self.wrong(&format!("is out of range; {mend}"), report)
            }
            Ok(_) | Err(_) => {
                self.wrong(&format!("is out of range; write {} to {}", grouped(min), grouped(max)), report)
            }
        }
    }

    /// An integer within the key's bounds, or `None` for the key's word.
    pub fn integer_or<T: TryFrom<u64>>(&self, report: &mut Report) -> Option<Option<T>> {
        match (self.get().as_str(), self.key.kind) {
            (Some(text), Kind::IntegerOr { word, .. }) if text == word => Some(None),
            _ => self.integer(report).map(Some),
        }
    }

    /// One of the words of the key's list.
    pub fn word<T: Word>(&self, report: &mut Report) -> Option<T> {
        let text = self.get().as_str().map_or_else(|| self.wrong_type(report), Some)?.to_owned();
        let found = T::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.or_else(|| {
            let kind = self.key.kind.in_a_sentence();
            let near = did_you_mean(&text, T::WORDS.iter().map(|(word, _)| *word));
            let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            self.wrong(&format!("is not valid; write {kind}{near}"), report)
        })
    }

    /// A duration within the key's bounds, or `None` for the key's word.
    pub fn duration_or(&self, report: &mut Report) -> Option<Option<Duration>> {
        match (self.get().as_str(), self.key.kind) {
            (Some(text), Kind::DurationOr { word, .. }) if text == word => Some(None),
            _ => self.duration(report).map(Some),
        }
    }

    /// Whether it is this word.
    pub fn is_word(&self, word: &str) -> bool {
        self.get().as_str() == Some(word)
    }

    /// A duration within the key's bounds.
    pub fn duration(&self, report: &mut Report) -> Option<Duration> {
        let (Kind::Duration { min, max } | Kind::DurationOr { min, max, .. }) = self.key.kind else {
            return self.wrong_type(report);
        };
        let text = self.get().as_str().map_or_else(|| self.wrong_type(report), Some)?;
        let (min, max) = (Duration::from_secs(min), Duration::from_secs(max));
        match humantime::parse_duration(text) {
            Ok(value) if (min..=max).contains(&value) => Some(value),
            Ok(_) => {
                self.wrong(&format!("is out of range; write {} to {}", duration(min), duration(max)), report)
            }
            Err(_) => self.wrong(
                "is not a valid duration; write numbers with units, such as \"5 min\" or \"2 h 4 min\"",
                report,
            ),
        }
    }

    /// A number of octets within the key's bounds: an integer, or a number with B, KiB, MiB or GiB.
    pub fn size(&self, report: &mut Report) -> Option<u64> {
        let Kind::Size { min, max } = self.key.kind else { return self.wrong_type(report) };
        let value = match self.get() {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
            DeValue::String(text) => parse_size(text),
            _ => return self.wrong_type(report),
        };
        match value {
            Some(value) if (min..=max).contains(&value) => Some(value),
            Some(_) => {
                self.wrong(&format!("is out of range; write {} to {}", octets(min), octets(max)), report)
            }
            None => self.wrong(
                "is not a valid size; write a number with B, KiB, MiB or GiB, such as \"16 MiB\"",
                report,
            ),
        }
    }

    /// A path; a relative one is taken from the configuration's directory.
    pub fn path(&self, report: &mut Report) -> Option<PathBuf> {
        let text = self.text(report)?;
        Some(Path::new(&**self.document.file()).parent().unwrap_or(Path::new("")).join(text))
    }

    fn read<T>(&self, report: &mut Report, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let Some(text) = self.get().as_str() else { return self.wrong_type(report) };
        match parse(text) {
            Ok(value) => Some(value),
            // A list's key is shown without its items: the message names the one that is meant.
            Err(what) if self.place.key.contains(" = ") => self.wrong(&what, report),
            Err(what) => self.wrong(&format!("\"{text}\" {what}"), report),
        }
    }

    /// An IPv4 prefix.
    pub fn prefix4(&self, report: &mut Report) -> Option<Prefix4> {
        self.read(report, parse_prefix4)
    }

    /// An IPv6 prefix.
    pub fn prefix6(&self, report: &mut Report) -> Option<Prefix6> {
        let example = self.key.example();
        self.read(report, |text| parse_prefix6(text, example.trim_matches(|c| "[\"]".contains(c))))
    }

    /// An IPv4 address.
    pub fn address4(&self, report: &mut Report) -> Option<Ipv4Addr> {
        self.read(report, |text| {
            text.parse().map_err(|_| "is not an IPv4 address; write one such as 192.0.2.254".into())
        })
    }

    /// An IPv6 address.
    pub fn address6(&self, report: &mut Report) -> Option<Ipv6Addr> {
        self.read(report, |text| {
            text.parse().map_err(|_| "is not an IPv6 address; write one such as 2001:db8::fe".into())
        })
    }

    /// An address of either family.
    pub fn address(&self, report: &mut Report) -> Option<IpAddr> {
        self.read(report, |text| {
            text.parse().map_err(|_| "is not an address; write one such as 2001:db8::1 or 192.0.2.1".into())
        })
    }

    /// An IPv4 address with a port.
    pub fn endpoint4(&self, report: &mut Report) -> Option<Endpoint4> {
        self.read(report, |text| {
            let socket: SocketAddrV4 = text
                .parse()
                .map_err(|_| "is not an IPv4 address with a port; write both, such as 192.0.2.1:80")?;
            Ok(Endpoint4::new(*socket.ip(), socket.port()))
        })
    }

    /// An IPv6 address with a port.
    pub fn endpoint6(&self, report: &mut Report) -> Option<Endpoint6> {
        self.read(report, |text| {
            let socket: SocketAddrV6 = text
                .parse()
                .map_err(|_| "is not an IPv6 address with a port; write both, such as [2001:db8::80]:80")?;
            Ok(Endpoint6::new(*socket.ip(), socket.port()))
        })
    }

    /// An address of either family with a port.
    pub fn socket(&self, report: &mut Report) -> Option<SocketAddr> {
        self.read(report, |text| {
            text.parse().map_err(|_| "is not an address with a port; write both, such as [::1]:9464".into())
        })
    }

    /// An address of either family, with a port unless it is this one.
    pub fn socket_at(&self, port: u16, report: &mut Report) -> Option<SocketAddr> {
        self.read(report, |text| {
            let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
            match (bare.parse::<IpAddr>(), text.parse()) {
                (Ok(address), _) => Ok(SocketAddr::new(address, port)),
                (_, Ok(socket)) => Ok(socket),
                (Err(_), Err(_)) => Err(format!(
                    "is not an address; write one such as 2001:db8::53, or with a port, such as [2001:db8::53]:{port}"
                )),
            }
        })
    }

    /// A prefix of either family.
    pub fn network(&self, report: &mut Report) -> Option<Route> {
        self.read(report, |text| match text.contains(':') {
            true => parse_prefix6(text, "2001:db8:1::/64").map(Route::V6),
            false if text.contains('.') => parse_prefix4(text).map(Route::V4),
            false => Err("is not a prefix; write one such as 2001:db8:1::/64 or 192.0.2.0/24".into()),
        })
    }

    /// Ports: numbers and ranges, separated by commas; a single number may be written without quotes.
    pub fn ports(&self, report: &mut Report) -> Option<Ports> {
        match self.get() {
            DeValue::Integer(integer) => match Ports::parse(&integer.to_string()) {
                Ok(ports) => Some(ports),
                Err(what) => self.wrong(&what, report),
            },
            _ => self.read(report, Ports::parse),
        }
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Reads an IPv4 prefix; the error is what is wrong with it.
pub(crate) fn parse_prefix4(text: &str) -> Result<Prefix4, String> {
    text.parse::<Prefix4>().map_err(|error| match error {
        PrefixError::TooLong => "has a length above 32; write a length from 0 to 32".into(),
        PrefixError::Syntax if text.contains(':') => {
            "is not IPv4; write a prefix such as 192.0.2.0/28".into()
        }
        PrefixError::Syntax => "is not an IPv4 prefix; write one such as 192.0.2.0/28".into(),
        PrefixError::HostBits => {
            let prefix = split(text).map(|(address, length)| Prefix4::holding(address, length).to_string());
            host_bits(text, prefix)
        }
    })
}

/// Reads an IPv6 prefix; the error is what is wrong with it, with an example.
pub(crate) fn parse_prefix6(text: &str, example: &str) -> Result<Prefix6, String> {
    text.parse::<Prefix6>().map_err(|error| match error {
        PrefixError::TooLong => "has a length above 128; write a length from 0 to 128".into(),
        PrefixError::Syntax if !text.contains(':') => {
            format!("is not IPv6; write a prefix such as {example}")
        }
        PrefixError::Syntax => format!("is not an IPv6 prefix; write one such as {example}"),
        PrefixError::HostBits => {
            let prefix = split(text).map(|(address, length)| Prefix6::holding(address, length).to_string());
            host_bits(text, prefix)
        }
    })
}

fn split<A: std::str::FromStr>(text: &str) -> Option<(A, u8)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}

fn host_bits(text: &str, prefix: Option<String>) -> String {
    let length = text.split_once('/').map_or("", |(_, length)| length);
    let meant = prefix.map(|prefix| format!("; did you mean {prefix}?")).unwrap_or_default();
    format!("has bits set beyond its /{length}{meant}")
}
