//! The program under test, and the admin socket of a gateway in a network.

use crate::failure::{Asking as _, Failure, Result};
use crate::programs::own_build_folders;
use crate::topology::Network;
use ring::digest::{SHA256, digest};
use std::path::{Path, PathBuf};

/// Path of the gateway's binary: `$SIXWAY`, or next to this one, the optimised build first.
pub fn sixway() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SIXWAY") {
        return Ok(path.into());
    }
    candidates(&own_build_folders())
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::Unexpected("sixway is not built: cargo build --release".to_owned()))
}

/// Where it may be. A folder alone is not a build's: others may write below it.
fn candidates(folders: &[PathBuf]) -> Vec<PathBuf> {
    let in_each = |name: &'static str| folders.iter().map(move |folder| folder.join(name));
    let optimised = in_each("release/sixway").filter(|_| folders.len() > 1);
    optimised.chain(in_each("sixway")).collect()
}

/// The SHA-256 of a program in hexadecimal digits, by which two builds of one version differ.
///
/// # Errors
/// It cannot be read.
pub fn sha256(program: &Path) -> Result<String> {
    let octets = std::fs::read(program).asking(|| format!("reading {}", program.display()))?;
    Ok(digest(&SHA256, &octets).as_ref().iter().map(|octet| format!("{octet:02x}")).collect())
}

/// The first digits of a SHA-256, for people.
pub fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}

/// The admin socket of the gateway on this host of the network.
pub fn socket(network: &Network, host: &str) -> PathBuf {
    network.folder().join(format!("sixway-{host}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_optimised_build_comes_first_and_a_copy_looks_next_to_itself_only() {
        let of = |folders: &[&str]| {
            let folders: Vec<_> = folders.iter().map(PathBuf::from).collect();
            candidates(&folders).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of(&["/tmp"]), ["/tmp/sixway"]);
        let build = ["/t/debug/release/sixway", "/t/release/sixway", "/t/debug/sixway", "/t/sixway"];
        assert_eq!(of(&["/t/debug", "/t"]), build);
    }

    #[test]
    fn a_program_is_known_by_its_content() {
        let file = std::env::temp_dir().join(format!("sixway-lab-sha256-{}", std::process::id()));
        std::fs::write(&file, "abc").unwrap();
        let found = sha256(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        // The example of FIPS 180-2, B.1.
        assert_eq!(found, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(short(&found), "ba7816bf8f01");
        assert!(sha256(&file).is_err(), "it was removed");
    }
}
