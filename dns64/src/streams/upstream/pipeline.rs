//! DNS over one TCP or TLS connection to an upstream (RFC 7766 §6.2.1.1): many queries at a time, each under an ID of the connection's own, and
//! replies in any order.

use super::backlog::{Backlog, Waiting};
use super::connect::Fault;
use super::connection_end::ConnectionEnd;
use super::limits::{IDLE, SILENCE};
use crate::streams::framing::{Inbound, append};
use sixway_control::dns64::Failure;
use std::collections::HashMap;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// A question that no one waits for any more makes room after this time.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// Octets of a header (RFC 1035 §4.1.1).
const HEADER: usize = 12;

struct Flying {
    waiting: Waiting,
    /// The resolver's.
    id: [u8; 2],
    since: Instant,
}

/// Questions under way on a connection.
#[derive(Default)]
struct Pipeline {
    flying: HashMap<u16, Flying>,
    next_id: u16,
    answered: usize,
}

/// Asks what waits at the backlog until the connection ends, or has been idle.
pub async fn run<S>(mut stream: S, backlog: &Backlog) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pipeline = Pipeline::default();
    let fault = pipeline.converse(&mut stream, backlog).await.err();
    let unanswered = pipeline.flying.into_values().map(|mut flying| {
        flying.restore();
        flying.waiting
    });
    ConnectionEnd { unanswered: unanswered.collect(), answered: pipeline.answered, fault, was_open: true }
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
            if self.flying.is_empty() {
                quiet = Instant::now();
            }
            self.take_up(backlog, &mut outbound);
            write(stream, &mut outbound).await?;
            let is_idle = self.flying.is_empty();
            tokio::select! {
                read = inbound.fill(stream) => {
                    let read = read.map_err(|error| Fault::new(Failure::Closed, error.to_string()))?;
                    if read == 0 {
                        return if is_idle { Ok(()) } else { Err(self.cut_off(inbound.is_within())) };
                    }
                    quiet = Instant::now();
                    // No length is too long: its field has 16 bits.
                    while let Ok(Some(reply)) = inbound.next(usize::from(u16::MAX)) {
                        self.give(reply)?;
                    }
                    backlog.has_answered(self.answered);
                }
                () = backlog.arrived(), if self.flying.len() < backlog.at_a_time() => {}
                () = sleep_until(quiet + if is_idle { IDLE } else { SILENCE }) => {
                    return if is_idle { Ok(()) } else { Err(Fault::new(Failure::Closed, "no reply on the connection for too long")) };
                }
            }
        }
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
        if self.flying.len() >= backlog.at_a_time() {
            self.flying.retain(|_, flying| {
                flying.since.elapsed() < FORGOTTEN || !flying.waiting.query.reply.is_cancelled()
            });
        }
        while self.flying.len() < backlog.at_a_time() {
            let Some(mut waiting) = backlog.take() else { return };
            // A query without a header gets no reply.
            let Some(id) = waiting.query.message.first_chunk_mut::<2>() else { continue };
            while self.flying.contains_key(&self.next_id) {
                self.next_id = self.next_id.wrapping_add(1);
            }
            let theirs = std::mem::replace(id, self.next_id.to_be_bytes());
            append(outbound, &waiting.query.message);
            self.flying.insert(self.next_id, Flying { waiting, id: theirs, since: Instant::now() });
            self.next_id = self.next_id.wrapping_add(1);
        }
        backlog.pass_on();
    }

    /// A reply goes to whom it is for. An unsolicited one is ignored.
    fn give(&mut self, mut reply: Vec<u8>) -> Result<(), Fault> {
        let Some(id) = reply.first_chunk_mut::<2>() else {
            return Err(Fault::new(Failure::Malformed, "it does not speak DNS"));
        };
        let Some(flying) = self.flying.remove(&u16::from_be_bytes(*id)) else { return Ok(()) };
        *id = flying.id;
        if reply.len() < HEADER {
            flying.waiting.query.reply.give(Err(Failure::Malformed));
            return Err(Fault::new(Failure::Malformed, "its reply has an incomplete header"));
        }
        self.answered += 1;
        flying.waiting.query.reply.give(Ok(reply));
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
