//! `docs/configuration.md` compared with the code: its tables are made from the list of keys, and every sample is a good configuration.
//! `BLESS=1 cargo test -p sixway --test all configuration_page` writes what is made.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sixway::config::{Config, HostFacts, tables};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn page() -> String {
    std::fs::read_to_string(docs().join("configuration.md")).expect("the page is there")
}

/// Compares a file with what it should be, or writes it.
#[track_caller]
fn held_together(file: &Path, made: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, made).expect("the page can be written");
    }
    let written = std::fs::read_to_string(file).unwrap_or_default();
    let what = "is not what the code says; BLESS=1 cargo test -p sixway --test all configuration_page";
    assert!(written == made, "{} {what}", file.display());
}

#[test]
fn the_tables_of_keys_are_made_from_the_code() {
    let mut made = page();
    for (section, table) in tables() {
        let from = format!("<!-- keys: {section} -->\n");
        let (before, rest) = made.split_once(&from).unwrap_or_else(|| panic!("the page has no {from}"));
        let (_, after) = rest.split_once("<!-- end -->").unwrap();
        made = format!("{before}{from}{table}<!-- end -->{after}");
    }
    assert_eq!(made.matches("<!-- keys: ").count(), tables().len(), "a table of a section that is no more");
    held_together(&docs().join("configuration.md"), &made);
}

/// The files that samples name: those in PEM hold a certificate and its key, others are empty.
fn some_file(path: &Path) -> io::Result<String> {
    static PEM: LazyLock<String> = LazyLock::new(|| {
        let made =
            rcgen::generate_simple_self_signed(["dns.example".to_owned()]).expect("a certificate is made");
        made.cert.pem() + &made.signing_key.serialize_pem()
    });
    let is_pem = path.extension().is_some_and(|extension| extension == "pem");
    Ok(if is_pem { PEM.clone() } else { String::new() })
}

#[track_caller]
fn good(name: &str, text: &str) {
    let parse = |text: &str| match Config::parse(name, text, &HostFacts::default(), &mut some_file) {
        Ok((config, _)) => config,
        Err(faults) => panic!("{faults}\nin:\n{text}"),
    };
    let config = parse(text);
    // `sixway show config` prints it like this.
    let printed = config.to_string();
    assert_eq!(parse(&printed), config, "{name}: what is printed is another configuration:\n{printed}");
}

#[test]
fn every_sample_of_the_page_is_a_good_configuration() {
    let page = page();
    let samples: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(samples.len() >= 9, "{} samples", samples.len());
    for sample in samples {
        good("configuration.md", sample);
    }
}

#[test]
fn every_example_is_a_good_configuration() {
    let files: Vec<PathBuf> =
        std::fs::read_dir(docs().join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3);
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "toml")) {
        good(&file.to_string_lossy(), &std::fs::read_to_string(file).unwrap());
    }
}

#[test]
fn every_sample_of_the_other_pages_is_a_good_configuration() {
    let mechanisms = std::fs::read_dir(docs().join("mechanisms")).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<PathBuf> =
        mechanisms.chain([docs().join("../README.md"), docs().join("operations.md")]).collect();
    assert!(pages.len() >= 5);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for sample in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            good(&page.to_string_lossy(), sample);
        }
    }
}
