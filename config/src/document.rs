//! The text of a configuration file: TOML with the line of each key and value, and its syntax errors in one clear line each.

use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, Error};

use crate::fault::{Place, Report};
use crate::schema::{SECTIONS, Times};

/// A configuration file's text, and where its lines begin.
#[derive(Debug)]
pub(crate) struct Document {
    file: Arc<str>,
    text: String,
    line_starts: Vec<usize>,
}

impl Document {
    pub fn new(file: &str, text: &str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self {
            file: file.into(),
            text: text.to_owned(),
            line_starts: std::iter::once(0).chain(starts).collect(),
        }
    }

    /// Reads the TOML; reports syntax errors, and answers with `None` if there are any.
    pub fn parse(&self, report: &mut Report) -> Option<DeTable<'_>> {
        let (table, mut errors) = DeTable::parse_recoverable(&self.text);
        if errors.is_empty() {
            return Some(table.into_inner());
        }
        errors.sort_by_key(start);
        let mut last_line = 0;
        for error in &errors {
            let place = self.place(start(error)..start(error), "");
            if place.line == last_line {
                continue; // the parser's attempts to go on after the line's first error
            }
            last_line = place.line;
            report.fault(&place, self.explain(error, place.line));
            if ["unclosed", "missing comma", "in array", "inline table"]
                .iter()
                .any(|w| error.message().contains(w))
            {
                break; // what follows is read in the wrong place
            }
        }
        None
    }

    fn explain(&self, error: &Error, line: u32) -> String {
        let message = error.message();
        let written = self.line(line).trim();
        let section = written.trim_matches(|c| "[] ".contains(c));
        let several = |name| SECTIONS.iter().any(|s| s.name == name && s.times == Times::Several);
        let unquoted =
            written.split_once('=').is_some_and(|(_, v)| v.contains([':', '/']) && !v.contains(['"', '\'']));
        let mend = if message.starts_with("duplicate key") && written.starts_with('[') {
            match several(section) {
                true => format!("; to repeat the section, write [[{section}]] each time"),
                false => "; the section exists already: merge the two".to_owned(),
            }
        } else if message.starts_with("duplicate key") {
            "; the key is already set in this section".to_owned()
        } else if unquoted || message.starts_with("string values must be quoted") {
            "; put the value in quotes: \"…\"".to_owned()
        } else {
            String::new()
        };
        format!("TOML: {}{mend}", message.replace(", expected literal string", ""))
    }

    fn line(&self, line: u32) -> &str {
        let index = line.saturating_sub(1) as usize;
        let from = self.line_starts.get(index).copied().unwrap_or(self.text.len());
        self.text.get(from..).and_then(|rest| rest.lines().next()).unwrap_or("")
    }

    /// The place of a span of text.
    pub fn place(&self, span: Range<usize>, key: &str) -> Place {
        let line = self.line_starts.partition_point(|at| *at <= span.start);
        Place { file: Arc::clone(&self.file), line: u32::try_from(line).unwrap_or(u32::MAX), key: key.into() }
    }

    /// What was written there, if it is short and on one line.
    pub fn short_text(&self, span: Range<usize>) -> Option<&str> {
        self.text.get(span).filter(|text| text.len() <= 48 && !text.contains(['\n', '\r']))
    }

    /// The file's name as the operator gave it.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }
}

fn start(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}
