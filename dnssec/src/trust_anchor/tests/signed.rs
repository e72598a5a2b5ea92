//! Real keys and signatures, made by another implementation.

use super::*;
use crate::trust_anchor::{Event, TrustAnchors, read};
use domain::base::Serial;
use domain::utils::base64;
use std::str::FromStr as _;

const ROLLOVER: &str = include_str!("rollover.txt");

/// 2024-02-01, within the signatures' time: 2024-01-01 to 2024-03-31.
const FEBRUARY: u64 = 1_706_745_600;

fn owner() -> Vec<u8> {
    b"\x06anchor\x07example\x00".to_vec()
}

/// The RRset of one stage, as RDATA with its type.
fn stage(number: usize) -> Vec<(u16, Vec<u8>)> {
    let lines = ROLLOVER.split("\n\n").nth(number).unwrap().lines();
    lines
        .map(|line| {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            match words[0] {
                "DNSKEY" => {
                    (48, super::super::presentation::dnskey(words[1..].iter().copied()).unwrap().into_vec())
                }
                _ => (46, rrsig(&words[1..])),
            }
        })
        .collect()
}

/// RRSIG RDATA: algorithm, labels, TTL, expiration, inception, key tag, signer, signature.
fn rrsig(words: &[&str]) -> Vec<u8> {
    let mut rdata = 48_u16.to_be_bytes().to_vec();
    rdata.extend(words[..2].iter().map(|word| word.parse::<u8>().unwrap()));
    rdata.extend(words[2].parse::<u32>().unwrap().to_be_bytes());
    for time in &words[3..5] {
        rdata.extend(domain::rdata::dnssec::Timestamp::from_str(time).unwrap().into_int().to_be_bytes());
    }
    rdata.extend(words[5].parse::<u16>().unwrap().to_be_bytes());
    rdata.extend(owner());
    rdata.extend(base64::decode::<Vec<u8>>(&words[7..].concat()).unwrap());
    rdata
}

fn message(records: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut message = vec![0, 0, 0x84, 0x10, 0, 1, 0, records.len() as u8, 0, 0, 0, 0];
    message.extend(owner().to_ascii_uppercase());
    message.extend([0, 48, 0, 1]);
    for (rtype, rdata) in records {
        message.extend([0xc0, 12]);
        message.extend(rtype.to_be_bytes());
        // The TTL is what a cache may have made of it; the signature has the original one.
        message.extend([0, 1, 0, 0, 0, 7]);
        message.extend((rdata.len() as u16).to_be_bytes());
        message.extend(rdata);
    }
    message
}

fn anchors() -> TrustAnchors {
    let line = ROLLOVER.lines().find(|line| line.starts_with("DNSKEY 257 3 13")).unwrap();
    TrustAnchors::new(&read(&format!("anchor.example. 3600 IN {line}\n")).unwrap(), FEBRUARY)
}

fn changes(events: &[Event]) -> Vec<(u16, Change)> {
    events.iter().map(|event| (event.tag, event.change)).collect()
}

fn reply(anchors: &mut TrustAnchors, now: u64, records: &[(u16, Vec<u8>)]) -> Vec<(u16, Change)> {
    let zone = Wire(owner().into());
    changes(&anchors.handle_reply(now, &zone, Some(&message(records))))
}

#[test]
fn real_keys_roll_over() {
    let mut anchors = anchors();
    assert_eq!(reply(&mut anchors, FEBRUARY, &stage(1)), []);
    assert_eq!(anchors.poll_timeout(), Some(FEBRUARY + DAY));
    assert_eq!(reply(&mut anchors, FEBRUARY + DAY, &stage(2)), [(40_945, Change::Pending)]);
    assert_eq!(reply(&mut anchors, FEBRUARY + 31 * DAY, &stage(2)), [(40_945, Change::Accepted)]);
    let before = anchors.text();
    assert_eq!(reply(&mut anchors, FEBRUARY + 32 * DAY, &stage(3)), [(53_668, Change::Revoked)]);
    assert_ne!(anchors.text(), before);
    let rows: Vec<_> = anchors.rows().map(|row| (row.zone, row.tag, row.algorithm, row.state)).collect();
    let zone = "anchor.example.".to_owned();
    assert_eq!(rows, [(zone.clone(), 53_668, 13, "revoked"), (zone, 40_945, 8, "valid")]);
    assert_eq!(anchors.anchors().len(), 1);
}

#[test]
fn a_signature_counts_only_in_its_time() {
    let inception = Serial::from(1_704_067_200).into_int();
    let (inception, expiration) = (u64::from(inception), 1_711_843_200);
    for (now, change) in [
        (inception - 1, vec![(0, Change::Unverified)]),
        (inception, vec![]),
        (expiration, vec![]),
        (expiration + 1, vec![(0, Change::Unverified)]),
        (expiration + 20 * 365 * DAY, vec![(0, Change::Unverified)]),
    ] {
        assert_eq!(reply(&mut anchors(), now, &stage(1)), change, "{now}");
    }
}

