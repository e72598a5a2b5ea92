//! A NAT64 at the gateway's own address: the host keeps its ports, the translator has its own.

use super::network::Network;
use std::time::Duration;

pub(crate) const SHARED: &str = "[[pool]]\nname = \"main\"\naddresses = [\"203.0.113.1\"]\nshared = true\nports = \"61000-65535\"\n\
                      [nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n";

/// Port 7 of the IPv4 host answers everything, by TCP and UDP.
pub(crate) const ECHO: &str = "import socket, threading\n\
    tcp = socket.create_server(('', 7)); udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('', 7))\n\
    def answer(one):\n  \
      while True:\n    \
        octets = one.recv(65536)\n    \
        if not octets: return\n    \
        one.sendall(octets)\n\
    def accept():\n  \
      while True:\n    \
        threading.Thread(target=answer, args=(tcp.accept()[0],), daemon=True).start()\n\
    threading.Thread(target=accept, daemon=True).start()\n\
    while True:\n  \
      octets, whom = udp.recvfrom(65536)\n  \
      udp.sendto(octets, whom)\n";

/// Asks port 7 of a host by TCP or UDP for what it sends; says what happened. It receives while it sends: who sent all data first
/// would wait for ever where the answers fill both hosts' buffers.
const ASK: &str = "import socket, sys, threading\n\
    kind, host, size = sys.argv[1], sys.argv[2], int(sys.argv[3])\n\
    octets = bytes(i % 251 for i in range(size)); got = b''\n\
    family = socket.AF_INET6 if ':' in host else socket.AF_INET\n\
    with socket.socket(family, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM) as one:\n  \
      def speak():\n    \
        for at in range(0, size, 65536): one.sendall(octets[at:at + 65536])\n  \
      one.settimeout(5); one.connect((host, 7)); threading.Thread(target=speak, daemon=True).start()\n  \
      while len(got) < size and (more := one.recv(65536)): got += more\n\
    print('same' if got == octets else 'different')\n";

pub(crate) struct Answering(std::process::Child);

