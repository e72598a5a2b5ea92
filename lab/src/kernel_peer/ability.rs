//! Whether a guest can run on this machine at all: its kernel may be installed where ptrace is forbidden.

use crate::programs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Where a kernel without a root gets to and ends.
const AS_FAR_AS: &str = "Unable to mount root fs";

/// Boots a guest that has no root file system, once for each process (a second), and says whether it came as far as that.
pub fn can_run() -> bool {
    static CAN_RUN: OnceLock<bool> = OnceLock::new();
    *CAN_RUN.get_or_init(|| boot().is_some_and(|said| said.contains(AS_FAR_AS)))
}

fn boot() -> Option<String> {
    let folder = std::env::temp_dir().join(format!("sixway-guest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    let mut kernel = Command::new("timeout");
    kernel.arg("20").arg(programs::find("linux.uml")?).env_remove("TMPDIR").stdin(Stdio::null());
    kernel.args([
        "mem=96M",
        "con=null",
        "con0=null,fd:1",
        "root=/dev/none",
        "panic=-1",
        "noreboot",
        "umid=ability",
    ]);
    kernel.arg(format!("uml_dir={}", folder.display()));
    let output = kernel.current_dir(&folder).output();
    // What is left there is the kernel's own, and empty.
    let _ = std::fs::remove_dir_all(&folder);
    let output = output.ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}
