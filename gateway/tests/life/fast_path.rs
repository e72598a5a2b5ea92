//! The fast path, from a gateway's start to its end, a sudden one and a takeover among them.

use crate::network::{Network, SIXWAY};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a gateway says that may have no fast path, here or as it was built. Whatever else it says is a fault.
const CANNOT: [&str; 2] = ["not permitted", "built without eBPF"];

/// A network, and a configuration with echo requests that are carried on; `None`: it cannot be here.
fn build() -> Option<(Network, String)> {
    let network = Network::build()?;
    let text = format!(
        "[siit]\nprefix = \"2001:db8:64::/96\"\neam = [{{ ipv4 = \"198.51.100.1\", ipv6 = \"2001:db8:1::2\" }}]\n\
         [fastpath]\nmode = \"tc\"\npin_path = {:?}\n",
        network.pin_path()
    );
    let mut probe = network.start(&text);
    let said = probe.said();
    if !said.contains("ready in") {
        assert!(CANNOT.iter().any(|why| said.contains(why)), "no fast path: {said}");
        // Past the harness, which keeps what succeeding tests print to itself.
        let skipped = format!("\nlife: skipped: no fast path: {said}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes());
        return None;
    }
    probe.signal("TERM");
    assert_eq!(probe.end(), 0, "{}", probe.said());
    Some((network, text))
}

/// What the fast path has carried, as it is shown.
fn carried(network: &Network) -> u64 {
    let row: serde_json::Value = serde_json::from_str(&network.show(&["fastpath", "--json"])).unwrap();
    let siit = row["carried"].as_array().unwrap().iter().find(|row| row["mechanism"] == "siit").unwrap();
    siit["packets_out"].as_u64().unwrap() + siit["packets_in"].as_u64().unwrap()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const TARGET: &str = "2001:db8:64::203.0.113.2";

#[test]
fn it_is_told_at_the_start_and_shown_and_nothing_is_left_of_it() {
    let Some((network, text)) = build() else { return };
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
    let Some((network, text)) = build() else { return };
    let mut first = network.start(&text);
    network.ping(TARGET);
    first.signal("KILL");
    first.end();
    assert!(network.has_device(), "it outlives the process");
    network.ping(TARGET);

    let second = network.start(&text);
    assert!(second.said().contains("goes on"), "{}", second.said());
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
    let Some((network, text)) = build() else { return };
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
    assert!(off().contains("its engine carries everything"));
    assert_eq!(network.pinned(), [] as [String; 0]);
    network.ping(TARGET);
    assert!(network.show(&[]).contains("fast path off"), "{}", network.show(&[]));
    assert!(off().contains("there was no fast path"));
    gateway.signal("TERM");
    drop(gateway);

    let mut killed = network.start(&text);
    killed.signal("KILL");
    killed.end();
    assert!(off().contains("nobody carries packets"));
    assert_eq!(network.pinned(), [] as [String; 0]);
    network.on("gateway", SIXWAY, &["cleanup"]);
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn without_the_section_nothing_outlives_the_next_gateway() {
    let Some((network, text)) = build() else { return };
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
