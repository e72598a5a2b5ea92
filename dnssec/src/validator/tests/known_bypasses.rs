//! Bypasses that were reported of other validators; each is rejected here.

use super::forged::*;
use super::*;

/// INFO-CODEs of RFC 8914 §4: DNSSEC Bogus.
const BOGUS: Option<u16> = Some(6);
/// DNSKEY Missing.
const NO_KEY: Option<u16> = Some(9);
/// RRSIGs Missing.
const NO_SIGNATURE: Option<u16> = Some(10);
/// NSEC Missing.
const NO_PROOF: Option<u16> = Some(12);

/// TXT, a type that an attacker denies.
const TXT: u16 = 16;

fn address(owner: &str) -> Record {
    record(owner, A, &[192, 0, 2, 1])
}

/// The records without their signatures.
fn unsigned(mut records: Vec<Record>) -> Vec<Record> {
    records.retain(|record| record.rtype != RRSIG);
    records
}

/// What an attacker answers to a question for an address in a signed zone.
fn plain() -> Reply {
    reply(0, &[address("www.good.test")], &[])
}

#[test]
fn an_unsigned_nsec_record_next_to_a_signed_type_of_its_owner_proves_nothing() {
    let mut tree = Tree::new();
    let nsec = tree.good.nsec("a.good.test", "z.good.test", &[A, RRSIG, NSEC]);
    let soa = tree.good.soa();
    let signed = tree.good.sign(&[address("a.good.test")]);
    let denied = |nsec: &[Record]| {
        let wildcard = tree.good.nsec("good.test", "a.good.test", &[NS, SOA, RRSIG, NSEC, DNSKEY]);
        reply(3, &[], &[&soa[..], &signed, nsec, &wildcard].concat())
    };
    let (whole, forged) = (denied(&nsec), denied(&unsigned(nsec.clone())));
    assert_eq!(tree.verdict("m.good.test", A, whole).security, Security::Secure);
    assert_eq!(tree.bogus("m.good.test", A, forged), NO_SIGNATURE);
    // With it, a signed delegation would be an unsigned one.
    let delegation = unsigned(tree.root.nsec("good.test", "h.test", &[NS, RRSIG, NSEC]));
    for other in [record("good.test", A, &[192, 0, 2, 1]), record("good.test", TXT, b"\x01x")] {
        let authority = [tree.root.soa(), tree.root.sign(&[other]), delegation.clone()].concat();
        tree.world.tell("good.test", DS, reply(0, &[], &authority));
        assert_eq!(tree.bogus("www.good.test", A, plain()), NO_SIGNATURE);
    }
}

#[test]
fn a_record_that_shows_no_delegation_makes_nothing_below_it_insecure() {
    // RFC 6840 §4.4: the NS bit must be set.
    let mut tree = Tree::new();
    let (delegation, name): (&[u16], &[u16]) = (&[NS, RRSIG], &[A, RRSIG]);
    for nsec in [
        |root: &Signer, types: &[u16]| root.nsec("good.test", "h.test", types),
        |root: &Signer, types: &[u16]| root.nsec3("good.test", Hashes::Match, types),
    ] {
        for (types, security) in [(delegation, Security::Insecure), (name, Security::Bogus)] {
            let authority = [tree.root.soa(), nsec(&tree.root, types)].concat();
            tree.world.tell("good.test", DS, reply(0, &[], &authority));
            assert_eq!(tree.verdict("www.good.test", A, plain()).security, security, "{types:?}");
        }
    }
}

#[test]
fn a_wildcard_does_not_answer_for_a_name_that_exists_without_the_type() {
    let mut tree = Tree::new();
    let answer = tree.good.sign_by(&[address("a.good.test")], Terms { labels: Some(2), ..TERMS });
    let good = Signer::new("good.test", 2);
    let absent = reply(0, &answer, &good.nsec3("a.good.test", Hashes::Cover, &[TXT]));
    assert_eq!(tree.verdict("a.good.test", A, absent).security, Security::Secure, "the name does not exist");
    let mut judge = |proof: Vec<Record>| tree.bogus("a.good.test", A, reply(0, &answer, &proof));
    assert_eq!(judge(good.nsec3("a.good.test", Hashes::Match, &[TXT, RRSIG])), NO_PROOF);
    assert_eq!(judge(good.nsec3("*.good.test", Hashes::Cover, &[TXT, RRSIG])), NO_PROOF);
    assert_eq!(judge(good.nsec("a.good.test", "b.good.test", &[TXT, RRSIG, NSEC])), NO_PROOF);
}

