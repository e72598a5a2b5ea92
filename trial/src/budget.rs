//! How many random cases a run of tests tries.

/// The variable that says how many of a hundred of its random cases a test tries.
const VARIABLE: &str = "SIXWAY_TEST_BUDGET";

/// A tenth, where nothing is said; `make test` says 100.
const USUAL: u64 = 10;

/// How many cases a test tries that tries `whole` of them in full: as many of a hundred as `SIXWAY_TEST_BUDGET` says, and one at least.
///
/// # Panics
///
/// If the variable is not a number from 1 to 100,000.
pub fn budget(whole: u32) -> u32 {
    let said = std::env::var_os(VARIABLE);
    share(whole, said.as_ref().map(|said| said.to_string_lossy()).as_deref())
        .unwrap_or_else(|fault| panic!("{fault}"))
}

fn share(whole: u32, said: Option<&str>) -> Result<u32, String> {
    let percent = match said {
        None => USUAL,
        Some(text) => text
            .parse()
            .ok()
            .filter(|percent| (1..=100_000).contains(percent))
            .ok_or_else(|| format!("{VARIABLE}={text:?} is no percentage from 1 to 100000"))?,
    };
    Ok(u32::try_from(u64::from(whole) * percent / 100).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_budget_is_a_share_of_the_whole_and_never_nothing() {
        assert_eq!(share(2_000, None), Ok(200));
        assert_eq!(share(2_000, Some("100")), Ok(2_000));
        assert_eq!(share(2_000, Some("1000")), Ok(20_000));
        assert_eq!(share(3, Some("1")), Ok(1));
    }

    #[test]
    fn a_budget_that_is_not_a_number_is_an_error_that_says_so() {
        for said in ["", "ten", "0", "-1", "1.5", "100001"] {
            let fault = share(10, Some(said)).expect_err(said);
            assert_eq!(fault, format!("SIXWAY_TEST_BUDGET={said:?} is no percentage from 1 to 100000"));
        }
    }
}
