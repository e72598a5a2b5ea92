//! A new process continues the work of another one: what the fast path carries, what was handed over, and which ports are not given.

use crate::support;
use crate::support::fast_path::{Fate, MemoryFastPath};
use crate::support::{Gateway, v4, v6};
use sixway_dataplane::engine::EngineConfig;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::nat64::Nat64Config;
use sixway_dataplane::nat::{
    Filtering, Inside, NatProtocol, NotAdopted, Outside, PortLedger, SavedSession, Selection, SessionRow,
    StaticBinding,
};
use sixway_dataplane::offload::{FlowHandle, HalfUsage, OffloadedFlow, Usage};
use sixway_dataplane::stateful::Stateful as _;
use sixway_dataplane::{DropReason, Instant, Verdict, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOST: &str = "2001:db8:1::1";
const SERVER: &str = "203.0.113.2";
const SERVER6: &str = "64:ff9b::203.0.113.2";
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const SECOND: Duration = Duration::from_secs(1);

fn gateway(edit: impl FnOnce(&mut Nat64Config)) -> Gateway {
    let mut nat64 = support::nat64();
    edit(&mut nat64);
    support::gateway(|config| config.nat64.push(nat64))
}

fn rows(gateway: &mut Gateway) -> Vec<SessionRow> {
    let (now, mut rows) = (gateway.now, Vec::new());
    gateway.engine.nat64()[0].sessions(0, u32::MAX, &Selection::default(), now, &mut rows);
    rows.sort_by_key(|row| (row.protocol, row.inside));
    rows
}

fn inside(host: &str, port: u16) -> Inside<Endpoint6> {
    Inside(Endpoint6::new(host.parse().unwrap(), port))
}

fn outside(address: &str, port: u16) -> Outside<Endpoint4> {
    Outside(Endpoint4::new(address.parse().unwrap(), port))
}

fn nat64(prefix: &str) -> Identity {
    Identity::of_nat64(prefix.parse().unwrap())
}

fn flow() -> OffloadedFlow {
    OffloadedFlow {
        mechanism: nat64("64:ff9b::/96"),
        protocol: NatProtocol::Udp,
        inside: inside(HOST, 1_000),
        outside: outside("192.0.2.1", 4_000),
        remote: Endpoint4::new(SERVER.parse().unwrap(), 53),
    }
}

/// Used a second ago, one way.
fn usage(gateway: &Gateway) -> Usage {
    let last = Instant(gateway.now.0 - 1_000_000_000);
    [HalfUsage { packets: 7, octets: 700, last: Some(last) }, HalfUsage::default()]
}

fn adopts(gateway: &mut Gateway, flow: &OffloadedFlow) -> Result<(), NotAdopted> {
    let usage = usage(gateway);
    gateway.engine.adopt(flow, FlowHandle(1), &usage, gateway.now)
}

#[test]
fn what_the_fast_path_carried_on_alone_is_a_session_again() {
    let mut old = gateway(|_| {});
    let path = MemoryFastPath::new(8);
    old.engine.set_fast_path(Box::new(path.clone()), 8);
    let packets: Vec<_> = (0..20u8).map(|n| v6(HOST, SERVER6).udp(1_000, 53, &[n; 8]).octets()).collect();
    for packet in &packets[..10] {
        path.meets(packet, old.now);
        old.receives(packet.as_slice());
        old.engine.settle(old.now);
    }
    old.now = old.now + SECOND;
    old.engine.settle(old.now);
    assert_eq!(path.active(), [true; 2]);
    let [before] = rows(&mut old)[..] else { panic!() };
    drop(old);

    let mut new = gateway(|_| {});
    new.engine.set_fast_path(Box::new(path.clone()), 8);
    new.now = new.now + 60 * SECOND;
    let back = v4(SERVER, &before.outside.0.address.to_string()).udp(53, before.outside.0.port, b"back");
    assert_eq!(path.meets(&back.octets(), new.now), Fate::Forwarded);
    new.now = new.now + 5 * SECOND;
    let (handle, entry) = path.only();
    new.engine.adopt(&entry.flow, handle, &entry.usage, new.now).unwrap();
    let [after] = rows(&mut new)[..] else { panic!() };
    assert_eq!((after.inside, after.outside, after.remote), (before.inside, before.outside, before.remote));
    assert_eq!((after.idle, after.offloaded, after.packets_in), (5 * SECOND, true, 1));
    assert!((294 * SECOND..=295 * SECOND).contains(&after.ends_in), "{after:?}");

    // What comes to the engine finds its binding and session; the port is not another's.
    new.receives(packets[11].as_slice());
    assert_eq!(new.last, Verdict::Forward);
    new.sent();
    assert_eq!((rows(&mut new).len(), path.len()), (1, 1));
    new.counted([
        ("nat64.v6_to_v4", 1),
        ("nat.bindings.made", 1),
        ("nat.sessions.made", 1),
        ("flows.adopted", 1),
    ]);
    new.waits(301 * SECOND);
    assert_eq!((rows(&mut new).len(), path.len()), (0, 0));
}

#[test]
fn a_flow_is_its_translators_wherever_the_configuration_has_it() {
    for order in [[0, 1], [1, 0]] {
        let mut gateway = support::gateway(|config| {
            let mut all = [support::nat64(), support::nat64()];
            all[1].prefix = support::prefix("2001:db8:64::/96");
            config.nat64 = order.map(|index| all[index].clone()).to_vec();
        });
        let usage = usage(&gateway);
        for (handle, prefix) in ["64:ff9b::/96", "2001:db8:64::/96"].into_iter().enumerate() {
            let flow = OffloadedFlow { mechanism: nat64(prefix), ..flow() };
            gateway.engine.adopt(&flow, FlowHandle(handle as u32), &usage, gateway.now).unwrap();
        }
        let sessions = gateway.engine.nat64().iter().map(|nat64| nat64.occupancy().sessions);
        assert_eq!(sessions.collect::<Vec<_>>(), [1, 1], "{order:?}");
        let identities: Vec<_> = gateway.engine.nat64().iter().map(|nat64| nat64.identity()).collect();
        assert_eq!(identities, order.map(|index| nat64(["64:ff9b::/96", "2001:db8:64::/96"][index])));
    }
}

#[test]
fn a_flow_that_the_configuration_would_not_make_is_not_adopted() {
    let of = |edit: &dyn Fn(&mut OffloadedFlow)| {
        let mut flow = flow();
        edit(&mut flow);
        adopts(&mut gateway(|nat64| nat64.pool.ports = vec![4_000..=4_999]), &flow)
    };
    assert_eq!(of(&|_| {}), Ok(()));
    assert_eq!(of(&|flow| flow.mechanism = nat64("64:ff9b::/64")), Err(NotAdopted::NoTranslator));
    assert_eq!(
        of(&|flow| flow.protocol = NatProtocol::Icmp),
        Err(NotAdopted::NotCarried),
        "ICMP with a port"
    );
    let echo = |flow: &mut OffloadedFlow| (flow.protocol, flow.remote.port) = (NatProtocol::Icmp, 0);
    assert_eq!(of(&echo), Ok(()));
    for place in [outside("192.0.2.4", 4_000), outside("192.0.2.1", 3_999), outside("192.0.2.1", 0)] {
        assert_eq!(of(&|flow| flow.outside = place), Err(NotAdopted::PortNotGiven), "{place:?}");
    }
    for host in ["64:ff9b::1", "fe80::1", "ff02::1", "::"] {
        assert_eq!(of(&|flow| flow.inside = inside(host, 1)), Err(NotAdopted::AddressRefused), "{host}");
    }
    for remote in ["127.0.0.1", "224.0.0.1"] {
        let remote = Endpoint4::new(remote.parse().unwrap(), 53);
        assert_eq!(of(&|flow| flow.remote = remote), Err(NotAdopted::AddressRefused), "{remote}");
    }
}

#[test]
fn a_flow_that_is_in_the_way_of_another_or_of_a_limit_is_not_adopted() {
    let mut gateway = gateway(|nat64| {
        nat64.limits.of_subscriber.bindings = 1;
        nat64.limits.sessions = 3;
        nat64.static_bindings.push(StaticBinding {
            softwire: None,
            protocol: NatProtocol::Udp,
            inside: inside("2001:db8:1::9", 9),
            outside: outside("192.0.2.1", 9_000),
        });
    });
    let mut adopts = |edit: &dyn Fn(&mut OffloadedFlow)| {
        let mut flow = flow();
        edit(&mut flow);
        adopts(&mut gateway, &flow)
    };
    let remote = |port| Endpoint4::new(SERVER.parse().unwrap(), port);
    assert_eq!(adopts(&|_| {}), Ok(()));
    assert_eq!(adopts(&|_| {}), Err(NotAdopted::SessionExists));
    assert_eq!(adopts(&|flow| flow.remote = remote(54)), Ok(()), "of the same binding");
    let elsewhere = |flow: &mut OffloadedFlow| {
        (flow.outside, flow.remote) = (outside("192.0.2.1", 4_001), remote(55));
    };
    assert_eq!(adopts(&elsewhere), Err(NotAdopted::EndpointInUse), "its host has another port");
    let another = |flow: &mut OffloadedFlow| {
        (flow.inside, flow.remote) = (inside("2001:db8:2::1", 1), remote(56));
    };
    assert_eq!(adopts(&another), Err(NotAdopted::EndpointInUse), "its port has another host");
    let of_static = |flow: &mut OffloadedFlow| flow.outside = outside("192.0.2.1", 9_000);
    assert_eq!(
        adopts(&|flow| {
            of_static(flow);
            flow.inside = inside("2001:db8:2::1", 1);
        }),
        Err(NotAdopted::EndpointInUse)
    );
    let second = |flow: &mut OffloadedFlow| {
        (flow.inside, flow.outside) = (inside("2001:db8:1::2", 1), outside("192.0.2.1", 4_002));
    };
    assert_eq!(adopts(&second), Err(NotAdopted::SubscriberLimit));
    assert_eq!(
        adopts(&|flow| {
            of_static(flow);
            flow.inside = inside("2001:db8:1::9", 9);
        }),
        Ok(()),
        "of the static binding"
    );
    let third = |flow: &mut OffloadedFlow| {
        (flow.inside, flow.outside) = (inside("2001:db8:3::2", 1), outside("192.0.2.1", 4_003));
    };
    assert_eq!(adopts(&third), Err(NotAdopted::TableFull));
    assert_eq!(gateway.engine.nat64()[0].occupancy().bindings, 2, "what failed left nothing behind");
}

#[test]
fn what_was_silent_for_its_lifetime_is_not_adopted() {
    let mut gateway = gateway(|_| {});
    gateway.now = Instant::from_secs(100_000);
    let adopts = |gateway: &mut Gateway, protocol, seconds: u64| {
        let last = Some(Instant::from_secs(gateway.now.as_secs() - seconds));
        let usage = [HalfUsage { packets: 1, octets: 1, last }, HalfUsage::default()];
        gateway.engine.adopt(&OffloadedFlow { protocol, ..flow() }, FlowHandle(1), &usage, gateway.now)
    };
    assert_eq!(adopts(&mut gateway, NatProtocol::Udp, 300), Err(NotAdopted::Expired));
    assert_eq!(adopts(&mut gateway, NatProtocol::Udp, 299), Ok(()));
    assert_eq!(adopts(&mut gateway, NatProtocol::Tcp, 7_440), Err(NotAdopted::Expired));
    assert_eq!(adopts(&mut gateway, NatProtocol::Tcp, 7_439), Ok(()), "it will be asked whether it lives");
}

#[test]
fn a_flow_is_its_owners() {
    let engine = |worker| {
        let mut config = EngineConfig { worker: WorkerId(worker), workers: 2, ..EngineConfig::default() };
        config.nat64.push(support::nat64());
        sixway_dataplane::engine::Engine::new(&config).unwrap()
    };
    let mut engines = [engine(0), engine(1)];
    let now = Instant::from_secs(1);
    let owner = engines[0].nat64()[0].ownership().worker_of_inside(HOST.parse().unwrap()).0;
    // Ports are dealt to the workers by blocks of 64.
    let port = 4_096 + 64 * u16::from(owner);
    let of = |port| OffloadedFlow { outside: outside("192.0.2.1", port), ..flow() };
    let usage = Usage::default();
    for (worker, engine) in engines.iter_mut().enumerate() {
        let wrong = of(port ^ 64);
        assert_eq!(engine.adopt(&wrong, FlowHandle(1), &usage, now), Err(NotAdopted::OtherWorker));
        let adopted = engine.adopt(&of(port), FlowHandle(1), &usage, now);
        let is_owner = worker == usize::from(owner);
        assert_eq!(adopted, if is_owner { Ok(()) } else { Err(NotAdopted::OtherWorker) });
        assert_eq!(
            engine.quarantine(NatProtocol::Udp, outside("192.0.2.2", port), Instant::from_secs(9)),
            is_owner
        );
    }
}

/// Sessions in every state that can be handed over.
fn many_states(gateway: &mut Gateway) {
    let port_of = |gateway: &mut Gateway, port: u16| {
        let rows = rows(gateway);
        rows.iter().find(|row| row.inside.unwrap().0.port == port).unwrap().outside.0
    };
    for port in [1_000, 1_001, 1_002, 1_003] {
        gateway.receives(v6(HOST, SERVER6).tcp(port, 80, SYN, b""));
    }
    for port in [1_001, 1_002, 1_003] {
        let at = port_of(gateway, port);
        gateway.receives(v4(SERVER, &at.address.to_string()).tcp(80, at.port, SYN | ACK, b""));
        gateway.receives(v6(HOST, SERVER6).tcp(port, 80, ACK, b"data"));
    }
    gateway.receives(v6(HOST, SERVER6).tcp(1_002, 80, ACK | 1, b""));
    gateway.receives(v6(HOST, SERVER6).tcp(1_003, 80, RST, b""));
    gateway.receives(v6(HOST, SERVER6).udp(2_000, 53, b"question"));
    gateway.receives(v6(HOST, SERVER6).echo(3_000, 1, b"ping"));
    gateway.waits(20 * SECOND);
    let at = port_of(gateway, 2_000);
    gateway.receives(v4("198.51.100.7", &at.address.to_string()).udp(9, at.port, b"from outside"));
    gateway.waits(7 * SECOND);
    while gateway.waiting() > 0 {
        gateway.sent();
    }
}

fn export(gateway: &mut Gateway) -> Vec<SavedSession> {
    let (now, mut saved, mut cursor) = (gateway.now, Vec::new(), Some(0));
    while let Some(at) = cursor {
        cursor = gateway.engine.nat64()[0].export(at, 2, now, &mut saved);
    }
    saved
}

#[test]
fn a_new_process_has_the_sessions_and_bindings_of_the_old_one_with_their_times_and_counts() {
    for filtering in [Filtering::EndpointIndependent, Filtering::AddressDependent] {
        let mut old = gateway(|nat64| nat64.filtering = Filtering::EndpointIndependent);
        many_states(&mut old);
        let saved = export(&mut old);
        assert_eq!(saved.len(), 7);
        let mut new = gateway(|nat64| nat64.filtering = filtering);
        new.now = old.now;
        for session in &saved {
            let now = new.now;
            let (nat64, counters) = new.engine.nat64_and_counters();
            nat64[0].restore(session, now, counters).unwrap();
            assert_eq!(nat64[0].restore(session, now, counters), Err(NotAdopted::SessionExists));
        }
        assert_eq!(rows(&mut new), rows(&mut old));
        assert_eq!(new.engine.nat64()[0].occupancy(), old.engine.nat64()[0].occupancy());
        assert_eq!(export(&mut new).len(), 7);
        // They go on and end alike.
        for gateway in [&mut old, &mut new] {
            gateway.receives(v6(HOST, SERVER6).tcp(1_003, 80, ACK, b"it lives"));
            gateway.waits(34 * SECOND);
        }
        assert_eq!(rows(&mut new).len(), 6, "the echo's is over");
        assert_eq!(rows(&mut new), rows(&mut old));
        for _ in 0..3 {
            for gateway in [&mut old, &mut new] {
                gateway.waits(100 * SECOND);
            }
            assert_eq!(rows(&mut new), rows(&mut old));
        }
        for gateway in [&mut old, &mut new] {
            gateway.waits(8_000 * SECOND);
            gateway.waits(8_000 * SECOND);
        }
        assert_eq!(new.engine.nat64()[0].occupancy().bindings, 0);
    }
}

#[test]
fn what_the_fast_path_carries_is_not_exported_and_what_is_on_its_way_is() {
    for (pause, exported, carried) in [(Duration::ZERO, 1, 0), (SECOND, 0, 1)] {
        let mut gateway = gateway(|_| {});
        let path = MemoryFastPath::new(8);
        gateway.engine.set_fast_path(Box::new(path.clone()), 8);
        for n in 0..8u8 {
            gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, &[n; 8]));
        }
        assert_eq!(path.len(), 1);
        gateway.now = gateway.now + pause;
        gateway.engine.settle(gateway.now);
        gateway.engine.take_back_under_way();
        assert_eq!((export(&mut gateway).len(), path.len()), (exported, carried));
    }
}

