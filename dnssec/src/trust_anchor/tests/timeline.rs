//! The scenarios of RFC 5011 §6, and what an attacker may try (§2.1, §2.2).

use super::super::point::MOST_KNOWN;
use super::*;
use crate::trust_anchor::TrustAnchors;
use Change::{
    Accepted, Deleted, Forgotten, Missing, Pending, Removed, Returned, Revoked, TableFull, Unverified,
    WaitsAnew,
};

#[test]
fn a_new_key_is_trusted_once_it_is_seen_again_after_thirty_days() {
    let mut point = point("A");
    assert_eq!(on(&mut point, 0, "A*"), []);
    assert_eq!(on(&mut point, 1, "A* B"), [('B', Pending)]);
    assert_eq!(on(&mut point, 16, "A* B"), []);
    let almost = point.observe(START + 31 * DAY - 1, &published("A* B", TTL));
    assert_eq!((almost.len(), believed(&point).as_str()), (0, "A"));
    assert_eq!(on(&mut point, 31, "A* B"), [('B', Accepted)]);
    assert_eq!(believed(&point), "AB");
    assert_eq!(on(&mut point, 32, "A B*"), []);
}

#[test]
fn time_alone_makes_no_anchor() {
    let mut point = point("A");
    on(&mut point, 0, "A* B");
    assert_eq!(point.anchors().count(), 1);
    assert_eq!(on(&mut point, 400, "B*"), [('-', Unverified)], "B may not vouch for itself");
    assert_eq!(on(&mut point, 401, "A* B"), [('B', Accepted)]);
}

#[test]
fn a_key_waits_for_its_ttl_if_that_is_longer() {
    let mut point = point("A");
    let ttl = 40 * DAY as u32;
    point.observe(START, &published("A* B", ttl));
    point.observe(START + 39 * DAY, &published("A* B", TTL));
    assert_eq!(state(&point, 'B'), "pending");
    point.observe(START + 40 * DAY, &published("A* B", TTL));
    assert_eq!(state(&point, 'B'), "valid");
}

#[test]
fn a_key_that_vanishes_while_it_waits_is_forgotten_and_begins_again() {
    let mut point = point("A");
    on(&mut point, 0, "A* C");
    assert_eq!(on(&mut point, 10, "A*"), [('C', Forgotten)]);
    assert_eq!(state(&point, 'C'), "start");
    assert_eq!(on(&mut point, 20, "A* C"), [('C', Pending)]);
    assert_eq!(on(&mut point, 31, "A* C"), []);
    assert_eq!(on(&mut point, 50, "A* C"), [('C', Accepted)]);
}

#[test]
fn an_attackers_key_is_never_trusted_if_the_owner_publishes_within_thirty_days() {
    let mut point = point("AB");
    on(&mut point, 0, "A* B*");
    assert_eq!(on(&mut point, 1, "A B* X"), [('X', Pending)], "B is stolen");
    assert_eq!(on(&mut point, 20, "B* X*"), [('A', Missing)]);
    assert_eq!(believed(&point), "AB", "A cannot be pushed out");
    let events = on(&mut point, 25, "A* B!* D");
    assert_eq!(events, [('B', Revoked), ('X', Forgotten), ('A', Returned), ('D', Pending)]);
    assert_eq!(on(&mut point, 26, "B* X*"), [('-', Unverified)]);
    assert_eq!(on(&mut point, 60, "A* D B!"), [('D', Accepted)]);
    assert_eq!(believed(&point), "AD");
}

#[test]
fn a_key_whose_vouchers_are_all_revoked_waits_again() {
    let mut point = point("AB");
    on(&mut point, 0, "A B* X");
    assert_eq!(on(&mut point, 29, "A* B!* X"), [('B', Revoked), ('X', WaitsAnew)]);
    assert_eq!(on(&mut point, 31, "A* X"), []);
    assert_eq!(on(&mut point, 59, "A* X"), [('B', Removed), ('X', Accepted)]);
}

#[test]
fn a_key_with_one_voucher_left_goes_on_waiting() {
    let mut point = point("AB");
    on(&mut point, 0, "A* B* C");
    assert_eq!(on(&mut point, 10, "A* B!* C"), [('B', Revoked)]);
    assert_eq!(on(&mut point, 30, "A* C"), [('C', Accepted)]);
}