#[test]
fn a_signed_record_that_was_not_asked_for_vouches_for_nothing() {
    let mut tree = Tree::new();
    let (ftp, evil) = (tree.good.sign(&[address("ftp.good.test")]), tree.evil.sign(&[address("evil.test")]));
    for other in [&ftp, &evil] {
        let with = [&other[..], &[address("www.good.test")]].concat();
        assert_eq!(tree.bogus("www.good.test", A, reply(0, &with, &[])), BOGUS, "next to an unsigned one");
        assert_eq!(tree.bogus("www.good.test", A, reply(0, other, &[])), BOGUS, "alone");
        for rcode in [0, 3] {
            let denied = reply(rcode, &[], other);
            assert_eq!(tree.bogus("www.good.test", A, denied), NO_PROOF, "in place of a proof");
        }
    }
    let other = tree.root.sign(&[address("www.test")]);
    for said in [reply(0, &other, &[]), reply(0, &[], &other)] {
        tree.world.tell("good.test", DS, said);
        assert_eq!(tree.bogus("www.good.test", A, plain()), NO_PROOF, "in place of DS records");
    }
}

#[test]
fn the_keys_of_the_zone_above_are_not_the_keys_of_the_zone_below() {
    let mut tree = Tree::new();
    // The anchored key, as if it were the zone's.
    let forger = Signer::new("good.test", 1);
    let answer = reply(0, &forger.sign(&[address("www.good.test")]), &[]);
    let of_root = [record("test", DNSKEY, &tree.root.dnskey())];
    let of_good = [record("good.test", DNSKEY, &tree.root.dnskey())];
    for keys in [
        tree.root.sign(&of_root),
        tree.root.sign(&of_good),
        forger.sign(&of_good),
        [tree.root.sign(&of_root), forger.sign(&of_good)].concat(),
    ] {
        tree.world.tell("good.test", DNSKEY, reply(0, &keys, &[]));
        assert_eq!(tree.bogus("www.good.test", A, answer.clone()), NO_KEY);
    }
}

#[test]
fn the_zone_above_denies_nothing_below_a_delegation() {
    // RFC 6840 §4.1, by NSEC3 records; `attacks` has NSEC records.
    let mut tree = Tree::new();
    let delegation = tree.root.nsec3("good.test", Hashes::Match, &[NS, DS, RRSIG]);
    let next_closer = tree.root.nsec3("www.good.test", Hashes::Cover, &[A, RRSIG]);
    let wildcard = tree.root.nsec3("*.good.test", Hashes::Cover, &[A, RRSIG]);
    let authority = [tree.root.soa(), delegation, next_closer, wildcard].concat();
    for (name, rcode) in [("www.good.test", 3), ("www.good.test", 0), ("good.test", 0)] {
        assert_eq!(tree.bogus(name, A, reply(rcode, &[], &authority)), NO_PROOF, "{name} {rcode}");
    }
}

#[test]
fn the_types_at_an_apex_are_denied_by_its_own_nsec3_record_only() {
    let mut tree = Tree::new();
    let apex: &[u16] = &[A, NS, SOA, RRSIG, DNSKEY];
    let own = tree.good.nsec3("good.test", Hashes::Match, apex);
    let denied = |soa: Vec<Record>, nsec3: &[Record]| reply(0, &[], &[&soa[..], nsec3].concat());
    let without_txt = denied(tree.good.soa(), &own);
    assert_eq!(tree.verdict("good.test", TXT, without_txt).security, Security::Secure);
    assert!(tree.bogus("good.test", A, denied(tree.good.soa(), &own)).is_some(), "this type exists");
    let child = Signer::new("sub.good.test", 4);
    for forged in [
        tree.root.nsec3("good.test", Hashes::Match, &[NS, DS, RRSIG]),
        tree.root.nsec3("good.test", Hashes::Cover, apex),
        tree.evil.nsec3("good.test", Hashes::Match, apex),
        tree.evil.nsec3("evil.test", Hashes::Match, apex),
        tree.good.nsec3("www.good.test", Hashes::Match, apex),
        child.nsec3("good.test", Hashes::Match, apex),
        child.nsec3("sub.good.test", Hashes::Match, apex),
    ] {
        for soa in [tree.good.soa(), tree.root.soa(), tree.evil.soa(), Vec::new()] {
            assert!(tree.bogus("good.test", TXT, denied(soa, &forged)).is_some(), "{forged:?}");
        }
    }
}

