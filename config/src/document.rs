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

/// Sections with syntax errors: messages about them, or about others because of them, may be wrong.
#[derive(Debug)]
pub(crate) struct Broken {
    file: Arc<str>,
    sections: Vec<(String, Range<u32>)>,
}

impl Broken {
    /// Whether there are such sections.
    pub fn is_any(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Whether a fault does not depend on these sections: it is elsewhere, and does not name them.
    pub fn leaves(&self, place: &Place, message: &str) -> bool {
        let is_main = place.file == self.file;
        let has_place = !is_main || place.line > 0;
        has_place
            && self.sections.iter().all(|(name, lines)| {
                let within = is_main && lines.contains(&place.line);
                !within && !place.key.starts_with(name.as_str()) && !message.contains(name.as_str())
            })
    }
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

    /// Reads the TOML; reports syntax errors. `None`: because of them, it is not known which keys are set.
    pub fn parse(&self, report: &mut Report) -> Option<(DeTable<'_>, Broken)> {
        let (table, mut errors) = DeTable::parse_recoverable(&self.text);
        let mut broken = Broken { file: Arc::clone(&self.file), sections: Vec::new() };
        if errors.is_empty() {
            return Some((table.into_inner(), broken));
        }
        let mut structural = false;
        errors.sort_by_key(start);
        let (mut last_line, mut repeated) = (0, None);
        for error in &errors {
            let place = self.place(start(error)..start(error), "");
            if place.line == last_line {
                continue; // the parser's attempts to go on after the line's first error
            }
            let is_duplicate = error.message().starts_with("duplicate key");
            match (self.is_header(place.line), repeated) {
                (true, _) => repeated = is_duplicate.then_some(place.line),
                // The section's first text has these keys, not this one, until another section begins.
                (false, Some(header))
                    if is_duplicate && !(header + 1..place.line).any(|line| self.is_header(line)) =>
                {
                    continue;
                }
                (false, _) => {}
            }
            last_line = place.line;
            structural |= self.is_header(place.line);
            broken.sections.push(self.section_of(place.line));
            report.fault(&place, self.explain(error, place.line));
            if ["unclosed", "missing comma", "in array", "inline table"]
                .iter()
                .any(|w| error.message().contains(w))
            {
                return None; // what follows is read in the wrong place
            }
        }
        (!structural).then(|| (table.into_inner(), broken))
    }

    /// The section that a line is in: its name, without those of its subsections, and its lines.
    fn section_of(&self, line: u32) -> (String, Range<u32>) {
        let last = u32::try_from(self.line_starts.len()).unwrap_or(u32::MAX);
        let begin = (1..=line).rev().find(|line| self.is_header(*line)).unwrap_or(1);
        let end = (line + 1..=last).find(|line| self.is_header(*line)).unwrap_or(last + 1);
        let name = self.line(begin).trim().trim_start_matches('[');
        let name = name.split(['.', ']']).next().unwrap_or_default().trim();
        (name.to_owned(), begin..end)
    }

    fn explain(&self, error: &Error, line: u32) -> String {
        let message = error.message();
        let written = self.line(line).trim();
        let section = written.trim_matches(|c| "[] ".contains(c));
        let several = |name| SECTIONS.iter().any(|s| s.name == name && s.times == Times::Several);
        let (key, value) = written.split_once('=').unwrap_or_default();
        let value = value.split('#').next().unwrap_or_default().trim();
        let (key, value) = (key.trim(), value.trim_matches(TYPOGRAPHIC_QUOTES));
        let unquoted =
            message.starts_with("string values must be quoted") || is_text(value) || is_ports(value);
        let mend = if message.starts_with("duplicate key") && written.starts_with('[') {
            match (self.is_key(section), several(section)) {
                (true, _) => format!("; {section} is a section; write [{section}], not {section} = …"),
                (false, true) => format!("; to repeat the section, write [[{section}]] each time"),
                (false, false) => "; the section exists already: merge the two".to_owned(),
            }
        } else if message.starts_with("duplicate key") {
            "; the key is already set in this section".to_owned()
        } else if unquoted && !key.contains(' ') {
            let boolean = value.to_ascii_lowercase();
            // Within a list, the line does not show which value is meant.
            match value.is_empty()
                || value.contains(['"', '\'', '[', '{', '='])
                || !is_ports(value) && value.contains(',')
            {
                _ if boolean == "true" || boolean == "false" => format!("; write {key} = {boolean}"),
                true => "; put the value in quotes: \"…\"".to_owned(),
                false => return format!("TOML: strings need quotes: write {key} = \"{value}\""),
            }
        } else if message.starts_with("invalid unquoted key")
            && !written.contains('=')
            && written.contains(':')
        {
            let (key, value) = written.split_once(':').unwrap_or_default();
            return format!(
                "TOML: between a key and its value is `=`: write {} = {}",
                key.trim(),
                value.trim()
            );
        } else if message.starts_with("unexpected key or value") && value.ends_with([',', ';']) {
            "; remove what follows the value".to_owned()
        } else {
            String::new()
        };
        format!("TOML: {}{mend}", message.replace(", expected literal string", ""))
    }

    /// Whether the line begins a section.
    fn is_header(&self, line: u32) -> bool {
        self.line(line).trim_start().starts_with('[')
    }

    /// Whether the name is a key above all sections.
    fn is_key(&self, name: &str) -> bool {
        let lines = self.text.lines().take_while(|line| !line.trim_start().starts_with('['));
        lines.filter_map(|line| line.split_once('=')).any(|(key, _)| key.trim() == name)
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

/// Quotation marks of word processors and web pages, which TOML does not accept.
const TYPOGRAPHIC_QUOTES: [char; 7] = ['“', '”', '„', '‘', '’', '«', '»'];

/// Whether a value is numbers and ranges, which are a string: `61000-65535`, `80,443`.
fn is_ports(value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_range = |text: &str| text.trim().split('-').count() <= 2 && text.trim().split('-').all(is_number);
    value.contains(['-', ',']) && value.split(',').all(is_range)
}

/// Whether a value that TOML cannot read was meant as a string: a word, an address, a prefix or a duration.
fn is_text(value: &str) -> bool {
    let has_letters = value.contains(|c: char| c.is_ascii_alphabetic());
    let is_word = value.starts_with(|c: char| c.is_ascii_alphabetic()) || has_letters && value.contains(' ');
    let is_address = value.contains([':', '/']) || value.matches('.').count() > 1;
    !value.contains(['"', '\'']) && (is_word || is_address)
}

fn start(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}
