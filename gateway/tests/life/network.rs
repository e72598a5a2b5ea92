//! Three hosts in namespaces, and gateways on them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub const SIXWAY: &str = env!("CARGO_BIN_EXE_sixway");

/// Three hosts, a client, a gateway and a server, that vanish with this.
pub struct Network {
    suffix: String,
    pub directory: PathBuf,
}

impl Network {
    /// The network; where there can be none, the test is ignored.
    pub fn build() -> Self {
        let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let ip = Command::new("ip").arg("-V").output().is_ok();
        if !root || !ip || !PathBuf::from("/dev/net/tun").exists() {
            sixway_trial::ignore("needs root, ip and /dev/net/tun");
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
        network
    }

    pub fn host(&self, name: &str) -> String {
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

    pub fn ip(&self, arguments: &[&str]) -> String {
        let output = Command::new("ip").args(arguments).output().unwrap();
        assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn on(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        let host = self.host(host);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &host, program]).args(arguments).output().unwrap()
    }

    /// The gateway's settings that sixway may change.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let script = "for f in /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/rp_filter \
                      /proc/sys/net/ipv6/conf/*/forwarding /proc/sys/net/ipv6/conf/*/accept_ra; do echo $f $(cat $f); done";
        let output = self.on("gateway", "sh", &["-c", script]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split_once(' ')).map(|(f, v)| (f.into(), v.into())).collect()
    }

    pub fn set(&self, path: &str, value: &str) {
        assert!(
            self.on("gateway", "sh", &["-c", &format!("echo {value} > /proc/sys/net/{path}")])
                .status
                .success()
        );
    }

    /// The gateway's routes, without those of link-local addresses, which come when a wire is found to be up.
    pub fn routes(&self) -> Vec<String> {
        let gateway = self.host("gateway");
        let text = self.ip(&["-n", &gateway, "-4", "route"]) + &self.ip(&["-n", &gateway, "-6", "route"]);
        text.lines().filter(|line| !line.starts_with("fe80")).map(Into::into).collect()
    }

    pub fn has_device(&self) -> bool {
        self.ip(&["-n", &self.host("gateway"), "-br", "link"]).contains("sixway0")
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("gw.sock")
    }

    /// Where this network's gateways pin what outlives them.
    pub fn pin_path(&self) -> PathBuf {
        self.directory.join("bpf")
    }

    /// The gateway's folder there.
    pub fn pins(&self) -> PathBuf {
        self.pin_path().join(format!("life-{}", self.suffix))
    }

