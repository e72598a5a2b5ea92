//! A fast path in memory: a table that behaves like the one in the kernel, and the program that packets meet first.

use sixway_dataplane::Instant;
use sixway_dataplane::nat::{Direction, NatProtocol};
use sixway_dataplane::offload::{FastPath, FlowHandle, HalfUsage, OffloadedFlow, Usage, mark};
use sixway_dataplane::parse::{ACK, Addresses, FIN, Packet, RST, SYN, Transport, parse};
use sixway_wire::Endpoint4;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};

/// What an entry's half is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Packets go to the engine; the mark of the last.
    Armed(u32),
    /// Packets are forwarded.
    Active,
    /// SYN/ACKs from outside are forwarded, and other packets go to the engine and leave no mark.
    HalfOpen,
}

/// An entry.
#[derive(Clone, Debug)]
pub struct Entry {
    pub flow: OffloadedFlow,
    pub words: [Word; 2],
    pub usage: Usage,
    /// When it was last reported as used elsewhere.
    pub touched: Option<Instant>,
}

/// The table.
#[derive(Debug, Default)]
pub struct Table {
    /// By handle; a handle is never given twice, so that the use of an old one is detected.
    pub entries: BTreeMap<u32, Entry>,
    next: u32,
    /// The maximum number of entries.
    pub most: usize,
    /// How often an armed entry was asked for.
    pub asked: u32,
    /// The maximum number of half-open entries.
    pub most_half_open: usize,
}

/// What the program does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes to the engine.
    Passed,
    /// It is forwarded.
    Forwarded,
}

/// The fast path: the engine has one end, the test and the program the other.
#[derive(Clone, Debug, Default)]
pub struct MemoryFastPath(Arc<Mutex<Table>>);

/// A packet's flow: a way, and whose it is.
struct Key {
    way: Direction,
    /// It is a SYN/ACK from outside.
    is_answer: bool,
    protocol: NatProtocol,
    near: (std::net::IpAddr, u16),
    remote: Endpoint4,
}

impl MemoryFastPath {
    /// With room for this number of entries.
    pub fn new(most: usize) -> Self {
        let path = Self::default();
        path.table().most = most;
        path
    }

    /// The next entry has the handle of the last one, as in a table where an entry finds the same place.
    pub fn reuses_handle(&self) {
        self.table().next -= 1;
    }

    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.table().entries.len()
    }

    /// The only entry.
    #[track_caller]
    pub fn only(&self) -> (FlowHandle, Entry) {
        let table = self.table();
        assert_eq!(table.entries.len(), 1, "{:?}", table.entries);
        table.entries.iter().map(|(handle, entry)| (FlowHandle(*handle), entry.clone())).next().unwrap()
    }

    /// Which halves of the only entry are active.
    #[track_caller]
    pub fn active(&self) -> [bool; 2] {
        self.only().1.words.map(|word| word == Word::Active)
    }

    /// Takes out the entries that are not active both ways, as a gateway does that finds them at its start.
    pub fn forget_moving(&self) {
        self.table().entries.retain(|_, entry| entry.words == [Word::Active; 2]);
    }

    /// A packet comes to the program.
    pub fn meets(&self, octets: &[u8], now: Instant) -> Fate {
        let Ok(packet) = parse(octets) else { return Fate::Passed };
        let Some(key) = Key::of(&packet) else { return Fate::Passed };
        let mark = mark(key.protocol, &octets[packet.transport_at.into()..packet.length as usize]);
        let mut table = self.table();
        let Some(first) = table.active(&key, mark) else { return Fate::Passed };
        // A hairpin: its result would come in again.
        let flow = table.entry(first).flow;
        let is_turned = key.way == Direction::Out && is_of_pool(flow.remote.address);
        let again = Key {
            way: Direction::In,
            is_answer: false,
            protocol: key.protocol,
            near: (flow.remote.address.into(), flow.remote.port),
            remote: flow.outside.0,
        };
        let second = is_turned.then(|| table.active(&again, mark));
        if second == Some(None) {
            return Fate::Passed;
        }
        for (handle, way) in [(Some(first), key.way), (second.flatten(), Direction::In)] {
            let Some(handle) = handle else { continue };
            let HalfUsage { packets, octets, last } = &mut table.entry(handle).usage[way as usize];
            (*packets, *octets, *last) = (*packets + 1, *octets + u64::from(packet.length), Some(now));
        }
        Fate::Forwarded
    }
}

/// Whether an address is of the pools that tests use.
fn is_of_pool(address: Ipv4Addr) -> bool {
    address.octets()[..3] == [192, 0, 2]
}

