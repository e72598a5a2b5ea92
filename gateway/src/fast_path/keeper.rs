//! The thread that keeps the programs' view of the host: it receives netlink events, sends the heartbeat of the gateway, probes neighbours in
//! use, and reports changes to the daemon.

use super::event::{self, Event};
use super::facts::{Attached, Facts};
use super::host_view::HostView;
use super::neighbours::{matters, to_probe};
use super::netlink::listening;
use super::octets::{messages, write_attribute};
use super::used_hop::UsedHop;
use super::watch::Watch;
use crate::worker::Wake;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use sixway_fastpath::{Control, Neighbour, NextHops};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The programs' maps that the keeper updates.
pub trait Maps: Send + Sync {
    /// Sends the heartbeat of the gateway.
    fn beat(&self);

    /// Starts a new generation: programs look up cached kernel results again.
    fn bump(&self);

    /// The neighbours in use; one may be there more than once.
    fn in_use(&self) -> Vec<UsedHop>;

    /// Frees next hops unused for this time. May take 100 ms.
    fn free(&self, idle: Duration);
}

/// The maps of the programs.
#[derive(Clone, Debug)]
pub struct ProgramMaps {
    /// The page that the programs read.
    pub control: Arc<Control>,
    /// The next hops that they have found.
    pub next_hops: Arc<NextHops>,
}

impl Maps for ProgramMaps {
    fn beat(&self) {
        self.control.beat();
    }

    fn bump(&self) {
        self.control.bump();
    }

    fn in_use(&self) -> Vec<UsedHop> {
        let used = self.next_hops.in_use().into_iter();
        used.map(|Neighbour { address, ifindex, mac, idle }| UsedHop { ifindex, address, mac, idle })
            .collect()
    }

    fn free(&self, idle: Duration) {
        self.next_hops.free(idle);
    }
}

/// A message to the thread.
enum Command {
    Attached(Vec<Attached>),
    End,
}

/// The thread's other end. It ends with this.
pub struct Keeper {
    facts: UnboundedReceiver<Facts>,
    commands: Sender<Command>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

/// Well below the two seconds after which the gateway is taken to be away.
const BEAT: Duration = Duration::from_millis(200);
/// How often neighbours are probed, and settings without events are read.
const TICK: Duration = Duration::from_secs(2);
/// Next hops unused for this time are freed.
const IDLE: Duration = Duration::from_secs(60);

impl Keeper {
    /// Starts the thread; `tun` is the index of the gateway's device. The first facts arrive immediately.
    ///
    /// # Errors
    /// Netlink is not available, or the thread cannot be started.
    pub fn start(tun: u32, maps: Arc<dyn Maps>) -> io::Result<Self> {
        let (told, facts) = unbounded_channel();
        let (commands, said) = channel();
        let wake = Wake::new()?;
        let work = Work::new(tun, maps, told)?;
        let waking = wake.clone();
        let thread =
            std::thread::Builder::new().name("fast-path".into()).spawn(move || work.run(&said, &waking))?;
        Ok(Self { facts, commands, wake, thread: Some(thread) })
    }

    /// The next facts: the first ones, or what they have become, of several the last. `None`: the thread has ended.
    pub async fn next(&mut self) -> Option<Facts> {
        let mut facts = self.facts.recv().await?;
        // Programs for the states in between would not be used, and take a second or two each.
        while let Ok(newer) = self.facts.try_recv() {
            facts = newer;
        }
        Some(facts)
    }

    /// Sets the interfaces with attached programs; new facts follow.
    pub fn set_attached(&self, attached: Vec<Attached>) {
        self.say(Command::Attached(attached));
    }

