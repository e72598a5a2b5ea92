//! A worker's loop.

use super::answer::Answer;
use super::blocks::BlockExchange;
use super::command::{Command, Mailbox, Post, RING};
use super::dump::Dumps;
use super::handover::{Handover, Onward};
use super::tap::Tap;
use super::translator::{Report, Translator};
use super::tunnels::{ControlSender, Inlets};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sixway_dataplane::frame::{Ingress, MAX_PACKET};
use sixway_dataplane::{Frame, Instant, Offload, Outbox, Verdict};
use sixway_link::{BATCH_OCTETS, Clock, Link, LinkCounters};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::thread::yield_now;
use std::time::Duration;

/// Frames of a batch.
pub const BATCH: usize = 64;
/// Additional frames that a batch may produce: each frame may become many fragments.
const OUTBOX: usize = 1_024;
/// While packets come by the links and none by the inlets, inlets are polled only once in this many turns: steered packets do not come by
/// them, and asking costs.
const INLET_TURNS: u8 = 8;
/// The engine's time is updated at least this often, in milliseconds.
const TICK: u8 = 100;
/// The same while it is overloaded: the interval of shares.
const OVERLOADED_TICK: u8 = 10;

/// A thread's work: its queues, its engine, its mailbox.
pub struct Worker<L, T> {
    links: Vec<L>,
    translator: T,
    clock: Clock,
    mailbox: Mailbox,
    handover: Handover,
    blocks: BlockExchange,
    dumps: Dumps,
    inlets: Inlets,
    /// Turns until the inlets are examined.
    until_inlets: u8,
    /// For how long it polls after a packet before it sleeps, in nanoseconds.
    busy_poll: u64,
    /// Whether a queue may have more than was taken out of it in this turn.
    is_behind: bool,
    /// What inlets counted that are closed.
    closed: LinkCounters,
    control: Option<ControlSender>,
    /// The other workers, which get the path errors that this one receives.
    others: Vec<Post>,
    /// Whether this worker also answers path errors.
    answers_path_errors: bool,
    frames: Vec<Frame>,
    outbox: Outbox,
    tap: Tap,
}

/// What one turn of the loop leaves to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopState {
    /// There is more.
    Busy,
    /// Nothing waits.
    Idle,
    /// A stop command arrived.
    Stop,
}

impl<L: Link, T: Translator> Worker<L, T> {
    /// A worker for `links`, one at least.
    pub fn new(
        mut links: Vec<L>,
        mut translator: T,
        clock: Clock,
        mailbox: Mailbox,
        handover: Handover,
    ) -> Self {
        // A sender would have a share for each of several queues of a device.
        let has_several =
            (1..links.len()).any(|place| links[..place].iter().any(|it| it.realm() == links[place].realm()));
        let filters: Option<Vec<_>> = links.iter_mut().map(Link::take_filter).collect();
        filters.filter(|_| !has_several).into_iter().for_each(|filters| translator.set_filters(filters));
        Self {
            links,
            translator,
            clock,
            mailbox,
            handover,
            blocks: BlockExchange::default(),
            dumps: Dumps::default(),
            inlets: Inlets::default(),
            until_inlets: 0,
            busy_poll: 0,
            is_behind: false,
            closed: LinkCounters::default(),
            control: None,
            others: Vec::new(),
            answers_path_errors: false,
            frames: (0..BATCH).map(|_| Frame::with_capacity(MAX_PACKET)).collect(),
            outbox: Outbox::new(OUTBOX),
            tap: Tap::default(),
        }
    }

    /// Packets for the gateway's own control protocols go there; without, they are lost.
    pub fn with_control(self, control: ControlSender) -> Self {
        Self { control: Some(control), ..self }
    }

    /// Port blocks move between this worker and the others.
    pub fn exchanging(self, blocks: BlockExchange) -> Self {
        Self { blocks, ..self }
    }

    /// Forwards path errors about tunnels to these workers, too.
    pub fn with_peers(self, others: Vec<Post>) -> Self {
        Self { others, ..self }
    }

