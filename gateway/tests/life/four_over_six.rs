//! 4over6, ours against ours: a host takes a lease at its first packet, packets pass, the lease survives restarts and ends after silence.

use super::network::{Network, Running, SIXWAY};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The gateway's concentrator, and the server's end of a tunnel.
fn concentrator(network: &Network, more: &str) -> String {
    let file = network.directory.join("hub.leases");
    format!(
        "[four_over_six]\nrole = \"concentrator\"\naddresses = \"2001:db8:c::1\"\npool = \"198.51.100.16/29\"\nclients = [\"2001:db8:99::/64\", \"2001:db8:b::/64\"]\nclient_prefix = 48\nlease_file = {file:?}\n{more}"
    )
}

fn host(network: &Network, more: &str) -> String {
    let file = network.directory.join("host.leases");
    format!(
        "[four_over_six]\nrole = \"host\"\nlocal = \"2001:db8:99:b::1\"\nconcentrator = \"2001:db8:c::1\"\ndestinations = \"10.1.0.0/24\"\nlease_file = {file:?}\n{more}"
    )
}

const SERVERS: &str = "servers = \"2001:db8:99::1\"\n";

/// Addresses and routes between the two; the client has IPv4.
fn prepare(network: &Network) {
    let on = |host: &str, words: &str| {
        let host = network.host(host);
        let all: Vec<&str> = ["-n", &host].into_iter().chain(words.split(' ')).collect();
        network.ip(&all);
    };
    on("gateway", "address add 10.1.0.1/24 dev in0");
    on("gateway", "address add 2001:db8:99::1/64 dev out0 nodad");
    on("gateway", "route add 2001:db8:99:b::1 via 2001:db8:99::2");
    on("server", "address add 2001:db8:99::2/64 dev eth0 nodad");
    on("server", "route add 2001:db8:c::1 via 2001:db8:99::1");
    on("client", "address add 10.1.0.2/24 dev eth0");
    on("client", "route add default via 10.1.0.1");
}

fn wide(text: &str) -> String {
    text.replace("\"2001:db8:99::/64\", \"2001:db8:b::/64\"", "\"2001:db8:99::/48\"")
}

/// What a gateway shows.
fn show(socket: PathBuf, what: &str) -> String {
    let output = Command::new(SIXWAY).args(["show", what, "--socket"]).arg(socket).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn host_shows(network: &Network) -> String {
    show(network.directory.join("server.sock"), "leases")
}

#[track_caller]
fn await_that(what: impl Fn() -> bool, said: impl Fn() -> String) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < patience, "{}", said());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn stop(mut running: Running) {
    running.signal("TERM");
    assert_eq!(running.end(), 0, "{}", running.said());
}

#[test]
fn a_host_takes_a_lease_at_its_first_packet_and_returns_it_after_silence() {
    let network = Network::build();
    prepare(&network);
    let (settings, routes) = (network.settings(), network.routes());
    let gateway = network.start(&wide(&concentrator(&network, "")));
    let peer = network.start_peer("server", &host(&network, &format!("{SERVERS}idle = \"10 s\"\n")));
    // The first lease shows which address the host may ask for again.
    await_that(
        || host_shows(&network).contains("held"),
        || host_shows(&network) + &peer.said() + &gateway.said(),
    );
    let leased = "198.51.100.16";
    assert!(host_shows(&network).contains(leased), "{}", host_shows(&network));
    network.ping_from("server", "10.1.0.2");
    network.ping(leased);
    assert!(network.show(&["leases"]).contains("leased"), "{}", network.show(&["leases"]));
    // Silence.
    await_that(|| host_shows(&network).contains("remembered"), || host_shows(&network) + &peer.said());
    await_that(|| network.show(&["leases"]).contains("ended"), || network.show(&["leases"]));
    // The first packet waits for the lease, and none is lost.
    network.ping_from("server", "10.1.0.2");
    await_that(|| host_shows(&network).contains("held"), || host_shows(&network) + &peer.said());
    let large = network.on("server", "ping", &["-c", "3", "-i", "0.2", "-W", "2", "-s", "3000", "10.1.0.2"]);
    let said = String::from_utf8_lossy(&large.stdout).into_owned();
    assert!(said.contains(" 0% packet loss"), "{said}{}", network.show(&["drops"]));
    stop(peer);
    await_that(|| network.show(&["leases"]).contains("ended"), || network.show(&["leases"]));
    stop(gateway);
    assert_eq!((network.routes(), network.settings()), (routes, settings));
}