#[test]
fn who_adopts_a_flow_knows_of_the_packets_that_the_engine_had() {
    let mut gateway = gateway(|_| {});
    let path = MemoryFastPath::new(8);
    gateway.engine.set_fast_path(Box::new(path.clone()), 8);
    for n in 0..8u8 {
        gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, &[n; 8]));
    }
    gateway.now = gateway.now + SECOND;
    gateway.engine.settle(gateway.now);
    // The programs are idle.
    gateway.now = gateway.now + 200 * SECOND;
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, &[9; 8]));
    assert!(export(&mut gateway).is_empty());
    let mut new = self::gateway(|_| {});
    new.now = gateway.now + 250 * SECOND;
    let (handle, entry) = path.only();
    new.engine.set_fast_path(Box::new(path.clone()), 8);
    new.engine.adopt(&entry.flow, handle, &entry.usage, new.now).unwrap();
    let idle = rows(&mut new)[0].idle;
    assert!((250 * SECOND..=251 * SECOND).contains(&idle), "{idle:?}");
}

/// A ledger in memory.
#[derive(Clone, Default)]
struct MemoryLedger(Arc<Mutex<BTreeSet<Bound>>>);

/// What it keeps.
type Bound = (NatProtocol, Outside<Endpoint4>);

impl PortLedger for MemoryLedger {
    fn handle(&self) -> Box<dyn PortLedger> {
        Box::new(self.clone())
    }

