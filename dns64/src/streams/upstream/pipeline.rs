//! DNS over one TCP or TLS connection to an upstream (RFC 7766 §6.2.1.1): many queries at a time, each with an ID of this connection, and
//! replies in any order. A question that no client waits for any more frees its place immediately; its ID is not reused for a while.

use super::backlog::{Backlog, Retired, Waiting};
use super::connect::Fault;
use super::connection_end::ConnectionEnd;
use super::limits::{IDLE, IN_FLIGHT, SILENCE};
use super::quarantine::Quarantine;
use crate::Cancelled;
use crate::streams::framing::{Inbound, append};
use futures_util::stream::{FuturesUnordered, StreamExt};
use sixway_control::dns64::Failure;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// Questions without a reply, whether waited for or not, after which a connection accepts no further ones.
const OUTSTANDING: usize = 4 * IN_FLIGHT;
/// Octets of a header (RFC 1035 §4.1.1).
const HEADER: usize = 12;
/// Longest time for the replies that arrived before a connection broke: they are in the socket's buffer already, or never come.
const LAST_REPLIES: Duration = Duration::from_millis(250);

struct Flying {
    waiting: Waiting,
    /// The resolver's.
    id: [u8; 2],
    /// Which question of the connection it is.
    number: u64,
}

/// Signals that no query waits for a question any more.
struct Watch {
    cancelled: Cancelled,
    id: u16,
    number: u64,
}

impl Future for Watch {
    type Output = (u16, u64);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(Pin::new(&mut self.cancelled).poll(context));
        Poll::Ready((self.id, self.number))
    }
}

/// Questions under way on a connection.
#[derive(Default)]
struct Pipeline {
    flying: HashMap<u16, Flying>,
    watches: FuturesUnordered<Watch>,
    quarantine: Quarantine,
    next_id: u16,
    next_number: u64,
    answered: usize,
    /// It ends since nothing was heard for a time.
    was_silent: bool,
    /// It accepts no further questions.
    retired: Option<Retired>,
}

/// Asks what waits at the backlog until the connection ends, or has been idle.
pub async fn run<S>(mut stream: S, backlog: &Backlog) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pipeline = Pipeline::default();
    let fault = pipeline.converse(&mut stream, backlog).await.err();
    for Watch { cancelled, id, number } in std::mem::take(&mut pipeline.watches) {
        if let Some(flying) = pipeline.flying.get_mut(&id)
            && flying.number == number
        {
            flying.waiting.query.reply.give_back(cancelled);
        }
    }
    let unanswered = pipeline.flying.into_values().map(|mut flying| {
        flying.restore();
        flying.waiting
    });
    let (answered, was_silent) = (pipeline.answered, pipeline.was_silent);
    ConnectionEnd { unanswered: unanswered.collect(), answered, fault, was_open: true, was_silent }
}

impl Flying {
    /// Gives the query the resolver's ID back.
    fn restore(&mut self) {
        if let Some(id) = self.waiting.query.message.first_chunk_mut() {
            *id = self.id;
        }
    }
}

