//! Both programs with an engine's rules, in a namespace with routes and neighbours, tried on one packet at a time.
//!
//! ```text
//!     port ── packets come in here             tun ── routes of what is the engine's
//!     far ── 192.0.2.0/24 …, 2001:db8:f::/64, default routes by the neighbour there
//! ```

use super::namespace;
use aya::maps::{Array, HashMap, LpmTrie, Map, lpm_trie::Key};
use aya::programs::{SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader};
use sixway_dataplane::engine::EngineConfig;
use sixway_fastpath::layout::{Control, Device, LAYOUT_VERSION, MAGIC, Port, SENDS};
use sixway_fastpath::rules::{Offer, Surroundings};
use sixway_fastpath::test_run::{Frame, run_tc, run_xdp};
use sixway_fastpath::{Rules, TC_PROGRAM, XDP_PROGRAM};
use sixway_link::sysctl::Sysctl;
use sixway_link::{Tun, TunConfig, interface};
use std::net::Ipv4Addr;
use std::process::Command;

static XDP: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/fastpath_xdp.bpf.o"));
static TC: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/fastpath_tc.bpf.o"));

const PORT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const NEIGHBOUR: [u8; 6] = [2, 0, 0, 0, 0, 3];
const XDP_REDIRECT: u32 = 4;
const XDP_PASS: u32 = 2;
const TC_REDIRECT: u32 = 7;
const TC_UNSPEC: u32 = u32::MAX;

pub struct Harness {
    xdp: Ebpf,
    tc: Ebpf,
    port: u32,
    _tun: Tun,
}

/// Sets the namespace up: `routes` lead into the TUN device, or via a neighbour.
pub fn scene(routes: &[&str]) -> Tun {
    let tun = namespace::open(&TunConfig { name: "tun".into(), ..TunConfig::default() });
    for path in ["ipv4/conf/all/forwarding", "ipv6/conf/all/forwarding"] {
        Sysctl::set(format!("/proc/sys/net/{path}"), "1").unwrap().keep();
    }
    for (name, mac, number) in [("port", "02:00:00:00:00:01", 8), ("far", "02:00:00:00:00:02", 9)] {
        namespace::ip(&format!("link add {name} address {mac} type veth peer name {name}_peer"));
        for device in [name.to_owned(), format!("{name}_peer")] {
            namespace::ip(&format!("link set {device} addrgenmode none"));
            namespace::ip(&format!("link set {device} up"));
        }
        namespace::ip(&format!("addr add 10.255.{number}.1/24 dev {name}"));
        namespace::ip(&format!("addr add 2001:db8:ff0{number}::1/64 dev {name} nodad"));
    }
    namespace::ip("neigh replace 10.255.9.2 lladdr 02:00:00:00:00:03 nud permanent dev far");
    namespace::ip("neigh replace 2001:db8:ff09::2 lladdr 02:00:00:00:00:03 nud permanent dev far");
    namespace::ip("route add default via 10.255.9.2 dev far");
    namespace::ip("route add default via 2001:db8:ff09::2 dev far");
    for route in routes {
        let device = if route.contains(" via ") { "far" } else { "tun" };
        namespace::ip(&format!("route add {route} dev {device}"));
    }
    tun
}

impl Harness {
    /// The programs with this engine's rules.
    pub fn new(tun: Tun, engine: &EngineConfig) -> Self {
        Self::with(tun, engine, false, &Surroundings { forwards_syn: true, ..Surroundings::default() })
    }

    /// The same, but SYNs are left to the engine.
    pub fn without_syn(tun: Tun, engine: &EngineConfig) -> Self {
        Self::with(tun, engine, false, &Surroundings::default())
    }

    /// The same with strict reverse path filtering.
    pub fn strict(tun: Tun, engine: &EngineConfig) -> Self {
        Self::with(tun, engine, true, &Surroundings::default())
    }

    /// On a host whose policy rules name these sources.
    pub fn by_source(tun: Tun, engine: &EngineConfig, sources4: &[&str], sources6: &[&str]) -> Self {
        let around = Surroundings {
            sources4: sources4.iter().map(|source| source.parse().unwrap()).collect(),
            sources6: sources6.iter().map(|source| source.parse().unwrap()).collect(),
            ..Surroundings::default()
        };
        Self::with(tun, engine, false, &around)
    }

    fn with(tun: Tun, engine: &EngineConfig, strict: bool, around: &Surroundings) -> Self {
        let (port, far) = (interface::index("port").unwrap(), interface::index("far").unwrap());
        engine.tunnels.iter().filter_map(|tunnel| tunnel.local()).for_each(has);
        let around = Surroundings {
            tun: interface::index(&tun.name).unwrap(),
            tun_mtu: 1_500,
            // A test run comes by the loopback device, as far as XDP knows.
            ports: vec![Port {
                ifindex: port,
                below: 1,
                mac: PORT_MAC,
                strict: strict.into(),
                ..Port::zero()
            }],
            absence: 1 << 30,
            ..around.clone()
        };
        let load = |object| load(object, &Offer::of(engine, &around).rules, far);
        Self { xdp: load(XDP), tc: load(TC), port, _tun: tun }
    }

    /// What becomes of a packet at both hooks: `None`, it is passed on as it came.
    pub fn run(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let by_xdp = self.run_xdp(packet);
        let by_tc = self.run_tc(packet);
        assert_eq!(by_xdp, by_tc, "XDP, tc: of {packet:02x?}");
        by_xdp
    }

