//! A program in a scene: loaded with the configuration of a world, with a flow table of its own.

use super::configured::rules;
use super::judge::NOW;
use super::scene::{Port, Scene, VLAN};
use super::world::World;
use aya::maps::lpm_trie::Key;
use aya::maps::{Array, HashMap, LpmTrie, Map, MapData, PerCpuArray};
use aya::programs::{Program, SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader};
use sixway_dataplane::offload::{FastPath, FlowHandle, OffloadedFlow};
use sixway_fastpath::layout::{self, Config};
use sixway_fastpath::test_run::{Frame, run_tc, run_xdp};
use sixway_fastpath::{
    Control, FastPathWriter, FlowTable, Rules, TC_OBJECT, TC_PROGRAM, XDP_OBJECT, XDP_PROGRAM,
};
use std::error::Error;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Where a program is attached.
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
    match program.map(name).unwrap() {
        Map::Array(map) | Map::PerCpuArray(map) | Map::HashMap(map) => map,
        _ => panic!("{name} is of another type"),
    }
}

/// Explicit address mappings that there is room for.
const ROWS: u32 = 64;
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
    /// Where the kernel does not let us, the test is ignored.
    pub fn new(hook: Hook, scene: &Scene, world: &World, edit: fn(&mut Config)) -> Self {
        let mut rules = rules(scene, world);
        edit(&mut rules.config);
        let buckets = FlowTable::buckets_for(FLOWS);
        let program = match loaded(hook, &rules, buckets) {
            Ok(program) => program,
            // A signal interrupts the verifier, such as a fuzzer's timer.
            Err(error) if is_said(error.as_ref(), libc::EAGAIN) => {
                return Self::new(hook, scene, world, edit);
            }
            Err(error) if is_said(error.as_ref(), libc::EPERM) => {
                sixway_trial::ignore(error);
            }
            Err(error) => panic!("{hook:?}: {error}"),
        };
        let control = Arc::new(Control::of_map(map(&program, "control").fd().as_fd()).unwrap());
        control.begin("test", buckets).unwrap();
        control.enable(true);
        control.allow_half_open(true);
        let table =
            FlowTable::of_map(map(&program, "flows").fd().as_fd(), Arc::clone(&control), FLOWS).unwrap();
        table.set_translators(&rules.config);
        let table = Arc::new(table);
        let writer = FastPathWriter::new(Arc::clone(&table), NOW);
        let mut rig = Self { hook, program, control, table, writer };
        rig.hook_devices(scene);
        rig
    }

    /// All devices may be sent by but one.
    fn hook_devices(&mut self, scene: &Scene) {
        let mut devices: HashMap<_, u32, layout::Device> =
            HashMap::try_from(self.program.map_mut("devices").unwrap()).unwrap();
        for port in Port::ALL.into_iter().filter(|port| *port != Port::Unhooked) {
            let is_vlan = port == Port::Tagged;
            let below = scene.index(if is_vlan { Port::Trunk } else { port });
            let vlan = if is_vlan { VLAN } else { 0 };
            devices
                .insert(
                    scene.index(port),
                    layout::Device {
                        port: below,
                        vlan,
                        xdp: 1,
                        tc: layout::SENDS | layout::SENDS_FROM_TUNNELS,
                    },
                    0,
                )
                .unwrap();
        }
    }

    /// Says that the gateway was last there this number of ticks ago; returns when that was.
    pub fn away_since(&mut self, ticks: u32) -> u32 {
        let mut control: Array<_, layout::Control> =
            Array::try_from(self.program.map_mut("control").unwrap()).unwrap();
        self.control.beat();
        let mut page = control.get(&0, 0).unwrap();
        page.heartbeat = page.heartbeat.wrapping_sub(ticks);
        control.set(0, page, 0).unwrap();
        page.heartbeat
    }

    /// Says that both halves of an entry were last used this number of ticks before they were.
    pub fn idle_since(&mut self, handle: FlowHandle, ticks: u32) {
        self.edit(handle, |half| half.last = half.last.wrapping_sub(ticks));
    }

    /// An entry was made just now, and has had no packet. The gateway is there.
    pub fn renew(&mut self, handle: FlowHandle) {
        self.control.beat();
        let now = self.heartbeat();
        self.edit(handle, |half| (half.packets, half.last) = (0, now));
    }

    fn edit(&mut self, handle: FlowHandle, edit: impl Fn(&mut layout::Flow)) {
        let slots = self.table.halves_of(handle);
        let mut sets: Array<_, [layout::Flow; layout::BUCKET]> =
            Array::try_from(self.program.map_mut("flows").unwrap()).unwrap();
        for slot in slots {
            let mut set = sets.get(&((slot / layout::BUCKET) as u32), 0).unwrap();
            edit(&mut set[slot % layout::BUCKET]);
            sets.set((slot / layout::BUCKET) as u32, set, 0).unwrap();
        }
    }

    /// The tick at which the gateway last was there, as the programs see it.
    pub fn heartbeat(&self) -> u32 {
        let control: Array<_, layout::Control> =
            Array::try_from(self.program.map("control").unwrap()).unwrap();
        control.get(&0, 0).unwrap().heartbeat
    }

    pub fn install(&mut self, flow: &OffloadedFlow) -> FlowHandle {
        let handle = self.writer.arm(flow).unwrap();
        self.writer.force(handle);
        handle
    }

    /// Tries the program on a frame that came in by a device. What has no whole IP header, or nothing at all behind the
    /// Ethernet header, the kernel does not try at tc.
    pub fn run(&self, frame: &[u8], ifindex: u32) -> Ran {
        let least = match frame.get(12..14) {
            Some([8, 0]) => 34,
            Some([0x86, 0xdd]) => 54,
            _ => 15,
        };
        if self.hook == Hook::Tc && frame.len() < least {
            return Ran { verdict: Ruling::Pass, frame: frame.to_vec() };
        }
        let asked = Frame::new(frame).by(ifindex);
        let refused = |error| panic!("{error}: {frame:02x?}");
        let ran = match self.program.program(self.hook.program()) {
            Some(Program::Xdp(program)) => run_xdp(program, &asked).unwrap_or_else(refused),
            Some(Program::SchedClassifier(program)) => run_tc(program, &asked).unwrap_or_else(refused),
            _ => panic!("no such program"),
        };
        // XDP_PASS, XDP_REDIRECT; TC_ACT_UNSPEC, TC_ACT_REDIRECT.
        let verdict = match (self.hook, ran.verdict) {
            (Hook::Xdp, 2) | (Hook::Tc, u32::MAX) => Ruling::Pass,
            (Hook::Xdp, 4) | (Hook::Tc, 7) => Ruling::Redirect,
            (Hook::Xdp | Hook::Tc, other) => Ruling::Strange(other),
        };
        Ran { verdict, frame: ran.octets }
    }

    /// What a counter says: packets and octets.
    pub fn counted(&self, which: u32) -> (u64, u64) {
        let counters: PerCpuArray<_, layout::Counter> =
            PerCpuArray::try_from(self.program.map("counters").unwrap()).unwrap();
        let values = counters.get(&which, 0).unwrap();
        values.iter().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.octets))
    }
}

