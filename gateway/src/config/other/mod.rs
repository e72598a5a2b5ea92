//! Mechanisms that need nothing of the configuration but a section, and nothing of the host but routes.

use serde::Serialize;
use sixway_dataplane::mechanism::MechanismConfig;
use sixway_wire::Prefix6;

use super::claims::Claims;
use super::fault::Report;
use super::reach::SourceRule;
use super::routes::Route;
use super::schema::Section;
use super::section::Reader;

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
pub struct Others {}

impl Others {
    /// Reads all sections.
    pub(super) fn read<'a>(
        _sections: impl Fn(&'static Section, &mut Report) -> Vec<Reader<'a>>,
        _claims: &mut Claims,
        _report: &mut Report,
    ) -> Option<Self> {
        Some(Self {})
    }

    /// All of them, in the order of the configuration.
    pub(crate) fn all(&self) -> Vec<&dyn Other> {
        Vec::new()
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
