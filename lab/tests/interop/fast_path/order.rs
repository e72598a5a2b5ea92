//! Flows are moved to the fast path while their packets are under way: none overtakes another, and none is lost.

use super::conversation::{Conversation, End};
use super::load::Translator::{self, Nat44, Nat64};
use super::load::{Gateway, all_is_well, pause};
use crate::Interop;
use crate::counters::tcp_counters;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::{Hook, carried, wait_until_moved};
use sixway_lab::namespace::Namespace;
use sixway_lab::probe::cpu::{pin_process, pin_thread};

pub const TESTS: &[Interop] = &[
    Interop::new("no_packet_overtakes_another_when_flows_move_to_the_fast_path_tc", &["sixway"], || {
        datagrams_stay_in_order(Nat64, Hook::Tc)
    }),
    Interop::new("no_packet_overtakes_another_when_flows_move_to_the_fast_path_xdp", &["sixway"], || {
        datagrams_stay_in_order(Nat64, Hook::Xdp)
    }),
    Interop::new(
        "no_segment_overtakes_another_when_connections_move_to_the_fast_path_tc",
        &["sixway"],
        || streams_stay_in_order(Nat64, Hook::Tc),
    ),
    Interop::new(
        "no_segment_overtakes_another_when_connections_move_to_the_fast_path_xdp",
        &["sixway"],
        || streams_stay_in_order(Nat64, Hook::Xdp),
    ),
    Interop::new("no_packet_of_nat44_overtakes_another_when_flows_move_tc", &["sixway"], || {
        datagrams_stay_in_order(Nat44, Hook::Tc)
    }),
    Interop::new("no_packet_of_nat44_overtakes_another_when_flows_move_xdp", &["sixway"], || {
        datagrams_stay_in_order(Nat44, Hook::Xdp)
    }),
    Interop::new("no_segment_of_nat44_overtakes_another_when_connections_move_tc", &["sixway"], || {
        streams_stay_in_order(Nat44, Hook::Tc)
    }),
    Interop::new("no_segment_of_nat44_overtakes_another_when_connections_move_xdp", &["sixway"], || {
        streams_stay_in_order(Nat44, Hook::Xdp)
    }),
];

/// From one fast flow to many slow ones, each time with new ports.
fn datagrams_stay_in_order(translator: Translator, hook: Hook) -> Result<()> {
    let gateway = Gateway::start_with(translator, hook)?;
    for (port, (flows, per_second)) in
        (1_000..).zip([(1, 200), (1, 5_000), (4, 10_000), (50, 10_000), (300, 10_000)])
    {
        let stream = gateway.stream(translator.client(), port, flows, per_second, 64)?;
        wait_until_moved(&gateway.network)?;
        let last = gateway.engine_sends(|| pause(200))?;
        let account = stream.end()?;
        let told = |failure| Failure::Unexpected(format!("{flows} flows: {failure}"));
        all_is_well(&account, per_second as usize / 2).map_err(told)?;
        assert!(last < u64::from(per_second) / 20, "{last} packets of {flows} flows took the long way again");
    }
    Ok(())
}

/// Connections at a time, how many after each other, and octets of each both ways.
const AT_ONCE: u16 = 6;
const IN_TURN: u16 = 20;
const OCTETS: usize = 400_000;
/// Octets that a connection has under way at most: all connections together have fewer packets than the queues of TUN and veth devices have room for
/// (256 frames). What is lost in a queue would look like what came out of order.
const UNDER_WAY: &str = "4096 49152 49152";

/// What the kernel counts when a segment comes after a later one, comes twice, or is sent again.
const DISORDER: &[&str] = &[
    "TcpExtTCPOFOQueue",
    "TcpExtTCPDSACKOldSent",
    "TcpExtTCPDSACKOfoSent",
    "TcpExtTCPDSACKRecv",
    "TcpExtTCPDSACKOfoRecv",
    "TcpExtTCPSACKReorder",
    "TcpExtTCPRenoReorder",
    "TcpExtTCPTSReorder",
    "TcpRetransSegs",
];

/// Connections that begin while others send: each moves to the fast path in the midst of its octets. All happens on one CPU, for a veth device has a
/// queue for each CPU that sends: two of them bring even what no gateway has touched out of order.
fn streams_stay_in_order(translator: Translator, hook: Hook) -> Result<()> {
    let gateway = Gateway::start_with(translator, hook)?;
    pin_process(gateway.process, 0)?;
    let (client, server) = (gateway.network.host("client")?, gateway.network.host("server")?);
    let [to_server, back] = match translator {
        Nat64 => ["-6 route change default via 2001:db8:1::1", "route change default via 203.0.113.1"],
        Nat44 => ["route change default via 192.168.1.1", "route change 192.0.2.0/24 via 203.0.113.1"],
    };
    patient(client, to_server)?;
    patient(server, back)?;
    std::thread::scope(|scope| {
        let talking = (0..AT_ONCE).map(|one| {
            let ends = (client, translator.server(), server);
            scope.spawn(move || talk(ends, 10_000 + one * 100))
        });
        let all: Vec<_> = talking.collect();
        all.into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let counted = [tcp_counters(client, DISORDER)?, tcp_counters(server, DISORDER)?];
    assert!(counted.iter().flatten().all(|(_, value)| *value == 0), "client and server: {counted:?}");
    // All but the first segments of each connection.
    let (segments, least) =
        (carried(&gateway.network)?, u64::from(AT_ONCE * IN_TURN) * OCTETS as u64 / 1_448);
    assert!(segments > least, "the fast path carried {segments} segments: {}", gateway.said());
    Ok(())
}

/// Little under way; and nothing is sent again because the machine was busy: neither after a few milliseconds (RFC 8985 §7) nor after less than two
/// seconds.
fn patient(host: &Namespace, route: &str) -> Result<()> {
    host.sysctl("ipv4/tcp_wmem", UNDER_WAY)?;
    host.sysctl("ipv4/tcp_early_retrans", "0")?;
    host.ip(&format!("{route} rto_min 2s")).map(drop)
}

fn talk((client, target, server): (&Namespace, &str, &Namespace), ports: u16) -> Result<()> {
    pin_thread(0)?;
    for port in ports..ports + IN_TURN {
        let talk = Conversation::open(client, target, server, "203.0.113.2", port)?;
        talk.exchange(OCTETS)?;
        talk.end(End::Client)?;
    }
    Ok(())
}
