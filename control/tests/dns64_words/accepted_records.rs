//! Which records of a reply are accepted, and for how long.

use super::upstream::{NOW, Reply, part, wire};
use sixway_control::dns64::answer::{Answer, Bounds, Kind, LONGEST_CHAIN, Part, Rejection};
use std::time::Duration;

const SOA: &str = "example.org. 3600 SOA ns.example.org. host.example.org. 1 7200 900 1209600 600";

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn records_of_the_question_are_accepted_and_unrelated_ones_are_not() {
    let answer = [
        "www.example.org. 300 A 192.0.2.1",
        "bank.example. 300 A 198.51.100.66",
        "www.example.org. 300 TXT x",
    ];
    let authority = ["example.org. 300 NS ns.example.org.", "bank.example. 300 NS ns.evil.example."];
    let answer = Reply::to("www.example.org.", "A", &answer, &authority).read(false).unwrap();
    assert_eq!(answer.kind(), Kind::Data);
    assert_eq!(part(&answer, Part::Chain), nothing());
    assert_eq!(part(&answer, Part::Data), ["www.example.org. 300 A 192.0.2.1"]);
    assert_eq!(part(&answer, Part::Authority), nothing());
}

#[test]
fn a_chain_is_followed_in_order_whatever_the_order_of_its_records() {
    let answer = [
        "c.example.net. 60 A 192.0.2.1",
        "b.example.org. 50 CNAME c.example.net.",
        "a.example.org. 70 CNAME b.example.org.",
    ];
    let answer = Reply::to("a.example.org.", "A", &answer, &[]).read(false).unwrap();
    assert_eq!(
        part(&answer, Part::Chain),
        ["a.example.org. 70 CNAME b.example.org.", "b.example.org. 50 CNAME c.example.net."]
    );
    assert_eq!(part(&answer, Part::Data), ["c.example.net. 60 A 192.0.2.1"]);
    assert_eq!((answer.lifetime(), answer.left(NOW + Duration::from_millis(20_500))), (50, 30));
    assert!(
        answer.is_fresh(NOW + Duration::from_millis(49_999))
            && !answer.is_fresh(NOW + Duration::from_secs(50))
    );
}

#[test]
fn a_cname_record_that_is_queried_is_data() {
    let answer =
        Reply::to("a.example.", "CNAME", &["a.example. 70 CNAME b.example."], &[]).read(false).unwrap();
    assert_eq!((answer.kind(), answer.count(Part::Chain), answer.count(Part::Data)), (Kind::Data, 0, 1));
    let any = ["a.example. 70 A 192.0.2.1", "a.example. 80 TXT hello", "b.example. 90 TXT hello"];
    let answer = Reply::to("a.example.", "ANY", &any, &[]).read(false).unwrap();
    assert_eq!((answer.kind(), answer.count(Part::Data)), (Kind::Data, 2));
}

#[test]
fn a_chain_with_a_loop_is_rejected() {
    let answer = ["a.example. 9 CNAME b.example.", "b.example. 9 CNAME a.example."];
    assert_eq!(Reply::to("a.example.", "A", &answer, &[]).read(false).unwrap_err(), Rejection::EndlessChain);
    let itself = ["a.example. 9 CNAME a.example."];
    assert_eq!(Reply::to("a.example.", "A", &itself, &[]).read(false).unwrap_err(), Rejection::EndlessChain);
}

#[test]
fn a_chain_has_a_longest_length() {
    let chain = |links: usize| {
        let links: Vec<_> =
            (0..links).map(|n| format!("n{n}.example. 9 CNAME n{}.example.", n + 1)).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        Reply::to("n0.example.", "A", &links, &[]).read(false).map(|answer| answer.target().unwrap().0)
    };
    let last = wire(&format!("n{LONGEST_CHAIN}.example."));
    assert_eq!(chain(LONGEST_CHAIN), Ok(last.into()));
    assert_eq!(chain(LONGEST_CHAIN + 1), Err(Rejection::EndlessChain));
}

