//! The programs, compiled for this test.
use super::rig::Hook;
use std::process::Command;

pub fn object(hook: Hook) -> Vec<u8> {
    let name = match hook {
        Hook::Xdp => "XDP",
        Hook::Tc => "TC",
    };
    let to = std::env::temp_dir().join(format!(
        "proof-{}-{name}-{:?}.o",
        std::process::id(),
        std::thread::current().id()
    ));
    let status = Command::new("clang")
        .args(["-target", "bpf", "-O2", "-g", "-mcpu=v3", "-I/usr/include/x86_64-linux-gnu"])
        .arg(format!("-DHOOK_{name}"))
        .args(["-c", "bpf/fastpath.bpf.c", "-o"])
        .arg(&to)
        .status()
        .unwrap();
    assert!(status.success());
    let octets = std::fs::read(&to).unwrap();
    std::fs::remove_file(&to).unwrap();
    octets
}
