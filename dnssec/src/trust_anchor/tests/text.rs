//! The state as text: what is written is read, what is damaged is noticed.

use super::super::text::{read, write};
use super::*;
use crate::trust_anchor::TrustAnchors;

/// A zone with a key in each state, and a digest.
fn rich() -> TrustAnchors {
    let mut anchors = TrustAnchors::new(&[anchor('A'), anchor('B'), anchor('M')], START);
    let point = &mut anchors.points[0];
    on(point, 0, "A* B* C");
    on(point, 1, "A* B!* C M");
    on(point, 50, "A* C!* M");
    on(point, 51, "A* D");
    point.digests.push([&[1, 2, 13, 2][..], &[7; 32]].concat().into());
    anchors
}

fn restored(configured: &str, text: &str, day: u64) -> TrustAnchors {
    let configured: Vec<_> = configured.chars().map(anchor).collect();
    TrustAnchors::restored(&configured, text, START + day * DAY).unwrap()
}

#[test]
fn every_state_comes_back() {
    let anchors = rich();
    let states: Vec<_> =
        ["A", "B", "C", "D", "M"].map(|of| state(&anchors.points[0], of.chars().next().unwrap())).into();
    assert_eq!(states, ["valid", "removed", "revoked", "pending", "missing"]);
    let text = anchors.text();
    assert_eq!(read(&text).unwrap(), anchors.points);
    assert_eq!(write(&read(&text).unwrap()), text);
    assert_eq!(anchors.rows().count(), 6);
}

#[test]
fn a_cut_text_is_damaged_wherever_it_is_cut() {
    let text = rich().text();
    for end in 0..text.trim_end().len() {
        assert!(read(&text[..end]).is_err(), "{:?}", &text[..end]);
    }
}

#[test]
fn a_text_with_a_line_too_few_twice_or_at_a_wrong_place_is_damaged() {
    let text = rich().text();
    let lines: Vec<_> = text.lines().collect();
    for at in 1..lines.len() {
        let fewer = [&lines[..at], &lines[at + 1..]].concat().join("\n");
        assert!(read(&fewer).is_err(), "without {:?}", lines[at]);
        let twice = [&lines[..=at], &lines[at..]].concat().join("\n");
        assert!(read(&twice).is_err(), "twice {:?}", lines[at]);
    }
    let key_first = ["version 1", lines[4], "end 1"].join("\n");
    assert!(read(&key_first).is_err());
}

#[test]
fn a_key_that_was_changed_is_noticed_by_its_tag() {
    let text = rich().text();
    let damaged = text.replacen("QUFB", "QUFC", 1);
    assert_ne!(damaged, text);
    assert_eq!(read(&damaged).unwrap_err().line, 5);
}

#[test]
fn other_damage_is_reported_with_its_line() {
    for (text, line) in [
        ("", 1),
        ("version 2\nend 0\n", 1),
        ("version 1\n", 1),
        ("version 1\nend 1\n", 2),
        ("version 1\nend 0\nend 0\n", 3),
        ("version 1\nzone . next x\nend 1\n", 2),
        ("version 1\nzone . next 5 ttl 7\nend 1\n", 2),
        ("version 1\nzone . next 5 ttl 7 expire 8 more\nend 1\n", 2),
        ("version 1\nzone . next 5\nzone . next 5\nend 2\n", 3),
        ("version 1\nds 1 2 3 4\nend 1\n", 2),
        ("version 1\nzone . next 5\nkey 1 0 learnt valid 257 3 13\nend 2\n", 3),
    ] {
        assert_eq!(read(text).unwrap_err().line, line, "{text:?}");
    }
    assert_eq!(read("version 1\nend 0\n"), Ok(Vec::new()));
}

#[test]
fn a_key_goes_on_waiting_over_restarts() {
    let mut anchors = TrustAnchors::new(&[anchor('A')], START);
    on(&mut anchors.points[0], 0, "A* B");
    for day in 1..30 {
        anchors = restored("A", &anchors.text(), day);
        assert_eq!(on(&mut anchors.points[0], day, "A* B"), []);
    }
    anchors = restored("A", &anchors.text(), 30);
    assert_eq!(on(&mut anchors.points[0], 30, "A* B"), [('B', Change::Accepted)]);
    assert_eq!(restored("A", &anchors.text(), 31).anchors().len(), 2);
}

#[test]
fn a_restart_asks_no_sooner() {
    let mut anchors = TrustAnchors::new(&[anchor('A')], START);
    on(&mut anchors.points[0], 0, "A*");
    let next = anchors.poll_timeout();
    let mut anchors = restored("A", &anchors.text(), 0);
    assert_eq!((anchors.poll_timeout(), anchors.poll_lookup(START + 60)), (next, None));
}

#[test]
fn what_was_revoked_stays_so_though_the_operator_still_writes_it() {
    let mut anchors = TrustAnchors::new(&[anchor('A'), anchor('B')], START);
    on(&mut anchors.points[0], 0, "A!* B*");
    let anchors = restored("AB", &anchors.text(), 1);
    assert_eq!(believed(&anchors.points[0]), "B");
    let anchors = restored("B", &anchors.text(), 2);
    assert_eq!(state(&anchors.points[0], 'A'), "revoked", "and when it is written no more");
}

#[test]
fn what_the_operator_adds_is_believed_in_and_what_he_takes_back_is_not() {
    let mut anchors = TrustAnchors::new(&[anchor('A'), anchor('B')], START);
    on(&mut anchors.points[0], 0, "A* B* C");
    on(&mut anchors.points[0], 30, "A* B* C");
    let anchors = restored("AD", &anchors.text(), 31);
    assert_eq!(believed(&anchors.points[0]), "ACD", "C was learnt, B taken back");
}

#[test]
fn a_pending_key_is_trusted_immediately_if_the_operator_writes_it() {
    let mut anchors = TrustAnchors::new(&[anchor('A')], START);
    on(&mut anchors.points[0], 0, "A* B");
    assert_eq!(believed(&restored("AB", &anchors.text(), 1).points[0]), "AB");
}

#[test]
fn with_other_anchors_altogether_a_zone_begins_anew() {
    let mut anchors = TrustAnchors::new(&[anchor('A')], START);
    on(&mut anchors.points[0], 0, "A* X");
    on(&mut anchors.points[0], 30, "A* X");
    assert_eq!(believed(&anchors.points[0]), "AX");
    assert_eq!(believed(&restored("N", &anchors.text(), 31).points[0]), "N");
    assert_eq!(restored("", &anchors.text(), 31).points, []);
}
