//! A 6to4 relay is in the fast path next to a NAT44, whose policy rules are by source, and by interface; and so is the NAT44.
//!
//! ```text
//! client ── near (a 6to4 router) ── 192.0.2.0/24 ── gateway (relay, NAT44) ── server, 2001:db8:2::2 and 203.0.113.2
//! inside, 192.168.1.2 ────────────────── lan0 ──────────┘
//! ```

use super::conversation::{Conversation, End};
use super::load::pause;
use crate::Interop;
use crate::counters::counter;
use crate::pools::asked;
use sixway_lab::failure::{Asking as _, Result};
use sixway_lab::fast_path::{Hook, shown};
use sixway_lab::gateway::{run_on_fast_path, run_ready_for, run_sixway_on};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::ping;
use sixway_lab::topology::Network;
use std::io::{Read as _, Write as _};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("tunnels_stay_in_the_fast_path_next_to_nat44_tc", &["sixway", "ping"], || {
        next_to_nat44(Hook::Tc)
    }),
    Interop::new("tunnels_stay_in_the_fast_path_next_to_nat44_xdp", &["sixway", "ping"], || {
        next_to_nat44(Hook::Xdp)
    }),
    Interop::new("connection_tracking_sees_syn_acks_without_notrack_tc", &["sixway", "ping"], || {
        are_tracked(Hook::Tc)
    }),
    Interop::new("connection_tracking_sees_syn_acks_without_notrack_xdp", &["sixway", "ping"], || {
        are_tracked(Hook::Xdp)
    }),
    Interop::new("what_the_packet_filter_drops_of_a_server_stays_out_tc", &["sixway", "ping", "nft"], || {
        are_filtered(Hook::Tc)
    }),
    Interop::new(
        "what_the_packet_filter_drops_of_a_server_stays_out_xdp",
        &["sixway", "ping", "nft"],
        || are_filtered(Hook::Xdp),
    ),
];

const SITE: &str = "[six_to_four]\nrole = \"router\"\naddress = \"192.0.2.8\"\nrelay = \"192.0.2.1\"\n\n\
                    [gateway]\nipv4_address = \"192.0.2.253\"\nipv6_address = \"2001:db8::fd\"\n";

const RELAY: &str = r#"[six_to_four]
role = "relay"
address = "192.0.2.1"

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"

[[pool]]
name = "public"
addresses = ["198.51.100.0/29"]

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"
"#;

const NATIVE: &str = "2001:db8:2::2";
const SERVER: &str = "203.0.113.2";
/// Connections, fewer than may be half-open.
const OPENED: u16 = 2;
/// The pool, as the server routes it.
const POOL: &str = "198.51.100.0/29";
const INSIDE: &str = "192.168.1.2";

fn network() -> Result<Network> {
    let network = Network::new(&["client", "near", "gateway", "server", "inside"])?;
    for (one, other) in [
        (("client", "up0"), ("near", "in0")),
        (("near", "out0"), ("gateway", "in0")),
        (("gateway", "out0"), ("server", "up0")),
        (("inside", "up0"), ("gateway", "lan0")),
    ] {
        network.link(one, other)?;
    }
    for (host, device, address) in [
        ("client", "up0", "2002:c000:208:1::2/64"),
        ("near", "in0", "2002:c000:208:1::1/64"),
        ("near", "out0", "192.0.2.8/24"),
        ("gateway", "in0", "192.0.2.1/24"),
        ("gateway", "out0", "2001:db8:2::1/64"),
        ("gateway", "out0", "203.0.113.1/24"),
        ("gateway", "lan0", "192.168.1.1/24"),
        ("server", "up0", "2001:db8:2::2/64"),
        ("server", "up0", "203.0.113.2/24"),
        ("inside", "up0", "192.168.1.2/24"),
    ] {
        network.address(host, device, address)?;
    }
    network.route("client", "default via 2002:c000:208:1::1")?;
    network.route("inside", "default via 192.168.1.1")?;
    network.route("server", "default via 2001:db8:2::1")?;
    network.route("server", &format!("{POOL} via 203.0.113.1"))?;
    network.forwards("near")?;
    network.forwards("gateway")?;
    Ok(network)
}

fn next_to_nat44(hook: Hook) -> Result<()> {
    for interfaces in ["", "interfaces = [\"lan0\"]\n"] {
        let network = network()?;
        run_sixway_on(&network, "near", SITE)?;
        run_on_fast_path(&network, hook, &format!("{RELAY}{interfaces}"))?;
        let (client, inside) = (network.host("client")?, network.host("inside")?);
        interrupt::wait_until(Duration::from_secs(5), "an answer through the tunnel", || {
            Ok(ping(client, NATIVE, 1, 56, Duration::ZERO)?.answered == 1)
        })?;
        // Programs may be exchanged once, since rules were added.
        pause(3_000)?;
        let before = carried(&network, "6to4")?;
        assert_eq!(ping(client, NATIVE, 200, 56, Duration::from_millis(2))?.answered, 200);
        let by_fast_path = carried(&network, "6to4")? - before;
        assert!(by_fast_path >= 390, "{by_fast_path} of 400 packets: {}", shown(&network)?);
        assert_eq!(ping(inside, SERVER, 20, 56, Duration::from_millis(2))?.answered, 20);
        let translated = counter(&network, "nat44.to_outside")? + carried(&network, "nat44")?;
        assert!(translated >= 20, "{translated} packets were translated, here or in the fast path");
        opens(&network)?;
        talks(&network)?;
    }
    Ok(())
}

