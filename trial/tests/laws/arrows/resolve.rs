//! From names to files: a re-export is followed to the file that defines the item.

use super::module::{Module, Modules};
use std::collections::BTreeMap;

/// One file names what another defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    pub from: String,
    pub to: String,
}

/// How many re-exports are followed for one name.
const STEPS: usize = 16;

/// The arrows between a crate's files, each with the first line that draws it and the path named there.
pub fn arrows(modules: &Modules) -> BTreeMap<Arrow, (usize, String)> {
    let mut found = BTreeMap::new();
    for (at, module) in modules {
        let globs = module.named.iter().filter(|named| !named.path.is_empty()).flat_map(|named| {
            // A bare name may come from a `use …::*`.
            let through = module.globs.iter().map(move |glob| [glob, named.path.as_slice()].concat());
            through.map(move |path| (path, named.line, true))
        });
        let plain = module.named.iter().map(|named| (named.path.clone(), named.line, false));
        for (path, line, only_items) in plain.chain(globs) {
            let Some(to) = file_of(modules, at, &path, only_items, STEPS) else { continue };
            if to != module.file {
                let arrow = Arrow { from: module.file.clone(), to: to.to_owned() };
                found.entry(arrow).or_insert_with(|| (line, path.join("::")));
            }
        }
    }
    found
}

/// The file that defines what `path` names in the module `at`: none for a module, another crate's item or a local name.
fn file_of<'a>(
    modules: &'a Modules,
    at: &[String],
    path: &[String],
    sure: bool,
    steps: usize,
) -> Option<&'a str> {
    let (first, rest) = path.split_first()?;
    let steps = steps.checked_sub(1)?;
    let here = modules.get(at)?;
    match first.as_str() {
        "crate" => inside(modules, Vec::new(), rest, sure, steps),
        "self" => inside(modules, at.to_vec(), rest, sure, steps),
        "super" => inside(modules, at[..at.len().checked_sub(1)?].to_vec(), rest, sure, steps),
        name => {
            let child = [at, &[name.to_owned()]].concat();
            if modules.contains_key(&child) {
                return inside(modules, child, rest, sure, steps);
            }
            // An import draws its arrow by itself; what is named through an imported module draws it here.
            let imported = here.imports.get(name).filter(|path| path.as_slice() != [name.to_owned()])?;
            file_of(modules, at, &[imported, rest].concat(), sure, steps)
        }
    }
}

fn inside<'a>(
    modules: &'a Modules,
    mut at: Vec<String>,
    path: &[String],
    sure: bool,
    steps: usize,
) -> Option<&'a str> {
    let (first, rest) = path.split_first()?;
    if first == "super" {
        at.pop();
        return inside(modules, at, rest, sure, steps);
    }
    let child = [at.as_slice(), std::slice::from_ref(first)].concat();
    if modules.contains_key(&child) {
        return inside(modules, child, rest, sure, steps);
    }
    let module: &Module = modules.get(&at)?;
    if module.items.contains(first) {
        return Some(&module.file);
    }
    if let Some(import) = module.imports.get(first) {
        return file_of(modules, &at, &[import, rest].concat(), sure, steps.checked_sub(1)?);
    }
    let through = module.globs.iter().find_map(|glob| {
        file_of(modules, &at, &[glob.as_slice(), path].concat(), true, steps.checked_sub(1)?)
    });
    through.or((!sure).then_some(module.file.as_str()))
}