#[test]
fn an_anchor_that_is_not_published_stays_one_until_it_is_revoked() {
    let mut point = point("AB");
    assert_eq!(on(&mut point, 0, "A*"), [('B', Missing)]);
    assert_eq!(on(&mut point, 3_000, "A*"), []);
    assert_eq!(believed(&point), "AB");
    assert_eq!(on(&mut point, 3_001, "B*"), [('A', Missing), ('B', Returned)]);
    assert_eq!(on(&mut point, 3_002, "A!* B*"), [('A', Revoked)]);
    assert_eq!(believed(&point), "B");
}

#[test]
fn a_revocation_counts_only_if_the_key_itself_has_signed_it() {
    let mut point = point("AB");
    assert_eq!(on(&mut point, 0, "A! B*"), [('A', Missing)]);
    assert_eq!(believed(&point), "AB");
    assert_eq!(on(&mut point, 1, "A!* B*"), [('A', Revoked)]);
}

#[test]
fn a_revocation_is_immediate_and_permanent() {
    let mut point = point("AB");
    assert_eq!(on(&mut point, 0, "A!*"), [('A', Revoked), ('-', Unverified)], "nobody else has signed");
    assert_eq!(believed(&point), "B");
    assert_eq!(on(&mut point, 1, "A*"), [('-', Unverified)]);
    assert_eq!(on(&mut point, 2, "A* B*"), []);
    assert_eq!(on(&mut point, 60, "A* B*"), []);
    assert_eq!((state(&point, 'A'), believed(&point).as_str()), ("revoked", "B"));
}

#[test]
fn what_a_revoked_key_alone_signs_is_not_believed() {
    let mut point = point("AB");
    assert_eq!(on(&mut point, 0, "A!* X*"), [('A', Revoked), ('-', Unverified)]);
    assert_eq!((state(&point, 'X'), state(&point, 'B')), ("start", "valid"));
}

#[test]
fn a_key_that_waits_can_be_revoked_too() {
    let mut point = point("A");
    on(&mut point, 0, "A* C");
    assert_eq!(on(&mut point, 1, "A* C!*"), [('C', Revoked)]);
    assert_eq!(on(&mut point, 40, "A* C*"), []);
    assert_eq!(state(&point, 'C'), "revoked");
}

#[test]
fn keys_roll_over() {
    let mut point = point("AB");
    on(&mut point, 0, "A* B");
    assert_eq!(on(&mut point, 1, "A!* B* C"), [('A', Revoked), ('C', Pending)]);
    assert_eq!(believed(&point), "B");
    assert_eq!(on(&mut point, 31, "A!* B* C"), [('C', Accepted)]);
    assert_eq!(on(&mut point, 33, "B* C"), []);
    assert_eq!(on(&mut point, 60, "B* C"), []);
    assert_eq!(on(&mut point, 61, "B* C"), [('A', Removed)]);
    assert_eq!((state(&point, 'A'), believed(&point).as_str()), ("removed", "BC"));
    assert_eq!(on(&mut point, 62, "A* B* C"), []);
    assert_eq!(believed(&point), "BC");
}

#[test]
fn a_stolen_stand_by_key_is_replaced() {
    let mut point = point("AB");
    assert_eq!(on(&mut point, 0, "A* B!* C"), [('B', Revoked), ('C', Pending)]);
    assert_eq!(on(&mut point, 30, "A* B! C"), [('C', Accepted)]);
    assert_eq!(believed(&point), "AC");
}

#[test]
fn with_all_anchors_revoked_the_trust_point_is_gone_and_new_keys_are_not_taken() {
    let mut point = point("AB");
    on(&mut point, 0, "A* B* C");
    let events = on(&mut point, 1, "A!* B!* C* D*");
    assert_eq!(events, [('A', Revoked), ('B', Revoked), ('-', Deleted)]);
    assert_eq!((point.anchors().count(), state(&point, 'C'), state(&point, 'D')), (0, "start", "start"));
    assert_eq!(on(&mut point, 40, "C* D*"), []);
    assert!(!point.is_due(START + 1_000 * DAY));
}

#[test]
fn keys_that_no_anchor_has_signed_change_nothing() {
    let mut point = point("A");
    on(&mut point, 0, "A* B");
    let before = point.keys.clone();
    for text in ["B*", "X*", "A", "A B* X*", "X!*", "a*"] {
        assert_eq!(on(&mut point, 1, text), [('-', Unverified)], "{text}");
        assert_eq!(point.keys, before, "{text}");
    }
}

