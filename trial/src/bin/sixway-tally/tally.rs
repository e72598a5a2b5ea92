//! What a run of tests says, counted.

use crate::kind::{Kind, Kinds};
use crate::times::{self, Ended};
use std::fmt;
use std::time::Duration;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    /// From `ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`.
    fn read(result: &str) -> Self {
        let before = |word: &str| {
            let part = result.split([';', '.']).find_map(|part| part.trim().strip_suffix(word));
            part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        Self { passed: before("passed"), failed: before("failed"), ignored: before("ignored") }
    }

    fn plus(self, more: Self) -> Self {
        Self {
            passed: self.passed + more.passed,
            failed: self.failed + more.failed,
            ignored: self.ignored + more.ignored,
        }
    }

    /// What is left of it without `counted`.
    fn beyond(self, counted: Self) -> Self {
        Self {
            passed: self.passed.saturating_sub(counted.passed),
            failed: self.failed.saturating_sub(counted.failed),
            ignored: self.ignored.saturating_sub(counted.ignored),
        }
    }

    fn all(self) -> u64 {
        self.passed + self.failed + self.ignored
    }
}

/// The binary whose tests run.
#[derive(Debug)]
struct Binary {
    kinds: Kinds,
    began: Duration,
    ended: Ended,
    counted: Counts,
    /// A test whose name was said and whose outcome was not yet: what another one writes to standard error may come between.
    open: Option<String>,
}

impl Binary {
    const fn new(kinds: Kinds, began: Duration) -> Self {
        let counted = Counts { passed: 0, failed: 0, ignored: 0 };
        Self { kinds, began, ended: Vec::new(), counted, open: None }
    }
}

/// All that a run of tests has said.
#[derive(Debug)]
pub struct Tally {
    /// Tests that the standard harness runs at a time.
    at_once: usize,
    binary: Binary,
    counts: [Counts; Kind::ALL.len()],
    /// Tests by name, and how many there were.
    named: u64,
    times: Vec<(Kind, String, Duration)>,
    /// Names, and what was said of why.
    ignored: Vec<(String, String)>,
    failed: Vec<String>,
    /// Tests that passed only when they ran alone, and what was said of the first time.
    unsteady: Vec<String>,
}

impl Tally {
    /// Of a run whose standard harness runs this number of tests at a time.
    pub fn new(at_once: usize) -> Self {
        Self {
            at_once,
            binary: Binary::new(Kinds::One(Kind::Unit), Duration::ZERO),
            counts: Default::default(),
            named: 0,
            times: Vec::new(),
            ignored: Vec::new(),
            failed: Vec::new(),
            unsteady: Vec::new(),
        }
    }

    /// Reads the next line, which came at this time. `told` gives the times that a harness told since it was last asked.
    pub fn read(&mut self, line: &str, at: Duration, told: impl FnOnce() -> String) {
        let line = without_colours(line);
        let line = line.trim();
        if let Some((_, test)) = line.split_once("unsteady: ") {
            self.unsteady.push(test.to_owned());
        } else if let Some(kinds) = Kinds::announced(line) {
            self.binary = Binary::new(kinds, at);
        } else if line.strip_prefix("running ").is_some_and(|rest| rest.contains(" test")) {
            self.binary.began = at;
        } else if let Some((_, result)) = line.split_once("test result: ") {
            self.end_binary(Counts::read(result), &told());
        } else if let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        {
            let name = name.trim().to_owned();
            if !self.end_test(&name, outcome, at) {
                self.binary.open = Some(name);
            }
        } else if let Some(name) = self.binary.open.take()
            && !self.end_test(&name, line, at)
        {
            self.binary.open = Some(name);
        }
    }

