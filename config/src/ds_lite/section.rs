//! Which element of DS-Lite a section configures. The keys of the other one are faults.

use serde::Serialize;

use super::aftr::{Aftr, AftrPools};
use super::b4::B4;
use super::role::DsLiteRole;
use crate::fault::Report;
use crate::schema::{AFTR_KEYS, AFTR_SUBSCRIBER_KEYS, B4_KEYS, DS_LITE_STATIC, DS_LITE_TIMEOUTS, Key};
use crate::section::Reader;
use crate::tunnel_context::TunnelContext;

/// A section, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DsLite {
    /// An AFTR.
    Aftr(Box<Aftr>),
    /// A B4.
    B4(B4),
}

impl DsLite {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Aftr(aftr) => &aftr.name,
            Self::B4(b4) => &b4.name,
        }
    }

    pub(crate) fn read(
        section: &Reader,
        default_name: String,
        pools: AftrPools<'_, '_>,
        context: TunnelContext,
    ) -> Option<Self> {
        let role =
            section.value("role", context.report).and_then(|v| v.word::<DsLiteRole>(context.report))?;
        match role {
            DsLiteRole::Aftr => {
                refuse(B4_KEYS, "b4", section, context.report);
                Aftr::read(section, default_name, pools, context).map(Box::new).map(Self::Aftr)
            }
            DsLiteRole::B4 => {
                refuse(AFTR_KEYS, "aftr", section, context.report);
                refuse(AFTR_SUBSCRIBER_KEYS, "aftr", section, context.report);
                for (key, schema) in [("static", &DS_LITE_STATIC), ("timeouts", &DS_LITE_TIMEOUTS)] {
                    for table in section.sections(key, schema, &mut Report::default()) {
                        context.report.fault(table.place(), "applies only to role = \"aftr\"; remove it");
                    }
                }
                B4::read(section, default_name, context).map(Self::B4)
            }
        }
    }
}

/// Reports keys of the other role.
fn refuse(keys: &'static [Key], role: &str, section: &Reader, report: &mut Report) {
    for key in keys {
        let value = section.value(key.name, &mut Report::default());
        if let Some(value) = value.filter(|value| value.is_written()) {
            report.fault(&value.place, format!("applies only to role = \"{role}\"; remove it"));
        }
    }
}

/// Reports names that are used twice, and a second B4: all other IPv4 destinations have one route.
pub(crate) fn check_together(read: &[Option<DsLite>], written: &[Reader], report: &mut Report) {
    let mut b4: Option<&Reader> = None;
    for (index, (one, section)) in read.iter().zip(written).enumerate() {
        let Some(one) = one else { continue };
        if read[..index].iter().flatten().any(|other| other.name() == one.name()) {
            let what = format!("the name {} is already used; choose a different name", one.name());
            report.fault(section.place(), what);
        }
        match (one, b4) {
            (DsLite::Aftr(_), _) => {}
            (DsLite::B4(_), None) => b4 = Some(section),
            (DsLite::B4(_), Some(first)) => {
                let there = first.place().seen_from(section.place());
                let what = format!("there is a B4 already ({there})");
                report.fault(
                    section.place(),
                    format!(
                        "{what}; IPv4 packets go to one AFTR (RFC 6334 §5): remove one, or run two gateways"
                    ),
                );
            }
        }
    }
}