/// Opens a connection whose first SYN/ACK is lost: the server has the same kernel, and answers the first SYN before its entry is made.
fn open_late(network: &Network, port: u16) -> Result<Conversation> {
    let (inside, server) = (network.host("inside")?, network.host("server")?);
    server.ip(&format!("route replace blackhole {POOL}"))?;
    std::thread::scope(|scope| {
        let mended = scope.spawn(|| {
            pause(300)?;
            server.ip(&format!("route replace {POOL} via 203.0.113.1"))
        });
        let opened = Conversation::open(inside, SERVER, server, SERVER, port);
        mended.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        opened
    })
}

/// Of each connection that opens from inside, the SYN/ACK that the client gets goes by the fast path, and the engine knows that it is
/// established.
fn opens(network: &Network) -> Result<()> {
    let before = carried(network, "nat44")?;
    let opened: Vec<_> =
        (0..OPENED).map(|number| open_late(network, 9_100 + number)).collect::<Result<_>>()?;
    let by_fast_path = carried(network, "nat44")? - before;
    assert_eq!(by_fast_path, u64::from(OPENED), "one packet of each connection: {}", shown(network)?);
    let rows = asked(network, &["show", "sessions", "--json", "--inside", INSIDE])?.succeeded()?.stdout;
    let rows: serde_json::Value = serde_json::from_str(&rows).asking(|| "reading the sessions".to_owned())?;
    let sessions: Vec<_> = rows["rows"].as_array().into_iter().flatten().collect();
    let is_open = |row: &&&serde_json::Value| {
        // The client has sent its SYN twice.
        row["state"] == "established" && row["packets_out"] == 3 && row["packets_in"] == 1
    };
    assert_eq!(sessions.iter().filter(is_open).count(), usize::from(OPENED), "{sessions:?}");
    opened.into_iter().try_for_each(|conversation| conversation.end(End::Server))
}

/// The gateway translates, and has looked whether connection tracking leaves SYN/ACKs alone, which it does each second.
fn settles(network: &Network) -> Result<()> {
    let inside = network.host("inside")?;
    interrupt::wait_until(Duration::from_secs(5), "an answer through the NAT", || {
        Ok(ping(inside, SERVER, 1, 56, Duration::ZERO)?.answered == 1)
    })?;
    pause(2_000)
}

/// The host's packet filter drops what the server sends: the connection opens, and whatever the client does, no data come through it.
fn are_filtered(hook: Hook) -> Result<()> {
    let network = network()?;
    run_on_fast_path(&network, hook, RELAY)?;
    let (inside, server, gateway) =
        (network.host("inside")?, network.host("server")?, network.host("gateway")?);
    settles(&network)?;
    let rules = format!(
        "table inet filter {{ chain forward {{ type filter hook forward priority 0; ip saddr {SERVER} counter drop; }}; }}"
    );
    let mut nft = command("nft")?;
    nft.arg("-f").arg(network.file("filter.nft", &rules)?);
    gateway.run(nft, Duration::from_secs(5))?.succeeded()?;
    let Conversation { mut client, mut server } = Conversation::open(inside, SERVER, server, SERVER, 9_200)?;
    client.set_nodelay(true).asking(|| "TCP_NODELAY".to_owned())?;
    client
        .set_read_timeout(Some(Duration::from_millis(1_500)))
        .asking(|| "setting a time limit".to_owned())?;
    let wrote = server.write_all(b"from the server");
    assert!(wrote.is_ok(), "{wrote:?}");
    for _ in 0..100 {
        client.write_all(b"from the client").asking(|| "writing".to_owned())?;
        pause(2)?;
    }
    let read = client.read(&mut [0; 100]);
    assert!(read.is_err(), "{read:?}: {}", shown(&network)?);
    let rows = asked(&network, &["show", "sessions", "--json", "--inside", INSIDE])?.succeeded()?.stdout;
    assert!(rows.contains("established") && !rows.contains("\"offloaded\":true"), "{rows}");
    Ok(())
}

/// With `notrack = false` connection tracking sees each SYN/ACK.
fn are_tracked(hook: Hook) -> Result<()> {
    let network = network()?;
    run_ready_for(&network, hook, &format!("{RELAY}{}notrack = false\n", hook.section()))?;
    settles(&network)?;
    let before = carried(&network, "nat44")?;
    let conversation = open_late(&network, 9_300)?;
    assert_eq!(carried(&network, "nat44")?, before, "{}", shown(&network)?);
    conversation.end(End::Client)
}

/// TCP from inside moves to the fast path.
fn talks(network: &Network) -> Result<()> {
    let (inside, server) = (network.host("inside")?, network.host("server")?);
    let conversation = Conversation::open(inside, SERVER, server, SERVER, 9_000)?;
    conversation.chat(10)?;
    pause(1_200)?;
    conversation.chat(2)?;
    let before = carried(network, "nat44")?;
    conversation.exchange(1_000_000)?;
    let by_fast_path = carried(network, "nat44")? - before;
    assert!(by_fast_path > 1_000, "{by_fast_path} packets of 2 MB: {}", shown(network)?);
    conversation.end(End::Client)
}

/// Packets of this mechanism in the fast path.
/// Packets of a mechanism that the fast path has carried, both ways.
pub fn carried(network: &Network, mechanism: &str) -> Result<u64> {
    let shown = shown(network)?;
    let rows = shown["carried"].as_array().into_iter().flatten();
    let rows = rows.filter(|row| row["mechanism"] == mechanism);
    Ok(rows.flat_map(|row| ["packets_out", "packets_in"].map(|way| row[way].as_u64().unwrap_or(0))).sum())
}
