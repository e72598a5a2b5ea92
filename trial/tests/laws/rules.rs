//! The rules that look at one file at a time.

use crate::tree::{File, tree};
use std::collections::BTreeSet;
use std::fmt;

/// A place where a law is broken.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    path: String,
    line: usize,
    why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}  {}", self.path, self.line, self.why)
    }
}

/// Says where a file breaks a law.
pub type Rule = fn(&File) -> Vec<Fault>;

fn fault(file: &File, line: usize, why: impl Into<String>) -> Fault {
    Fault { path: file.path.clone(), line, why: why.into() }
}

fn lines_with(file: &File, why: &str, broken: impl Fn(&str) -> bool) -> Vec<Fault> {
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| broken(line))
        .map(|(at, _)| fault(file, at + 1, why))
        .collect()
}

/// At most 700 lines before the unit tests, 900 with them.
pub fn length(file: &File) -> Vec<Fault> {
    if !file.is_rust() {
        return Vec::new();
    }
    let (code, whole) = (file.lines().count(), file.text.lines().count());
    match (code, whole) {
        (701.., _) if !file.is_test() => {
            vec![fault(file, 701, format!("{code} lines; which second idea is in it?"))]
        }
        (_, 901..) => vec![fault(file, 901, format!("{whole} lines; split it by idea"))],
        _ => Vec::new(),
    }
}

/// No file or folder whose name says nothing.
pub fn name(file: &File) -> Vec<Fault> {
    const EMPTY: [&str; 11] =
        ["util", "utils", "common", "types", "helper", "helpers", "misc", "base", "manager", "core", "stuff"];
    let says_nothing = |part: &str| {
        let stem = part.strip_suffix(".rs").unwrap_or(part);
        EMPTY.contains(&stem) || EMPTY.iter().any(|word| stem.ends_with(&format!("_{word}")))
    };
    let parts = file.path.split('/').filter(|part| file.is_rust() && says_nothing(part));
    parts.map(|part| fault(file, 1, format!("the name {part:?} says nothing"))).collect()
}

/// No work is left open in a comment or a macro.
pub fn left_open(file: &File) -> Vec<Fault> {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
    ];
    let is_word = |line: &str, word: &str| {
        line.match_indices(word).any(|(at, _)| {
            let touches = |octet: Option<&u8>| {
                octet.is_some_and(|octet| octet.is_ascii_alphanumeric() || *octet == b'_')
            };
            let octets = line.as_bytes();
            let before = at.checked_sub(1).and_then(|at| octets.get(at));
            !touches(before) && (word.ends_with('(') || !touches(octets.get(at + word.len())))
        })
    };
    lines_with(file, "left open", |line| words.iter().any(|word| is_word(line, word)))
}

/// Unsafe code in `link/`, `fastpath/` and the lab's load generator only.
pub fn unsafe_room(file: &File) -> Vec<Fault> {
    let allowed = ["link/", "fastpath/", "lab/src/load/"].iter().any(|room| file.path.starts_with(room));
    if allowed || !file.is_rust() {
        return Vec::new();
    }
    let starts =
        ["{", "fn ", "impl ", "extern ", "trait "].map(|what| format!("{} {what}", concat!("un", "safe")));
    lines_with(file, "unsafe outside its rooms", |line| {
        starts.iter().any(|start| line.contains(start.as_str()))
    })
}

/// The counters of drops are raised in one place.
pub fn drop_counted(file: &File) -> Vec<Fault> {
    let concerned = file.path.starts_with("dataplane/src/") && !file.is_test();
    if !concerned || file.path == "dataplane/src/counters.rs" {
        return Vec::new();
    }
    lines_with(file, "a drop is counted by `Counters::drop_frames`", |line| {
        line.contains(".dropped[") && line.contains("+=")
    })
}

/// The mechanisms: what lies in their folder, by name, but for what they share.
fn mechanisms() -> BTreeSet<&'static str> {
    let within = tree().iter().filter_map(|file| file.path.strip_prefix("dataplane/src/mechanism/"));
    let names = within.map(|path| path.split(['/', '.']).next().unwrap_or(path));
    names.filter(|name| !SHARED.contains(name)).collect()
}

/// Modules there that are not mechanisms.
const SHARED: &[&str] = &["mod", "table", "contract", "identity", "six_in_four"];