#[test]
fn two_different_cname_records_at_a_name_contradict_each_other() {
    let answer = ["a.example. 9 CNAME b.example.", "a.example. 9 CNAME c.example."];
    assert_eq!(Reply::to("a.example.", "A", &answer, &[]).read(false).unwrap_err(), Rejection::Contradictory);
    let twice =
        ["a.example. 9 CNAME b.example.", "a.example. 7 CNAME b.example.", "b.example. 9 A 192.0.2.1"];
    let answer = Reply::to("a.example.", "A", &twice, &[]).read(false).unwrap();
    assert_eq!(part(&answer, Part::Chain), ["a.example. 7 CNAME b.example."]);
}

#[test]
fn what_a_dname_record_makes_is_checked_and_made_if_it_is_missing() {
    let dname = "old.example. 100 DNAME new.example.net.";
    let data = "www.new.example.net. 60 A 192.0.2.1";
    let read = |answer: &[&str]| Reply::to("www.old.example.", "A", answer, &[]).read(false);
    let expected = [dname, "www.old.example. 100 CNAME www.new.example.net."];
    let answer = read(&[dname, "www.old.example. 0 CNAME www.new.example.net.", data]).unwrap();
    assert_eq!(part(&answer, Part::Chain), expected);
    assert_eq!(part(&answer, Part::Data), [data]);
    assert_eq!(part(&read(&[dname, data]).unwrap(), Part::Chain), expected);
    let wrong = read(&[dname, "www.old.example. 0 CNAME www.evil.example.", data]);
    assert_eq!(wrong.unwrap_err(), Rejection::Contradictory);
}

#[test]
fn a_question_for_cname_below_a_dname_record_gets_what_that_makes() {
    let dname = "old.example. 100 DNAME new.example.net.";
    let answer = Reply::to("www.old.example.", "CNAME", &[dname], &[]).read(false).unwrap();
    assert_eq!(part(&answer, Part::Chain), [dname]);
    assert_eq!(part(&answer, Part::Data), ["www.old.example. 100 CNAME www.new.example.net."]);
    let itself = Reply::to("old.example.", "DNAME", &[dname], &[]).read(false).unwrap();
    assert_eq!((itself.count(Part::Chain), part(&itself, Part::Data)), (0, vec![dname.to_owned()]));
}

#[test]
fn a_dname_record_that_makes_too_long_a_name_contradicts_itself() {
    let label = "l".repeat(60);
    let (owner, target) = (format!("{label}.{label}.old."), format!("{label}.{label}.{label}."));
    let dname = format!("old. 100 DNAME {target}");
    let read = Reply::to(&owner, "A", &[&dname], &[]).read(false);
    assert_eq!(read.unwrap_err(), Rejection::Contradictory);
}

#[test]
fn records_of_one_set_get_the_least_of_their_ttls_and_are_there_once() {
    let answer = [
        "a.example. 300 A 192.0.2.1",
        "A.example. 100 A 192.0.2.2",
        "a.EXAMPLE. 200 A 192.0.2.1",
        "a.example. 500 RRSIG A example.",
    ];
    let answer = Reply::to("a.example.", "A", &answer, &[]).read(true).unwrap();
    assert_eq!(part(&answer, Part::Data), ["a.example. 100 A 192.0.2.1", "a.example. 100 A 192.0.2.2"]);
    assert_eq!(part(&answer, Part::Signatures), ["a.example. 100 RRSIG A example."]);
}

#[test]
fn no_ttl_is_longer_than_allowed_and_one_with_its_top_bit_set_is_zero() {
    let day = Reply::to("a.example.", "A", &["a.example. 9999999 A 192.0.2.1"], &[]).read(false).unwrap();
    assert_eq!(
        (day.lifetime(), part(&day, Part::Data)),
        (86_400, vec!["a.example. 86400 A 192.0.2.1".into()])
    );
    let zero = Reply::to("a.example.", "A", &["a.example. 2147483648 A 192.0.2.1"], &[]).read(false).unwrap();
    assert_eq!((zero.lifetime(), zero.is_fresh(NOW)), (0, false));
}