impl Key {
    /// `None`: not a packet that is forwarded.
    fn of(packet: &Packet) -> Option<Self> {
        let is_out = matches!(packet.addresses, Addresses::V6 { .. });
        let (source, destination, tcp_flags) = match packet.transport {
            Transport::Ports { source, destination, tcp_flags } => (source, destination, tcp_flags),
            // An echo message has the identifier on its own side, and none on the remote one.
            Transport::IcmpQuery { identifier, kind: 0 | 8 | 128 | 129, .. } if is_out => (identifier, 0, 0),
            Transport::IcmpQuery { identifier, kind: 0 | 8 | 128 | 129, .. } => (0, identifier, 0),
            _ => return None,
        };
        if packet.fragment.is_some() || packet.hops <= 1 {
            return None;
        }
        let protocol = NatProtocol::of(packet.protocol)?;
        let changes = protocol == NatProtocol::Tcp && tcp_flags & (FIN | SYN | RST) != 0;
        let is_answer = changes && tcp_flags & (FIN | SYN | RST | ACK) == SYN | ACK;
        if changes && (is_out || !is_answer) {
            return None;
        }
        Some(match packet.addresses {
            Addresses::V6 { source: host, destination: image } => Self {
                way: Direction::Out,
                is_answer,
                protocol,
                near: (host.into(), source),
                remote: Endpoint4::new(Ipv4Addr::from_bits(image.to_bits() as u32), destination),
            },
            Addresses::V4 { source: remote, destination: outside } => Self {
                way: Direction::In,
                is_answer,
                protocol,
                near: (outside.into(), destination),
                remote: Endpoint4::new(remote, source),
            },
        })
    }

    fn is_of(&self, flow: &OffloadedFlow) -> bool {
        let near = match self.way {
            Direction::Out => (flow.inside.0.address.into(), flow.inside.0.port),
            Direction::In => (flow.outside.0.address.into(), flow.outside.0.port),
        };
        flow.protocol == self.protocol && near == self.near && flow.remote == self.remote
    }
}

impl Table {
    /// The entry of a packet's flow, if the half is active. An armed one gets the mark.
    fn active(&mut self, key: &Key, mark: u32) -> Option<FlowHandle> {
        let (handle, entry) = self.entries.iter_mut().find(|(_, entry)| key.is_of(&entry.flow))?;
        match &mut entry.words[key.way as usize] {
            Word::HalfOpen if key.is_answer => Some(FlowHandle(*handle)),
            Word::Active if !key.is_answer => Some(FlowHandle(*handle)),
            Word::Armed(last) if !key.is_answer => {
                *last = mark;
                None
            }
            Word::HalfOpen | Word::Armed(_) | Word::Active => None,
        }
    }

    /// Entries that are not half-open.
    fn whole(&self) -> usize {
        self.entries.values().filter(|entry| entry.words != [Word::HalfOpen; 2]).count()
    }

    fn add(&mut self, flow: &OffloadedFlow, word: Word) -> FlowHandle {
        let is_same = |other: &OffloadedFlow| {
            other.protocol == flow.protocol
                && other.remote == flow.remote
                && (other.inside == flow.inside || other.outside == flow.outside)
        };
        assert!(!self.entries.values().any(|entry| is_same(&entry.flow)), "a second entry for {flow:?}");
        self.next += 1;
        let entry = Entry { flow: *flow, words: [word; 2], usage: Usage::default(), touched: None };
        self.entries.insert(self.next, entry);
        FlowHandle(self.next)
    }

    fn entry(&mut self, handle: FlowHandle) -> &mut Entry {
        self.entries.get_mut(&handle.0).expect("the entry is there as long as its handle is used")
    }
}

impl FastPath for MemoryFastPath {
    fn handle(&self) -> Box<dyn FastPath> {
        Box::new(self.clone())
    }

    fn arm(&mut self, flow: &OffloadedFlow) -> Option<FlowHandle> {
        let mut table = self.table();
        table.asked += 1;
        (table.whole() < table.most).then(|| table.add(flow, Word::Armed(0)))
    }

    fn half_open(&mut self, flow: &OffloadedFlow) -> Option<FlowHandle> {
        let mut table = self.table();
        let half_open = table.entries.len() - table.whole();
        (half_open < table.most_half_open).then(|| table.add(flow, Word::HalfOpen))
    }

    fn is_half_open(&self, handle: FlowHandle) -> bool {
        self.table().entry(handle).words == [Word::HalfOpen; 2]
    }

    fn activate(&mut self, handle: FlowHandle, way: Direction, mark: u32) -> bool {
        let mut table = self.table();
        let word = &mut table.entry(handle).words[way as usize];
        if *word == Word::Armed(mark) {
            *word = Word::Active;
        }
        *word == Word::Active
    }

    fn rearm(&mut self, handle: FlowHandle, way: Direction) {
        let mut table = self.table();
        let word = &mut table.entry(handle).words[way as usize];
        if *word != Word::Active {
            *word = Word::Armed(0);
        }
    }

    fn force(&mut self, handle: FlowHandle) -> bool {
        let active = [Word::Active; 2];
        std::mem::replace(&mut self.table().entry(handle).words, active) != active
    }

    fn remove(&mut self, handle: FlowHandle) -> Usage {
        self.table().entries.remove(&handle.0).expect("an entry is taken out once").usage
    }

    fn touch(&mut self, handle: FlowHandle, last: Instant) {
        let mut table = self.table();
        let entry = table.entry(handle);
        entry.touched = entry.touched.max(Some(last));
        entry.usage.iter_mut().for_each(|half| half.last = half.last.max(Some(last)));
    }

    fn usage(&self, handle: FlowHandle) -> Usage {
        self.table().entry(handle).usage
    }
}