    /// Polls for this time after a packet before it sleeps, so that packets in this time need not wake it.
    pub fn busy_polling(self, time: Duration) -> Self {
        Self { busy_poll: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), ..self }
    }

    /// This worker alone answers errors about tunnel packets.
    pub fn answering_path_errors(self) -> Self {
        Self { answers_path_errors: true, ..self }
    }

    /// Runs until it is stopped.
    ///
    /// # Errors
    /// A link failed and must be closed.
    pub fn run(mut self) -> io::Result<()> {
        self.turns()
    }

    /// The same for a gateway whose sessions should continue elsewhere when a link failed: reports that, and waits until it should leave or
    /// stop.
    pub fn run_to_the_end(mut self, failed: impl FnOnce(io::Error)) {
        let Err(error) = self.turns() else { return };
        self.links.clear();
        // A successor binds to the same ports.
        let mut retired = self.inlets.retire();
        failed(error);
        while let Ok(command) = self.mailbox.commands.recv() {
            if let Command::AddInlet(inlet) = command {
                retired.push(inlet.retire());
                continue;
            }
            if matches!(command, Command::Stop) {
                return;
            }
            if let Command::Leave(answer) = command {
                give(answer, self.translator.export(self.clock.now()));
                return;
            }
        }
    }

    fn turns(&mut self) -> io::Result<()> {
        let mut busy_until = Instant(0);
        loop {
            match self.turn()? {
                LoopState::Busy if self.busy_poll > 0 => {
                    busy_until = Instant(self.clock.now().0.saturating_add(self.busy_poll));
                }
                LoopState::Busy => {}
                // The kernel's threads that receive packets may need this CPU.
                LoopState::Idle if self.busy_poll > 0 && self.clock.now() < busy_until => yield_now(),
                LoopState::Idle => self.wait()?,
                LoopState::Stop => return Ok(()),
            }
        }
    }

    fn turn(&mut self) -> io::Result<LoopState> {
        let mut busy = false;
        self.is_behind = false;
        for link in 0..self.links.len() {
            busy |= self.batch(link)?;
        }
        self.until_inlets = self.until_inlets.saturating_sub(1);
        if !busy || self.until_inlets == 0 {
            let any = self.take_in()?;
            self.until_inlets = if any { 1 } else { INLET_TURNS };
            busy |= any;
        }
        busy |= self.take_over()?;
        if !self.is_behind && !self.handover.waits() {
            self.translator.caught_up();
        }
        self.pass_on_path_errors();
        let now = self.clock.now();
        self.translator.tick(now, &mut self.outbox);
        if !self.outbox.is_empty() && !self.links.is_empty() {
            send_outbox((&mut self.links, &mut self.inlets), &mut self.outbox)?;
        }
        if !busy {
            self.translator.emptied(now);
        }
        self.translator.settle(now);
        match self.commands()? {
            LoopState::Idle => {}
            LoopState::Busy => busy = true,
            LoopState::Stop => return Ok(LoopState::Stop),
        }
        busy |= self.blocks.turn(&mut self.translator, now);
        busy |= self.dumps.step(&mut self.translator, now);
        Ok(if busy { LoopState::Busy } else { LoopState::Idle })
    }

    /// Receives and sends one batch. Whether there was any.
    fn batch(&mut self, link: usize) -> io::Result<bool> {
        let count = self.links[link].receive(&mut self.frames)?;
        if count == 0 {
            return Ok(false);
        }
        let (frames, now) = (&mut self.frames[..count], self.clock.now());
        self.is_behind |= is_full(frames);
        self.tap.arrived(frames, now);
        self.translator.process(frames, now, &mut self.outbox);
        let (control, tap) = (self.control.as_ref(), &mut self.tap);
        let ways = Ways { control, onward: self.handover.onward(), tap };
        emit(
            (&mut self.links, link, &mut self.inlets),
            &mut self.translator,
            frames,
            &mut self.outbox,
            ways,
        )?;
        self.translator.settle(now);
        Ok(true)
    }

    /// Receives one batch from each inlet, and sends by the first link. One that fails is closed: the others continue. Whether there
    /// was any.
    fn take_in(&mut self) -> io::Result<bool> {
        let mut busy = false;
        for place in (0..self.inlets.all().len()).rev() {
            match self.inlets.all_mut()[place].link.receive(&mut self.frames) {
                Ok(0) => {}
                Ok(count) => {
                    busy = true;
                    self.received(count)?;
                }
                Err(error) => {
                    let inlet = self.inlets.take(place);
                    self.closed.add(inlet.link.counters());
                    tracing::error!("stopped receiving tunnel packets for {inlet}: {error}");
                }
            }
        }
        Ok(busy)
    }

    /// Works on the first `count` frames, which came from no link of ours, and sends by the first one.
    fn received(&mut self, count: usize) -> io::Result<()> {
        if self.links.is_empty() {
            return Ok(());
        }
        let frames = &mut self.frames[..count];
        frames.iter_mut().for_each(|frame| frame.ingress = Ingress::Socket);
        self.is_behind |= is_full(frames);
        let now = self.clock.now();
        self.tap.arrived(frames, now);
        self.translator.process(frames, now, &mut self.outbox);
        let (control, tap) = (self.control.as_ref(), &mut self.tap);
        let ways = Ways { control, onward: self.handover.onward(), tap };
        emit((&mut self.links, 0, &mut self.inlets), &mut self.translator, frames, &mut self.outbox, ways)
    }

    /// An ICMPv4 error about a tunnel packet: one worker treats it as a packet that was received, the others learn from it.
    fn path_error(&mut self, error: &[u8]) -> io::Result<()> {
        if !self.answers_path_errors {
            self.translator.learn_path_error(error, self.clock.now());
            return Ok(());
        }
        let Some(frame) = self.frames.first_mut() else { return Ok(()) };
        if error.len() > frame.space().len() {
            return Ok(());
        }
        frame.fill(error, Offload::default());
        self.received(1)
    }

    /// Tells the other workers of path errors that came here as packets. A slow worker misses some: more will come.
    fn pass_on_path_errors(&mut self) {
        for error in self.translator.take_path_errors() {
            let error: Arc<[u8]> = error.into();
            for post in &self.others {
                let _ = post.send(Command::LearnPathError(Arc::clone(&error)));
            }
        }
    }

    /// Does the work that other workers handed over. Whether there was any.
    fn take_over(&mut self) -> io::Result<bool> {
        if self.links.is_empty() {
            return Ok(false);
        }
        self.handover.take(BATCH, |frames, onward| {
            let now = self.clock.now();
            self.tap.arrived(frames, now);
            self.translator.take_over(frames, now, &mut self.outbox);
            let ways = Ways { control: self.control.as_ref(), onward, tap: &mut self.tap };
            emit((&mut self.links, 0, &mut self.inlets), &mut self.translator, frames, &mut self.outbox, ways)
        })
    }

    /// Obeys the commands that wait, as many as the ring holds.
    fn commands(&mut self) -> io::Result<LoopState> {
        for _ in 0..RING {
            match self.mailbox.commands.try_recv() {
                Ok(Command::Report(answer)) => give(answer, self.report()),
                Ok(Command::Sessions(dump)) => self.dumps.sessions(dump),
                Ok(Command::Bindings(dump)) => self.dumps.bindings(dump),
                Ok(Command::Subscribers(dump)) => self.dumps.subscribers(dump),
                Ok(Command::PoolChanges(mechanism, answer)) => {
                    let wall = self.clock.wall();
                    give(answer, self.translator.pool_changes(mechanism, wall));
                }
                Ok(Command::PoolHosts(mechanism, from, answer)) => {
                    let wall = self.clock.wall();
                    give(answer, self.translator.pool_hosts(mechanism, from, wall));
                }
                Ok(Command::Draining(from, answer)) => {
                    give(answer, self.translator.draining(from, self.clock.now()));
                }
                Ok(Command::AddressBlocks(from, answer)) => {
                    give(answer, self.translator.address_blocks(from));
                }
                Ok(Command::Edit(mechanism, edit, answer)) => {
                    give(answer, self.translator.edit(mechanism, &edit));
                }
                Ok(Command::Explicit(mechanism, request, answer)) => {
                    give(answer, self.translator.explicit(mechanism, &request, self.clock.now()));
                }
                Ok(Command::Tunnels(set, answer)) => {
                    self.translator.set_tunnels(&set);
                    give(answer, ());
                }
                Ok(Command::Leases(index, changes, answer)) => {
                    self.translator.change_leases(index, &changes);
                    give(answer, ());
                }
                Ok(Command::Teredo(index, change, answer)) => {
                    self.translator.change_teredo(index, &change, self.clock.now());
                    give(answer, ());
                }
                Ok(Command::TeredoPeers(index, from, answer)) => {
                    give(answer, self.translator.teredo_peers(index, from, self.clock.now()));
                }
                Ok(Command::AddInlet(inlet)) => self.inlets.add(inlet),
                Ok(Command::RemoveInlet(at)) => {
                    let closed = self.inlets.remove(at);
                    closed.iter().for_each(|inlet| self.closed.add(inlet.link.counters()));
                }
                Ok(Command::PathError(error)) => self.path_error(&error)?,
                Ok(Command::LearnPathError(error)) => {
                    self.translator.learn_path_error(&error, self.clock.now());
                }
                Ok(Command::Samples(answer)) => give(answer, self.tap.samples()),
                Ok(Command::Watch(watch)) => self.tap.watch(watch, self.clock.now()),
                Ok(Command::EndFastPath(answer)) => {
                    self.translator.end_fast_path();
                    give(answer, ());
                }
                Ok(Command::GiveBlocks(mechanism, to, owned)) => {
                    self.blocks.give(&mut self.translator, mechanism, to, owned);
                }
                Ok(Command::GiveWanted(mechanism, to, port, answer)) => {
                    give(answer, self.blocks.give_wanted(&mut self.translator, mechanism, to, port));
                }
                Ok(Command::BlocksMoved(mechanism, moved)) => {
                    self.blocks.moved(&mut self.translator, mechanism, &moved);
                }
                Ok(Command::Leave(answer)) => {
                    give(answer, self.translator.export(self.clock.now()));
                    return Ok(LoopState::Stop);
                }
                Err(TryRecvError::Empty) => return Ok(LoopState::Idle),
                // All senders were dropped: nothing else can stop it.
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(LoopState::Stop),
            }
        }
        Ok(LoopState::Busy)
    }

    fn report(&mut self) -> Report {
        let mut link = self.closed;
        self.links.iter().for_each(|one| link.add(one.counters()));
        self.inlets.all().iter().for_each(|one| link.add(one.link.counters()));
        Report { counters: self.translator.counters(), link, tables: self.translator.tables() }
    }

    /// Waits for packets, commands, other workers, or the time to pass.
    fn wait(&self) -> io::Result<()> {
        let fd = self.mailbox.wake.fd();
        let mut fds = vec![PollFd::new(fd, PollFlags::POLLIN)];
        fds.extend(
            self.links.iter().filter_map(|link| Some(PollFd::new(link.poll_fd()?, PollFlags::POLLIN))),
        );
        let inlets = self.inlets.all().iter();
        fds.extend(inlets.filter_map(|inlet| Some(PollFd::new(inlet.link.poll_fd()?, PollFlags::POLLIN))));
        let tick = if self.translator.is_overloaded() { OVERLOADED_TICK } else { TICK };
        match poll(&mut fds, PollTimeout::from(tick)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => {
                return Err(io::Error::new(io::Error::from(error).kind(), format!("poll: {error}")));
            }
        }
        if fds[0].any().unwrap_or(false) {
            self.mailbox.wake.clear();
        }
        Ok(())
    }
}

