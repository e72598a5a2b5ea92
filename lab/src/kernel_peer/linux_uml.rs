//! The guest's kernel as a program of this machine.

use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::command;
use crate::programs;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Lets a guest's programs run where the CPU has more state than the guest's kernel knows.
const WHOLE_XSTATE: &str = include_str!("whole_xstate.c");

/// The words that start the kernel; a folder keeps what they need. Without clang it starts as it is, which most machines can do with.
pub fn words(folder: &Path) -> Result<Vec<OsString>> {
    let kernel = programs::require("linux.uml")?.into_os_string();
    if !programs::installed("clang") {
        return Ok(vec![kernel]);
    }
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(compile(folder)?);
    Ok(vec!["env".into(), preload, kernel])
}

fn compile(folder: &Path) -> Result<PathBuf> {
    let (source, object) = (folder.join("whole_xstate.c"), folder.join("whole_xstate.so"));
    std::fs::write(&source, WHOLE_XSTATE).asking(|| format!("writing {}", source.display()))?;
    let mut clang = command("clang")?;
    clang.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&object).arg(&source);
    let output = clang.output().asking(|| "starting clang".to_owned())?;
    match output.status.success() {
        true => Ok(object),
        false => Err(Failure::Program("clang".into(), String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
