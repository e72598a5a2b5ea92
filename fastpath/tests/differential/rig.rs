//! A program in a scene: loaded with the configuration of a world, with a flow table of its own.

use super::configured::configured;
use super::judge::NOW;
use super::namespace;
use super::scene::{Port, Scene, VLAN};
use super::test_run;
use super::world::World;
use aya::maps::{HashMap, MapData, PerCpuArray};
use aya::programs::{SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader, Pod};
use sixway_dataplane::offload::{FastPath, FlowHandle, OffloadedFlow};
use sixway_fastpath::layout::{self, Config};
use sixway_fastpath::{Control, FastPathWriter, FlowTable};
use std::error::Error;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Where a program hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    Xdp,
    Tc,
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub verdict: Ruling,
    pub frame: Vec<u8>,
}

/// What the program said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    Pass,
    Redirect,
    /// Anything else, which it must not say.
    Strange(u32),
}

fn map<'a>(program: &'a Ebpf, name: &str) -> &'a MapData {
    use aya::maps::Map;
    match program.map(name).unwrap() {
        Map::Array(map) | Map::PerCpuArray(map) | Map::HashMap(map) => map,
        _ => panic!("{name} is of another type"),
    }
}

/// Flows that the table has room for.
const FLOWS: u32 = 1_024;

/// A loaded program.
pub struct Rig {
    hook: Hook,
    program: Ebpf,
    pub control: Arc<Control>,
    pub table: Arc<FlowTable>,
    pub writer: FastPathWriter,
}

impl Rig {
    /// Loads the program with the constants of a world, which may be edited.
    /// `None`, and a word: the kernel does not let us.
    pub fn new(hook: Hook, scene: &Scene, world: &World, edit: impl FnOnce(&mut Config)) -> Option<Self> {
        let mut config = configured(scene, world, hook);
        edit(&mut config);
        let buckets = FlowTable::buckets_for(FLOWS);
        let program = match loaded(hook, &config, buckets) {
            Ok(program) => program,
            Err(error) if is_forbidden(error.as_ref()) => {
                namespace::skipped("differential", &error.to_string());
                return None;
            }
            Err(error) => panic!("{hook:?}: {error}"),
        };
        let control = Arc::new(Control::of_map(map(&program, "control").fd().as_fd()).unwrap());
        control.begin("test", buckets).unwrap();
        control.enable(true);
        let table =
            FlowTable::of_map(map(&program, "flows").fd().as_fd(), Arc::clone(&control), FLOWS).unwrap();
        table.set_translators(&config);
        let table = Arc::new(table);
        let writer = FastPathWriter::new(Arc::clone(&table), NOW);
        let mut rig = Self { hook, program, control, table, writer };
        rig.hook_devices(scene);
        Some(rig)
    }

    /// All devices may be sent by but one.
    fn hook_devices(&mut self, scene: &Scene) {
        let mut devices: HashMap<_, u32, Device> =
            HashMap::try_from(self.program.map_mut("devices").unwrap()).unwrap();
        for port in Port::ALL.into_iter().filter(|port| *port != Port::Unhooked) {
            let is_vlan = port == Port::Tagged && self.hook == Hook::Xdp;
            let below = scene.index(if is_vlan { Port::Trunk } else { port });
            let vlan = if is_vlan { VLAN } else { 0 };
            devices
                .insert(scene.index(port), Device(layout::Device { port: below, vlan, xdp: 1, tc: 1 }), 0)
                .unwrap();
        }
    }

    pub fn install(&mut self, flow: &OffloadedFlow) -> FlowHandle {
        let handle = self.writer.arm(flow).unwrap();
        self.writer.force(handle);
        handle
    }

    /// Tries the program on a frame that came in by a device. What is too short to have an IP header the kernel does not try at tc.
    pub fn run(&self, frame: &[u8], ifindex: u32, out: Vec<u8>) -> Ran {
        let least = match frame.get(12..14) {
            Some([8, 0]) => 34,
            Some([0x86, 0xdd]) => 54,
            _ => 14,
        };
        if self.hook == Hook::Tc && frame.len() < least {
            return Ran { verdict: Ruling::Pass, frame: frame.to_vec() };
        }
        let mut out = out;
        // struct xdp_md: data_end, ingress_ifindex. struct __sk_buff: ingress_ifindex, ifindex.
        let context: &[u32] = match self.hook {
            Hook::Xdp => &[0, frame.len() as u32, 0, ifindex, 0, 0],
            Hook::Tc => &[0, 0, 0, 0, 0, 0, 0, 0, 0, ifindex, ifindex],
        };
        let program = self.program.program(self.hook.program()).unwrap();
        let fd = match program {
            aya::programs::Program::Xdp(program) => program.fd().unwrap(),
            aya::programs::Program::SchedClassifier(program) => program.fd().unwrap(),
            _ => panic!("no such program"),
        };
        let result = test_run::run(fd.as_fd(), frame, context, &mut out).unwrap();
        // XDP_PASS, XDP_REDIRECT; TC_ACT_UNSPEC, TC_ACT_REDIRECT.
        let verdict = match (self.hook, result) {
            (Hook::Xdp, 2) | (Hook::Tc, u32::MAX) => Ruling::Pass,
            (Hook::Xdp, 4) | (Hook::Tc, 7) => Ruling::Redirect,
            (Hook::Xdp | Hook::Tc, other) => Ruling::Strange(other),
        };
        Ran { verdict, frame: out }
    }

    /// What a counter says: packets and octets.
    pub fn counted(&self, which: u32) -> (u64, u64) {
        let counters: PerCpuArray<_, Counter> =
            PerCpuArray::try_from(self.program.map("counters").unwrap()).unwrap();
        let values = counters.get(&which, 0).unwrap();
        values.iter().fold((0, 0), |sum, one| (sum.0 + one.0.packets, sum.1 + one.0.octets))
    }
}

impl Hook {
    pub const ALL: [Self; 2] = [Self::Xdp, Self::Tc];

    const fn program(self) -> &'static str {
        match self {
            Self::Xdp => "sixway_xdp",
            Self::Tc => "sixway_tc",
        }
    }
}

fn loaded(hook: Hook, config: &Config, buckets: u32) -> Result<Ebpf, Box<dyn Error>> {
    let mut object = EbpfLoader::new()
        .override_global("config", config.octets(), true)
        .map_max_entries("flows", buckets)
        .load(&super::compile::object(hook))?;
    let program = object.program_mut(hook.program()).unwrap();
    match hook {
        Hook::Xdp => <&mut Xdp>::try_from(program)?.load()?,
        Hook::Tc => <&mut SchedClassifier>::try_from(program)?.load()?,
    }
    Ok(object)
}

/// Whether the kernel said that this process may not.
fn is_forbidden(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let said = error.downcast_ref::<std::io::Error>();
        if said.is_some_and(|said| said.kind() == std::io::ErrorKind::PermissionDenied) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Device(layout::Device);
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Counter(layout::Counter);

// SAFETY: numbers without padding.
unsafe impl Pod for Device {}
// SAFETY: numbers without padding.
unsafe impl Pod for Counter {}
