//! The lab's own loads between two namespaces: that each counts what it sends, loses nothing on a link that loses nothing, and times every answer.

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::load::{
    Background, Calls, ConnectionEnds, ConnectionFrames, EchoSweep, Ends, FrameEnds, FrameStream, From, Gaps,
    HttpFetch, HttpServer, Load, Outcome, Pace, StampedFrames, StampedSink, TcpBulk, TransactionKind,
    Transactions, Trip, UdpStream, Until, XdpResponder, compile_connections, compile_stamped, link_address,
    stamp_of,
};
use sixway_lab::measure::{Capture, ReceivingThreads, handshakes};
use sixway_lab::namespace::command;
use sixway_lab::topology::{Network, client_router_server};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("echo_requests_of_each_kind_of_host_are_answered_and_timed", &[], echo),
    Interop::new("streams_over_udp_lose_nothing_on_a_bare_link", &[], streams),
    Interop::new("transactions_and_pages_are_answered_each_once", &[], transactions),
    Interop::new("calls_are_set_up_and_their_audio_is_measured_both_ways", &[], calls),
    Interop::new("set_up_times_follow_from_captures", &["tcpdump"], captures),
    Interop::new(
        "stamp_is_the_same_in_c_and_rust_and_frames_are_measured_in_the_kernel",
        &["clang"],
        stamped_frames,
    ),
    Interop::new("connections_without_sockets_are_opened_and_answered_each_once", &["clang"], connections),
    Interop::new("connections_that_go_on_from_elsewhere_are_not_answered", &["clang", "nft"], elsewhere),
    Interop::new("the_kernels_forwarding_is_counted_in_its_own_threads", &["ethtool"], receiving_threads),
    Interop::new("a_background_keeps_its_rate_while_it_runs", &[], background),
];

const CLOSED: Pace = Pace::Closed { in_flight: 1, pause: Duration::ZERO, resend: None };

/// Two hosts; the server has whole prefixes.
fn two_hosts() -> Result<Network> {
    let network = Network::new(&["client", "server"])?;
    network.link(("client", "up0"), ("server", "up0"))?;
    for (host, number) in [("client", 1), ("server", 2)] {
        network.address(host, "up0", &format!("2001:db8::{number}/64"))?;
        network.address(host, "up0", &format!("192.0.2.{number}/24"))?;
    }
    for (prefix, via) in [("2001:db8:9::/64", "2001:db8::2"), ("198.51.100.0/24", "192.0.2.2")] {
        network.route("client", &format!("{prefix} via {via}"))?;
        network.route("server", &format!("local {prefix} dev lo"))?;
    }
    Ok(network)
}

fn ends(network: &Network) -> Result<Ends<'_>> {
    Ok(Ends { client: network.host("client")?, server: network.host("server")?, core: None })
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap_or_else(|_| panic!("{text} is not an address"))
}

fn whole(outcome: &Outcome, count: u64) {
    assert_eq!((outcome.sent, outcome.answered, outcome.lost), (count, count, 0), "{outcome:?}");
    assert_eq!((outcome.duplicated, outcome.reordered, outcome.refused), (0, 0, 0));
    assert_eq!((outcome.latency.len(), outcome.service.len()), (count, count));
    assert!(outcome.took > Duration::ZERO && outcome.cost.cpu > Duration::ZERO);
}

fn echo() -> Result<()> {
    let network = two_hosts()?;
    let client = network.host("client")?;
    let addresses = |prefix: &str, count: u16| -> Vec<IpAddr> {
        (1..=count).filter_map(|last| format!("{prefix}{last}").parse().ok()).collect()
    };
    for (from, prefix, octets) in [(From::Native, "2001:db8:9::", 104), (From::Ipv4, "198.51.100.", 84)] {
        let flows = vec![addresses(prefix, 20), addresses(prefix, 30)];
        let sweep = EchoSweep { from, flows, each: 4, octets };
        let outcome = client.enter(|| sweep.run(CLOSED, Until::Done))??;
        whole(&outcome, 200);
        assert_eq!(outcome.octets, 200 * octets as u64);
        let open = Pace::Open { per_second: 5_000.0, gaps: Gaps::Poisson(1) };
        let outcome = client.enter(|| sweep.run(open, Until::Count(1_000)))??;
        whole(&outcome, 1_000);
        assert_eq!(outcome.lateness.len(), 1_000);
    }
    Ok(())
}

