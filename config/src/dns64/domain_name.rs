//! Domain names in the configuration.

use serde::Serialize;
use sixway_control::dns64::Wire;

use crate::domain_name::is_domain_name;
use crate::fault::Report;
use crate::value::Value;

/// A domain name, in lower case and without the dot at its end; never the root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Name(String);

impl Name {
    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// In wire form (RFC 1035 §3.1).
    #[must_use]
    pub fn wire(&self) -> Wire {
        let mut wire = Vec::with_capacity(self.0.len() + 2);
        for label in self.0.split('.') {
            // At most 63: it was checked when it was read.
            wire.push(label.len() as u8);
            wire.extend_from_slice(label.as_bytes());
        }
        wire.push(0);
        Wire(wire.into())
    }

    /// Whether it is `other`, or below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let above = self.0.strip_suffix(&*other.0);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }

    /// Reads a name; the error is what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(parent) = text.strip_prefix("*.").filter(|parent| is_domain_name(parent)) {
            return Err(format!("contains a *; names below are included anyway: write {parent}"));
        }
        if text == "." {
            return Err("is the root and matches every name; remove the key instead".into());
        }
        if !text.is_ascii() {
            return Err("is not ASCII; write the name in its DNS form, with xn--".into());
        }
        if !is_domain_name(text) {
            return Err("is not a domain name; write one such as site.example".into());
        }
        Ok(Self(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase()))
    }

    /// One name.
    pub(crate) fn read(value: &Value, report: &mut Report) -> Option<Self> {
        let text = value.text(report)?;
        Self::parse(&text).map_err(|what| report.fault(&value.place, format!("\"{text}\" {what}"))).ok()
    }

    /// The names of a list; a key that is not written has none.
    pub(crate) fn read_all(value: Option<Value>, report: &mut Report) -> Option<Vec<Self>> {
        let Some(value) = value else { return Some(Vec::new()) };
        let place = value.place.clone();
        let items = value.items();
        if items.is_empty() {
            report.fault(&place, "is empty; write names, or remove it");
        }
        let mut names = Vec::with_capacity(items.len());
        for item in &items {
            let Some(text) = item.text(report) else { continue };
            match Self::parse(&text) {
                Ok(name) => names.push(name),
                Err(what) => report.fault(&item.place, format!("\"{text}\" {what}")),
            }
        }
        (names.len() == items.len()).then_some(names)
    }
}
