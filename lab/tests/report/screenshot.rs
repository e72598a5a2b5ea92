//! The page in a browser, at the width of a telephone and of a desk's screen, bright and dark: nothing overlaps, nothing is cut off, all of it can
//! be read. Fonts differ from machine to machine, so pictures are kept for people, and geometry is what is tested.

use crate::browser::{self, View, document, folder, picture};
use crate::sample::page;
use std::path::PathBuf;
use std::sync::OnceLock;

/// What looks for faults in the page, and leaves them in an attribute of its body.
const INSPECTOR: &str = include_str!("inspect.js");

const VIEWS: [View; 4] = [
    View { width: 400, is_dark: false },
    View { width: 400, is_dark: true },
    View { width: 1_400, is_dark: false },
    View { width: 1_400, is_dark: true },
];

/// The page with the inspector in it.
fn inspected() -> PathBuf {
    let file = folder().join("inspected.html");
    let page = page().replace("</body>", &format!("<script>{INSPECTOR}</script></body>"));
    std::fs::write(&file, page).expect("the page can be written");
    file
}

/// The inspected documents; those of all views are the same for all tests.
fn documents() -> &'static [(View, String)] {
    static DOCUMENTS: OnceLock<Vec<(View, String)>> = OnceLock::new();
    browser::must_be_there();
    DOCUMENTS.get_or_init(|| {
        let file = inspected();
        VIEWS.map(|view| (view, document(&file, view))).into()
    })
}

/// What the inspector found, by kind.
fn faults(document: &str, kind: &str) -> Vec<String> {
    let found = document.split("data-faults=\"").nth(1).and_then(|rest| rest.split('"').next());
    let found = found.unwrap_or_else(|| panic!("the inspector did not run: {document}"));
    let looked_at = document.split("data-looked-at=\"").nth(1).and_then(|rest| rest.split('"').next());
    let looked_at: u32 = looked_at.and_then(|it| it.parse().ok()).unwrap_or(0);
    assert!(looked_at > 300, "the inspector looked at {looked_at} elements only");
    found.split("; ").filter(|fault| fault.starts_with(kind)).map(str::to_owned).collect()
}

fn nothing_is(kind: &str) {
    for (view, document) in documents() {
        let faults = faults(document, kind);
        assert!(faults.is_empty(), "{}: {faults:#?}", view.name());
    }
}

#[test]
fn no_text_of_a_plot_overlaps_at_400_pixels() {
    nothing_is("overlap");
}

#[test]
fn tables_scroll_in_their_box_at_400_pixels() {
    nothing_is("wide");
}

#[test]
fn no_text_of_a_figure_is_cut_off_or_too_small() {
    nothing_is("cut");
    nothing_is("small");
}

#[test]
fn all_text_has_contrast_in_light_and_dark() {
    nothing_is("contrast");
}

#[test]
fn pages_can_be_looked_at() {
    let file = folder().join("page.html");
    std::fs::write(&file, page()).expect("the page can be written");
    for view in VIEWS {
        let picture = std::fs::read(picture(&file, view, 3_200)).expect("there is a picture");
        assert_eq!(picture.get(1..4), Some(&b"PNG"[..]));
        let width = picture.get(16..20).and_then(|octets| octets.try_into().ok()).map(u32::from_be_bytes);
        assert_eq!(width, Some(view.width));
        assert!(picture.len() > 30_000, "{} octets are an empty page", picture.len());
    }
}
