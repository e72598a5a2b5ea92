//! A gateway's life on a real host, in network namespaces of its own: what it sets up, and that nothing is left of it.
//! These tests want root, `ip` and `ping`; without them they say that they were skipped.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SIXWAY: &str = env!("CARGO_BIN_EXE_sixway");

/// Three hosts, a client, a gateway and a server, that vanish with this.
struct Network {
    suffix: String,
    directory: PathBuf,
}

impl Network {
    /// The network, or why there is none.
    fn build() -> Option<Self> {
        let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let ip = Command::new("ip").arg("-V").output().is_ok();
        if !root || !ip || !PathBuf::from("/dev/net/tun").exists() {
            // Past the harness, which keeps what succeeding tests print to itself.
            let _ = std::io::stderr().write_all(b"\nlife: skipped: needs root, ip and /dev/net/tun\n");
            return None;
        }
        let octets: [u8; 4] = fs::read("/proc/sys/kernel/random/uuid").unwrap()[..4].try_into().unwrap();
        let suffix = format!("{}{}", std::process::id(), String::from_utf8_lossy(&octets));
        let directory = std::env::temp_dir().join(format!("sixway-life-{suffix}"));
        fs::create_dir(&directory).unwrap();
        let network = Self { suffix, directory };
        for host in ["client", "gateway", "server"] {
            network.ip(&["netns", "add", &network.host(host)]);
            network.ip(&["-n", &network.host(host), "link", "set", "lo", "up"]);
        }
        network.wire("client", "in0", ["2001:db8:1::2/64", "2001:db8:1::1/64"]);
        network.wire("server", "out0", ["203.0.113.2/24", "203.0.113.1/24"]);
        network.ip(&["-n", &network.host("client"), "route", "add", "default", "via", "2001:db8:1::1"]);
        network.ip(&["-n", &network.host("server"), "route", "add", "default", "via", "203.0.113.1"]);
        Some(network)
    }

    fn host(&self, name: &str) -> String {
        format!("sixway-{name}-{}", self.suffix)
    }

    /// A wire between a host and the gateway, whose end is called `name`; addresses of the host's and of the gateway's end.
    fn wire(&self, host: &str, name: &str, addresses: [&str; 2]) {
        let (host, gateway) = (self.host(host), self.host("gateway"));
        self.ip(&[
            "-n", &gateway, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", &host,
        ]);
        for ((end, device), address) in [(&host, "eth0"), (&gateway, name)].into_iter().zip(addresses) {
            let mut add = vec!["-n", end.as_str(), "addr", "add", address, "dev", device];
            if address.contains("::") {
                add.push("nodad");
            }
            self.ip(&add);
            self.ip(&["-n", end, "link", "set", device, "up"]);
        }
    }

