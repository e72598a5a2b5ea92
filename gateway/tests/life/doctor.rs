//! `sixway doctor` next to packet filters as they are found on hosts.

use super::network::{Network, SIXWAY};

const CONFIG: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/28\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8:1::/64\"]\n\
                      pool = \"main\"\ntranslate_non_global = true\n";

/// What it says of a check, and the exit status.
fn doctor(network: &Network, check: &str) -> (String, i32) {
    let file = network.directory.join("gateway.toml");
    let output = network.on("gateway", SIXWAY, &["doctor", "-c", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let marker = format!("  {check}: ");
    let mut lines = said.lines().peekable();
    let mut found = String::new();
    while let Some(line) = lines.next() {
        if line.contains(&marker) {
            found += &format!("{line}\n");
            if let Some(cure) = lines.next_if(|next| next.trim_start().starts_with('→')) {
                found += &format!("{cure}\n");
            }
        }
    }
    assert!(!found.is_empty(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    (found, output.status.code().unwrap())
}

fn build() -> (Network, super::network::Running) {
    super::shared_pool::needs_nft();
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "203.0.113.2"]);
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "2001:db8:1::2"]);
    let gateway = network.start(CONFIG);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    (network, gateway)
}

fn rules(network: &Network, rules: &str) {
    let output = network.on("gateway", "nft", &[rules]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Carries out the cures that it names.
fn mend(network: &Network, said: &str) {
    let cures = said.lines().filter_map(|line| line.trim_start().strip_prefix("→ "));
    for cure in cures.flat_map(|cures| cures.split("; ")) {
        let output = network.on(
            "gateway",
            "sh",
            &["-c", &cure.replace("nft ", "nft '").replace(" accept", " accept'")],
        );
        assert!(output.status.success(), "{cure}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn without_other_programs_routes_are_known_and_the_packet_filter_is_not_checked() {
    let (network, _gateway) = build();
    let file = network.directory.join("gateway.toml");
    let arguments = ["PATH=/nowhere", SIXWAY, "doctor", "-c", file.to_str().unwrap()];
    let output = network.on("gateway", "env", &arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "routes: IPv4's default route leads to out0",
        "routes: 4 routes lead into sixway0",
        "not checked  packet filter: nft is not installed here",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn a_host_without_rules_is_fine() {
    let (network, _gateway) = build();
    assert_eq!(doctor(&network, "packet filter").0, "ok           packet filter: there are no rules\n");
    let (said, status) = doctor(&network, "routes");
    assert!(said.contains("ok           routes: IPv4's default route leads to out0"), "{said}");
    assert_eq!(status, 0, "{said}");
    let (said, _) = doctor(&network, "forwarding");
    assert_eq!(said, "ok           forwarding: in0, out0, sixway0 forward\n");
}

#[test]
fn a_default_drop_filter_is_found_with_the_rules_that_open_it_to_the_lan_alone() {
    let (network, _gateway) = build();
    // A rule that names the device is not enough: it is for another path.
    rules(
        &network,
        "table inet filter { chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; ct state invalid drop; iifname \"sixway0\" oifname \"out0\" accept; }; }",
    );
    let (said, status) = doctor(&network, "packet filter");
    assert_eq!(status, 1);
    assert!(
        said.contains(
            "FAULT        packet filter: inet filter forward drops IPv6 packets from in0 to sixway0"
        ),
        "{said}"
    );
    assert!(
        said.contains("→ nft insert rule inet filter forward iifname \"in0\" oifname \"sixway0\" accept"),
        "{said}"
    );
    assert!(!said.contains("IPv4 packets from sixway0 to out0"), "{said}");
    let output = network.on("client", "ping", &["-c", "1", "-W", "1", "64:ff9b::203.0.113.2"]);
    assert!(!output.status.success(), "it is true");
    for _ in 0..4 {
        let (said, _) = doctor(&network, "packet filter");
        mend(&network, &said);
    }
    let (said, status) = doctor(&network, "packet filter");
    assert!(said.starts_with("ok  ") && status == 0, "{said}");
    network.ping("64:ff9b::203.0.113.2");
    // The server's network got nothing.
    let listed = network.on("gateway", "nft", &["list", "ruleset"]).stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    assert!(
        !listed.contains("oifname \"sixway0\" accept\n")
            || listed.contains("iifname \"in0\" oifname \"sixway0\" accept"),
        "{listed}"
    );
}

#[test]
fn a_masquerade_behind_the_nat64_is_found() {
    let (network, _gateway) = build();
    rules(
        &network,
        "table ip nat { chain post { type nat hook postrouting priority 100; oifname \"out0\" masquerade; }; }",
    );
    // In the namespace of the trial the uplink has the address that it has here.
    let (said, _) = doctor(&network, "packet filter");
    assert!(
        said.contains(
            "warning      packet filter: IPv4 packets from sixway0 to out0 get another source address"
        ),
        "{said}"
    );
    assert!(
        said.contains("→ nft insert rule ip nat post iifname \"sixway0\" oifname \"out0\" accept"),
        "{said}"
    );
    mend(&network, &said);
    assert!(doctor(&network, "packet filter").0.starts_with("ok  "), "the cure is one that can be typed");
}

/// A DNS64 alone, which needs no device.
const WITHOUT_DEVICE: &str = "[dns64]\nlisten = [\"2001:db8:1::1\"]\nprefix = \"64:ff9b::/96\"\ntranslated_elsewhere = true\n\
                              [[dns64.upstream]]\naddress = \"203.0.113.2\"\n";

#[test]
fn a_gateway_without_a_device_that_runs_is_not_called_another_program() {
    let network = Network::build();
    let gateway = network.start(WITHOUT_DEVICE);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    assert!(!network.has_device());
    let (said, _) = doctor(&network, "listen");
    assert_eq!(said, "ok           listen: no other process has a port that the gateway listens at\n");
}

#[test]
fn a_teredo_client_whose_server_is_gone_is_a_fault_with_what_the_client_knows() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "203.0.113.2"]);
    network.ip(&["-n", &network.host("server"), "addr", "add", "80.64.79.1/32", "dev", "lo"]);
    let gateway = network
        .start("[teredo_client]\naddress = \"203.0.113.1\"\nservers = [{ address = \"80.64.79.1\" }]\n");
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    let (said, status) = doctor(&network, "teredo_client");
    let refused =
        "FAULT        teredo_client: teredo_client: nothing listens at UDP port 3544 of server 80.64.79.1";
    assert!(status == 1 && said.contains(refused), "{said}");
    let start = std::time::Instant::now();
    while !said_by(&network).contains("teredo_client has no address: no answer from server 80.64.79.1") {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{}", said_by(&network));
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let rule =
        "table inet filter { chain output { type filter hook output priority 0; udp dport 3544 drop; }; }";
    rules(&network, rule);
    let (said, _) = doctor(&network, "teredo_client");
    assert!(
        said.contains("the kernel does not send to server 80.64.79.1: Operation not permitted"),
        "{said}"
    );
}

fn said_by(network: &Network) -> String {
    doctor(network, "teredo_client").0
}

#[test]
fn rules_next_to_a_gateway_without_a_device_are_tried_out_when_they_change() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let gateway = network.start(WITHOUT_DEVICE);
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !is_so() {
            let said = gateway.said();
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "{what}: {said}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    };
    rules(
        &network,
        "table inet filter { chain input { type filter hook input priority 0; udp dport 53 drop; }; }",
    );
    let problem = "inet filter input drops queries from in0 to DNS64";
    until("a rule that drops", &|| network.show(&[]).contains(problem));
    rules(&network, "delete table inet filter");
    until("it is removed", &|| !network.show(&[]).contains(problem));
    assert!(gateway.said().contains("accepts the gateway's packets again"));
}

#[test]
fn rules_of_iptables_are_tried_too() {
    let (network, _gateway) = build();
    if !std::path::Path::new("/usr/sbin/iptables-nft").exists() {
        sixway_trial::ignore("needs iptables");
    }
    // As Docker leaves it: forwarding is dropped unless a rule of its own accepts.
    for rule in [
        "iptables -P FORWARD DROP",
        "iptables -N DOCKER-USER",
        "iptables -A DOCKER-USER -j RETURN",
        "iptables -A FORWARD -j DOCKER-USER",
        "iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    ] {
        assert!(network.on("gateway", "sh", &["-c", rule]).status.success(), "{rule}");
    }
    let (said, status) = doctor(&network, "packet filter");
    assert!(status == 1 && said.contains("ip filter FORWARD drops IPv4 packets from"), "{said}");
    for _ in 0..3 {
        let (said, _) = doctor(&network, "packet filter");
        let cures = said.lines().filter_map(|line| line.trim_start().strip_prefix("→ "));
        for cure in cures.flat_map(|cures| cures.split("; ")) {
            assert!(network.on("gateway", "sh", &["-c", cure]).status.success(), "{cure}");
        }
    }
    let (said, status) = doctor(&network, "packet filter");
    assert!(said.starts_with("ok  ") && status == 0, "{said}");
    network.ping("64:ff9b::203.0.113.2");
}

/// Rulesets in the manner of programs that people have: what the chain is that drops, and the ruleset. They let a LAN `in0` reach an uplink
/// `out0`, and nothing else.
const RULESETS: [(&str, &str, &str); 4] = [
    (
        "OpenWrt's fw4",
        "inet fw4",
        "table inet fw4 { chain forward { type filter hook forward priority filter; policy drop; ct state vmap { established : accept, related : accept }; iifname \"in0\" jump forward_lan; iifname \"out0\" jump forward_wan; jump handle_reject; }; \
         chain forward_lan { oifname \"out0\" accept; }; chain forward_wan { counter; }; chain handle_reject { meta l4proto tcp reject with tcp reset; reject; }; }",
    ),
    (
        "firewalld",
        "inet firewalld",
        "table inet firewalld { chain filter_FORWARD { type filter hook forward priority filter + 10; policy accept; \
         ct state { established, related } accept; ct status dnat accept; iifname \"lo\" accept; jump filter_FORWARD_POLICIES; ct state invalid drop; reject with icmpx admin-prohibited; }; \
         chain filter_FORWARD_POLICIES { iifname \"in0\" oifname \"out0\" accept; }; }",
    ),
    (
        "one that drops what is invalid",
        "inet filter",
        "table inet filter { chain forward { type filter hook forward priority 0; policy drop; ct state invalid drop; ct state established accept; iifname \"in0\" oifname \"out0\" accept; }; }",
    ),
    (
        "a server's",
        "inet filter",
        "table inet filter { chain input { type filter hook input priority 0; policy drop; iifname \"lo\" accept; meta l4proto ipv6-icmp accept; ct state established accept; }; \
         chain forward { type filter hook forward priority 0; policy drop; }; }",
    ),
];

#[test]
fn rulesets_of_known_programs_are_found_and_opened() {
    for (whose, chain, text) in RULESETS {
        let (network, _gateway) = build();
        rules(&network, text);
        let (said, status) = doctor(&network, "packet filter");
        assert!(status == 1 && said.contains(&format!("packet filter: {chain}")), "{whose}: {said}");
        for _ in 0..4 {
            let (said, _) = doctor(&network, "packet filter");
            mend(&network, &said);
        }
        let (said, status) = doctor(&network, "packet filter");
        assert!(said.starts_with("ok  ") && status == 0, "{whose}: {said}");
        network.ping("64:ff9b::203.0.113.2");
    }
}

/// Loads rules as iptables-save prints them.
fn restore(network: &Network, program: &str, rules: &str) {
    let file = network.directory.join("rules");
    std::fs::write(&file, rules).unwrap();
    let output = network.on("gateway", program, &[file.to_str().unwrap()]);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_rules_of_ufw_are_found_and_opened() {
    if !std::path::Path::new("/usr/sbin/ip6tables-nft-restore").exists() {
        sixway_trial::ignore("needs iptables");
    }
    let (network, _gateway) = build();
    restore(&network, "iptables-nft-restore", &super::ufw::ipv4());
    restore(&network, "ip6tables-nft-restore", &super::ufw::ipv6());
    let (said, status) = doctor(&network, "packet filter");
    assert!(status == 1, "{said}");
    assert!(said.contains("ip filter FORWARD drops IPv4 packets from sixway0 to out0"), "{said}");
    assert!(said.contains("ip6 filter FORWARD drops IPv6 packets from in0 to sixway0"), "{said}");
    for _ in 0..4 {
        let (said, _) = doctor(&network, "packet filter");
        let cures = said.lines().filter_map(|line| line.trim_start().strip_prefix("→ "));
        for cure in cures.flat_map(|cures| cures.split("; ")) {
            assert!(network.on("gateway", "sh", &["-c", cure]).status.success(), "{cure}");
        }
    }
    let (said, status) = doctor(&network, "packet filter");
    assert!(said.starts_with("ok  ") && status == 0, "{said}");
    network.ping("64:ff9b::203.0.113.2");
}

#[test]
fn a_filter_that_drops_errors_alone_is_found_and_opened() {
    let (network, _gateway) = build();
    rules(
        &network,
        "table inet filter { chain forward { type filter hook forward priority 0; policy accept; \
         icmp type destination-unreachable drop; icmpv6 type packet-too-big drop; }; }",
    );
    let (said, status) = doctor(&network, "packet filter");
    let expected = "inet filter forward drops Packet Too Big from sixway0 to in0; Fragmentation Needed from out0 to sixway0";
    assert!(status == 1 && said.contains(expected), "{said}");
    mend(&network, &said);
    let (said, _) = doctor(&network, "packet filter");
    assert!(said.starts_with("ok  "), "{said}");
}

#[test]
fn a_filter_that_drops_a_tunnels_packets_is_found_and_opened() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "203.0.113.2"]);
    let tunnel =
        "[tunnels]\nsteering = \"off\"\n[six_to_four]\nrole = \"router\"\naddress = \"203.0.113.1\"\n";
    let _gateway = network.start(tunnel);
    rules(
        &network,
        "table inet filter { chain input { type filter hook input priority 0; policy drop; iifname \"lo\" accept; meta l4proto ipv6-icmp accept; }; \
         chain forward { type filter hook forward priority 0; policy drop; }; }",
    );
    let (said, status) = doctor(&network, "packet filter");
    assert!(status == 1, "{said}");
    assert!(
        said.contains("inet filter input drops packets of protocol 41 from out0 to 203.0.113.1"),
        "{said}"
    );
    assert!(
        said.contains("packets of protocol 41 from sixway0 to out0; IPv6 packets from in0 to sixway0"),
        "{said}"
    );
    mend(&network, &said);
    let (said, _) = doctor(&network, "packet filter");
    assert!(said.starts_with("ok  "), "{said}");
}

#[test]
fn rules_of_the_former_iptables_are_tried_too() {
    let (network, _gateway) = build();
    let works = network.on("gateway", "iptables-legacy", &["-P", "FORWARD", "DROP"]);
    if !works.status.success() {
        sixway_trial::ignore("needs a kernel with the former iptables");
    }
    let (said, status) = doctor(&network, "packet filter");
    assert!(
        status == 1
            && said.contains("iptables-legacy filter FORWARD drops IPv4 packets from sixway0 to out0"),
        "{said}"
    );
    assert!(said.contains("→ iptables-legacy -I FORWARD -i sixway0 -o out0 -j ACCEPT"), "{said}");
}

#[test]
fn rules_that_are_in_the_way_are_a_warning_of_the_gateway() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    network.ip(&["-n", &network.host("gateway"), "route", "add", "default", "via", "203.0.113.2"]);
    let drops = "table inet filter { chain forward { type filter hook forward priority 0; policy drop; }; }";
    rules(&network, drops);
    let gateway = network.start(CONFIG);
    let warning = "the packet filter: inet filter forward drops IPv6 packets from in0 to sixway0";
    let start = std::time::Instant::now();
    while !gateway.said().contains(warning) {
        assert!(start.elapsed() < std::time::Duration::from_secs(15), "{}", gateway.said());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // Other rules are tried out again, after a while.
    rules(&network, "delete table inet filter");
    while !gateway.said().contains("accepts the gateway's packets again") {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{}", gateway.said());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(gateway.said().matches(warning).count(), 1);
}

#[test]
fn a_bug_report_has_what_is_needed_and_no_subscriber() {
    let network = Network::build();
    let _gateway = network.start(CONFIG);
    network.ping("64:ff9b::203.0.113.2");
    network.on("server", "ping", &["-c", "1", "-W", "1", "192.0.2.3"]);
    let (config, socket) = (network.directory.join("gateway.toml"), network.socket());
    let report = |name: &str, further: &[&str]| {
        let file = network.directory.join(name);
        let words = ["support", "-c", config.to_str().unwrap(), "--socket", socket.to_str().unwrap(), "-o"];
        let words = [&words[..], &[file.to_str().unwrap()], further].concat();
        let output = network.on("gateway", SIXWAY, &words);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap(), std::fs::read_to_string(file).unwrap())
    };
    let (code, said, text) = report("report.txt", &[]);
    assert!(code == Some(0) && said.contains("without sessions and bindings; read it before"), "{said}");
    for section in [
        "version",
        "configuration in force",
        "sixway doctor",
        "drops",
        "ip -6 route",
        "nft --terse list ruleset",
    ] {
        assert!(text.contains(&format!("==== {section}\n")), "{section}: {text}");
    }
    let file = std::fs::metadata(network.directory.join("report.txt")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777, 0o600);
    assert!(text.contains("\"reason\":\"NoBinding\"") && text.contains("64:ff9b::/96"));
    assert!(!text.contains("2001:db8:1::2"), "the client");
    let (_, said, text) = report("whole.txt", &["--with-sessions"]);
    assert!(said.contains("addresses of subscribers") && text.contains("[2001:db8:1::2]:"), "{said}");
    let (code, said, _) = report("report.txt", &[]);
    assert!(code == Some(2) && said.contains("exists; remove it"), "{said}");
}

#[test]
fn a_filter_that_drops_everything_is_found_where_there_are_many_paths() {
    let (network, gateway) = build();
    drop(gateway);
    let inside: Vec<String> = (0..8)
        .map(|number| {
            let prefix = format!("2001:db8:1:{number:x}00::/64");
            network.ip(&["-n", &network.host("gateway"), "route", "add", &prefix, "via", "2001:db8:1::2"]);
            format!("{prefix:?}")
        })
        .collect();
    let nat64 = |name: &str, prefix: &str| {
        format!(
            "[[nat64]]\nname = {name:?}\nprefix = {prefix:?}\ninside = [{}]\npool = {name:?}\n",
            inside.join(", ")
        )
    };
    let pool =
        |name: &str, addresses: &str| format!("[[pool]]\nname = {name:?}\naddresses = [{addresses:?}]\n");
    network.configure(&format!(
        "{}{}{}{}",
        pool("a", "192.0.2.0/28"),
        pool("b", "192.0.2.16/28"),
        nat64("a", "2001:db8:64::/96"),
        nat64("b", "2001:db8:65::/96")
    ));
    rules(
        &network,
        "table inet filter { chain forward { type filter hook forward priority 0; policy drop; }; }",
    );
    let (said, _) = doctor(&network, "packet filter");
    assert!(
        said.contains("FAULT        packet filter: inet filter forward drops IPv6 packets from in0"),
        "{said}"
    );
}

#[test]
fn the_rules_of_a_table_that_a_process_owns_are_tried() {
    let (network, _gateway) = build();
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", &network.host("gateway"), "nft", "-i"]);
    let mut owner =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let text = "add table inet owned { flags owner; }; add chain inet owned forward { type filter hook forward priority 0; policy drop; }\n";
    std::io::Write::write_all(owner.stdin.as_mut().unwrap(), text.as_bytes()).unwrap();
    let listed = || network.on("gateway", "nft", &["list", "ruleset"]).stdout;
    let begun = std::time::Instant::now();
    while !String::from_utf8_lossy(&listed()).contains("policy drop") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (said, status) = doctor(&network, "packet filter");
    let _ = owner.kill();
    let _ = owner.wait();
    assert!(status == 1 && said.contains("inet owned forward drops"), "{said}");
}

/// Addresses and routes of the gateway for mechanisms over IPv6, without an IPv4 uplink; the client has IPv4 unless it is not told.
fn ipv6_only_uplink(network: &Network, words: &[&str]) {
    let host = network.host("gateway");
    let all = ["address del 203.0.113.1/24 dev out0", "address add 2001:db8:99::1/64 dev out0 nodad"];
    let default = "-6 route add default via 2001:db8:99::2";
    for words in all.iter().chain(words).chain([&default]) {
        let all: Vec<&str> = ["-n", &host].into_iter().chain(words.split(' ')).collect();
        network.ip(&all);
    }
}

/// What the whole of it says about checks other than `mtu`, and the exit status.
fn all(network: &Network) -> (String, i32) {
    let file = network.directory.join("gateway.toml");
    let output = network.on("gateway", SIXWAY, &["doctor", "-c", file.to_str().unwrap()]);
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap())
}

const DROPS: &str =
    "table inet filter { chain forward { type filter hook forward priority 0; policy drop; }; }";

/// A host whose filter drops by default: each of these paths is named, and the rules that are named open all of them.
#[track_caller]
fn a_default_drop_is_found_and_opened(network: &Network, paths: &[&str]) {
    let (said, status) = all(network);
    // There is no AFTR, which is said.
    let warns = said.lines().any(|line| line.starts_with("warning") && !line.contains("  aftr: "));
    assert!(!said.contains("FAULT") && !warns && status == 0, "{said}");
    rules(network, DROPS);
    let (said, status) = doctor(network, "packet filter");
    assert!(status == 1 && said.contains("packet filter: inet filter forward drops "), "{said}");
    for path in paths {
        assert!(said.contains(path), "{path}: {said}");
    }
    for _ in 0..3 {
        let (said, _) = doctor(network, "packet filter");
        mend(network, &said);
    }
    let (said, status) = doctor(network, "packet filter");
    assert!(said.starts_with("ok  ") && status == 0, "{said}");
}

#[test]
fn a_b4_with_an_ipv6_only_uplink_is_fine_and_its_paths_are_opened_by_the_rules_that_are_named() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    ipv6_only_uplink(&network, &["address add 10.1.0.1/24 dev in0"]);
    let section = "[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"2001:db8:a::1\"\n";
    let _gateway = network.start_peer("gateway", section);
    let (said, _) = doctor(&network, "routes");
    assert!(said.contains("ok           routes: ds_lite: packets to the AFTR leave by out0"), "{said}");
    a_default_drop_is_found_and_opened(
        &network,
        &[
            "IPv4 in IPv6 from sixway0 to out0",
            "IPv4 in IPv6 from out0 to sixway0",
            "IPv4 packets from in0 to sixway0",
            "IPv4 packets from sixway0 to in0",
            "iifname \"out0\" oifname \"sixway0\" meta l4proto { 4, ipv6-icmp } accept",
        ],
    );
}