/// Whether there may be more where these frames came from.
fn is_full(frames: &[Frame]) -> bool {
    frames.len() == BATCH || frames.iter().map(Frame::len).sum::<usize>() >= BATCH_OCTETS
}

/// Sends the answer; the receiver may be gone.
fn give<T>(to: Answer<T>, answer: T) {
    let _ = to.send(answer);
}

/// Frames that are not sent, and who is notified of them.
struct Ways<'a> {
    control: Option<&'a ControlSender>,
    onward: Onward<'a>,
    tap: &'a mut Tap,
}

/// By what frames leave: the links, the one in use, and the sockets.
type Leaving<'a, L> = (&'a mut [L], usize, &'a mut Inlets);

/// The link by which a frame leaves: the one in use if that is of the frame's realm, else the first that is.
#[inline(always)]
fn link_of<'a, L: Link>((links, used): (&'a mut [L], usize), frame: &Frame) -> Option<&'a mut L> {
    let realm = frame.realm();
    if links.get(used).is_some_and(|link| link.realm() == realm) {
        return links.get_mut(used);
    }
    links.iter_mut().find(|link| link.realm() == realm)
}

/// Sends a frame by the socket of the tunnel that wrote it, or by the link of its realm. One without a link is lost; every realm of an engine has one.
#[inline(always)]
fn send<L: Link>((links, used, inlets): Leaving<'_, L>, frame: &mut Frame) -> io::Result<()> {
    if frame.by_socket
        && let Some(outlet) = inlets.outlet(frame.bytes())
    {
        return outlet.send(frame);
    }
    link_of((links, used), frame).map_or(Ok(()), |link| link.send(frame))
}