    fn ip(&self, arguments: &[&str]) -> String {
        let output = Command::new("ip").args(arguments).output().unwrap();
        assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn on(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        let host = self.host(host);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &host, program]).args(arguments).output().unwrap()
    }

    /// The gateway's settings that sixway may change.
    fn settings(&self) -> BTreeMap<String, String> {
        let script = "for f in /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/rp_filter \
                      /proc/sys/net/ipv6/conf/*/forwarding /proc/sys/net/ipv6/conf/*/accept_ra; do echo $f $(cat $f); done";
        let output = self.on("gateway", "sh", &["-c", script]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split_once(' ')).map(|(f, v)| (f.into(), v.into())).collect()
    }

    fn set(&self, path: &str, value: &str) {
        assert!(
            self.on("gateway", "sh", &["-c", &format!("echo {value} > /proc/sys/net/{path}")])
                .status
                .success()
        );
    }

    /// The gateway's routes, without those of link-local addresses, which come when a wire is found to be up.
    fn routes(&self) -> Vec<String> {
        let gateway = self.host("gateway");
        let text = self.ip(&["-n", &gateway, "-4", "route"]) + &self.ip(&["-n", &gateway, "-6", "route"]);
        text.lines().filter(|line| !line.starts_with("fe80")).map(Into::into).collect()
    }

    fn has_device(&self) -> bool {
        self.ip(&["-n", &self.host("gateway"), "-br", "link"]).contains("sixway0")
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("gw.sock")
    }

    fn state(&self) -> PathBuf {
        PathBuf::from(format!("/run/sixway/life-{}.state", self.suffix))
    }

    /// Starts a gateway and waits until it is ready, or until it has ended.
    fn start(&self, mechanisms: &str) -> Running {
        let configuration = self.directory.join("sixway.toml");
        let text = format!(
            "[gateway]\nname = \"life-{}\"\nadmin_socket = {:?}\nipv4_address = \"192.0.2.254\"\n\
             ipv6_address = \"2001:db8::fe\"\nworkers = 2\n{mechanisms}",
            self.suffix,
            self.socket()
        );
        fs::write(&configuration, text).unwrap();
        let said = self.directory.join("said");
        let out = fs::File::create(&said).unwrap();
        let errors = out.try_clone().unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", &self.host("gateway"), SIXWAY, "run", "-c"])
            .arg(configuration)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .unwrap();
        let mut running = Running { child, said };
        let patience = Instant::now() + Duration::from_secs(10);
        while !running.said().contains("ready in") && running.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < patience, "not ready: {}", running.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        running
    }

    fn show(&self, arguments: &[&str]) -> String {
        let output = Command::new(SIXWAY)
            .arg("show")
            .args(arguments)
            .arg("--socket")
            .arg(self.socket())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn ping(&self, target: &str) {
        let output = self.on("client", "ping", &["-c", "3", "-i", "0.2", "-W", "2", target]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(" 0% packet loss"), "{said}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in ["client", "gateway", "server"] {
            let _ = Command::new("ip").args(["netns", "del", &self.host(host)]).output();
        }
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_file(self.state());
    }
}

/// A gateway that runs, or has ended. It is killed when a test fails.
struct Running {
    child: Child,
    said: PathBuf,
}

