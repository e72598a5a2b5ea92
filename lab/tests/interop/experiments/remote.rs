//! A device or a host on another machine, which is a namespace here: everything but the cable is real.
//!
//! ```text
//! bench (this machine's interfaces)          box (the other machine)
//!   e0 ───────────────────────────────────── r0
//!   e1 ───────────────────────────────────── r1
//! ```

use super::scenes::scene_of;
use super::tiny::{asked, run_asked};
use crate::Interop;
use sixway_lab::device::remote::{Remote, Request};
use sixway_lab::device::{self, Device, MemoryReading, TaskKind};
use sixway_lab::experiment::Tunnel2012;
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::probe::ping;
use sixway_lab::programs::make_executable;
use sixway_lab::results::{Asked, Machine, Verdict, read};
use sixway_lab::topology::Network;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_remote_device_by_script_is_measured", &["ping", "nft"], by_script),
    Interop::new(
        "hosts_on_other_machines_send_and_receive_through_a_tunnel",
        &["sixway", "ping", "iperf3"],
        hosts,
    ),
    Interop::new(
        "a_remote_device_by_ssh_is_one_of_the_boxes_of_a_site",
        &["sixway", "ping", "nft", "tc", "ethtool", "tcpdump"],
        by_ssh,
    ),
    Interop::new("interfaces_given_to_the_lab_come_back", &["ping", "nft"], come_back),
];

/// The machines, and the devices that the other one is.
fn remote() -> Result<(Network, Vec<Remote>)> {
    let machines = Network::new(&["bench", "box"])?;
    machines.link(("bench", "e0"), ("box", "r0"))?;
    machines.link(("bench", "e1"), ("box", "r1"))?;
    machines.address("bench", "e0", "198.51.100.99/24")?;
    machines.address("bench", "e1", "2001:db8:99::1/64")?;
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote/linux.sh");
    let (bench, its) = (machines.host("bench")?.name(), machines.host("box")?.name());
    let text = format!("exec ip netns exec {its} sh {} \"$1\"\n", recipe.display());
    let file = machines.file("recipe.sh", &text)?;
    let request = format!(
        "box=script:{},inside={bench}/e0,outside={bench}/e1,inside-there=r0,outside-there=r1",
        file.display()
    );
    let devices = Remote::of(&Request::parse(&request)?)?;
    Ok((machines, devices))
}

fn by_script() -> Result<()> {
    let (_machines, devices) = remote()?;
    let names: Vec<_> = devices.iter().map(|device| device.card().name).collect();
    assert_eq!(names, ["box", "box-plain"]);
    for (device, task) in devices.iter().zip([TaskKind::Nat44, TaskKind::Forward]) {
        assert_eq!(device.cannot_run(&Machine::here()), None);
        assert!(device.version()?.starts_with("Linux "));
        assert_eq!(device.is_plain(), task == TaskKind::Forward);
        let scene = scene_of(task)?;
        let mut running = device.start(&scene.place, &scene.task)?;
        let before = running.cpu()?;
        let works = |when: &str| {
            for (from, target) in &scene.pings {
                let from = scene.network.host(from)?;
                let what = format!("an answer from {target} {when}");
                interrupt::wait_until(Duration::from_secs(20), &what, || {
                    Ok(ping(from, target, 1, 56, Duration::ZERO).is_ok_and(|answers| answers.answered == 1))
                })?;
            }
            Ok::<_, Failure>(())
        };
        works("at its start")?;
        running.restart()?;
        works("after a restart")?;
        assert!(running.cpu()?.spent >= before.spent);
        assert!(matches!(running.memory()?, MemoryReading::Uncertain(1_000_001.., _)));
        assert!(running.counters()?.iter().any(|(name, _)| name == "r0-rx_dropped"));
        assert!(running.commands()[0].contains("TASK="));
        // It is this machine's clock.
        let offset = running.clock()?;
        let is_near = offset.is_some_and(|it| it.ahead.unsigned_abs() <= 1_000_000_000);
        assert!(is_near && offset.is_some_and(|it| !it.within.is_zero()), "{offset:?}");
        let clock = running.commands().into_iter().find_map(|line| {
            line.strip_prefix("# its clock is ")?.split_once(" ns ahead")?.0.parse::<i64>().ok()
        });
        assert!(clock.is_some_and(|ahead| ahead.abs() < 1_000_000_000), "{:?}", running.commands());
    }
    Ok(())
}