    /// What is pinned there.
    pub fn pinned(&self) -> Vec<String> {
        let entries = fs::read_dir(self.pins()).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub fn state(&self) -> PathBuf {
        PathBuf::from(format!("/run/sixway/life-{}.state", self.suffix))
    }

    /// Starts a gateway and waits until it is ready, or until it has ended.
    pub fn start(&self, mechanisms: &str) -> Running {
        self.start_with(mechanisms, &[])
    }

    /// The same, with further arguments of `sixway run`.
    pub fn start_with(&self, mechanisms: &str, arguments: &[&str]) -> Running {
        self.begin_with(mechanisms, arguments).ready()
    }

    /// The same, not waited for.
    pub fn begin_with(&self, mechanisms: &str, arguments: &[&str]) -> Running {
        self.begin_on("gateway", "gateway", &self.text(mechanisms), arguments)
    }

    /// Starts a gateway with these environment variables, not waited for.
    pub fn begin_with_environment(&self, mechanisms: &str, environment: &[(&str, &str)]) -> Running {
        let files = ("gateway", "gateway");
        self.begin_program(Path::new(SIXWAY), files, &self.text(mechanisms), &[], environment)
    }

    /// Starts a gateway at which the members of a group may look.
    pub fn start_in_group(&self, group: &str, mechanisms: &str) -> Running {
        let text = self.text(mechanisms);
        let text = text.replacen("workers = 2", &format!("workers = 2\nadmin_group = {group:?}"), 1);
        self.begin_on("gateway", "gateway", &text, &[]).ready()
    }

    /// Starts a gateway of another program.
    pub fn start_program(&self, program: &Path, mechanisms: &str, arguments: &[&str]) -> Running {
        let files = ("gateway", "gateway");
        self.begin_program(program, files, &self.text(mechanisms), arguments, &[]).ready()
    }

    /// Writes another configuration for the gateway that runs.
    pub fn configure(&self, mechanisms: &str) {
        fs::write(self.directory.join("gateway.toml"), self.text(mechanisms)).unwrap();
    }

    /// The gateway's configuration.
    fn text(&self, mechanisms: &str) -> String {
        format!(
            "[gateway]\nname = \"life-{}\"\nadmin_socket = {:?}\nipv4_address = \"192.0.2.254\"\n\
             ipv6_address = \"2001:db8::fe\"\nworkers = 2\n{mechanisms}",
            self.suffix,
            self.socket()
        )
    }

    /// Starts a second sixway next to the gateway, with a name and a device of its own.
    pub fn start_second(&self, mechanisms: &str) -> Running {
        let socket = self.directory.join("second.sock");
        let name = format!("life-second-{}", self.suffix);
        let text = format!(
            "[gateway]\nname = {name:?}\nadmin_socket = {socket:?}\nworkers = 1\n[tun]\nname = \"sixway1\"\n{mechanisms}"
        );
        self.begin_on("gateway", "second", &text, &[]).ready()
    }

    /// Starts sixway on another host, with a name of its own.
    pub fn start_peer(&self, host: &str, mechanisms: &str) -> Running {
        let socket = self.directory.join(format!("{host}.sock"));
        let name = format!("life-{host}-{}", self.suffix);
        let text =
            format!("[gateway]\nname = {name:?}\nadmin_socket = {socket:?}\nworkers = 1\n{mechanisms}");
        self.begin_on(host, host, &text, &[]).ready()
    }

    fn begin_on(&self, host: &str, files: &str, text: &str, arguments: &[&str]) -> Running {
        self.begin_program(Path::new(SIXWAY), (host, files), text, arguments, &[])
    }

    fn begin_program(
        &self,
        program: &Path,
        (host, files): (&str, &str),
        text: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Running {
        let configuration = self.directory.join(format!("{files}.toml"));
        fs::write(&configuration, text).unwrap();
        // A gateway and the one that takes over from it each say their own.
        let number = fs::read_dir(&self.directory).unwrap().count();
        let said = self.directory.join(format!("{files}-{number}.said"));
        let out = fs::File::create(&said).unwrap();
        let errors = out.try_clone().unwrap();
        // Unlike `ip netns exec`, this changes the network alone: what is mounted outlives the process.
        let child = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{}", self.host(host)))
            .arg(program)
            .args(["run", "-c"])
            .arg(configuration)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .unwrap();
        Running { child, said }
    }

    pub fn show(&self, arguments: &[&str]) -> String {
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

    pub fn ping(&self, target: &str) {
        self.ping_from("client", target);
    }

    pub fn ping_from(&self, host: &str, target: &str) {
        let output = self.on(host, "ping", &["-c", "3", "-i", "0.2", "-W", "2", target]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(" 0% packet loss"), "{said}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in ["client", "gateway", "server", "second"] {
            let _ = fs::remove_file(format!("/var/lib/sixway/life-{host}-{}.advertised", self.suffix));
            let _ = Command::new("ip").args(["netns", "del", &self.host(host)]).output();
        }
        let _ = Command::new("umount").arg(self.pin_path()).output();
        let _ = fs::remove_dir_all(&self.directory);
        for entry in fs::read_dir("/run/sixway").into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(&format!("-{}.", self.suffix)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_file(format!("/var/lib/sixway/life-{}.advertised", self.suffix));
    }
}

/// A gateway that runs, or has ended. It is killed when a test fails.
pub struct Running {
    child: Child,
    said: PathBuf,
}

impl Running {
    /// Waits until it is, or has ended.
    fn ready(mut self) -> Self {
        let patience = Instant::now() + Duration::from_secs(10);
        while !self.said().contains("ready in") && self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < patience, "not ready: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Whether SIGINT does not end it by itself: proc(5), `SigBlk`.
    pub fn listens(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
    }

    /// The process's number.
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// `nsenter` becomes what it executes: the child is the gateway.
    pub fn signal(&self, name: &str) {
        let number = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &number]).status().unwrap().success();
        assert!(sent, "it has ended: {}", self.said());
    }

    /// Waits for the end and returns the exit status; -1 if a signal ended it.
    pub fn end(&mut self) -> i32 {
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
