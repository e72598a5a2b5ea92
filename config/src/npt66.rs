//! `[[npt66]]`: NPTv6 (RFC 6296).

use serde::Serialize;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_dataplane::mechanism::npt66::{Npt66Config, Prefixes};
use sixway_wire::Prefix6;

use crate::claims::Owner;
use crate::mechanism::{FromSection, Mechanism};
use crate::route::Route;
use crate::schema::NPT66;
use crate::section::Reader;
use crate::text;
use crate::tunnel_context::TunnelContext;

/// A prefix translator, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Npt66 {
    /// Its name.
    pub name: String,
    /// The site's prefix.
    #[serde(serialize_with = "text::one")]
    pub inside: Prefix6,
    /// The prefix that the outside sees.
    #[serde(serialize_with = "text::one")]
    pub outside: Prefix6,
    /// Destinations on the way to which nothing is translated.
    #[serde(serialize_with = "text::many", skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Prefix6>,
    /// Both prefixes at the length of the longer one.
    #[serde(skip)]
    prefixes: Prefixes,
}

impl FromSection for Npt66 {
    fn read(
        section: &Reader,
        default_name: String,
        before: &[Option<Self>],
        context: TunnelContext,
    ) -> Option<Self> {
        let TunnelContext { index, claims, report, .. } = context;
        let name = section.value("name", report).map(|v| v.text(report));
        let inside = section.value("inside", report).and_then(|v| v.prefix6(report));
        let outside = section.value("outside", report);
        let place = outside.as_ref().map(|v| v.place.clone());
        let outside = outside.and_then(|v| v.prefix6(report));
        let items = section.value("except", report).map(|v| v.items()).unwrap_or_default();
        let except: Vec<Prefix6> = items.iter().filter_map(|item| item.prefix6(report)).collect();
        let (inside, outside, place) = (inside?, outside?, place?);
        let prefixes = Prefixes::new(inside, outside);
        let prefixes = prefixes.map_err(|fault| report.fault(&place, fault.to_string())).ok()?;
        claims.v6(prefixes.outside(), Owner::Prefix(NPT66.name, index), &place);
        if let Some(other) =
            before.iter().flatten().find(|other| other.prefixes.inside() == prefixes.inside())
        {
            let what = "an inside prefix can have only one outside prefix (RFC 6296 §3.1)";
            report.fault(&place, format!("{inside} is already translated by {}; {what}", other.name));
        }
        let whole = except.len() == items.len();
        let name = name.unwrap_or(Some(default_name))?;
        whole.then_some(Self { name, inside, outside, except, prefixes })
    }
}

impl Mechanism for Npt66 {
    fn name(&self) -> &str {
        &self.name
    }

    fn engine(&self) -> MechanismConfig {
        Npt66Config { prefixes: self.prefixes, except: self.except.clone(), ingress: None }.into()
    }

    fn serves(&self) -> String {
        format!("{} ⇄ {}", self.prefixes.inside(), self.prefixes.outside())
    }

    fn routes(&self) -> Vec<Route> {
        vec![Route::V6(self.prefixes.outside())]
    }

    fn inside_sources(&self) -> Option<(Prefix6, &[Prefix6])> {
        Some((self.prefixes.inside(), &self.except))
    }

    fn serves_ipv4(&self) -> bool {
        false
    }

    fn serves_ipv6(&self) -> bool {
        true
    }
}
