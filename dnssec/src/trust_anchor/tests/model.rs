//! Random timelines against the state table of RFC 5011 §4, read from all that has ever been published.

use super::*;
use crate::trust_anchor::TrustAnchors;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One day's keys: for each of A to E, whether it is published, signs, is revoked.
type Shown = Vec<(bool, bool, bool)>;

const LETTERS: [char; 5] = ['A', 'B', 'C', 'D', 'E'];

fn written(shown: &Shown) -> String {
    let word = |(letter, (is_there, signs, is_revoked)): (&char, &(bool, bool, bool))| {
        let (star, mark) = (if *signs { "*" } else { "" }, if *is_revoked { "!" } else { "" });
        is_there.then(|| format!("{letter}{mark}{star}"))
    };
    LETTERS.iter().zip(shown).filter_map(word).collect::<Vec<_>>().join(" ")
}

/// The table, cell by cell.
#[derive(Default)]
struct Table {
    states: BTreeMap<char, &'static str>,
    /// For a key that waits: since when, and who vouched for it.
    waiting: BTreeMap<char, (u64, Vec<char>)>,
    last_shown: BTreeMap<char, u64>,
    deleted: bool,
}

impl Table {
    fn state(&self, letter: char) -> &'static str {
        self.states.get(&letter).copied().unwrap_or("start")
    }

    fn is_anchor(&self, letter: char) -> bool {
        ["valid", "missing"].contains(&self.state(letter))
    }

    fn publish(&mut self, day: u64, shown: &Shown) {
        if self.deleted {
            return;
        }
        let with = |wanted: (bool, bool)| {
            let is_such =
                move |one: &(bool, bool, bool)| one.0 && (one.2, one.1 || !wanted.1) == (wanted.0, true);
            LETTERS.into_iter().zip(shown).filter(move |(_, one)| is_such(one)).map(|(letter, _)| letter)
        };
        for letter in with((true, true)) {
            if !["start", "removed"].contains(&self.state(letter)) {
                self.states.insert(letter, "revoked");
                self.last_shown.insert(letter, day);
            }
        }
        if !LETTERS.into_iter().any(|letter| self.is_anchor(letter)) {
            self.deleted = true;
            self.states.retain(|_, state| ["revoked", "removed"].contains(state));
            return;
        }
        let vouching: Vec<_> = with((false, true)).filter(|letter| self.is_anchor(*letter)).collect();
        if vouching.is_empty() {
            return;
        }
        for (letter, one) in LETTERS.into_iter().zip(shown) {
            let next = self.next(day, letter, one.0 && !one.2, one.0, &vouching);
            self.states.insert(letter, next);
        }
    }

    fn next(&mut self, day: u64, letter: char, there: bool, shown: bool, vouching: &[char]) -> &'static str {
        let state = self.state(letter);
        match (state, there) {
            ("start", true) => {
                self.waiting.insert(letter, (day, vouching.to_vec()));
                "pending"
            }
            ("pending", false) => "start",
            ("pending", true) => {
                let (since, by) = self.waiting[&letter].clone();
                if by.iter().all(|one| ["revoked", "removed"].contains(&self.state(*one))) {
                    self.waiting.insert(letter, (day, vouching.to_vec()));
                    "pending"
                } else if day - since >= 30 {
                    "valid"
                } else {
                    "pending"
                }
            }
            ("valid" | "missing", true) => "valid",
            ("valid" | "missing", false) => "missing",
            ("revoked", _) if shown => {
                self.last_shown.insert(letter, day);
                "revoked"
            }
            ("revoked", _) if day - self.last_shown[&letter] >= 30 => "removed",
            (state, _) => state,
        }
    }
}

fn shown() -> impl Strategy<Value = Shown> {
    let one = (prop::bool::weighted(0.8), prop::bool::weighted(0.6), prop::bool::weighted(0.08));
    prop::collection::vec(one, LETTERS.len())
}

proptest! {
    #[test]
    fn trust_points_follow_the_state_table_with_and_without_restarts(
        days in prop::collection::vec((1u64..25, shown()), 1..30), restarts in any::<bool>()
    ) {
        let configured = [anchor('A'), anchor('B')];
        let mut anchors = TrustAnchors::new(&configured, START);
        let mut table = Table::default();
        table.states.extend([('A', "valid"), ('B', "valid")]);
        let mut day = 0;
        for (later, shown) in &days {
            day += later;
            let text = written(shown);
            if restarts {
                anchors = TrustAnchors::restored(&configured, &anchors.text(), START + day * DAY).unwrap();
            }
            on(&mut anchors.points[0], day, &text);
            table.publish(day, shown);
            for letter in LETTERS {
                prop_assert_eq!(state(&anchors.points[0], letter), table.state(letter), "{} on day {}: {}", letter, day, text);
            }
        }
    }

    #[test]
    fn no_text_makes_reading_stop_the_process(text in "(version 1\n)?((zone \\.|ds|key|end)( [a-z0-9 ,]{0,20})?\n){0,6}") {
        let _ = TrustAnchors::restored(&[anchor('A')], &text, START);
    }
}
