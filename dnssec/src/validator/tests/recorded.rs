//! Answers of real servers about zones that real signers signed, with the verdicts of another validator (see the script `record`).

use super::*;
use crate::anchor::{Anchor, AnchorKey};
use crate::wire::Wire;
use std::collections::BTreeMap;

/// The recording: anchor, questions with unbound's verdict and the answer, lookups.
pub(super) struct Recording {
    anchor: Anchor,
    pub(super) questions: Vec<(&'static str, u16, Security, Vec<u8>)>,
    lookups: BTreeMap<(Vec<u8>, u16), Vec<u8>>,
    asked: usize,
}

fn octets(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// From `zone TTL IN DS tag algorithm digest-type digest`.
fn anchor(words: &[&str]) -> Anchor {
    let [zone, _, _, _, tag, algorithm, digest_type, digest] = words else { panic!("{words:?}") };
    let tag: u16 = tag.parse().expect("a tag");
    let numbers = [algorithm, digest_type].map(|number| number.parse::<u8>().expect("a number"));
    let rdata = [&tag.to_be_bytes()[..], &numbers, &octets(digest)].concat();
    Anchor { zone: Wire(wire(zone).into()), key: AnchorKey::Ds(rdata.into()) }
}

impl Recording {
    pub(super) fn read() -> Self {
        let mut found: (Option<Anchor>, Vec<_>, BTreeMap<_, _>) = Default::default();
        for line in include_str!("answers.txt").lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<_> = line.split(' ').collect();
            match &words[..] {
                ["anchor", rest @ ..] => found.0 = Some(anchor(rest)),
                [name, qtype, "lookup", message] => {
                    found.2.insert((wire(name), qtype.parse().expect("a type")), octets(message));
                }
                [name, qtype, verdict, message] => {
                    let security = match *verdict {
                        "secure" => Security::Secure,
                        "insecure" => Security::Insecure,
                        _ => Security::Bogus,
                    };
                    found.1.push((*name, qtype.parse().expect("a type"), security, octets(message)));
                }
                _ => panic!("{line}"),
            }
        }
        Self { anchor: found.0.expect("there is an anchor"), questions: found.1, lookups: found.2, asked: 0 }
    }

    pub(super) fn validator(&self) -> Validator {
        Validator::new(vec![self.anchor.clone()], Vec::new())
    }

    pub(super) fn reply(&self, name: &str, qtype: u16) -> Reply {
        let same = |question: &&(&str, u16, Security, Vec<u8>)| question.0 == name && question.1 == qtype;
        let question = self.questions.iter().find(same).expect("it was recorded");
        Reply::read(&question.3).expect("it can be read")
    }

    /// What the validator makes of a recorded answer, with nothing known before.
    fn verdict(&mut self, name: &str, qtype: u16) -> Verdict {
        let (mut validator, reply) = (self.validator(), self.reply(name, qtype));
        validate_at(&mut validator, self, WALL, (name, qtype), reply)
    }
}

impl Upstream for Recording {
    fn answer(&mut self, lookup: &Lookup) -> Option<Reply> {
        self.asked += 1;
        let key = (lookup.name.0.to_vec(), lookup.qtype);
        self.lookups.get(&key).map(|message| Reply::read(message).expect("it can be read"))
    }
}

/// Where we differ: a chain that passes the same DNAME record twice. Its links are all signed, and BIND's delv agrees; unbound wants each record once.
const OTHERWISE: [(&str, Security); 1] = [("x.dn.dn.test", Security::Secure)];

#[test]
fn verdicts_are_those_of_another_validator() {
    let mut recording = Recording::read();
    let (mut warm, mut wrong) = (recording.validator(), Vec::new());
    let questions = recording.questions.clone();
    for (name, qtype, theirs, _) in &questions {
        let otherwise = OTHERWISE.iter().find(|(other, _)| other == name);
        let expected = otherwise.map_or(*theirs, |(_, ours)| *ours);
        let reply = recording.reply(name, *qtype);
        for found in [
            recording.verdict(name, *qtype),
            validate_at(&mut warm, &mut recording, WALL, (name, *qtype), reply),
        ] {
            if found.security != expected {
                wrong.push((*name, *qtype, expected, found));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(questions.len() > 90);
}

#[test]
fn too_many_iterations_are_insecure_and_say_so() {
    let mut recording = Recording::read();
    let found = recording.verdict("nothing.many.test", 1);
    assert_eq!((found.security, found.extended_error), (Security::Insecure, Some(27)));
    let mut unsigned = recording.reply("nothing.many.test", 1);
    unsigned.authority.iter_mut().filter(|set| set.rtype == 50).for_each(|set| set.signatures.clear());
    let mut validator = recording.validator();
    let found = validate_at(&mut validator, &mut recording, WALL, ("nothing.many.test", 1), unsigned);
    assert_eq!(found.security, Security::Bogus, "whoever changes the iterations makes nothing insecure");
}

#[test]
fn what_is_wrong_is_reported() {
    let mut recording = Recording::read();
    for (name, code) in [
        ("www.algorithm.test", 1),
        ("www.digest.test", 2),
        ("www.tampered.test", 6),
        ("www.expired.test", 7),
        ("www.future.test", 8),
        ("www.wrongkey.test", 9),
        ("www.nosig.test", 9),
        ("www.stripped.test", 10),
        ("nothing.noproof.test", 12),
    ] {
        assert_eq!(recording.verdict(name, 1).extended_error, Some(code), "{name}");
    }
}