#[test]
fn a_negative_answer_is_cached_as_the_soa_record_and_its_minimum_say() {
    let answer = Reply::to("a.example.org.", "AAAA", &[], &[SOA]).read(false).unwrap();
    assert_eq!((answer.kind(), answer.lifetime(), answer.negative_ttl(NOW)), (Kind::NoData, 600, Some(600)));
    assert_eq!(answer.negative_ttl(NOW + Duration::from_secs(250)), Some(350));
    assert_eq!(part(&answer, Part::Authority), ["example.org. 600 SOA …"]);
    let short = SOA.replace(" 3600 ", " 60 ");
    let answer = Reply::to("a.example.org.", "AAAA", &[], &[&short]).rcode(3).read(false).unwrap();
    assert_eq!((answer.kind(), answer.lifetime(), answer.negative_ttl(NOW)), (Kind::NameError, 60, Some(60)));
    let long = SOA.replace(" 600", " 99999").replace(" 3600 ", " 99999 ");
    let answer = Reply::to("a.example.org.", "AAAA", &[], &[&long]).read(false).unwrap();
    assert_eq!((answer.lifetime(), answer.negative_ttl(NOW)), (10_800, Some(10_800)));
}

#[test]
fn a_negative_answer_without_soa_record_of_its_zone_is_cached_for_seconds() {
    let stranger = SOA.replace("example.org. 3600", "example.net. 3600");
    for authority in [&[][..], &[&*stranger]] {
        let answer = Reply::to("a.example.org.", "AAAA", &[], authority).read(false).unwrap();
        assert_eq!((answer.kind(), answer.lifetime(), answer.negative_ttl(NOW)), (Kind::NoData, 5, None));
        assert_eq!(part(&answer, Part::Authority), nothing());
    }
}

#[test]
fn a_negative_answer_at_the_end_of_a_chain_lives_no_longer_than_the_chain() {
    let answer = ["a.example. 30 CNAME b.example.org."];
    let answer = Reply::to("a.example.", "AAAA", &answer, &[SOA]).read(false).unwrap();
    assert_eq!((answer.kind(), answer.lifetime()), (Kind::NoData, 30));
}

#[test]
fn ns_records_of_an_answer_are_not_accepted() {
    for owner in [".", "org.", "example.org.", "a.example.org."] {
        let authority = [&*format!("{owner} 300 NS ns.evil.example.")];
        for answer in [&["a.example.org. 9 A 192.0.2.1"][..], &[]] {
            let reply = Reply::to("a.example.org.", "A", answer, &authority);
            let reply = if answer.is_empty() { reply.rcode(3) } else { reply };
            let answer = reply.read(true).unwrap();
            assert_eq!((part(&answer, Part::Authority), part(&answer, Part::Proofs)), (nothing(), nothing()));
        }
    }
}

#[test]
fn a_soa_record_above_an_upstreams_own_zone_says_how_long_no_lasts_and_is_not_passed_on() {
    let read = |zone: u8, owner: &str, target: Option<&str>| {
        let soa = SOA.replacen("example.org.", owner, 1);
        let alias = target.map(|target| format!("a.corp.example.org. 900 CNAME {target}"));
        let alias: Vec<&str> = alias.iter().map(String::as_str).collect();
        let reply = Reply::to("a.corp.example.org.", "A", &alias, &[&soa]);
        let bounds = Bounds { zone, ..super::upstream::bounds(false) };
        let answer = Answer::read(&reply.key(), &reply.octets(), NOW, &bounds).unwrap();
        let owners = part(&answer, Part::Authority)
            .into_iter()
            .map(|record| record.split(' ').next().unwrap().to_owned());
        (owners.collect::<Vec<String>>(), answer.lifetime(), answer.negative_ttl(NOW))
    };
    let believed = |owner: &str| (vec![owner.to_owned()], 600, Some(600));
    let corp = wire("corp.example.org.").len() as u8;
    assert_eq!(read(corp, "corp.example.org.", None), believed("corp.example.org."));
    assert_eq!(read(corp, "a.corp.example.org.", None), believed("a.corp.example.org."));
    for owner in ["example.org.", "org.", "."] {
        assert_eq!(read(corp, owner, None), believed("corp.example.org."), "{owner}");
        assert_eq!(read(1, owner, None), believed(owner), "{owner}");
    }
    // The chain leads out of the zone, to where another zone's word counts.
    assert_eq!(read(corp, "net.", Some("b.example.net.")), believed("net."));
}