#[test]
fn an_nsec3_record_counts_in_its_own_zone_whatever_its_first_label() {
    let mut tree = Tree::new();
    let proof = |zone: &str, hashes: Hashes, name: &str| nsec3(zone, name, hashes, &[TXT, RRSIG]);
    let proofs = |zone: &str| {
        // The zone above knows the name as a delegation; the others as it is in its own zone.
        let apex: &[u16] = if zone == "test" { &[NS, DS, RRSIG] } else { &[NS, SOA, RRSIG] };
        [
            nsec3(zone, "good.test", Hashes::Match, apex),
            proof(zone, Hashes::Cover, "n.good.test"),
            proof(zone, Hashes::Cover, "*.good.test"),
        ]
    };
    let signed = |signer: &Signer, zone: &str| {
        let signed = proofs(zone).into_iter().flat_map(|nsec3| signer.sign(&[nsec3]));
        signed.collect::<Vec<_>>()
    };
    let Tree { root, good, evil, .. } = &tree;
    let answers = [
        (signed(good, "good.test"), true),
        (signed(evil, "evil.test"), false),
        (signed(root, "test"), false),
        (signed(evil, "good.test"), false),
        (signed(root, "good.test"), false),
        (signed(good, "sub.good.test"), false),
        (signed(good, "evil.test"), false),
    ];
    let soas = [good.soa(), evil.soa(), root.soa(), Vec::new()];
    for (nsec3s, proven) in &answers {
        for (place, soa) in soas.iter().enumerate() {
            let forged = reply(3, &[], &[&soa[..], nsec3s].concat());
            let found = tree.verdict("n.good.test", A, forged).security;
            // Of a zone that signed nothing there, nothing can be looked up here.
            let refused = matches!(found, Security::Bogus | Security::Indeterminate);
            // The SOA record must be the zone's, too, or missing.
            let expected = *proven && matches!(place, 0 | 3);
            assert_eq!(
                (found == Security::Secure, refused),
                (expected, !expected),
                "{nsec3s:?} with {place}"
            );
        }
    }
}

#[test]
fn a_name_with_names_below_it_is_not_a_name_error() {
    let mut tree = Tree::new();
    // An empty name: it has no records, and the next name is below it.
    let nsec = tree.good.nsec("a.good.test", "x.m.good.test", &[A, RRSIG, NSEC]);
    let apex = tree.good.nsec("good.test", "a.good.test", &[NS, SOA, RRSIG, NSEC, DNSKEY]);
    let authority = [tree.good.soa(), nsec, apex].concat();
    let no_data = reply(0, &[], &authority);
    assert_eq!(tree.verdict("m.good.test", A, no_data).security, Security::Secure);
    assert_eq!(tree.bogus("m.good.test", A, reply(3, &[], &authority)), NO_PROOF);
}

#[test]
fn what_is_known_of_a_name_is_not_believed_of_one_with_the_same_letters() {
    let mut tree = Tree::new();
    let empty = [tree.root.soa(), tree.root.nsec("insecure.test", "go.od.test", &[NS, RRSIG, NSEC])].concat();
    tree.world.tell("od.test", DS, reply(0, &[], &empty));
    let delegation = [tree.root.soa(), tree.root.nsec("go.od.test", "p.test", &[NS, RRSIG, NSEC])].concat();
    tree.world.tell("go.od.test", DS, reply(0, &[], &delegation));
    let mut validator = Validator::new(vec![tree.root.anchor()], Vec::new());
    let mut verdict = |name: &str| {
        let plain = reply(0, &[address(name)], &[]);
        validate_at(&mut validator, &mut tree.world, WALL, (name, A), plain).security
    };
    assert_eq!(verdict("www.go.od.test"), Security::Insecure);
    assert_eq!(verdict("www.good.test"), Security::Bogus);
}