    /// Whether that is an outcome.
    fn end_test(&mut self, name: &str, outcome: &str, at: Duration) -> bool {
        let one = if let Some(why) = outcome.strip_prefix("ignored") {
            self.ignored.push((name.to_owned(), why.trim_matches([' ', ',', '(', ')']).to_owned()));
            Counts { ignored: 1, ..Counts::default() }
        } else if outcome == "FAILED" {
            self.failed.push(name.to_owned());
            Counts { failed: 1, ..Counts::default() }
        } else if outcome == "ok" {
            Counts { passed: 1, ..Counts::default() }
        } else {
            return false;
        };
        self.binary.ended.push((name.to_owned(), at));
        self.binary.counted = self.binary.counted.plus(one);
        self.add(self.binary.kinds.of(name), one);
        self.named += 1;
        true
    }

    fn end_binary(&mut self, said: Counts, told: &str) {
        let unnamed = said.beyond(self.binary.counted);
        self.add(self.binary.kinds.of(""), unnamed);
        let mut times = times::told(told);
        if times.is_empty() {
            times = times::inferred(self.binary.began, &self.binary.ended, self.at_once);
        }
        let kinds = self.binary.kinds;
        self.times.extend(times.into_iter().map(|(name, time)| (kinds.of(&name), name, time)));
        self.binary = Binary::new(kinds, self.binary.began);
    }

    fn add(&mut self, kind: Kind, more: Counts) {
        let counts = &mut self.counts[kind as usize];
        *counts = counts.plus(more);
    }

    fn total(&self) -> Counts {
        self.counts.iter().fold(Counts::default(), |sum, counts| sum.plus(*counts))
    }

    /// What strict mode does not let pass: tests that were ignored and are not exceptions, and exceptions that were not ignored.
    pub fn faults(&self, exceptions: &[String]) -> Vec<String> {
        let refused = self.ignored.iter().filter(|(name, _)| !exceptions.contains(name));
        let mut faults: Vec<_> =
            refused.map(|(name, why)| format!("{name} was ignored and is no exception: {why}")).collect();
        let is_ignored = |exception: &String| self.ignored.iter().any(|(name, _)| name == exception);
        let idle = exceptions.iter().filter(|exception| !is_ignored(exception));
        faults.extend(idle.map(|name| format!("{name} is an exception and was not ignored")));
        let counted = self.total().all();
        if counted != self.named {
            faults.push(format!("{counted} tests are counted, {} of them by name", self.named));
        }
        faults
    }

    /// `N passed, N failed, N skipped`.
    pub fn last_line(&self) -> String {
        let Counts { passed, failed, ignored } = self.total();
        format!("{passed} passed, {failed} failed, {ignored} skipped")
    }

    /// Seconds of all tests of a kind, one after the other.
    fn seconds(&self, kind: Kind) -> f64 {
        self.times
            .iter()
            .filter(|(of, ..)| *of == kind)
            .map(|(.., time)| *time)
            .sum::<Duration>()
            .as_secs_f64()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, why) in &self.ignored {
            writeln!(f, "ignored: {name}: {why}")?;
        }
        for name in &self.failed {
            writeln!(f, "failed: {name}")?;
        }
        for test in &self.unsteady {
            writeln!(f, "passed alone and not among others: {test}")?;
        }
        let mut slowest: Vec<_> = self.times.iter().collect();
        slowest.sort_by_key(|(.., time)| std::cmp::Reverse(*time));
        for (kind, name, time) in slowest.into_iter().take(SLOWEST) {
            writeln!(f, "slow: {:>7.1} s  {name} ({})", time.as_secs_f64(), kind.name())?;
        }
        for (kind, Counts { passed, failed, ignored }) in Kind::ALL.into_iter().zip(&self.counts) {
            let (name, seconds) = (kind.name(), self.seconds(kind));
            writeln!(
                f,
                "{name:<16} {passed:>5} passed {failed:>5} failed {ignored:>5} ignored {seconds:>8.1} s of tests"
            )?;
        }
        let ran = |counts: &Counts| counts.passed + counts.failed;
        let kinds = Kind::ALL.iter().zip(&self.counts);
        let kinds: Vec<_> = kinds.map(|(kind, counts)| format!("{} {}", kind.name(), ran(counts))).collect();
        writeln!(f, "ran: {}", kinds.join(", "))
    }
}