impl Running {
    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// `ip netns exec` becomes what it executes: the child is the gateway.
    fn signal(&self, name: &str) {
        let number = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &number]).status().unwrap().success());
    }

    /// Waits for the end and returns the exit status; -1 if a signal ended it.
    fn end(&mut self) -> i32 {
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < patience, "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const NAT64: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\n\
                     pool = \"main\"\ntranslate_non_global = true\n";

#[test]
fn a_gateway_sets_its_host_up_and_puts_everything_back_on_sigterm() {
    let Some(network) = Network::build() else { return };
    // A host with a reverse path filter for all, and an interface that forwards already.
    network.set("ipv4/conf/all/rp_filter", "1");
    network.set("ipv6/conf/in0/forwarding", "1");
    let (settings, routes) = (network.settings(), network.routes());

    let mut gateway = network.start(NAT64);
    assert!(network.has_device(), "{}", gateway.said());
    for route in ["192.0.2.0/28 dev sixway0", "192.0.2.254 dev sixway0", "64:ff9b::/96 dev sixway0"] {
        let routes = network.routes();
        assert!(routes.iter().any(|line| line.starts_with(route)), "{route}: {routes:?}");
    }
    let during = network.settings();
    let value = |name: &str| during[&format!("/proc/sys/net/{name}")].as_str();
    assert_eq!(value("ipv4/conf/in0/forwarding"), "1");
    assert_eq!(value("ipv6/conf/all/forwarding"), "1");
    assert_eq!(value("ipv4/conf/all/rp_filter"), "0");
    assert_eq!(value("ipv4/conf/out0/rp_filter"), "1");
    assert_eq!(value("ipv6/conf/out0/accept_ra"), "2");
    let addresses = network.ip(&["-n", &network.host("gateway"), "addr", "show", "dev", "sixway0"]);
    assert!(!addresses.contains("inet"), "the host has no business of its own there: {addresses}");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(network.socket()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert!(!network.has_device());
    assert_eq!(network.routes(), routes);
    assert_eq!(network.settings(), settings);
    assert!(!network.socket().exists() && !network.state().exists());
}

#[test]
fn a_killed_gateway_is_cleared_up_by_the_next_start() {
    let Some(network) = Network::build() else { return };
    let (settings, routes) = (network.settings(), network.routes());
    let mut first = network.start(NAT64);
    first.signal("KILL");
    assert_eq!(first.end(), -1);
    assert!(network.state().exists() && network.socket().exists());
    assert_ne!(network.settings(), settings);

    let mut second = network.start(NAT64);
    assert!(second.said().contains("did not end properly"), "{}", second.said());
    assert!(network.has_device());
    assert!(network.show(&[]).contains("nat64"));
    second.signal("INT");
    assert_eq!(second.end(), 0);
    assert_eq!((network.routes(), network.settings()), (routes, settings));
}

#[test]
fn cleanup_puts_back_what_a_killed_gateway_left() {
    let Some(network) = Network::build() else { return };
    let settings = network.settings();
    let mut gateway = network.start(NAT64);
    gateway.signal("KILL");
    gateway.end();
    // From another namespace nothing is touched: the settings are not there.
    let _ = Command::new(SIXWAY).arg("cleanup").output().unwrap();
    assert!(network.state().exists());
    network.on("gateway", SIXWAY, &["cleanup"]);
    assert_eq!(network.settings(), settings);
    assert!(!network.socket().exists() && !network.state().exists());
}

#[test]
fn a_second_gateway_of_the_same_name_is_refused_and_disturbs_nothing() {
    let Some(network) = Network::build() else { return };
    let mut first = network.start(NAT64);
    let mut second = network.start(NAT64);
    assert_eq!(second.end(), 1);
    assert!(second.said().contains("runs already (process "), "{}", second.said());
    assert!(network.show(&[]).contains("nat64"));
    network.ping("64:ff9b::203.0.113.2");
    first.signal("TERM");
    assert_eq!(first.end(), 0);
}

#[test]
fn a_route_that_is_taken_is_named_and_everything_is_put_back() {
    let Some(network) = Network::build() else { return };
    network.ip(&["-n", &network.host("gateway"), "route", "add", "192.0.2.0/28", "via", "203.0.113.2"]);
    let (settings, routes) = (network.settings(), network.routes());
    let mut gateway = network.start(NAT64);
    assert_eq!(gateway.end(), 1);
    assert!(gateway.said().contains("another route to 192.0.2.0/28"), "{}", gateway.said());
    assert_eq!((network.routes(), network.settings()), (routes, settings));
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn packets_pass_both_ways_and_show_tells_of_them() {
    let Some(network) = Network::build() else { return };
    let state = network.directory.join("dynamic.state");
    let siit = format!(
        "[siit]\nprefix = \"2001:db8:64::/96\"\ndynamic_pool = \"172.16.0.0/24\"\ndynamic_state = {state:?}\n"
    );
    let mut gateway = network.start(&format!("{NAT64}{siit}"));
    network.ping("64:ff9b::203.0.113.2");
    network.ping("2001:db8:64::203.0.113.2");
    let sessions = network.show(&["sessions", "--inside", "2001:db8:1::2", "--protocol", "icmp"]);
    assert!(sessions.contains("3/3") && sessions.contains("203.0.113.2"), "{sessions}");
    assert!(network.show(&["sessions", "--remote", "203.0.113.9"]).contains("\n0 of 1\n"));
    let bindings = network.show(&["bindings"]);
    assert!(bindings.contains("icmp") && bindings.contains("172.16.0."), "{bindings}");
    let counters: serde_json::Value = serde_json::from_str(&network.show(&["counters", "--json"])).unwrap();
    let value = |name: &str| {
        let row = counters.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        row["value"].as_u64().unwrap()
    };
    assert_eq!((value("nat64.v6_to_v4"), value("nat64.v4_to_v6")), (3, 3));
    assert_eq!((value("siit.v6_to_v4"), value("siit.v4_to_v6")), (3, 3));
    assert!(value("handed_over") == value("taken_over"));

    // The host has the same address after a restart.
    let address = bindings.split_whitespace().find(|word| word.starts_with("172.16.0.")).unwrap().to_owned();
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    assert!(fs::read_to_string(&state).unwrap().contains(&format!("{address} 2001:db8:1::2")));
    let mut gateway = network.start(&format!("{NAT64}{siit}"));
    assert!(network.show(&["bindings"]).contains(&address));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
}

/// Status of the answer to a request at the admin socket.
fn asked(network: &Network, method: &str, target: &str, body: &str) -> String {
    let mut stream = std::os::unix::net::UnixStream::connect(network.socket()).unwrap();
    let head = format!("{method} {target} HTTP/1.0\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().into()
}

#[test]
fn static_bindings_come_and_go_at_run_time_and_sessions_are_ended() {
    let Some(network) = Network::build() else { return };
    let mut gateway = network.start(NAT64);
    for port in [80, 8_001, 8_065] {
        let inside = format!("[2001:db8:1::2]:{port}");
        let outside = format!("192.0.2.1:{port}");
        let binding = format!(r#"{{"protocol":"tcp","inside":"{inside}","outside":"{outside}"}}"#);
        assert_eq!(asked(&network, "POST", "/v1/bindings", &binding), "201", "{port}");
        assert_eq!(asked(&network, "POST", "/v1/bindings", &binding), "409", "{port}");
        assert!(network.show(&["bindings", "--outside", &outside]).contains("static"));
        let named = format!("/v1/bindings?protocol=tcp&outside={outside}");
        assert_eq!(asked(&network, "DELETE", &named, ""), "204", "{port}");
        assert_eq!(asked(&network, "DELETE", &named, ""), "404", "{port}");
        assert_eq!(asked(&network, "POST", "/v1/bindings", &binding), "201", "{port}");
    }
    let elsewhere = r#"{"protocol":"tcp","inside":"[2001:db8:1::2]:81","outside":"198.51.100.1:81"}"#;
    assert_eq!(asked(&network, "POST", "/v1/bindings", elsewhere), "409");

    network.ping("64:ff9b::203.0.113.2");
    let sessions: serde_json::Value =
        serde_json::from_str(&network.show(&["sessions", "--protocol", "icmp", "--json"])).unwrap();
    let (inside, remote) = (&sessions["rows"][0]["inside"], &sessions["rows"][0]["remote"]);
    let (inside, remote) = (inside.as_str().unwrap(), remote.as_str().unwrap());
    let named = format!("/v1/sessions?protocol=icmp&inside={inside}&remote={remote}");
    assert_eq!(asked(&network, "DELETE", &named, ""), "204");
    assert_eq!(asked(&network, "DELETE", &named, ""), "404");
    assert!(network.show(&["sessions"]).ends_with("0 of 0\n"));
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
}

#[test]
fn without_the_capability_one_line_says_which() {
    let Some(network) = Network::build() else { return };
    let configuration = network.directory.join("sixway.toml");
    fs::write(&configuration, "[siit]\nprefix = \"2001:db8:64::/96\"\n").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&network.directory, open).unwrap();
    let program = network.directory.join("sixway");
    fs::copy(SIXWAY, &program).unwrap();
    // Another test's child may hold the fresh copy open for a moment.
    let output = loop {
        match Command::new(&program).args(["run", "-c"]).arg(&configuration).uid(65_534).output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            outcome => break outcome.unwrap(),
        }
    };
    let error = String::from_utf8(output.stderr).unwrap();
    let line = error.lines().rfind(|line| !line.starts_with("warning")).unwrap();
    assert!(line.starts_with("sixway needs CAP_NET_ADMIN to create sixway0."), "{error}");
    assert_eq!(output.status.code(), Some(1));
}
