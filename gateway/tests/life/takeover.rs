//! One process of a gateway makes way for another.

use super::NAT64;
use super::network::{Network, Running};
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The device, by the kernel's number of it, and the routes into it.
fn device(network: &Network) -> (String, Vec<String>) {
    let links = network.ip(&["-n", &network.host("gateway"), "-o", "link", "show", "dev", "sixway0"]);
    let routes = network.routes().into_iter().filter(|route| route.contains("sixway0")).collect();
    (links.split(':').next().unwrap().to_owned(), routes)
}

/// What tells sessions apart, without what grows.
fn sessions(network: &Network) -> Vec<(String, String, String)> {
    let rows: serde_json::Value = serde_json::from_str(&network.show(&["sessions", "--json"])).unwrap();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows["rows"].as_array().unwrap().iter();
    let mut found: Vec<_> =
        rows.map(|row| (text(row, "inside"), text(row, "outside"), text(row, "remote"))).collect();
    found.sort();
    found
}

fn ended_well<T>(network: &Network, gateway: &mut Running, before: &(Vec<String>, T)) {
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device());
    assert_eq!(network.routes(), before.0);
    for extension in ["state", "ports", "handover"] {
        assert!(!network.state().with_extension(extension).exists(), "{extension}");
    }
}

#[test]
fn who_takes_over_goes_on_with_the_device_its_routes_and_every_session() {
    let network = Network::build();
    let before = (network.routes(), network.settings());
    let mut first = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let (was, had) = (device(&network), sessions(&network));
    assert_eq!(had.len(), 1);

    let mut second = network.start_with(NAT64, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert!(first.said().contains("1 session handed over"), "{}", first.said());
    assert!(second.said().contains("1 of 1 session continue"), "{}", second.said());
    assert_eq!((device(&network), sessions(&network)), (was, had));
    network.ping("64:ff9b::203.0.113.2");
    ended_well(&network, &mut second, &before);
    assert_eq!(network.settings(), before.1);
}

#[test]
fn who_takes_over_with_another_configuration_has_its_routes_and_the_sessions_that_it_admits() {
    let network = Network::build();
    let before = (network.routes(), network.settings());
    let mut first = network.start(NAT64);
    network.ping("64:ff9b::203.0.113.2");
    let other = NAT64.replace("192.0.2.0/28", "192.0.2.64/28");
    let mut second = network.start_with(&other, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    let routes = device(&network).1;
    assert!(routes.iter().any(|route| route.starts_with("192.0.2.64/28")), "{routes:?}");
    assert!(!routes.iter().any(|route| route.starts_with("192.0.2.0/28")), "{routes:?}");
    assert_eq!(sessions(&network), []);
    network.ping("64:ff9b::203.0.113.2");
    ended_well(&network, &mut second, &before);
}

#[test]
fn where_nobody_runs_there_is_nothing_to_take_over_and_the_gateway_starts() {
    let network = Network::build();
    let before = (network.routes(), ());
    let mut gateway = network.start_with(NAT64, &["--takeover"]);
    assert!(gateway.said().contains("to take over: starting a new one"), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
    ended_well(&network, &mut gateway, &before);
}

/// A control group of a service, as systemd makes it; removed with this, when nothing is in it.
struct Service(PathBuf);

impl Service {
    /// Moves a process into a new one; where there can be none, the test is ignored.
    fn of(process: u32) -> Self {
        let hierarchies = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup"];
        let hierarchy = hierarchies.into_iter().find(|path| Path::new(path).join("cgroup.procs").exists());
        let Some(hierarchy) = hierarchy else { sixway_trial::ignore("needs control groups") };
        let group = Self(Path::new(hierarchy).join(format!("sixway-{process}.service")));
        if fs::create_dir(&group.0).is_err() {
            sixway_trial::ignore("needs control groups that may be changed");
        }
        fs::write(group.0.join("cgroup.procs"), process.to_string()).unwrap();
        group
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn who_takes_a_service_over_by_hand_says_that_the_service_ends() {
    let network = Network::build();
    let mut first = network.start(NAT64);
    let service = Service::of(first.number());
    let mut second = network.start_with(NAT64, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    let warning = format!("sixway-{}.service ends with the process that is taken over", first.number());
    assert!(second.said().contains(&warning), "{}", second.said());
    drop(service);
    network.ping("64:ff9b::203.0.113.2");
    second.signal("TERM");
    assert_eq!(second.end(), 0, "{}", second.said());
}

/// Does something in a host's network.
fn on<T: Send + 'static>(network: &Network, host: &str, does: impl FnOnce() -> T + Send + 'static) -> T {
    let namespace = fs::File::open(format!("/run/netns/{}", network.host(host))).unwrap();
    let entered = std::thread::spawn(move || {
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        does()
    });
    entered.join().unwrap()
}

/// A DNS server on the host `server`, and how many questions it had.
fn name_server(network: &Network) -> Arc<AtomicUsize> {
    let socket = on(network, "server", || UdpSocket::bind("203.0.113.2:53").unwrap());
    let questions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&questions);
    std::thread::spawn(move || {
        let mut room = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut room) {
            counted.fetch_add(1, Ordering::Relaxed);
            socket.send_to(&crate::dns64::reply(&room[..length]), from).unwrap();
        }
    });
    questions
}

/// The last octets of the answer for the AAAA record of `www.example`.
fn looked_up(network: &Network) -> [u8; 16] {
    on(network, "client", || {
        let client = UdpSocket::bind("[::]:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x1c\0\x01";
        client.send_to(query, "[2001:db8:1::1]:53").unwrap();
        let mut room = [0; 2_048];
        let length = client.recv(&mut room).unwrap();
        *room[..length].last_chunk().unwrap()
    })
}

#[test]
fn a_takeover_and_a_reload_keep_sessions_and_names() {
    let network = Network::build();
    let before = (network.routes(), network.settings());
    let questions = name_server(&network);
    let dns64 = "[dns64]\nlisten = [\"2001:db8:1::1\"]\nupstream = [{ address = \"203.0.113.2\" }]\n";
    let text = format!("{NAT64}{dns64}");
    let mut first = network.start(&text);
    network.ping("64:ff9b::203.0.113.2");
    let made = *b"\0\x64\xff\x9b\0\0\0\0\0\0\0\0\xcb\0\x71\x02";
    assert_eq!(looked_up(&network), made, "{}", first.said());
    let (was, had, asked) = (device(&network), sessions(&network), questions.load(Ordering::Relaxed));
    assert_eq!(had.len(), 1);

    let mut second = network.start_with(&text, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert!(first.said().contains("handed over"), "{}", first.said());
    assert_eq!((device(&network), sessions(&network)), (was.clone(), had.clone()));
    assert_eq!(looked_up(&network), made);
    assert_eq!(questions.load(Ordering::Relaxed), asked, "the cache was handed over: {}", second.said());

    // Only the DNS64 changes: the process, its device and its sessions go on.
    let rule = "[[dns64.rule]]\nnames = [\"other.example\"]\nsynthesis = \"never\"\n";
    network.configure(&format!("{text}{rule}"));
    second.signal("HUP");
    let begun = Instant::now();
    while !second.said().contains("reloaded the DNS64") {
        assert!(begun.elapsed() < Duration::from_secs(5), "{}", second.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(second.said().matches("ready in").count(), 1, "{}", second.said());
    assert_eq!((device(&network), sessions(&network)), (was.clone(), had.clone()));
    // More than that: the process is replaced, with its sessions and the cache.
    let more = text.replace("192.0.2.0/28", "192.0.2.0/27");
    network.configure(&more);
    second.signal("HUP");
    let begun = Instant::now();
    while second.said().matches("ready in").count() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", second.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((looked_up(&network), sessions(&network)), (made, had));
    assert_eq!(questions.load(Ordering::Relaxed), asked, "{}", second.said());
    ended_well(&network, &mut second, &before);
    assert!(!network.state().with_extension("dns64-cache").exists());
}