/// A file of `dataplane/src/mechanism/` names no other mechanism's module.
pub fn mechanism_imports(file: &File) -> Vec<Fault> {
    let Some(own) = file.path.strip_prefix("dataplane/src/mechanism/") else { return Vec::new() };
    let own = own.split('/').next().unwrap_or(own);
    let own = own.strip_suffix(".rs").unwrap_or(own);
    if own == "mod" || own == "table" {
        return Vec::new();
    }
    let other = |line: &str| {
        let others = mechanisms().into_iter().filter(|name| *name != own);
        others
            .flat_map(|name| [format!("mechanism::{name}"), format!("super::{name}")])
            .any(|path| line.contains(&path))
    };
    let imports = |line: &str| other(line) && !line.trim_start().starts_with("//");
    lines_with(file, "one mechanism imports another; what both need is a verb", imports)
}

/// The items of a door file (`mod.rs`, `lib.rs`) are `mod` and `use` only.
pub fn door(file: &File) -> Vec<Fault> {
    let is_door =
        file.path.contains("/src/") && (file.path.ends_with("/mod.rs") || file.path.ends_with("/lib.rs"));
    if !is_door || file.is_test() {
        return Vec::new();
    }
    let Ok(parsed) = syn::parse_file(&file.text) else { return vec![fault(file, 1, "is not Rust")] };
    let opens = |item: &syn::Item| matches!(item, syn::Item::Mod(inner) if inner.content.is_none());
    if !parsed.items.iter().any(opens) {
        return Vec::new();
    }
    let door =
        |item: &syn::Item| matches!(item, syn::Item::Mod(_) | syn::Item::Use(_) | syn::Item::ExternCrate(_));
    let logic = parsed.items.iter().filter(|item| !door(item));
    logic
        .map(|item| fault(file, line_of(item), "a door file holds an item; move it to a file with a name"))
        .collect()
}

fn line_of(item: &syn::Item) -> usize {
    use syn::spanned::Spanned;
    item.span().start().line
}

/// No test that is switched off or cannot fail.
pub fn idle_test(file: &File) -> Vec<Fault> {
    let signs = [concat!("#[ig", "nore"), concat!("#![cfg(a", "ny())]"), concat!("assert!(tr", "ue)")];
    let idle = |line: &str| signs.iter().any(|sign| line.trim_start().starts_with(sign));
    if file.is_rust() { lines_with(file, "a test that may not test", idle) } else { Vec::new() }
}

