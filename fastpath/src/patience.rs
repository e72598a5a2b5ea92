//! The kernel stops verifying a program when a signal arrives (EAGAIN). Loading is then retried, as often as libbpf does.

use aya::programs::ProgramError;
use std::error::Error;
use std::io;

/// Attempts in all.
const TRIES: usize = 5;

/// Loads by `load`, again where a signal came in between.
///
/// # Errors
/// The kernel refused for another reason, or five times for this one.
pub fn patiently(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    let mut last = load();
    for _ in 1..TRIES {
        match &last {
            Err(error) if was_interrupted(error) => last = load(),
            _ => break,
        }
    }
    last
}

/// Whether EAGAIN is in the chain of causes.
fn was_interrupted(error: &(dyn Error + 'static)) -> bool {
    let said = match error.downcast_ref() {
        Some(ProgramError::LoadError { io_error, .. } | ProgramError::IOError(io_error)) => Some(io_error),
        _ => error.downcast_ref::<io::Error>(),
    };
    said.and_then(io::Error::raw_os_error) == Some(libc::EAGAIN)
        || error.source().is_some_and(was_interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(number: i32) -> ProgramError {
        ProgramError::IOError(io::Error::from_raw_os_error(number))
    }

    #[test]
    fn an_interrupted_load_is_tried_again_and_another_is_not() {
        let mut answers = vec![Ok(()), Err(refused(libc::EAGAIN)), Err(refused(libc::EAGAIN))];
        assert!(patiently(|| answers.pop().unwrap()).is_ok());
        assert!(answers.is_empty());

        let mut tries = 0;
        let never = patiently(|| {
            tries += 1;
            Err(refused(libc::EAGAIN))
        });
        assert!(never.is_err() && tries == TRIES);

        tries = 0;
        let refused = patiently(|| {
            tries += 1;
            Err(refused(libc::EACCES))
        });
        assert!(refused.is_err() && tries == 1);
    }
}
