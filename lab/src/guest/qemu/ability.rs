//! Whether such a guest can run on this machine at all.

use super::files::{FOLDER, Image};
use super::machine::{Accelerator, VIRTIOFSD};
use crate::programs;
use std::path::Path;

/// Why there can be no guest with this accelerator, if there cannot.
pub fn why_not(accelerator: Accelerator) -> Option<String> {
    if let Err(failure) = programs::require("qemu-system-x86_64") {
        return Some(failure.to_string());
    }
    if !Path::new(VIRTIOFSD).is_file() {
        return Some(format!("needs {VIRTIOFSD}, which is in Debian's package qemu-system-common"));
    }
    if Image::find().is_none() {
        return Some(format!("needs a kernel for guests: make guest, or its folder in {FOLDER}"));
    }
    match accelerator {
        Accelerator::Tcg => None,
        Accelerator::Kvm if !Path::new("/dev/kvm").exists() => Some("there is no /dev/kvm".to_owned()),
        Accelerator::Kvm => None,
    }
}
