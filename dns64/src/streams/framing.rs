//! Messages of a TCP or TLS stream (RFC 1035 §4.2.2, RFC 7766 §8):
//!
//! ```text
//!  0                   1
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//! +-------------------------------+
//! | length of the message, octets |
//! +-------------------------------+
//! | the message …                 |
//! ```

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::ready;
use tokio::io::{AsyncRead, ReadBuf};

/// Size of a read, in octets.
const STEP: usize = 2_048;

/// What has come by a stream and was not taken yet.
#[derive(Debug, Default)]
pub struct Inbound {
    octets: Vec<u8>,
    taken: usize,
}

/// A message is longer than is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Inbound {
    /// The next whole message.
    ///
    /// # Errors
    /// It is longer than `longest` octets.
    pub fn next(&mut self, longest: usize) -> Result<Option<Vec<u8>>, TooLong> {
        let rest = self.octets.get(self.taken..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk::<2>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length > longest {
            return Err(TooLong);
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = message.to_vec();
        self.taken += 2 + length;
        Ok(Some(message))
    }

    /// Whether a part of a message has come.
    pub fn is_within(&self) -> bool {
        self.octets.len() > self.taken
    }

    /// Reads once; 0: the other side has ended. Nothing is lost when this is given up half-way. No memory is held while nothing has come: most
    /// connections are idle.
    ///
    /// # Errors
    /// The stream's.
    pub async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.octets.drain(..self.taken);
        self.taken = 0;
        if self.octets.is_empty() {
            self.octets = Vec::new();
        }
        poll_fn(|context| {
            let mut room = [MaybeUninit::uninit(); STEP];
            let mut read = ReadBuf::uninit(&mut room);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut read))?;
            self.octets.extend_from_slice(read.filled());
            io::Result::Ok(read.filled().len()).into()
        })
        .await
    }
}

/// Appends a message behind its length. One that no length can be said of is left out.
pub fn append(out: &mut Vec<u8>, message: &[u8]) {
    if let Ok(length) = u16::try_from(message.len()) {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_found_wherever_the_stream_is_cut() {
        let mut stream = Vec::new();
        let messages: [&[u8]; 3] = [b"one", b"", &[7; 5_000]];
        for message in messages {
            append(&mut stream, message);
        }
        for cut in [1, 2, 3, 4, 5, 6, 7, 8, 100, 5_000] {
            let mut inbound = Inbound::default();
            let mut found = Vec::new();
            for mut part in stream.chunks(cut) {
                while inbound.fill(&mut part).await.unwrap() > 0 {
                    while let Some(message) = inbound.next(5_000).unwrap() {
                        found.push(message);
                    }
                }
            }
            assert_eq!(found, messages, "cut every {cut} octets");
            assert!(!inbound.is_within());
        }
    }

    #[tokio::test]
    async fn a_message_beyond_the_bound_is_refused_by_its_length_alone() {
        let mut inbound = Inbound::default();
        inbound.fill(&mut &[0x10, 0x01][..]).await.unwrap();
        assert_eq!(inbound.next(4_096), Err(TooLong));
    }
}
