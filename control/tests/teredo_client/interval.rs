//! RFC 4380 §5.2.7, against a NAT that keeps mappings for a given time.

use super::*;
use sixway_wire::teredo::is_bubble;

const SECOND: Endpoint4 = Endpoint4 { port: 61_500, ..MAPPED };

/// A host behind a NAT with this time-out; solicitations are answered, and bubbles come while the secondary port's mapping exists.
struct Nat {
    host: Host,
    timeout: u64,
    last_secondary: Instant,
    /// Bubbles to lose.
    lose: usize,
    seen: usize,
}

impl Nat {
    fn new(timeout: u64) -> Self {
        let host = Host::new(Settings { learn_interval: true, ..settings() });
        let last_secondary = host.now;
        let mut nat = Self { host, timeout, last_secondary, lose: 0, seen: 0 };
        nat.carry();
        nat
    }

    /// Carries what was sent.
    fn carry(&mut self) {
        while let Some(out) = self.host.sent.get(self.seen).cloned() {
            self.seen += 1;
            let (_, packet) = Prologue::split(&out.octets).unwrap();
            if is_bubble(packet) {
                assert_eq!(
                    (out.from, out.to),
                    (Port::Service, at(PRIMARY)),
                    "through the service port, by the server"
                );
                let alive = out.at.since(self.last_secondary) < Duration::from_secs(self.timeout);
                if alive && self.lose == 0 {
                    let octets = [&Origin(MAPPED).octets()[..], packet].concat();
                    self.host.receive(Port::Secondary, at(PRIMARY), &octets).unwrap();
                    self.last_secondary = self.host.now;
                }
                self.lose = self.lose.saturating_sub(1);
                continue;
            }
            let mapped = if out.from == Port::Secondary { SECOND } else { MAPPED };
            if out.from == Port::Secondary {
                self.last_secondary = self.host.now;
            }
            let octets = Answer::to(&out.asked(), PRIMARY, mapped).octets();
            self.host.receive(out.from, out.to, &octets).unwrap();
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.host.now + Duration::from_secs(seconds);
        while let Some(due) = self.host.client.due().filter(|due| *due <= end) {
            self.host.now = due;
            self.host.settle();
            self.carry();
        }
        self.host.now = end;
    }

    fn interval(&self) -> u64 {
        self.host.client.status(self.host.now).interval.as_secs()
    }

    fn tests(&self) -> Vec<u64> {
        let bubbles = self.host.sent.iter().filter(|out| is_bubble(Prologue::split(&out.octets).unwrap().1));
        bubbles.map(|out| out.at.as_secs() - 1_000).collect()
    }
}

#[test]
fn the_secondary_port_is_qualified_immediately_after_the_service_port() {
    let nat = Nat::new(200);
    let asked: Vec<_> =
        nat.host.sent.iter().map(|out| (out.from, out.to.address, out.at.as_secs())).collect();
    let expected =
        [Port::Service, Port::Secondary].map(|port| [(port, PRIMARY, 1_000), (port, SECONDARY, 1_000)]);
    assert_eq!(asked, expected.concat());
}

#[test]
fn a_nat_that_keeps_mappings_long_gets_a_longer_interval_up_to_two_minutes() {
    let mut nat = Nat::new(1_000);
    nat.run(59);
    assert_eq!((nat.interval(), nat.tests()), (30, vec![]));
    nat.run(2);
    assert_eq!((nat.interval(), nat.tests()), (60, vec![60]));
    nat.run(90);
    assert_eq!((nat.interval(), nat.tests()), (90, vec![60, 150]), "the mean of 60 s and 120 s");
    nat.run(1_000);
    assert!((105..=120).contains(&nat.interval()), "{}", nat.interval());
    assert_eq!(nat.host.closed, [Port::Secondary], "closed when the procedure ends");
}

#[test]
fn a_candidate_fails_after_four_bubbles_of_two_seconds_and_the_mean_is_tried() {
    let mut nat = Nat::new(50);
    nat.run(67);
    assert_eq!((nat.tests(), nat.interval()), (vec![60, 62, 64, 66], 30));
    nat.run(60);
    // 68 s: the secondary port is refreshed; then the mean of 30 s and 60 s.
    assert_eq!((nat.tests()[4], nat.interval()), (68 + 45, 45));
    nat.run(1_000);
    assert!(nat.interval() >= 45 && nat.interval() < 50, "{}", nat.interval());
    assert_eq!(nat.host.closed, [Port::Secondary]);
}

#[test]
fn a_nat_that_keeps_mappings_hardly_for_thirty_seconds_leaves_the_default() {
    let mut nat = Nat::new(32);
    nat.run(1_000);
    assert_eq!(nat.interval(), 30);
    assert_eq!(nat.host.closed, [Port::Secondary]);
}

#[test]
fn lost_bubbles_are_repeated() {
    let mut nat = Nat::new(1_000);
    nat.lose = 3;
    nat.run(67);
    assert_eq!((nat.tests(), nat.interval()), (vec![60, 62, 64, 66], 60));
}

#[test]
fn if_the_secondary_port_does_not_qualify_the_default_stays() {
    let mut host = Host::new(Settings { learn_interval: true, ..settings() });
    host.answer(MAPPED).unwrap();
    host.answer(MAPPED).unwrap();
    assert_eq!(host.last().from, Port::Secondary);
    host.wait_secs(12);
    assert_eq!(host.client.status(host.now).interval, Duration::from_secs(30));
    assert_eq!((host.closed.clone(), host.stopped.len()), (vec![Port::Secondary], 0));
}

#[test]
fn the_learned_interval_is_that_of_the_maintenance_and_a_changed_mapping_ends_it() {
    let mut nat = Nat::new(1_000);
    nat.run(1_500);
    let interval = Duration::from_secs(nat.interval());
    let mut host = nat.host;
    host.until_sent();
    host.answer(MAPPED).unwrap();
    let before = host.now;
    host.until_sent();
    assert!((interval * 3 / 4..=interval + Duration::from_secs(1)).contains(&host.now.since(before)));
    for _ in 0..2 {
        host.answer(ELSEWHERE).unwrap();
    }
    assert_eq!(host.client.status(host.now).interval, Duration::from_secs(30));
}

#[test]
fn a_bubble_of_somebody_else_on_the_secondary_port_proves_nothing() {
    let mut nat = Nat::new(10);
    nat.run(60);
    let out = nat.host.last().clone();
    let from_elsewhere = nat.host.receive(Port::Secondary, ELSEWHERE, &out.octets);
    assert_eq!(from_elsewhere, Err(Refused::WrongSource));
    let other =
        sixway_wire::teredo::bubble("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), 1);
    assert_eq!(nat.host.receive(Port::Secondary, at(PRIMARY), &other), Err(Refused::WrongDestination));
    assert_eq!(nat.interval(), 30);
}

#[test]
fn the_secondary_port_sends_solicitations_to_the_server_alone_and_nothing_after_its_end() {
    let mut nat = Nat::new(1_000);
    nat.run(1_500);
    assert_eq!(nat.host.closed, [Port::Secondary]);
    let of_secondary = |nat: &Nat| nat.host.sent.iter().filter(|out| out.from == Port::Secondary).count();
    for out in nat.host.sent.iter().filter(|out| out.from == Port::Secondary) {
        assert!([at(PRIMARY), at(SECONDARY)].contains(&out.to), "{}", out.to);
        // It reads as a solicitation.
        out.asked();
    }
    let before = of_secondary(&nat);
    assert!(before > 2);
    nat.run(1_000);
    assert_eq!((of_secondary(&nat), nat.host.closed.len()), (before, 1));
}
