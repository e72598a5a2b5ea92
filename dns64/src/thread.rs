//! A DNS thread's loop: client datagrams, upstream replies, messages; after each turn the resolver's actions.

use super::events;
use super::exchanges::{Exchanges, Sent};
use super::post::{Mailbox, Post, Reconfiguration, StreamQuery, ThreadMessage, UpstreamQuery};
use super::query_log::QueryLog;
use super::report::{Report, SocketCounters};
use super::servers::Servers;
use super::ticket::{StreamClients, Ticket, Way};
use super::watch::{Ready, Watch};
use sixway_control::dns64::{
    Asker, CookieSecret, Failure, Heard, KeptAnswers, LeasedNames, NameMappings, Outcome, Resolver, Settings,
    Transport,
};
use sixway_dataplane::Instant;
use sixway_link::Clock;
use sixway_link::UdpServer;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::mpsc;

/// No datagram is longer.
const LONGEST: usize = 65_535;
/// Messages that are taken in a turn: clients by datagrams must not wait for those on streams.
const MESSAGES: usize = 64;
/// Replies that are read from one socket in a turn: an attacker who guesses at them must not hold the others up.
const REPLIES: usize = 16;
/// Answers of the previous process that are taken over in a turn.
const ADOPTED: usize = 128;
/// Octets of answers that a thread hands over to the next process: no query is answered while they are written and read.
const KEPT: usize = 64 << 20;
/// How long queries that wait may be answered when the thread leaves: the next process is silent until then.
const LINGER: Duration = Duration::from_millis(300);
/// How often the resolver gets the wall-clock time.
const SECOND: Duration = Duration::from_secs(1);

/// The parts of a thread.
#[derive(Debug)]
pub struct ThreadParts {
    /// What its resolver does.
    pub settings: Settings,
    /// Unpredictable randomness.
    pub seed: [u8; 32],
    /// What secrets for cookies are made from: the same for all threads.
    pub cookie_seed: CookieSecret,
    /// The UDP sockets for clients.
    pub sockets: Vec<UdpServer>,
    /// Where upstreams are, in the order of the settings.
    pub upstreams: Vec<SocketAddr>,
    /// Their names in the log.
    pub names: Vec<String>,
    /// Where questions go that go by streams.
    pub streams: Option<mpsc::Sender<UpstreamQuery>>,
    /// Whether each query is written to the log.
    pub query_log: bool,
    /// Names that lead to mappings of a NAT46.
    pub mappings: Option<NameMappings>,
    /// Names of hosts whose addresses are leased.
    pub leases: Option<Arc<dyn LeasedNames>>,
    /// What threads of the previous process kept; each part is one thread's.
    pub kept: Vec<Arc<[u8]>>,
}

/// A DNS thread.
#[derive(Debug)]
pub struct Thread {
    resolver: Resolver<Ticket>,
    clock: Clock,
    watch: Watch,
    servers: Servers,
    exchanges: Exchanges,
    clients: StreamClients,
    post: Post,
    mailbox: Mailbox,
    /// Where answers are written that go to streams, or later.
    answer: Vec<u8>,
    /// Where replies are read.
    reply: Box<[u8]>,
    /// When the resolver next gets the wall-clock time.
    next_second: Instant,
    lost: u64,
    failing: bool,
    query_log: QueryLog,
    /// The names of upstreams in the log.
    names: Vec<String>,
    /// What is to be taken over of the previous process.
    kept: Vec<KeptAnswers>,
    /// It leaves: at this time at the latest, and where what it kept goes.
    leaving: Option<(Instant, SyncSender<Vec<u8>>)>,
}

impl Thread {
    /// A thread that has not begun.
    ///
    /// # Errors
    /// The kernel has no file descriptor left.
    pub fn new(parts: ThreadParts, clock: Clock, post: Post, mailbox: Mailbox) -> io::Result<Self> {
        let now = clock.now();
        let watch = Watch::new()?;
        watch.add(mailbox.wake().fd(), Ready::Mailbox)?;
        let resolver = Resolver::new(parts.settings, parts.seed, now)
            .with_cookie_seed(parts.cookie_seed)
            .with_mappings(parts.mappings)
            .with_leases(parts.leases);
        let kept: Vec<_> =
            parts.kept.iter().filter_map(|kept| resolver.kept(Arc::clone(kept), &parts.names)).collect();
        if kept.len() < parts.kept.len() {
            tracing::warn!(
                "DNS64: the cache of the previous process is not taken over: it is of another version, or validates otherwise"
            );
        }
        Ok(Self {
            resolver,
            kept,
            leaving: None,
            clock,
            servers: Servers::new(parts.sockets, &watch)?,
            watch,
            exchanges: Exchanges::new(parts.upstreams, parts.streams),
            clients: StreamClients::default(),
            post,
            mailbox,
            answer: Vec::with_capacity(LONGEST),
            reply: vec![0; LONGEST].into(),
            next_second: now,
            lost: 0,
            failing: false,
            query_log: QueryLog::new(parts.query_log),
            names: parts.names,
        })
    }

