//! Messages to a DNS thread: queries and replies over TCP, TLS and HTTPS, and operators' commands.
//!
//! Clients' queries use a ring with shared places. All other messages use a queue: commands are few, and there is one reply for each
//! exchange, of which the number is bounded. Each message of one is followed by one of the other, so that neither waits for the other's
//! end.

use super::report::Report;
use crate::seed::unpredictable;
use sixway_control::dns64::{
    Access, Anchor, Exchange, Failure, Hosts, Payer, Place, Settings, Shares, Transport, Wire,
};
use sixway_link::UdpServer;
use sixway_link::Wake;
use sixway_link::udp::place_of;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Clients' queries by streams that wait for a thread at most.
const QUERIES: usize = 4_096;
/// How long a thread may take to report.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client's query that came by a stream.
#[derive(Debug)]
pub struct StreamQuery {
    /// The client.
    pub address: IpAddr,
    /// How it came.
    pub transport: Transport,
    /// The query, without a length field.
    pub message: Vec<u8>,
    /// Where the answer goes; dropped without an answer.
    pub answer: oneshot::Sender<Vec<u8>>,
    /// Its place in the ring, until the thread takes it.
    place: QueryPlace,
}

impl StreamQuery {
    /// The query and the way back; its place is free then.
    pub fn take(self) -> (Vec<u8>, oneshot::Sender<Vec<u8>>) {
        drop(self.place);
        (self.message, self.answer)
    }
}

/// A place in the ring of queries, until this is dropped.
#[derive(Debug)]
struct QueryPlace {
    /// `None`: it is dropped.
    place: Option<Place>,
    of: Arc<Mutex<Shares>>,
}

impl Drop for QueryPlace {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            lock(&self.of).leave(place);
        }
    }
}

fn lock(shares: &Mutex<Shares>) -> MutexGuard<'_, Shares> {
    shares.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Other settings of a thread.
#[derive(Clone, Debug)]
pub struct Reconfiguration {
    /// What its resolver does.
    pub settings: Settings,
    /// Where upstreams are, in the order of the settings.
    pub upstreams: Vec<SocketAddr>,
    /// Their names.
    pub names: Vec<String>,
    /// For each of them, its place in the previous settings; `None`: it is new.
    pub kept: Vec<Option<usize>>,
    /// Whether each query is written to the log.
    pub query_log: bool,
    /// Where questions go that go by streams.
    pub streams: mpsc::Sender<UpstreamQuery>,
}

/// A message to a DNS thread.
#[derive(Debug)]
pub enum ThreadMessage {
    /// A client's query.
    Query(StreamQuery),
    /// The outcome of an exchange with an upstream.
    Reply(Exchange, Result<Vec<u8>, Failure>),
    /// Counters and what is shown.
    Report(oneshot::Sender<Report>),
    /// Remove a name and those below it from the cache (everything for the root); returns the number of answers.
    Flush(Wire, oneshot::Sender<usize>),
    /// The new list of clients that may query.
    Access(Access),
    /// The new trust anchors.
    Anchors(Vec<Anchor>),
    /// Other records of a hosts file.
    Hosts(Arc<Hosts>),
    /// Other settings.
    Reconfigure(Box<Reconfiguration>),
    /// A further listening socket.
    Listen(UdpServer),
    /// Stop, and return the state for the next process. Waiting queries are answered first, if that is soon.
    Leave(SyncSender<Vec<u8>>),
    /// Stop.
    Stop,
}

/// The way to one DNS thread.
#[derive(Clone, Debug)]
pub struct Post {
    messages: Sender<ThreadMessage>,
    queries: SyncSender<ThreadMessage>,
    /// The places of the ring of queries.
    places: Arc<Mutex<Shares>>,
    wake: Wake,
}

/// The thread's end of it.
#[derive(Debug)]
pub struct Mailbox {
    messages: Receiver<ThreadMessage>,
    queries: Receiver<ThreadMessage>,
    /// Whether the next message is a query, if one waits.
    queries_turn: Cell<bool>,
    wake: Wake,
}

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Not a query. Close the stream.
    Ignored,
    /// Too many wait, or too many of this client. The stream may be closed.
    Busy,
    /// The thread has ended.
    Gone,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ignored => "not a query",
            Self::Busy => "the DNS thread has too many messages waiting",
            Self::Gone => "the DNS thread has ended",
        })
    }
}

impl std::error::Error for Unanswered {}