#[test]
fn a_native_default_route_next_to_a_b4_is_a_warning() {
    let network = Network::build();
    ipv6_only_uplink(&network, &["address add 10.1.0.1/24 dev in0", "route add default via 10.1.0.2"]);
    let section = "[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"2001:db8:a::1\"\n";
    let _gateway = network.start_peer("gateway", section);
    let (said, _) = doctor(&network, "routes");
    let expected = "warning      routes: IPv4's default route leads to in0, and has precedence over the B4's";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_b4_whose_uplink_has_no_ipv6_address_is_a_fault() {
    let network = Network::build();
    ipv6_only_uplink(&network, &["address add 10.1.0.1/24 dev in0"]);
    network.ip(&["-n", &network.host("gateway"), "address", "del", "2001:db8:99::1/64", "dev", "out0"]);
    let section = "[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"2001:db8:a::1\"\n";
    let _gateway = network.start_peer("gateway", section);
    let (said, status) = doctor(&network, "routes");
    let expected =
        "FAULT        routes: ds_lite: out0 has no global IPv6 address, so the softwire has no local end";
    assert!(said.contains(expected) && status == 1, "{said}");
}

#[test]
fn a_rule_that_lets_answers_of_a_b4_pass_is_enough() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    ipv6_only_uplink(&network, &["address add 10.1.0.1/24 dev in0"]);
    let section = "[ds_lite]\nrole = \"b4\"\ninterface = \"out0\"\naftr = \"2001:db8:a::1\"\n";
    let _gateway = network.start_peer("gateway", section);
    rules(
        &network,
        "table inet filter { chain forward { type filter hook forward priority 0; policy drop; \
         ct state established,related accept; iifname \"in0\" oifname \"sixway0\" accept; \
         oifname \"out0\" accept; iifname \"out0\" oifname \"sixway0\" meta l4proto { 4, ipv6-icmp } accept; }; }",
    );
    let (said, status) = doctor(&network, "packet filter");
    assert!(said.starts_with("ok  ") && status == 0, "{said}");
}

