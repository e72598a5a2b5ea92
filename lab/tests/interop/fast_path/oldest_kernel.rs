//! The oldest kernel that we can run: Linux 6.1 as a guest, with client, gateway and server in namespaces of its own. It has no JIT, no TCX
//! and no `BPF_F_ADJ_ROOM_DECAP_L3`, and it has VLANs and sit, which this machine's kernel may lack.
//!
//! ```text
//! client ────────────────────────── guest (sixway) ────────────────────────── server
//! up0                         in0                   out0                        up0
//! ```

use super::load::NAT44;
use crate::Interop;
use crate::datagrams::pattern;
use serde_json::Value;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::Hook;
use sixway_lab::forwarder::{NAT64, SIIT};
use sixway_lab::kernel_peer::{Features, KernelPeer};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::time::Duration;

const NEEDS: &[&str] = &["sixway", "linux.uml", "busybox", "curl", "iperf3", "ping", "ethtool", "tcpdump"];

pub const TESTS: &[Interop] = &[
    Interop::new("linux_6_1_carries_packets_on_tc", NEEDS, || carries_packets_on(Hook::Tc)),
    Interop::new("linux_6_1_carries_packets_on_xdp", NEEDS, || carries_packets_on(Hook::Xdp)),
];

const SHORT: Duration = Duration::from_secs(30);

/// The server that is reached through a tunnel.
const NATIVE: &str = "2001:db8:2::2";

/// Octets of the page that each host serves.
const PAGE: usize = 200_000;

struct Guest<'a> {
    peer: KernelPeer<'a>,
    network: &'a Network,
    hook: Hook,
}

/// The last label of a device with a tag, on the client's and on the server's side.
type Tags = Option<[u16; 2]>;

fn carries_packets_on(hook: Hook) -> Result<()> {
    let network = Network::new(&["guest"])?;
    let modules = vec!["veth", "tun", "8021q", "sch_ingress", "cls_bpf", "sit"];
    let features = Features { modules, memory: 192, ..Features::default() };
    let peer = KernelPeer::start_with(&network, "guest", &[], &features)?;
    let guest = Guest { peer, network: &network, hook };
    guest.prepare()?;
    for tags in [None, Some([10, 20])] {
        guest.native_and_ipv4(tags)?;
        guest.gateway("NAT64", NAT64, |guest| guest.carried("[64:ff9b::203.0.113.2]", None, tags))?;
        guest.gateway("NAT44", NAT44, |guest| guest.carried("203.0.113.2", None, tags))?;
        let client = Some("192.0.2.2");
        guest.gateway("SIIT", SIIT, |guest| guest.carried("[2001:db8:64::203.0.113.2]", client, tags))?;
        guest.six_to_four_and_native(tags)?;
        let client = Some("[2002:c000:208::1]");
        guest.gateway("6to4", RELAY, |guest| guest.carried(&format!("[{NATIVE}]"), client, tags))?;
    }
    guest.every_mechanism()?;
    guest.no_checksum_is_wrong()
}

/// Mechanisms of every kind: the verifier adds up what the stack of each function takes that is reached in their programs.
const EVERY: &str = r#"[tun]
name = "sixway0"

[[pool]]
name = "main"
addresses = ["198.51.100.0/29"]

[[pool]]
name = "public"
addresses = ["198.51.100.8/29"]

[nat64]
prefix = "2001:db8:64::/96"
inside = ["2001:db8:1::/48"]
pool = "main"

[nat44]
inside = ["192.168.0.0/16"]
pool = "public"

[siit]
prefix = "2001:db8:65::/96"

[six_to_four]
role = "relay"
address = "192.0.2.1"

[six_rd]
role = "border_relay"
prefix = "2001:db8:a000::/36"
ipv4_mask_length = 8
ipv4_common = "10.0.0.0/8"
address = "192.0.2.1"

[isatap]
role = "router"
address = "192.0.2.1"
prefix = "2001:db8:15::/64"

[[tunnel]]
local = "192.0.2.1"
remote = "192.0.2.9"
prefixes = ["2001:db8:9::/48"]
strict_sources = true

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

