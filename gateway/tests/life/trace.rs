//! `sixway trace` next to what really happens.

use super::NAT64;
use super::network::{Network, SIXWAY};
use super::shared_pool::{Answering, ECHO};

fn trace(network: &Network, arguments: &[&str]) -> (String, i32) {
    let file = network.directory.join("gateway.toml");
    let socket = network.socket();
    let arguments: Vec<&str> = ["trace", "-c", file.to_str().unwrap(), "--socket", socket.to_str().unwrap()]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let output = network.on("gateway", SIXWAY, &arguments);
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.code().unwrap())
}

/// Opens a connection to port 7 from this port, and prints what the server sees it come from.
const CONNECT: &str = "import socket, time\n\
    one = socket.socket(socket.AF_INET6); one.bind(('2001:db8:1::2', 50122)); one.connect(('64:ff9b::203.0.113.2', 7))\n\
    one.sendall(b'x'); one.recv(1); print('open', flush=True); time.sleep(20)\n";

#[test]
fn a_trace_says_what_happens_and_changes_nothing() {
    let network = Network::build();
    let _far = Answering::on(&network, "server", ECHO);
    let mut gateway = network.start(NAT64);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
    let before = network.show(&["bindings"]);
    let out = ["--from", "2001:db8:1::2", "--to", "64:ff9b::203.0.113.2", "--tcp", "50122:7"];
    let (said, status) = trace(&network, &out);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("1 packet     IPv6, TCP, SYN, 60 octets"), "{said}");
    assert!(said.contains("session    the running gateway has none for it"), "{said}");
    assert!(said.contains("nat64: v6 to v4; a binding is made"), "{said}");
    assert!(said.contains("result     IPv4, TCP, SYN, 40 octets, TTL 63, 192.0.2."), "{said}");
    assert!(said.contains("route      the kernel sends it to out0\n"), "{said}");
    assert_eq!(network.show(&["bindings"]), before, "nothing was made");

    // A real connection: the trace has the port that the server sees.
    let host = network.host("client");
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", &host, "python3", "-c", CONNECT]).stdout(std::process::Stdio::piped());
    let mut talking = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(talking.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "open\n");
    let seen = network.on("server", "ss", &["-Htn", "state", "established", "sport = :7"]).stdout;
    let seen = String::from_utf8_lossy(&seen).into_owned();
    let peer = seen
        .split_whitespace()
        .find(|word| word.starts_with("192.0.2."))
        .unwrap_or_else(|| panic!("{seen}"))
        .to_owned();
    let (said, _) = trace(&network, &out);
    assert!(
        said.contains(&format!("{peer} > 203.0.113.2:7")) && said.contains("established"),
        "{peer}: {said}"
    );
    // The way back, to that port.
    let (address, port) = peer.split_once(':').unwrap();
    let ports = format!("7:{port}");
    let (said, status) = trace(&network, &["--from", "203.0.113.2", "--to", address, "--tcp", &ports]);
    assert!(status == 0 && said.contains("> [2001:db8:1::2]:50122"), "{said}");
    let _ = talking.kill();
    let _ = talking.wait();

    // A drop has its reason, its meaning and its answer.
    let (said, status) = trace(&network, &["--from", "203.0.113.2", "--to", "192.0.2.3", "--udp", "53:9"]);
    assert_eq!(status, 1);
    assert!(said.contains("dropped    NoBinding: No binding for this outside address"), "{said}");
    assert!(
        said.contains(
            "answer     IPv4, ICMP error, 56 octets, TTL 64, 192.0.2.254 > 203.0.113.2 (rate-limited)"
        ),
        "{said}"
    );
    let (said, status) = trace(&network, &["--from", "203.0.113.2", "--to", "2001:db8::1", "--icmp", "7"]);
    assert!(status == 2 && said.contains("--from and --to must be of the same family"), "{said}");
    let (said, status) = trace(&network, &["--from", "2001:db8:1::2", "--to", "64:ff9b::1"]);
    assert!(status == 2 && said.contains("the protocol is missing; add --tcp"), "{said}");
    let (said, _) = trace(
        &network,
        &["--json", "--from", "2001:db8:1::2", "--to", "64:ff9b::203.0.113.2", "--icmp", "7"],
    );
    let steps: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(steps[0]["step"], "packet");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    // Without a gateway, it is what a new one would do.
    let (said, status) = trace(&network, &out);
    assert!(status == 0 && said.contains("the gateway does not run"), "{said}");
}

#[test]
fn packets_are_shown_as_they_pass_and_each_drop_keeps_a_sample() {
    let network = Network::build();
    let _gateway = network.start(NAT64);
    let socket = network.socket();
    let config = network.directory.join("gateway.toml");
    let live = |arguments: &[&str]| {
        std::process::Command::new("ip")
            .args([
                "netns",
                "exec",
                &network.host("gateway"),
                SIXWAY,
                "trace",
                "--live",
                "--seconds",
                "20",
                "-c",
            ])
            .arg(&config)
            .arg("--socket")
            .arg(&socket)
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let watching = live(&["--count", "2", "--protocol", "icmp"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    network.ping("64:ff9b::203.0.113.2");
    let said = String::from_utf8(watching.wait_with_output().unwrap().stdout).unwrap();
    assert!(
        said.contains("IPv6, ICMP type 128") && said.contains("    forwarded\n    IPv4, ICMP type 8"),
        "{said}"
    );

    let watching = live(&["--count", "1", "--drops"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    network.on("server", "ping", &["-c", "1", "-W", "1", "192.0.2.3"]);
    let said = String::from_utf8(watching.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("203.0.113.2 > 192.0.2.3") && said.contains("    dropped: NoBinding"), "{said}");
    assert!(network.show(&["drops"]).contains("NoBinding: IPv4, ICMP type 8"));
}

#[test]
fn of_two_watches_the_later_one_goes_on() {
    let network = Network::build();
    let _gateway = network.start(NAT64);
    let file = network.directory.join("gateway.toml");
    let watch = |seconds: &str| {
        let mut command = std::process::Command::new("ip");
        command.args(["netns", "exec", &network.host("gateway"), SIXWAY]);
        command.args(["trace", "--live", "--seconds", seconds, "-c", file.to_str().unwrap()]);
        command.args(["--socket", network.socket().to_str().unwrap()]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let first = watch("40");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let begun = std::time::Instant::now();
    let second = watch("6");
    let first = first.wait_with_output().unwrap();
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    let said = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(!first.status.success() && said.contains("another watch of this gateway began"), "{said}");
    network.ping("64:ff9b::203.0.113.2");
    let second = second.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stdout).into_owned();
    assert!(second.status.success() && said.contains("64:ff9b::"), "{said}");
}