/// No home folder, and no folder of someone's build.
pub fn private_path(file: &File) -> Vec<Fault> {
    let roots = ["home", "root", "Users", "mnt"].map(|root| format!("/{root}/"));
    let starts = |line: &str, root: &str| {
        line.match_indices(root).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '.' && c != '}' && c != '-' && c != '_')
        })
    };
    let build = super::tree::top().join("target").display().to_string();
    let is_private = |line: &str| line.contains(&build) || roots.iter().any(|root| starts(line, root));
    lines_with(file, "a path of somebody's machine", is_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaks(rule: Rule, path: &str, text: &str) -> usize {
        rule(&File::sample(path, text)).len()
    }

    #[test]
    fn a_long_file_is_a_fault_and_its_tests_count_less() {
        assert_eq!(breaks(length, "a/src/x.rs", &"x\n".repeat(700)), 0);
        assert_eq!(breaks(length, "a/src/x.rs", &"x\n".repeat(701)), 1);
        let with_tests = "x\n".repeat(600) + "#[cfg(test)]\n" + &"t\n".repeat(200);
        assert_eq!(breaks(length, "a/src/x.rs", &with_tests), 0);
        assert_eq!(breaks(length, "a/src/x.rs", &(with_tests + &"t\n".repeat(200))), 1);
        assert_eq!(breaks(length, "a/tests/x.rs", &"x\n".repeat(800)), 0);
        assert_eq!(breaks(length, "a/b.md", &"x\n".repeat(2_000)), 0);
    }

    #[test]
    fn names_that_say_nothing_are_faults() {
        for path in ["a/src/utils.rs", "a/src/helpers/x.rs", "a/src/packet_helpers.rs", "a/core/x.rs"] {
            assert_eq!(breaks(name, path, ""), 1, "{path}");
        }
        assert_eq!(breaks(name, "a/src/binding.rs", ""), 0);
        assert_eq!(breaks(name, "a/src/database.rs", ""), 0);
    }

    #[test]
    fn open_ends_are_faults_wherever_they_stand() {
        assert_eq!(breaks(left_open, "a.rs", concat!("// TO", "DO: later\n")), 1);
        assert_eq!(breaks(left_open, "a.md", concat!("FIX", "ME\n")), 1);
        assert_eq!(breaks(left_open, "a.rs", concat!("  to", "do!()\n")), 1);
        assert_eq!(breaks(left_open, "a.rs", concat!("AUTO", "DOG\n")), 0);
    }

    #[test]
    fn unsafe_is_a_fault_outside_its_rooms() {
        let block = concat!("let x = un", "safe { y() };");
        assert_eq!(breaks(unsafe_room, "gateway/src/x.rs", block), 1);
        assert_eq!(breaks(unsafe_room, "lab/src/demo.rs", block), 1);
        assert_eq!(breaks(unsafe_room, "link/src/tun.rs", block), 0);
        assert_eq!(breaks(unsafe_room, "lab/src/load/send.rs", block), 0);
        assert_eq!(breaks(unsafe_room, "gateway/src/x.rs", "// unsafe code is forbidden"), 0);
    }

    #[test]
    fn a_drop_that_is_counted_elsewhere_is_a_fault() {
        let counted = "counters.dropped[reason as usize] += 1;";
        assert_eq!(breaks(drop_counted, "dataplane/src/rewrite/mod.rs", counted), 1);
        assert_eq!(breaks(drop_counted, "dataplane/src/engine/mod.rs", counted), 1);
        assert_eq!(breaks(drop_counted, "dataplane/src/counters.rs", counted), 0);
        assert_eq!(breaks(drop_counted, "dataplane/src/rewrite/mod.rs", "counters.dropped[0] == 1"), 0);
    }

    #[test]
    fn a_mechanism_that_imports_another_is_a_fault() {
        assert!(["nat64", "siit", "npt66", "isatap"].iter().all(|name| mechanisms().contains(name)));
        let siit = "dataplane/src/mechanism/siit/mod.rs";
        assert_eq!(breaks(mechanism_imports, siit, "use crate::mechanism::nat64::Nat64;"), 1);
        assert_eq!(breaks(mechanism_imports, siit, "use super::nat64::Nat64;"), 1);
        assert_eq!(breaks(mechanism_imports, siit, "use crate::mechanism::siit::Pool;"), 0);
        assert_eq!(breaks(mechanism_imports, siit, "//! beside [`crate::mechanism::nat64`]"), 0);
        assert_eq!(
            breaks(mechanism_imports, "dataplane/src/engine.rs", "use crate::mechanism::nat64::Nat64;"),
            0
        );
    }

    #[test]
    fn a_door_with_an_item_is_a_fault() {
        assert_eq!(breaks(door, "wire/src/x/mod.rs", "//! x\nmod a;\npub use a::A;\n"), 0);
        assert_eq!(breaks(door, "wire/src/x/mod.rs", "mod a;\npub struct B;\nfn c() {}\n"), 2);
        assert_eq!(breaks(door, "wire/src/x.rs", "pub struct B;\n"), 0);
        assert_eq!(breaks(door, "wire/src/lib.rs", "pub struct B;\n"), 0);
    }

    #[test]
    fn a_test_that_is_switched_off_is_a_fault() {
        assert_eq!(breaks(idle_test, "a/tests/x.rs", concat!("    #[ig", "nore]\n")), 1);
        assert_eq!(breaks(idle_test, "a/tests/x.rs", concat!("assert!(tr", "ue);\n")), 1);
        assert_eq!(breaks(idle_test, "a/tests/x.rs", "#[test]\n"), 0);
    }

    #[test]
    fn a_home_folder_is_a_fault() {
        assert_eq!(breaks(private_path, "a.md", &format!("cd /{}/x/sixway", "home")), 1);
        assert_eq!(breaks(private_path, "a.rs", &format!("\"/{}/x\"", "root")), 1);
        let build = crate::tree::top().join("target/guest").display().to_string();
        assert_eq!(breaks(private_path, "a.html", &format!("insmod {build}/a.ko")), 1);
        assert_eq!(breaks(private_path, "a.md", "the /run/netns folder, www/root/x"), 0);
    }
}
