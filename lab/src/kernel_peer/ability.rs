//! Whether a guest can run on this machine at all: its kernel may be installed where ptrace is forbidden, or where the CPU has more state than it
//! knows, and then it boots and only its programs cannot run.

use super::linux_uml;
use crate::failure::{Asking as _, Result};
use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The first process of a guest that is only tried, and what the kernel says when it has ended well.
const FIRST: &str = "init=/bin/true";
const AS_FAR_AS: &str = "Attempted to kill init! exitcode=0x00000000";

/// Boots a guest as far as its first process, once for each process of the lab (two seconds), and says why it did not come so far.
pub fn why_not() -> Option<&'static str> {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| match boot() {
        Ok(said) => missed(&said),
        Err(failure) => failure.to_string().lines().next().map(str::to_owned),
    });
    why_not.as_deref()
}

/// Why a kernel that said this did not come as far as it should have.
fn missed(said: &str) -> Option<String> {
    if said.contains(AS_FAR_AS) {
        return None;
    }
    let a_complaint = |line: &&str| {
        let names = ["ptrace", "Kernel panic"].iter().any(|word| line.contains(word));
        names && !line.ends_with("OK")
    };
    let first = said.lines().find(a_complaint);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Some(first.or(last).unwrap_or("no output").trim().to_owned())
}

fn boot() -> Result<String> {
    let folder = private_folder()?;
    let said = boot_in(&folder);
    // What is left there is the kernel's own, and what was made for it.
    let _ = std::fs::remove_dir_all(&folder);
    said
}

/// A new folder that only this user can enter: the kernel loads a library from it.
fn private_folder() -> Result<PathBuf> {
    let number = RandomState::new().build_hasher().finish();
    let folder = std::env::temp_dir().join(format!("sixway-guest-{number:016x}"));
    DirBuilder::new().mode(0o700).create(&folder).asking(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

fn boot_in(folder: &Path) -> Result<String> {
    let mut kernel = Command::new("timeout");
    kernel.arg("20").args(linux_uml::words(folder)?).env_remove("TMPDIR").stdin(Stdio::null());
    kernel.args(["mem=96M", "con=null", "con0=null,fd:1", "panic=-1", "noreboot", "umid=ability"]);
    kernel.args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", FIRST]);
    kernel.arg(format!("uml_dir={}", folder.display()));
    let output = kernel.current_dir(folder).output().asking(|| "starting linux.uml".to_owned())?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_library_is_compiled_in_a_folder_that_nobody_else_can_enter() {
        let folders = [private_folder().unwrap(), private_folder().unwrap()];
        let modes = folders.each_ref().map(|folder| folder.metadata().unwrap().permissions().mode() & 0o777);
        folders.iter().for_each(|folder| std::fs::remove_dir(folder).unwrap());
        assert_ne!(folders[0], folders[1]);
        assert_eq!(modes, [0o700; 2]);
    }

    #[test]
    fn a_kernel_whose_first_process_ended_well_can_run() {
        let said = "Checking advanced syscall emulation patch for ptrace...OK\n\
            Run /bin/true as init process\n\
            Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000\n";
        assert_eq!(missed(said), None);
    }

    #[test]
    fn a_kernel_that_boots_and_cannot_run_a_program_says_why() {
        let said = "Checking that ptrace can change system call numbers...OK\n\
            Kernel command line: mem=96M panic=-1 noreboot init=/bin/true\n\
            mmapper_init - find_iomem failed\n\
            Run /bin/true as init process\n\
            userspace - ptrace set fp regs failed, errno = 14\n\
            Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n\
            CPU: 0 PID: 1 Comm: true Not tainted 6.1.176 #1\n";
        assert_eq!(missed(said).as_deref(), Some("userspace - ptrace set fp regs failed, errno = 14"));
    }

    #[test]
    fn a_kernel_that_does_not_start_says_why_if_it_says_anything() {
        let said = "Core dump limits :\nCannot map memory\n\n";
        assert_eq!(missed(said).as_deref(), Some("Cannot map memory"));
        assert_eq!(missed("").as_deref(), Some("no output"));
    }
}
