//! A client's connection over TCP (RFC 7766) or TLS (RFC 7858): queries are read as they arrive, answers leave as they are ready.

use super::admission::ConnectionSlot;
use super::bounds::{LONGEST_QUERY, OUTBOUND};
use super::framing::{Inbound, append};
use crate::{Posts, Unanswered};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use sixway_control::dns64::Transport;
use std::io;
use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// The client of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// How it came.
    pub transport: Transport,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client ended it, and has all its answers.
    Finished,
    /// Idle timeout.
    Idle,
    /// It sent something that is not a query or is too long, sent too many queries, or did not read its answers.
    Cut,
    /// It was idle, and another client had no connection.
    MadeWay,
}

impl From<io::Error> for CloseReason {
    fn from(_: io::Error) -> Self {
        Self::Finished
    }
}

/// Serves a connection until it closes.
pub async fn serve<S>(mut stream: S, client: Client, posts: &Posts, slot: &ConnectionSlot) -> CloseReason
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let end = match converse(&mut stream, client, posts, slot).await {
        Ok(end) | Err(end) => end,
    };
    if end != CloseReason::Cut {
        // TLS says so; a client that does not listen is left.
        let _ = timeout(slot.bounds().write, stream.shutdown()).await;
    }
    end
}

async fn converse<S>(
    stream: &mut S,
    client: Client,
    posts: &Posts,
    slot: &ConnectionSlot,
) -> Result<CloseReason, CloseReason>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let bounds = slot.bounds();
    let mut inbound = Inbound::default();
    let mut waiting = FuturesUnordered::new();
    let mut outbound = Vec::new();
    let mut heard = Instant::now();
    let (mut has_asked, mut ended) = (false, false);
    loop {
        while waiting.len() < bounds.in_flight {
            let Some(query) = inbound.next(LONGEST_QUERY).map_err(|_| CloseReason::Cut)? else { break };
            if waiting.is_empty() {
                slot.use_it();
            }
            waiting.push(posts.ask(client.address, client.transport, query));
            (heard, has_asked) = (Instant::now(), true);
        }
        if ended && waiting.is_empty() {
            return Ok(CloseReason::Finished);
        }
        let has_room = waiting.len() < bounds.in_flight;
        tokio::select! {
            Some(answer) = waiting.next() => {
                take_up(answer, &mut outbound)?;
                while outbound.len() < OUTBOUND {
                    let Some(Some(answer)) = waiting.next().now_or_never() else { break };
                    take_up(answer, &mut outbound)?;
                }
                write(stream, &mut outbound, bounds.write).await?;
                heard = Instant::now();
                if waiting.is_empty() {
                    slot.rest();
                }
            }
            read = inbound.fill(stream), if has_room && !ended => ended = read? == 0,
            () = sleep_until(heard + slot.idle_time(has_asked)), if waiting.is_empty() => return Ok(CloseReason::Idle),
        }
    }
}

/// Answers that are ready together are written together (RFC 7766 §8: a length and its message in one segment).
fn take_up(answer: Result<Vec<u8>, Unanswered>, outbound: &mut Vec<u8>) -> Result<(), CloseReason> {
    append(outbound, &answer.map_err(|_| CloseReason::Cut)?);
    Ok(())
}

/// Writes all of it.
async fn write<S>(
    stream: &mut S,
    outbound: &mut Vec<u8>,
    patience: std::time::Duration,
) -> Result<(), CloseReason>
where
    S: AsyncWrite + Unpin,
{
    let written = async {
        stream.write_all(outbound).await?;
        stream.flush().await
    };
    timeout(patience, written).await.map_err(|_| CloseReason::Cut)??;
    outbound.clear();
    if outbound.capacity() > OUTBOUND {
        *outbound = Vec::new();
    }
    Ok(())
}