/// A ring of messages to one thread.
///
/// # Errors
/// The kernel has no file descriptor left.
pub fn mailbox() -> io::Result<(Post, Mailbox)> {
    let (messages, all) = channel();
    let (queries, of_clients) = sync_channel(QUERIES);
    let places = Arc::new(Mutex::new(Shares::new(QUERIES, unpredictable())));
    let wake = Wake::new()?;
    let mailbox =
        Mailbox { messages: all, queries: of_clients, queries_turn: Cell::new(false), wake: wake.clone() };
    Ok((Post { messages, queries, places, wake }, mailbox))
}

impl Post {
    /// Leaves a message and wakes the thread.
    ///
    /// # Errors
    /// The ring is full, or the thread has ended.
    pub fn send(&self, message: ThreadMessage) -> Result<(), Unanswered> {
        self.try_send(message).map_err(|left| left.0)
    }

    /// The same; what could not be left comes back.
    pub(super) fn try_send(&self, message: ThreadMessage) -> Result<(), Box<(Unanswered, ThreadMessage)>> {
        match message {
            ThreadMessage::Query(_) => self.queries.try_send(message).map_err(|error| match error {
                TrySendError::Full(message) => Box::new((Unanswered::Busy, message)),
                TrySendError::Disconnected(message) => Box::new((Unanswered::Gone, message)),
            })?,
            message => self.messages.send(message).map_err(|error| Box::new((Unanswered::Gone, error.0)))?,
        }
        self.wake.wake();
        Ok(())
    }
}

impl Post {
    /// A place in the ring of queries.
    fn admit(&self, payer: Payer) -> Result<QueryPlace, Unanswered> {
        let place = lock(&self.places).admit(payer).map_err(|_| Unanswered::Busy)?;
        Ok(QueryPlace { place: Some(place), of: Arc::clone(&self.places) })
    }
}

impl Mailbox {
    /// The wake-up of this thread.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// The next message, of one ring and the other in turn; `None`: none waits.
    pub fn next(&self) -> Option<ThreadMessage> {
        let is_queries_turn = self.queries_turn.replace(!self.queries_turn.get());
        let (first, second) = match is_queries_turn {
            true => (&self.queries, &self.messages),
            false => (&self.messages, &self.queries),
        };
        for ring in [first, second] {
            match ring.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Empty) => {}
                // All senders were dropped: nothing else can stop it.
                Err(TryRecvError::Disconnected) => return Some(ThreadMessage::Stop),
            }
        }
        None
    }
}

/// The ways to all DNS threads of a gateway.
#[derive(Clone, Debug)]
pub struct Posts {
    posts: Arc<[Post]>,
    client_prefix_length: u8,
}

