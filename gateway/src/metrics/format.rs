//! The two text formats: OpenMetrics, and Prometheus' own, which older scrapers and most people's eyes expect.

use std::borrow::Cow;
use std::collections::HashSet;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Format {
    /// What a request's `Accept` header asks for: OpenMetrics only if it is named (Prometheus names it first).
    pub fn accepted(accept: Option<&str>) -> Self {
        let media =
            accept.unwrap_or_default().split(',').map(|one| one.split(';').next().unwrap_or_default().trim());
        match media.into_iter().any(|media| media.eq_ignore_ascii_case("application/openmetrics-text")) {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// An OpenMetrics text in this format.
    pub fn write(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::OpenMetrics => text.into(),
            Self::Prometheus => to_prometheus(text).into(),
        }
    }
}

/// Prometheus' format names a counter with its suffix in its HELP and TYPE too, and has no end.
fn to_prometheus(text: &str) -> String {
    let name_of = |line: &str| line.split(' ').nth(2).map(str::to_owned);
    let is_counter = |line: &&str| line.starts_with("# TYPE ") && line.ends_with(" counter");
    let counters: HashSet<String> = text.lines().filter(is_counter).filter_map(name_of).collect();
    let mut written = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        match name_of(line).filter(|name| line.starts_with("# ") && counters.contains(name)) {
            Some(name) => written.push_str(&line.replacen(&name, &format!("{name}_total"), 1)),
            None => written.push_str(line),
        }
        written.push('\n');
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_ask_for_openmetrics_gets_prometheus_format() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        for accept in [None, Some("*/*"), Some("text/plain;version=0.0.4"), Some("text/html")] {
            assert_eq!(Format::accepted(accept), Format::Prometheus, "{accept:?}");
        }
    }

    #[test]
    fn counters_are_named_with_their_suffix() {
        let text = "# HELP a_b Things # with signs.\n# TYPE a_b counter\na_b_total{x=\"# HELP a_b\"} 1\n\
                    # HELP c Filled.\n# TYPE c gauge\n# UNIT c bytes\nc 2\n# EOF\n";
        assert_eq!(Format::OpenMetrics.write(text), text);
        assert_eq!(
            Format::Prometheus.write(text),
            "# HELP a_b_total Things # with signs.\n# TYPE a_b_total counter\na_b_total{x=\"# HELP a_b\"} 1\n\
             # HELP c Filled.\n# TYPE c gauge\nc 2\n"
        );
    }
}