const RELAY: &str = r#"[tun]
name = "sixway0"

[six_to_four]
role = "relay"
address = "192.0.2.1"
mtu = 1480

[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8::fe"
"#;

impl Guest<'_> {
    fn told(&self, what: &str, failure: Failure) -> Failure {
        Failure::Unexpected(format!("{what}, {}: {failure}", self.hook.name()))
    }

    fn sh(&self, script: &str) -> Result<String> {
        Ok(self.peer.run_script(&format!("set -e; export TMPDIR=/run\n{script}"), SHORT)?.succeeded()?.stdout)
    }

    /// Hosts, links and what the hosts serve.
    fn prepare(&self) -> Result<()> {
        let page: String = pattern(PAGE).iter().map(|octet| char::from(b'a' + octet % 26)).collect();
        self.network.file("index.html", &page)?;
        let folder = self.network.folder().display();
        self.sh(&format!(
            "mkdir -p /run/netns /run/sixway
             echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; echo 1 >/proc/sys/net/ipv4/ip_forward
             for host in client server; do
                 ip netns add $host
                 ip -n $host link set lo up
             done
             ip link add in0 type veth peer name up0 netns client
             ip link add out0 type veth peer name up0 netns server
             for device in in0 out0; do
                 ip link set $device up
                 ip link add link $device name $device.10 type vlan id 10
                 ip link add link $device name $device.20 type vlan id 20
             done
             for host in client server; do
                 ip -n $host link set up0 up
                 ip netns exec $host ethtool -K up0 tx off gro on >/dev/null
                 ip -n $host link add link up0 name up0.10 type vlan id 10
                 ip -n $host link add link up0 name up0.20 type vlan id 20
                 ip netns exec $host busybox httpd -p '[::]:80' -h {folder}
             done
             ip netns exec server iperf3 -s -D >/dev/null"
        ))
        .map(drop)
    }

    /// Takes all addresses away, and names the devices that are to be used.
    fn anew(&self, tags: Tags) -> Result<[String; 2]> {
        self.sh("for device in in0 in0.10 out0 out0.20; do ip address flush dev $device scope global; done
             for device in up0 up0.10 up0.20; do
                 ip -n client address flush dev $device scope global
                 ip -n server address flush dev $device scope global
             done
             ip -n client link del six 2>/dev/null || true")?;
        let [client, server] = tags.map_or_else(Default::default, |tags| tags.map(|tag| format!(".{tag}")));
        self.sh(&format!(
            "ip -n client link set up0{client} up; ip link set in0{client} up
             ip -n server link set up0{server} up; ip link set out0{server} up"
        ))?;
        Ok([client, server])
    }

    fn native_and_ipv4(&self, tags: Tags) -> Result<()> {
        let [client, server] = self.anew(tags)?;
        self.sh(&format!(
            "ip -n client address add 2001:db8:1::2/64 dev up0{client} nodad
             ip address add 2001:db8:1::1/64 dev in0{client} nodad
             ip address add 203.0.113.1/24 dev out0{server}
             ip -n server address add 203.0.113.2/24 dev up0{server}
             ip -n client -6 route replace default via 2001:db8:1::1
             ip -n client address add 192.168.1.2/24 dev up0{client}
             ip address add 192.168.1.1/24 dev in0{client}
             ip -n client route replace default via 192.168.1.1
             ip -n server route replace default via 203.0.113.1"
        ))
        .map(drop)
    }

    fn six_to_four_and_native(&self, tags: Tags) -> Result<()> {
        let [client, server] = self.anew(tags)?;
        self.sh(&format!(
            "ip -n client address add 192.0.2.8/24 dev up0{client}
             ip address add 192.0.2.1/24 dev in0{client}
             ip address add 2001:db8:2::1/64 dev out0{server} nodad
             ip -n server address add {NATIVE}/64 dev up0{server} nodad
             ip -n client tunnel add six mode sit remote any local 192.0.2.8 ttl 64
             ip -n client address add 2002:c000:208::1/16 dev six nodad
             ip -n client link set six up mtu 1480
             ip -n client -6 route replace default via ::192.0.2.1 dev six
             ip -n server -6 route replace default via 2001:db8:2::1"
        ))
        .map(drop)
    }

    /// The kernel takes the programs: the gateway does not start without them. In the driver one mechanism has to be left out: with all seven, this
    /// kernel's verifier goes through more than the million instructions that it allows.
    fn every_mechanism(&self) -> Result<()> {
        self.six_to_four_and_native(None)?;
        let isatap = EVERY.split("\n\n").find(|section| section.starts_with("[isatap]")).unwrap_or_default();
        let (what, configuration) = match self.hook {
            Hook::Tc => ("every", EVERY.to_owned()),
            Hook::Xdp => ("every_but_isatap", EVERY.replace(isatap, "")),
        };
        self.start(what, &configuration)?;
        self.stop()
    }

    fn start(&self, what: &str, configuration: &str) -> Result<()> {
        let own = "[gateway]\nname = \"guest\"\nadmin_socket = \"/run/sixway/guest.sock\"\nworkers = 1\n";
        let section = self.hook.section_with_room(1_024);
        let configuration =
            format!("{}{section}notrack = false\n", configuration.replace("[gateway]\n", own));
        let file = self.network.file(&format!("{what}.toml"), &configuration)?;
        let (sixway, file) = (sixway()?, file.display());
        let sixway = sixway.display();
        let start = format!(
            "{sixway} run -c {file} >/run/sixway/log 2>&1 &
             echo $! >/run/sixway/pid
             for i in $(seq 100); do
                 grep -q ready /run/sixway/log && exit 0
                 kill -0 $(cat /run/sixway/pid) 2>/dev/null || break
                 sleep 0.1
             done
             cat /run/sixway/log >&2; exit 1"
        );
        self.sh(&start).map(drop).map_err(|failure| self.told(what, failure))
    }

    fn stop(&self) -> Result<()> {
        let script = "kill $(cat /run/sixway/pid); while kill -0 $(cat /run/sixway/pid) 2>/dev/null; do sleep 0.05; done";
        self.sh(script).map(drop)
    }

    /// Does something while a gateway runs, which carries it by the fast path.
    fn gateway(&self, what: &str, configuration: &str, work: impl Fn(&Self) -> Result<()>) -> Result<()> {
        self.start(what, configuration)?;
        let sixway = sixway()?;
        let sixway = sixway.display();
        let done = work(self).map_err(|failure| self.told(what, failure));
        let shown = self.sh(&format!("{sixway} show fastpath --json --socket /run/sixway/guest.sock"));
        self.stop()?;
        let log = self.sh("cat /run/sixway/log").unwrap_or_default();
        done.map_err(|failure| Failure::Unexpected(format!("{failure}\n{log}")))?;
        let shown: Value = serde_json::from_str(&shown?).unwrap_or_default();
        match sixway_lab::fast_path::carried_of(&shown) {
            500.. => Ok(()),
            few => Err(Failure::Unexpected(format!(
                "{what}, {}: the fast path carried {few} packets\n{log}{shown}",
                self.hook.name()
            ))),
        }
    }

    /// Pages, datagrams, pings and GSO packets to the server; pages and pings from it too if the client can be reached.
    fn carried(&self, server: &str, client: Option<&str>, tags: Tags) -> Result<()> {
        self.page("client", server)?;
        let target = server.trim_matches(['[', ']']);
        self.sh(&format!("ip netns exec client ping -n -c 5 -i 0.05 -W 2 {target}"))?;
        for way in ["", "-R"] {
            let said = self.sh(&format!(
                "ip netns exec client iperf3 -c {target} -u -b 2M -l 1000 -k 250 -J --connect-timeout 3000 {way}"
            ))?;
            let said: Value = serde_json::from_str(&said).unwrap_or_default();
            let figure = |name: &str| said["end"]["sum"][name].as_u64();
            let (sent, lost) = (figure("packets").unwrap_or(0), figure("lost_packets").unwrap_or(u64::MAX));
            // A guest has one slow CPU: what its receiver has no time for is lost.
            if sent < 200 || lost > sent / 10 {
                return Err(Failure::Unexpected(format!(
                    "{lost} of {sent} datagrams were lost {way}: {said}"
                )));
            }
        }
        if self.hook == Hook::Tc {
            self.super_frames(target, tags)?;
        }
        client.map_or(Ok(()), |client| {
            self.page("server", client)?;
            let target = client.trim_matches(['[', ']']);
            self.sh(&format!("ip netns exec server ping -n -c 5 -i 0.05 -W 2 {target}")).map(drop)
        })
    }

    /// Bulk TCP both ways, in GSO packets up to the guest's devices, which take none: its kernel cuts them, and the hosts check every segment.
    fn super_frames(&self, target: &str, tags: Tags) -> Result<()> {
        self.offloads(["on", "off"])?;
        let [client, server] = tags.map_or_else(Default::default, |tags| tags.map(|tag| format!(".{tag}")));
        for (way, device) in [("", format!("in0{client}")), ("-R", format!("out0{server}"))] {
            let before = [self.received(&device)?, self.received("sixway0")?];
            self.sh(&format!("ip netns exec client iperf3 -c {target} -t 1 --connect-timeout 3000 {way}"))?;
            let after = [self.received(&device)?, self.received("sixway0")?];
            let [packets, octets] = [0, 1].map(|figure| after[0][figure] - before[0][figure]);
            let by_engine = after[1][0] - before[1][0];
            // Linux before 6.3 does not let a program take the outer header off a GSO packet: the engine does.
            let decapsulated = target == NATIVE && way.is_empty();
            let long_way = by_engine > packets / 4 && !decapsulated;
            if octets < 2_000_000 || octets < packets * 2_000 || long_way {
                return Err(Failure::Unexpected(format!(
                    "{target} {way}: {packets} packets of {octets} octets by {device}, {by_engine} by the engine"
                )));
            }
        }
        self.offloads(["off", "on"])
    }

    /// Whether the hosts' devices and the guest's take checksums and GSO packets over from their kernels.
    fn offloads(&self, [hosts, guests]: [&str; 2]) -> Result<()> {
        self.sh(&format!(
            "for host in client server; do
                 ip netns exec $host ethtool -K up0 tx {hosts} >/dev/null
             done
             for device in in0 out0; do
                 ethtool -K $device tx {guests} >/dev/null
             done"
        ))
        .map(drop)
    }

    /// Packets and octets that a device has received.
    fn received(&self, device: &str) -> Result<[u64; 2]> {
        let said = self.sh(&format!("cd /sys/class/net/{device}/statistics; cat rx_packets rx_bytes"))?;
        let mut figures = said.lines().map(|line| line.trim().parse().unwrap_or(0));
        Ok([(); 2].map(|()| figures.next().unwrap_or(0)))
    }

    /// A host fetches a page twice and finds it as it is.
    fn page(&self, from: &str, at: &str) -> Result<()> {
        let folder = self.network.folder().display();
        self.sh(&format!(
            "for i in 1 2; do
                 ip netns exec {from} curl -sS -g --max-time 10 -o /run/page 'http://{at}/index.html'
                 cmp /run/page {folder}/index.html
             done"
        ))
        .map(drop)
    }

    fn no_checksum_is_wrong(&self) -> Result<()> {
        let script = "ip netns exec HOST sh -c 'cat /proc/net/snmp6; NSTAT_HISTORY=/run/nstat nstat -az | grep InCsumErrors'";
        for host in ["client", "server"] {
            let said = self.sh(&script.replace("HOST", host))?;
            let wrong = said.lines().filter(|line| line.contains("InCsumErrors"));
            let wrong: Vec<_> = wrong
                .filter(|line| line.split_whitespace().nth(1).is_some_and(|figure| figure != "0"))
                .collect();
            if !wrong.is_empty() {
                return Err(Failure::Unexpected(format!("wrong checksums at the {host}: {wrong:?}")));
            }
        }
        Ok(())
    }
}
