//! Commands that a worker executes between two batches, through a bounded ring.

use super::answer::Answer;
use super::dump::Dump;
use super::explicit::{ExplicitAnswer, ExplicitRequest};
use super::tap::{DropSample, Watch};
use super::translator::{BindingEntry, Edited, Position, Report, SessionEntry, SubscriberEntry, TeredoPage};
use super::tunnels::{Inlet, InletAt, TunnelSet};
use crate::admin::Edit;
use sixway_dataplane::WorkerId;
use sixway_dataplane::mechanism::four_over_six::Binding;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::mechanism::siit::dynamic_pool::{Changes, Record};
use sixway_dataplane::mechanism::teredo::TeredoChange;
use sixway_dataplane::nat::{AddressBlocks, BlockMove, DrainingRow, SavedSession};
use sixway_link::Wake;
use sixway_wire::Prefix4;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Maximum number of waiting commands.
pub(super) const RING: usize = 64;

/// Port blocks of some addresses, and where to continue.
pub type AddressBlocksPage = (Vec<(u16, AddressBlocks)>, Option<Position>);

/// The remaining use of addresses that are drained, each with its mechanism, and where to continue.
pub type DrainingPage = (Vec<(u16, DrainingRow)>, Option<Position>);
/// Changes of bindings of a concentrator: a host has the address or prefix, or none.
pub type LeaseChanges = Arc<[(Prefix4, Option<Binding>)]>;

/// A command to a worker.
#[derive(Debug)]
pub enum Command {
    /// Counters and table sizes.
    Report(Answer<Report>),
    /// A page of sessions.
    Sessions(Dump<SessionEntry>),
    /// A page of bindings.
    Bindings(Dump<BindingEntry>),
    /// A page of subscribers.
    Subscribers(Dump<SubscriberEntry>),
    /// Changes of a mechanism's dynamic pool since the last call.
    PoolChanges(u16, Answer<Changes>),
    /// Hosts of a mechanism's dynamic pool from a position, and where to continue.
    PoolHosts(u16, u32, Answer<(Vec<Record>, Option<u32>)>),
    /// The remaining use of addresses that stateful mechanisms drain from a position, each with its mechanism, and where to continue.
    Draining(Position, Answer<DrainingPage>),
    /// Port blocks of addresses from a position, each with its mechanism, and where to continue.
    AddressBlocks(Position, Answer<AddressBlocksPage>),
    /// A change to a stateful mechanism.
    Edit(u16, Edit, Answer<Edited>),
    /// What a PCP server wants of a stateful mechanism.
    Explicit(u16, Box<ExplicitRequest>, Answer<ExplicitAnswer>),
    /// Replaces the tunnels.
    Tunnels(Arc<TunnelSet>, Answer<()>),
    /// Changes bindings of the 4over6 concentrator of this index.
    Leases(u16, LeaseChanges, Answer<()>),
    /// Changes the Teredo relay or client of this index.
    Teredo(u16, Box<TeredoChange>, Answer<()>),
    /// Peers of the Teredo relay or client of this index from a position on, and where to continue.
    TeredoPeers(u16, u32, Answer<TeredoPage>),
    /// Adds a socket to receive packets from.
    AddInlet(Inlet),
    /// Closes the socket that is bound there.
    RemoveInlet(InletAt),
    /// A complete ICMPv4 error about a tunnel packet.
    PathError(Arc<[u8]>),
    /// A complete ICMP error about a tunnel packet that another worker received as a packet and answered.
    LearnPathError(Arc<[u8]>),
    /// The last sample of each drop.
    Samples(Answer<Vec<DropSample>>),
    /// Packets are to be watched.
    Watch(Watch),
    /// Stop offloading sessions; move offloaded ones back to the engine.
    EndFastPath(Answer<()>),
    /// Another worker, which has this many port blocks of a stateful mechanism, needs more.
    GiveBlocks(u16, WorkerId, u32),
    /// A host of another worker asked for this port of a stateful mechanism. Whether its block was given.
    GiveWanted(u16, WorkerId, u16, Answer<bool>),
    /// Port blocks of a stateful mechanism changed their owner.
    BlocksMoved(u16, Arc<[BlockMove]>),
    /// Stop for a takeover: return the sessions that are not in the fast path.
    Leave(Answer<Vec<(Identity, SavedSession)>>),
    /// Stop.
    Stop,
}

/// The receiving end, of the worker.
#[derive(Debug)]
pub struct Mailbox {
    pub(super) commands: Receiver<Command>,
    pub(super) wake: Wake,
}

/// The sending end.
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
    /// Sends a command and wakes the worker.
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

    /// The next command that waits, for tests without a worker.
    #[cfg(test)]
    pub fn waiting(&self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    /// The wake-up of this worker.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }
}
