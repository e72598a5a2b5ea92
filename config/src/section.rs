//! One section as it was written, read key by key against the schema.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::document::Document;
use crate::fault::{Place, Report, did_you_mean};
use crate::schema::{Absent, Key, SECTIONS, Section, Times};
use crate::text::with_article;
use crate::value::{Held, Value};

/// A table of the document that is a section of the schema.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    document: &'a Document,
    schema: &'static Section,
    /// `None`: the section was not written; every key is absent.
    table: Option<&'a DeTable<'a>>,
    path: String,
    place: Place,
}

impl<'a> Reader<'a> {
    /// Reads a table; reports the keys that the schema does not have.
    pub fn new(
        document: &'a Document,
        schema: &'static Section,
        value: &'a Spanned<DeValue<'a>>,
        path: String,
        report: &mut Report,
    ) -> Option<Self> {
        let place = document.place(value.span(), &path);
        let Some(table) = value.get_ref().as_table() else {
            let name = schema.name;
            let header = match schema.times {
                Times::Once => format!("[{name}]"),
                Times::Several => format!("[[{name}]]"),
            };
            let kind = with_article(value.get_ref().type_str());
            let what = match name.contains('.') {
                false => format!("{name} is a section; write {header}, not {name} = …"),
                true => format!("must be a table, not {kind}; write {header}, with its keys below"),
            };
            report.fault(&place, what);
            return None;
        };
        for (key, _) in table {
            if schema.key(key.get_ref()).is_none() {
                let place = document.place(key.span(), &format!("{path}.{}", key.get_ref()));
                report.fault(&place, unknown(key.get_ref(), schema));
            }
        }
        Some(Self { document, schema, table: Some(table), path, place })
    }

    /// A section that was not written: defaults throughout.
    pub fn absent(document: &'a Document, schema: &'static Section) -> Self {
        let place = Place { line: 0, ..document.place(0..0, schema.name) };
        Self { document, schema, table: None, path: schema.name.to_owned(), place }
    }

    /// Where the section begins.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Calls the section by a better name in faults (`pool.main`).
    pub fn rename(&mut self, path: String) {
        self.place.key = path.as_str().into();
        self.path = path;
    }