#[test]
fn a_b4_without_a_route_to_its_aftr_is_a_fault() {
    let network = Network::build();
    let section = "[ds_lite]\nrole = \"b4\"\nlocal = \"2001:db8:99::b4\"\naftr = \"2001:db8:a::1\"\n";
    let _gateway = network.start_peer("gateway", section);
    let (said, status) = doctor(&network, "routes");
    assert!(
        status == 1 && said.contains("ds_lite: there is no route to 2001:db8:a::1 of the AFTR"),
        "{said}"
    );
    assert!(!said.contains("there is no IPv4 default route"), "{said}");
}

#[test]
fn a_nat46_with_an_ipv6_only_uplink_is_fine_and_its_paths_are_opened_by_the_rules_that_are_named() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    ipv6_only_uplink(&network, &["address add 10.1.0.1/24 dev in0"]);
    let section = "[nat46]\nclients = [\"10.1.0.0/24\"]\npool = \"192.168.46.0/24\"\nprefix = \"2001:db8:46::/96\"\ntranslate_non_global = true\n[[nat46.static]]\naddress = \"192.168.46.1\"\nserver = \"2001:db8:99::2\"\n";
    let _gateway = network.start(section);
    a_default_drop_is_found_and_opened(
        &network,
        &[
            "IPv4 packets from in0 to sixway0",
            "IPv4 packets from sixway0 to in0",
            "IPv6 packets from sixway0 to out0",
            "IPv6 packets from out0 to sixway0",
            "iifname \"out0\" oifname \"sixway0\" ip6 daddr 2001:db8:46::/96 accept",
        ],
    );
}

