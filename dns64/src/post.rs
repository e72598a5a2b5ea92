//! Messages to a DNS thread: queries and replies over TCP, TLS and HTTPS, and operators' commands.
//! A ring is bounded. Sending to a full ring fails immediately; a reply is lost then, as a datagram would be.

use super::report::Report;
use sixway_control::dns64::{Access, Anchor, Exchange, Failure, Transport, Wire};
use sixway_link::UdpServer;
use sixway_link::Wake;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Messages that wait for a thread at most.
const RING: usize = 8_192;
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
}

/// A message to a DNS thread.
#[derive(Debug)]
pub enum ThreadMessage {
    /// A client's query.
    Query(StreamQuery),
    /// What came of an exchange with an upstream.
    Reply(Exchange, Result<Vec<u8>, Failure>),
    /// Counters and what is shown.
    Report(oneshot::Sender<Report>),
    /// Remove a name and those below it from the cache (everything for the root); returns the number of answers.
    Flush(Wire, oneshot::Sender<usize>),
    /// The new list of clients that may query.
    Access(Access),
    /// The new trust anchors.
    Anchors(Vec<Anchor>),
    /// A further listening socket.
    Listen(UdpServer),
    /// Stop.
    Stop,
}

/// The way to one DNS thread.
#[derive(Clone, Debug)]
pub struct Post {
    messages: SyncSender<ThreadMessage>,
    wake: Wake,
}

/// The thread's end of it.
#[derive(Debug)]
pub struct Mailbox {
    messages: Receiver<ThreadMessage>,
    wake: Wake,
}

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Not a query. Close the stream.
    Ignored,
    /// Too many wait. The stream may be closed.
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
    let (sender, receiver) = sync_channel(RING);
    let wake = Wake::new()?;
    Ok((Post { messages: sender, wake: wake.clone() }, Mailbox { messages: receiver, wake }))
}

impl Post {
    /// Leaves a message and wakes the thread.
    ///
    /// # Errors
    /// The ring is full, or the thread has ended.
    pub fn send(&self, message: ThreadMessage) -> Result<(), Unanswered> {
        self.try_send(message).map_err(|(why, _)| why)
    }

    /// The same; what could not be left comes back.
    pub(super) fn try_send(&self, message: ThreadMessage) -> Result<(), (Unanswered, ThreadMessage)> {
        self.messages.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) => (Unanswered::Busy, message),
            TrySendError::Disconnected(message) => (Unanswered::Gone, message),
        })?;
        self.wake.wake();
        Ok(())
    }
}

impl Mailbox {
    /// What wakes this thread.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// The next message; `None`: none waits.
    pub fn next(&self) -> Option<ThreadMessage> {
        match self.messages.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            // All senders are gone: no one can stop it otherwise.
            Err(TryRecvError::Disconnected) => Some(ThreadMessage::Stop),
        }
    }
}

/// The ways to all DNS threads of a gateway.
#[derive(Clone, Debug)]
pub struct Posts(Arc<[Post]>);

impl Posts {
    /// Of these threads, one at least.
    #[must_use]
    pub fn new(posts: Vec<Post>) -> Self {
        Self(posts.into())
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(&self) -> &[Post] {
        &self.0
    }

    /// Puts a client's query and waits for the answer; neither has a stream's length field. One client's queries all go to one thread, since rates
    /// are counted there. To be dropped when the client is gone.
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
        let post = self.0.get(self.place(address)).ok_or(Unanswered::Gone)?;
        post.send(ThreadMessage::Query(StreamQuery { address, transport, message, answer }))?;
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
        let mut answers = Vec::with_capacity(self.0.len());
        for post in self.0.iter() {
            let (sender, receiver) = oneshot::channel();
            post.send(message(sender))?;
            match timeout(PATIENCE, receiver).await {
                Ok(answer) => answers.push(answer.map_err(|_| Unanswered::Gone)?),
                Err(_) => return Err(Unanswered::Busy),
            }
        }
        Ok(answers)
    }

    /// The thread for a client: by its /64, or its IPv4 address.
    fn place(&self, address: IpAddr) -> usize {
        let number = match address.to_canonical() {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        // Fibonacci hashing: neighbours are spread.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        spread as usize % self.0.len().max(1)
    }
}

/// A question for an upstream that is to go by its stream: TCP, TLS or HTTPS. Bounded like the exchanges of a resolver.
#[derive(Debug)]
pub struct UpstreamQuery {
    /// The upstream's place in the configuration.
    pub upstream: usize,
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
    cancelled: oneshot::Receiver<()>,
}

/// Who waits for a reply.
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
        (Self { back: Some(Back::Thread(exchange, post)), cancelled }, wanted)
    }

    /// The way back to who waits for the reply himself.
    #[must_use]
    pub fn waiting() -> (Self, Waiting) {
        let ((wanted, cancelled), (sender, reply)) = (oneshot::channel(), oneshot::channel());
        (Self { back: Some(Back::Waiting(sender)), cancelled }, Waiting { reply, _wanted: wanted })
    }

    /// Delivers the reply, without a length field, or the failure.
    pub fn give(mut self, reply: Result<Vec<u8>, Failure>) {
        if let Some(back) = self.back.take() {
            back.give(reply);
        }
    }

    /// Waits until the receiver is gone.
    pub async fn cancelled(&mut self) {
        let _ = (&mut self.cancelled).await;
    }

    /// Whether the receiver is gone.
    #[must_use]
    pub fn is_cancelled(&mut self) -> bool {
        matches!(self.cancelled.try_recv(), Err(oneshot::error::TryRecvError::Closed))
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
        let posts = Posts::new(vec![post]);
        let thread = std::thread::spawn(move || {
            loop {
                match mailbox.next() {
                    Some(ThreadMessage::Query(query)) if query.message.is_empty() => drop(query.answer),
                    Some(ThreadMessage::Query(query)) => query.answer.send(query.message).unwrap(),
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

    #[test]
    fn the_hosts_of_a_subnet_have_one_thread_and_subnets_are_spread() {
        let (post, _mailbox) = mailbox().unwrap();
        let posts = Posts::new(vec![post; 4]);
        let place = |text: &str| posts.place(text.parse().unwrap());
        assert_eq!(place("2001:db8::1"), place("2001:db8::2"));
        assert_eq!(place("192.0.2.1"), place("::ffff:192.0.2.1"));
        let places: std::collections::HashSet<usize> =
            (0..64).map(|subnet| place(&format!("2001:db8:0:{subnet:x}::1"))).collect();
        assert_eq!(places.len(), 4);
    }
}
