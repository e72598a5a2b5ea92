//! Each packet through the program, and what came of it compared with what should.

use super::choices::{Choices, Random};
use super::generator::{self, Input};
use super::namespace;
use super::oracle::{self, Expected, Forwarded, Oracle};
use super::rig::{Hook, Ran, Rig, Ruling};
use super::routes::Target;
use super::scene::{Port, Scene, VLAN};
use super::sessions::{self, Entry, Session};
use super::world::{NAT44, NAT64, OUT, SIIT, World};
use sixway_dataplane::Instant;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::offload::{FastPath, FlowHandle};
use sixway_fastpath::layout::{COUNTERS, PASSED};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Index of the counter of packets that something went wrong with after they were changed.
const LOST: u32 = COUNTERS as u32 - 1;

/// The engine's time, which does not advance.
pub const NOW: Instant = Instant::from_secs(1_000);

/// A world with its program, its engine and its sessions, all installed.
pub struct Harness<'a> {
    world: &'a World,
    scene: &'a Scene,
    hook: Hook,
    rig: Rig,
    engine: RefCell<Engine>,
    sessions: Vec<Session>,
    half_open: Vec<FlowHandle>,
}

impl<'a> Harness<'a> {
    /// Where the kernel does not let us, the test is ignored.
    pub fn new(world: &'a World, scene: &'a Scene, hook: Hook) -> Self {
        let mut rig = Rig::new(hook, scene, world, |_| {});
        let mut engine = Engine::new(&world.config).unwrap();
        let sessions = sessions::establish(world, &mut engine, NOW);
        let mut half_open = Vec::new();
        for session in &sessions {
            match session.entry {
                Entry::Armed => {
                    rig.writer.arm(&session.flow()).unwrap();
                }
                Entry::Active => {
                    rig.install(&session.flow());
                }
                Entry::HalfOpen => half_open.push(rig.writer.half_open(&session.flow()).unwrap()),
            }
        }
        Self { world, scene, hook, rig, engine: RefCell::new(engine), sessions, half_open }
    }

    /// Tries packets from a seed of this world's own.
    fn try_many(&mut self, packets: u64) {
        let seed = seed(self.world.name, self.hook);
        let mut random = Random(seed);
        let mut forwarded: BTreeMap<u32, u64> = BTreeMap::new();
        for number in 0..packets {
            if number % 4 == 0 {
                self.renew();
            }
            let choices = Choices::random(&mut random);
            let input = self.input(&mut choices.clone());
            match self.check(&input) {
                Ok(times) => *forwarded.entry(input.counter).or_default() += times,
                Err(why) => self.explain(&choices, &format!("packet {number} of seed {seed:#x}: {why}")),
            }
        }
        // Each mechanism counts what it forwards, and nothing is lost.
        for lane in &self.world.lanes {
            assert!(
                self.rig.counted(lane.counter).0 > 0,
                "{}: {} was never forwarded",
                self.world.name,
                lane.counter
            );
        }
        assert_eq!(self.rig.counted(LOST).0, 0, "{}: packets were lost", self.world.name);
        let counted: u64 = (0..PASSED as u32).map(|which| self.rig.counted(which).0).sum();
        assert_eq!(counted, forwarded.values().sum::<u64>(), "{}: {forwarded:?}", self.world.name);
    }

    /// Half-open entries are as new: each forwards four packets, and not for long.
    pub fn renew(&mut self) {
        self.half_open.iter().for_each(|handle| self.rig.renew(*handle));
    }

    fn input(&self, choices: &mut Choices) -> Input {
        generator::input(self.world, &self.sessions, choices)
    }

    /// Tries a packet. How often the mechanisms count it, or what was wrong.
    pub fn check(&self, input: &Input) -> Result<u64, String> {
        let (frame, ifindex) = self.at_hook(input);
        let ran = self.rig.run(&frame, ifindex);
        if ran.verdict == Ruling::Pass && !input.is_plain {
            return if ran.frame == frame {
                Ok(0)
            } else {
                Err(different("what was passed on", &frame, &ran.frame))
            };
        }
        match (ran.verdict, self.expects(input)) {
            (Ruling::Pass, _) if ran.frame != frame => {
                Err(different("what was passed on", &frame, &ran.frame))
            }
            (Ruling::Pass, Expected::Pass(_)) => Ok(0),
            (Ruling::Pass, Expected::Forward(forwarded)) if self.may_be_left(input, &forwarded) => Ok(0),
            (Ruling::Pass, Expected::Forward(_)) => {
                Err("it was passed on, and nothing is the matter with it".into())
            }
            (Ruling::Redirect, Expected::Pass(why)) => {
                Err(format!("it was forwarded: {why}\n{}", hex(&ran.frame)))
            }
            (Ruling::Redirect, Expected::Forward(forwarded)) => {
                self.same(&ran, &forwarded)?;
                // A hairpin is translated twice.
                let is_hairpin = match (input.counter, &forwarded.packet[..]) {
                    (counter, [first, ..]) if counter == 2 * NAT64 + OUT => first >> 4 == 6,
                    (counter, [0x45, rest @ ..]) if counter == 2 * NAT44 + OUT => {
                        self.is_inside(&rest[15..19])
                    }
                    _ => false,
                };
                Ok(if is_hairpin { 2 } else { 1 })
            }
            (Ruling::Strange(code), _) => Err(format!("the program said {code}")),
        }
    }

    /// What should become of a packet.
    pub fn expects(&self, input: &Input) -> Expected {
        let mut engine = self.engine.borrow_mut();
        Oracle { world: self.world, scene: self.scene, engine: &mut engine, now: NOW }.expects(input)
    }

