//! Which upstreams are the same in another configuration.

/// For each upstream, its place among the previous ones, each of which is one at most: `before` and `now` say what they are.
pub fn same_places<T: PartialEq>(before: &[T], now: &[T]) -> Vec<Option<usize>> {
    let mut taken = vec![false; before.len()];
    now.iter()
        .map(|upstream| {
            let place = (0..before.len()).find(|place| !taken[*place] && before[*place] == *upstream)?;
            taken[place] = true;
            Some(place)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_found_again_wherever_they_are() {
        assert_eq!(same_places(&["a", "b", "c"], &["c", "x", "a"]), [Some(2), None, Some(0)]);
        assert_eq!(same_places(&["a", "a"], &["a", "a", "a"]), [Some(0), Some(1), None]);
        assert_eq!(same_places(&[], &["a"]), [None]);
        assert_eq!(same_places::<&str>(&["a"], &[]), []);
    }
}
