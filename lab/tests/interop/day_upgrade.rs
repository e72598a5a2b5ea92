//! A running site is upgraded: connections that are open go on.

use crate::Interop;
use crate::day_network::{
    FAR4, FAR6, FAR64, FIRST, HOST4, aims, comes_from, endpoint, follows, home, log, measured, provider4,
    solicit,
};
use crate::day_prober::Prober;
use crate::day_stream::{Echo, Stream};
use crate::site_network::tables;
use nix::sys::signal::Signal;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::programs;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_day_in_which_a_running_site_is_upgraded_and_open_connections_go_on",
        &["sixway", "nft", "dnsmasq", "busybox"],
        || upgraded(&[]),
    ),
    Interop::new(
        "a_day_in_which_a_running_site_with_a_fast_path_is_upgraded_and_open_connections_go_on",
        &["sixway", "nft", "dnsmasq", "busybox"],
        || upgraded(&["--fast-path"]),
    ),
];

/// A build of its own: another file with other octets.
fn build(network: &Network, name: &str) -> Result<PathBuf> {
    let mut program = sixway().and_then(|path| std::fs::read(path).asking(|| "reading sixway".to_owned()))?;
    program.extend(name.as_bytes());
    // As packages do: a file that runs is replaced and not written.
    let (aside, path) = (network.folder().join("sixway.new"), network.folder().join("sixway"));
    std::fs::write(&aside, program).asking(|| "writing another build".to_owned())?;
    programs::make_executable(&aside)?;
    std::fs::rename(&aside, &path).asking(|| "replacing the program".to_owned())?;
    Ok(path)
}

fn all_go_on(streams: &[Stream; 3], what: &str) -> Result<()> {
    for stream in streams {
        let stood = stream.goes_on()?;
        measured(&format!("{what}: {} stood still for", stream.name()), stood);
        assert!(stood < Duration::from_secs(8), "{what}: {} stood still for {stood:?}", stream.name());
    }
    Ok(())
}

fn dnsmasqs(network: &Network) -> usize {
    let file = format!("/run/sixway/{}.dnsmasq", network.gateway_name("gateway"));
    sixway_lab::host_state::processes_with(&file).len()
}

fn configuration(network: &Network) -> Result<String> {
    let path = format!("/run/sixway/{}.toml", network.gateway_name("gateway"));
    std::fs::read_to_string(path).asking(|| "reading the configuration".to_owned())
}

/// The host gives the translators' ports to its own connections: no gateway starts next to that.
const MASQUERADE: &str = "table ip whole {
  chain leaving {
    type nat hook postrouting priority srcnat
    oifname out0 masquerade
  }
}
";

/// A takeover that does not come about changes nothing of the running site.
fn refused(network: &Network, program: &Path, options: &[&str]) -> Result<()> {
    let (gateway, before) = (network.host("gateway")?, configuration(network)?);
    let rules = network.file("masquerade.nft", MASQUERADE)?;
    let nft = |words: &[&str]| -> Result<()> {
        let mut nft = command("nft")?;
        nft.args(words);
        gateway.run(nft, Duration::from_secs(5))?.succeeded().map(drop)
    };
    nft(&["-f", &rules.display().to_string()])?;
    let mut up = Command::new(program);
    up.args(["up", "--lan", "in0", "--name", &network.gateway_name("gateway"), "--takeover", "--no-pcp"]);
    up.args(options);
    let ended = gateway.run(up, Duration::from_secs(20))?;
    assert!(!ended.status.success() && ended.stderr.contains("masquerade"), "{}", ended.stderr);
    nft(&["delete", "table", "ip", "whole"])?;
    assert_eq!(configuration(network)?, before);
    Ok(())
}

fn upgraded(options: &[&str]) -> Result<()> {
    let network = home()?;
    let provider = provider4(&network, "203.0.113.10")?;
    let prober = Prober::start(&network, "far", "host", &aims(&[HOST4, "203.0.113.10"]))?;
    FIRST.plug_in(&network)?;
    network.route("server", "192.168.1.0/24 via 203.0.113.10 onlink dev up0")?;
    network.route("server", "2001:db8:1::/64 via fe80::b dev up0")?;
    FIRST.lease4(&network)?;
    FIRST.has_prefix(&network, "2001:db8:1::")?;
    let options = [options, &["--dhcp"]].concat();
    let first = FIRST.up(&network, &build(&network, "one")?, &options)?;
    solicit(&network)?;
    let (host6, _) = follows(&network, "2001:db8:1:")?;
    aims(&[&host6]).into_iter().for_each(|aim| prober.also(aim));
    let _echo = Echo::start(&network, "far", &[endpoint(FAR4)?, endpoint(FAR6)?])?;
    let open = |name, to| Stream::open(&network, "host", name, endpoint(to)?);
    let streams = [open("NAT44", FAR4)?, open("NAT64", FAR64)?, open("native IPv6", FAR6)?];
    all_go_on(&streams, "before")?;
    // In the same process, as a service does.
    streams.iter().for_each(Stream::mark);
    build(&network, "two")?;
    network.with_process(first, |process| process.signal(Signal::SIGHUP))?;
    interrupt::wait_until(Duration::from_secs(20), "the next program", || {
        Ok(log(&network, first)?.matches("ready in").count() == 2)
    })?;
    all_go_on(&streams, "SIGHUP after the file was replaced")?;
    // By another process.
    let third = build(&network, "three")?;
    streams.iter().for_each(Stream::mark);
    refused(&network, &third, &options)?;
    all_go_on(&streams, "a takeover that is refused")?;
    streams.iter().for_each(Stream::mark);
    let second = FIRST.up(&network, &third, &[&options[..], &["--no-pcp", "--takeover"]].concat())?;
    interrupt::wait_until(Duration::from_secs(20), "the end of the first process", || {
        network.with_process(first, |process| process.runs().map(|runs| !runs))?
    })?;
    all_go_on(&streams, "sixway up --takeover")?;
    comes_from(&network, FAR4, "203.0.113.10")?;
    assert_eq!(dnsmasqs(&network), 1, "leases go on");
    let now = configuration(&network)?;
    assert!(!now.contains("[pcp]"), "that of the process that ended: {now}");
    prober.was_kept_out(&network, "host")?;
    drop(streams);
    network.with_process(provider, Process::stop)?;
    let said = FIRST.site(&network, &["down"])?.succeeded()?.stdout;
    let left = tables(&network)?;
    match said.contains("has ended") && !left.contains("sixway") && dnsmasqs(&network) == 0 {
        true if !network.with_process(second, Process::runs)?? => Ok(()),
        _ => Err(Failure::Unexpected(format!("{said}\n{left}"))),
    }
}
