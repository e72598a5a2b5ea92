//! Mechanisms that need nothing of the configuration but a section, and nothing of the host but routes. A new one is a file beside this, a
//! line in [`Others`], in [`Others::read`] and in [`Others::all`], and its section among those of the schema.

mod npt66;

use serde::Serialize;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_wire::Prefix6;

use super::claims::Claims;
use super::fault::Report;
use super::load::{default_name, too_many};
use super::reach::SourceRule;
use super::routes::Route;
use super::schema::Section;
use super::section::Reader;

use npt66::Npt66;

pub(super) use npt66::NPT66;

/// Such a mechanism.
pub(crate) trait Other {
    /// What it is called.
    fn name(&self) -> &str;
    /// What its engine is built from.
    fn engine(&self) -> MechanismConfig;
    /// What it serves, in words.
    fn serves(&self) -> String;
    /// What is routed into the device by its destination.
    fn routes(&self) -> Vec<Route>;
    /// What is routed into the device by its source, and to which destinations it is not.
    fn from_inside(&self) -> Option<(Prefix6, &[Prefix6])>;
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Others {
    /// Prefix translators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    npt66: Vec<Npt66>,
}

/// A mechanism that can be read; `before` are those of its kind above it.
trait FromSection: Sized {
    fn read(
        section: &Reader,
        default_name: String,
        before: &[Option<Self>],
        claims: &mut Claims,
        report: &mut Report,
    ) -> Option<Self>;
}

impl Others {
    /// Reads all sections.
    pub(super) fn read<'a>(
        sections: impl Fn(&'static Section, &mut Report) -> Vec<Reader<'a>>,
        claims: &mut Claims,
        report: &mut Report,
    ) -> Option<Self> {
        let npt66 = read_all(&NPT66, sections(&NPT66, report), claims, report);
        Some(Self { npt66: npt66? })
    }

    /// All of them, in the order of the configuration.
    pub(crate) fn all(&self) -> Vec<&dyn Other> {
        self.npt66.iter().map(|it| it as &dyn Other).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// What is routed by its source.
    pub(super) fn source_rules(&self) -> Vec<SourceRule> {
        let mut rules = Vec::new();
        for (from, except) in self.all().into_iter().filter_map(Other::from_inside) {
            let own = except.iter().copied().chain([from]);
            rules.extend(own.map(|to| SourceRule { from, except: Some(to) }));
            rules.push(SourceRule { from, except: None });
        }
        rules
    }
}

fn read_all<M: FromSection>(
    schema: &'static Section,
    written: Vec<Reader>,
    claims: &mut Claims,
    report: &mut Report,
) -> Option<Vec<M>> {
    too_many(&written, report);
    let mut read: Vec<Option<M>> = Vec::with_capacity(written.len());
    for (index, section) in written.iter().enumerate() {
        let name = default_name(schema.name, index, written.len());
        let one = M::read(section, name, &read, claims, report);
        read.push(one);
    }
    read.into_iter().collect()
}
