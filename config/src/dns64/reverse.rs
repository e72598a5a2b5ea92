//! The handling of PTR queries for synthesised addresses.

use serde::{Serialize, Serializer};

use super::domain_name::Name;
use crate::fault::Report;
use crate::value::Value;

/// PTR queries for addresses within the prefixes (RFC 6147 §5.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverse {
    /// A CNAME record leads to the name under in-addr.arpa.
    Cname,
    /// The records of the name under in-addr.arpa.
    Ptr,
    /// They are forwarded as they are.
    Off,
    /// This name for every address.
    Name(Name),
}

impl Reverse {
    pub(super) fn read(value: &Value, report: &mut Report) -> Option<Self> {
        let text = value.text(report)?;
        Some(match &*text {
            "cname" => Self::Cname,
            "ptr" => Self::Ptr,
            "off" => Self::Off,
            // A name of one label is probably a misspelled word.
            name if !name.contains('.') => {
                let what = "is not \"cname\" or \"ptr\" or \"off\", and not a domain name; write one of them";
                report.fault(&value.place, what);
                return None;
            }
            name => match Name::parse(name) {
                Ok(name) => Self::Name(name),
                Err(what) => {
                    report.fault(&value.place, what);
                    return None;
                }
            },
        })
    }
}

impl Serialize for Reverse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Cname => "cname",
            Self::Ptr => "ptr",
            Self::Off => "off",
            Self::Name(name) => name.as_str(),
        })
    }
}