    /// Runs until it is stopped.
    ///
    /// # Errors
    /// It cannot wait any more: what the kernel said.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            self.tell_wall_clock(now);
            self.settle(now);
            self.adopt(now);
            if self.has_left(now) {
                return Ok(());
            }
            let patience = self.patience(now);
            self.watch.wait(patience)?;
            let now = self.clock.now();
            for place in 0..self.watch.heard() {
                match self.watch.ready(place) {
                    Ready::Server(server) => self.serve(server, now),
                    Ready::Exchange(place) => self.hear(place, now),
                    Ready::Mailbox => {
                        if self.messages(now) == Stopped::Yes {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// How long nothing need be done if nothing happens.
    fn patience(&mut self, now: Instant) -> Duration {
        if !self.kept.is_empty() {
            return Duration::ZERO;
        }
        if let Some((until, _)) = &self.leaving {
            return until.since(now).min(Duration::from_millis(10));
        }
        let next = self.resolver.poll_timeout().map_or(self.next_second, |at| at.min(self.next_second));
        next.since(now)
    }

    /// Takes a part of what the previous process kept over; queries come in between.
    fn adopt(&mut self, now: Instant) {
        if let Some(kept) = self.kept.last_mut()
            && !self.resolver.adopt(now, kept, ADOPTED)
        {
            self.kept.pop();
        }
    }

    /// Begins to leave.
    fn leave(&mut self, now: Instant, told: SyncSender<Vec<u8>>) {
        self.servers.leave(&self.watch);
        self.leaving = Some((now + LINGER, told));
    }

    /// Whether it has left: then it has said what it kept.
    fn has_left(&mut self, now: Instant) -> bool {
        let Some((until, told)) = &self.leaving else { return false };
        if self.resolver.waiting() > 0 && now < *until {
            return false;
        }
        // The client may have ended.
        let _ = told.send(self.resolver.keep_answers(now, &self.names, KEPT));
        true
    }

    /// Goes on with other settings.
    fn reconfigure(&mut self, now: Instant, with: Reconfiguration) {
        let Reconfiguration { settings, upstreams, names, kept, query_log, streams } = with;
        // What was decided is done with the upstreams that it is about.
        self.settle(now);
        self.resolver.reconfigure(now, settings, &kept);
        self.exchanges.set_peers(upstreams, streams);
        self.names = names;
        self.query_log.set(query_log);
    }

    fn tell_wall_clock(&mut self, now: Instant) {
        if now >= self.next_second {
            self.resolver.set_wall_clock(now, self.clock.wall().unix_seconds);
            self.next_second = now + SECOND;
            self.query_log.begin_second();
        }
    }

    /// Answers a batch of queries.
    fn serve(&mut self, place: u16, now: Instant) {
        let (resolver, log) = (&mut self.resolver, &mut self.query_log);
        let served = self.servers.serve(place, |path, query, answer| {
            let ticket = Ticket { since: now, way: Way::Datagram(place, *path) };
            let asker = Asker { address: path.peer.ip().to_canonical(), transport: Transport::Udp, ticket };
            match resolver.handle_query(now, &asker, query, answer) {
                Heard::Answered(outcome) => {
                    log.note(now, &asker, answer, outcome);
                    true
                }
                Heard::Waiting | Heard::Ignored => false,
            }
        });
        match served {
            Ok(_) => self.failing = false,
            // An interface that is down comes up again; the socket stays what it is.
            Err(error) if !self.failing => {
                tracing::error!("DNS64: a thread cannot receive queries: {error}");
                self.failing = true;
            }
            Err(_) => {}
        }
    }

    /// Reads the replies at a place.
    fn hear(&mut self, place: u32, now: Instant) {
        for _ in 0..REPLIES {
            let Some((exchange, reply)) = self.exchanges.receive(place, &mut self.reply) else { return };
            if reply.is_err() {
                self.exchanges.end(exchange);
            }
            self.resolver.handle_reply(now, exchange, reply);
            // This may end the exchange.
            self.end_exchanges();
        }
    }

    /// Does what the resolver wants done: questions sent, exchanges ended, answers given.
    fn settle(&mut self, now: Instant) {
        while let Some(transmit) = self.resolver.poll_transmit(now) {
            let exchange = transmit.exchange;
            match self.exchanges.send(transmit, &self.watch, &self.post) {
                Sent::Yes => {}
                Sent::Lost => {
                    self.lost += 1;
                    self.resolver.handle_reply(now, exchange, Err(Failure::NoRoom));
                }
                Sent::Failed(failure) => self.resolver.handle_reply(now, exchange, Err(failure)),
            }
        }
        self.end_exchanges();
        while let Some((asker, outcome)) = self.resolver.poll_answer(now, &mut self.answer) {
            self.give(now, &asker, outcome);
        }
        self.servers.flush();
        while let Some(event) = self.resolver.poll_event() {
            events::tell(event, &self.names);
        }
    }

    fn end_exchanges(&mut self) {
        while let Some(exchange) = self.resolver.poll_cancel() {
            self.exchanges.end(exchange);
        }
    }

    /// Gives the answer that was written to a client that waited for it.
    fn give(&mut self, now: Instant, asker: &Asker<Ticket>, outcome: Outcome) {
        self.query_log.note(now, asker, &self.answer, outcome);
        match asker.ticket.way {
            Way::Datagram(place, path) => self.servers.answer(place, path, &mut self.answer),
            Way::Stream(place) => {
                if let Some(client) = self.clients.leave(place) {
                    // The client may have ended in between.
                    let _ = client.send(self.answer.clone());
                }
            }
        }
    }

    /// Obeys the messages that wait, a bounded number of them.
    fn messages(&mut self, now: Instant) -> Stopped {
        self.mailbox.wake().clear();
        for _ in 0..MESSAGES {
            let Some(message) = self.mailbox.next() else { return Stopped::No };
            match message {
                ThreadMessage::Query(query) => self.ask(query, now),
                ThreadMessage::Reply(exchange, reply) => {
                    if reply.is_err() {
                        self.exchanges.end(exchange);
                    }
                    self.resolver.handle_reply(now, exchange, reply.as_deref().map_err(|failure| *failure));
                }
                ThreadMessage::Report(answer) => {
                    let _ = answer.send(self.report());
                }
                ThreadMessage::Flush(name, answer) => {
                    let _ = answer.send(self.resolver.flush(&name.0));
                }
                ThreadMessage::Access(access) => self.resolver.set_access(access),
                ThreadMessage::Anchors(anchors) => self.resolver.set_anchors(anchors),
                ThreadMessage::Hosts(hosts) => self.resolver.set_hosts(hosts),
                ThreadMessage::Reconfigure(with) => self.reconfigure(now, *with),
                ThreadMessage::Leave(told) => self.leave(now, told),
                ThreadMessage::Listen(socket) => {
                    if let Err(error) = self.servers.add(socket, &self.watch) {
                        tracing::error!("DNS64: a socket cannot be watched: {error}");
                    }
                }
                ThreadMessage::Stop => return Stopped::Yes,
            }
        }
        // There may be more.
        self.mailbox.wake().wake();
        Stopped::No
    }

    /// Asks for a client on a stream.
    fn ask(&mut self, query: StreamQuery, now: Instant) {
        let (address, transport) = (query.address, query.transport);
        let (message, answer) = query.take();
        let place = self.clients.admit(answer);
        let asker = Asker {
            address: address.to_canonical(),
            transport,
            ticket: Ticket { since: now, way: Way::Stream(place) },
        };
        match self.resolver.handle_query(now, &asker, &message, &mut self.answer) {
            Heard::Answered(outcome) => self.give(now, &asker, outcome),
            Heard::Waiting => {}
            Heard::Ignored => drop(self.clients.leave(place)),
        }
    }

    fn report(&self) -> Report {
        let (overflowed, unsent) = self.servers.losses();
        let (entries, octets) = self.resolver.cached();
        Report {
            counters: self.resolver.counters(),
            sockets: SocketCounters { overflowed, unsent, lost: self.lost },
            waiting: self.resolver.waiting(),
            exchanges: self.exchanges.len(),
            entries,
            octets,
            upstreams: self.resolver.upstreams().collect(),
        }
    }
}

/// Whether the thread is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    Yes,
    No,
}
