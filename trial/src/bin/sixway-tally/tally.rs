//! What a run of tests says, counted.

use std::fmt;

/// What is counted apart, by the name of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unit,
    Scenario,
    Property,
    ModelAndReplay,
    Law,
    Interop,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Unit, Self::Scenario, Self::Property, Self::ModelAndReplay, Self::Law, Self::Interop];

    const fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Scenario => "scenario",
            Self::Property => "property",
            Self::ModelAndReplay => "model and replay",
            Self::Law => "law",
            Self::Interop => "interop",
        }
    }

    /// The kind of the binary that cargo says it runs, if it says so in this line.
    fn announced(line: &str) -> Option<Self> {
        if line.starts_with("Doc-tests ") {
            return Some(Self::Unit);
        }
        let said = line.strip_prefix("Running ")?;
        let Some((_, path)) = said.split_once("tests/") else { return Some(Self::Unit) };
        let name = path.split([' ', '/', '.']).next().unwrap_or_default();
        Some(match name {
            "interop" => Self::Interop,
            "laws" | "layout" => Self::Law,
            "differential" => Self::ModelAndReplay,
            "properties" => Self::Property,
            _ if name.contains("replay") || name.ends_with("model") => Self::ModelAndReplay,
            _ if name.ends_with("_page") || name.ends_with("_pages") => Self::Law,
            _ => Self::Scenario,
        })
    }
}

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
}

/// All that a run of tests has said.
#[derive(Debug, Default)]
pub struct Tally {
    kind: Option<Kind>,
    counts: [Counts; Kind::ALL.len()],
    /// Names, and what was said of why.
    ignored: Vec<(String, String)>,
    failed: Vec<String>,
}

impl Tally {
    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        let line = without_colours(line);
        let line = line.trim();
        if let Some(kind) = Kind::announced(line) {
            self.kind = Some(kind);
        } else if let Some((_, result)) = line.split_once("test result: ") {
            let counts = &mut self.counts[self.kind.unwrap_or(Kind::Unit) as usize];
            *counts = counts.plus(Counts::read(result));
        } else if let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.rsplit_once(" ... "))
        {
            let name = name.trim().to_owned();
            if let Some(why) = outcome.strip_prefix("ignored") {
                self.ignored.push((name, why.trim_matches([' ', ',', '(', ')']).to_owned()));
            } else if outcome == "FAILED" {
                self.failed.push(name);
            }
        }
    }

    fn total(&self) -> Counts {
        self.counts.iter().fold(Counts::default(), |sum, counts| sum.plus(*counts))
    }

    /// What strict mode does not let pass: tests that were ignored and are no exception, and exceptions that were not ignored.
    pub fn faults(&self, exceptions: &[String]) -> Vec<String> {
        let refused = self.ignored.iter().filter(|(name, _)| !exceptions.contains(name));
        let mut faults: Vec<_> =
            refused.map(|(name, why)| format!("{name} was ignored and is no exception: {why}")).collect();
        let is_ignored = |exception: &String| self.ignored.iter().any(|(name, _)| name == exception);
        let idle = exceptions.iter().filter(|exception| !is_ignored(exception));
        faults.extend(idle.map(|name| format!("{name} is an exception and was not ignored")));
        let (counted, named) = (self.total().ignored, self.ignored.len() as u64);
        if counted != named {
            faults.push(format!("{counted} tests were ignored, {named} of them by name"));
        }
        faults
    }

    /// `N passed, N failed, N skipped`.
    pub fn last_line(&self) -> String {
        let Counts { passed, failed, ignored } = self.total();
        format!("{passed} passed, {failed} failed, {ignored} skipped")
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
        for (kind, Counts { passed, failed, ignored }) in Kind::ALL.iter().zip(&self.counts) {
            writeln!(f, "{:<16} {passed:>5} passed {failed:>5} failed {ignored:>5} ignored", kind.name())?;
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

     Running tests/life/main.rs (target/debug/deps/life-4567)
test takeover::a_session_lives ... ignored (needs root, ip and /dev/net/tun)
test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s
     Running tests/replay.rs (target/debug/deps/replay-89ab)
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests sixway_wire
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/nat64_model/main.rs (target/debug/deps/nat64_model-cdef)
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/interop/main.rs (target/debug/deps/interop-0123)
test \u{1b}[32mnat64 ... \u{1b}[0mignored, needs tayga
test result: \u{1b}[32mok\u{1b}[0m. 30 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn tally() -> Tally {
        let mut tally = Tally::default();
        SAID.lines().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn tests_are_counted_by_kind() {
        let said = tally().to_string();
        assert!(
            said.ends_with("ran: unit 2, scenario 7, property 0, model and replay 5, law 0, interop 30\n"),
            "{said}"
        );
        assert!(said.contains("interop             30 passed     0 failed     1 ignored\n"), "{said}");
        assert!(said.contains("failed: tun::other\n"), "{said}");
        assert!(said.contains("ignored: nat64: needs tayga\n"), "{said}");
        assert_eq!(tally().last_line(), "43 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn strict_mode_lets_exceptions_pass_and_nothing_else() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let both = names(&["takeover::a_session_lives", "nat64"]);
        assert_eq!(tally().faults(&both), [] as [String; 0]);
        assert_eq!(tally().faults(&both[..1]), ["nat64 was ignored and is no exception: needs tayga"]);
        let three = [both, names(&["tun::one"])].concat();
        assert_eq!(tally().faults(&three), ["tun::one is an exception and was not ignored"]);
    }

    #[test]
    fn an_ignored_test_without_a_name_is_a_fault() {
        let mut tally = Tally::default();
        tally.read("test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out");
        assert_eq!(tally.faults(&[]), ["2 tests were ignored, 0 of them by name"]);
    }

    #[test]
    fn binaries_are_of_the_kind_that_their_names_say() {
        for (said, kind) in [
            ("Running unittests src/main.rs (target/debug/deps/x-1)", Kind::Unit),
            ("Running tests/rfc6146.rs (target/debug/deps/rfc6146-1)", Kind::Scenario),
            ("Running tests/properties/main.rs (target/debug/deps/properties-1)", Kind::Property),
            ("Running tests/replay_tunnel_packet.rs (target/debug/deps/x-1)", Kind::ModelAndReplay),
            ("Running tests/laws/main.rs (target/debug/deps/laws-1)", Kind::Law),
            ("Running tests/conformance_pages.rs (target/debug/deps/x-1)", Kind::Law),
        ] {
            assert_eq!(Kind::announced(said), Some(kind), "{said}");
        }
        assert_eq!(Kind::announced("test running ... ok"), None);
    }
}
