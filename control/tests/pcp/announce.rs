//! RFC 6887 §14.1: announcements.

use super::*;
use sixway_control::pcp::Announced;

/// All announcements of some seconds: when, to whom, and the Epoch Time.
fn announcements(bench: &mut Bench, seconds: u64) -> Vec<(u64, Announced, Vec<u8>)> {
    let (begin, mut all) = (bench.now, Vec::new());
    let end = Instant(begin.0 + seconds * 1_000_000_000);
    while let Some(next) = bench.server.poll_timeout().filter(|next| *next <= end) {
        bench.now = bench.now.max(next);
        bench.server.handle_timeout(&mut bench.nat, bench.now);
        while let Some(sent) = bench.server.poll_transmit(bench.now) {
            all.push(((bench.now.0 - begin.0) / 1_000_000, sent.to, sent.octets));
        }
    }
    all
}

#[test]
fn a_server_that_begins_announces_itself_by_both_families_ten_times() {
    let mut bench = Bench::new();
    let all = announcements(&mut bench, 1_000);
    let times: Vec<u64> = all.iter().filter(|it| it.1 == Announced::Everyone4).map(|it| it.0).collect();
    assert_eq!(times, [0, 250, 750, 1_750, 3_750, 7_750, 15_750, 31_750, 63_750, 127_750]);
    assert_eq!(all.iter().filter(|it| it.1 == Announced::Everyone6).count(), 10);
    for (at, _, octets) in &all {
        assert_eq!(octets[..8], [2, 0x80, 0, 0, 0, 0, 0, 0]);
        assert_eq!(octets[8..12], u32::try_from(at / 1_000).unwrap().to_be_bytes(), "the Epoch Time");
        assert_eq!(octets.len(), 24);
    }
}

#[test]
fn a_nat_pmp_client_hears_the_external_address() {
    let mut bench = Bench::with(|settings| settings.external_address = Some([192, 0, 2, 1].into()));
    let all = announcements(&mut bench, 0);
    assert!(all.iter().any(|it| it.2 == [0, 128, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1]));
    let mut without = Bench::with(|settings| {
        (settings.external_address, settings.nat_pmp) = (Some([192, 0, 2, 1].into()), false);
    });
    assert!(announcements(&mut without, 0).iter().all(|it| it.2[0] == 2));
}

#[test]
fn a_loss_of_state_begins_the_epoch_again_and_is_announced() {
    let mut bench = Bench::new();
    announcements(&mut bench, 1_000);
    bench.pass(1_000);
    assert!(bench.server.poll_transmit(bench.now).is_none());
    bench.server.reset_epoch(bench.now);
    let all = announcements(&mut bench, 1);
    assert_eq!(all.iter().filter(|it| it.1 == Announced::Everyone4).count(), 3);
    assert_eq!(bench.ask(&Ask::announce(ALICE)).epoch(), 0);
}
