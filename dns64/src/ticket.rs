//! The client that waits for an answer.

use sixway_dataplane::Instant;
use sixway_link::udp::Path;
use tokio::sync::oneshot;

/// What a resolver keeps of a client that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// When its query came.
    pub since: Instant,
    /// How it came.
    pub way: Way,
}

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It asked by a datagram: the server's place, and the way back.
    Datagram(u16, Path),
    /// It asked by a stream: its place among those that wait.
    Stream(u32),
}

/// Clients on streams that wait. Each leaves with its answer, and answers are bounded in time, so that these are bounded by what the resolver lets wait.
#[derive(Debug, Default)]
pub(super) struct StreamClients {
    places: Vec<Option<oneshot::Sender<Vec<u8>>>>,
    free: Vec<u32>,
}

impl StreamClients {
    /// Gives a client a place.
    pub(super) fn admit(&mut self, answer: oneshot::Sender<Vec<u8>>) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(answer);
                place
            }
            None => {
                self.places.push(Some(answer));
                (self.places.len() - 1) as u32
            }
        }
    }

    /// The client leaves its place.
    pub(super) fn leave(&mut self, place: u32) -> Option<oneshot::Sender<Vec<u8>>> {
        let answer = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_out_again_when_its_client_has_left() {
        let mut clients = StreamClients::default();
        let (first, second) = (clients.admit(oneshot::channel().0), clients.admit(oneshot::channel().0));
        assert_ne!(first, second);
        assert!(clients.leave(first).is_some());
        assert!(clients.leave(first).is_none());
        assert_eq!(clients.admit(oneshot::channel().0), first);
        assert!(clients.leave(7).is_none());
    }
}
