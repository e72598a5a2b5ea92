//! A resolver with another validator: one that reads its verdicts from a table.

use super::dnssec::{RECORDED, dnssec};
use super::world::{CD_DO, DO, Got, PLAIN, World, settings, wire};
use sixway_control::dns64::{Anchor, Outcome, Security, Settings, Upstream, Wire};
use sixway_dnssec::{CurrentTime, Lookup, Reply, Validate, Validation, Verdict};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

const A: u16 = 1;
const DS: u16 = 43;
const DNSKEY: u16 = 48;

fn verdict(security: Security) -> Verdict {
    Verdict { security, extended_error: None, ttl_bound: None, blamed: None, checks: 0 }
}

/// What the validator was told, for the tests to see.
#[derive(Debug, Default)]
struct Told {
    anchors: Vec<usize>,
    forgotten: usize,
    /// Each lookup, and the number of RRsets of its answer section.
    lookups: Vec<(Lookup, Option<usize>)>,
    walls: Vec<u64>,
}

/// A validator without keys. What is not in the table is secure.
#[derive(Debug, Default)]
struct Table {
    verdicts: BTreeMap<(Vec<u8>, u16), Verdict>,
    /// What it wants to know first, for each validation.
    wants: Vec<Lookup>,
    /// Validations under way, with what they still want and their verdicts.
    under_way: Vec<(Validation, VecDeque<Lookup>, Verdict)>,
    next: u64,
    told: Rc<RefCell<Told>>,
    asked: Vec<(Validation, Lookup)>,
}

impl Table {
    fn of(rows: &[(&str, u16, Verdict)]) -> Self {
        let row = |(name, qtype, verdict): &(&str, u16, Verdict)| {
            ((wire(name).0.to_vec(), *qtype), verdict.clone())
        };
        Self { verdicts: rows.iter().map(row).collect(), ..Self::default() }
    }
}

impl Validate for Table {
    fn begin(&mut self, now: CurrentTime, name: &[u8], qtype: u16, _: Reply) -> Validation {
        self.told.borrow_mut().walls.push(now.wall);
        self.next += 1;
        let key = (name.to_ascii_lowercase(), qtype);
        let verdict = self.verdicts.get(&key).cloned().unwrap_or(verdict(Security::Secure));
        let wanted = self.wants.iter().cloned().collect();
        self.under_way.push((Validation(self.next), wanted, verdict));
        Validation(self.next)
    }

    fn poll_lookup(&mut self) -> Option<(Validation, Lookup)> {
        let asked = &mut self.asked;
        let (number, lookup) = self.under_way.iter_mut().find_map(|(number, wanted, _)| {
            let waits = asked.iter().any(|(other, _)| other == number);
            if waits { None } else { Some((*number, wanted.pop_front()?)) }
        })?;
        asked.push((number, lookup.clone()));
        Some((number, lookup))
    }

    fn handle_lookup(&mut self, _: CurrentTime, lookup: &Lookup, reply: Option<&Reply>) {
        self.told.borrow_mut().lookups.push((lookup.clone(), reply.map(|reply| reply.answer.len())));
        self.asked.retain(|(_, asked)| asked != lookup);
    }

    fn poll_verdict(&mut self) -> Option<(Validation, Verdict)> {
        let done = self.under_way.iter().position(|(number, wanted, _)| {
            wanted.is_empty() && self.asked.iter().all(|(other, _)| other != number)
        })?;
        let (number, _, verdict) = self.under_way.remove(done);
        Some((number, verdict))
    }

    fn abandon(&mut self, validation: Validation) {
        self.under_way.retain(|(number, ..)| *number != validation);
        self.asked.retain(|(number, _)| *number != validation);
    }

    fn set_anchors(&mut self, anchors: Vec<Anchor>, _: Vec<Wire>) {
        self.told.borrow_mut().anchors.push(anchors.len());
    }

    fn forget(&mut self) {
        self.told.borrow_mut().forgotten += 1;
    }
}

fn world(table: Table) -> World<Table> {
    let settings = Settings { dnssec: dnssec(), ..settings() };
    World::with_validator(settings, table).with(&[("host.test", "A", 300, "192.0.2.1")])
}

#[test]
fn answers_follow_the_verdicts_whoever_gives_them() {
    let bogus = Verdict { extended_error: Some(7), ..verdict(Security::Bogus) };
    for (given, rcode, authentic, code) in [
        (verdict(Security::Secure), "NOERROR", true, None),
        (verdict(Security::Insecure), "NOERROR", false, None),
        (bogus, "SERVFAIL", false, Some(7)),
    ] {
        let mut world = world(Table::of(&[("host.test", A, given)]));
        let got = world.ask("host.test", "A", DO);
        assert_eq!((&*got.rcode, got.authentic), (rcode, authentic), "{got:?}");
        assert_eq!(got.extended_error.map(|error| error.0), code);
        assert_eq!(world.ask("host.test", "A", CD_DO).rcode, "NOERROR", "with CD=1 no verdict counts");
    }
}