/// A line without the terminal's escape sequences.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
     Running unittests src/lib.rs (target/debug/deps/sixway_link-0123)

running 2 tests
test tun::one ... ok
test tun::other ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/main.rs (target/debug/deps/all-4567)
running 6 tests
test configuration_page::it_is_made ... ok
test life::another ... ok
test life::takeover::a_session_lives ... ignored (needs root, ip and /dev/net/tun)
test nat64_model::both_agree ... FAILED
test properties::checksums ... ok
test replay::any_octets ... replay of fuzz/corpus/x: FUZZ_SEED=5
ok
test result: FAILED. 4 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s
   Doc-tests sixway_wire
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/keeper.rs (target/debug/deps/keeper-89ab)
running 1 test
test facts ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/interop/main.rs (target/debug/deps/interop-0123)
running 2 tests
unsteady: page: assertion `left == right` failed: pings
test page ... ok
test \u{1b}[32mnat64 ... \u{1b}[0mignored, needs tayga
test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    /// A line each second; the binary of interop tests tells its times.
    fn tally() -> Tally {
        let mut tally = Tally::new(1);
        let mut is_interop = false;
        for (at, line) in SAID.lines().enumerate() {
            is_interop |= line.contains("tests/interop/");
            let told = || if is_interop { "70.500 page\n0.001 nat64\n".to_owned() } else { String::new() };
            tally.read(line, Duration::from_secs(at as u64), told);
        }
        tally
    }

    #[test]
    fn tests_are_counted_by_kind() {
        let said = tally().to_string();
        assert!(
            said.ends_with("ran: unit 2, scenario 2, property 1, model and replay 2, law 1, interop 1\n"),
            "{said}"
        );
        assert!(said.contains("interop              1 passed     0 failed     1 ignored"), "{said}");
        assert!(said.contains("model and replay     1 passed     1 failed     0 ignored"), "{said}");
        assert!(said.contains("failed: tun::other\nfailed: nat64_model::both_agree\n"), "{said}");
        assert!(said.contains("ignored: nat64: needs tayga\n"), "{said}");
        let unsteady = "passed alone and not among others: page: assertion `left == right` failed: pings\n";
        assert!(said.contains(unsteady), "{said}");
        assert_eq!(tally().last_line(), "7 passed, 2 failed, 2 skipped");
    }

    #[test]
    fn the_slowest_tests_are_named_and_seconds_are_added_up_by_kind() {
        let said = tally().to_string();
        let slowest =
            "slow:    70.5 s  page (interop)\nslow:     2.0 s  replay::any_octets (model and replay)\n";
        assert!(said.contains(slowest), "{said}");
        assert_eq!(said.matches("slow: ").count(), 10, "{said}");
        assert!(said.contains("1 ignored     70.5 s of tests\n"), "{said}");
        assert!(
            said.contains("unit                 1 passed     1 failed     0 ignored      2.0 s of tests\n"),
            "{said}"
        );
    }

    #[test]
    fn strict_mode_lets_exceptions_pass_and_nothing_else() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let both = names(&["life::takeover::a_session_lives", "nat64"]);
        assert_eq!(tally().faults(&both), [] as [String; 0]);
        assert_eq!(tally().faults(&both[..1]), ["nat64 was ignored and is no exception: needs tayga"]);
        let three = [both, names(&["tun::one"])].concat();
        assert_eq!(tally().faults(&three), ["tun::one is an exception and was not ignored"]);
    }

    #[test]
    fn a_test_without_a_name_is_a_fault() {
        let mut tally = Tally::new(1);
        let result = "test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out";
        tally.read(result, Duration::ZERO, String::new);
        assert_eq!(tally.last_line(), "1 passed, 0 failed, 2 skipped");
        assert_eq!(tally.faults(&[]), ["3 tests are counted, 0 of them by name"]);
    }
}