impl Posts {
    /// Of these threads, one at least. IPv6 clients with this many first bits in common, 64 at most, have the same one.
    #[must_use]
    pub fn new(posts: Vec<Post>, client_prefix_length: u8) -> Self {
        Self { posts: posts.into(), client_prefix_length }
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(&self) -> &[Post] {
        &self.posts
    }

    /// Puts a client's query and waits for the answer; neither has a stream's length field. One client's queries all go to one thread, since rates
    /// are counted there. To be dropped when the client has closed its connection.
    ///
    /// # Errors
    /// There will be no answer.
    pub async fn ask(
        &self,
        address: IpAddr,
        transport: Transport,
        message: Vec<u8>,
    ) -> Result<Vec<u8>, Unanswered> {
        let (answer, receiver) = oneshot::channel();
        let place = place_of(address, self.client_prefix_length, self.posts.len());
        let post = self.posts.get(place).ok_or(Unanswered::Gone)?;
        let place = post.admit(Payer::of(address, self.client_prefix_length, true))?;
        post.send(ThreadMessage::Query(StreamQuery { address, transport, message, answer, place }))?;
        receiver.await.map_err(|_| Unanswered::Ignored)
    }

    /// The sum of all threads' reports.
    ///
    /// # Errors
    /// One does not answer.
    pub async fn report(&self) -> Result<Report, Unanswered> {
        let mut sum = Report::default();
        for report in self.each(ThreadMessage::Report).await? {
            sum.add(&report);
        }
        Ok(sum)
    }

    /// Removes a name and those below it from the cache (everything for the root). Returns the number of answers.
    ///
    /// # Errors
    /// A thread does not answer.
    pub async fn flush(&self, name: &Wire) -> Result<usize, Unanswered> {
        let counts = self.each(|answer| ThreadMessage::Flush(name.clone(), answer)).await?;
        Ok(counts.into_iter().sum())
    }

    /// Asks all threads, and waits for their answers.
    async fn each<T>(
        &self,
        message: impl Fn(oneshot::Sender<T>) -> ThreadMessage,
    ) -> Result<Vec<T>, Unanswered> {
        let mut answers = Vec::with_capacity(self.posts.len());
        for post in self.posts.iter() {
            let (sender, receiver) = oneshot::channel();
            post.send(message(sender))?;
            match timeout(PATIENCE, receiver).await {
                Ok(answer) => answers.push(answer.map_err(|_| Unanswered::Gone)?),
                Err(_) => return Err(Unanswered::Busy),
            }
        }
        Ok(answers)
    }
}

/// A question for an upstream that is to go by its stream: TCP, TLS or HTTPS. Bounded like the exchanges of a resolver.
#[derive(Debug)]
pub struct UpstreamQuery {
    /// The upstream's place in the configuration.
    pub upstream: usize,
    /// The payer of it.
    pub payer: Payer,
    /// The query, whole, without a length field. Its ID is the resolver's, and the reply must bear it.
    pub message: Vec<u8>,
    /// Where the reply goes.
    pub reply: ReplyTo,
}

/// The sending end of the reply to an [`UpstreamQuery`]. Dropping it means that the connection closed.
#[derive(Debug)]
pub struct ReplyTo {
    /// `None`: it has been given.
    back: Option<Back>,
    cancelled: Option<oneshot::Receiver<()>>,
}

/// Completes when no query waits for a reply any more.
#[derive(Debug)]
pub struct Cancelled(oneshot::Receiver<()>);

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(|_| ())
    }
}

/// The receiver of a reply.
#[derive(Debug)]
enum Back {
    /// A thread of the DNS64.
    Thread(Exchange, Post),
    /// A task that waits.
    Waiting(oneshot::Sender<Result<Vec<u8>, Failure>>),
}

impl Back {
    /// No more than the ring's being full can be wrong, or that nothing waits any more: then it is lost.
    fn give(self, reply: Result<Vec<u8>, Failure>) {
        match self {
            Self::Thread(exchange, post) => drop(post.send(ThreadMessage::Reply(exchange, reply))),
            Self::Waiting(sender) => drop(sender.send(reply)),
        }
    }
}

impl ReplyTo {
    /// The reply channel to `post` for an exchange. Keep the other value as long as a reply is wanted: dropping it cancels.
    #[must_use]
    pub fn new(exchange: Exchange, post: Post) -> (Self, oneshot::Sender<()>) {
        let (wanted, cancelled) = oneshot::channel();
        (Self { back: Some(Back::Thread(exchange, post)), cancelled: Some(cancelled) }, wanted)
    }

    /// The way back to who waits for the reply himself.
    #[must_use]
    pub fn waiting() -> (Self, Waiting) {
        let ((wanted, cancelled), (sender, reply)) = (oneshot::channel(), oneshot::channel());
        let cancelled = Some(cancelled);
        (Self { back: Some(Back::Waiting(sender)), cancelled }, Waiting { reply, _wanted: wanted })
    }

    /// Delivers the reply, without a length field, or the failure.
    pub fn give(mut self, reply: Result<Vec<u8>, Failure>) {
        if let Some(back) = self.back.take() {
            back.give(reply);
        }
    }

    /// No thread waits: the reply is dropped.
    pub fn forget(mut self) {
        self.back = None;
    }

    /// A message that arrives when no thread waits any more; it must be [given back](Self::give_back) if the reply is not given. Until then this is not known to be
    /// cancelled.
    pub fn watch(&mut self) -> Option<Cancelled> {
        self.cancelled.take().map(Cancelled)
    }

    /// Gives back what was taken by [`watch`](Self::watch).
    pub fn give_back(&mut self, cancelled: Cancelled) {
        self.cancelled = Some(cancelled.0);
    }

    /// Whether the receiver was dropped.
    #[must_use]
    pub fn is_cancelled(&mut self) -> bool {
        self.cancelled
            .as_mut()
            .is_some_and(|cancelled| cancelled.try_recv() == Err(oneshot::error::TryRecvError::Closed))
    }
}