#[test]
fn a_signed_soa_record_above_an_upstreams_own_zone_is_left_out_and_its_time_counts() {
    let signature = "example.org. 3600 RRSIG SOA example.org.";
    let reply = Reply::to("a.corp.example.org.", "A", &[], &[SOA, signature]).rcode(3);
    let zone = wire("corp.example.org.").len() as u8;
    let bounds = Bounds { zone, ..super::upstream::bounds(true) };
    let answer = Answer::read(&reply.key(), &reply.octets(), NOW, &bounds).unwrap();
    assert_eq!((part(&answer, Part::Authority), part(&answer, Part::Proofs)), (nothing(), nothing()));
    assert_eq!((answer.kind(), answer.lifetime()), (Kind::NameError, 600));
}

#[test]
fn a_soa_record_that_another_zone_signs_is_not_accepted() {
    for (signer, count) in [("example.org.", 1), ("org.", 0), ("a.example.org.", 0)] {
        let signature = format!("example.org. 3600 RRSIG SOA {signer}");
        let reply = Reply::to("a.example.org.", "A", &[], &[SOA, &signature]).rcode(3);
        assert_eq!(reply.read(true).unwrap().count(Part::Authority), count, "{signer}");
    }
}

#[test]
fn a_referral_is_not_an_answer_and_an_unfinished_chain_has_a_target() {
    let ns = ["example.org. 9 NS ns.example.org."];
    let referral = Reply::to("a.example.org.", "A", &[], &ns).read(false);
    assert_eq!(referral.unwrap_err(), Rejection::Referral);
    let answer = ["a.example. 30 CNAME B.Example.Org."];
    let answer = Reply::to("a.example.", "A", &answer, &ns).read(false).unwrap();
    assert_eq!(answer.kind(), Kind::Unfinished);
    assert_eq!(answer.target().unwrap().0[..], wire("b.example.org."));
}

#[test]
fn data_of_a_name_that_does_not_exist_contradict() {
    let answer = Reply::to("a.example.", "A", &["a.example. 9 A 192.0.2.1"], &[]).rcode(3).read(false);
    assert_eq!(answer.unwrap_err(), Rejection::Contradictory);
}

#[test]
fn proofs_and_signatures_are_kept_where_dnssec_was_asked_for() {
    let authority = [
        SOA,
        "example.org. 3600 RRSIG SOA example.org.",
        "a.example.org. 3600 NSEC z.example.org.",
        "a.example.org. 3600 RRSIG NSEC example.org.",
        "unsigned.example.org. 3600 NSEC z.example.org.",
        "evil.example. 3600 NSEC z.evil.example.",
        "evil.example. 3600 RRSIG NSEC evil.example.",
    ];
    let reply = Reply::to("b.example.org.", "AAAA", &[], &authority).rcode(3);
    let answer = reply.read(true).unwrap();
    assert_eq!(part(&answer, Part::Authority), ["example.org. 600 SOA …"]);
    assert_eq!(
        part(&answer, Part::Proofs),
        [
            "a.example.org. 600 NSEC …",
            "example.org. 600 RRSIG SOA example.org.",
            "a.example.org. 600 RRSIG NSEC example.org.",
        ]
    );
    assert_eq!(reply.read(false).unwrap().count(Part::Proofs), 0);
}

#[test]
fn a_reply_to_another_question_or_of_another_form_is_rejected() {
    let reply = Reply::to("a.example.", "A", &["a.example. 9 A 192.0.2.1"], &[]);
    let read = |octets: &[u8], rtype| {
        let key = reply.key().with_type(rtype);
        Answer::read(&key, octets, NOW, &super::upstream::bounds(false)).map(|answer| answer.kind())
    };
    let octets = reply.octets();
    assert_eq!(read(&octets, 1), Ok(Kind::Data));
    assert_eq!(read(&octets, 28), Err(Rejection::OtherQuestion));
    let changed = |at: usize, octet: u8| {
        let mut changed = octets.clone();
        changed[at] = octet;
        read(&changed, 1)
    };
    assert_eq!(changed(2, 0), Err(Rejection::Malformed), "a query");
    assert_eq!(changed(2, 0x88), Err(Rejection::Malformed), "another opcode");
    assert_eq!(changed(2, 0x82), Err(Rejection::Truncated));
    assert_eq!(changed(5, 0), Err(Rejection::Malformed), "no question");
    assert_eq!(changed(13, b'b'), Err(Rejection::OtherQuestion));
    assert_eq!(changed(13, b'A'), Ok(Kind::Data));
    for length in 0..octets.len() {
        assert_eq!(read(&octets[..length], 1), Err(Rejection::Malformed), "cut at {length}");
    }
}

