//! A resolver that answers by what the name says: `late` after a while, `never`, `big` with much, all others immediately.

use crate::{Mailbox, Post, Posts, StreamQuery, ThreadMessage, mailbox};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Its thread, until it is dropped.
pub struct Resolver {
    post: Post,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    pub fn start() -> Self {
        let (post, mailbox) = mailbox().unwrap();
        let thread = Some(thread::spawn(move || run(&mailbox)));
        Self { post, thread }
    }

    pub fn posts(&self) -> Posts {
        Posts::new(vec![self.post.clone()], 64)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let _ = self.post.send(ThreadMessage::Stop);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || thread::panicking());
    }
}

fn run(mailbox: &Mailbox) {
    let mut kept = Vec::new();
    loop {
        match mailbox.next() {
            Some(ThreadMessage::Query(query)) => kept.extend(reply(query)),
            Some(ThreadMessage::Stop) => return,
            Some(_) => {}
            None => thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// Gives a query back that is never answered.
fn reply(query: StreamQuery) -> Option<StreamQuery> {
    match query.message.get(13..17) {
        None => {}
        Some(b"neve") => return Some(query),
        Some(b"late") => {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(150));
                query.answer.send(answer(&query.message))
            });
        }
        Some(b"big0") => {
            let mut big = answer(&query.message);
            big.resize(60_000, 0);
            let _ = query.answer.send(big);
        }
        Some(_) => {
            let _ = query.answer.send(answer(&query.message));
        }
    }
    None
}

/// A query for the A records of a name of one label.
pub fn query(id: u16, label: &str) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0, label.len() as u8]);
    message.extend_from_slice(label.as_bytes());
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    message
}

/// Its answer: one record, for a minute.
pub fn answer(query: &[u8]) -> Vec<u8> {
    let end = query.iter().skip(12).position(|octet| *octet == 0).map_or(query.len(), |at| 12 + at + 5);
    let mut message = query[..end].to_vec();
    message[2] |= 0x80;
    message[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
    message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    message
}