/// The receiving end of a reply; dropping it cancels.
#[derive(Debug)]
pub struct Waiting {
    reply: oneshot::Receiver<Result<Vec<u8>, Failure>>,
    _wanted: oneshot::Sender<()>,
}

impl Waiting {
    /// Waits for the reply.
    ///
    /// # Errors
    /// The failure.
    pub async fn reply(self) -> Result<Vec<u8>, Failure> {
        self.reply.await.unwrap_or(Err(Failure::Closed))
    }
}

impl Drop for ReplyTo {
    fn drop(&mut self) {
        if let Some(back) = self.back.take() {
            back.give(Err(Failure::Closed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_query_is_answered_by_the_thread_of_its_client() {
        let (post, mailbox) = mailbox().unwrap();
        let posts = Posts::new(vec![post], 64);
        let thread = std::thread::spawn(move || {
            loop {
                match mailbox.next() {
                    Some(ThreadMessage::Query(query)) if query.message.is_empty() => drop(query),
                    Some(ThreadMessage::Query(query)) => {
                        let (message, answer) = query.take();
                        answer.send(message).unwrap();
                    }
                    Some(ThreadMessage::Stop) => return,
                    Some(other) => panic!("{other:?}"),
                    None => std::thread::yield_now(),
                }
            }
        });
        let client = "2001:db8::1".parse().unwrap();
        assert_eq!(posts.ask(client, Transport::Tcp, vec![7]).await, Ok(vec![7]));
        assert_eq!(posts.ask(client, Transport::Tcp, vec![]).await, Err(Unanswered::Ignored));
        posts.all()[0].send(ThreadMessage::Stop).unwrap();
        thread.join().unwrap();
        assert_eq!(posts.ask(client, Transport::Tcp, vec![7]).await, Err(Unanswered::Gone));
    }

    #[test]
    fn a_reply_that_is_dropped_says_that_the_stream_was_closed() {
        let (post, mailbox) = mailbox().unwrap();
        let (reply, _wanted) = ReplyTo::new(Exchange(7), post.clone());
        drop(reply);
        let Some(ThreadMessage::Reply(exchange, reply)) = mailbox.next() else { panic!("no reply") };
        assert_eq!((exchange, reply), (Exchange(7), Err(Failure::Closed)));

        let (mut reply, wanted) = ReplyTo::new(Exchange(8), post.clone());
        assert!(!reply.is_cancelled());
        drop(wanted);
        assert!(reply.is_cancelled());
        reply.give(Ok(vec![1]));
        assert!(matches!(mailbox.next(), Some(ThreadMessage::Reply(Exchange(8), Ok(_)))));
        assert!(mailbox.next().is_none());
        drop(post);
        assert!(matches!(mailbox.next(), Some(ThreadMessage::Stop)));
    }

    /// Lets all tasks run until they wait.
    async fn run_all() {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn queries_of_one_client_leave_room_for_anothers_and_for_replies() {
        let (post, mailbox) = mailbox().unwrap();
        let posts = Posts::new(vec![post.clone()], 64);
        let ask = |address: [u8; 4]| {
            let posts = posts.clone();
            tokio::spawn(async move { posts.ask(address.into(), Transport::Tls, vec![address[3]]).await })
        };
        let greedy: Vec<_> = (0..10_000).map(|_| ask([192, 0, 2, 1])).collect();
        run_all().await;
        let refused = greedy.iter().filter(|asked| asked.is_finished()).count();
        assert!((7_900..8_200).contains(&refused), "{refused}");
        let good: Vec<_> = (0..500).map(|_| ask([192, 0, 2, 2])).collect();
        run_all().await;
        assert!(!good.iter().any(tokio::task::JoinHandle::is_finished));
        for exchange in 0..16_384 {
            let (reply, _wanted) = ReplyTo::new(Exchange(exchange), post.clone());
            reply.give(Ok(vec![]));
        }
        let mut counts = [0; 3];
        let mut kinds = Vec::new();
        while let Some(message) = mailbox.next() {
            let kind = match message {
                ThreadMessage::Query(query) => usize::from(query.take().0[0]),
                _ => 0,
            };
            counts[kind] += 1;
            kinds.push(kind);
        }
        assert_eq!((counts[0], counts[1], counts[2]), (16_384, 10_000 - refused, 500));
        assert!(kinds[..4].contains(&0) && kinds[..4].contains(&1), "in turn");
        assert_eq!(lock(&post.places).used(), 0);
    }
}