    pub fn name(&self) -> &'static str {
        self.world.name
    }

    /// What the programs leave to the engine though it would forward it: IPv4 sources without a route, which could not be answered,
    /// combinations of ECN fields that the engine counts (RFC 6040 §4.2), and hairpins of a stateless translator (RFC 7757 §4.2.2).
    fn may_be_left(&self, input: &Input, forwarded: &Forwarded) -> bool {
        if input.counter == 2 * SIIT + OUT && forwarded.packet[0] >> 4 == 6 {
            return true;
        }
        let Ok((_, [0x45, rest @ ..])) = oracle::arrived(input) else { return false };
        let source = <[u8; 4]>::try_from(&rest[11..15]).unwrap();
        let marks = (rest[20] >> 4 & 3, rest[0] & 3);
        let is_counted = matches!(marks, (0, 1..) | (3, 1) | (1, 2)) && rest[8] == 41;
        is_counted || self.scene.target(source.into()) == Target::Nowhere
    }

    fn is_inside(&self, destination: &[u8]) -> bool {
        let destination = <[u8; 4]>::try_from(destination).unwrap().into();
        self.world.config.nat44.iter().any(|one| one.inside.iter().any(|inside| inside.contains(destination)))
    }

    fn counters(&self) -> Vec<u64> {
        (0..COUNTERS as u32).map(|which| self.rig.counted(which).0).collect()
    }

    /// The frame as it comes to the hook: the kernel takes a VLAN's tag off before tc sees it.
    fn at_hook(&self, input: &Input) -> (Vec<u8>, u32) {
        let frame = &input.frame;
        let is_tagged = input.port == Port::Trunk && frame.get(12..14) == Some(&[0x81, 0]);
        if self.hook == Hook::Tc
            && is_tagged
            && frame.get(15) == Some(&(VLAN as u8))
            && frame[14] & 0x0f == 0
            && frame.len() >= 18
        {
            return ([&frame[..12], &frame[16..]].concat(), self.scene.index(Port::Tagged));
        }
        (frame.clone(), self.scene.index(input.port))
    }

    fn same(&self, ran: &Ran, expected: &Forwarded) -> Result<(), String> {
        let port = expected.port;
        let mut link = [port.neighbour(), port.mac()].concat();
        if port == Port::Tagged && self.hook == Hook::Xdp {
            link.extend([0x81, 0, 0, VLAN as u8]);
        }
        let mut packet = expected.packet.clone();
        link.extend(if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] });
        let Some((front, rest)) = ran.frame.split_at_checked(link.len()) else {
            return Err("it is too short".into());
        };
        if front != link {
            return Err(different("Ethernet header", &link, front));
        }
        let mut got = rest.get(..packet.len()).ok_or("it was cut")?.to_vec();
        if expected.any_identification {
            if oracle::header_sum(&got) != 0xffff {
                return Err(format!("a wrong header checksum: {}", hex(&got)));
            }
            for octets in [&mut got, &mut packet] {
                octets[4..6].fill(0);
                octets[10..12].fill(0);
            }
        }
        if got == packet { Ok(()) } else { Err(different("packet", &packet, &got)) }
    }

    /// Says what is wrong with the smallest packet that shows it.
    fn explain(&self, choices: &Choices, why: &str) -> ! {
        let small = choices.shrunk(|some| self.check(&self.input(&mut some.clone())).is_err());
        let input = self.input(&mut small.clone());
        let before = self.counters();
        let still = self.check(&input).err().unwrap_or_default();
        let rose: Vec<_> = self
            .counters()
            .into_iter()
            .zip(before)
            .enumerate()
            .filter(|(_, (now, before))| now != before)
            .map(|(which, _)| which)
            .collect();
        let Input { port, troubles, .. } = &input;
        let frame = hex(&input.frame);
        panic!(
            "{} at {:?}: {why}\n\nthe least: {small:?}, at {port:?}, troubles {troubles:?}\n{frame}\n{still}\ncounters that rose: {rose:?}",
            self.world.name, self.hook
        );
    }
}

/// Octets as text, the first of them.
fn hex(octets: &[u8]) -> String {
    let some = super::support::hex(&octets[..octets.len().min(120)]);
    format!("{some} ({} octets)", octets.len())
}

fn different(what: &str, expected: &[u8], got: &[u8]) -> String {
    format!("{what} differs\nexpected {}\ngot      {}", hex(expected), hex(got))
}

/// What happened at a hook in all worlds.
#[derive(Debug, Default)]
pub struct Coverage {
    /// By the counters of the programs.
    pub counted: BTreeMap<u32, u64>,
    pub packets: u64,
}

/// Tries this number of packets of each world at a hook. Where the kernel does not let us, the test is ignored.
pub fn prove(hook: Hook, worlds: Vec<World>, packets: u64) -> Coverage {
    let total = Arc::new(Mutex::new(Coverage::default()));
    for world in worlds {
        let sum = Arc::clone(&total);
        namespace::in_namespace("differential", move || {
            let scene = Scene::new(world.routes(), &world.local);
            let mut bench = Harness::new(&world, &scene, hook);
            bench.try_many(packets);
            let mut sum = sum.lock().unwrap();
            sum.packets += packets;
            for which in 0..COUNTERS as u32 {
                *sum.counted.entry(which).or_default() += bench.rig.counted(which).0;
            }
        });
    }
    Arc::try_unwrap(total).unwrap().into_inner().unwrap()
}

/// Another one for each world and hook.
fn seed(name: &str, hook: Hook) -> u64 {
    name.bytes().fold(hook as u64, |seed, octet| seed.wrapping_mul(257).wrapping_add(octet.into()))
}