#[test]
fn keys_that_are_not_secure_entry_points_are_not_noted() {
    let mut point = point("A");
    assert_eq!(on(&mut point, 0, "A* z* y"), []);
    assert_eq!(point.keys.len(), 1);
}

#[test]
fn more_keys_than_five_are_managed_and_no_more_than_fit() {
    let mut point = point("A");
    let five = on(&mut point, 0, "A* B C D E F");
    assert_eq!(five, ['B', 'C', 'D', 'E', 'F'].map(|letter| (letter, Pending)));
    let many: Vec<_> = (0..=255)
        .map(|octet| {
            let mut rdata = key('A').rdata().to_vec();
            rdata[4..].fill(octet);
            Published { key: Dnskey::new(&rdata).unwrap(), signed: None }
        })
        .collect();
    let events = point.observe(START, &[published("A*", TTL), many].concat());
    assert_eq!(point.keys.len(), MOST_KNOWN);
    assert!(events.iter().any(|event| event.change == TableFull));
    on(&mut point, 1, "A* B");
    assert_eq!(point.keys.len(), 2, "what is no longer published makes room");
}

#[test]
fn a_digest_is_an_anchor_until_its_key_is_seen() {
    let ds = [&key('A').tag().to_be_bytes()[..], &[13, 2], &digest(&key('A'))].concat();
    let configured = Anchor { zone: zone(), key: AnchorKey::Ds(ds.into()) };
    let mut point = TrustPoint::new(&zone(), [&configured].into_iter(), START);
    assert_eq!(point.anchors().collect::<Vec<_>>(), std::slice::from_ref(&configured));
    assert_eq!(on(&mut point, 0, "X*"), [('-', Unverified)]);
    assert_eq!(on(&mut point, 1, "A* B"), [('B', Pending)]);
    assert_eq!((point.digests.len(), state(&point, 'A')), (0, "valid"));
    let mut point = TrustPoint::new(&zone(), [&configured].into_iter(), START);
    assert_eq!(on(&mut point, 0, "A!*"), [('A', Revoked), ('-', Deleted)], "revoked before it was ever seen");
    point.configure(&configured.key);
    assert!(point.is_deleted(), "what the operator wrote does not undo it");
}

fn digest(of: &Dnskey) -> Vec<u8> {
    use domain::crypto::common::{DigestBuilder, DigestType};
    let mut builder = DigestBuilder::new(DigestType::Sha256);
    builder.update(&zone().0);
    builder.update(of.rdata());
    builder.finish().as_ref().to_vec()
}

#[test]
fn a_clock_that_goes_back_makes_no_key_wait_less() {
    let mut point = point("A");
    on(&mut point, 100, "A* B");
    on(&mut point, 0, "A* B");
    assert_eq!(on(&mut point, 29, "A* B"), []);
    assert_eq!(on(&mut point, 30, "A* B"), [('B', Accepted)]);
    on(&mut point, 200, "A!* B*");
    on(&mut point, 50, "B*");
    assert_eq!(on(&mut point, 79, "B*"), []);
    assert_eq!(on(&mut point, 80, "B*"), [('A', Removed)]);
}

#[test]
fn the_keys_are_queried_at_the_start_then_at_half_their_ttl_and_soon_after_a_failure() {
    let mut anchors = TrustAnchors::new(&[anchor('A')], START);
    assert_eq!(anchors.poll_timeout(), Some(START));
    assert_eq!(anchors.poll_lookup(START), Some(zone()));
    assert_eq!(
        anchors.poll_lookup(START + 3_599),
        None,
        "no more often than once an hour, whatever becomes of it"
    );
    assert_eq!(anchors.poll_lookup(START + 3_600), Some(zone()));
    let now = START + 3_601;
    anchors.points[0].observe(now, &published("A*", TTL));
    assert_eq!(anchors.poll_timeout(), Some(now + u64::from(TTL) / 2));
    let due = now + DAY;
    assert_eq!(anchors.poll_lookup(due), Some(zone()));
    let events = anchors.handle_reply(due + 5, &zone(), None);
    assert_eq!(events[0].change, Change::Unanswered);
    assert_eq!(anchors.poll_timeout(), Some(due + 5 + u64::from(TTL) / 10));
    assert_eq!(anchors.handle_reply(due, &Wire([0][..].into()), None), [], "nobody asked about that zone");
}

#[test]
fn a_time_far_ahead_is_not_waited_for() {
    let mut point = point("A");
    on(&mut point, 10_000, "A*");
    assert!(point.is_due(START));
}
