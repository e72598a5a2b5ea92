//! A run is of one program: another build of it has other figures.

use crate::failure::{Failure, Result};
use crate::sixway::short;
use std::path::Path;

/// Refuses to continue a run with another program `sixway` than it began with, by SHA-256. Runs of older labs have none.
///
/// # Errors
/// It is another one.
pub(super) fn is_the_same(there: Option<&str>, here: Option<&str>, folder: &Path) -> Result<()> {
    let Some(there) = there.filter(|there| here != Some(*there)) else { return Ok(()) };
    let here = here.map_or_else(|| "not there".to_owned(), |here| format!("another one ({})", short(here)));
    Err(Failure::Unexpected(format!(
        "{} was begun with a program sixway whose SHA-256 begins with {}, and the present one is {here}: name that program by the \
         environment variable SIXWAY (sudo SIXWAY=/path/sixway sixway-lab run ...), or choose another folder with --out",
        folder.display(),
        short(there)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_continued_with_the_program_that_began_it() {
        let said =
            |there, here| is_the_same(there, here, Path::new("out")).map_err(|failure| failure.to_string());
        let (old, new) = (Some("0123456789abcdef"), Some("fedcba9876543210"));
        for (there, here) in [(old, old), (None, new), (None, None)] {
            assert_eq!(said(there, here), Ok(()));
        }
        let other = said(old, new).unwrap_err();
        assert!(
            other.contains("begins with 0123456789ab, and the present one is another one (fedcba987654)"),
            "{other}"
        );
        assert!(other.contains("SIXWAY=") && other.contains("--out"), "{other}");
        assert!(said(old, None).is_err_and(|said| said.contains("is not there")));
    }
}
