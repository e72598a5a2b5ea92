//! The search for the greatest number that passes, by doubling and then by halves: the capacity of a table (RFC 9693 §4.9), the longest burst (RFC 2544
//! §26.4). It is pure: what a trial does is for others.

/// The greatest number that passes, and the least that was seen not to; `None` if `most` passes. 0 passes always.
///
/// # Errors
/// A trial could not be made.
pub fn longest<E>(
    (fewest, most): (u32, u32),
    precision: f64,
    mut passes: impl FnMut(u32) -> Result<bool, E>,
) -> Result<(u32, Option<u32>), E> {
    let (mut low, mut high) = (0, None);
    let mut at = fewest.min(most);
    loop {
        match passes(at)? {
            true => low = at,
            false => high = Some(at),
        }
        at = match high {
            None if at >= most => return Ok((low, None)),
            None => at.saturating_mul(2).min(most),
            Some(high) if f64::from(high - low) <= precision * f64::from(high) || high - low <= 1 => {
                return Ok((low, Some(high)));
            }
            Some(high) => low + (high - low) / 2,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn the_capacity_of_a_table_is_found_by_doubling_and_by_halves() {
        for capacity in [1, 1_000, 1_024, 40_000, 64_512, 65_535, 65_536] {
            let mut tries = 0;
            let found = longest((1_024, 65_536), 0.01, |number| {
                tries += 1;
                Ok::<_, Infallible>(number <= capacity)
            });
            let (low, high) = found.unwrap();
            assert!(low <= capacity && high.is_none_or(|high| high > capacity), "{capacity}: {low} {high:?}");
            assert!(f64::from(capacity - low) <= 0.011 * f64::from(capacity) + 1.0, "{capacity}: {low}");
            assert_eq!(high.is_none(), capacity >= 65_536);
            assert!(tries <= 24, "{tries}");
        }
    }

    #[test]
    fn a_trial_that_cannot_be_made_ends_the_search() {
        assert_eq!(longest((1, 8), 0.1, |number| if number < 4 { Ok(true) } else { Err(number) }), Err(4));
    }
}
