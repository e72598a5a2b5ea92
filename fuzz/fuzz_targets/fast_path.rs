//! libFuzzer's entry point; the target is in `targets/fast_path.rs`.
#![no_main]

#[path = "../targets/fast_path.rs"]
mod target;

use std::panic::{catch_unwind, resume_unwind};

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Err(end) = catch_unwind(|| target::run(octets)) else { return };
    match sixway_trial::why_ignored(end.as_ref()) {
        Some(why) => {
            eprintln!("fast_path: {why}");
            std::process::exit(1);
        }
        None => resume_unwind(end),
    }
});
