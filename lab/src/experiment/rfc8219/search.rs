//! The binary search for the highest rate at which no more than a given share is lost (RFC 2544 §26.1, with RFC 8219's loss of 0; others use 0.01 %
//! or 0.5 %). It is pure: what a trial does is for others.

/// A trial at a rate.
pub trait Trial {
    /// Why there is no result.
    type Error;

    /// Offers this number of frames a second.
    ///
    /// # Errors
    /// The trial could not be made.
    fn run(&mut self, per_second: f64) -> Result<Seen, Self::Error>;
}

/// What a trial has seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Share of the frames that were lost, 0 to 1.
    pub loss: f64,
    /// The rate at which frames were really sent.
    pub offered: f64,
    /// Whether something else disturbed it: the trial is repeated, a few times at most.
    pub is_disturbed: bool,
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The lowest and the highest rate.
    pub rates: (f64, f64),
    /// A rate that is known to pass, or 0: what passes with no loss passes with any.
    pub passed: f64,
    /// The share that may be lost.
    pub loss: f64,
    /// The search ends when the rate is known to this share of itself.
    pub precision: f64,
    /// How often a trial that was disturbed is repeated.
    pub repeats: u32,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The highest rate of a trial that passed; 0 if none did.
    pub rate: f64,
    /// Whether the highest rate of all passed: then the limit is the tester's.
    pub is_at_ceiling: bool,
    /// All trials: rate, loss, and whether it was disturbed.
    pub trials: Vec<(f64, f64, bool)>,
}

/// A tester that sends less than this share of what it was to send has met its own limit.
const KEPT_UP: f64 = 0.98;

/// How many trials a search takes, about: one at the highest rate, and two for each halving of what is unknown.
pub fn trials(precision: f64) -> f64 {
    1.0 + 2.0 * (1.0 / precision).log2()
}

impl Search {
    /// Searches.
    ///
    /// # Errors
    /// A trial could not be made.
    pub fn run<T: Trial>(&self, trial: &mut T) -> Result<Found, T::Error> {
        self.from(self.rates.1, trial)
    }

    /// Searches from a rate on, which is doubled until a trial fails: a trial far above the device's limit would take long, or all that there is to send.
    ///
    /// # Errors
    /// A trial could not be made.
    pub fn from<T: Trial>(&self, first: f64, trial: &mut T) -> Result<Found, T::Error> {
        let (mut low, mut failed) = (self.passed, None::<f64>);
        let mut found = Found { rate: self.passed, is_at_ceiling: false, trials: Vec::new() };
        let mut at = first.clamp(self.rates.0, self.rates.1);
        loop {
            let seen = self.undisturbed(trial, at, &mut found)?;
            // A tester that does not keep up has offered less, and it is that rate that passed or failed.
            let has_kept_up = seen.offered >= KEPT_UP * at;
            let rate = if has_kept_up { at } else { seen.offered };
            if seen.loss <= self.loss {
                found.rate = found.rate.max(rate);
                low = at;
                if at >= self.rates.1 || !has_kept_up {
                    found.is_at_ceiling = true;
                    return Ok(found);
                }
            } else {
                failed = Some(failed.map_or(at, |high| high.min(at)));
            }
            let Some(high) = failed else {
                at = (2.0 * at).min(self.rates.1);
                continue;
            };
            if high - low <= self.precision * high || high <= self.rates.0 {
                return Ok(found);
            }
            at = f64::max(f64::midpoint(low, high), self.rates.0);
        }
    }

