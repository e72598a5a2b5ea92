//! Fairness between subscribers: what each would have by max-min fairness, and Jain's index of what they got of it.

/// Shares of a capacity by max-min fairness: no subscriber gets more than its demand, and unused parts are given to the others.
pub fn max_min(capacity: f64, demands: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; demands.len()];
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| demands[*a].total_cmp(&demands[*b]));
    let mut left = capacity.max(0.0);
    for (done, at) in order.into_iter().enumerate() {
        let equal = left / (demands.len() - done) as f64;
        shares[at] = demands[at].clamp(0.0, equal);
        left -= shares[at];
    }
    shares
}

/// Jain's index: 1 if all have the same, 1/n if one of n has everything.
pub fn jain(got: &[f64]) -> f64 {
    let (sum, squares) = got.iter().fold((0.0, 0.0), |(sum, squares), it| (sum + it, squares + it * it));
    if squares <= 0.0 { 0.0 } else { sum * sum / (got.len() as f64 * squares) }
}

/// Jain's index of what each got of the share that is fair; more than that counts as all of it.
pub fn fairness(capacity: f64, demands: &[f64], got: &[f64]) -> f64 {
    let of_share = |(got, share): (&f64, f64)| if share > 0.0 { (got / share).min(1.0) } else { 1.0 };
    let satisfied: Vec<f64> = got.iter().zip(max_min(capacity, demands)).map(of_share).collect();
    jain(&satisfied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Random;

    #[test]
    fn fairness_of_equals_is_one() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 0.0);
        assert_eq!(fairness(100.0, &[1_000.0, 10.0], &[90.0, 10.0]), 1.0);
        assert!(
            (fairness(100.0, &[1_000.0, 10.0], &[100.0, 0.0]) - 0.5).abs() < 1e-9,
            "the light one got nothing"
        );
    }

    #[test]
    fn what_the_light_one_leaves_is_for_the_heavy_one() {
        assert_eq!(max_min(100.0, &[1_000.0, 10.0]), [90.0, 10.0]);
        assert_eq!(max_min(100.0, &[1_000.0, 60.0]), [50.0, 50.0]);
        assert_eq!(max_min(100.0, &[20.0, 10.0]), [20.0, 10.0]);
        assert_eq!(max_min(90.0, &[5.0, 200.0, 50.0]), [5.0, 42.5, 42.5]);
        assert_eq!(max_min(5.0, &[]), [0.0; 0]);
    }

    /// The model pours small portions to everybody who has not enough.
    #[test]
    fn a_model_that_pours_small_portions_agrees() {
        let mut random = Random(3);
        for _ in 0..200 {
            let count = 1 + random.number() as usize % 5;
            let demands: Vec<f64> = (0..count).map(|_| (random.number() % 100) as f64).collect();
            let capacity = (random.number() % 200) as f64;
            let (mut poured, mut left) = (vec![0.0; count], capacity);
            while left > 1e-9 {
                let thirsty: Vec<usize> = (0..count).filter(|at| poured[*at] + 1e-9 < demands[*at]).collect();
                if thirsty.is_empty() {
                    break;
                }
                let portion = (left / thirsty.len() as f64).min(0.01);
                for at in thirsty {
                    poured[at] += portion;
                    left -= portion;
                }
            }
            for (share, poured) in max_min(capacity, &demands).iter().zip(poured) {
                assert!((share - poured).abs() < 0.1, "{capacity} for {demands:?}: {share} and {poured}");
            }
        }
    }
}
