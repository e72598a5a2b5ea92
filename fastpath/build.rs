//! Compiles the eBPF programs with clang, all at the same time.

use sixway_dataplane::mechanism::table::Kind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is compiled: object, source, and further arguments of clang.
const OBJECTS: [(&str, &str, &[&str]); 4] = [
    ("steer.bpf.o", "bpf/steer.bpf.c", &[]),
    ("probe.bpf.o", "bpf/probe.bpf.c", &[]),
    ("fastpath_xdp.bpf.o", "bpf/fastpath.bpf.c", &["-mcpu=v3", "-DHOOK_XDP"]),
    ("fastpath_tc.bpf.o", "bpf/fastpath.bpf.c", &["-mcpu=v3", "-DHOOK_TC"]),
];

fn main() {
    // The folder: every header and program in it.
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_EBPF").is_none() {
        return;
    }
    let Some(folder) = std::env::var_os("OUT_DIR") else { return };
    let folder = PathBuf::from(folder);
    if let Err(error) = std::fs::write(folder.join("kinds.h"), kinds()) {
        println!("cargo::error=kinds.h: {error}");
        std::process::exit(1);
    }
    let started: Vec<_> = OBJECTS.iter().map(|object| start(object, &folder)).collect();
    let results: Vec<_> =
        started.into_iter().zip(OBJECTS).map(|(child, (_, source, _))| finish(child, source)).collect();
    let mut failed = false;
    for why in results.into_iter().filter_map(Result::err) {
        for line in why.lines() {
            println!("cargo::error={line}");
        }
        failed = true;
    }
    if failed {
        std::process::exit(1);
    }
}

/// The header with the mechanisms' numbers.
fn kinds() -> String {
    let kinds = Kind::ALL.iter();
    let lines = kinds.map(|kind| format!("#define KIND_{} {}\n", kind.name().to_uppercase(), kind.number()));
    format!("#pragma once\n\n{}#define KINDS {}\n", lines.collect::<String>(), Kind::NUMBERS)
}

fn clang() -> String {
    std::env::var("CLANG").unwrap_or_else(|_| "clang".into())
}

fn start((object, source, arguments): &(&str, &str, &[&str]), folder: &Path) -> Result<Child, String> {
    let clang = clang();
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror"]).args(*arguments);
    command.arg("-I").arg(folder).args(["-c", source, "-o"]).arg(folder.join(object));
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // Loads stay in order there, as the programs want them.
    if architecture != "x86_64" {
        command.arg("-DORDERED");
    }
    // Debian keeps <asm/types.h>, which <linux/types.h> includes, in a folder for each architecture.
    for abi in ["gnu", "gnueabihf", "musl"] {
        let include = format!("/usr/include/{architecture}-linux-{abi}");
        if Path::new(&include).is_dir() {
            command.arg("-I").arg(include);
        }
    }
    command.stderr(Stdio::piped()).spawn().map_err(|error| {
        format!("{clang} does not run ({error}).\n{}", advice("It compiles the eBPF programs"))
    })
}

fn finish(child: Result<Child, String>, source: &str) -> Result<(), String> {
    let clang = clang();
    match child?.wait_with_output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{clang} could not compile {source}:\n{}\n{}",
            String::from_utf8_lossy(&output.stderr),
            advice("If a header is missing")
        )),
        Err(error) => Err(format!("{clang}: {error}")),
    }
}

fn advice(why: &str) -> String {
    format!(
        "{why}: apt-get install clang libbpf-dev linux-libc-dev (as root: make build-needs), or name another one with CLANG=...\n\
         To build without eBPF: cargo build --no-default-features; everything works then, slower."
    )
}