    fn bound(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        self.0.lock().unwrap().insert((protocol, outside));
    }

    fn released(&mut self, protocol: NatProtocol, outside: Outside<Endpoint4>) {
        assert!(self.0.lock().unwrap().remove(&(protocol, outside)), "{outside:?} was not bound");
    }
}

impl MemoryLedger {
    fn ports(&self) -> Vec<u16> {
        self.0.lock().unwrap().iter().map(|(_, outside)| outside.0.port).collect()
    }
}

#[test]
fn the_ledger_knows_what_is_bound_and_what_is_in_quarantine() {
    let door = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: inside("2001:db8:1::9", 9),
        outside: outside("192.0.2.1", 9_000),
    };
    let mut gateway = gateway(|nat64| nat64.static_bindings.push(door));
    let ledger = MemoryLedger::default();
    gateway.engine.set_port_ledger(Box::new(ledger.clone()));
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, b""));
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 54, b""));
    assert_eq!(ledger.ports(), [rows(&mut gateway)[0].outside.0.port]);
    adopts(&mut gateway, &OffloadedFlow { inside: inside(HOST, 7), ..flow() }).unwrap();
    assert!(ledger.ports().contains(&4_000));
    assert!(gateway.engine.quarantine(NatProtocol::Tcp, outside("192.0.2.2", 77), Instant::from_secs(9_000)));
    assert_eq!(ledger.ports().len(), 3, "the administrator's binding is not among them");
    gateway.waits(301 * SECOND);
    assert_eq!(ledger.ports().len(), 3, "the ports of bindings that have ended are in quarantine");
    gateway.waits(120 * SECOND);
    assert_eq!(ledger.ports(), [77]);
    gateway.waits(8_000 * SECOND);
    assert_eq!(ledger.ports(), []);
}