impl Hook {
    pub const ALL: [Self; 2] = [Self::Xdp, Self::Tc];

    const fn object(self) -> &'static [u8] {
        match self {
            Self::Xdp => XDP_OBJECT,
            Self::Tc => TC_OBJECT,
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Xdp => XDP_PROGRAM,
            Self::Tc => TC_PROGRAM,
        }
    }
}

fn loaded(hook: Hook, rules: &Rules, buckets: u32) -> Result<Ebpf, Box<dyn Error>> {
    let mut object = EbpfLoader::new()
        .override_global("config", rules.config.octets(), true)
        .map_max_entries("flows", buckets)
        .map_max_entries("eam4", ROWS)
        .map_max_entries("eam6", ROWS)
        .load(hook.object())?;
    for table in &rules.tables {
        let map = object.map_mut(table.map).unwrap();
        match table.map {
            "eam4" => fill::<8>(map, &table.rows)?,
            _ => fill::<20>(map, &table.rows)?,
        }
    }
    let program = object.program_mut(hook.program()).unwrap();
    match hook {
        Hook::Xdp => <&mut Xdp>::try_from(program)?.load()?,
        Hook::Tc => <&mut SchedClassifier>::try_from(program)?.load()?,
    }
    Ok(object)
}

/// Fills a trie: behind the number of its bits a key has this number of octets.
fn fill<const N: usize>(map: &mut Map, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Box<dyn Error>> {
    let mut trie: LpmTrie<_, [u8; N], [u8; size_of::<layout::Eam>()]> = LpmTrie::try_from(map)?;
    for (key, value) in rows {
        let (bits, octets) = key.split_at(4);
        let bits = u32::from_ne_bytes(bits.try_into()?);
        trie.insert(
            &Key::new(bits, octets.try_into()?),
            <[u8; size_of::<layout::Eam>()]>::try_from(&value[..])?,
            0,
        )?;
    }
    Ok(())
}

/// Whether the kernel said this. (EPERM: this process may not. What the verifier refuses is EACCES.)
fn is_said(error: &(dyn Error + 'static), number: i32) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let said = error.downcast_ref::<std::io::Error>();
        if said.is_some_and(|said| said.raw_os_error() == Some(number)) {
            return true;
        }
        cause = error.source();
    }
    false
}