fn streams() -> Result<()> {
    let network = two_hosts()?;
    let rate = Pace::Open { per_second: 10_000.0, gaps: Gaps::Even };
    for (any, target, listens, header) in [
        ("[::]:0", "[2001:db8:9::7]:7000", "[::]:7000", 48),
        ("192.0.2.1:6000", "192.0.2.2:7000", "0.0.0.0:7000", 28),
    ] {
        for trip in [Trip::OneWay, Trip::Round] {
            let stream = UdpStream {
                ends: ends(&network)?,
                source: address(any),
                target: address(target),
                listens: address(listens),
                flows: 5,
                payload: 100,
                trip,
            };
            // A server that has the whole prefix answers from one of its addresses: the socket of the client takes those of its target only.
            let answered = target.starts_with("192") || trip == Trip::OneWay;
            let outcome = stream.run(rate, Until::Count(3_000))?;
            if answered {
                whole(&outcome, 3_000);
                assert!(outcome.jitter.is_some() && outcome.cost.answering > Duration::ZERO);
            }
            assert_eq!(outcome.octets, outcome.sent * (100 + header));
        }
    }
    let bulk = TcpBulk {
        ends: ends(&network)?,
        target: address("[2001:db8::2]:7000"),
        listens: address("[::]:7000"),
        write: 1_000,
        no_delay: false,
        segment: Some(500),
    };
    let outcome = bulk.run(Pace::AsFastAsPossible, Until::Count(5_000))?;
    assert_eq!((outcome.sent, outcome.octets, outcome.setup.len()), (5_000, 5_000_000, 1));
    Ok(())
}

fn transactions() -> Result<()> {
    let network = two_hosts()?;
    let ends = ends(&network)?;
    for kind in [TransactionKind::UdpRr, TransactionKind::TcpRr, TransactionKind::TcpCrr] {
        for (target, listens) in [("[2001:db8::2]:7000", "[::]:7000"), ("192.0.2.2:7000", "0.0.0.0:7000")] {
            let transactions = Transactions {
                ends,
                kind,
                target: address(target),
                listens: address(listens),
                request: 16,
                response: 400,
                workers: 4,
            };
            let outcome = transactions.run(CLOSED, Until::Count(200))?;
            whole(&outcome, 200);
            assert_eq!(outcome.octets, 200 * 416);
            assert_eq!(outcome.setup.len(), if kind == TransactionKind::TcpCrr { 200 } else { 0 });
            let open = Pace::Open { per_second: 500.0, gaps: Gaps::Even };
            whole(&transactions.run(open, Until::Time(Duration::from_millis(200)))?, 100);
        }
    }
    let _server = HttpServer::start(ends.server, address("[::]:80"), 4, None)?;
    let targets: Vec<SocketAddr> =
        (1..=50).map(|last| address(&format!("[2001:db8:9::{last:x}]:80"))).collect();
    for keep_alive in [false, true] {
        let fetch = HttpFetch {
            client: ends.client,
            core: None,
            targets: &targets,
            objects: &[4_000, 12_800, 150_000],
            keep_alive,
            workers: 4,
        };
        let four = Pace::Closed { in_flight: 4, pause: Duration::ZERO, resend: None };
        let outcome = fetch.run(four, Until::Count(100))?;
        whole(&outcome, 100);
        assert_eq!((outcome.setup.len(), outcome.octets), (100, 100 * 166_800));
    }
    Ok(())
}

fn background() -> Result<()> {
    let network = two_hosts()?;
    let stream = UdpStream {
        ends: ends(&network)?,
        source: address("[::]:0"),
        target: address("[2001:db8::2]:9000"),
        listens: address("[::]:9000"),
        flows: 1,
        payload: 16,
        trip: Trip::OneWay,
    };
    let running = Background::start(&stream, 500, 8e6)?;
    std::thread::sleep(Duration::from_millis(500));
    let report = running.end()?;
    // 2,000 packets a second. What else the machine does may delay them, and then they follow.
    assert!((700..1_600).contains(&report.outcome.sent), "{}", report.outcome.sent);
    assert_eq!(report.outcome.lost, 0);
    assert!((report.packet_bits / report.payload_bits - 500.0 / 452.0).abs() < 1e-9);
    assert!((report.wire_bits / report.packet_bits - 538.0 / 500.0).abs() < 1e-9);
    assert!(Background::start(&stream, 60, 8e6).is_err(), "no room for a stamp");
    Ok(())
}

fn calls() -> Result<()> {
    let network = two_hosts()?;
    let calls = Calls {
        ends: ends(&network)?,
        caller: address("[2001:db8::1]:0").ip(),
        target: address("[2001:db8::2]:5060"),
        callee: address("[2001:db8::2]:5060"),
        calls: 2,
        talk: Duration::from_millis(300),
    };
    let report = calls.run()?;
    assert_eq!((report.made, report.failed, report.setup.len()), (2, 0, 2));
    for way in [&report.up, &report.down] {
        whole(way, 30);
        assert!(way.jitter.is_some());
    }
    let four = Calls {
        caller: address("192.0.2.1:0").ip(),
        target: address("192.0.2.2:5060"),
        callee: address("192.0.2.2:5060"),
        talk: Duration::ZERO,
        ..calls
    };
    assert_eq!(four.run()?.made, 2);
    Ok(())
}

