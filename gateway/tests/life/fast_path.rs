//! The fast path, from a gateway's start to its end, a sudden one and a takeover among them.

use super::network::{Network, Running, SIXWAY};
use super::shared_pool::{Answering, ECHO};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a gateway says that may have no fast path, here or as it was built. Whatever else it says is a fault.
const CANNOT: [&str; 2] = ["not permitted", "built without eBPF"];

/// A network, and a configuration with echo requests that are forwarded in the kernel; where it cannot be, the test is ignored.
pub(crate) fn build() -> (Network, String) {
    let network = Network::build();
    let text = format!(
        "[siit]\nprefix = \"2001:db8:64::/96\"\neam = [{{ ipv4 = \"198.51.100.1\", ipv6 = \"2001:db8:1::2\" }}]\n\
         [fastpath]\nmode = \"tc\"\npin_path = {:?}\n",
        network.pin_path()
    );
    let mut probe = network.start(&text);
    let said = probe.said();
    if !said.contains("ready in") {
        assert!(CANNOT.iter().any(|why| said.contains(why)), "no fast path: {said}");
        sixway_trial::ignore(format!("no fast path: {}", said.trim()));
    }
    probe.signal("TERM");
    assert_eq!(probe.end(), 0, "{}", probe.said());
    (network, text)
}

/// The same fast path, for another mechanism.
pub(crate) fn instead_of_siit(text: &str, mechanism: &str) -> String {
    format!("{mechanism}[fastpath]{}", text.split_once("[fastpath]").unwrap().1)
}

/// What the fast path has carried, as it is shown.
fn carried(network: &Network) -> u64 {
    let row: serde_json::Value = serde_json::from_str(&network.show(&["fastpath", "--json"])).unwrap();
    let siit = row["carried"].as_array().unwrap().iter().find(|row| row["mechanism"] == "siit").unwrap();
    siit["packets_out"].as_u64().unwrap() + siit["packets_in"].as_u64().unwrap()
}

