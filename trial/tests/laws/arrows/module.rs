//! A crate's modules, read from its files: what each defines, imports and names.

use super::paths::{Named, named};
use crate::tree::File;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Item, UseTree};

/// A module: a file, or a `mod x { … }` inside one.
#[derive(Default)]
pub struct Module {
    /// The file that holds it.
    pub file: String,
    /// Items that it defines.
    pub items: BTreeSet<String>,
    /// Names that it imports or re-exports, and their paths.
    pub imports: BTreeMap<String, Vec<String>>,
    /// Modules of which it imports all.
    pub globs: Vec<Vec<String>>,
    /// What its code names.
    pub named: Vec<Named>,
}

/// The modules of a crate, by path from its root.
pub type Modules = BTreeMap<Vec<String>, Module>;

/// The modules of the crate in `folder`, its unit tests left out.
///
/// # Panics
/// If a file is not Rust.
pub fn modules(files: &[File], folder: &str) -> Modules {
    let source = format!("{folder}/src/");
    let mut modules = Modules::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some(path) = file.path.strip_prefix(&source) else { continue };
        let Some(path) = path_of(path) else { continue };
        let parsed = syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path));
        read(&mut modules, &file.path, path, &parsed.items);
    }
    modules
}

/// A module's path by its file; none for a binary, which is a crate of its own.
fn path_of(file: &str) -> Option<Vec<String>> {
    let file = file.strip_suffix(".rs")?;
    if file.starts_with("bin/") || file == "main" {
        return None;
    }
    let mut path: Vec<_> = file.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "mod" || last == "lib") {
        path.pop();
    }
    Some(path)
}

fn read(modules: &mut Modules, file: &str, path: Vec<String>, items: &[Item]) {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    for item in items.iter().filter(|item| !is_for_tests(item)) {
        match item {
            Item::Use(import) => {
                let mut flat = Vec::new();
                flatten(&import.tree, &mut Vec::new(), &mut flat);
                for (name, path) in flat {
                    match name {
                        Some(name) => drop(module.imports.insert(name, path.clone())),
                        None => module.globs.push(path.clone()),
                    }
                    let line = import.use_token.span.start().line;
                    module.named.push(Named { path, line });
                }
            }
            Item::Mod(inner) => {
                if let Some((_, items)) = &inner.content {
                    let path = [path.clone(), vec![inner.ident.to_string()]].concat();
                    read(modules, file, path, items);
                }
            }
            _ => {
                module.items.extend(name_of(item));
                module.named.extend(named(item));
            }
        }
    }
    modules.insert(path, module);
}

/// The names that a `use` brings, with the paths; `*` has no name.
fn flatten(tree: &UseTree, path: &mut Vec<String>, flat: &mut Vec<(Option<String>, Vec<String>)>) {
    let with = |path: &[String], last: &syn::Ident| [path, &[last.to_string()]].concat();
    let of_module = |path: &[String], last: &syn::Ident| match last == "self" {
        true => path.to_vec(),
        false => with(path, last),
    };
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, flat);
            path.pop();
        }
        UseTree::Name(name) => {
            let path = of_module(path, &name.ident);
            flat.push((path.last().cloned(), path));
        }
        UseTree::Rename(name) => flat.push((Some(name.rename.to_string()), of_module(path, &name.ident))),
        UseTree::Glob(_) => flat.push((None, path.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, flat)),
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let said = list.tokens.to_string();
            list.path.is_ident("cfg") && said.contains("test") && !said.contains("not")
        }
        _ => false,
    })
}