    fn undisturbed<T: Trial>(&self, trial: &mut T, at: f64, found: &mut Found) -> Result<Seen, T::Error> {
        let mut times = 0;
        loop {
            let seen = trial.run(at)?;
            found.trials.push((at, seen.loss, seen.is_disturbed));
            // A trial that passes in spite of it, passes.
            if !seen.is_disturbed || seen.loss <= self.loss || times >= self.repeats {
                return Ok(seen);
            }
            times += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Random;
    use std::convert::Infallible;

    /// A device of a known capacity, with some trials disturbed, and a tester of a known limit.
    struct Model {
        capacity: f64,
        tester: f64,
        disturbs: f64,
        random: Random,
        trials: u32,
    }

    impl Trial for Model {
        type Error = Infallible;

        fn run(&mut self, per_second: f64) -> Result<Seen, Infallible> {
            self.trials += 1;
            let offered = per_second.min(self.tester);
            let own = (1.0 - self.capacity / offered).max(0.0);
            let is_disturbed = self.random.happens(self.disturbs);
            Ok(Seen { loss: if is_disturbed { own.max(0.1) } else { own }, offered, is_disturbed })
        }
    }

    fn model(capacity: f64, seed: u64) -> Model {
        Model { capacity, tester: f64::INFINITY, disturbs: 0.0, random: Random(seed), trials: 0 }
    }

    const SEARCH: Search =
        Search { rates: (1_000.0, 1_000_000.0), passed: 0.0, loss: 0.0, precision: 0.01, repeats: 3 };

    fn run(search: Search, model: &mut Model) -> Found {
        match search.run(model) {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }

    #[test]
    fn binary_search_finds_a_known_capacity() {
        let (mut random, mut all) = (Random(1), 0.0);
        for seed in 0..200 {
            let capacity = 2_000.0 + random.share() * 900_000.0;
            let mut model = model(capacity, seed);
            let found = run(SEARCH, &mut model);
            assert!(found.rate <= capacity && found.rate >= capacity * 0.985 - 1.0, "{capacity}: {found:?}");
            assert!(!found.is_at_ceiling && model.trials <= 20, "{} trials", model.trials);
            all += f64::from(model.trials) / 200.0;
            assert_eq!(model.trials as usize, found.trials.len());
        }
        assert!((0.5..2.0).contains(&(trials(SEARCH.precision) / all)), "{all} trials on average");
    }

    #[test]
    fn a_search_that_grows_finds_the_same_with_no_trial_far_above_it() {
        for seed in 0..200 {
            let capacity = 2_000.0 + Random(seed).share() * 900_000.0;
            let mut model = model(capacity, seed);
            let found = match SEARCH.from(8_000.0, &mut model) {
                Ok(found) => found,
                Err(never) => match never {},
            };
            assert!(found.rate <= capacity && found.rate >= capacity * 0.985 - 1.0, "{capacity}: {found:?}");
            let highest = found.trials.iter().map(|(rate, ..)| *rate).fold(0.0, f64::max);
            assert!(!found.is_at_ceiling && highest <= f64::max(8_000.0, 2.0 * capacity), "{found:?}");
        }
        let from = |model: &mut Model| match SEARCH.from(8_000.0, model) {
            Ok(found) => found,
            Err(never) => match never {},
        };
        let found = from(&mut model(2_000_000.0, 1));
        assert!(found.is_at_ceiling && found.rate == 1_000_000.0, "{found:?}");
        let found = from(&mut Model { tester: 100_000.0, ..model(2_000_000.0, 1) });
        assert!(found.is_at_ceiling && found.rate == 100_000.0, "{found:?}");
    }

    #[test]
    fn a_given_loss_admits_a_higher_rate() {
        let search = Search { loss: 0.005, ..SEARCH };
        let found = run(search, &mut model(100_000.0, 1));
        assert!((found.rate / (100_000.0 / 0.995) - 1.0).abs() < 0.012, "{found:?}");
    }

    /// Every trial of the second search is disturbed.
    #[test]
    fn what_passed_with_no_loss_is_the_least_that_passes_with_a_given_one() {
        let none = run(SEARCH, &mut model(100_000.0, 1));
        let search = Search { passed: none.rate, loss: 0.005, ..SEARCH };
        let found = run(search, &mut Model { disturbs: 1.0, ..model(100_000.0, 1) });
        assert_eq!(found.rate, none.rate);
        let found = run(search, &mut model(100_000.0, 1));
        assert!(found.rate >= none.rate && found.rate <= 100_000.0 / 0.995, "{found:?}");
    }

    /// A tenth of all trials loses a tenth for another reason.
    #[test]
    fn a_disturbed_trial_is_repeated() {
        for seed in 0..50 {
            let mut model = Model { disturbs: 0.1, ..model(300_000.0, seed) };
            let found = run(SEARCH, &mut model);
            assert!((0.98..=1.0).contains(&(found.rate / 300_000.0)), "{found:?}");
        }
        // All are disturbed: the search ends all the same.
        let mut model = Model { disturbs: 1.0, ..model(300_000.0, 1) };
        let found = run(SEARCH, &mut model);
        assert_eq!(found.rate, 0.0);
        assert!(model.trials < 100);
    }

    #[test]
    fn the_testers_limit_is_not_the_devices() {
        let found = run(SEARCH, &mut Model { tester: 400_000.0, ..model(2_000_000.0, 1) });
        assert!(found.is_at_ceiling && found.rate == 400_000.0, "{found:?}");
        let found = run(SEARCH, &mut model(2_000_000.0, 1));
        assert!(found.is_at_ceiling && found.rate == 1_000_000.0, "{found:?}");
        let found = run(SEARCH, &mut model(10.0, 1));
        assert!(!found.is_at_ceiling && found.rate == 0.0, "below the lowest rate: {found:?}");
    }
}
