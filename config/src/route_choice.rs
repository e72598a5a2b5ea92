//! `tun.routes`: which routes lead into the device.

use serde::ser::{Serialize, SerializeSeq as _, Serializer};
use toml::de::DeValue;

use crate::fault::Report;
use crate::route::Route;
use crate::value::{Held, Value, parse_prefix4, parse_prefix6};

/// `tun.routes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChoice {
    /// Whether the routes that the mechanisms need are set.
    pub auto: bool,
    /// Further routes.
    pub further: Vec<Route>,
}

impl RouteChoice {
    pub(crate) fn read(value: Value, report: &mut Report) -> Option<Self> {
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
                prefix if prefix.contains(':') => parse_prefix6(prefix, "2001:db8:1::/48").map(Route::V6),
                prefix if prefix.contains('.') => parse_prefix4(prefix).map(Route::V4),
                _ => Err("is not a valid route; write \"auto\", \"none\" or prefixes".into()),
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