/// Sends what leaves, by the link in use if that is of its realm, and hands over what belongs elsewhere.
fn emit<L: Link>(
    (links, used, inlets): Leaving<'_, L>,
    translator: &mut impl Translator,
    frames: &mut [Frame],
    outbox: &mut Outbox,
    Ways { control, mut onward, tap }: Ways<'_>,
) -> io::Result<()> {
    let mut sent = 0;
    for (place, frame) in frames.iter_mut().enumerate() {
        // The pieces of a frame leave at its position, or a later packet of its flow would overtake it.
        for piece in outbox.frames().get_mut(sent..frame.pieces.end.into()).unwrap_or_default() {
            send_piece((&mut *links, used, &mut *inlets), piece, place, &mut onward)?;
            sent += 1;
        }
        tap.decided(place, frame);
        match frame.verdict {
            Verdict::Forward | Verdict::Answered => send((&mut *links, used, &mut *inlets), frame)?,
            Verdict::HandOver(worker) if onward.give(place, frame, worker) => {}
            Verdict::HandOver(_) => translator.refused_handover(frame),
            Verdict::Control => {
                // Control that is behind loses what its peers send again.
                let _ = control.map(|control| control.try_send(frame.bytes().to_vec()));
            }
            Verdict::Pending
            | Verdict::InPieces
            | Verdict::Merged
            | Verdict::Punted
            | Verdict::Dropped(_)
            | Verdict::Held
            | Verdict::Absorbed => {}
        }
    }
    for piece in outbox.frames().iter_mut().skip(sent) {
        send_piece((&mut *links, used, &mut *inlets), piece, frames.len().saturating_sub(1), &mut onward)?;
    }
    outbox.clear();
    links.iter_mut().try_for_each(Link::flush)?;
    inlets.flush()?;
    onward.wake();
    Ok(())
}

/// Sends a frame of the outbox, or gives it to the worker that it is for. One for which that worker has no room is lost: it is an ICMP error.
fn send_piece<L: Link>(
    leaving: Leaving<'_, L>,
    piece: &mut Frame,
    place: usize,
    onward: &mut Onward<'_>,
) -> io::Result<()> {
    if let Verdict::HandOver(worker) = piece.verdict {
        onward.give(place, piece, worker);
        return Ok(());
    }
    send(leaving, piece)
}

/// Sends what is in the outbox, and empties it.
fn send_outbox<L: Link>((links, inlets): (&mut [L], &mut Inlets), outbox: &mut Outbox) -> io::Result<()> {
    for frame in outbox.frames() {
        send((&mut *links, 0, &mut *inlets), frame)?;
    }
    outbox.clear();
    links.iter_mut().try_for_each(Link::flush)?;
    inlets.flush()
}
