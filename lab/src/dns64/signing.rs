//! Zones are signed by BIND's `dnssec-signzone`. Some signatures are then damaged, which resolvers must detect.

use crate::failure::{Asking as _, Result};
use crate::namespace::command;
use crate::process::Process;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How a zone is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// Not at all.
    None,
    /// With NSEC (RFC 4034 §4).
    Nsec,
    /// With NSEC3, no salt, no further iterations (RFC 9276 §3.1).
    Nsec3,
    /// With NSEC, in a year that is over.
    Expired,
    /// With NSEC. Signatures are wrong at names that begin with `bad-`, for the type that follows.
    Corrupted,
}

/// A zone as the authority serves it.
pub struct Signed {
    /// Its text.
    pub text: String,
    /// Its DS records.
    pub ds: String,
}

/// Signs a zone with a new key (ECDSAP256SHA256, one for all purposes). DS records of its children are taken from `folder`, and its own left there.
pub fn signed(folder: &Path, origin: &str, text: &str, signing: Signing) -> Result<Signed> {
    let period = match signing {
        Signing::None => return Ok(Signed { text: text.to_owned(), ds: String::new() }),
        Signing::Expired => ["-s", "20200101000000", "-e", "20210101000000"],
        Signing::Nsec | Signing::Nsec3 | Signing::Corrupted => ["-s", "-1h", "-e", "+30d"],
    };
    let name = if origin.is_empty() { "." } else { origin };
    let file = folder.join(format!("{origin}.unsigned"));
    let output = folder.join(format!("{origin}.signed"));
    std::fs::write(&file, text).asking(|| format!("writing {}", file.display()))?;
    let mut make = command("dnssec-keygen")?;
    make.args(["-q", "-a", "ECDSAP256SHA256", "-f", "KSK", "-K"]).arg(folder).arg(name);
    run(folder, make)?;
    let mut sign = command("dnssec-signzone")?;
    sign.args(["-q", "-P", "-S", "-z", "-g", "-O", "full", "-o", name, "-K"])
        .arg(folder)
        .arg("-d")
        .arg(folder)
        .args(period);
    if signing == Signing::Nsec3 {
        sign.args(["-3", "-", "-H", "0"]);
    }
    sign.arg("-f").arg(&output).arg(&file);
    run(folder, sign)?;
    let read = |path: &Path| std::fs::read_to_string(path).asking(|| format!("reading {}", path.display()));
    let text = read(&output)?;
    let text = if signing == Signing::Corrupted { spoilt(&text) } else { text };
    let ds = read(&folder.join(format!("dsset-{}.", origin)))?;
    Ok(Signed { text, ds })
}

fn run(folder: &Path, command: Command) -> Result<()> {
    Process::start(command, &folder.join("signing.out"))?
        .finish(Duration::from_secs(60))?
        .succeeded()
        .map(drop)
}

/// The zone with other signatures where they are to be wrong.
fn spoilt(text: &str) -> String {
    text.lines().map(|line| spoilt_line(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// `bad-TYPE-… TTL IN RRSIG TYPE …`, the first part of its signature turned around; `None` for any other line.
fn spoilt_line(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let bad = words.next()?.strip_prefix("bad-")?.split('-').next()?.to_owned();
    let is_signature = words.nth(2)? == "RRSIG" && words.next()?.eq_ignore_ascii_case(&bad);
    let (rest, second) = line.rsplit_once(' ')?;
    let (rest, first) = rest.rsplit_once(' ')?;
    let turned: String = first.chars().rev().collect();
    is_signature.then(|| format!("{rest} {turned} {second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signature_that_is_to_be_wrong_is_another() {
        let line = "bad-a-1.bogus.test.\t\t 3600 IN RRSIG\tA 13 3 3600 20261220142747 20261120142747 1 bogus.test. ABCD EFGH==";
        assert!(spoilt(line).ends_with(" DCBA EFGH==\n"));
        for same in [
            line.replace("RRSIG\tA ", "RRSIG\tNSEC "),
            line.replace("bad-a", "good"),
            line.replace("RRSIG", "A"),
        ] {
            assert_eq!(spoilt(&same), format!("{same}\n"));
        }
    }
}
