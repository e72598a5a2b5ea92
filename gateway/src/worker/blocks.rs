//! Port blocks that move between workers: a worker that runs out requests blocks from the one with the most, which announces the move to all.
//!
//! ```text
//!     A: needs ──▶ GiveBlocks to B ──▶ B: releases ──▶ BlocksMoved to all ──▶ A: owns the ports, updates steering
//! ```
//! Messages are commands in the receiver's ring. A request to a full ring is lost and repeated with the next packet that
//! needs a port; announcements wait until the ring has room.

use super::command::{Command, Post, Unreachable};
use super::translator::Translator;
use sixway_dataplane::nat::{BlockMove, Blocks};
use sixway_dataplane::{Instant, WorkerId};
use sixway_link::BlockMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Minimum interval of requests.
const PAUSE: Duration = Duration::from_millis(1);
/// Minimum interval of requests while no worker has spare blocks.
const LONG_PAUSE: Duration = Duration::from_millis(20);
/// Minimum interval of the warning that no worker has spare blocks.
const TOLD: Duration = Duration::from_secs(60);

/// What every worker has, for all to see: a word for each worker and mechanism. It may be a turn of the loop old.
#[derive(Debug)]
struct Board {
    mechanisms: usize,
    words: Box<[AtomicU64]>,
}

impl Board {
    fn word(&self, worker: usize, mechanism: usize) -> Option<&AtomicU64> {
        self.words.get(worker * self.mechanisms + mechanism)
    }

    fn write(&self, worker: usize, mechanism: usize, blocks: Blocks) {
        if let Some(word) = self.word(worker, mechanism) {
            word.store(u64::from(blocks.spare) << 32 | u64::from(blocks.offered), Relaxed);
        }
    }

    fn read(&self, worker: usize, mechanism: usize) -> Blocks {
        let word = self.word(worker, mechanism).map_or(0, |word| word.load(Relaxed));
        Blocks { owned: 0, spare: (word >> 32) as u32, offered: word as u32 }
    }
}

/// One worker's part in it. The default moves none: there is one worker.
#[derive(Debug, Default)]
pub struct BlockExchange {
    worker: usize,
    /// Everyone's ring, in their order.
    posts: Vec<Post>,
    board: Option<Arc<Board>>,
    /// The blocks as the kernel knows them, of the mechanisms that packets are steered by ([`Translator::steers_by`]).
    map: Option<BlockMap>,
    /// Moves to announce, and their recipients.
    untold: VecDeque<(usize, u16, Arc<[BlockMove]>)>,
    /// The earliest time of the next request.
    pause: Instant,
    told: Option<Instant>,
}

/// One exchange for each worker in `posts`, for this number of stateful mechanisms.
pub fn exchanges(posts: &[Post], mechanisms: usize, map: Option<&BlockMap>) -> Vec<BlockExchange> {
    if posts.len() < 2 || mechanisms == 0 {
        return posts.iter().map(|_| BlockExchange::default()).collect();
    }
    let words = (0..posts.len() * mechanisms).map(|_| AtomicU64::new(0)).collect();
    let board = Arc::new(Board { mechanisms, words });
    let part = |worker| BlockExchange {
        worker,
        posts: posts.to_vec(),
        board: Some(Arc::clone(&board)),
        map: map.cloned(),
        ..BlockExchange::default()
    };
    (0..posts.len()).map(part).collect()
}

impl BlockExchange {
    /// Runs once per loop turn: publishes free blocks, announces moves, sends requests. Returns whether announcements wait.
    pub fn turn(&mut self, translator: &mut impl Translator, now: Instant) -> bool {
        let Some(board) = self.board.clone() else { return false };
        for mechanism in 0..board.mechanisms {
            board.write(self.worker, mechanism, translator.blocks(mechanism as u16));
        }
        self.tell();
        if now >= self.pause {
            for mechanism in 0..board.mechanisms {
                if translator.wants_blocks(mechanism as u16) {
                    self.ask(&board, mechanism, translator.blocks(mechanism as u16).owned, now);
                }
            }
        }
        !self.untold.is_empty()
    }

    fn ask(&mut self, board: &Board, mechanism: usize, owned: u32, now: Instant) {
        let others = (0..self.posts.len()).filter(|worker| *worker != self.worker);
        let has = |worker: &usize| board.read(*worker, mechanism).for_owner_of(owned);
        let Some(giver) = others.max_by_key(has).filter(|giver| has(giver) > 0) else {
            self.pause = now + LONG_PAUSE;
            if self.told.is_none_or(|told| now.since(told) >= TOLD) {
                self.told = Some(now);
                tracing::warn!(
                    "worker {}: the pool is running out of port blocks: new connections may be refused; add addresses or ports to the pool",
                    self.worker
                );
            }
            return;
        };
        self.pause = now + PAUSE;
        let request = Command::GiveBlocks(mechanism as u16, WorkerId(self.worker as u8), owned);
        // If its ring is full, the next packet that needs a port repeats the request.
        let _ = self.posts[giver].send(request);
    }

    /// Handles a request from another worker.
    pub fn give(&mut self, translator: &mut impl Translator, mechanism: u16, to: WorkerId, owned: u32) {
        self.announce(mechanism, to, translator.give_blocks(mechanism, to, owned));
    }

    /// Gives the block of a port that a host of another worker has asked for. Whether it did: then that worker's next command finds the block
    /// there, unless its ring was full.
    pub fn give_wanted(
        &mut self,
        translator: &mut impl Translator,
        mechanism: u16,
        to: WorkerId,
        port: u16,
    ) -> bool {
        let given = translator.give_wanted(mechanism, port, to);
        self.announce(mechanism, to, given.into_iter().collect());
        given.is_some()
    }

    fn announce(&mut self, mechanism: u16, to: WorkerId, given: Vec<BlockMove>) {
        if given.is_empty() {
            return;
        }
        let given: Arc<[BlockMove]> = given.into();
        let others = (0..self.posts.len()).filter(|worker| *worker != self.worker);
        // Who gets them comes first.
        let (first, rest): (Vec<_>, Vec<_>) = others.partition(|worker| *worker == usize::from(to.0));
        let all = first.into_iter().chain(rest);
        self.untold.extend(all.map(|worker| (worker, mechanism, Arc::clone(&given))));
        self.tell();
    }

    /// Blocks have moved.
    pub fn moved(&self, translator: &mut impl Translator, mechanism: u16, moved: &[BlockMove]) {
        for one in moved {
            let is_news = translator.block_moved(mechanism, *one);
            let is_here = is_news && usize::from(one.to.0) == self.worker;
            if is_here && translator.steers_by(mechanism, one.block) {
                self.steer(*one);
            }
        }
    }

    /// Steers the block's packets to its owner. Without that they are forwarded between workers.
    fn steer(&self, moved: BlockMove) {
        if let Some(Err(error)) = self.map.as_ref().map(|map| map.set(moved.block.into(), moved.to.0)) {
            tracing::debug!("port block {} is not steered: {error}", moved.block);
        }
    }

    /// Announces moves in order, as far as rings have room.
    fn tell(&mut self) {
        for _ in 0..self.untold.len() {
            let Some((worker, mechanism, moved)) = self.untold.pop_front() else { return };
            let message = Command::BlocksMoved(mechanism, Arc::clone(&moved));
            if self.posts[worker].send(message) == Err(Unreachable::Busy) {
                self.untold.push_back((worker, mechanism, moved));
            }
        }
    }
}
