//! `[dns64.dnssec]`: what is validated, and what clients that use DNSSEC get.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use sixway_dnssec::{Anchor, trust_anchor};

use super::context::Dns64Context;
use super::domain_name::Name;
use crate::fault::Place;
use crate::section::Reader;
use crate::word::words;

words! {
    /// What clients with CD=1 and DO=0 get.
    CheckingDisabled {
        /// AAAA records synthesised without validation.
        Synthesise = "synthesise",
        /// What the upstream said.
        PassOn = "pass_on",
    }
}

words! {
    /// What clients with CD=0 and DO=1 get (RFC 6147 §5.5).
    DnssecOk {
        /// AAAA records.
        Synthesise = "synthesise",
        /// The upstream's answer with its proofs, where it is secure.
        PassOn = "pass_on",
    }
}

words! {
    /// What clients with CD=1 and DO=1 get (RFC 6147 §5.5).
    ValidatingClients {
        /// What the upstream said.
        Untouched = "untouched",
        /// The same, and AAAA records for names that are proven to be unsigned.
        Unsigned = "unsigned",
    }
}

/// DNSSEC, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dnssec {
    /// Whether answers are validated here.
    pub validate: bool,
    /// The file with the initial trust anchors; `None`: the root's keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_anchor: Option<PathBuf>,
    /// The file for new keys (RFC 5011); `None`: trust anchors are not updated.
    #[serde(serialize_with = "or_off")]
    pub trust_anchor_state: Option<PathBuf>,
    /// Names at and below which nothing is validated (RFC 7646).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub insecure: Vec<Name>,
    /// Whether the AD bit of upstreams is trusted.
    pub trust_upstream_ad: bool,
    /// CD=1, DO=0.
    pub checking_disabled: CheckingDisabled,
    /// CD=0, DO=1.
    pub dnssec_ok: DnssecOk,
    /// CD=1, DO=1.
    pub validating_clients: ValidatingClients,
    /// Whether AD is also set for clients that did not set DO.
    pub ad_without_do: bool,
    /// The initial trust anchors.
    #[serde(skip)]
    pub anchors: Vec<Anchor>,
}

fn or_off<S: Serializer>(value: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(path) => path.serialize(serializer),
        None => serializer.serialize_str("off"),
    }
}

/// The directory of state files.
const STATE_DIRECTORY: &str = "/var/lib/sixway";

impl Dnssec {
    pub(super) fn read(section: &Reader, context: &mut Dns64Context) -> Option<Self> {
        let report = &mut *context.report;
        let validate = section.value("validate", report).and_then(|v| v.boolean(report));
        let trust_anchor = section.value("trust_anchor", report).map(|v| (v.path(report), v.place));
        let state = section.value("trust_anchor_state", report);
        for place in [trust_anchor.as_ref().map(|(_, place)| place), state.as_ref().map(|v| &v.place)] {
            if let Some(place) = place.filter(|_| validate == Some(false)) {
                report.warn(place, "has no effect without validate = true");
            }
        }
        let trust_anchor_state = match state {
            None => Some(Some(PathBuf::from(format!("{STATE_DIRECTORY}/{}.trust-anchor", context.gateway)))),
            Some(v) if v.is_word("off") => Some(None),
            Some(v) => v.path(report).map(Some),
        };
        let insecure = section.value("insecure", report);
        if let Some(v) = insecure.as_ref().filter(|_| validate == Some(false)) {
            report.warn(&v.place, "has no effect without validate = true");
        }
        let insecure = Name::read_all(insecure, report);
        let trust = section.value("trust_upstream_ad", report);
        let trust_upstream_ad = trust.as_ref().and_then(|v| v.boolean(report));
        if let Some(v) = trust.filter(|_| trust_upstream_ad == Some(true) && validate == Some(true)) {
            report.warn(&v.place, "has no effect with validate = true: answers are validated here");
        }
        let checking_disabled = section.value("checking_disabled", report).and_then(|v| v.word(report));
        let proofs = section.value("dnssec_ok", report);
        let dnssec_ok = proofs.as_ref().and_then(|v| v.word(report));
        let without_do = section.value("ad_without_do", report);
        let ad_without_do = without_do.as_ref().and_then(|v| v.boolean(report));
        let proofs = proofs.filter(|_| dnssec_ok == Some(DnssecOk::PassOn));
        let without_do = without_do.filter(|_| ad_without_do == Some(true));
        let knows_nothing = validate == Some(false) && trust_upstream_ad == Some(false);
        for v in proofs.iter().chain(&without_do).filter(|_| knows_nothing) {
            let what = "has no effect without validate = true or trust_upstream_ad = true";
            report.warn(&v.place, what);
        }
        let validating = section.value("validating_clients", report);
        let validating_clients = validating.as_ref().and_then(|v| v.word(report));
        let unsigned = validating_clients == Some(ValidatingClients::Unsigned) && validate == Some(false);
        if let Some(v) = validating.filter(|_| unsigned) {
            report.warn(&v.place, "has no effect without validate = true");
        }
        let anchors = match &trust_anchor {
            Some((Some(path), place)) => read_anchors(path, place, context),
            Some((None, _)) => None,
            None => Some(trust_anchor::root()),
        };
        Some(Self {
            validate: validate?,
            trust_anchor: trust_anchor.map_or(Some(None), |(path, _)| path.map(Some))?,
            trust_anchor_state: trust_anchor_state?,
            insecure: insecure?,
            trust_upstream_ad: trust_upstream_ad?,
            checking_disabled: checking_disabled?,
            dnssec_ok: dnssec_ok?,
            validating_clients: validating_clients?,
            ad_without_do: ad_without_do?,
            anchors: anchors?,
        })
    }
}

fn read_anchors(path: &Path, place: &Place, context: &mut Dns64Context) -> Option<Vec<Anchor>> {
    let text = match (context.read_file)(path) {
        Ok(text) => text,
        Err(error) => {
            context.report.fault(place, format!("cannot be read: {error}"));
            return None;
        }
    };
    match trust_anchor::read(&text) {
        Ok(anchors) if anchors.is_empty() => {
            context.report.fault(place, "has no records; write DS or DNSKEY records into it, one per line");
            None
        }
        Ok(anchors) => Some(anchors),
        Err(fault) => {
            let line = u32::try_from(fault.line).unwrap_or(u32::MAX);
            let there = Place { line, key: "".into(), ..Place::file(&path.to_string_lossy()) };
            context.report.fault(&there, fault.what);
            None
        }
    }
}
