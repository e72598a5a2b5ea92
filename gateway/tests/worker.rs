//! Workers with a simple stand-in for the engine, over links in memory.

use sixway::admin::{Edit, Filter};
use sixway::worker::{
    BindingEntry, Clock, Command, Dump, DumpPage, Edited, Handover, Inlet, Position, Post, Scan,
    SessionEntry, SubscriberEntry, Table, Translator, TunnelSet, Wake, Worker, mailbox, rings,
};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::fair_share::{Bucket, FilterRule, SenderTable};
use sixway_dataplane::frame::Realm;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::siit::SiitConfig;
use sixway_dataplane::mechanism::siit::dynamic_pool::{Changes, Record, Restored, WallClock};
use sixway_dataplane::nat::{BlockMove, Blocks, SavedSession};
use sixway_dataplane::translate::address::Rfc6052;
use sixway_dataplane::verdict::WorkerId;
use sixway_dataplane::{Counters, DropReason, Frame, Instant, Outbox, Verdict};
use sixway_link::{Link, LinkCounters, Memory};
use sixway_wire::{Endpoint4, Endpoint6, Ipv4Header, UdpHeader, protocol};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::oneshot;

/// Forwards every frame, or hands over those whose first octet is a worker's number plus 100; one that begins with 98 is an error about a path, and one
/// whose IPv4 identification is 8 was written by a tunnel in UDP. Keeps `table` sessions.
#[derive(Default)]
struct Fake {
    counters: Counters,
    table: u32,
    path_errors: Vec<Vec<u8>>,
    /// How many frames it had when the queues were empty for the first time.
    caught_up_at: u64,
    is_overloaded: bool,
    ticks: u32,
    /// Frames that its link has sent.
    sent: Option<Arc<AtomicU64>>,
}

impl Translator for Fake {
    fn process(&mut self, frames: &mut [Frame], _: Instant, _: &mut Outbox) {
        for frame in frames {
            self.counters.received += 1;
            if frame.bytes()[0] == 98 {
                self.path_errors.push(frame.bytes().to_vec());
            }
            frame.by_socket = frame.bytes().get(5) == Some(&8);
            frame.verdict = match (frame.bytes()[0], frame.bytes()[0].checked_sub(100)) {
                (99, _) => Verdict::Control,
                (_, None) => Verdict::Forward,
                (_, Some(worker)) => Verdict::HandOver(WorkerId(worker)),
            };
            match frame.verdict {
                Verdict::Forward => self.counters.forwarded += 1,
                Verdict::Control => self.counters.to_control += 1,
                _ => self.counters.handed_over += 1,
            }
        }
    }
    fn take_over(&mut self, frames: &mut [Frame], _: Instant, _: &mut Outbox) {
        for frame in frames {
            self.counters.taken_over += 1;
            self.counters.forwarded += 1;
            frame.verdict = Verdict::Forward;
        }
    }
    fn refused_handover(&mut self, frame: &mut Frame) {
        frame.verdict = Verdict::Dropped(DropReason::HandoverFull);
        self.counters.handed_over -= 1;
        self.counters.dropped[DropReason::HandoverFull as usize] += 1;
    }
    fn tick(&mut self, _: Instant, _: &mut Outbox) {
        self.ticks += 1;
    }
    fn emptied(&mut self, _: Instant) {}
    fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }
    fn caught_up(&mut self) {
        if self.caught_up_at == 0 {
            self.caught_up_at = self.counters.received;
        }
    }
    fn set_filters(&mut self, filters: Vec<Box<dyn SenderTable>>) {
        self.table += filters.len() as u32;
    }
    /// Counts the frames that were forwarded and not sent as sessions.
    fn settle(&mut self, _: Instant) {
        if let Some(sent) = &self.sent {
            self.table += (self.counters.forwarded - sent.load(Relaxed)) as u32;
        }
    }
    fn end_fast_path(&mut self) {}
    fn export(&mut self, _: Instant) -> Vec<(Identity, SavedSession)> {
        Vec::new()
    }
    fn set_tunnels(&mut self, _: &TunnelSet) {}
    fn learn_path_error(&mut self, error: &[u8], _: Instant) {
        self.table += error.len() as u32;
    }
    fn take_path_errors(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.path_errors)
    }
    fn counters(&self) -> Counters {
        self.counters.clone()
    }
    fn tables(&mut self) -> Vec<Table> {
        vec![Table {
            sessions: self.table.into(),
            bindings: self.caught_up_at,
            bindings_capacity: self.ticks.into(),
            ..Table::default()
        }]
    }
    fn sessions(&mut self, scan: Scan<'_>, rows: &mut Vec<SessionEntry>) -> Option<Position> {
        let Scan { from, budget, room, filter, .. } = scan;
        let mut left = room;
        for slot in from.slot..self.table.min(from.slot + budget as u32) {
            if left == 0 {
                return Some(Position { slot, ..from });
            }
            let session = session(slot);
            if filter.admits_session(session.protocol, session.inside, session.outside, session.remote) {
                rows.push(session);
                left -= 1;
            }
        }
        let slot = from.slot + budget as u32;
        (slot < self.table).then_some(Position { slot, ..from })
    }
    fn bindings(&mut self, _: Scan<'_>, _: &mut Vec<BindingEntry>) -> Option<Position> {
        None
    }
    fn subscribers(&mut self, _: Scan<'_>, _: &mut Vec<SubscriberEntry>) -> Option<Position> {
        None
    }
    fn pool_changes(&mut self, _: u16, _: WallClock) -> Changes {
        Changes::default()
    }
    fn pool_hosts(&mut self, _: u16, _: u32, _: WallClock) -> (Vec<Record>, Option<u32>) {
        (Vec::new(), None)
    }
    fn edit(&mut self, _: u16, _: &Edit) -> Edited {
        Edited::Absent
    }
    fn restore_pool(&mut self, _: u16, _: &[Record], _: WallClock) -> Restored {
        Restored::default()
    }
    fn blocks(&mut self, _: u16) -> Blocks {
        Blocks::default()
    }
    fn wants_blocks(&mut self, _: u16) -> bool {
        false
    }
    fn give_blocks(&mut self, _: u16, _: WorkerId, _: u32) -> Vec<BlockMove> {
        Vec::new()
    }
    fn block_moved(&mut self, _: u16, _: BlockMove) -> bool {
        false
    }
}