    fn say(&self, command: Command) {
        // It fails only when the thread has ended, which `next` reports.
        let _ = self.commands.send(command);
        self.wake.wake();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.say(Command::End);
        if let Some(thread) = self.thread.take() {
            // A panic of it was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// The data of the thread.
struct Work {
    tun: u32,
    maps: Arc<dyn Maps>,
    told: UnboundedSender<Facts>,
    events: OwnedFd,
    kernel: HostView,
    attached: Vec<Attached>,
    watch: Watch,
    last: Option<Facts>,
    buffer: Vec<u8>,
    freeing: Option<JoinHandle<()>>,
}

impl Work {
    fn new(tun: u32, maps: Arc<dyn Maps>, told: UnboundedSender<Facts>) -> io::Result<Self> {
        Ok(Self {
            tun,
            maps,
            told,
            // Before the first read, so that no change in between is missed.
            events: listening(event::GROUPS)?,
            kernel: HostView::open()?,
            attached: Vec::new(),
            watch: Watch::new(Instant::now()),
            last: None,
            buffer: vec![0; 64 << 10],
            freeing: None,
        })
    }

    fn run(mut self, said: &Receiver<Command>, wake: &Wake) {
        let (mut beat, mut tick) = (Instant::now(), Instant::now() + TICK);
        loop {
            let until = self.watch.next().into_iter().chain([beat, tick]).min().unwrap_or(tick);
            wait(&self.events, wake, until.saturating_duration_since(Instant::now()));
            wake.clear();
            while let Ok(command) = said.try_recv() {
                match command {
                    Command::Attached(attached) => self.attached = attached,
                    Command::End => return,
                }
                self.look();
            }
            self.hear();
            let now = Instant::now();
            if now >= beat {
                self.maps.beat();
                beat = now + BEAT;
            }
            self.work(now);
            if now >= tick {
                self.each_tick();
                tick = now + TICK;
            }
        }
    }

    fn work(&mut self, now: Instant) {
        let due = self.watch.due(now);
        if due.generation {
            self.maps.bump();
        }
        if due.routes {
            self.read_routes();
        }
        if due.look || due.routes {
            self.look();
        }
    }

    /// Reads all pending events.
    fn hear(&mut self) {
        let (mut used, now) = (None, Instant::now());
        loop {
            let length = match recv(self.events.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => length,
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => continue,
                Err(error) => {
                    // Events were lost (ENOBUFS), or another error occurred: everything may have changed.
                    tracing::debug!("netlink: {error}");
                    return self.watch.note(Event::Lost, &[], now);
                }
            };
            for event in messages(&self.buffer[..length]).filter_map(|message| Event::of(&message)) {
                let used = match event {
                    Event::Neighbour(_) => used.get_or_insert_with(|| self.maps.in_use()).as_slice(),
                    Event::Link | Event::Address | Event::Route { .. } | Event::Rule | Event::Lost => &[],
                };
                self.watch.note(event, used, now);
            }
        }
    }

    /// Probes neighbours, frees unused next hops, and reads settings without events.
    fn each_tick(&mut self) {
        self.probe();
        self.look();
        let idle = self.maps.in_use().iter().any(|hop| hop.idle >= IDLE);
        if idle && self.freeing.as_ref().is_none_or(JoinHandle::is_finished) {
            let maps = Arc::clone(&self.maps);
            let thread = std::thread::Builder::new().name("next-hops".into());
            self.freeing = thread.spawn(move || maps.free(IDLE)).ok();
        }
    }

    /// Without probes, a changed Ethernet address would go unnoticed: the kernel sends no packets of its own there.
    fn probe(&mut self) {
        let used = self.maps.in_use();
        if used.is_empty() {
            return;
        }
        let mut known = Vec::new();
        let take = |body: &[u8]| known.extend(event::Neighbour::read(body));
        if let Err(error) = self.kernel.netlink.dump(RTM_GETNEIGH, &[0; event::NEIGHBOUR_HEADER], take) {
            return tracing::debug!("neighbours: {error}");
        }
        if known.iter().any(|neighbour| matters(neighbour, &used)) {
            self.maps.bump();
        }
        for (ifindex, address) in to_probe(&used, &known, TICK) {
            // It fails where the neighbour has just gone.
            let _ = self.kernel.netlink.change(event::RTM_NEWNEIGH, &probing(ifindex, address));
        }
    }

    fn read_routes(&mut self) {
        self.watch.several = self.kernel.leads_several_ways();
    }

    /// Reads links, rules and features, and reports the facts.
    fn look(&mut self) {
        match self.kernel.facts(self.tun, &self.attached, self.watch.several) {
            Ok(facts) if self.last.as_ref() != Some(&facts) => {
                self.last = Some(facts.clone());
                // It fails when the receiver is gone.
                let _ = self.told.send(facts);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!("netlink: {error}"),
        }
    }
}

const RTM_GETNEIGH: u16 = 30;

/// The message that makes the kernel probe a neighbour.
fn probing(ifindex: u32, address: IpAddr) -> Vec<u8> {
    let family = if address.is_ipv4() { nix::libc::AF_INET } else { nix::libc::AF_INET6 };
    let mut body = vec![family as u8, 0, 0, 0];
    body.extend(ifindex.to_ne_bytes());
    body.extend(event::NUD_PROBE.to_ne_bytes());
    body.extend([0, 0]);
    match address {
        IpAddr::V4(address) => write_attribute(event::NDA_DST, &address.octets(), &mut body),
        IpAddr::V6(address) => write_attribute(event::NDA_DST, &address.octets(), &mut body),
    }
    body
}

fn wait(events: &OwnedFd, wake: &Wake, patience: Duration) {
    let mut both =
        [PollFd::new(events.as_fd(), PollFlags::POLLIN), PollFd::new(wake.fd(), PollFlags::POLLIN)];
    // Rounded up, so that what is due is due.
    let milliseconds = u16::try_from(patience.as_millis() + 1).unwrap_or(u16::MAX);
    // Interrupted: looked at again.
    let _ = poll(&mut both, PollTimeout::from(milliseconds));
}
