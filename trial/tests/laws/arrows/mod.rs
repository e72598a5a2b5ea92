//! Arrows between the files of a crate: which file names what another file defines. They point down, without a cycle: neither of
//! files, nor of the files and folders within one folder. A re-export is followed to the file that defines the item, so a door file
//! (`mod.rs`, `lib.rs`) takes part only by what it defines itself.

mod circles;
mod module;
mod paths;
mod resolve;

use crate::tree::{File, tree};
use circles::circles;
use resolve::{Arrow, arrows};
use std::collections::{BTreeMap, BTreeSet};

/// The crates whose files are read, by folder.
const CRATES: [&str; 10] =
    ["wire", "dataplane", "dnssec", "control", "link", "dns64", "fastpath", "config", "gateway", "lab"];

/// The folders that hold one of these files, at any depth.
fn folders<'a>(files: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for file in files {
        let mut rest = file;
        while let Some((folder, _)) = rest.rsplit_once('/') {
            folders.insert(folder);
            rest = folder;
        }
    }
    folders
}

/// The file or folder of `folder` that holds `file`.
fn child<'a>(folder: &str, file: &'a str) -> Option<&'a str> {
    let rest = file.strip_prefix(folder)?.strip_prefix('/')?;
    let name = rest.split('/').next()?;
    Some(name.strip_suffix(".rs").unwrap_or(name))
}

/// The cycles of one crate: a line for each arrow in one.
fn faults(files: &[File], crate_folder: &str) -> Vec<String> {
    let found: BTreeMap<Arrow, (usize, String)> = arrows(&module::modules(files, crate_folder));
    let mut faults = Vec::new();
    // A file `x.rs` and its own folder `x/` are one node below.
    let named = |arrow: &Arrow| (arrow.from.clone(), arrow.to.clone());
    for circle in circles(&found.keys().map(named).collect()) {
        let members: Vec<_> = circle.iter().map(String::as_str).collect();
        faults.push(format!("circle of files {}", members.join(", ")));
    }
    for folder in folders(found.keys().flat_map(|arrow| [arrow.from.as_str(), arrow.to.as_str()])) {
        let between = |arrow: &Arrow| {
            let (from, to) = (child(folder, &arrow.from)?, child(folder, &arrow.to)?);
            (from != to).then(|| (from.to_owned(), to.to_owned()))
        };
        for circle in circles(&found.keys().filter_map(between).collect()) {
            let members: Vec<_> = circle.iter().map(String::as_str).collect();
            faults.push(format!("{folder}: circle of {}", members.join(", ")));
            for (arrow, (line, path)) in &found {
                if let Some((from, to)) = between(arrow)
                    && circle.contains(&from)
                    && circle.contains(&to)
                {
                    faults.push(format!("    {from} -> {to}  {}:{line}  {path}", arrow.from));
                }
            }
        }
    }
    faults
}

#[test]
fn arrows_between_files_point_down() {
    let faults: Vec<_> = CRATES.iter().flat_map(|folder| faults(tree(), folder)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Prints the cycles of the crate in the folder `ARROWS`, for work on it: `ARROWS=lab cargo test … arrows_of -- --nocapture`.
#[test]
fn arrows_of_one_crate() {
    let Some(folder) = std::env::var("ARROWS").ok() else { return };
    let faults = faults(tree(), &folder);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(name, text)| File::sample(&format!("a/src/{name}"), text)).collect();
        let circles = faults(&files, "a").into_iter().filter(|line| !line.starts_with(' '));
        circles.collect()
    }

    const X_AND_Y: [&str; 2] = ["circle of files a/src/x.rs, a/src/y.rs", "a/src: circle of x, y"];

    #[test]
    fn two_files_that_name_each_other_are_a_circle() {
        let x = ("x.rs", "use crate::y::Y; pub struct X;");
        assert_eq!(sample(&[x, ("y.rs", "use super::x::X; pub struct Y;")]), X_AND_Y);
        assert_eq!(sample(&[x, ("y.rs", "pub struct Y;")]), Vec::<String>::new());
    }

    #[test]
    fn inline_paths_and_macros_draw_arrows() {
        let x = ("x.rs", "pub const X: u8 = 1; fn f() { crate::y::g(); }");
        for text in [
            "pub fn g() -> u8 { crate::x::X }",
            "pub fn g() { println!(\"{}\", crate::x::X) }",
            "use crate::x; pub fn g() -> u8 { x::X }",
            "use crate::x::*; pub fn g() -> u8 { X }",
        ] {
            assert_eq!(sample(&[x, ("y.rs", text)]), X_AND_Y, "{text}");
        }
    }

    #[test]
    fn a_reexport_is_followed_and_a_door_with_an_item_takes_part() {
        let door = ("x/mod.rs", "mod y; pub use y::Y; mod z;");
        let z = ("x/z.rs", "use super::Y;");
        assert_eq!(sample(&[door, ("x/y.rs", "pub struct Y;"), z]), Vec::<String>::new());
        let with_item = ("x/mod.rs", "mod y; pub struct X(y::Y);");
        let y = ("x/y.rs", "use super::X; pub struct Y;");
        assert!(sample(&[with_item, y]).contains(&"a/src/x: circle of mod, y".to_owned()));
    }

    #[test]
    fn a_file_and_its_own_folder_are_not_a_door() {
        let files = [("x.rs", "mod y; pub struct X(y::Y);"), ("x/y.rs", "use super::X; pub struct Y;")];
        assert_eq!(sample(&files), ["circle of files a/src/x.rs, a/src/x/y.rs"]);
    }

    #[test]
    fn folders_form_a_circle_where_no_files_do() {
        let files = [
            ("x/mod.rs", "mod a; mod d;"),
            ("y/mod.rs", "mod b; mod c;"),
            ("x/a.rs", "use crate::y::b::B;"),
            ("y/b.rs", "pub struct B;"),
            ("y/c.rs", "use crate::x::d::D;"),
            ("x/d.rs", "pub struct D;"),
        ];
        assert_eq!(sample(&files), ["a/src: circle of x, y"]);
    }

    #[test]
    fn tests_and_visibilities_draw_no_arrow() {
        let x = ("x.rs", "use crate::y::Y; pub struct X;");
        let y = "pub(in crate::x) struct Y; #[cfg(test)] mod tests { use crate::x::X; }";
        assert_eq!(sample(&[x, ("y.rs", y)]), Vec::<String>::new());
        assert_eq!(
            sample(&[x, ("y.rs", "pub struct Y;"), ("y/tests.rs", "use crate::x::X;")]),
            Vec::<String>::new()
        );
    }
}