pub(crate) fn wait_until(what: &str, done: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A site whose tunnels end at the address of an interface.
const SITE: &str = "[six_to_four]\nrole = \"router\"\ninterface = \"out0\"\nrelay = \"203.0.113.2\"\n";
const TARGET: &str = "2001:db8:64::203.0.113.2";

#[test]
fn it_is_told_at_the_start_and_shown_and_nothing_is_left_of_it() {
    let (network, text) = build();
    assert_eq!(network.pinned(), [] as [String; 0], "after the end of another one");
    let mut gateway = network.start(&text);
    let said = gateway.said();
    assert!(said.contains("fast path     in0 tc") && said.contains(" · out0 tc"), "{said}");
    assert!(network.pinned().iter().any(|name| name == "flows"), "{:?}", network.pinned());
    network.ping(TARGET);
    network.ping(TARGET);
    assert!(carried(&network) >= 6, "{}", network.show(&["fastpath"]));
    let counters: serde_json::Value = serde_json::from_str(&network.show(&["counters", "--json"])).unwrap();
    let row =
        |name: &str| counters.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert!(row("fastpath.siit.out")["value"].as_u64() > Some(0), "{counters}");
    assert_eq!(row("fastpath.lost")["value"], 0);
    wait_until("the share is shown", || {
        network.ping(TARGET);
        let summary = network.show(&[]);
        summary.contains("fast path ") && !summary.contains("idle") && !summary.contains("fast path 0 %")
    });
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!(network.pinned(), [] as [String; 0]);
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn the_kernel_goes_on_when_the_process_was_killed_and_the_next_one_takes_it_up() {
    let (network, text) = build();
    let mut first = network.start(&text);
    network.ping(TARGET);
    first.signal("KILL");
    first.end();
    assert!(network.has_device(), "it outlives the process");
    network.ping(TARGET);

    let second = network.start(&text);
    assert!(second.said().contains("continuing with the device and programs"), "{}", second.said());
    network.ping(TARGET);
    let mut third = network.start_with(&text, &["--takeover"]);
    network.ping(TARGET);
    assert!(carried(&network) > 0);
    third.signal("HUP");
    std::thread::sleep(Duration::from_millis(100));
    network.ping(TARGET);
    wait_until("it is there again", || third.said().matches("ready in").count() == 2);
    third.signal("TERM");
    assert_eq!(third.end(), 0, "{}", third.said());
    assert_eq!(network.pinned(), [] as [String; 0]);
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn it_can_be_switched_off_with_and_without_a_gateway() {
    let (network, text) = build();
    let off = || {
        let output = Command::new(SIXWAY)
            .args(["fastpath", "off", "--name"])
            .arg(network.state().file_stem().unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let gateway = network.start(&text);
    network.ping(TARGET);
    assert!(off().contains("the engine forwards all packets"));
    assert_eq!(network.pinned(), [] as [String; 0]);
    network.ping(TARGET);
    let shown = network.show(&[]);
    assert!(shown.contains("fast path off"), "{shown}");
    assert!(shown.starts_with("WARNING  the fast path was removed → "), "{shown}");
    assert!(off().contains("no fast path was found"));
    gateway.signal("TERM");
    drop(gateway);

    let mut killed = network.start(&text);
    killed.signal("KILL");
    killed.end();
    assert!(off().contains("nothing forwards packets"));
    assert_eq!(network.pinned(), [] as [String; 0]);
    network.on("gateway", SIXWAY, &["cleanup"]);
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn who_may_not_remove_it_is_told_who_may() {
    let (network, text) = build();
    let _gateway = network.start(&text);
    let name = network.state().file_stem().unwrap().to_str().unwrap().to_owned();
    for one in [&["fastpath", "off", "--name", &name][..], &["fastpath", "off"]] {
        let output = super::as_nobody(&network, one);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{one:?}: {error}");
        assert!(error.contains("root is required: sudo sixway fastpath off"), "{one:?}: {error}");
    }
    network.ping(TARGET);
    assert!(network.pinned().iter().any(|name| name == "flows"), "{:?}", network.pinned());
}

/// Thirty questions to port 7 from one port, one after another.
const TALK: &str = "import socket, sys\n\
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:\n  \
      one.settimeout(5); one.connect((sys.argv[1], 7))\n  \
      for _ in range(30): one.send(b'?'); one.recv(9)\n";

/// A NAT64 that has a session, forwarded at tc.
pub(crate) fn carries_a_session(network: &Network, text: &str) -> Running {
    let _far = Answering::on(network, "server", ECHO);
    let gateway = network.start(&instead_of_siit(text, super::NAT64));
    let talked = network.on("client", "python3", &["-c", TALK, "64:ff9b::203.0.113.2"]);
    assert!(talked.status.success(), "{talked:?}");
    wait_until("the fast path carries it", || network.show(&["sessions"]).contains("fast (tc)"));
    gateway
}

#[test]
fn sessions_are_the_engines_while_the_fast_path_rests() {
    let (network, text) = build();
    let mut gateway = carries_a_session(&network, &text);
    let path = |path: &str| network.show(&["sessions"]).contains(path);
    let policy = |what: &str| {
        let of = "src 198.51.100.0/24 dst 203.0.113.0/24 dir fwd";
        let arguments: Vec<&str> = ["xfrm", "policy", what].into_iter().chain(of.split(' ')).collect();
        network.on("gateway", "ip", &arguments).status.success()
    };
    // Not every kernel has IPsec.
    if policy("add") {
        wait_until("the engine carries it", || path("engine") && !path("fast"));
        assert!(policy("delete"));
        wait_until("the fast path carries it again", || path("fast (tc)"));
    }
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn without_the_section_nothing_outlives_the_next_gateway() {
    let (network, text) = build();
    let mut first = network.start(&text);
    first.signal("KILL");
    first.end();
    let (siit, _) = text.split_once("[fastpath]").unwrap();
    let mut second = network.start(siit);
    assert_eq!(network.pinned(), [] as [String; 0]);
    network.ping(TARGET);
    second.signal("KILL");
    second.end();
    network.on("gateway", SIXWAY, &["cleanup"]);
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn programs_that_could_not_be_exchanged_are_tried_again_until_they_are() {
    let (network, text) = build();
    let mut gateway = network.start(&text);
    let away = network.pin_path().join("away");
    std::fs::rename(network.pins(), &away).unwrap();
    // Another interface is another program, which does not find its maps.
    let host = network.host("gateway");
    network.ip(&["-n", &host, "link", "add", "in1", "type", "veth", "peer", "name", "end1"]);
    for end in ["in1", "end1"] {
        network.ip(&["-n", &host, "link", "set", end, "up"]);
    }
    let told = "changing the fast path failed: it keeps its previous rules until a retry succeeds";
    wait_until("the failure is told", || gateway.said().contains(told));
    network.ping(TARGET);
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!gateway.said().contains("fast path restored"), "{}", gateway.said());
    std::fs::rename(&away, network.pins()).unwrap();
    wait_until("it is tried again", || gateway.said().contains("fast path restored"));
    let said = gateway.said();
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert!(said.contains("in1 tc"), "{said}");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!(network.pinned(), [] as [String; 0]);
}

#[test]
fn tunnels_follow_an_address_without_waiting_for_programs_which_follow_even_if_they_fail_at_first() {
    let (network, text) = build();
    let mut gateway = network.start(&instead_of_siit(&text, SITE));
    let host = network.host("gateway");
    let renumber = |from: &str, to: &str| {
        network.ip(&["-n", &host, "addr", "del", from, "dev", "out0"]);
        network.ip(&["-n", &host, "addr", "add", to, "dev", "out0"]);
    };
    let at = |what: &str| gateway.said().rfind(what);
    let (tunnels, programs) = ("local tunnel addresses: 203.0.113.9", "fast path attached: in0 tc");
    renumber("203.0.113.1/24", "203.0.113.9/24");
    wait_until("the tunnels follow, then the programs", || {
        at(tunnels).is_some_and(|follow| at(programs).is_some_and(|exchanged| follow < exchanged))
    });

    let away = network.pin_path().join("away");
    std::fs::rename(network.pins(), &away).unwrap();
    renumber("203.0.113.9/24", "203.0.113.7/24");
    let told = "changing the fast path failed: it passes all packets to the engine until a retry succeeds";
    wait_until("the failure is told", || gateway.said().contains(told));
    wait_until("the tunnels follow", || gateway.said().contains("local tunnel addresses: 203.0.113.7"));
    std::fs::rename(&away, network.pins()).unwrap();
    wait_until("it is tried again", || gateway.said().contains("fast path restored"));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

/// The longest time without an answer to echo requests that the engine carries, one each 10 ms, while `work` is done.
fn silence(network: &Network, work: impl FnOnce()) -> Duration {
    let answers = network.directory.join("answers");
    let client = network.host("client");
    let mut ping = Command::new("ip")
        .args([
            "netns",
            "exec",
            &client,
            "ping",
            "-D",
            "-n",
            "-i",
            "0.01",
            "-w",
            "60",
            "64:ff9b::203.0.113.2",
        ])
        .stdout(std::fs::File::create(&answers).unwrap())
        .spawn()
        .unwrap();
    let times = || -> Vec<f64> {
        let text = std::fs::read_to_string(&answers).unwrap();
        let time = |line: &str| line.strip_prefix('[')?.split_once(']')?.0.parse().ok();
        text.lines().filter_map(time).collect()
    };
    wait_until("answers come before", || times().len() > 10);
    work();
    let there = times().len();
    wait_until("answers come after", || times().len() > there + 10);
    assert!(Command::new("kill").args(["-s", "INT", &ping.id().to_string()]).status().unwrap().success());
    ping.wait().unwrap();
    let times = times();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    Duration::from_secs_f64(longest)
}

/// The best of some: others may keep this machine busy.
fn assert_short(what: &str, mut once: impl FnMut() -> Duration) {
    let mut silences = Vec::new();
    for _ in 0..5 {
        silences.push(once());
        if silences.last() < Some(&Duration::from_millis(500)) {
            return;
        }
    }
    panic!("{what}: {silences:?}");
}

#[test]
fn what_the_engine_carries_does_not_wait_for_the_programs_of_who_takes_over() {
    let (network, text) = build();
    // Rules of several kinds and both programs: the kernel has something to go through.
    let siit = text.split_once("[fastpath]").unwrap().0;
    let mechanisms = format!("{}{siit}{SITE}", super::NAT64);
    let text = instead_of_siit(&text, &mechanisms).replace("\"tc\"", "\"xdp\"");
    let mut running = network.start(&text);
    // The neighbours are known from here on.
    network.ping("64:ff9b::203.0.113.2");
    assert_short("a takeover", || silence(&network, || running = network.start_with(&text, &["--takeover"])));
    assert!(running.said().contains("continue"), "{}", running.said());
    assert_short("a reload", || {
        silence(&network, || {
            let before = running.said().matches("ready in").count();
            running.signal("HUP");
            wait_until("it is there again", || running.said().matches("ready in").count() > before);
        })
    });
    assert!(!network.pinned().iter().any(|name| name.starts_with("ahead")), "{:?}", network.pinned());
    running.signal("TERM");
    assert_eq!(running.end(), 0, "{}", running.said());
}

#[test]
fn one_that_reloads_hears_that_it_is_to_end_whenever_it_is_told() {
    let (network, text) = build();
    for after in [None, Some(0), Some(5), Some(10), Some(20), Some(40), Some(80)] {
        let mut gateway = network.start(&text);
        gateway.signal("HUP");
        if let Some(milliseconds) = after {
            // The process is about to become another.
            wait_until("it reloads", || gateway.said().contains("SIGHUP: reloading"));
            std::thread::sleep(Duration::from_millis(milliseconds));
        }
        gateway.signal("TERM");
        assert_eq!(gateway.end(), 0, "{after:?}: {}", gateway.said());
        assert_eq!(network.pinned(), [] as [String; 0], "{after:?}: {}", gateway.said());
        assert!(!network.has_device() && !network.state().exists(), "{after:?}: {}", gateway.said());
    }
}

#[test]
fn who_is_to_take_over_and_is_told_to_end_disturbs_nothing() {
    let (network, text) = build();
    let gateway = network.start(&text);
    network.ping(TARGET);
    let mut other = network.begin_with(&text, &["--takeover"]);
    // From then on it loads programs, for a second or so.
    wait_until("it listens", || other.listens());
    other.signal("INT");
    assert_eq!(other.end(), 0, "{}", other.said());
    assert!(other.said().contains("the running gateway is unchanged"), "{}", other.said());
    network.ping(TARGET);
    assert!(network.has_device() && network.pinned().iter().any(|name| name == "flows"));
    drop(gateway);
}

#[test]
fn nothing_is_carried_past_the_rules_of_what_an_interface_has_become_a_part_of() {
    let (network, text) = build();
    let mut gateway = carries_a_session(&network, &text);
    let path = |path: &str| network.show(&["sessions"]).contains(path);
    let on_gateway = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        network.on("gateway", "ip", &arguments).status.success()
    };
    if !(on_gateway("link add over0 type vrf table 100") || on_gateway("link add over0 type bridge")) {
        sixway_trial::ignore("needs a kernel with VRFs or bridges");
    }
    assert!(on_gateway("link set in0 master over0"));
    wait_until("nothing is carried", || path("engine") && !path("fast"));
    wait_until("it hangs there no more", || {
        let shown = network.show(&["fastpath"]);
        !shown.contains("in0 tc") && shown.contains("out0 tc")
    });
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}
