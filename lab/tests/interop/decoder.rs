//! An independent decoder looks at every packet on both sides of the gateway: tcpdump finds no checksum wrong.

use crate::Interop;
use crate::datagrams::{arrives, pattern, socket};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::{Hook, demanded};
use sixway_lab::forwarder::{Forwarder, Running};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::probe::{fetch, ping, serve_page};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("tcpdump_finds_every_checksum_right_with_nat64", NEEDS, || {
        checksums_are_right(Forwarder::Nat64)
    }),
    Interop::new("tcpdump_finds_every_checksum_right_with_siit", NEEDS, || {
        checksums_are_right(Forwarder::Siit)
    }),
];

const NEEDS: &[&str] = &["sixway", "tcpdump", "ethtool", "nginx", "curl", "ping"];

fn checksums_are_right(forwarder: Forwarder) -> Result<()> {
    let running = forwarder.start()?;
    let network = &running.network;
    for (host, device) in [("client", "up0"), ("server", "up0")] {
        // What comes by XDP to a veth without GRO is lost; the lab's joins nothing.
        let gro = if demanded() == Some(Hook::Xdp) { "on" } else { "off" };
        // Ends that leave checksums and cutting to a card would show unfinished packets to the decoder.
        let mut ethtool = command("ethtool")?;
        ethtool.args(["-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", gro]);
        network.host(host)?.run(ethtool, Duration::from_secs(5))?.succeeded()?;
    }
    let watched = [("client", "up0"), ("server", "up0")].map(|(host, device)| watch(&running, host, device));
    traffic(&running)?;
    std::thread::sleep(Duration::from_millis(300));
    for watcher in watched {
        let id = watcher?;
        let said = network.with_process(id, |process| {
            process.stop();
            process.stdout()
        })?;
        judge(&said)?;
    }
    Ok(())
}

fn watch(running: &Running, host: &str, device: &str) -> Result<u32> {
    let mut tcpdump = command("tcpdump")?;
    tcpdump.args(["-i", device, "-nvv", "-U", "-l", "--immediate-mode", "-s", "0", "ip6 or ip"]);
    let id = running.network.start(host, tcpdump)?;
    interrupt::wait_until(Duration::from_secs(5), "tcpdump listening", || {
        running.network.with_process(id, |process| {
            process.must_run()?;
            Ok(process.stderr().contains("listening on"))
        })?
    })?;
    Ok(id)
}

fn traffic(running: &Running) -> Result<()> {
    let network = &running.network;
    let client = network.host("client")?;
    ping(client, running.target, 5, 1_000, Duration::from_millis(5))?;
    serve_page(network, "server", running.listens, &"a longer page\n".repeat(4_000))?;
    fetch(network, "client", &format!("http://[{}]/", running.target))?;
    let asking = socket(client, "[::]:4000")?;
    let answering = socket(network.host("server")?, "203.0.113.2:53")?;
    for length in [1, 100, 1_400] {
        let seen = arrives(&asking, &format!("[{}]:53", running.target), &answering, &pattern(length))?;
        arrives(&answering, &seen.to_string(), &asking, &pattern(length))?;
    }
    // A closed port: an ICMP error with a quoted packet comes back.
    let nobody = socket(client, "[::]:4001")?;
    let _ = nobody.send_to(b"anybody?", format!("[{}]:9", running.target));
    Ok(())
}

fn judge(said: &str) -> Result<()> {
    // Quoted packets inside ICMP errors are not judged: they are cut, and tcpdump does not sum them.
    let right = ["(correct)", "[udp sum ok]", "[icmp6 sum ok]"]
        .map(|sign| said.matches(sign).count())
        .iter()
        .sum::<usize>();
    let wrong = ["incorrect", "bad udp cksum", "bad icmp6 cksum", "wrong icmp cksum", "bad cksum"];
    let wrong: Vec<_> = said.lines().filter(|line| wrong.iter().any(|sign| line.contains(sign))).collect();
    if right < 30 || !wrong.is_empty() {
        let first: Vec<_> = wrong.iter().take(5).collect();
        return Err(Failure::Unexpected(format!(
            "{right} checksums right, {} wrong: {first:#?}",
            wrong.len()
        )));
    }
    Ok(())
}
