//! A browser without a window.

use sixway_lab::programs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const PROGRAM: &str = "chromium-headless-shell";

/// One at a time: a browser has several processes.
static ALONE: Mutex<()> = Mutex::new(());

/// How a page is shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub width: u32,
    pub is_dark: bool,
}

impl View {
    pub fn name(self) -> String {
        format!("{}-{}", self.width, if self.is_dark { "dark" } else { "light" })
    }
}

/// The folder of what tests leave: pages and pictures.
pub fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).expect("a folder for pages");
    folder
}

/// Ends a test that has no browser.
pub fn must_be_there() -> PathBuf {
    match programs::require(PROGRAM) {
        Ok(program) => program,
        Err(failure) => sixway_trial::ignore(failure),
    }
}

/// The document after its scripts have run.
pub fn document(page: &Path, view: View) -> String {
    show(page, view, &["--dump-dom".to_owned()])
}

/// A picture of the page.
pub fn picture(page: &Path, view: View, height: u32) -> PathBuf {
    let file = folder().join(format!("{}.png", view.name()));
    std::fs::remove_file(&file).ok();
    show_high(page, view, height, &[format!("--screenshot={}", file.display())]);
    file
}

fn show(page: &Path, view: View, arguments: &[String]) -> String {
    show_high(page, view, 1_000, arguments)
}

fn show_high(page: &Path, view: View, height: u32, arguments: &[String]) -> String {
    let program = must_be_there();
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let profile = folder().join(format!("profile-{}", std::process::id()));
    let scheme = u8::from(!view.is_dark);
    let done = Command::new(program)
        .args(["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},{height}", view.width))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    std::fs::remove_dir_all(&profile).ok();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}
