//! Errors in the configuration, all together, each with file, line, key, what is wrong and how to fix it.

use std::fmt;
use std::sync::Arc;

/// Where something was written: file, line and key path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, as the operator gave it.
    pub file: Arc<str>,
    /// The line, counted from 1; 0 without a line (a file that cannot be read).
    pub line: u32,
    /// The key's path, with its value where that is short: `nat64.pool = "mian"`.
    pub key: Arc<str>,
}

impl Place {
    /// A whole file.
    pub fn file(file: &str) -> Self {
        Self { file: file.into(), line: 0, key: "".into() }
    }

    /// The key's path, without its value.
    pub(crate) fn path(&self) -> &str {
        self.key.split(" = ").next().unwrap_or_default()
    }

    /// How another fault points here: `line 12` in the same file, `eam.txt:12` in another.
    pub(crate) fn seen_from(&self, other: &Self) -> String {
        match self.file == other.file {
            true => format!("line {}", self.line),
            false => format!("{}:{}", self.file, self.line),
        }
    }
}

/// One remark on the configuration: a fault or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Where.
    pub place: Place,
    /// What is wrong and how to fix it.
    pub message: String,
}

impl Remark {
    fn location(&self) -> String {
        match self.place.line {
            0 => self.place.file.to_string(),
            line => format!("{}:{line}", self.place.file),
        }
    }
}

impl fmt::Display for Remark {
    /// One line, not aligned: `file:line  key  message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ", self.location())?;
        if !self.place.key.is_empty() {
            write!(f, "{}  ", shown(&self.place.key))?;
        }
        f.write_str(&shown(&self.message))
    }
}

/// A text that is safe to show on a terminal: control characters in it may be an attack.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// A warning: something that works but that the operator should know.
pub type Warning = Remark;

/// Keys longer than this do not push the messages of the other lines to the right.
const KEY_COLUMN: usize = 44;

/// More faults than these are counted, not shown.
const MOST_SHOWN: usize = 100;

/// Writes remarks as aligned lines `file:line  key  message`.
///
/// # Errors
/// What the writer says.
pub fn write_aligned(out: &mut dyn fmt::Write, remarks: &[Remark]) -> fmt::Result {
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let first = width(&mut remarks.iter().map(|r| r.location().chars().count()));
    let second = width(
        &mut remarks.iter().map(|r| r.place.key.chars().count()).filter(|length| *length <= KEY_COLUMN),
    );
    for remark in remarks {
        let (location, key) = (remark.location(), shown(&remark.place.key));
        let message = shown(&remark.message);
        match (second, key.is_empty()) {
            (0, true) => writeln!(out, "{location:<first$}  {message}")?,
            (_, _) => writeln!(out, "{location:<first$}  {key:<second$}  {message}")?,
        }
    }
    Ok(())
}

/// Everything that is wrong with a configuration; at least one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Remark>);

impl Faults {
    /// A single fault of a whole file, such as one that cannot be read.
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self(vec![Remark { place: Place::file(file), message: message.into() }])
    }

    /// The faults, in the order of files and lines.
    pub fn remarks(&self) -> &[Remark] {
        &self.0
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..MOST_SHOWN).unwrap_or(&self.0);
        write_aligned(f, shown)?;
        if self.0.len() > shown.len() {
            writeln!(f, "… and {} more", self.0.len() - shown.len())?;
        }
        if self.0.iter().any(|fault| fault.message.starts_with("TOML: ")) {
            f.write_str("Lines that are not valid TOML may hide further errors. ")?;
        }
        match self.0.len() {
            1 => f.write_str("1 error. Nothing was changed."),
            count => write!(f, "{count} errors. Nothing was changed."),
        }
    }
}

impl std::error::Error for Faults {}

/// Faults and warnings as they are found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    faults: Vec<Remark>,
    warnings: Vec<Remark>,
}

impl Report {
    /// Something that keeps the gateway from starting.
    pub fn fault(&mut self, place: &Place, message: impl Into<String>) {
        self.faults.push(Remark { place: place.clone(), message: message.into() });
    }

    /// A warning for the operator.
    pub fn warn(&mut self, place: &Place, message: impl Into<String>) {
        self.warnings.push(Remark { place: place.clone(), message: message.into() });
    }

    /// Takes those faults of another report over that `keeps` wants.
    pub fn take_faults(&mut self, from: Self, keeps: impl Fn(&Place, &str) -> bool) {
        self.faults.extend(from.faults.into_iter().filter(|fault| keeps(&fault.place, &fault.message)));
    }

    /// Whether a fault was found.
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// What was found, ordered by file (the main one first) and line.
    pub fn finish(mut self, main: &str) -> (Vec<Warning>, Option<Faults>) {
        for remarks in [&mut self.faults, &mut self.warnings] {
            remarks.sort_by_key(|r| (&*r.place.file != main, Arc::clone(&r.place.file), r.place.line));
            remarks.dedup();
        }
        let faults = self.has_faults().then_some(Faults(self.faults));
        (self.warnings, faults)
    }
}

/// The candidate that is most like what was written, if one is like it at all. A single letter is like too many.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut letters = written.chars();
    let long_enough = letters.next().is_some() && letters.next().is_some();
    candidates
        .into_iter()
        .filter(|_| long_enough)
        .map(|candidate| (strsim::damerau_levenshtein(written, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 5)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