fn session(slot: u32) -> SessionEntry {
    SessionEntry {
        mechanism: 0,
        protocol: 6,
        softwire: None,
        inside: Some(Endpoint6::new(u128::from(slot).into(), (slot % 1_000) as u16)),
        outside: Endpoint4::new(slot.into(), 1),
        remote: Endpoint4::new(1.into(), 2),
        state: "established",
        idle: None,
        ends_in: Duration::from_secs(1),
        packets: None,
        octets: None,
        offloaded: false,
    }
}

struct Running {
    far: Memory,
    post: Post,
    thread: std::thread::JoinHandle<std::io::Result<()>>,
}

fn start(fakes: Vec<Fake>) -> Vec<Running> {
    start_upon(fakes, &[])
}

/// Workers that find these packets when they start, all in one batch.
fn start_upon(translators: Vec<impl Translator + 'static>, packets: &[Vec<u8>]) -> Vec<Running> {
    let clock = Clock::start();
    let ends: Vec<_> = translators.iter().map(|_| mailbox().unwrap()).collect();
    let wakes: Vec<Wake> = ends.iter().map(|(_, mailbox)| mailbox.wake().clone()).collect();
    let parts = translators.into_iter().zip(ends).zip(rings(&wakes));
    parts
        .map(|((translator, (post, mailbox)), handover): (_, Handover)| {
            let (near, mut far) = Memory::pair(1_000);
            for packet in packets {
                far.send(&mut Frame::holding(packet)).unwrap();
            }
            let worker = Worker::new(vec![near], translator, clock, mailbox, handover);
            Running { far, post, thread: std::thread::spawn(|| worker.run()) }
        })
        .collect()
}

impl Running {
    fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> T {
        let (sender, receiver) = oneshot::channel();
        self.post.send(command(sender)).unwrap();
        receiver.blocking_recv().unwrap()
    }

    fn counters(&self) -> Counters {
        self.ask(Command::Report).counters
    }