#[test]
fn what_a_validator_wants_to_know_is_looked_up_once_and_told() {
    let wants = [DS, DNSKEY].map(|qtype| Lookup { name: wire("test"), qtype });
    let table = Table { wants: wants.to_vec(), ..Table::default() };
    let told = Rc::clone(&table.told);
    let mut world = world(table);
    let got = world.ask("host.test", "A", DO);
    assert!(got.authentic, "{got:?}");
    let heard = told.borrow().lookups.clone();
    assert_eq!(heard, wants.map(|lookup| (lookup, Some(0))), "the upstream has none");
    let seen: Vec<u16> = world.seen.iter().map(|(_, _, rtype)| rtype.to_int()).collect();
    assert_eq!(seen, [A, DS, DNSKEY]);
    assert_eq!(told.borrow().walls, [1_800_000_000]);
}

#[test]
fn a_bound_of_a_verdict_ends_an_entry() {
    let bound = Verdict { ttl_bound: Some(5), ..verdict(Security::Secure) };
    let mut world = world(Table::of(&[("host.test", A, bound)]));
    let got = world.ask("host.test", "A", DO);
    assert!(got.answer[0].contains(" 5 IN A "), "{got:?}");
    world.pass(Duration::from_secs(6));
    let asked = world.seen.len();
    world.ask("host.test", "A", DO);
    assert!(world.seen.len() > asked);
}

#[test]
fn what_is_blamed_is_queried_elsewhere() {
    let key = Lookup { name: wire("test"), qtype: DNSKEY };
    let bogus = Verdict { blamed: Some(key.clone()), ..verdict(Security::Bogus) };
    let table = Table { wants: vec![key], ..Table::of(&[("host.test", A, bogus)]) };
    let mut settings = Settings { dnssec: dnssec(), ..settings() };
    settings.upstreams.push(Upstream { names: vec![], datagrams: true });
    let mut world = World::with_validator(settings, table).with(&[("host.test", "A", 300, "192.0.2.1")]);
    assert_eq!(world.ask("host.test", "A", PLAIN).rcode, "SERVFAIL");
    for rtype in [A, DNSKEY] {
        let asked = world.seen.iter().filter(|seen| seen.2.to_int() == rtype).map(|seen| seen.0);
        assert_eq!(asked.collect::<Vec<_>>().last(), Some(&1), "{:?}", world.seen);
    }
}

#[test]
fn a_validator_is_told_of_anchors_and_of_flushed_names() {
    let table = Table::default();
    let told = Rc::clone(&table.told);
    let mut world = world(table);
    let first = world.seen.len();
    assert_eq!(told.borrow().anchors, [1]);
    world.ask("host.test", "A", DO);
    world.resolver.set_anchors(Vec::new());
    assert_eq!(told.borrow().anchors, [1, 0]);
    world.ask("host.test", "A", DO);
    assert_eq!(told.borrow().walls.len(), 2, "verdicts with other anchors do not count");
    assert_eq!(world.seen.len(), first + 1, "the answer itself is kept");
    world.resolver.flush(&wire("test").0);
    assert_eq!(told.borrow().forgotten, 1);
}

/// The verdicts of unbound, as they were recorded with the answers.
fn of_another_validator() -> Vec<(&'static str, u16, Verdict)> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let [name, qtype, said, _] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let security = match said {
            "secure" => Security::Secure,
            "insecure" => Security::Insecure,
            "bogus" => Security::Bogus,
            _ => return None,
        };
        Some((name, qtype.parse().expect("a type"), verdict(security)))
    };
    lines.filter_map(row).collect()
}

/// All of an answer that does not depend on time, and not on what a validator says about its reasons.
fn comparable(got: Got) -> (String, bool, Vec<String>) {
    let without_ttl = |record: String| {
        let words = record.split(' ').enumerate().filter(|(place, _)| *place != 1);
        words.map(|(_, word)| word.to_owned()).collect::<Vec<_>>().join(" ")
    };
    (got.rcode, got.authentic, got.answer.into_iter().map(without_ttl).collect())
}

/// Where the verdicts differ: see `verdicts_are_those_of_another_validator`.
const OTHERWISE: &str = "x.dn.dn.test";

#[test]
fn with_the_verdicts_of_another_validator_clients_get_the_same_answers() {
    let rows = of_another_validator();
    let mut bogus = 0;
    for (qtype, bits) in ["A", "AAAA"].iter().flat_map(|qtype| [PLAIN, DO, CD_DO].map(|bits| (qtype, bits))) {
        let mut ours = super::dnssec::world(dnssec());
        let settings = Settings { dnssec: dnssec(), ..settings() };
        let mut theirs = World::with_validator(settings, Table::of(&rows)).with_recorded(RECORDED);
        for (name, ..) in rows.iter().filter(|(name, qtype, _)| *qtype == A && *name != OTHERWISE) {
            let (own, other) = (ours.ask(name, qtype, bits), theirs.ask(name, qtype, bits));
            assert_eq!(comparable(own), comparable(other), "{name} {qtype} {bits:?}");
            let [own, other] = [ours.counters(), theirs.counters()].map(|of| of.of(Outcome::Bogus));
            assert_eq!(own, other, "{name} {qtype} {bits:?}");
        }
        bogus += ours.counters().of(Outcome::Bogus);
    }
    assert!(bogus > 20, "{bogus}");
}