/// A translator with four ports.
fn narrow() -> Gateway {
    gateway(|nat64| {
        nat64.pool.addresses = vec!["192.0.2.1/32".parse().unwrap()];
        nat64.pool.ports = vec![4_000..=4_003];
    })
}

#[test]
fn a_port_in_quarantine_is_not_given_until_its_time_unless_no_other_is_left() {
    let mut gateway = narrow();
    let until = gateway.now + 120 * SECOND;
    for port in 4_000..=4_002 {
        assert!(gateway.engine.quarantine(NatProtocol::Udp, outside("192.0.2.1", port), until));
    }
    let again = gateway.engine.quarantine(NatProtocol::Udp, outside("192.0.2.1", 4_001), until);
    assert!(!again, "it is there");
    assert!(!gateway.engine.quarantine(NatProtocol::Udp, outside("192.0.2.1", 4_004), until), "not given");
    assert!(
        !gateway.engine.quarantine(NatProtocol::Udp, outside("192.0.2.9", 4_000), until),
        "not the pool's"
    );
    assert_eq!(gateway.engine.nat64()[0].quarantined(), 3);
    gateway.receives(v6(HOST, SERVER6).udp(1_000, 53, b""));
    assert_eq!(rows(&mut gateway)[0].outside, outside("192.0.2.1", 4_003));
    gateway.sent();
    gateway.receives(v6(HOST, SERVER6).udp(1_001, 53, b""));
    gateway.sent();
    assert!(rows(&mut gateway).iter().any(|row| row.outside == outside("192.0.2.1", 4_000)), "the oldest");
    assert_eq!(gateway.engine.counters().quarantines_cut_short, 1);
    gateway.waits(119 * SECOND);
    assert_eq!(gateway.engine.nat64()[0].quarantined(), 2);
    gateway.waits(SECOND);
    assert_eq!(gateway.engine.nat64()[0].quarantined(), 0);
    for port in 1_002..=1_003 {
        gateway.receives(v6(HOST, SERVER6).udp(port, 53, b""));
        gateway.sent();
    }
    assert_eq!(gateway.engine.counters().quarantines_cut_short, 1);
    gateway.refuses_new_session(1_004);
}

