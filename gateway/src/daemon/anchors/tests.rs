use super::*;
use sixway_control::dns64::AnchorKey;
use sixway_dnssec::trust_anchor::root;

#[path = "../../../tests/dns64/signed_keys.rs"]
#[allow(dead_code, reason = "another test needs the rest")]
mod signed_keys;
use signed_keys::{ZONE, dnskey, reply, tag};

fn wire(octets: &[u8]) -> Wire {
    Wire(octets.into())
}

#[test]
fn a_zones_keys_are_queried_where_its_names_are() {
    let keeper = |upstreams: &[&[&[u8]]]| AnchorKeeper {
        anchors: TrustAnchors::new(&root(), 0),
        file: PathBuf::new(),
        clock: Clock::start(),
        upstreams: upstreams.iter().map(|names| names.iter().map(|name| wire(name)).collect()).collect(),
        failing: false,
    };
    let one = keeper(&[&[], &[b"\x03lan\0"], &[], &[b"\x04corp\x03lan\0", b"\x01x\0"]]);
    assert_eq!(one.upstreams_for(&wire(b"\0")), [0, 2]);
    assert_eq!(one.upstreams_for(&wire(b"\x03lan\0")), [1]);
    assert_eq!(one.upstreams_for(&wire(b"\x01a\x04corp\x03lan\0")), [3]);
    assert_eq!(one.upstreams_for(&wire(b"\x04xlan\0")), [0, 2]);
    assert!(keeper(&[&[b"\x03lan\0"]]).upstreams_for(&wire(b"\0")).is_empty());
}

#[test]
fn what_was_kept_is_read_again_and_what_is_damaged_begins_again() {
    let file = std::env::temp_dir().join(format!("sixway-anchors-{}.trust-anchor", std::process::id()));
    let first = restore(&root(), &file, 1_800_000_000).unwrap();
    write(&file, &first.text()).unwrap();
    assert_eq!(restore(&root(), &file, 1_800_000_000).unwrap().anchors(), first.anchors());
    write(&file, "garbage").unwrap();
    assert_eq!(restore(&root(), &file, 1_800_000_000).unwrap().anchors().len(), root().len());
    fs::remove_file(file).unwrap();
}

#[test]
fn the_question_has_do_and_cd() {
    let message = question(&wire(b"\0"));
    assert_eq!(message.len(), 12 + 5 + 11);
    assert_eq!((message[3] & 0x10, message[17 + 7] & 0x80), (0x10, 0x80));
}

/// What an upstream does with the question for the keys.
#[derive(Clone, Copy)]
enum Manner {
    /// The zone has the keys of these seeds; the first has signed.
    Signs(&'static [u8]),
    Strips,
    Closes,
    Garbles,
}

/// Upstreams that are made up; the number of questions that each has had comes at the end.
async fn answer(mut questions: mpsc::Receiver<UpstreamQuery>, manners: Vec<Manner>) -> Vec<usize> {
    let mut asked = vec![0; manners.len()];
    while let Some(UpstreamQuery { upstream, message, reply: to, .. }) = questions.recv().await {
        asked[upstream] += 1;
        match manners[upstream] {
            Manner::Signs(seeds) => to.give(Ok(reply(&message, seeds, true))),
            Manner::Strips => to.give(Ok(reply(&message, &[1], false))),
            Manner::Closes => drop(to),
            Manner::Garbles => to.give(Ok(message)),
        }
    }
    asked
}

/// Who believes in the key of seed 1.
fn believer(upstreams: usize) -> AnchorKeeper {
    let anchor = Anchor { zone: wire(ZONE), key: AnchorKey::Dnskey(dnskey(1).into()) };
    let clock = Clock::start();
    AnchorKeeper {
        anchors: TrustAnchors::new(&[anchor], clock.wall().unix_seconds),
        file: PathBuf::new(),
        clock,
        upstreams: vec![Vec::new(); upstreams],
        failing: false,
    }
}

/// Asks upstreams of these manners once: what happened, how often each was asked, and who did.
async fn observed(manners: &[Manner]) -> (Vec<(u16, Change)>, Vec<usize>, AnchorKeeper) {
    let mut keeper = believer(manners.len());
    let (streams, questions) = mpsc::channel(4);
    let upstreams = tokio::spawn(answer(questions, manners.to_vec()));
    let events = keeper.observe(&wire(ZONE), &streams).await;
    drop(streams);
    let asked = upstreams.await.unwrap();
    (events.iter().map(|event| (event.tag, event.change)).collect(), asked, keeper)
}

#[tokio::test]
async fn an_upstream_that_strips_dnssec_hides_no_good_one() {
    let good = Manner::Signs(&[1, 2]);
    for bad in [Manner::Strips, Manner::Closes, Manner::Garbles] {
        let (events, asked, keeper) = observed(&[bad, good, Manner::Closes]).await;
        assert_eq!(events, [(tag(2), Change::Pending)]);
        assert_eq!(asked, [1, 1, 0], "the next is asked, and no more than are needed");
        let states: Vec<_> = keeper.rows().into_iter().map(|row| (row.tag, row.state)).collect();
        assert_eq!(states, [(tag(1), "valid".into()), (tag(2), "pending".into())]);
    }
}

#[tokio::test]
async fn what_no_upstream_verifies_is_reported_once() {
    for manners in [[Manner::Strips, Manner::Closes], [Manner::Garbles, Manner::Strips]] {
        let (events, asked, keeper) = observed(&manners).await;
        assert_eq!((events, asked), (vec![(0, Change::Unverified)], vec![1, 1]));
        assert_eq!(keeper.anchors.anchors().len(), 1);
    }
    assert_eq!(observed(&[Manner::Signs(&[2])]).await.0, [(0, Change::Unverified)]);
    assert_eq!(observed(&[Manner::Closes, Manner::Garbles]).await.0, [(0, Change::Unanswered)]);
    assert_eq!(observed(&[]).await.0, [(0, Change::Unanswered)]);
}

#[tokio::test]
async fn a_question_that_cannot_be_put_has_no_reply() {
    let (streams, questions) = mpsc::channel(1);
    drop(questions);
    assert_eq!(ask(0, &wire(ZONE), &streams).await, None);
}
