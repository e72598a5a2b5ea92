//! Attacks, all of which are rejected.

use super::forged::*;
use super::*;

/// INFO-CODEs of RFC 8914 §4: DNSSEC Bogus.
const BOGUS: Option<u16> = Some(6);
/// Signature Expired.
const EXPIRED: Option<u16> = Some(7);
/// Signature Not Yet Valid.
const EARLY: Option<u16> = Some(8);
/// DNSKEY Missing.
const NO_KEY: Option<u16> = Some(9);
/// RRSIGs Missing.
const NO_SIGNATURE: Option<u16> = Some(10);
/// NSEC Missing.
const NO_PROOF: Option<u16> = Some(12);

fn address(owner: &str) -> [Record; 1] {
    [record(owner, A, &[192, 0, 2, 1])]
}

#[test]
fn what_a_zone_signed_is_secure_and_what_an_unsigned_one_says_is_insecure() {
    let mut tree = Tree::new();
    let signed = tree.good.sign(&address("www.good.test"));
    assert_eq!(tree.verdict("www.good.test", A, reply(0, &signed, &[])).security, Security::Secure);
    let plain = reply(0, &address("www.insecure.test"), &[]);
    assert_eq!(tree.verdict("www.insecure.test", A, plain).security, Security::Insecure);
    let nothing = reply(3, &[], &[]);
    assert_eq!(tree.verdict("www.insecure.test", A, nothing).security, Security::Insecure, "without SOA");
}

#[test]
fn a_signature_of_a_foreign_zone_is_ignored() {
    let mut tree = Tree::new();
    let foreign = reply(0, &tree.evil.sign(&address("www.good.test")), &[]);
    assert_eq!(tree.bogus("www.good.test", A, foreign), NO_SIGNATURE);
}

#[test]
fn a_signer_that_is_not_signed_itself_makes_nothing_insecure() {
    let mut tree = Tree::new();
    for zone in ["insecure.test", "www.insecure.test", "elsewhere"] {
        let forged = reply(0, &Signer::new(zone, 9).sign(&address("www.good.test")), &[]);
        assert_eq!(tree.bogus("www.good.test", A, forged), NO_SIGNATURE, "{zone}");
    }
}

#[test]
fn a_name_within_a_zone_is_not_a_zone_that_signs() {
    let mut tree = Tree::new();
    let forger = Signer::new("www.test", 9);
    tree.world.tell(
        "www.test",
        DNSKEY,
        reply(0, &forger.sign(&[record("www.test", DNSKEY, &forger.dnskey())]), &[]),
    );
    let forged = reply(0, &forger.sign(&address("www.test")), &[]);
    assert_eq!(tree.bogus("www.test", A, forged), NO_SIGNATURE);
}

#[test]
fn a_parent_may_sign_its_delegations_ds_records_and_a_child_may_not() {
    let mut tree = Tree::new();
    let ds = [tree.good.ds()];
    let (right, wrong) = (reply(0, &tree.root.sign(&ds), &[]), reply(0, &tree.good.sign(&ds), &[]));
    assert_eq!(tree.verdict("good.test", DS, right).security, Security::Secure);
    assert_eq!(tree.bogus("good.test", DS, wrong.clone()), NO_SIGNATURE);
    tree.world.tell("good.test", DS, wrong);
    let signed = reply(0, &tree.good.sign(&address("www.good.test")), &[]);
    let verdict = tree.verdict("www.good.test", A, signed);
    assert_eq!((verdict.security, verdict.blamed.map(|blamed| blamed.qtype)), (Security::Bogus, Some(DS)));
}

#[test]
fn keys_count_only_if_one_that_is_meant_signed_them() {
    let mut tree = Tree::new();
    let (forger, signed) = (Signer::new("good.test", 9), tree.good.sign(&address("www.good.test")));
    let keys =
        [record("good.test", DNSKEY, &forger.dnskey()), record("good.test", DNSKEY, &tree.good.dnskey())];
    let mut sorted = keys.clone();
    sorted.sort_by(|a, b| a.rdata.cmp(&b.rdata));
    for (set, signer, why) in [(&keys[..1], &forger, NO_KEY), (&sorted[..], &forger, BOGUS)] {
        let answer = reply(0, &signer.sign(set), &[]);
        tree.world.tell("good.test", DNSKEY, answer);
        assert_eq!(tree.bogus("www.good.test", A, reply(0, &signed, &[])), why);
    }
    let whole = reply(0, &tree.good.sign(&sorted), &[]);
    tree.world.tell("good.test", DNSKEY, whole);
    assert_eq!(tree.verdict("www.good.test", A, reply(0, &signed, &[])).security, Security::Secure);
}

#[test]
fn a_revoked_key_signs_nothing_any_more() {
    let mut tree = Tree::new();
    tree.good.flags |= 0x0080;
    let Tree { root, good, world, .. } = &mut tree;
    world.add(good, Some(root));
    let signed = reply(0, &tree.good.sign(&address("www.good.test")), &[]);
    assert_eq!(tree.bogus("www.good.test", A, signed), NO_KEY);
}