#[test]
fn leases_survive_who_takes_over_and_a_restart_of_either_end() {
    let network = Network::build();
    prepare(&network);
    let hub = wide(&concentrator(&network, ""));
    let mut first = network.start(&hub);
    let text = host(&network, SERVERS);
    let mut peer = network.start_peer("server", &text);
    await_that(|| host_shows(&network).contains("held"), || host_shows(&network) + &peer.said());
    network.ping_from("server", "10.1.0.2");
    let second = network.start_with(&hub, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    network.ping("198.51.100.16");
    // As if the power had failed: nothing is returned.
    second.signal("KILL");
    let mut second = second;
    second.end();
    let third = network.start(&hub);
    await_that(|| network.show(&["leases"]).contains("198.51.100.16"), || third.said());
    network.ping("198.51.100.16");
    peer.signal("KILL");
    peer.end();
    let again = network.start_peer("server", &text);
    await_that(|| host_shows(&network).contains("held"), || host_shows(&network) + &again.said());
    network.ping_from("server", "10.1.0.2");
    assert!(!network.show(&["leases"]).contains("198.51.100.17"), "{}", network.show(&["leases"]));
}

#[test]
fn an_operator_ends_a_lease_and_the_host_cannot_send_with_it() {
    let network = Network::build();
    prepare(&network);
    let _gateway = network.start(&wide(&concentrator(&network, "")));
    let peer = network.start_peer("server", &host(&network, SERVERS));
    await_that(|| host_shows(&network).contains("held"), || host_shows(&network) + &peer.said());
    let release = |address: &str| {
        let command = Command::new(SIXWAY)
            .args(["lease", "release", address, "--socket"])
            .arg(network.socket())
            .output()
            .unwrap();
        (command.status.success(), String::from_utf8_lossy(&command.stderr).into_owned())
    };
    assert_eq!(release("198.51.100.16"), (true, String::new()));
    assert!(release("198.51.100.16").1.contains("is not leased"));
    network.on("server", "ping", &["-c", "1", "-W", "1", "10.1.0.2"]);
    assert!(network.show(&["drops"]).contains("SourceNotLeased"), "{}", network.show(&["drops"]));
}

#[test]
fn the_event_log_says_who_had_an_address_and_a_renewal_is_not_logged() {
    let network = Network::build();
    prepare(&network);
    let log = network.directory.join("leases.log");
    let more = format!(
        "[[four_over_six.static]]\nhost = \"2001:db8:99:b::9\"\nipv4 = \"198.51.100.20\"\n[log]\nevents = \"bindings\"\n[log.file]\npath = {log:?}\n"
    );
    let gateway = network.start(&wide(&concentrator(&network, &more)));
    let peer = network.start_peer("server", &host(&network, SERVERS));
    await_that(|| host_shows(&network).contains("held"), || host_shows(&network) + &peer.said());
    stop(peer);
    await_that(|| network.show(&["leases"]).contains("ended"), || network.show(&["leases"]));
    stop(gateway);
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("\"lease_")).collect();
    let said = |event: &str, host: &str, ipv4: &str| {
        let fields = format!("\"event\":\"lease_{event}\",\"translator\":\"four_over_six\"");
        let whose = format!("\"subscriber\":\"{host}\",\"outside\":\"{ipv4}\"");
        lines.iter().filter(|line| line.contains(&fields) && line.contains(&whose)).count()
    };
    assert_eq!(said("continues", "2001:db8:99:b::9", "198.51.100.20"), 1, "{text}");
    assert_eq!(said("created", "2001:db8:99:b::1", "198.51.100.16"), 1, "{text}");
    assert_eq!(said("deleted", "2001:db8:99:b::1", "198.51.100.16"), 1, "{text}");
    assert_eq!(lines.len(), 3, "{text}");
}