impl Answering {
    pub(crate) fn on(network: &Network, host: &str, script: &str) -> Self {
        let mut command = std::process::Command::new("ip");
        let answering = Self(
            command.args(["netns", "exec", &network.host(host), "python3", "-c", script]).spawn().unwrap(),
        );
        // The last of its sockets is the one for datagrams, at port 7; `ss` prints no line but for such a one.
        let listens = || !network.on(host, "ss", &["-Hlun", "sport = :7"]).stdout.is_empty();
        let start = std::time::Instant::now();
        while !listens() {
            assert!(start.elapsed() < Duration::from_secs(10), "nobody listens on {host}");
            std::thread::sleep(Duration::from_millis(20));
        }
        answering
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn asks(network: &Network, from: &str, kind: &str, to: &str, size: &str) {
    let output = network.on(from, "python3", &["-c", ASK, kind, to, size]);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("same"), "{from} {kind} {to} {size}: {said}\n{}", network.show(&["drops"]));
}

/// A counter of `/proc/net/snmp` on a host.
fn snmp(network: &Network, host: &str, name: &str) -> u64 {
    let (protocol, name) = name.split_once('.').unwrap();
    let text = network.on(host, "cat", &["/proc/net/snmp"]).stdout;
    let text = String::from_utf8(text).unwrap();
    let mut rows = text.lines().filter(|line| line.starts_with(&format!("{protocol}:")));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let at = names.split(' ').position(|word| word == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

#[test]
fn a_nat64_shares_the_hosts_own_address_and_the_host_goes_on() {
    let network = Network::build();
    let (settings, routes) = (network.settings(), network.routes());
    let reserved = || {
        let output = network.on("gateway", "cat", &["/proc/sys/net/ipv4/ip_local_reserved_ports"]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    network.set("ipv4/ip_local_reserved_ports", "8080");
    let _far = Answering::on(&network, "server", ECHO);
    let _here = Answering::on(&network, "gateway", ECHO);
    let mut gateway = network.start(SHARED);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    assert_eq!(reserved(), "8080,61000-65535");
    assert!(!network.routes().iter().any(|line| line.starts_with("203.0.113.1 ")), "{:?}", network.routes());

    // Through the translator; 4,000 octets of UDP come back in fragments.
    let beyond = "2001:db8:64::203.0.113.2";
    network.ping(beyond);
    for (kind, size) in [("tcp", "5"), ("tcp", "3000000"), ("udp", "5"), ("udp", "4000")] {
        asks(&network, "client", kind, beyond, size);
        // The host's own connections, both ways, and its pings.
        asks(&network, "gateway", kind, "203.0.113.2", size);
        asks(&network, "server", kind, "203.0.113.1", size);
    }
    network.ping_from("gateway", "203.0.113.2");
    network.ping_from("server", "203.0.113.1");
    let identifier = ["-c", "2", "-i", "0.2", "-W", "2", "-e", "62000", "203.0.113.2"];
    let output = network.on("gateway", "ping", &identifier);
    assert!(String::from_utf8_lossy(&output.stdout).contains(" 0% packet loss"), "{output:?}");
    let bindings = network.show(&["bindings"]);
    assert!(bindings.contains("203.0.113.1:6"), "{bindings}");
    // Errors that quote our ports come to the translator, and so to the client.
    let refused = "import socket\n\
        one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); one.settimeout(5)\n\
        one.connect(('2001:db8:64::203.0.113.2', 9)); one.send(b'x')\n\
        try: one.recv(9)\n\
        except ConnectionRefusedError: print('refused')\n";
    let output = network.on("client", "python3", &["-c", refused]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused"), "{output:?}");

    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!(reserved(), "8080");
    assert_eq!((network.routes(), network.settings()), (routes, settings));
    let left = network.on("gateway", "tc", &["filter", "show", "dev", "out0", "ingress"]);
    assert!(!String::from_utf8_lossy(&left.stdout).contains("sixway"), "{left:?}");
}

#[test]
fn a_killed_gateways_peers_hear_no_reset() {
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let mut gateway = network.start(SHARED);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    // A connection that talks all the time.
    let host = network.host("client");
    let talk = "import socket, time\n\
        one = socket.create_connection(('2001:db8:64::203.0.113.2', 7)); one.settimeout(0.1)\n\
        for number in range(40):\n  \
          one.sendall(b'hello' * 100)\n  \
          one.recv(65536)\n";
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", &host, "python3", "-c", talk]).stderr(std::process::Stdio::null());
    let mut talking = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let answers =
        || [snmp(&network, "gateway", "Tcp.OutRsts"), snmp(&network, "gateway", "Icmp.OutDestUnreachs")];
    let before = answers();
    gateway.signal("KILL");
    gateway.end();
    talking.wait().unwrap();
    let heard = [snmp(&network, "server", "Tcp.InSegs"), snmp(&network, "server", "Icmp.InMsgs")];
    // What the server still sends for the translator's ports, and what a stranger sends.
    let strange = "import socket\n\
        for port in range(61000, 61050):\n  \
          udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.sendto(b'x', ('203.0.113.1', port))\n  \
          tcp = socket.socket(); tcp.setblocking(False); tcp.connect_ex(('203.0.113.1', port)); tcp.close()\n";
    network.on("server", "python3", &["-c", strange]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(answers(), before, "the host's own stack has answered for the translator's ports");
    let hears = [snmp(&network, "server", "Tcp.InSegs"), snmp(&network, "server", "Icmp.InMsgs")];
    assert_eq!(hears, heard, "the peer has heard something");
    network.ping_from("server", "203.0.113.1");
    // The next one goes on where it was.
    let mut gateway = network.start(SHARED);
    network.ping("2001:db8:64::203.0.113.2");
    assert_eq!(answers(), before);
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

/// What `nft list table` says of the gateway's table; nothing if there is none.
pub(crate) fn table(network: &Network) -> String {
    let output = network.on("gateway", "nft", &["list", "ruleset"]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn needs_nft() {
    if std::process::Command::new("nft").arg("-v").output().is_err() {
        sixway_trial::ignore("needs nft");
    }
}

#[test]
fn the_packet_filters_table_stays_while_the_gateway_is_away_and_goes_at_a_clean_end() {
    needs_nft();
    let network = Network::build();
    network.on("gateway", "nft", &["add", "table", "inet", "theirs"]);
    let before = table(&network);
    for signal in ["TERM", "KILL"] {
        let mut gateway = network.start(SHARED);
        assert!(gateway.said().contains("ready in") && !gateway.said().contains("nft"), "{}", gateway.said());
        let during = table(&network);
        assert!(
            during.contains("table inet sixway-life-") && during.contains("table inet theirs"),
            "{during}"
        );
        assert!(during.contains("203.0.113.1") && during.contains("61000-65535"), "{during}");
        gateway.signal(signal);
        gateway.end();
        assert_eq!(table(&network), if signal == "TERM" { before.clone() } else { during });
    }
    network.on("gateway", super::SIXWAY, &["cleanup"]);
    assert_eq!(table(&network), before);
}

/// Stateful firewalls as hosts have them; the second with the rule that the documentation names.
const FIREWALLS: [&str; 2] = [
    "table inet theirs { chain forward { type filter hook forward priority 0; ct state invalid drop; }; \
     chain input { type filter hook input priority 0; ct state invalid drop; }; }",
    "table inet theirs { chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; \
     iifname in0 accept; }; chain input { type filter hook input priority 0; ct state invalid drop; }; }",
];

#[test]
fn flows_pass_stateful_firewalls_and_rules_in_the_way_are_reported_with_their_cure() {
    needs_nft();
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let pool = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n";
    let routed = format!(
        "[fastpath]\nmode = \"auto\"\n{pool}[nat64]\nprefix = \"2001:db8:64::/96\"\npool = \"main\"\n"
    );
    for (number, firewall) in FIREWALLS.into_iter().enumerate() {
        network.on("gateway", "nft", &["destroy", "table", "inet", "theirs"]);
        network.on("gateway", "nft", &["delete", "table", "inet", "theirs"]);
        let made = network.on("gateway", "nft", &[firewall]);
        assert!(made.status.success(), "{made:?}");
        for mechanisms in [SHARED, &routed] {
            let mut gateway = network.start(mechanisms);
            if number == 1 {
                let start = std::time::Instant::now();
                let cures = loop {
                    let said = gateway.said();
                    if let Some((_, cures)) = said.split_once(" → nft insert rule inet theirs forward ") {
                        break cures.lines().next().unwrap().to_owned();
                    }
                    assert!(start.elapsed() < Duration::from_secs(15), "{said}");
                    std::thread::sleep(Duration::from_millis(100));
                };
                let script = format!("insert rule inet theirs forward {cures}");
                let script = script.replace("; ", "\n").replace("nft insert", "insert");
                assert!(
                    !script.contains("oifname \"sixway0\" accept")
                        || script.contains("iifname \"in0\" oifname"),
                    "{script}"
                );
                let file = network.directory.join("cure.nft");
                std::fs::write(&file, script).unwrap();
                let cured = network.on("gateway", "nft", &["-f", file.to_str().unwrap()]);
                assert!(cured.status.success(), "{cured:?}");
            }
            for (kind, size) in [("tcp", "300000"), ("udp", "4000")] {
                asks(&network, "client", kind, "2001:db8:64::203.0.113.2", size);
            }
            network.ping("2001:db8:64::203.0.113.2");
            let tracked = network.on("gateway", "cat", &["/proc/net/nf_conntrack"]);
            let tracked = String::from_utf8_lossy(&tracked.stdout).into_owned();
            assert!(!tracked.contains("2001:0db8:0064"), "{tracked}");
            assert_eq!(gateway.said().contains("the packet filter: "), number == 1, "{}", gateway.said());
            gateway.signal("TERM");
            assert_eq!(gateway.end(), 0, "{}", gateway.said());
            if number == 1 {
                // As it was before the cure.
                network.on("gateway", "nft", &["delete", "table", "inet", "theirs"]);
                network.on("gateway", "nft", &[firewall]);
            }
        }
    }
}

/// Sends a datagram of a size and a hop limit to an address and port; prints the ICMPv6 error that comes back, and the
/// path MTU after it.
const PROBE: &str = "import socket, sys, time\n\
    size, hops, host, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])\n\
    one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
    one.setsockopt(41, 23, 2)\n\
    one.setsockopt(41, 25, 1)\n\
    one.setsockopt(41, socket.IPV6_UNICAST_HOPS, hops)\n\
    one.connect((host, port))\n\
    one.send(b'x' * size)\n\
    for _ in range(30):\n  \
      try: _, control, _, whom = one.recvmsg(1, 512, 0x2000)\n  \
      except (BlockingIOError, ConnectionError): time.sleep(0.1); continue\n  \
      octets = control[0][2]\n  \
      print('type', octets[5], 'code', octets[6], 'MTU', one.getsockopt(41, 24))\n  \
      break\n";

#[test]
fn errors_that_this_hosts_kernel_makes_about_shared_ports_reach_the_client() {
    let network = Network::build();
    let gateway = network.host("gateway");
    network.ip(&["-n", &gateway, "link", "set", "out0", "mtu", "1400"]);
    let _running = network.start(SHARED);
    let probe_to = |host: &str, port: &str, size: &str, hops: &str| {
        let output = network.on("client", "python3", &["-c", PROBE, size, hops, host, port]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let probe = |size: &str, hops: &str| probe_to("2001:db8:64::203.0.113.2", "9", size, hops);
    // IPv6: hop 1 is the kernel, hop 2 the translator, hop 3 the kernel again, which forwards IPv4.
    for hops in ["1", "2", "3"] {
        assert_eq!(probe("5", hops), "type 3 code 0 MTU 1500", "{hops} hops: {}", network.show(&["drops"]));
    }
    assert_eq!(probe("1440", "64"), "type 2 code 0 MTU 1420", "{}", network.show(&["drops"]));
    // An echo request's third hop is also named.
    let output =
        network.on("client", "ping", &["-6", "-c", "1", "-W", "2", "-t", "3", "2001:db8:64::203.0.113.2"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("Time exceeded"), "{output:?}");
    // Where the port is closed, the server says so: that error came in by the wire all along.
    assert_eq!(probe("5", "64"), "type 1 code 4 MTU 1420", "{}", network.show(&["drops"]));
    // A port of the pool that nobody has, whichever worker it is with.
    let hairpin = |port| probe_to("2001:db8:64::203.0.113.1", port, "5", "64");
    for port in ["63005", "64006", "65000", "65501"] {
        assert_eq!(hairpin(port), "type 1 code 0 MTU 1500", "{port}: {}", network.show(&["drops"]));
    }
    // The host's own errors stay the host's.
    let own = "import socket\n\
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.settimeout(5)\n\
        one.connect(('203.0.113.1', 9)); one.send(b'x')\n\
        try: one.recv(9)\n\
        except ConnectionRefusedError: print('refused')\n";
    let output = network.on("gateway", "python3", &["-c", own]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused"), "{output:?}");
}

#[test]
fn a_binding_at_run_time_does_not_take_a_port_of_the_host() {
    let network = Network::build();
    let _gateway = network.start(SHARED);
    let socket = network.socket();
    let add = |outside: &str| {
        let arguments = ["binding", "add", "tcp", "[2001:db8:1::2]:22", outside, "--socket"];
        let all = [&arguments[..], &[socket.to_str().unwrap()]].concat();
        network.on("gateway", super::network::SIXWAY, &all)
    };
    let refused = add("203.0.113.1:22");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("outside the ports of the shared pool"), "{said}");
    assert!(add("203.0.113.1:61022").status.success());
}
