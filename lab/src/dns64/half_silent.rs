//! An upstream that answers for all zones but one: queries for `dead.test` get nothing.

use crate::failure::{Asking as _, Result};
use crate::topology::Network;
use nix::sys::socket::{setsockopt, sockopt};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Octets of a message's header (RFC 1035 §4.1.1).
const HEADER: usize = 12;
/// The zone that is silent.
const DEAD: &[u8] = b"\x04dead\x04test\0";
/// The zone that answers. Its names have A records only.
const GOOD: &[u8] = b"\x04good\x04test\0";
/// Octets that may wait in its socket: the silent zone must not cost the other one a query here.
const ROOM: usize = 32 << 20;

/// A name in the silent zone.
pub(super) fn dead_name(number: u32) -> Vec<u8> {
    name(b'd', number, DEAD)
}

/// A name in the zone that answers.
pub(super) fn good_name(number: u32) -> Vec<u8> {
    name(b'g', number, GOOD)
}

fn name(letter: u8, number: u32, zone: &[u8]) -> Vec<u8> {
    let label = format!("{}{number}", char::from(letter));
    [&[label.len() as u8][..], label.as_bytes(), zone].concat()
}

/// One at work at an address of the host "server"; it ends with this value.
pub(super) struct HalfSilent {
    ended: Arc<AtomicBool>,
    unanswered: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl HalfSilent {
    /// Listens at port 53 over UDP.
    ///
    /// # Errors
    /// The port is in use, or another error of the kernel.
    pub(super) fn start(network: &Network, address: &str) -> Result<Self> {
        let asking = || format!("listening at {address}");
        let socket = network.host("server")?.enter(|| UdpSocket::bind((address, 53)))?.asking(asking)?;
        setsockopt(&socket, sockopt::RcvBufForce, &ROOM).asking(asking)?;
        socket.set_read_timeout(Some(Duration::from_millis(100))).asking(asking)?;
        let (ended, unanswered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (flag, count) = (Arc::clone(&ended), Arc::clone(&unanswered));
        let thread = std::thread::spawn(move || serve(&socket, &flag, &count));
        Ok(Self { ended, unanswered, thread: Some(thread) })
    }

    /// Queries that came for the silent zone.
    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }
}

impl Drop for HalfSilent {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn serve(socket: &UdpSocket, ended: &AtomicBool, unanswered: &AtomicU64) {
    let (mut room, mut reply) = ([0; 4_096], Vec::new());
    while !ended.load(Ordering::Relaxed) {
        let Ok((length, client)) = socket.recv_from(&mut room) else { continue };
        match answer(&room[..length], &mut reply) {
            // Packets that cannot be sent are lost, as on any network.
            Some(Zone::Answers) => drop(socket.send_to(&reply, client)),
            Some(Zone::Silent) => drop(unanswered.fetch_add(1, Ordering::Relaxed)),
            None => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    Answers,
    Silent,
}

/// Whether a query is answered, and with what: one A record, or that there is nothing of this type. `None`: it is not a query.
fn answer(query: &[u8], reply: &mut Vec<u8>) -> Option<Zone> {
    let mut end = HEADER;
    while *query.get(end)? != 0 {
        end += 1 + usize::from(query[end]);
    }
    end += 1;
    let name = query.get(HEADER..end)?;
    let question = query.get(HEADER..end + 4)?;
    if is_within(name, DEAD) {
        return Some(Zone::Silent);
    }
    let is_a = question[name.len()..].starts_with(&[0, 1]);
    let has_opt = query[11] > 0;
    let counts = [0, 1, 0, u8::from(is_a), 0, u8::from(!is_a), 0, u8::from(has_opt)];
    reply.clear();
    reply.extend([query[0], query[1], 0x84 | query[2] & 1, 0x80 | query[3] & 0x10]);
    reply.extend(counts);
    reply.extend(question);
    if is_a {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 45, 64, 0, 9]);
    } else {
        match is_within(name, GOOD) {
            true => reply.extend([0xc0, (end - GOOD.len()) as u8]),
            false => reply.push(0),
        }
        // SOA: both names are the root; serial, refresh, retry, expire and MINIMUM.
        reply.extend([0, 6, 0, 1, 0, 0, 0x0e, 0x10, 0, 22, 0, 0]);
        for seconds in [1_u32, 3_600, 600, 86_400, 3_600] {
            reply.extend(seconds.to_be_bytes());
        }
    }
    if has_opt {
        reply.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
    }
    Some(Zone::Answers)
}

/// Upper and lower case are the same: queries have letters in random case.
fn is_within(name: &[u8], zone: &[u8]) -> bool {
    let end = name.len().checked_sub(zone.len()).and_then(|at| name.get(at..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(zone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns64::crowding::query;
    use domain::base::Message;
    use domain::base::iana::{Rcode, Rtype};

    #[test]
    fn a_name_of_the_good_zone_has_an_a_record_and_nothing_else() {
        let mut reply = Vec::new();
        for (qtype, counts) in [(1, (1, 0)), (28, (0, 1))] {
            let mut asked = query(7, &good_name(5));
            let at = asked.len() - 3;
            asked[at] = qtype;
            asked[13] = b'G';
            assert_eq!(answer(&asked, &mut reply), Some(Zone::Answers));
            let message = Message::from_slice(&reply).unwrap();
            assert_eq!((message.header().id(), message.header().rcode()), (7, Rcode::NOERROR));
            let sections = message.header_counts();
            assert_eq!((sections.ancount(), sections.nscount()), counts);
            let all = message.answer().unwrap().chain(message.authority().unwrap());
            for record in all {
                let record = record.unwrap();
                let expected =
                    if counts.0 == 1 { (Rtype::A, "g5.good.test") } else { (Rtype::SOA, "good.test") };
                assert_eq!((record.rtype(), record.owner().to_string().to_lowercase().as_str()), expected);
            }
        }
    }

    #[test]
    fn the_dead_zone_is_silent_whatever_the_case_and_what_is_no_query_is_passed_by() {
        let mut asked = query(7, &dead_name(70_000));
        assert_eq!(answer(&asked, &mut Vec::new()), Some(Zone::Silent));
        asked.make_ascii_uppercase();
        assert_eq!(answer(&asked, &mut Vec::new()), Some(Zone::Silent));
        for length in 0..asked.len() {
            assert_eq!(answer(&asked[..length], &mut Vec::new()), None, "{length}");
        }
    }
}
