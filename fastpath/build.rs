//! Compiles the eBPF programs with clang.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "bpf/steer.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={PROGRAM}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_EBPF").is_none() {
        return;
    }
    let Some(folder) = std::env::var_os("OUT_DIR") else { return };
    if let Err(why) = compile(&PathBuf::from(folder).join("steer.bpf.o")) {
        for line in why.lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

fn compile(object: &Path) -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror", "-c", PROGRAM, "-o"]).arg(object);
    // Debian keeps <asm/types.h>, which <linux/types.h> includes, in a folder for each architecture.
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    for abi in ["gnu", "gnueabihf", "musl"] {
        let include = format!("/usr/include/{architecture}-linux-{abi}");
        if Path::new(&include).is_dir() {
            command.arg("-I").arg(include);
        }
    }
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{clang} could not compile {PROGRAM}:\n{}\n{}",
            String::from_utf8_lossy(&output.stderr),
            advice("If a header is missing")
        )),
        Err(error) => {
            Err(format!("{clang} does not run ({error}).\n{}", advice("It compiles the eBPF program")))
        }
    }
}

fn advice(why: &str) -> String {
    format!(
        "{why}: apt-get install clang libbpf-dev linux-libc-dev (as root: make build-needs), or name another one with CLANG=...\n\
         To build without eBPF: cargo build --no-default-features; tunnel packets then come through raw sockets alone."
    )
}