    fn page(&self, filter: Filter, from: Position, limit: usize) -> DumpPage<SessionEntry> {
        self.ask(|answer| {
            Command::Sessions(Dump { filter, from, limit, parts: None, rows: Vec::new(), answer })
        })
    }

    /// Sends `packet` and waits until the worker has seen `count` in all.
    fn pass(&mut self, packet: &[u8], count: u64) -> Counters {
        self.far.send(&mut Frame::holding(packet)).unwrap();
        for _ in 0..500 {
            let counters = self.counters();
            if counters.received >= count {
                return counters;
            }
        }
        panic!("the packet was not seen");
    }

    fn stop(self) {
        self.post.send(Command::Stop).unwrap();
        self.thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_worker_forwards_reports_and_stops() {
    let mut worker = start(vec![Fake::default()]).remove(0);
    let counters = worker.pass(&[1, 2, 3], 1);
    assert_eq!((counters.received, counters.forwarded), (1, 1));
    let mut frames = [Frame::with_capacity(100)];
    assert_eq!(worker.far.receive(&mut frames).unwrap(), 1);
    assert_eq!(frames[0].bytes(), [1, 2, 3]);
    let report = worker.ask(Command::Report);
    assert_eq!((report.link.received, report.link.sent), (1, 1));
    let post = worker.post.clone();
    worker.stop();
    assert!(post.send(Command::Stop).is_err());
}

/// A worker that finds a packet each time it looks may still keep up with them.
#[test]
fn a_worker_has_caught_up_when_a_batch_is_not_full() {
    let worker = start_upon(vec![Fake::default()], &vec![vec![1, 2, 3]; 200]).remove(0);
    let caught_up_at = loop {
        let tables = worker.ask(Command::Report).tables;
        if tables[0].bindings > 0 {
            break tables[0].bindings;
        }
    };
    assert_eq!(caught_up_at, 200);
    worker.stop();
}

#[test]
fn a_worker_whose_gateway_is_gone_ends() {
    let Running { post, thread, .. } = start(vec![Fake::default()]).remove(0);
    drop(post);
    thread.join().unwrap().unwrap();
}

#[test]
fn a_great_table_is_read_in_pages_while_packets_pass() {
    let mut worker = start(vec![Fake { table: 1_000_000, ..Fake::default() }]).remove(0);
    let filter = Filter { port: Some(7), ..Filter::default() };
    let (sender, receiver) = oneshot::channel();
    let dump = Dump {
        filter: filter.clone(),
        from: Position::default(),
        limit: 5_000,
        parts: None,
        rows: vec![],
        answer: sender,
    };
    worker.post.send(Command::Sessions(dump)).unwrap();
    assert_eq!(worker.pass(&[1], 1).forwarded, 1);
    let page = receiver.blocking_recv().unwrap();
    assert_eq!((page.rows.len(), page.next), (1_000, None));
    assert!(page.rows.iter().all(|row| row.inside.unwrap().port == 7));

    let first = worker.page(filter.clone(), Position::default(), 600);
    assert_eq!(first.rows.len(), 600);
    let rest = worker.page(filter, first.next.unwrap(), 600);
    assert_eq!((rest.rows.len(), rest.next), (400, None));

    // One that is to be short ends before its page is full.
    let (sender, receiver) = oneshot::channel();
    let (filter, from) = (Filter { port: Some(7), ..Filter::default() }, Position::default());
    let dump = Dump { filter, from, limit: 600, parts: Some(4), rows: vec![], answer: sender };
    worker.post.send(Command::Sessions(dump)).unwrap();
    let page = receiver.blocking_recv().unwrap();
    assert_eq!((page.rows.len(), page.next.unwrap().slot), (3, 4 * 512));
    worker.stop();
}

#[test]
fn a_packet_of_another_worker_is_handed_over_and_frames_are_conserved() {
    let mut workers = start(vec![Fake::default(), Fake::default()]);
    let counters = workers[0].pass(&[101, 9], 1);
    assert!(counters.frames_are_conserved());
    assert_eq!(counters.handed_over, 1);
    let mut other = workers[1].counters();
    for _ in 0..500 {
        if other.taken_over == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        other = workers[1].counters();
    }
    assert_eq!((other.taken_over, other.forwarded), (1, 1));
    let mut frames = [Frame::with_capacity(100)];
    assert_eq!(workers[1].far.receive(&mut frames).unwrap(), 1);
    assert_eq!(frames[0].bytes(), [101, 9]);
    workers.into_iter().for_each(Running::stop);
}

#[test]
fn a_packet_that_cannot_be_handed_over_is_a_counted_drop() {
    let mut worker = start(vec![Fake::default()]).remove(0);
    let counters = worker.pass(&[107], 1);
    assert_eq!((counters.handed_over, counters.dropped[DropReason::HandoverFull as usize]), (0, 1));
    assert!(counters.frames_are_conserved());
    worker.stop();
}

/// A UDP packet from 203.0.113.2 to 203.0.113.9, with its data counting up.
fn udp4(data: usize) -> Vec<u8> {
    let (source, destination) = ([203, 0, 113, 2].into(), [203, 0, 113, 9].into());
    let header = Ipv4Header::new(source, destination, protocol::UDP, 8 + data);
    let header = Ipv4Header { identification: 7, dont_fragment: false, ..header };
    let udp = UdpHeader { checksum: 0x1234, ..UdpHeader::new(1, 2, data) };
    let data: Vec<u8> = (0..data).map(|at| at as u8).collect();
    [&header.octets()[..], &udp.octets(), &data].concat()
}

#[test]
fn what_a_packet_is_cut_into_leaves_before_the_packets_that_came_behind_it() {
    let prefix = Rfc6052::new("2001:db8::/96".parse().unwrap(), false).unwrap();
    let siit = SiitConfig { prefix: Some(prefix), ..SiitConfig::default() };
    let engine = Engine::new(&EngineConfig { siit: vec![siit], ..EngineConfig::default() }).unwrap();
    let mut worker =
        start_upon(vec![engine], &[udp4(10), udp4(1_400), udp4(20), udp4(1_300), udp4(30)]).remove(0);
    let mut frames: Vec<Frame> = (0..10).map(|_| Frame::with_capacity(2_000)).collect();
    for _ in 0..500 {
        if worker.counters().received == 5 && worker.far.waiting() == 7 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(worker.far.receive(&mut frames).unwrap(), 7);
    let lengths: Vec<usize> = frames[..7].iter().map(Frame::len).collect();
    assert_eq!(lengths, [58, 1_280, 224, 68, 1_280, 124, 78]);
    worker.stop();
}

#[test]
fn what_comes_by_an_inlet_leaves_by_the_first_link_and_is_counted_after_it_is_closed() {
    let mut worker = start(vec![Fake::default()]).remove(0);
    let address = "192.0.2.1".parse().unwrap();
    let (near, mut socket) = Memory::pair(10);
    worker.post.send(Command::AddInlet(Inlet::new((address, None), Box::new(near)))).unwrap();
    socket.send(&mut Frame::holding(&[7; 60])).unwrap();
    for _ in 0..500 {
        if worker.counters().received == 1 && worker.far.waiting() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut frames = [Frame::with_capacity(100)];
    assert_eq!(worker.far.receive(&mut frames).unwrap(), 1);
    assert_eq!((frames[0].bytes(), socket.waiting()), (&[7; 60][..], 0));
    worker.post.send(Command::RemoveInlet((address, None))).unwrap();
    assert_eq!(worker.ask(Command::Report).link.received, 1);
    socket.send(&mut Frame::holding(&[7; 60])).unwrap();
    assert_eq!(worker.pass(&[8; 60], 2).received, 2);
    worker.stop();
}

/// A socket that was destroyed, as by `ss -K`.
#[derive(Default)]
struct Destroyed(LinkCounters);

impl Link for Destroyed {
    fn receive(&mut self, _: &mut [Frame]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionAborted.into())
    }
    fn send(&mut self, _: &mut Frame) -> io::Result<()> {
        Ok(())
    }
    fn counters(&self) -> &LinkCounters {
        &self.0
    }
}

#[test]
fn whoever_gave_a_worker_a_socket_sees_that_it_failed_and_that_another_is_open() {
    let worker = start(vec![Fake::default()]).remove(0);
    let at = ("192.0.2.1".parse().unwrap(), Some(3_544));
    let (near, _far) = Memory::pair(10);
    let (good, bad) = (Inlet::new(at, Box::new(near)), Inlet::new(at, Box::new(Destroyed::default())));
    let (good_is, bad_is) = (good.watch(), bad.watch());
    assert_eq!(bad.to_string(), "UDP 192.0.2.1:3544");
    for inlet in [good, bad] {
        worker.post.send(Command::AddInlet(inlet)).unwrap();
    }
    for _ in 0..500 {
        if bad_is.is_closed() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(bad_is.is_closed() && !good_is.is_closed());
    worker.post.send(Command::RemoveInlet(at)).unwrap();
    worker.ask(Command::Report);
    assert!(good_is.is_closed());
    worker.stop();
}

#[test]
fn what_a_tunnel_wrote_leaves_by_the_socket_of_its_source_and_no_forwarded_packet_does() {
    let mut worker = start(vec![Fake::default()]).remove(0);
    let at = ("203.0.113.2".parse().unwrap(), Some(1));
    let (near, mut socket) = Memory::pair(10);
    worker.post.send(Command::AddInlet(Inlet::new(at, Box::new(near)))).unwrap();
    // The worker has it before the packets come.
    worker.ask(Command::Report);
    let written = |data| {
        let mut packet = udp4(data);
        packet[5] = 8;
        packet
    };
    let of_inlet = written(10);
    let mut other_port = written(11);
    other_port[21] = 9;
    let mut other_address = written(12);
    other_address[15] += 1;
    let mut other_protocol = written(13);
    other_protocol[9] = 6;
    let mut later_fragment = written(14);
    later_fragment[7] = 1;
    // A stranger wrote the source.
    let forwarded = udp4(15);
    let elsewhere = [other_port, other_address, other_protocol, later_fragment, forwarded];
    for packet in elsewhere.iter().chain([&of_inlet]) {
        worker.far.send(&mut Frame::holding(packet)).unwrap();
    }
    for _ in 0..500 {
        if socket.waiting() == 1 && worker.far.waiting() == 5 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut frames: Vec<Frame> = (0..6).map(|_| Frame::with_capacity(2_000)).collect();
    assert_eq!(socket.receive(&mut frames).unwrap(), 1);
    assert_eq!(frames[0].bytes(), of_inlet);
    assert_eq!(worker.far.receive(&mut frames).unwrap(), 5);
    assert!(frames.iter().zip(&elsewhere).all(|(frame, packet)| frame.bytes() == packet));
    worker.post.send(Command::RemoveInlet((at.0, None))).unwrap();
    // It is still open, and what it brings leaves by it.
    socket.send(&mut Frame::holding(&of_inlet)).unwrap();
    for _ in 0..500 {
        if socket.waiting() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((socket.waiting(), worker.far.waiting()), (1, 0));
    worker.stop();
}

#[test]
fn controls_packets_go_to_control_and_those_it_has_no_room_for_are_lost() {
    let clock = Clock::start();
    let (post, mailbox) = mailbox().unwrap();
    let (near, far) = Memory::pair(10);
    let (sender, mut control) = tokio::sync::mpsc::channel(1);
    let handover = rings(&[mailbox.wake().clone()]).remove(0);
    let worker = Worker::new(vec![near], Fake::default(), clock, mailbox, handover).with_control(sender);
    let mut running = Running { far, post, thread: std::thread::spawn(|| worker.run()) };
    running.pass(&[99, 1], 1);
    running.pass(&[99, 2], 2);
    assert_eq!(running.counters().to_control, 2);
    assert_eq!(control.blocking_recv(), Some(vec![99, 1]));
    running.pass(&[99, 3], 3);
    assert_eq!(control.blocking_recv(), Some(vec![99, 3]));
    assert_eq!(running.far.waiting(), 0);
    running.stop();
}

#[test]
fn every_worker_learns_from_a_path_error_and_one_answers_it() {
    let mut workers = start(vec![Fake::default()]);
    let learning = workers.remove(0);
    learning.post.send(Command::PathError(vec![69; 56].into())).unwrap();
    assert_eq!(learning.ask(Command::Report).tables[0].sessions, 56);
    assert_eq!(learning.counters().received, 0);

    let (post, mailbox) = mailbox().unwrap();
    let (near, far) = Memory::pair(10);
    let handover = rings(&[mailbox.wake().clone()]).remove(0);
    let worker = Worker::new(vec![near], Fake::default(), Clock::start(), mailbox, handover);
    let worker = worker.answering_path_errors();
    let answering = Running { far, post, thread: std::thread::spawn(|| worker.run()) };
    answering.post.send(Command::PathError(vec![69; 56].into())).unwrap();
    let report = answering.ask(Command::Report);
    assert_eq!((report.counters.received, report.tables[0].sessions), (1, 0));
    assert_eq!(answering.far.waiting(), 1);
    learning.stop();
    answering.stop();
}

#[test]
fn the_other_workers_learn_from_a_path_error_that_came_as_a_packet_and_do_not_answer_it() {
    let mut ends: Vec<_> = (0..3).map(|_| mailbox().unwrap()).collect();
    let wakes: Vec<Wake> = ends.iter().map(|(_, mailbox)| mailbox.wake().clone()).collect();
    let posts: Vec<Post> = ends.iter().map(|(post, _)| post.clone()).collect();
    let mut running: Vec<Running> = Vec::new();
    for (number, (handover, (post, mailbox))) in rings(&wakes).into_iter().zip(ends.drain(..)).enumerate() {
        let (near, far) = Memory::pair(10);
        let worker = Worker::new(vec![near], Fake::default(), Clock::start(), mailbox, handover);
        let others = posts.iter().enumerate().filter(|(other, _)| *other != number);
        let worker =
            worker.answering_path_errors().with_peers(others.map(|(_, post)| post.clone()).collect());
        running.push(Running { far, post, thread: std::thread::spawn(|| worker.run()) });
    }
    running[0].pass(&[98; 50], 1);
    let learnt = |worker: &Running| worker.ask(Command::Report).tables[0].sessions;
    for _ in 0..500 {
        if running[1..].iter().all(|worker| learnt(worker) == 50) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(running.iter().map(learnt).collect::<Vec<_>>(), [0, 50, 50]);
    assert!(running[1..].iter().all(|worker| worker.counters().received == 0 && worker.far.waiting() == 0));
    running.into_iter().for_each(Running::stop);
}

struct NoSenders;

impl SenderTable for NoSenders {
    fn buckets(&self) -> &[Bucket] {
        Default::default()
    }
    fn set(&mut self, _: Option<&FilterRule>) {}
    fn dropped(&self) -> u64 {
        0
    }
}

/// A link of a realm, and whether it has a filter in front of it.
struct Filtered(Memory, u16, bool);

impl Link for Filtered {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        self.0.receive(frames)
    }
    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.0.send(frame)
    }
    fn take_filter(&mut self) -> Option<Box<dyn SenderTable>> {
        self.2.then(|| Box::new(NoSenders) as Box<dyn SenderTable>)
    }
    fn realm(&self) -> Realm {
        Realm(self.1)
    }
    fn counters(&self) -> &LinkCounters {
        self.0.counters()
    }
}

/// A link that counts the frames that it has sent.
struct Counting(Memory, Arc<AtomicU64>);

impl Link for Counting {
    fn receive(&mut self, frames: &mut [Frame]) -> io::Result<usize> {
        self.0.receive(frames)
    }
    fn send(&mut self, frame: &mut Frame) -> io::Result<()> {
        self.1.fetch_add(1, Relaxed);
        self.0.send(frame)
    }
    fn realm(&self) -> Realm {
        self.0.realm()
    }
    fn counters(&self) -> &LinkCounters {
        self.0.counters()
    }
}

/// Otherwise packets of the other queue would be taken for those that passed a filter, or a sender would have a share of each queue.
#[test]
fn an_engine_has_filters_if_each_of_its_queues_has_one_and_is_of_another_realm() {
    for (has, realms, expected) in [
        ([true, true], [0, 1], 2),
        ([true, false], [0, 1], 0),
        ([false, true], [0, 1], 0),
        ([true, true], [1, 1], 0),
    ] {
        let links = has.into_iter().zip(realms);
        let links: Vec<_> = links.map(|(has, realm)| Filtered(Memory::pair(1).0, realm, has)).collect();
        let (post, mailbox) = mailbox().unwrap();
        let handover = rings(&[mailbox.wake().clone()]).into_iter().next().unwrap();
        let worker = Worker::new(links, Fake::default(), Clock::start(), mailbox, handover);
        let running = Running { far: Memory::pair(1).0, post, thread: std::thread::spawn(|| worker.run()) };
        assert_eq!(running.ask(Command::Report).tables[0].sessions, expected, "{has:?} {realms:?}");
        running.stop();
    }
}

/// It polls for that time after each packet, and sleeps again when none came in it.
#[test]
fn a_worker_that_polls_takes_turns_until_its_time_after_a_packet_is_over() {
    let [sleeps, polls] = [0, 300].map(|busy_poll| {
        let (post, mailbox) = mailbox().unwrap();
        let handover = rings(&[mailbox.wake().clone()]).into_iter().next().unwrap();
        let (near, far) = Memory::pair(1);
        let worker = Worker::new(vec![near], Fake::default(), Clock::start(), mailbox, handover)
            .busy_polling(Duration::from_millis(busy_poll));
        let mut running = Running { far, post, thread: std::thread::spawn(|| worker.run()) };
        let turns = |running: &Running, time| {
            let before = running.ask(Command::Report).tables[0].bindings_capacity;
            std::thread::sleep(Duration::from_millis(time));
            running.ask(Command::Report).tables[0].bindings_capacity - before
        };
        let counts = [1, 2].map(|packet| {
            running.pass(&[1, 2, 3], packet);
            let after_a_packet = turns(&running, 200);
            std::thread::sleep(Duration::from_millis(800));
            [after_a_packet, turns(&running, 300)]
        });
        running.stop();
        counts
    });
    assert!(sleeps.iter().flatten().all(|turns| *turns <= 8), "{sleeps:?}");
    // Other programs may have the CPU for some of the time.
    assert!(polls.iter().all(|[busy, over]| *busy >= 40 && *over <= 8), "{polls:?}");
}

/// What an engine does when a batch was sent, such as making a flow active in the fast path, must not come before it: packets would overtake
/// those of the batch.
#[test]
fn a_batch_is_sent_before_the_engine_is_told_that_it_was() {
    let (post, mailbox) = mailbox().unwrap();
    let handover = rings(&[mailbox.wake().clone()]).into_iter().next().unwrap();
    let (near, mut far) = Memory::pair(8);
    let sent = Arc::new(AtomicU64::new(0));
    let link = Counting(near, Arc::clone(&sent));
    let fake = Fake { sent: Some(sent), ..Fake::default() };
    (0..3).for_each(|_| far.send(&mut Frame::holding(&[1, 2, 3])).unwrap());
    let worker = Worker::new(vec![link], fake, Clock::start(), mailbox, handover);
    let mut running = Running { far, post, thread: std::thread::spawn(|| worker.run()) };
    running.pass(&[1, 2, 3], 4);
    assert_eq!(running.ask(Command::Report).tables[0].sessions, 0, "packets not sent when it was told");
    running.stop();
}

/// Filters that drop all packets wake nobody: their levels are lowered in each interval.
#[test]
fn an_overloaded_worker_without_packets_takes_a_turn_in_each_interval() {
    let [calm, overloaded] = [false, true].map(|is_overloaded| {
        let (post, mailbox) = mailbox().unwrap();
        let handover = rings(&[mailbox.wake().clone()]).into_iter().next().unwrap();
        let fake = Fake { is_overloaded, ..Fake::default() };
        let worker = Worker::new(vec![Memory::pair(1).0], fake, Clock::start(), mailbox, handover);
        let running = Running { far: Memory::pair(1).0, post, thread: std::thread::spawn(|| worker.run()) };
        std::thread::sleep(Duration::from_millis(500));
        let ticks = running.ask(Command::Report).tables[0].bindings_capacity;
        running.stop();
        ticks
    });
    assert!(calm <= 8 && overloaded >= 20, "{calm} {overloaded}");
}
