//! The files of the tree, read once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A text file, its path counted from the top of the tree.
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    /// A sample, to try a rule on.
    pub fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The lines before the unit tests, numbered from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]"))
            .enumerate()
            .map(|(at, line)| (at + 1, line))
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file holds tests only.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs") || self.path.starts_with("fuzz/")
    }
}

/// Top of the tree.
pub fn top() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("this crate is a folder of the tree").to_owned()
}

/// Every text file that is part of the project.
pub fn tree() -> &'static [File] {
    static TREE: OnceLock<Vec<File>> = OnceLock::new();
    TREE.get_or_init(|| {
        let mut files = Vec::new();
        collect(&top(), &top(), &mut files);
        files
    })
}

fn collect(top: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the tree can be read").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", ".git", "corpus", "artifacts"].contains(&name.as_str()) {
                collect(top, &path, files);
            }
        } else if name != "Cargo.lock"
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let path = path.strip_prefix(top).expect("it lies in the tree").to_string_lossy().into_owned();
            files.push(File { path, text });
        }
    }
}
