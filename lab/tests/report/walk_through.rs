//! The walk-through for those who add a device or an experiment: its code is that of files which a test compiles and runs.

use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Rust code of a page, block by block.
fn blocks(page: &str) -> Vec<String> {
    let blocks = page.split("```rust\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next().map(str::to_owned)).collect()
}

/// `BLESS=1` writes the files' code into the page.
#[test]
fn the_walk_through_is_the_compiled_file() {
    let page = read("../docs/lab-extending.md");
    let files = ["device", "experiment"]
        .map(|name| read(&format!("tests/interop/experiments/walk_through/{name}.rs")));
    if std::env::var_os("BLESS").is_some() {
        let mut blessed = page.clone();
        for (old, new) in blocks(&page).iter().zip(&files) {
            blessed = blessed.replacen(&format!("```rust\n{old}```"), &format!("```rust\n{new}```"), 1);
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab-extending.md");
        std::fs::write(path, blessed).expect("the page can be written");
        return;
    }
    assert_eq!(blocks(&page), files, "BLESS=1 cargo test -p sixway-lab --test report walk_through");
    for file in &files {
        let lines = file.lines().count();
        assert!(lines < 100, "{lines} lines");
    }
}