    /// Less than usual is known to fit to a tunnel's other end.
    pub fn narrow(&mut self, remote: &str) {
        let key = remote.parse::<Ipv4Addr>().unwrap().octets();
        for program in [&mut self.xdp, &mut self.tc] {
            let mut map: HashMap<_, [u8; 4], u8> =
                program.map_mut("narrow_paths").unwrap().try_into().unwrap();
            map.insert(key, 1, 0).unwrap();
        }
        self.new_generation();
    }

    /// Something has changed that may matter.
    pub fn new_generation(&mut self) {
        self.pass_generations(1);
    }

    /// So much has changed, and no packet came meanwhile.
    pub fn pass_generations(&mut self, count: u32) {
        for program in [&mut self.xdp, &mut self.tc] {
            let mut map: Array<_, Control> = program.map_mut("control").unwrap().try_into().unwrap();
            let mut control = map.get(&0, 0).unwrap();
            control.generation = control.generation.wrapping_add(count);
            map.set(0, control, 0).unwrap();
        }
    }

    /// What becomes of it in the driver.
    pub fn run_xdp(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let program: &mut Xdp = self.xdp.program_mut(XDP_PROGRAM).unwrap().try_into().unwrap();
        let frame = frame(packet);
        let ran = run_xdp(program, &Frame::new(&frame)).unwrap();
        verdict(ran.verdict, (XDP_PASS, XDP_REDIRECT), &frame, &ran.octets)
    }

    fn run_tc(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let program: &mut SchedClassifier = self.tc.program_mut(TC_PROGRAM).unwrap().try_into().unwrap();
        let frame = frame(packet);
        let ran = run_tc(program, &Frame::new(&frame).by(self.port)).unwrap();
        verdict(ran.verdict, (TC_UNSPEC, TC_REDIRECT), &frame, &ran.octets)
    }
}

/// The host has an address.
fn has(address: Ipv4Addr) {
    // Several tunnels may end there.
    let _ = Command::new("ip").args(["addr", "replace", &format!("{address}/32"), "dev", "lo"]).status();
}

fn verdict(result: u32, (pass, redirect): (u32, u32), frame: &[u8], out: &[u8]) -> Option<Vec<u8>> {
    if result == pass {
        assert_eq!(out, frame, "passed on as it came");
        return None;
    }
    assert_eq!(result, redirect);
    assert_eq!((&out[..6], &out[6..12]), (&NEIGHBOUR[..], &FAR_MAC[..]));
    let protocol = if out[14] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    assert_eq!(out[12..14], protocol);
    Some(out[14..].to_vec())
}

fn frame(packet: &[u8]) -> Vec<u8> {
    let protocol = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    [&PORT_MAC[..], &NEIGHBOUR, &protocol, packet].concat()
}

fn load(object: &[u8], rules: &Rules, far: u32) -> Ebpf {
    let mut program = EbpfLoader::new()
        .override_global("config", &*rules.config, true)
        .map_max_entries("eam4", 64)
        .map_max_entries("eam6", 64)
        .load(object)
        .unwrap();
    fill(&mut program, rules, far);
    match program.program_mut(XDP_PROGRAM) {
        Some(xdp) => {
            let xdp: &mut Xdp = xdp.try_into().unwrap();
            sixway_fastpath::patiently(|| xdp.load()).unwrap();
        }
        None => {
            let tc = program.program_mut(TC_PROGRAM).unwrap();
            let tc: &mut SchedClassifier = tc.try_into().unwrap();
            sixway_fastpath::patiently(|| tc.load()).unwrap();
        }
    }
    program
}

fn fill(program: &mut Ebpf, rules: &Rules, far: u32) {
    let mut control: Array<_, Control> = program.map_mut("control").unwrap().try_into().unwrap();
    // SAFETY: no pointers; the clock is read.
    let now = unsafe {
        let mut time: libc::timespec = core::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) >> 20
    };
    let heartbeat = now as u32 + 60_000;
    let word = Control {
        magic: MAGIC,
        version: LAYOUT_VERSION,
        buckets: 1,
        generation: 1,
        heartbeat,
        enabled: 1,
        keys: [1, 2, 3, 4],
        ..Control::zero()
    };
    control.set(0, word, 0).unwrap();
    let mut devices: HashMap<_, u32, Device> = program.map_mut("devices").unwrap().try_into().unwrap();
    devices.insert(far, Device { port: far, vlan: 0, xdp: 1, tc: SENDS }, 0).unwrap();
    for table in &rules.tables {
        for (key, value) in &table.rows {
            let map = program.map_mut(table.map).unwrap();
            match key.len() {
                12 => insert::<8>(map, key, value),
                _ => insert::<20>(map, key, value),
            }
        }
    }
}

/// Puts a row into a table whose keys have this number of octets behind the number of bits.
fn insert<const N: usize>(map: &mut Map, key: &[u8], value: &[u8])
where
    [u8; N]: aya::Pod,
{
    let mut map: LpmTrie<_, [u8; N], [u8; 24]> = map.try_into().unwrap();
    let bits = u32::from_ne_bytes(key[..4].try_into().unwrap());
    map.insert(&Key::new(bits, key[4..].try_into().unwrap()), <[u8; 24]>::try_from(value).unwrap(), 0)
        .unwrap();
}
