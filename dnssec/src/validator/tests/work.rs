//! No answer causes more work than `limits` allows.

use super::forged::*;
use super::*;
use crate::anchor::Anchor;
use crate::validator::limits::Work;
use crate::validator::zone::Zone;
use crate::validator::{signature, zone};
use crate::wire::Wire;

/// Keys with the same tag: the sum of their words does not tell their order.
fn colliding(like: &Signer) -> Vec<Box<[u8]>> {
    let own = like.dnskey();
    let turned = (0..15).map(|turn| {
        let mut key = own.clone();
        key[4..].rotate_left(2 * (turn + 1));
        key.into_boxed_slice()
    });
    turned.chain([own.clone().into_boxed_slice()]).collect()
}

#[test]
fn keys_with_the_same_tag_and_signatures_by_none_of_them_are_given_up() {
    let signer = Signer::new("good.test", 2);
    let keys = zone::keys(&colliding(&signer));
    assert!(keys.len() > 8 && keys.iter().all(|key| key.tag == signer.tag()));
    let trap = Zone { name: Wire(wire("good.test").into()), keys };
    let mut records = signer.sign(&[record("www.good.test", A, &[192, 0, 2, 1])]);
    for number in 0..100 {
        let mut wrong = records[1].clone();
        *wrong.rdata.last_mut().expect("a signature") = number;
        records.push(wrong);
    }
    records.remove(1);
    let (reply, mut work) = (reply(0, &records, &[]), Work::default());
    for _ in 0..20 {
        assert!(signature::verify(&reply.answer[0], &trap, WALL, &mut work).is_err());
    }
    assert_eq!(work.checked(), 16);
}

#[test]
fn a_key_among_a_few_with_the_same_tag_is_found() {
    let signer = Signer::new("good.test", 2);
    let keys: Vec<_> = colliding(&signer).into_iter().skip(13).collect();
    let zone = Zone { name: Wire(wire("good.test").into()), keys: zone::keys(&keys) };
    let reply = reply(0, &signer.sign(&[record("www.good.test", A, &[192, 0, 2, 1])]), &[]);
    assert!(signature::verify(&reply.answer[0], &zone, WALL, &mut Work::default()).is_ok());
}

#[test]
fn a_message_of_many_rrsets_is_not_read() {
    let records: Vec<_> =
        (0..65).map(|number| record(&format!("n{number}.good.test"), A, &[1, 2, 3, 4])).collect();
    assert!(Reply::read(&message(0, &records[..64], &[])).is_ok());
    assert!(Reply::read(&message(0, &records, &[])).is_err());
}

#[test]
fn a_name_of_many_labels_is_not_followed_for_ever() {
    let mut tree = Tree::new();
    let name = format!("{}good.test", "a.".repeat(110));
    for labels in 1..=110 {
        let owner = format!("{}good.test", "a.".repeat(labels));
        let types = &[A, RRSIG, NSEC];
        let authority = tree.good.nsec(&owner, "b.good.test", types);
        tree.world.tell(&owner, DS, reply(0, &[], &authority));
    }
    let plain = reply(0, &[record(&name, A, &[192, 0, 2, 1])], &[]);
    assert_eq!(tree.verdict(&name, A, plain).security, Security::Bogus);
    assert!(tree.world.asked <= 81, "{} lookups", tree.world.asked);
}

#[test]
fn a_question_is_asked_once_whoever_waits_for_it() {
    let mut tree = Tree::new();
    let mut validator = Validator::new(vec![tree.root.anchor()], Vec::new());
    let signed = reply(0, &tree.good.sign(&[record("www.good.test", A, &[192, 0, 2, 1])]), &[]);
    let begun: Vec<_> =
        (0..5).map(|_| validator.begin(NOW, &wire("www.good.test"), A, signed.clone())).collect();
    validator.abandon(begun[0]);
    let mut asked = Vec::new();
    while let Some((first, lookup)) = validator.poll_lookup() {
        assert_eq!(first, begun[1], "who came first has gone");
        let found = tree.world.answer(&lookup);
        validator.handle_lookup(NOW, &lookup, found.as_ref());
        asked.push(lookup.qtype);
    }
    assert_eq!(asked, [DNSKEY, DS, DNSKEY]);
    let verdicts: Vec<_> = std::iter::from_fn(|| validator.poll_verdict()).collect();
    assert!(verdicts.iter().all(|(_, verdict)| verdict.security == Security::Secure));
    assert_eq!(verdicts.iter().map(|(number, _)| *number).collect::<Vec<_>>(), begun[1..]);
}