fn captures() -> Result<()> {
    let network = two_hosts()?;
    let at_client = Capture::start(&network, "client", "up0", "tcp port 7000")?;
    let at_server = Capture::start(&network, "server", "up0", "tcp port 7000")?;
    let transactions = Transactions {
        ends: ends(&network)?,
        kind: TransactionKind::TcpCrr,
        target: address("[2001:db8::2]:7000"),
        listens: address("[::]:7000"),
        request: 16,
        response: 16,
        workers: 1,
    };
    let outcome = transactions.run(CLOSED, Until::Count(20))?;
    let [client, server] = [handshakes(&at_client.end()?), handshakes(&at_server.end()?)];
    assert_eq!((client.len(), server.len()), (20, 20));
    let longest = Duration::from_nanos(outcome.setup.max());
    assert!(client.iter().all(|time| *time > Duration::ZERO && *time <= longest), "{client:?} {longest:?}");
    Ok(())
}

fn stamped_frames() -> Result<()> {
    let network = two_hosts()?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let object = compile_stamped(network.folder())?;
    for (source, destination, octets) in
        [("2001:db8::", "2001:db8:9::5", 66), ("192.0.2.0", "198.51.100.5", 50)]
    {
        let ends = FrameEnds {
            to: link_address(server, "up0")?,
            source: source.parse().map_err(|_| Failure::Unexpected(source.to_owned()))?,
            destination: destination.parse().map_err(|_| Failure::Unexpected(destination.to_owned()))?,
            port: 4_000,
            flows: 10,
            octets: 0,
        };
        let part = StampedFrames::load_part(&object, (&ends, 3_000..3_010), client, "up0")?.example()?;
        let ports = if source.contains(':') { 54 } else { 34 };
        assert_eq!(
            part.get(ports..ports + 2),
            Some(&(4_096_u16 + 3_000 % 1_024).to_be_bytes()[..]),
            "{part:?}"
        );
        let sender = StampedFrames::load(&object, &ends, client, "up0")?;
        let frame = sender.example()?;
        let stamp = stamp_of(&frame);
        assert!(stamp.is_some_and(|stamp| (stamp.flow, stamp.sequence) == (0, 0)), "{frame:?}");
        let far = StampedSink::attach(&object, server, "up0")?;
        let stream = FrameStream { sender: &sender, sink: Some(&far) };
        // The example has had the first number.
        for pace in [Pace::AsFastAsPossible, Pace::Open { per_second: 20_000.0, gaps: Gaps::Even }] {
            let outcome = stream.run(pace, Until::Count(10_000))?;
            assert_eq!((outcome.sent, outcome.answered, outcome.lost), (10_000, 10_000, 0), "{pace:?}");
            assert_eq!((outcome.duplicated, outcome.reordered), (0, 0));
            assert_eq!((outcome.latency.len(), outcome.octets), (10_000, 10_000 * octets));
            assert!(outcome.latency.value_at_quantile(0.5) < 1_000_000_000);
        }
        drop(far);
        // There and back: the responder at the server, and the sink at the client.
        let _responder = XdpResponder::attach(&object, (server, "up0"), None)?;
        let near = StampedSink::attach(&object, client, "up0")?;
        let outcome = FrameStream { sender: &sender, sink: Some(&near) }
            .run(Pace::AsFastAsPossible, Until::Count(5_000))?;
        assert_eq!((outcome.sent, outcome.answered, outcome.lost), (5_000, 5_000, 0));
    }
    // It answers what the kernel's own programs send, too, for any address: checksums are right.
    let _responder = XdpResponder::attach(&object, (server, "up0"), Some((client, "up0")))?;
    for (from, target, octets) in [(From::Native, "2001:db8:77::1", 104), (From::Ipv4, "198.51.100.77", 84)] {
        let target: IpAddr = target.parse().map_err(|_| Failure::Unexpected(target.to_owned()))?;
        if target.is_ipv6() {
            network.route("client", "2001:db8:77::/64 via 2001:db8::2")?;
        }
        let sweep = EchoSweep { from, flows: vec![vec![target]], each: 5, octets };
        whole(&client.enter(|| sweep.run(CLOSED, Until::Done))??, 5);
    }
    Ok(())
}

