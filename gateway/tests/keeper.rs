//! The thread that keeps the programs' view of the host, in a network namespace of its own, with maps that only remember.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

#[macro_use]
extern crate sixway_trial;

use nix::sched::{CloneFlags, unshare};
use sixway::fast_path::{Attached, Facts, Keeper, Maps, UsedHop};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Remembering {
    beats: AtomicUsize,
    bumps: AtomicUsize,
    freed: AtomicUsize,
    used: Mutex<Vec<UsedHop>>,
}

impl Maps for Remembering {
    fn beat(&self) {
        self.beats.fetch_add(1, Relaxed);
    }

    fn bump(&self) {
        self.bumps.fetch_add(1, Relaxed);
    }

    fn in_use(&self) -> Vec<UsedHop> {
        self.used.lock().unwrap().clone()
    }

    fn free(&self, _: Duration) {
        self.freed.fetch_add(1, Relaxed);
    }
}

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether `ip` can do this here.
fn can(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().unwrap().status.success()
}

fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap()
}

/// A host with two wires that are joined, a0 and b0; the body gets the thread's other end and its maps.
fn on_a_host(body: fn(Host)) {
    let thread = std::thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() || Command::new("ip").arg("-V").output().is_err() {
            sixway_trial::ignore("needs root and ip");
        }
        ip("link set lo up");
        // The kernel does nothing by itself: no link-local addresses, and no duplicate address detection.
        for (setting, value) in [("addr_gen_mode", "1"), ("accept_dad", "0")] {
            std::fs::write(format!("/proc/sys/net/ipv6/conf/default/{setting}"), value).unwrap();
        }
        ip("link add a0 type veth peer name b0");
        ip("link set a0 up");
        ip("link set b0 up");
        ip("addr add 192.0.2.1/24 dev a0");
        let maps = Arc::new(Remembering::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let keeper = Keeper::start(1, maps.clone()).unwrap();
        let mut host = Host { maps, keeper, runtime, facts: Facts::default() };
        host.settle();
        body(host);
    });
    thread.join().unwrap_or_else(|end| std::panic::resume_unwind(end));
}

struct Host {
    maps: Arc<Remembering>,
    keeper: Keeper,
    runtime: tokio::runtime::Runtime,
    facts: Facts,
}

impl Host {
    /// Waits until no more facts come for a while; they are the facts then.
    fn settle(&mut self) {
        let patience = Duration::from_millis(300);
        while let Ok(Some(facts)) =
            self.runtime.block_on(async { tokio::time::timeout(patience, self.keeper.next()).await })
        {
            self.facts = facts;
        }
    }

    /// Waits until the facts are so, for longer than it takes to look again.
    fn until(&mut self, are_so: impl Fn(&Facts) -> bool) -> bool {
        let start = Instant::now();
        while !are_so(&self.facts) {
            if start.elapsed() > Duration::from_secs(6) {
                return false;
            }
            let patience = Duration::from_millis(100);
            let next = async { tokio::time::timeout(patience, self.keeper.next()).await };
            if let Ok(Some(facts)) = self.runtime.block_on(next) {
                self.facts = facts;
            }
        }
        true
    }

    /// Generations that came within 100 ms after this was done.
    fn bumps(&self, what: impl FnOnce()) -> usize {
        std::thread::sleep(Duration::from_millis(60));
        let before = self.maps.bumps.load(Relaxed);
        what();
        std::thread::sleep(Duration::from_millis(100));
        self.maps.bumps.load(Relaxed) - before
    }
}

#[test]
fn routes_rules_addresses_and_links_begin_a_generation_within_100_ms() {
    on_a_host(|mut host| {
        for change in [
            "route add 198.51.100.0/24 via 192.0.2.2",
            "route del 198.51.100.0/24",
            "-6 route add 2001:db8::/32 dev a0",
            "rule add from 10.0.0.0/8 table 100",
            "rule del from 10.0.0.0/8 table 100",
            "addr add 192.0.2.9/24 dev a0",
            "link set a0 mtu 1400",
        ] {
            assert!(host.bumps(|| drop(ip(change))) > 0, "{change}");
        }
        assert_eq!(host.bumps(|| {}), 0, "nothing happened");
        let flood = host.bumps(|| {
            let lines: String =
                (0..200).map(|n| format!("route add 198.18.{n}.0/24 via 192.0.2.2\n")).collect();
            let file = std::env::temp_dir().join(format!("sixway-flood-{}", std::process::id()));
            std::fs::write(&file, lines).unwrap();
            ip(&format!("-batch {}", file.display()));
            std::fs::remove_file(file).unwrap();
        });
        assert!((1..40).contains(&flood), "{flood} generations for 200 routes");
        host.settle();
        let beats = host.maps.beats.load(Relaxed);
        std::thread::sleep(Duration::from_millis(1_050));
        assert!((4..=7).contains(&(host.maps.beats.load(Relaxed) - beats)));
    });
}