#[test]
fn what_nobody_waits_for_any_more_is_not_asked() {
    let tree = Tree::new();
    let mut validator = Validator::new(vec![tree.root.anchor()], Vec::new());
    let begun = validator.begin(NOW, &wire("www.good.test"), A, reply(0, &[], &[]));
    validator.abandon(begun);
    assert_eq!((validator.poll_lookup(), validator.poll_verdict()), (None, None));
}

#[test]
fn what_was_found_is_not_looked_up_again_before_it_ends() {
    let mut tree = Tree::new();
    let mut validator = Validator::new(vec![tree.root.anchor()], Vec::new());
    let signed = reply(0, &tree.good.sign(&[record("www.good.test", A, &[192, 0, 2, 1])]), &[]);
    for (seconds, asked) in [(0, 3), (299, 3), (300, 6)] {
        let now = CurrentTime { monotonic: NOW.monotonic + Duration::from_secs(seconds), ..NOW };
        validator.begin(now, &wire("www.good.test"), A, signed.clone());
        while let Some((_, lookup)) = validator.poll_lookup() {
            let found = tree.world.answer(&lookup);
            validator.handle_lookup(now, &lookup, found.as_ref());
        }
        let (_, verdict) = validator.poll_verdict().expect("a verdict");
        assert_eq!((verdict.security, tree.world.asked), (Security::Secure, asked), "after {seconds} s");
    }
}

#[test]
fn without_an_answer_to_a_lookup_nothing_can_be_told() {
    let mut tree = Tree::new();
    tree.world.lookups.remove(&(wire("good.test"), DNSKEY));
    let signed = reply(0, &tree.good.sign(&[record("www.good.test", A, &[192, 0, 2, 1])]), &[]);
    let verdict = tree.verdict("www.good.test", A, signed);
    assert_eq!((verdict.security, verdict.extended_error), (Security::Indeterminate, Some(22)));
    assert_eq!(verdict.blamed.map(|lookup| lookup.qtype), Some(DNSKEY));
    assert_eq!(tree.verdict("www.good.test", A, reply(2, &[], &[])).security, Security::Indeterminate);
}

#[test]
fn anchors_decide_what_is_validated() {
    let mut tree = Tree::new();
    let plain = || reply(0, &[record("www.good.test", A, &[192, 0, 2, 1])], &[]);
    let mut security = |anchors: Vec<Anchor>, insecure: &[&str]| {
        let insecure = insecure.iter().map(|name| Wire(wire(name).into())).collect();
        let mut validator = Validator::new(anchors, insecure);
        validate_at(&mut validator, &mut tree.world, WALL, ("www.good.test", A), plain()).security
    };
    let (anchor, other) = (Signer::new("test", 1).anchor(), Signer::new("test", 7).anchor());
    assert_eq!(security(vec![anchor.clone()], &[]), Security::Bogus);
    assert_eq!(security(vec![other], &[]), Security::Bogus, "an anchor that is none of the zone's keys");
    assert_eq!(security(vec![], &[]), Security::Insecure);
    assert_eq!(security(vec![anchor.clone()], &["good.test"]), Security::Insecure);
    assert_eq!(security(vec![anchor.clone()], &["www.good.test"]), Security::Insecure);
    assert_eq!(security(vec![anchor], &["a.www.good.test"]), Security::Bogus);
}

#[test]
fn other_anchors_forget_what_the_old_ones_proved() {
    let mut tree = Tree::new();
    let signed =
        || reply(0, &Signer::new("good.test", 2).sign(&[record("www.good.test", A, &[192, 0, 2, 1])]), &[]);
    let mut validator = Validator::new(vec![tree.root.anchor()], Vec::new());
    let mut security = |validator: &mut Validator| {
        validate_at(validator, &mut tree.world, WALL, ("www.good.test", A), signed()).security
    };
    assert_eq!(security(&mut validator), Security::Secure);
    validator.set_anchors(vec![Signer::new("test", 7).anchor()], Vec::new());
    assert_eq!(security(&mut validator), Security::Bogus);
}