    /// The value of a key: what was written, else the default. A required key that is missing is reported.
    pub fn value(&self, name: &str, report: &mut Report) -> Option<Value<'a>> {
        debug_assert!(self.schema.key(name).is_some(), "{name} is not in the schema of {}", self.schema.name);
        let key = self.schema.key(name)?;
        let path = format!("{}.{name}", self.path);
        if let Some(written) = self.table.and_then(|table| table.get(name)) {
            return Some(Value::written(self.document, key, path, written));
        }
        match key.absent {
            Absent::Default(literal) => {
                let place = Place { key: path.into(), ..self.place.clone() };
                let value = DeValue::parse(literal).ok()?.into_inner();
                Some(Value { document: self.document, key, place, held: Held::Default(value) })
            }
            Absent::Means(_) => None,
            // This is reported for the misspelled key.
            Absent::Fault | Absent::FaultSuch(_) if self.is_misspelt(name) => None,
            Absent::Fault | Absent::FaultSuch(_) => {
                let place = Place { key: path.into(), ..self.place.clone() };
                report.fault(&place, format!("is missing; write {name} = {}", key.example()));
                None
            }
        }
    }

    /// Whether this word is written for a key, whatever its kind.
    pub fn is_word(&self, name: &str, word: &str) -> bool {
        let written = self.table.and_then(|table| table.get(name));
        written.is_some_and(|written| written.get_ref().as_str() == Some(word))
    }

    /// Whether a key was meant to be one of these.
    pub fn misspells(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is_misspelt(name))
    }

    fn is_misspelt(&self, name: &str) -> bool {
        let keys = self.table.into_iter().flat_map(|table| table.iter().map(|(key, _)| &**key.get_ref()));
        let mut unknown = keys.filter(|key| self.schema.key(key).is_none());
        unknown.any(|key| did_you_mean(key, self.schema.keys().map(|key| key.name)) == Some(name))
    }

    /// A section below this one that was not written: defaults throughout.
    pub fn child(&self, name: &str, schema: &'static Section) -> Reader<'a> {
        let path = format!("{}.{name}", self.path);
        let place = Place { key: path.as_str().into(), ..self.place.clone() };
        Reader { document: self.document, schema, table: None, path, place }
    }

    /// The sections written under a key of kind `Table` or `Tables`.
    pub fn sections(&self, name: &str, schema: &'static Section, report: &mut Report) -> Vec<Reader<'a>> {
        debug_assert!(self.schema.key(name).is_some(), "{name} is not in the schema of {}", self.schema.name);
        let Some(written) = self.table.and_then(|table| table.get(name)) else { return Vec::new() };
        let path = format!("{}.{name}", self.path);
        readers(self.document, schema, written, &path, report)
    }
}

/// A table, or a list of tables, as readers; the items of a list are called `path[0]`, `path[1]`, ….
pub(crate) fn readers<'a>(
    document: &'a Document,
    schema: &'static Section,
    written: &'a Spanned<DeValue<'a>>,
    path: &str,
    report: &mut Report,
) -> Vec<Reader<'a>> {
    match written.get_ref().as_array() {
        Some(items) if items.len() > 1 && schema.times == Times::Once => {
            report.fault(&document.place(written.span(), path), format!("[{path}] can be written only once"));
            Vec::new()
        }
        Some(items) => items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| {
                // A section that is alone needs no number; a row of a list does.
                let alone = items.len() == 1 && !path.contains('.');
                let path = if alone { path.to_owned() } else { format!("{path}[{index}]") };
                Reader::new(document, schema, item, path, report)
            })
            .collect(),
        None => Reader::new(document, schema, written, path.to_owned(), report).into_iter().collect(),
    }
}

/// The message about a key that its section does not have.
fn unknown(written: &str, schema: &Section) -> String {
    let other = SECTIONS.iter().find(|section| section.key(written).is_some());
    let plurals = [format!("{written}s"), format!("{written}es")];
    let plural = schema.keys().map(|key| key.name).find(|key| plurals.iter().any(|plural| plural == key));
    let near = plural.or_else(|| did_you_mean(written, schema.keys().map(|key| key.name)));
    match (other.filter(|_| plural.is_none()), near) {
        (Some(other), _) => format!("unknown here; `{written}` belongs to [{}]", other.name),
        (None, Some(near)) => format!("unknown; did you mean `{near}`?"),
        (None, None) => format!("unknown; [{}] has {}", schema.name, names(schema.keys())),
    }
}

fn names(keys: impl Iterator<Item = &'static Key>) -> String {
    keys.map(|key| key.name).collect::<Vec<_>>().join(", ")
}

/// The message about a section that the schema does not have.
pub(crate) fn unknown_section(written: &str) -> String {
    let top = || SECTIONS.iter().map(|section| section.name).filter(|name| !name.contains('.'));
    let below = SECTIONS.iter().find(|section| section.key(written).is_some());
    let lower = written.to_ascii_lowercase();
    match (below, did_you_mean(&lower, top())) {
        (Some(section), _) => format!("unknown here; `{written}` belongs below [{}]", section.name),
        (None, Some(near)) => format!("unknown; did you mean [{near}]?"),
        (None, None) => {
            let known: Vec<String> = top().map(|name| format!("[{name}]")).collect();
            format!("unknown; the sections are {}", known.join(", "))
        }
    }
}

/// The place of a key as it was written, else of its section.
pub(crate) fn place_of(written: &Reader, name: &str) -> Place {
    written.value(name, &mut Report::default()).map_or_else(|| written.place().clone(), |value| value.place)
}