/// RFC 7341 §9. At one of the addresses nobody listens.
#[test]
fn each_of_several_servers_is_asked_at_whatever_place_of_the_list() {
    let network = Network::build();
    prepare(&network);
    network.ip(&[
        "-n",
        &network.host("gateway"),
        "address",
        "add",
        "2001:db8:99::7/64",
        "dev",
        "out0",
        "nodad",
    ]);
    let gateway = network.start(&wide(&concentrator(&network, "listen = \"2001:db8:99::7\"\n")));
    for servers in [["2001:db8:99::7", "2001:db8:99::1"], ["2001:db8:99::1", "2001:db8:99::7"]] {
        let peer = network.start_peer("server", &host(&network, &format!("servers = {servers:?}\n")));
        await_that(
            || host_shows(&network).contains("held"),
            || format!("{servers:?}: {}{}{}", host_shows(&network), peer.said(), gateway.said()),
        );
        network.ping_from("server", "10.1.0.2");
        stop(peer);
        std::fs::remove_file(network.directory.join("host.leases")).unwrap();
    }
}

#[test]
fn a_static_lease_needs_no_server() {
    let network = Network::build();
    prepare(&network);
    let fixed =
        "listen = []\n[[four_over_six.static]]\nhost = \"2001:db8:99:b::1\"\nipv4 = \"198.51.100.20\"\n";
    let _gateway = network.start(&wide(&concentrator(&network, fixed)));
    let _peer = network.start_peer("server", &host(&network, "address = \"198.51.100.20\"\n"));
    network.ping_from("server", "10.1.0.2");
    network.ping("198.51.100.20");
    assert!(network.show(&["leases"]).contains("static"), "{}", network.show(&["leases"]));
}

#[test]
fn the_lease_file_of_kea_makes_bindings() {
    let network = Network::build();
    prepare(&network);
    let kea = network.directory.join("kea.csv");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let head = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context\n";
    let row = |state: u8| {
        let host = "20:01:0d:b8:00:99:00:0b:00:00:00:00:00:00:00:01";
        format!("198.51.100.21,{host},ff:00,3600,{},1,0,0,,{state},\n", now + 3_600)
    };
    std::fs::write(&kea, format!("{head}{}", row(0))).unwrap();
    let _gateway = network.start(&wide(&concentrator(&network, &format!("kea_leases = {kea:?}\n"))));
    let _peer = network.start_peer("server", &host(&network, "address = \"198.51.100.21\"\n"));
    network.ping_from("server", "10.1.0.2");
    // Kea appends; the last row of an address counts.
    std::fs::write(&kea, format!("{head}{}{}", row(0), row(2))).unwrap();
    await_that(|| !network.show(&["leases"]).contains("198.51.100.21"), || network.show(&["leases"]));
    let lost = network.on("server", "ping", &["-c", "1", "-W", "1", "10.1.0.2"]);
    assert!(!lost.status.success());
}