trait Refuses {
    fn refuses_new_session(&mut self, port: u16);
}

impl Refuses for Gateway {
    #[track_caller]
    fn refuses_new_session(&mut self, port: u16) {
        self.receives(v6(HOST, SERVER6).udp(port, 53, b""));
        assert_eq!(self.last, Verdict::Dropped(DropReason::PortPoolEmpty));
        while self.waiting() > 0 {
            self.sent();
        }
    }
}

#[test]
fn who_is_known_to_own_a_port_in_quarantine_has_it_and_keeps_it() {
    let mut gateway = narrow();
    let until = gateway.now + 60 * SECOND;
    for port in 4_000..=4_003 {
        assert!(gateway.engine.quarantine(NatProtocol::Udp, outside("192.0.2.1", port), until));
    }
    adopts(&mut gateway, &flow()).unwrap();
    let door = StaticBinding {
        softwire: None,
        protocol: NatProtocol::Udp,
        inside: inside("2001:db8:1::9", 9),
        outside: outside("192.0.2.1", 4_001),
    };
    gateway.engine.nat64()[0].add_static(&door).unwrap();
    assert_eq!(gateway.engine.nat64()[0].quarantined(), 2);
    gateway.waits(61 * SECOND);
    // Two are free: those whose owners are known are not.
    let mut seen = BTreeSet::new();
    for port in [1_001, 1_002] {
        gateway.receives(v6(HOST, SERVER6).udp(port, 53, b""));
        gateway.sent();
    }
    for row in rows(&mut gateway) {
        seen.insert(row.outside.0.port);
    }
    assert_eq!(seen, BTreeSet::from([4_000, 4_002, 4_003]));
    gateway.refuses_new_session(1_003);
}