impl Pipeline {
    async fn converse<S>(&mut self, stream: &mut S, backlog: &Backlog) -> Result<(), Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut inbound = Inbound::default();
        let mut outbound = Vec::new();
        // Since the upstream was last heard, or first had something to say.
        let mut quiet = Instant::now();
        loop {
            // After its time, an ID is not expected to have a reply.
            self.quarantine.pass(Instant::now());
            if self.outstanding() == 0 {
                quiet = Instant::now();
            }
            if self.retired.is_none() && self.outstanding() >= OUTSTANDING {
                self.retired = Some(backlog.retire());
            }
            self.take_up(backlog, &mut outbound);
            if let Err(fault) = write(stream, &mut outbound).await {
                timeout(LAST_REPLIES, self.take_last_replies(stream, &mut inbound)).await.ok();
                return Err(fault);
            }
            if self.retired.is_some() && self.flying.is_empty() {
                return Ok(());
            }
            let is_idle = self.outstanding() == 0;
            let next_free = self.quarantine.next_end();
            tokio::select! {
                read = inbound.fill(stream) => {
                    let read = read.map_err(|error| Fault::new(Failure::Closed, error.to_string()))?;
                    if read == 0 {
                        return if self.flying.is_empty() { Ok(()) } else { Err(self.cut_off(inbound.is_within())) };
                    }
                    quiet = Instant::now();
                    self.give_all(&mut inbound)?;
                    backlog.has_answered(self.answered);
                }
                Some((id, number)) = self.watches.next() => self.cancel(id, number),
                () = backlog.arrived(), if self.has_room(backlog) => {}
                () = sleep_until(next_free.unwrap_or(quiet)), if next_free.is_some() => {}
                () = sleep_until(quiet + if is_idle { IDLE } else { SILENCE }) => {
                    self.was_silent = !is_idle;
                    return if is_idle { Ok(()) } else { Err(Fault::new(Failure::Closed, "no reply on the connection for too long")) };
                }
            }
        }
    }

    /// Takes the replies that arrived before nothing could be sent any more. An upstream that closes with a question unread resets the
    /// connection, and its replies to earlier questions are still to be read then.
    async fn take_last_replies<S: AsyncRead + Unpin>(&mut self, stream: &mut S, inbound: &mut Inbound) {
        while !self.flying.is_empty() && matches!(inbound.fill(stream).await, Ok(1..)) {
            if self.give_all(inbound).is_err() {
                return;
            }
        }
    }

    /// Questions that a reply may come to.
    fn outstanding(&self) -> usize {
        self.flying.len() + self.quarantine.len()
    }

    fn has_room(&self, backlog: &Backlog) -> bool {
        self.retired.is_none() && self.flying.len() < backlog.at_a_time()
    }

    /// The upstream ended the connection while questions waited.
    fn cut_off(&self, is_within: bool) -> Fault {
        match self.answered == 0 && is_within {
            true => Fault::new(Failure::Malformed, "it does not speak DNS"),
            false => Fault::new(Failure::Closed, "it closed the connection before replying"),
        }
    }

    /// As many questions as there is room for.
    fn take_up(&mut self, backlog: &Backlog, outbound: &mut Vec<u8>) {
        while self.has_room(backlog) {
            let Some(mut waiting) = backlog.take() else { return };
            // A query without a header gets no reply.
            let Some(id) = waiting.query.message.first_chunk_mut::<2>() else { continue };
            while self.flying.contains_key(&self.next_id) || self.quarantine.holds(self.next_id) {
                self.next_id = self.next_id.wrapping_add(1);
            }
            let theirs = std::mem::replace(id, self.next_id.to_be_bytes());
            append(outbound, &waiting.query.message);
            self.fly(waiting, theirs);
        }
        backlog.pass_on();
    }

    fn fly(&mut self, mut waiting: Waiting, theirs: [u8; 2]) {
        let (id, number) = (self.next_id, self.next_number);
        if let Some(cancelled) = waiting.query.reply.watch() {
            self.watches.push(Watch { cancelled, id, number });
        }
        self.flying.insert(id, Flying { waiting, id: theirs, number });
        (self.next_id, self.next_number) = (id.wrapping_add(1), number + 1);
    }

    /// No client waits for a question any more: the next can be sent. An upstream that leaves many unanswered on one connection gets another.
    fn cancel(&mut self, id: u16, number: u64) {
        if self.flying.get(&id).is_some_and(|flying| flying.number == number)
            && let Some(flying) = self.flying.remove(&id)
        {
            flying.waiting.into_reply().forget();
            let now = Instant::now();
            self.quarantine.pass(now);
            self.quarantine.add(now, id);
        }
    }

    /// All whole replies that have arrived are passed to their queries.
    fn give_all(&mut self, inbound: &mut Inbound) -> Result<(), Fault> {
        // No length is too long: its field has 16 bits.
        while let Ok(Some(reply)) = inbound.next(usize::from(u16::MAX)) {
            self.give(reply)?;
        }
        Ok(())
    }

    /// A reply is passed to its query. An unsolicited one is ignored.
    fn give(&mut self, mut reply: Vec<u8>) -> Result<(), Fault> {
        let Some(id) = reply.first_chunk_mut::<2>() else {
            return Err(Fault::new(Failure::Malformed, "it does not speak DNS"));
        };
        let number = u16::from_be_bytes(*id);
        let Some(flying) = self.flying.remove(&number) else {
            self.answered += usize::from(self.quarantine.answered(number));
            return Ok(());
        };
        *id = flying.id;
        if reply.len() < HEADER {
            flying.waiting.into_reply().give(Err(Failure::Malformed));
            return Err(Fault::new(Failure::Malformed, "its reply has an incomplete header"));
        }
        self.answered += 1;
        flying.waiting.into_reply().give(Ok(reply));
        Ok(())
    }
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, outbound: &mut Vec<u8>) -> Result<(), Fault> {
    if outbound.is_empty() {
        return Ok(());
    }
    let written = async {
        stream.write_all(outbound).await?;
        stream.flush().await
    };
    let written = timeout(SILENCE, written).await;
    outbound.clear();
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Fault::new(Failure::Closed, error.to_string())),
        Err(_) => Err(Fault::new(Failure::Closed, "it accepts no more queries")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplyTo, UpstreamQuery};
    use sixway_control::dns64::Payer;
    use std::io;
    use tokio::io::ReadBuf;

    /// A connection that the upstream has reset after it had replied: what arrived can be read, and nothing can be sent.
    struct Reset {
        arrived: Vec<u8>,
        /// It does not end when all is read.
        is_open: bool,
    }

    impl AsyncRead for Reset {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.arrived.is_empty() {
                return match self.is_open {
                    true => Poll::Pending,
                    false => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                };
            }
            room.put_slice(&std::mem::take(&mut self.arrived));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Reset {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_reply_that_arrived_before_a_reset_is_not_lost() {
        for is_open in [false, true] {
            let start = Instant::now();
            one_reply_is_read(is_open).await;
            assert!(start.elapsed() < 8 * LAST_REPLIES, "others are not waited for");
        }
    }

    async fn one_reply_is_read(is_open: bool) {
        let backlog = Backlog::default();
        let payer = Payer::of("2001:db8::1".parse().unwrap(), 64, false);
        let mut waiting = Vec::new();
        for id in [[7, 7], [8, 8]] {
            let (reply, wanted) = ReplyTo::waiting();
            let message = [&id[..], &[0; HEADER - 2]].concat();
            backlog.put(UpstreamQuery { upstream: 0, payer, message, reply }).unwrap();
            waiting.push(wanted);
        }
        let mut arrived = Vec::new();
        append(&mut arrived, &[0; HEADER]);
        let end = run(Reset { arrived, is_open }, &backlog).await;
        assert_eq!((end.answered, end.unanswered.len()), (1, 1), "{end:?}");
        assert_eq!(end.unanswered[0].query.message[..2], [8, 8], "the ID of the resolver");
        assert!(end.fault.is_some_and(|fault| fault.failure == Failure::Closed));
    }
}