/// What the lab calls in place of ssh: the host is a namespace.
const SSH: &str = "#!/bin/sh
while [ \"$1\" != -- ]; do shift 2; done
shift
namespace=${1#*@}
shift
exec ip netns exec \"$namespace\" sh -c \"$*\"
";

/// The whole lab, with another program first in its path. The device is the NAT in front of Sixway's tunnel: this kernel may have no 6to4.
fn by_ssh() -> Result<()> {
    let (machines, _) = remote()?;
    let ssh = machines.file("ssh", SSH)?;
    make_executable(&ssh)?;
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote/linux.sh");
    let (bench, its) = (machines.host("bench")?.name(), machines.host("box")?.name());
    let request = format!(
        "box=ssh:root@{its},recipe={},inside={bench}/e0,outside={bench}/e1,inside-there=r0,outside-there=r1",
        recipe.display()
    );
    let out = machines.folder().join("results");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut lab = Command::new(env!("CARGO_BIN_EXE_sixway-lab"));
    lab.args([
        "run",
        "gateway-2012",
        "--quick",
        "--repeats",
        "1",
        "--devices",
        "box,box-plain",
        "--remote",
        &request,
    ]);
    lab.args([
        "--set",
        "series=outer,cpu",
        "--set",
        "forms=2",
        "--set",
        "versions=6",
        "--set",
        "background=2",
        "--out",
    ])
    .arg(&out);
    lab.env("PATH", format!("{}:{path}", machines.folder().display()));
    let finished = lab.output().asking(|| "starting the lab".to_owned())?;
    assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
    let samples = read(&out)?.samples;
    let names: Vec<_> = samples.iter().map(|it| (it.cell.series.as_str(), it.cell.device.as_str())).collect();
    assert_eq!(names, [("outer", "box"), ("cpu", "box"), ("cpu", "box-plain")]);
    for sample in &samples {
        let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
        assert!(value("clock-ahead").abs() < 1_000.0 && value("clock-within") > 0.0, "{sample:#?}");
        let [reached, expected] = match sample.cell.series.as_str() {
            "outer" => [[value("answered"), value("nat-address"), value("back")], [5.0; 3]],
            _ => [[value("arrived"), value("background-lost"), 0.0], [value("sent"), 0.0, 0.0]],
        };
        assert_eq!(reached, expected, "{sample:#?}");
    }
    assert!(
        samples[0].commands.iter().any(|line| line.contains("TUNNEL_END=\"192.168.2.1\"")),
        "{samples:#?}"
    );
    let table = std::fs::read_to_string(out.join("data.csv")).unwrap_or_default();
    assert!(table.contains("clock-ahead") && table.contains("clock-within"), "{table}");
    Ok(())
}

fn come_back() -> Result<()> {
    let (machines, devices) = remote()?;
    let bench = machines.host("bench")?;
    let shown = || {
        let addresses = bench.ip("-o address show scope global")?;
        let words = addresses.lines().map(|line| line.split_whitespace().take(4).skip(1).collect::<Vec<_>>());
        let mut all: Vec<_> = words.map(|words| words.join(" ")).collect();
        all.sort();
        Ok::<_, Failure>(all)
    };
    let before = shown()?;
    assert_eq!(before, ["e0 inet 198.51.100.99/24", "e1 inet6 2001:db8:99::1/64"]);
    let scene = scene_of(TaskKind::Forward)?;
    let running = devices[1].start(&scene.place, &scene.task)?;
    assert!(shown()?.is_empty(), "they are in the network");
    drop(running);
    assert_eq!(shown()?, before, "with their addresses");
    let left = machines.host("box")?.ip("-o address show scope global")?;
    assert_eq!(left, "", "nothing is left on the other machine");
    // Without an action that succeeds they come back, too.
    let scene = scene_of(TaskKind::Nat64)?;
    assert!(devices[1].start(&scene.place, &scene.task).is_err(), "it cannot do that");
    assert_eq!(shown()?, before);
    Ok(())
}

/// The sender alone, and then the receiver, too, are on other machines: all three ways carry packets, and nothing is left there.
fn hosts() -> Result<()> {
    let machines = Network::new(&["bench", "one", "two"])?;
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("remote/host-linux.sh");
    let mut requests = Vec::new();
    // One machine has both namespaces, and files in /run by the link's name.
    for (end, link, machine, its) in [("client", "e0", "one", "r0"), ("server", "e1", "two", "r1")] {
        machines.link(("bench", link), (machine, its))?;
        let text =
            format!("exec ip netns exec {} sh {} \"$1\"\n", machines.host(machine)?.name(), recipe.display());
        let file = machines.file(&format!("{end}.sh"), &text)?;
        let bench = machines.host("bench")?.name().to_owned();
        requests.push(format!("{end}=script:{},link={bench}/{link},link-there={its}", file.display()));
    }
    let usual =
        asked(&Tunnel2012, &["sixway"], &[("sizes", "512"), ("series", "hosts-rtt,hosts-tcp,hosts-udp")]);
    let without = run_asked(&Tunnel2012, &device::all(), &usual, None);
    assert!(without.is_err_and(|failure| failure.to_string().contains("--remote-host")), "there is none");
    for remote_hosts in [requests[..1].to_vec(), requests.clone()] {
        let count = remote_hosts.len();
        let results = run_asked(&Tunnel2012, &device::all(), &Asked { remote_hosts, ..usual.clone() }, None)?;
        // A network for each series, one after the other over the same cables.
        assert_eq!(results.samples.len(), 3);
        for sample in &results.samples {
            assert!(sample.failed.is_none() && sample.verdict != Verdict::Failed, "{sample:#?}");
            let value = |name: &str| sample.values.get(name).map_or(f64::NAN, |value| value.value);
            let is_of_times = sample.cell.series == "hosts-rtt";
            assert!(!is_of_times || value("loss") == 0.0, "{sample:#?}");
            for way in ["tunnel", "ipv6", "ipv4"] {
                let usual = if is_of_times { 0.001..1_000.0 } else { 1e5..1e12 };
                assert!(usual.contains(&value(way)), "{way}: {sample:#?}");
            }
            for (end, is_there) in [("client", true), ("server", count > 1)] {
                assert_eq!(!value(&format!("{end}-clock-ahead")).is_nan(), is_there, "{end}: {sample:#?}");
                assert_eq!(value(&format!("{end}-clock-within")) > 0.0, is_there, "{end}: {sample:#?}");
            }
            let there = sample.commands.iter().filter(|line| line.contains(": Linux ")).count();
            assert_eq!(there, count, "{:?}", sample.commands);
        }
        for (link, machine) in [("e0", "one"), ("e1", "two")] {
            assert!(
                machines.host("bench")?.ip("-o link show")?.contains(&format!(" {link}@")),
                "it came back"
            );
            let machine = machines.host(machine)?;
            assert_eq!(machine.ip("-o address show scope global")?, "", "nothing is left there");
            assert_eq!(machine.ip("route show")?, "");
        }
    }
    Ok(())
}
