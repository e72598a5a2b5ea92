//! Recorded answers, changed or put in place of others: none that says something else is secure.

use super::forged::CNAME;
use super::recorded::Recording;
use super::*;

/// The signed contents of an answer: its RCODE and RRsets without TTLs and without CNAME records that follow from DNAME records.
fn says(reply: &Reply) -> impl PartialEq {
    let signed = reply.answer.iter().filter(|set| set.rtype != CNAME || !set.signatures.is_empty());
    let sets = signed.map(|set| (set.owner.clone(), set.rtype, set.rdatas.clone()));
    (reply.rcode, sets.collect::<Vec<_>>())
}

#[test]
fn no_octet_of_a_secure_answer_can_be_changed() {
    let mut recording = Recording::read();
    let (mut validator, mut judged) = (recording.validator(), 0);
    for (number, (name, qtype, security, message)) in recording.questions.clone().into_iter().enumerate() {
        if security != Security::Secure {
            continue;
        }
        let original = Reply::read(&message).expect("it can be read");
        // A few octets of each, others in each.
        for at in (3 + number % 5..message.len()).step_by(5) {
            let mut changed = message.clone();
            changed[at] ^= 1 << (at % 8);
            let Ok(changed) = Reply::read(&changed) else { continue };
            if says(&changed) == says(&original) {
                continue;
            }
            judged += 1;
            let found = validate_at(&mut validator, &mut recording, WALL, (name, qtype), changed);
            assert_ne!(found.security, Security::Secure, "{name} {qtype}, octet {at}");
        }
    }
    assert!(judged > 250, "{judged}");
}

#[test]
fn what_exists_is_denied_by_no_proof_of_something_else() {
    let mut recording = Recording::read();
    let mut validator = recording.validator();
    for name in ["www.test", "www.nsec3.test", "www.optout.test", "www.zone.deep.test", "www.p384.test"] {
        for (other, qtype, _, message) in recording.questions.clone() {
            let reply = Reply::read(&message).expect("it can be read");
            if !reply.answer.is_empty() {
                continue;
            }
            let found = validate_at(&mut validator, &mut recording, WALL, (name, 1), reply);
            assert_eq!(found.security, Security::Bogus, "{name} by what is said of {other} {qtype}");
        }
    }
}

#[test]
fn an_answer_without_its_signatures_or_proofs_is_bogus() {
    let mut recording = Recording::read();
    for (name, qtype, security, _) in recording.questions.clone() {
        // In a zone with too many iterations any name may be an unsigned delegation (RFC 9276 §3.2).
        if security != Security::Secure || name.ends_with("many.test") {
            continue;
        }
        let (mut unsigned, mut unproven) = (recording.reply(name, qtype), recording.reply(name, qtype));
        let sections = [&mut unsigned.answer, &mut unsigned.authority];
        sections.into_iter().flatten().for_each(|set| set.signatures.clear());
        unproven.authority.clear();
        let needs_proof = unproven != recording.reply(name, qtype);
        let mut found = |reply| {
            let mut validator = recording.validator();
            validate_at(&mut validator, &mut recording, WALL, (name, qtype), reply).security
        };
        assert_eq!(found(unsigned), Security::Bogus, "{name} {qtype} without signatures");
        assert_eq!(
            found(unproven) == Security::Bogus,
            needs_proof,
            "{name} {qtype} without authority section"
        );
    }
}

#[test]
fn an_answer_that_is_sent_again_later_is_bogus() {
    let mut recording = Recording::read();
    let (mut validator, reply) = (recording.validator(), recording.reply("www.test", 1));
    for (wall, code) in [(1_500_000_000, Some(8)), (WALL, None), (2_100_000_000, Some(7))] {
        let found = validate_at(&mut validator, &mut recording, wall, ("www.test", 1), reply.clone());
        assert_eq!(found.extended_error, code, "at {wall}");
        assert_eq!(found.security == Security::Secure, code.is_none());
    }
}

#[test]
fn recorded_messages_cut_at_any_length_cause_no_panic() {
    let mut recording = Recording::read();
    let mut validator = recording.validator();
    for (name, qtype, _, message) in recording.questions.clone().into_iter().step_by(7) {
        for end in 0..message.len() {
            if let Ok(reply) = Reply::read(&message[..end]) {
                validate_at(&mut validator, &mut recording, WALL, (name, qtype), reply);
            }
        }
    }
}