#[test]
fn an_octet_that_was_changed_anywhere_verifies_nothing() {
    let good = stage(1);
    let signature = good.iter().position(|(rtype, _)| *rtype == 46).unwrap();
    for (at, octet) in
        good.iter().enumerate().flat_map(|(at, (_, rdata))| (0..rdata.len()).map(move |octet| (at, octet)))
    {
        let mut bad = good.clone();
        bad[at].1[octet] ^= 0x20;
        // In the signer's name this is only its case.
        let is_case = at == signature && ((19..=24).contains(&octet) || (26..=32).contains(&octet));
        assert_eq!(reply(&mut anchors(), FEBRUARY, &bad).is_empty(), is_case, "record {at}, octet {octet}");
    }
}

#[test]
fn keys_may_come_in_any_order_and_twice() {
    let mut records = stage(2);
    records.reverse();
    records.extend(stage(2));
    assert_eq!(reply(&mut anchors(), FEBRUARY, &records), [(40_945, Change::Pending)]);
}

#[test]
fn a_revocation_without_its_signature_is_ignored() {
    let mut known = anchors();
    reply(&mut known, FEBRUARY, &stage(2));
    reply(&mut known, FEBRUARY + 30 * DAY, &stage(2));
    let mut records = stage(3);
    records.retain(|(rtype, rdata)| *rtype == 48 || rdata[2] == 8);
    assert_eq!(reply(&mut known, FEBRUARY + 31 * DAY, &records), [(53_668, Change::Missing)]);
}

#[test]
fn a_reply_without_keys_is_not_an_answer() {
    let zone = Wire(owner().into());
    let good = message(&stage(1));
    for end in 0..good.len() {
        let events = anchors().handle_reply(FEBRUARY, &zone, Some(&good[..end]));
        assert_eq!(changes(&events), [(0, Change::Unanswered)], "{end}");
    }
    let mut failed = good.clone();
    failed[3] = 2;
    let empty = message(&[]);
    let many: Vec<_> = (0..33).map(|n| (48, vec![1, 1, 3, 13, n])).collect();
    for bad in [failed, empty, message(&many)] {
        let events = anchors().handle_reply(FEBRUARY, &zone, Some(&bad));
        assert_eq!(changes(&events), [(0, Change::Unanswered)]);
    }
}

#[test]
fn keys_without_sense_are_passed_over() {
    let mut records = stage(1);
    records.extend([(48, vec![]), (48, vec![1, 1, 3, 8, 3]), (48, vec![1, 1, 3, 13, 1]), (46, vec![0; 18])]);
    let _ = reply(&mut anchors(), FEBRUARY, &records);
    for algorithm in 0..=255 {
        for length in [1, 2, 3, 4, 64, 300] {
            let key = [&[1, 1, 3, algorithm][..], &vec![1; length]].concat();
            let mut signature = stage(1).into_iter().find(|(rtype, _)| *rtype == 46).unwrap().1;
            signature[2] = algorithm;
            let tag = Dnskey::new(&key).unwrap().tag();
            signature[16..18].copy_from_slice(&tag.to_be_bytes());
            assert_eq!(
                reply(&mut anchors(), FEBRUARY, &[(48, key), (46, signature)]),
                [(0, Change::Unverified)]
            );
        }
    }
}

#[test]
fn trust_anchors_are_read_as_other_servers_write_them() {
    let text = "\
        ; comment\n\
        . 172800 IN DS 20326 8 2 ( E06D44B80B8F1D39A95C0B0D7C65D084\n\
            58E880409BBC683457104237C7F8EC8D ) ; two lines\n\n\
        Example.COM. DNSKEY 257 3 13 AQID BAUG\n\
        example.org in ds 1 13 4 000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f\n";
    let anchors = read(text).unwrap();
    assert_eq!(anchors.iter().map(|anchor| anchor.zone.0.len()).collect::<Vec<_>>(), [1, 13, 13]);
    assert_eq!(anchors[1].zone.0[..], b"\x07example\x03com\x00"[..]);
    assert_eq!(anchors[1].key, AnchorKey::Dnskey([1, 1, 3, 13, 1, 2, 3, 4, 5, 6][..].into()));
    assert_eq!(read("").unwrap(), []);
}

#[test]
fn what_is_not_a_trust_anchor_is_reported_with_its_line() {
    for (text, line) in [
        ("; one\n. IN A 192.0.2.1\n", 2),
        (". IN DS 20326 8 2 E06D\n", 1),
        (". IN DS 20326 8 99 E06D\n", 1),
        (". IN DNSKEY 257 3 8\n", 1),
        (". IN DNSKEY 0 3 8 AQID\n", 1),
        (". IN DNSKEY 257 4 8 AQID\n", 1),
        (". IN DNSKEY 385 3 8 AQID\n", 1),
        ("\n. IN DS (\n1 2\n", 2),
        ("a..b IN DS 1 8 1 00\n", 1),
        (".\n", 1),
    ] {
        assert_eq!(read(text).unwrap_err().line, line, "{text:?}");
    }
}
