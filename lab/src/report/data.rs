//! The data for other programs: CSV with a line for each value, and JSON with means and ratios.

use super::chapter::Chapter;
use crate::analyse::{Bearing, View, middle};
use crate::results::{Results, Verdict, key_of_group};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A line for each value of each sample, for each value that cannot be measured, and for each sample that failed. What a report needs is in it but the commands and
/// the tester's cost: [`crate::results::read`] reads it where there are no samples.
pub fn csv(results: &Results) -> String {
    let axes: BTreeSet<&str> =
        results.samples.iter().flat_map(|sample| sample.cell.point.keys().map(String::as_str)).collect();
    let mut heads = vec!["experiment", "series", "device", "realm"];
    heads.extend(&axes);
    heads.extend(["round", "verdict", "value_name", "value", "unit", "n", "sd"]);
    heads.extend(["min", "q50", "q90", "q99", "q99_9", "q99_99", "max", "started", "failed"]);
    heads.extend(["took", "control", "why", "own_verdict", "not_measurable", "uncertain"]);
    let mut text = heads.join(",") + "\n";
    for sample in &results.samples {
        let cell = &sample.cell;
        let realm = results.header.devices.iter().find(|device| device.name == cell.device);
        let realm = realm.map_or("", |device| device.realm.as_str());
        let mut front =
            vec![quoted(&cell.experiment), quoted(&cell.series), quoted(&cell.device), quoted(realm)];
        front.extend(axes.iter().map(|axis| cell.point.get(*axis).map(f64::to_string).unwrap_or_default()));
        front.extend([cell.repeat.to_string(), sample.verdict.text().to_owned()]);
        let why = match &sample.verdict {
            Verdict::TesterBound { why } => quoted(why),
            _ => String::new(),
        };
        let failed = quoted(sample.failed.as_deref().unwrap_or_default());
        let back = [sample.started.clone(), failed, sample.took.to_string(), optional(sample.control), why];
        let (front, back) = (front.join(","), back.join(","));
        // Name, value, unit, number, deviation and seven quantiles.
        let mut line = |value: [String; 12], not_measurable: &str, uncertain: &str, own: Option<&Verdict>| {
            let (value, not_measurable, uncertain) =
                (value.join(","), quoted(not_measurable), quoted(uncertain));
            let own = own.map_or("", Verdict::text);
            writeln!(text, "{front},{value},{back},{own},{not_measurable},{uncertain}").ok();
        };
        if sample.failed.is_some() {
            line(Default::default(), "", "", None);
        }
        for (name, value) in &sample.values {
            let [a, b, c, d, e, f, g] =
                std::array::from_fn(|at| optional(value.quantiles.map(|all| all[at])));
            let unit = json!(value.unit).as_str().unwrap_or_default().to_owned();
            let (number, n, sd) = (value.value.to_string(), value.n.to_string(), optional(value.sd));
            let fields = [quoted(name), number, unit, n, sd, a, b, c, d, e, f, g];
            line(fields, "", value.uncertain.as_deref().unwrap_or_default(), value.verdict.as_ref());
        }
        for (name, why) in &sample.not_measurable {
            let mut fields: [String; 12] = Default::default();
            fields[0] = quoted(name);
            line(fields, why, "", None);
        }
    }
    text
}

fn optional(figure: Option<f64>) -> String {
    figure.map(|it| it.to_string()).unwrap_or_default()
}

/// A field as RFC 4180 writes it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Means with intervals, ratios to plain forwarding, and findings.
pub fn data(results: &Results, chapters: &[Chapter<'_>]) -> Value {
    let experiments: Vec<_> = chapters.iter().map(|chapter| of_chapter(results, chapter)).collect();
    json!({ "run": results.header, "noise": crate::analyse::noise(&results.samples), "experiments": experiments })
}

fn of_chapter(results: &Results, chapter: &Chapter<'_>) -> Value {
    let view = View::of(results, chapter.about.name);
    let group = |group: &crate::analyse::Group<'_>| {
        let names: BTreeSet<_> = group.samples.iter().flat_map(|sample| sample.values.keys()).collect();
        let value = |name: &&String| {
            let (estimate, unit) = group.value(name)?;
            let ratio = view.plain(group).filter(|plain| plain.cell.device != group.cell.device);
            let ratio = ratio.map(|plain| bearing(&view.ratio(group, plain, name)));
            let rounds: Vec<f64> = group.rounds(name).into_values().collect();
            let middle = middle(&rounds);
            let value = json!({
                "median_of_rounds": middle.map(|it| it.median), "percentile_1_of_rounds": middle.map(|it| it.low),
                "percentile_99_of_rounds": middle.map(|it| it.high), "sd": group.sd(name), "n": group.observations(name),
                "quantiles": group.quantiles(name),
                "mean": estimate.mean, "half_width": estimate.half_width, "rounds": estimate.n, "unit": unit,
                "to_plain": ratio, "uncertain": group.uncertain(name),
                "own_verdict": group.own_verdict(name).map(Verdict::text),
            });
            Some(((*name).clone(), value))
        };
        let values: serde_json::Map<_, _> = names.iter().filter_map(value).collect();
        let not_measurable: serde_json::Map<_, _> = group
            .samples
            .iter()
            .flat_map(|sample| &sample.not_measurable)
            .map(|(name, why)| (name.clone(), json!(why)))
            .collect();
        json!({
            "key": key_of_group(group.cell), "series": group.cell.series, "device": group.cell.device,
            "realm": view.realm(&group.cell.device), "point": group.cell.point,
            "verdict": group.verdict().text(), "values": values, "not_measurable": not_measurable,
        })
    };
    let finding = |finding: &crate::analyse::Finding| json!({ "statement": finding.statement, "outcome": finding.outcome.text(), "evidence": finding.evidence });
    let headline = |headline: &crate::analyse::Headline| {
        json!({
            "statement": headline.statement, "published": headline.published, "devices": headline.devices(),
            "today": bearing(&headline.today(&view)),
        })
    };
    json!({
        "name": chapter.about.name,
        "groups": view.groups.iter().map(group).collect::<Vec<_>>(),
        "findings": chapter.findings.iter().map(finding).collect::<Vec<_>>(),
        "headlines": chapter.headlines.iter().map(headline).collect::<Vec<_>>(),
    })
}

fn bearing(bearing: &Bearing) -> Value {
    let number = bearing.number();
    json!({
        "ratio": number.map(|it| it.value), "interval": number.map(|it| it.interval),
        "text": bearing.text(), "explained": bearing.explained(),
    })
}