#[test]
fn an_address_of_another_length_makes_a_reply_malformed() {
    let mut octets = Reply::to("a.example.", "A", &["a.example. 9 A 192.0.2.1"], &[]).octets();
    let length_at = octets.len() - 5;
    octets[length_at] = 3;
    octets.pop();
    let key = Reply::to("a.example.", "A", &[], &[]).key();
    let read = Answer::read(&key, &octets, NOW, &super::upstream::bounds(false));
    assert_eq!(read.unwrap_err(), Rejection::Malformed);
}

#[test]
fn what_went_wrong_is_read_from_the_opt_record() {
    let mut octets = Reply::to("a.example.", "A", &[], &[]).rcode(2).octets();
    octets[11] = 1;
    octets.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 11, 0, 15, 0, 7, 0, 22, b'n', b'o', b'n', b'e', 0]);
    let key = Reply::to("a.example.", "A", &[], &[]).key();
    let answer = Answer::read(&key, &octets, NOW, &super::upstream::bounds(false)).unwrap();
    assert_eq!((answer.rcode(), answer.extended_error()), (2, Some((22, "none"))));
    assert_eq!(answer.lifetime(), 5);
}

#[test]
fn a_chain_in_two_replies_is_joined_with_the_ages_of_both() {
    let first = ["a.example. 100 CNAME b.example.org."];
    let first = Reply::to("a.example.", "A", &first, &[]).read(false).unwrap();
    let second = Reply::to("b.example.org.", "A", &["b.example.org. 60 A 192.0.2.1"], &[]);
    let later = NOW + Duration::from_secs(50);
    let second =
        Answer::read(&second.key(), &second.octets(), later, &super::upstream::bounds(false)).unwrap();
    let whole = first.joined(&second).unwrap();
    assert_eq!((whole.key(), whole.kind(), whole.lifetime()), (first.key(), Kind::Data, 50));
    assert_eq!(part(&whole, Part::Chain), ["a.example. 50 CNAME b.example.org."]);
    assert_eq!(part(&whole, Part::Data), ["b.example.org. 60 A 192.0.2.1"]);
    assert_eq!(whole.stored(), later);
}

#[test]
fn a_failure_at_a_chains_end_is_one_of_the_whole() {
    let first = Reply::to("a.example.", "A", &["a.example. 9 CNAME b.example."], &[]).read(false).unwrap();
    let second = Reply::to("b.example.", "A", &[], &[]).rcode(2).read(false).unwrap();
    let whole = first.joined(&second).unwrap();
    assert_eq!((whole.kind(), whole.lifetime(), whole.count(Part::Chain)), (Kind::Failure(2), 5, 0));
}

#[test]
fn two_replies_that_lead_in_a_circle_are_not_joined() {
    let first = Reply::to("a.example.", "A", &["a.example. 9 CNAME b.example."], &[]).read(false).unwrap();
    let second = Reply::to("b.example.", "A", &["b.example. 9 CNAME a.example."], &[]).read(false).unwrap();
    assert!(first.joined(&second).is_none());
}

#[test]
fn sixty_four_kibioctets_of_addresses_are_kept() {
    let records: Vec<String> =
        (0..4_000).map(|n| format!("a.example. 9 A 10.0.{}.{}", n / 256, n % 256)).collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let answer = Reply::to("a.example.", "A", &records, &[]).read(false).unwrap();
    assert_eq!((answer.count(Part::Data), answer.addresses4().count()), (4_000, 4_000));
}

#[test]
fn names_that_grow_when_they_are_written_out_do_not_make_an_answer_of_any_size() {
    // MX records whose exchange is a name of the authority section's length, each compressed by the upstream; we may point at none of them.
    let long = format!("{}.example.net.", vec!["l".repeat(60); 3].join("."));
    let records: Vec<String> = (0..2_000).map(|n| format!("a.example. 9 MX {n} {long}")).collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let read = Reply::to("a.example.", "MX", &records, &[]).read(false);
    assert_eq!(read.unwrap_err(), Rejection::TooLarge);
}
