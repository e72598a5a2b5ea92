//! What a service manager and a group of onlookers see of a gateway.

use super::NAT64;
use super::network::{Network, SIXWAY};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

#[test]
fn the_service_manager_is_told_when_it_is_ready_alive_reloading_and_stopping() {
    let network = Network::build();
    let path = network.directory.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
    let variable = [("NOTIFY_SOCKET", path.to_str().unwrap())];
    let mut gateway = network.begin_with_environment(NAT64, &variable);
    let told = || {
        let mut buffer = [0; 500];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    // What comes, until this.
    let until = |word: &str| {
        let mut all = String::new();
        while !all.contains(word) {
            all += &told();
        }
        all
    };
    let ready = until("READY=1");
    assert!(ready.contains(&format!("MAINPID={}", gateway.number())), "{ready}");
    until("WATCHDOG=1");
    gateway.signal("HUP");
    until("RELOADING=1");
    assert!(until("READY=1").contains(&format!("MAINPID={}", gateway.number())));
    gateway.signal("TERM");
    until("STOPPING=1");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn warnings_of_the_start_are_in_the_format_of_the_log() {
    let network = Network::build();
    let text = format!("log_format = \"json\"\n{NAT64}");
    let mut gateway = network.begin_with_environment(&text, &[]);
    let start = std::time::Instant::now();
    while !gateway.said().contains("ready in") {
        assert!(start.elapsed() < Duration::from_secs(10), "{}", gateway.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0);
    let said = gateway.said();
    let warned = said.lines().find(|line| line.contains("nat64.inside")).unwrap();
    let line: serde_json::Value = serde_json::from_str(warned).unwrap();
    assert_eq!(line["level"], "WARN");
    assert!(line["message"].as_str().unwrap().contains("is not set"), "{line}");
}

#[test]
fn members_of_the_admin_group_may_look_and_change_nothing() {
    let network = Network::build();
    // "daemon" is a user and a group of every Debian; "nobody" is not in it.
    let mut gateway = network.start_in_group("daemon", NAT64);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    // The directory is the test's own.
    assert!(Command::new("chmod").args(["711"]).arg(&network.directory).status().unwrap().success());
    let copy = network.directory.join("sixway");
    std::fs::copy(SIXWAY, &copy).unwrap();
    let as_user = |user: &str, arguments: &[&str]| {
        let number = |kind| {
            let output = Command::new("id").args([kind, user]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
        };
        let mut command = Command::new(&copy);
        command.args(arguments).arg("--socket").arg(network.socket()).uid(number("-u")).gid(number("-g"));
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (shown, said) = as_user("daemon", &["show"]);
    assert!(shown && said.contains("nat64"), "{said}");
    let (done, said) = as_user("daemon", &["dns64", "flush", "--all"]);
    assert!(!done && said.contains("may look and not change anything"), "{said}");
    for verb in ["drain", "undrain", "add", "remove"] {
        let (done, said) = as_user("daemon", &["pool", verb, "main", "192.0.2.4/30"]);
        assert!(!done && said.contains("may look and not change anything"), "{verb}: {said}");
    }
    let (shown, said) = as_user("daemon", &["show", "pools"]);
    assert!(shown && said.contains("main"), "{said}");
    network.on("server", "ping", &["-c", "1", "-W", "1", "192.0.2.3"]);
    let (shown, said) = as_user("daemon", &["show", "drops"]);
    assert!(shown && said.contains("203.0.113.0/24") && !said.contains("203.0.113.2"), "{said}");
    // It is read on another host than the gateway's.
    let config = network.directory.join("other.toml");
    std::fs::write(&config, NAT64.replace("192.0.2.0/28", "198.51.100.0/28")).unwrap();
    let (shown, said) = as_user("daemon", &["trace", "--live", "-c", config.to_str().unwrap()]);
    assert!(!shown && said.contains("may look and not change anything"), "{said}");
    let (shown, said) = as_user("nobody", &["show"]);
    assert!(!shown && !said.contains("nat64"), "{said}");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());

    let mut refused = network.start_in_group("no-such-group", NAT64);
    assert_eq!(refused.end(), 1);
    assert!(
        refused.said().contains("there is no group no-such-group; create it: groupadd"),
        "{}",
        refused.said()
    );
}

#[test]
fn members_of_the_admin_group_do_not_keep_root_from_the_gateway() {
    let network = Network::build();
    let gateway = network.start_in_group("daemon", NAT64);
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    assert!(Command::new("chmod").args(["711"]).arg(&network.directory).status().unwrap().success());
    let many = "import socket, sys, time\nopen = []\n\
                for _ in range(100):\n    one = socket.socket(socket.AF_UNIX); one.connect(sys.argv[1]); open.append(one)\n\
                print('open', flush=True); time.sleep(60)\n";
    let mut member = Command::new("python3");
    member.args(["-c", many]).arg(network.socket()).uid(1).gid(1).stdout(std::process::Stdio::piped());
    let mut member = member.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(member.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "open\n");
    let begun = std::time::Instant::now();
    assert!(network.show(&[]).contains("nat64"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let _ = member.kill();
    let _ = member.wait();
}

/// A line of the status of a thread with this name: proc(5).
fn status_of(process: u32, thread: &str, line: &str) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let statuses = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let named = format!("Name:\t{thread}\n");
    let status = statuses.into_iter().find(|status| status.starts_with(&named)).unwrap();
    status.lines().find_map(|found| found.strip_prefix(line)).unwrap().trim().to_owned()
}

#[test]
fn threads_that_handle_packets_and_queries_have_no_privileges() {
    let network = Network::build();
    let dns64 = "[dns64]\nlisten = [\"[2001:db8:1::1]:53\"]\nupstream = [{ address = \"203.0.113.2\" }]\n";
    let mut gateway = network.start(&format!("{NAT64}{dns64}"));
    assert!(gateway.said().contains("ready in"), "{}", gateway.said());
    network.ping("64:ff9b::203.0.113.2");
    for thread in ["worker-0", "worker-1", "dns64-0"] {
        let line = |line| status_of(gateway.number(), thread, line);
        assert_eq!((line("CapEff:"), line("CapPrm:")), ("0".repeat(16), "0".repeat(16)), "{thread}");
        assert_eq!((line("NoNewPrivs:"), line("Seccomp:")), ("1".into(), "2".into()), "{thread}");
    }
    // The ports below 1024 that appear later are bound by this one.
    assert_eq!(status_of(gateway.number(), "dns-streams", "CapEff:"), format!("{:016x}", 1 << 10));
    // What has to change the host still can: a reload, which becomes another program if the number of threads differs.
    network.configure(&format!("{NAT64}{dns64}threads = 2\n"));
    gateway.signal("HUP");
    let start = std::time::Instant::now();
    while gateway.said().matches("ready in").count() < 2 {
        assert!(start.elapsed() < Duration::from_secs(10), "{}", gateway.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    network.ping("64:ff9b::203.0.113.2");
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
}

#[test]
fn a_device_node_that_may_not_be_opened_is_not_called_a_missing_capability() {
    let network = Network::build();
    let config = network.directory.join("closed.toml");
    let socket = network.directory.join("closed.sock");
    let text = format!(
        "[gateway]\nname = \"life-closed-{}\"\nadmin_socket = {socket:?}\nipv4_address = \"198.51.100.9\"\n\
         ipv6_address = \"2001:db8::fe\"\n[siit]\nprefix = \"2001:db8:64::/96\"\n",
        std::process::id()
    );
    std::fs::write(&config, text).unwrap();
    let script = "mount -t tmpfs tmpfs /dev/net && mknod /dev/net/tun c 10 200 && chmod 0 /dev/net/tun && \
                  exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search \"$@\"";
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", script, "sh", SIXWAY, "run", "-c"])
        .arg(&config)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/dev/net/tun may not be opened") && !said.contains("CAP_NET_ADMIN"), "{said}");
}

/// The start of a gateway whose /proc/sys is read-only, in a network namespace with these settings: what it said.
fn start_with_read_only_settings(network: &Network, settings: &str) -> String {
    let name = format!("life-closed-{}", std::process::id());
    let config = network.directory.join("closed.toml");
    let socket = network.directory.join("closed.sock");
    let text = format!(
        "[gateway]\nname = {name:?}\nadmin_socket = {socket:?}\nworkers = 1\n[siit]\nprefix = \"2001:db8:64::/96\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let script = format!(
        "for one in {settings}; do echo ${{one#*=}} > /proc/sys/net/${{one%=*}}; done; \
         mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec timeout 2 \"$@\""
    );
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", &script, "sh", SIXWAY, "run", "-c"])
        .arg(&config)
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn where_settings_are_read_only_the_gateway_starts_with_those_of_new_devices_or_names_what_is_missing() {
    let network = Network::build();
    let forward = "ipv4/ip_forward=1 ipv6/conf/all/forwarding=1 ipv6/conf/default/forwarding=1";
    let said = start_with_read_only_settings(&network, forward);
    let missing = "--sysctl net.ipv4.conf.default.accept_local=1 --sysctl net.ipv6.conf.default.addr_gen_mode=1 \
                   --sysctl net.ipv6.conf.default.accept_ra=0";
    assert!(said.contains("/proc/sys is read-only, as in a container") && said.contains(missing), "{said}");
    let all = format!(
        "{forward} ipv4/conf/default/accept_local=1 ipv6/conf/default/addr_gen_mode=1 ipv6/conf/default/accept_ra=0"
    );
    let said = start_with_read_only_settings(&network, &all);
    assert!(said.contains("ready in"), "{said}");
}
