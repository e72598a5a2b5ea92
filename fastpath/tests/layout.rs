//! The structures in Rust are those that clang reads in the headers, and the hash is the programs'.

use sixway_dataplane::mechanism::table::Kind;
use sixway_fastpath::layout::*;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// What a program in C that includes the headers prints: `printf` is its body.
fn c_program(name: &str, body: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    let text = format!(
        "#define HOOK_TC 1\n#include <stddef.h>\n#include \"flow.h\"\n#include \"rules.h\"\n#include \"eam.h\"\n\
         int printf(const char *, ...);\nint main(void)\n{{\n{body}\treturn 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let output = Command::new(clang)
        .args(["-w", "-O1", "-I", headers, "-I", env!("OUT_DIR"), "-o"])
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap()
}

/// One structure: what the C program is to print about it, and what it has to say.
fn compare(body: &mut String, wanted: &mut String, name: &str, size: usize, fields: &[(&str, usize, usize)]) {
    writeln!(body, "\tprintf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
    writeln!(wanted, "{name} {size}").unwrap();
    for (field, offset, octets) in fields {
        writeln!(
            body,
            "\tprintf(\"{name}.{field} %zu %zu\\n\", offsetof(struct {name}, {field}), sizeof(((struct {name} *)0)->{field}));"
        )
        .unwrap();
        writeln!(wanted, "{name}.{field} {offset} {octets}").unwrap();
    }
    let sum: usize = fields.iter().map(|(_, _, octets)| octets).sum();
    assert_eq!(sum, size, "{name} has padding, or fields that are not named");
}

#[test]
fn every_structure_lies_in_memory_as_in_c() {
    let (mut body, mut wanted) = (String::new(), String::new());
    macro_rules! compare_all {
        ($($type:ident $name:literal,)+) => {
            $(compare(&mut body, &mut wanted, $name, size_of::<$type>(), &$type::fields());)+
        };
    }
    compare_all! {
        Flow "flow", Bucket "bucket", Control "control", NextHop "next_hop", Device "device", Translator "translator",
        Pool4 "pool4", Eam "eam", Counter "counter", Rule6 "rule6", Tunnel "tunnel", Own "own", Prefix6 "prefix6", Network4 "network4",
        Port "port", Config "config",
    }
    assert_eq!(c_program("structures", &body), wanted);
}

#[test]
fn every_mechanism_has_its_number_in_the_programs() {
    let (mut body, mut wanted) = (String::new(), String::new());
    for kind in Kind::ALL {
        let name = kind.name().to_uppercase();
        writeln!(body, "\tprintf(\"{name} %d\\n\", KIND_{name});").unwrap();
        writeln!(wanted, "{name} {}", kind.number()).unwrap();
    }
    assert_eq!(c_program("kinds", &body), wanted);
}

#[test]
fn every_number_is_that_of_the_headers() {
    let (mut body, mut wanted) = (String::new(), String::new());
    macro_rules! compare_all {
        ($($name:ident)+) => {$(
            writeln!(body, "\tprintf(\"{0} %llu\\n\", (unsigned long long){0});", stringify!($name)).unwrap();
            writeln!(wanted, "{} {}", stringify!($name), u64::from($name)).unwrap();
        )+};
    }
    macro_rules! compare_sizes {
        ($($name:ident)+) => {$(
            writeln!(body, "\tprintf(\"{0} %llu\\n\", (unsigned long long){0});", stringify!($name)).unwrap();
            writeln!(wanted, "{} {}", stringify!($name), $name as u64).unwrap();
        )+};
    }
    compare_all! {
        MAGIC LAYOUT_VERSION TICK_SHIFT AWAY_TICKS KIND_NONE KIND_NAT64 KIND_NAT44 KIND_SIIT KIND_SIX_TO_FOUR KIND_SIX_RD KIND_CONFIGURED
        KIND_ISATAP KIND_ENGINE MSS_STAYS MSS_ENGINE FLOW_FREE FLOW_BUSY FLOW_ARMED FLOW_ACTIVE FLOW_RESTING FLOW_HALF_OPEN ENABLED HALF_OPEN_ALLOWED TO_OUTSIDE TO_INSIDE
    }
    compare_sizes! {
        BUCKET NEXT_HOPS TRANSLATORS TUNNELS RULES HOST4 POOLS PREFIXES6 ADDRESSES4 NETWORKS4 SOURCES INSIDES PORTS KINDS COUNTERS PASSED
    }
    assert_eq!(c_program("numbers", &body), wanted);
}