fn shows(network: &Network, socket: &str) -> String {
    let socket = network.directory.join(socket);
    let output = Command::new(SIXWAY).args(["show", "--socket"]).arg(socket).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The kernel removes an interface's IPv4 routes with its last IPv4 address.
#[test]
fn a_host_that_gets_another_address_than_it_had_keeps_its_route_all_the_time() {
    let network = Network::build();
    prepare(&network);
    let others = "[[four_over_six.static]]\nhost = \"2001:db8:99:c::9\"\nipv4 = \"198.51.100.20\"\n";
    let _gateway = network.start(&wide(&concentrator(&network, others)));
    std::fs::write(network.directory.join("host.leases"), "198.51.100.20 0.0.0.0 0 0 0\n").unwrap();
    let peer = network.start_peer("server", &host(&network, SERVERS));
    let of_host = |words: &[&str]| String::from_utf8(network.on("server", "ip", words).stdout).unwrap();
    let has_route = || of_host(&["route", "show", "10.1.0.0/24"]).contains("sixway0");
    await_that(|| has_route() && of_host(&["-4", "address"]).contains("198.51.100.20"), || peer.said());
    network.on("server", "ping", &["-c", "1", "-W", "1", "10.1.0.2"]);
    let patience = Instant::now() + Duration::from_secs(20);
    while !host_shows(&network).contains("held") {
        assert!(has_route(), "{}{}", of_host(&["-4", "address"]), peer.said());
        assert!(Instant::now() < patience, "{}{}", host_shows(&network), peer.said());
    }
    assert!(host_shows(&network).contains("198.51.100.16"), "{}", host_shows(&network));
    let addresses = || of_host(&["-4", "address"]);
    await_that(|| !addresses().contains("198.51.100.20"), addresses);
    assert!(has_route(), "{}{}", addresses(), peer.said());
    network.ping_from("server", "10.1.0.2");
    assert!(!peer.said().contains("another program"), "{}", peer.said());
}

/// A program that ends with the test.
struct Monitor(Child);

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The kernel tells of every address and route that is removed.
#[test]
fn a_reload_of_a_host_keeps_its_address_and_its_routes_all_the_time() {
    let network = Network::build();
    prepare(&network);
    let _gateway = network.start(&wide(&concentrator(&network, "")));
    let peer = network.start_peer("server", &host(&network, SERVERS));
    await_that(|| host_shows(&network).contains("held"), || host_shows(&network) + &peer.said());
    network.ping_from("server", "10.1.0.2");
    let file = network.directory.join("monitor");
    let log = std::fs::File::create(&file).unwrap();
    let namespace = network.host("server");
    let mut command = Command::new("ip");
    command.args(["-n", &namespace, "-4", "monitor", "address", "route"]).stdout(log);
    let monitor = Monitor(command.spawn().unwrap());
    let told = || std::fs::read_to_string(&file).unwrap_or_default();
    let of_host = |words: &[&str]| String::from_utf8(network.on("server", "ip", words).stdout).unwrap();
    let is_told_of = |prefix: &str| {
        of_host(&["route", "replace", "blackhole", prefix]);
        await_that(|| told().contains(prefix), told);
    };
    is_told_of("192.0.2.1");
    for reloads in 1..=2 {
        peer.signal("HUP");
        let ready = || peer.said().matches("ready in").count() > reloads;
        await_that(ready, || peer.said());
        // The guard looks each second for what is missing.
        std::thread::sleep(Duration::from_secs(2));
        network.ping_from("server", "10.1.0.2");
    }
    is_told_of("192.0.2.2");
    drop(monitor);
    assert!(!told().contains("Deleted"), "{}{}", told(), peer.said());
    assert!(of_host(&["-4", "address"]).contains("198.51.100.16/32"), "{}", of_host(&["-4", "address"]));
    let shown = shows(&network, "server.sock");
    assert!(!shown.contains("other programs"), "{shown}");
    assert!(!peer.said().contains("another program"), "{}", peer.said());
}

#[test]
fn a_host_without_an_answer_and_a_concentrator_that_refuses_say_so() {
    let network = Network::build();
    prepare(&network);
    let elsewhere = concentrator(&network, "")
        .replace("\"2001:db8:99::/64\", \"2001:db8:b::/64\"", "\"2001:db8:77::/48\"");
    let gateway = network.start(&elsewhere);
    let peer = network.start_peer("server", &host(&network, SERVERS));
    let of_host = || shows(&network, "server.sock");
    let silent = "four_over_six: no lease: no answer from 2001:db8:99::1 for";
    await_that(|| of_host().contains(silent), || of_host() + &peer.said());
    assert!(of_host().contains("no lease") && peer.said().contains(silent), "{}{}", of_host(), peer.said());
    let of_hub = || network.show(&[]);
    assert!(of_hub().contains("of senders outside clients refused within two minutes"), "{}", of_hub());
    assert!(
        of_hub().contains(" refused") && gateway.said().contains("not within clients"),
        "{}",
        gateway.said()
    );
    assert!(!gateway.said().contains("2001:db8:99::2"), "{}", gateway.said());
}

#[test]
fn a_lease_that_is_bound_to_another_address_than_local_is_a_problem_of_the_host() {
    let network = Network::build();
    prepare(&network);
    let hub = wide(&concentrator(&network, "")).replace("client_prefix = 48", "client_prefix = 64");
    let _gateway = network.start(&hub);
    let peer = network.start_peer("server", &host(&network, SERVERS));
    let said = "has bound 198.51.100.16 to 2001:db8:99::2, not to local 2001:db8:99:b::1";
    let of_host = || shows(&network, "server.sock");
    await_that(|| of_host().contains(said), || of_host() + &peer.said());
    assert!(peer.said().contains(said), "{}", peer.said());
}