/// 3,000 connections, the last ones from other addresses.
fn connections() -> Result<()> {
    let network = two_hosts()?;
    let (client, server) = (network.host("client")?, network.host("server")?);
    let object = compile_connections(network.folder())?;
    let frames = FrameEnds {
        to: link_address(server, "up0")?,
        source: IpAddr::from([203, 0, 0, 0]),
        destination: IpAddr::from([198, 51, 100, 5]),
        port: 7_000,
        flows: 3_000,
        octets: 0,
    };
    let ends = ConnectionEnds {
        frames,
        client: (client, "up0"),
        server: (server, "up0"),
        others: Vec::new(),
        core: None,
    };
    let connected = ConnectionFrames::load(&object, &ends)?.run(20_000.0)?;
    whole(&connected.outcome, 3_000);
    assert_eq!((connected.open, connected.outcome.setup.len()), (3_000, 3_000));
    assert_eq!((connected.resets, connected.from_elsewhere), (0, 0));
    assert!(connected.syns >= 3_000 && connected.opening < connected.outcome.took, "{connected:?}");
    Ok(())
}

/// A router that writes another source, and forgets it when all connections are open: what goes on by another one is not a connection of the server's.
fn elsewhere() -> Result<()> {
    let network = Network::new(&["client", "router", "server"])?;
    network.link(("client", "up0"), ("router", "in0"))?;
    network.link(("router", "out0"), ("server", "up0"))?;
    for (host, link, address) in [
        ("client", "up0", "192.0.2.2/24"),
        ("router", "in0", "192.0.2.1/24"),
        ("router", "out0", "203.0.113.1/24"),
        ("server", "up0", "203.0.113.2/24"),
    ] {
        network.address(host, link, address)?;
    }
    network.forwards("router")?;
    let [client, router, server] = ["client", "router", "server"].map(|host| network.host(host));
    let (client, router, server) = (client?, router?, server?);
    let source = |last: u8| -> Result<()> {
        let mut nft = command("nft")?;
        nft.arg(format!(
            "table ip other {{}}; delete table ip other; table ip other {{
                chain out {{ type filter hook postrouting priority 300; oifname out0 ip saddr set 203.0.113.{last}; }}
                chain back {{ type filter hook prerouting priority -300; iifname out0 ip daddr set 192.0.2.2; }}
            }}"
        ));
        router.run(nft, Duration::from_secs(10))?.succeeded()?;
        Ok(())
    };
    source(50)?;
    let object = compile_connections(network.folder())?;
    let ends = ConnectionEnds {
        frames: FrameEnds {
            to: link_address(router, "in0")?,
            source: IpAddr::from([192, 0, 2, 2]),
            destination: IpAddr::from([203, 0, 113, 2]),
            port: 7_000,
            flows: 100,
            octets: 0,
        },
        client: (client, "up0"),
        server: (server, "up0"),
        others: vec![(router, "in0"), (router, "out0")],
        core: None,
    };
    let stays = ConnectionFrames::load(&object, &ends)?.run(5_000.0)?;
    assert_eq!((stays.open, stays.outcome.answered, stays.from_elsewhere), (100, 100, 0), "{stays:?}");
    let moves = ConnectionFrames::load(&object, &ends)?.run_with(5_000.0, || source(51))?;
    assert_eq!((moves.open, moves.outcome.answered, moves.outcome.lost), (100, 0, 100), "{moves:?}");
    assert_eq!(moves.from_elsewhere, 200, "{moves:?}");
    Ok(())
}

fn receiving_threads() -> Result<()> {
    let network = client_router_server()?;
    for host in ["client", "server"] {
        let mut ethtool = command("ethtool")?;
        ethtool.args(["-K", "up0", "tx", "off"]);
        network.host(host)?.run(ethtool, Duration::from_secs(10))?.succeeded()?;
    }
    let threads = ReceivingThreads::start(&network, "gateway", &["in0", "out0"], None)?;
    let before = threads.cpu()?;
    let stream = UdpStream {
        ends: ends(&network)?,
        source: address("[::]:0"),
        target: address("[2001:db8:2::2]:7000"),
        listens: address("[::]:7000"),
        flows: 1,
        payload: 16,
        trip: Trip::Round,
    };
    let outcome = stream.run(Pace::Open { per_second: 10_000.0, gaps: Gaps::Even }, Until::Count(5_000))?;
    assert_eq!(outcome.lost, 0);
    let spent = threads.cpu()?.saturating_sub(before);
    // Both ways; a packet costs a microsecond or so, and more if each wakes its thread.
    assert!(spent > Duration::from_micros(2_000) && spent < outcome.took, "{spent:?}");
    Ok(())
}