#[test]
fn signatures_hold_from_their_inception_to_their_expiration() {
    let mut tree = Tree::new();
    let now = WALL as u32;
    for (inception, expiration, why) in [
        (now, now, None),
        (now - 9, now - 1, EXPIRED),
        (now + 1, now + 9, EARLY),
        (now + 1, now - 1, EXPIRED),
    ] {
        let terms = Terms { inception, expiration, ..TERMS };
        let signed = reply(0, &tree.good.sign_by(&address("www.good.test"), terms), &[]);
        assert_eq!(tree.bogus("www.good.test", A, signed), why, "{inception} to {expiration}");
    }
}

#[test]
fn a_secure_answer_is_kept_no_longer_than_its_signature_holds() {
    let mut tree = Tree::new();
    for (ttl, expiration, bound) in [(300, 3600, 300), (300, 7, 7), (0, 3600, 0)] {
        let terms = Terms { expiration: WALL as u32 + expiration, ttl, ..TERMS };
        let signed = reply(0, &tree.good.sign_by(&address("www.good.test"), terms), &[]);
        assert_eq!(tree.verdict("www.good.test", A, signed).ttl_bound, Some(bound));
    }
}

#[test]
fn a_signature_with_more_labels_than_its_owner_is_wrong() {
    let mut tree = Tree::new();
    let terms = Terms { labels: Some(4), ..TERMS };
    let signed = reply(0, &tree.good.sign_by(&address("www.good.test"), terms), &[]);
    assert_eq!(tree.bogus("www.good.test", A, signed), BOGUS);
}

#[test]
fn an_expanded_wildcard_wants_a_proof_that_nothing_is_nearer() {
    let mut tree = Tree::new();
    let answer = tree.good.sign_by(&address("a.good.test"), Terms { labels: Some(2), ..TERMS });
    let nsec = |owner: &str, next: &str| tree.good.nsec(owner, next, &[A, RRSIG, NSEC]);
    let proofs = [
        (vec![], NO_PROOF),
        (nsec("*.good.test", "b.good.test"), None),
        (nsec("a.good.test", "b.good.test"), NO_PROOF),
        (nsec("b.good.test", "c.good.test"), NO_PROOF),
        (nsec("*.good.test", "x.a.good.test"), NO_PROOF),
        (tree.evil.nsec("*.good.test", "b.good.test", &[A]), NO_SIGNATURE),
    ];
    for (proof, why) in proofs {
        assert_eq!(tree.bogus("a.good.test", A, reply(0, &answer, &proof)), why, "{proof:?}");
    }
}

#[test]
fn a_wildcard_further_up_does_not_stand_in_for_a_nearer_one() {
    let mut tree = Tree::new();
    let answer = tree.good.sign_by(&address("a.b.good.test"), Terms { labels: Some(2), ..TERMS });
    let proof = tree.good.nsec("*.b.good.test", "c.b.good.test", &[A, RRSIG, NSEC]);
    assert_eq!(tree.bogus("a.b.good.test", A, reply(0, &answer, &proof)), NO_PROOF);
}

#[test]
fn an_nsec_record_that_a_wildcard_made_proves_nothing() {
    let mut tree = Tree::new();
    let nsec = [record("a.good.test", NSEC, &[wire("z.good.test"), vec![0, 1, 0x40]].concat())];
    let made = tree.good.sign_by(&nsec, Terms { labels: Some(2), ..TERMS });
    let authority = [tree.good.soa(), made].concat();
    assert_eq!(tree.bogus("m.good.test", A, reply(3, &[], &authority)), NO_PROOF);
}

#[test]
fn the_zone_above_does_not_speak_for_names_in_the_zone_below() {
    let mut tree = Tree::new();
    let parent = |owner: &str, next: &str, types: &[u16]| {
        [tree.root.soa(), tree.root.nsec(owner, next, types)].concat()
    };
    let delegation = parent("good.test", "h.test", &[NS, DS, RRSIG, NSEC]);
    let before = parent("a.test", "z.test", &[A, RRSIG, NSEC]);
    for (name, rcode, authority) in [
        ("www.good.test", 3, &delegation),
        ("www.good.test", 0, &delegation),
        ("good.test", 0, &delegation),
        ("good.test", 0, &parent("good.test", "h.test", &[NS, RRSIG, NSEC])),
    ] {
        assert_eq!(tree.bogus(name, A, reply(rcode, &[], authority)), NO_PROOF, "{name} {rcode}");
    }
    assert_eq!(
        tree.bogus("www.good.test", A, reply(3, &[], &before)),
        NO_PROOF,
        "the wildcard is not denied"
    );
}

