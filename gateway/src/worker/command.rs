//! What a worker can be asked between two batches, through a bounded ring.

use super::answer::Answer;
use super::dump::Dump;
use super::translator::{BindingEntry, Edited, Report, SessionEntry};
use super::tunnels::{Inlet, TunnelSet};
use crate::admin::Edit;
use sixway_dataplane::WorkerId;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::siit::dynamic_pool::{Changes, Record};
use sixway_dataplane::nat::{BlockMove, SavedSession};
use sixway_link::Wake;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Commands that wait at most.
pub(super) const RING: usize = 64;

/// What a worker is asked.
#[derive(Debug)]
pub enum Command {
    /// Counters and table sizes.
    Report(Answer<Report>),
    /// A page of sessions.
    Sessions(Dump<SessionEntry>),
    /// A page of bindings.
    Bindings(Dump<BindingEntry>),
    /// What has changed in a mechanism's dynamic pool since the last time.
    PoolChanges(u16, Answer<Changes>),
    /// Hosts of a mechanism's dynamic pool from a place on, and where to go on.
    PoolHosts(u16, u32, Answer<(Vec<Record>, Option<u32>)>),
    /// A change to a stateful mechanism.
    Edit(u16, Edit, Answer<Edited>),
    /// Other tunnels from now on.
    Tunnels(Arc<TunnelSet>, Answer<()>),
    /// A further socket that brings packets.
    AddInlet(Inlet),
    /// The socket for this address is closed.
    RemoveInlet(Ipv4Addr),
    /// An ICMPv4 error about a tunnel packet, whole.
    PathError(Arc<[u8]>),
    /// An ICMP error about a tunnel packet, whole, that another worker has got as a packet and answered.
    LearnPathError(Arc<[u8]>),
    /// Stop offloading sessions; move offloaded ones back to the engine.
    EndFastPath(Answer<()>),
    /// Another worker, which has this many port blocks of a stateful mechanism, needs more.
    GiveBlocks(u16, WorkerId, u32),
    /// Port blocks of a stateful mechanism have other owners.
    BlocksMoved(u16, Arc<[BlockMove]>),
    /// The end, for who takes over: the sessions that the fast path does not carry.
    Leave(Answer<Vec<(Identity, SavedSession)>>),
    /// The end.
    Stop,
}

/// The worker's end.
#[derive(Debug)]
pub struct Mailbox {
    pub(super) commands: Receiver<Command>,
    pub(super) wake: Wake,
}

/// The other end.
#[derive(Clone, Debug)]
pub struct Post {
    commands: SyncSender<Command>,
    wake: Wake,
}

/// Why a worker does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// Its ring is full.
    Busy,
    /// It has ended.
    Gone,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the worker has too many requests waiting; retry",
            Self::Gone => "the worker has ended",
        })
    }
}

impl std::error::Error for Unreachable {}

/// A ring of commands to one worker.
///
/// # Errors
/// The kernel has no file descriptor left.
pub fn mailbox() -> io::Result<(Post, Mailbox)> {
    let (sender, receiver) = sync_channel(RING);
    let wake = Wake::new()?;
    Ok((Post { commands: sender, wake: wake.clone() }, Mailbox { commands: receiver, wake }))
}

impl Post {
    /// Leaves a command and wakes the worker.
    ///
    /// # Errors
    /// The ring is full, or the worker has ended.
    pub fn send(&self, command: Command) -> Result<(), Unreachable> {
        self.commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => Unreachable::Busy,
            TrySendError::Disconnected(_) => Unreachable::Gone,
        })?;
        self.wake.wake();
        Ok(())
    }
}

impl Mailbox {
    /// The next command, for tests without a worker; `None`: all senders are gone.
    #[cfg(test)]
    pub fn next(&self) -> Option<Command> {
        self.commands.recv().ok()
    }

    /// What wakes this worker.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }
}
