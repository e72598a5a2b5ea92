//! The corpus of the programs' fuzzer and blind mutations of it, for a short time in every test run; `fuzz/run` goes on from there.

#[path = "../../fuzz/targets/fast_path.rs"]
mod fast_path;
#[path = "../../fuzz/targets/mutation.rs"]
mod mutation;

use std::path::Path;

/// Those whose name says a protocol have nothing the matter with them.
#[test]
fn the_corpus_is_forwarded_where_it_should_be() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/fast_path");
    for file in std::fs::read_dir(corpus).unwrap() {
        let path = file.unwrap().path();
        let forwarded = fast_path::is_forwarded(&std::fs::read(&path).unwrap());
        let is_plain = path.to_string_lossy().contains("_protocol_");
        assert!(!is_plain || forwarded == Some(true), "{}", path.display());
    }
}

#[test]
fn any_frame_is_forwarded_as_the_engine_would_or_left_alone() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/fast_path");
    // Where the kernel does not let us, it is found out here.
    fast_path::run(&[0, 0]);
    mutation::replay(&corpus, 30_000, fast_path::run);
}