#[test]
fn the_zone_below_does_not_deny_its_own_delegation() {
    let mut tree = Tree::new();
    let apex = tree.good.nsec("good.test", "www.good.test", &[NS, SOA, RRSIG, NSEC, DNSKEY]);
    let forged = reply(0, &[], &[tree.good.soa(), apex.clone()].concat());
    assert!(tree.bogus("good.test", DS, forged.clone()).is_some());
    tree.world.tell("good.test", DS, forged);
    let plain = reply(0, &address("www.good.test"), &[]);
    assert!(tree.bogus("www.good.test", A, plain.clone()).is_some());
    let by_parent = tree.root.nsec("good.test", "h.test", &[NS, SOA, RRSIG, NSEC]);
    tree.world.tell("good.test", DS, reply(0, &[], &by_parent));
    assert!(tree.bogus("www.good.test", A, plain).is_some());
}

#[test]
fn a_delegation_is_not_insecure_because_its_ds_records_were_left_out() {
    let mut tree = Tree::new();
    let plain = || reply(0, &address("www.good.test"), &[]);
    for (left_out, why) in [
        (reply(0, &[], &[]), NO_PROOF),
        (reply(3, &[], &[]), NO_PROOF),
        (reply(0, &[], &tree.root.soa()), NO_PROOF),
        (reply(0, &[tree.good.ds()], &[]), NO_SIGNATURE),
        (reply(0, &[], &tree.root.nsec("good.test", "h.test", &[NS, DS, RRSIG, NSEC])), NO_PROOF),
        (reply(0, &[], &tree.root.nsec("insecure.test", "j.test", &[NS, RRSIG, NSEC])), NO_PROOF),
    ] {
        tree.world.tell("good.test", DS, left_out);
        assert_eq!(tree.bogus("www.good.test", A, plain()), why);
    }
}

#[test]
fn what_does_not_belong_to_the_chain_makes_an_answer_bogus() {
    let mut tree = Tree::new();
    let (www, ftp) = (tree.good.sign(&address("www.good.test")), address("ftp.good.test"));
    assert_eq!(tree.bogus("www.good.test", A, reply(0, &[&www[..], &ftp].concat(), &[])), BOGUS);
    assert_eq!(tree.bogus("www.good.test", A, reply(3, &www, &[])), BOGUS, "it is there, and does not exist");
}

#[test]
fn each_link_of_a_chain_is_validated() {
    let mut tree = Tree::new();
    let link = |from: &str, to: &str| [record(from, CNAME, &wire(to))];
    let end = tree.good.sign(&address("www.good.test"));
    let signed = tree.good.sign(&link("a.good.test", "www.good.test"));
    let whole = |first: &[Record]| reply(0, &[first, &end].concat(), &[]);
    assert_eq!(tree.verdict("a.good.test", A, whole(&signed)).security, Security::Secure);
    let plain = link("a.good.test", "www.good.test");
    assert_eq!(tree.bogus("a.good.test", A, whole(&plain)), NO_SIGNATURE);
    let insecure = link("a.insecure.test", "www.good.test");
    assert_eq!(tree.verdict("a.insecure.test", A, whole(&insecure)).security, Security::Insecure);
    let bogus = reply(0, &[&insecure[..], &address("www.good.test")].concat(), &[]);
    assert_eq!(tree.bogus("a.insecure.test", A, bogus), NO_SIGNATURE, "the rest is not insecure, too");
    let forked = [record("a.good.test", CNAME, &wire("b.good.test")), plain[0].clone()];
    assert_eq!(tree.bogus("a.good.test", A, whole(&tree.good.sign(&forked))), BOGUS);
}

#[test]
fn a_dname_record_vouches_for_the_cname_record_that_follows_from_it_and_for_no_other() {
    let mut tree = Tree::new();
    let dname = tree.good.sign(&[record("d.good.test", DNAME, &wire("evil.test"))]);
    let end = tree.evil.sign(&address("www.evil.test"));
    for (target, why) in [("www.evil.test", None), ("WWW.Evil.Test", None), ("ftp.evil.test", BOGUS)] {
        let made = [record("www.d.good.test", CNAME, &wire(target))];
        let answer = [&dname[..], &made, &end].concat();
        assert_eq!(tree.bogus("www.d.good.test", A, reply(0, &answer, &[])), why, "{target}");
    }
}

#[test]
fn a_chain_that_ends_at_its_alias_is_not_a_name_error() {
    let mut tree = Tree::new();
    let dname = tree.good.sign(&[record("d.good.test", DNAME, &wire("evil.test"))]);
    let answer = [&dname[..], &[record("www.d.good.test", CNAME, &wire("www.evil.test"))]].concat();
    assert_eq!(tree.bogus("www.d.good.test", CNAME, reply(0, &answer, &[])), None);
    assert_eq!(tree.bogus("www.d.good.test", CNAME, reply(3, &answer, &[])), BOGUS);
}

#[test]
fn names_of_an_nsec_record_with_a_dname_record_are_not_denied_by_it() {
    let mut tree = Tree::new();
    let nsec = tree.good.nsec("d.good.test", "z.good.test", &[DNAME, RRSIG, NSEC]);
    let authority = [tree.good.soa(), nsec].concat();
    assert_eq!(tree.bogus("www.d.good.test", A, reply(3, &[], &authority)), NO_PROOF);
}