#[test]
fn an_aftr_is_fine_and_its_paths_are_opened_by_the_rules_that_are_named() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let host = network.host("gateway");
    network.ip(&["-n", &host, "route", "add", "default", "via", "203.0.113.2"]);
    network.ip(&["-n", &host, "route", "add", "2001:db8:b4::/48", "via", "2001:db8:1::2"]);
    let section = "[[pool]]\nname = \"public\"\naddresses = [\"192.0.2.0/28\"]\n[ds_lite]\nrole = \"aftr\"\naddresses = [\"2001:db8:a::1\"]\nclients = [\"2001:db8:b4::/48\"]\npool = \"public\"\n";
    let _gateway = network.start(section);
    a_default_drop_is_found_and_opened(
        &network,
        &[
            "IPv4 in IPv6 from sixway0 to in0",
            "IPv4 in IPv6 from in0 to sixway0",
            "IPv4 packets from sixway0 to out0",
            "IPv4 packets from out0 to sixway0",
        ],
    );
}

/// Rules that name the pool's addresses let its packets pass, and drop the errors that the gateway sends from its own address.
#[test]
fn a_filter_that_drops_the_gateways_own_errors_is_found_and_a_rule_for_them_is_named() {
    super::shared_pool::needs_nft();
    let network = Network::build();
    let host = network.host("gateway");
    network.ip(&["-n", &host, "route", "add", "default", "via", "203.0.113.2"]);
    network.ip(&["-n", &host, "route", "add", "2001:db8:b4::/48", "via", "2001:db8:1::2"]);
    let section = "[[pool]]\nname = \"public\"\naddresses = [\"192.0.2.0/28\"]\n[ds_lite]\nrole = \"aftr\"\naddresses = [\"2001:db8:a::1\"]\nclients = [\"2001:db8:b4::/48\"]\npool = \"public\"\n";
    let _gateway = network.start(section);
    let filter = |more: &str| {
        network.on("gateway", "nft", &["flush ruleset"]);
        rules(
            &network,
            &format!(
                "table inet filter {{ chain forward {{ type filter hook forward priority 0; policy drop; {more} \
                 meta l4proto {{ 4, ipv6-icmp }} accept; ip saddr 192.0.2.0/28 accept; ip daddr 192.0.2.0/28 accept; }}; }}"
            ),
        );
        doctor(&network, "packet filter")
    };
    let (said, status) = filter("");
    let what = "FAULT        packet filter: inet filter forward drops the gateway's own Fragmentation Needed from sixway0 to out0\n";
    assert!(said.starts_with(what) && status == 1, "{said}");
    let cure = "nft insert rule inet filter forward iifname \"sixway0\" oifname \"out0\" ip saddr 192.0.2.254 icmp type destination-unreachable accept";
    assert!(said.contains(cure), "{said}");
    mend(&network, &said);
    assert!(doctor(&network, "packet filter").0.starts_with("ok  "), "{said}");
    // The packet that an error is about came in there: the error is related to its connection.
    let (said, status) = filter("ct state established,related accept;");
    assert!(said.starts_with("ok  ") && status == 0, "{said}");
}