#[test]
fn facts_follow_links_vlans_rules_and_routes() {
    on_a_host(|mut host| {
        let (a, b) = (index("a0"), index("b0"));
        let devices = |host: &Host| host.facts.devices.keys().copied().collect::<Vec<_>>();
        let mut both = vec![a, b];
        both.sort_unstable();
        assert_eq!(devices(&host), both);
        assert_eq!((host.facts.ports.len(), &host.facts.not_plain), (0, &None));
        host.keeper.set_attached(vec![Attached { ifindex: a, xdp: true }]);
        host.settle();
        assert_eq!(host.facts.ports.len(), 1);
        let mac = host.facts.ports[0].mac;
        ip("link set a0 address 02:00:00:00:00:aa");
        host.settle();
        assert_ne!(host.facts.ports[0].mac, mac);
        for (make, end, why) in [
            ("rule add tos 10 table 100", "rule del tos 10 table 100", "policy rule"),
            (
                "rule add not from 10.0.0.0/8 table 100",
                "rule del not from 10.0.0.0/8 table 100",
                "policy rule",
            ),
            ("-6 rule add fwmark 1 table 100", "-6 rule del fwmark 1 table 100", "ip -6 rule"),
        ] {
            ip(make);
            host.settle();
            assert!(host.facts.not_plain.as_ref().is_some_and(|said| said.contains(why)), "{:?}", host.facts);
            ip(end);
            host.settle();
            assert_eq!(host.facts.not_plain, None);
        }
        ip("rule add from 10.0.0.0/8 iif a0 table 100");
        ip("-6 rule add from 2001:db8:5::/48 to 2001:db8:6::/48 table 100");
        ip("-6 rule add iif a0 table 100");
        assert!(
            host.until(|facts| facts.sources6 == ["2001:db8:5::/48".parse().unwrap()]),
            "{:?}",
            host.facts
        );
        host.settle();
        assert_eq!(
            (&host.facts.not_plain, &host.facts.sources4[..]),
            (&None, &["10.0.0.0/8".parse().unwrap()][..])
        );
        ip("route add 198.51.100.0/24 nexthop via 192.0.2.2 nexthop via 192.0.2.3");
        host.settle();
        assert!(host.facts.not_plain.as_ref().is_some_and(|said| said.contains("multipath")));
        ip("link set b0 down");
        host.settle();
        assert_eq!(host.facts.devices.get(&b), None);
        std::fs::write("/proc/sys/net/ipv4/conf/a0/rp_filter", "1").unwrap();
        assert!(host.until(|facts| facts.ports[0].strict == 1), "{:?}", host.facts);
    });
}

#[test]
fn facts_follow_vlans() {
    on_a_host(|mut host| {
        let a = index("a0");
        host.keeper.set_attached(vec![Attached { ifindex: a, xdp: true }]);
        if !can("link add link a0 name a5 type vlan id 5") {
            sixway_trial::ignore("needs a kernel with devices of VLANs");
        }
        ip("link set a5 up");
        host.settle();
        let port = host.facts.ports.iter().find(|port| port.ifindex == index("a5")).unwrap();
        assert_eq!((port.below, port.vlan, port.strict), (a, 5, 0));
        assert!(host.facts.devices.contains_key(&index("a5")));
    });
}

/// Facts know of IPsec while `make` holds, and no longer after `end`.
fn follow_ipsec(host: &mut Host, make: &str, end: &str) {
    assert_eq!(host.facts.ipsec, None);
    if !can(&format!("xfrm {make}")) {
        sixway_trial::ignore(format!("needs a kernel with IPsec: ip xfrm {make}"));
    }
    assert!(host.until(|facts| facts.ipsec.is_some()), "{make}");
    ip(&format!("xfrm {end}"));
    assert!(host.until(|facts| facts.ipsec.is_none()), "{end}: {:?}", host.facts.ipsec);
}

#[test]
fn facts_follow_ipsec_policies() {
    on_a_host(|mut host| {
        follow_ipsec(&mut host, "policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir fwd", "policy flush");
    });
}

#[test]
fn facts_follow_ipsec_that_refuses_what_has_no_policy() {
    on_a_host(|mut host| {
        follow_ipsec(&mut host, "policy setdefault fwd block", "policy setdefault fwd accept");
    });
}

#[test]
fn neighbours_in_use_are_asked_and_matter_if_they_change() {
    on_a_host(|host| {
        let state = || ip("neigh show 192.0.2.2 dev a0");
        let set = |mac: &str, state: &str| {
            drop(ip(&format!("neigh replace 192.0.2.2 lladdr {mac} dev a0 nud {state}")))
        };
        let (one, two) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
        assert_eq!(host.bumps(|| set(one, "stale")), 0, "nobody sends to it");
        let address = "192.0.2.2".parse().unwrap();
        let hop = UsedHop { ifindex: index("a0"), address, mac: [2, 0, 0, 0, 0, 1], idle: Duration::ZERO };
        *host.maps.used.lock().unwrap() = vec![hop];
        assert_eq!(host.bumps(|| set(one, "reachable")), 0, "it is as it was");
        assert!(host.bumps(|| set(two, "reachable")) > 0);
        set(one, "stale");
        // It is asked; there is no peer to answer, and that matters.
        let before = host.maps.bumps.load(Relaxed);
        let asked = (0..60).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            state().contains("PROBE")
        });
        assert!(asked, "{}", state());
        let failed = (0..120).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            host.maps.bumps.load(Relaxed) > before
        });
        assert!(failed, "{}", state());
        // One that is permanent is left alone, and what is idle is freed.
        set(one, "permanent");
        *host.maps.used.lock().unwrap() = vec![UsedHop { idle: Duration::from_secs(61), ..hop }];
        std::thread::sleep(Duration::from_millis(2_300));
        assert!(state().contains("PERMANENT") && host.maps.freed.load(Relaxed) > 0);
    });
}

fn main() {
    sixway_trial::main();
}
