//! The spare UDP ports of a Teredo client behind a symmetric NAT (RFC 6081 §5.4, §5.5): their sockets, which a worker has.

use crate::worker::{Command, Inlet, InletWatch, Post, TeredoPage};
use sixway_dataplane::mechanism::teredo::{PortRule, Prediction, SpareRow};
use sixway_link::UdpTunnel;
use sixway_wire::Endpoint4;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use tokio::sync::oneshot;

/// The ports.
pub(super) struct TeredoSpares {
    /// The client's number among Teredo's relays and clients.
    index: u16,
    /// How many there are to be.
    wanted: usize,
    /// The address at which they are to be open.
    at: Option<Ipv4Addr>,
    open: Vec<(Endpoint4, InletWatch)>,
    told: Prediction,
    /// The question which of them are used, and the last answer.
    asked: Option<oneshot::Receiver<TeredoPage>>,
    row: SpareRow,
    trouble: Option<String>,
}

impl TeredoSpares {
    /// None yet.
    pub(super) fn new(index: u16, wanted: u16) -> Self {
        let (told, row) = (Prediction::default(), SpareRow::default());
        Self {
            index,
            wanted: wanted.into(),
            at: None,
            open: Vec::new(),
            told,
            asked: None,
            row,
            trouble: None,
        }
    }

    /// Follows the address of the service port and the known kind of NAT: each second. One that failed and one that is spent is opened again at
    /// another number. Returns the ports for the engines, if they changed. `is_taken`: a port that is not the client's.
    pub(super) fn follow(
        &mut self,
        bound: Option<Endpoint4>,
        rule: Option<PortRule>,
        is_taken: impl Fn(u16) -> bool,
        posts: &[Post],
    ) -> Option<Prediction> {
        let wanted = if rule.is_some() { self.wanted } else { 0 };
        let at = bound.map(|bound| bound.address).filter(|_| wanted > 0);
        if self.at != at {
            (self.at, self.asked, self.row) = (at, None, SpareRow::default());
        }
        // Some that could not be closed in an earlier second may be among them.
        self.close(posts, |end| Some(end.address) != at);
        self.hear(posts);
        self.open.retain(|(_, watch)| !watch.is_closed());
        if let Some(address) = at {
            let missing = self.ports().count()..wanted;
            let opened = missing.into_iter().try_for_each(|_| self.open_one(address, &is_taken, posts));
            let trouble = opened.err().map(|error| error.to_string());
            if let Some(what) = trouble.as_ref().filter(|_| trouble != self.trouble) {
                tracing::warn!("a spare port of the Teredo client: {what}; it is tried again");
            }
            self.trouble = trouble;
        }
        let prediction = Prediction { rule: rule.filter(|_| wanted > 0), ports: self.ports().collect() };
        (self.told != prediction).then(|| {
            self.told = prediction.clone();
            prediction
        })
    }

    /// The engines' data.
    pub(super) const fn told(&self) -> &Prediction {
        &self.told
    }

    /// Those at the present address.
    fn ports(&self) -> impl Iterator<Item = u16> {
        let here = self.open.iter().filter(|(end, _)| Some(end.address) == self.at);
        here.map(|(end, _)| end.port)
    }

    fn open_one(
        &mut self,
        address: Ipv4Addr,
        is_taken: impl Fn(u16) -> bool,
        posts: &[Post],
    ) -> io::Result<()> {
        let socket = UdpTunnel::open(SocketAddrV4::new(address, 0))?;
        let port = socket.local().port();
        if is_taken(port) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "the kernel chose a port of a pool"));
        }
        let Some(post) = posts.first() else { return Ok(()) };
        let inlet = Inlet::new((address, Some(port)), Box::new(socket));
        let watch = inlet.watch();
        post.send(Command::AddInlet(inlet)).map_err(io::Error::other)?;
        self.open.push((Endpoint4::new(address, port), watch));
        Ok(())
    }

    /// Closes such ones. Of one that cannot be closed now, it is tried again.
    fn close(&mut self, posts: &[Post], which: impl Fn(Endpoint4) -> bool) {
        let Some(post) = posts.first() else { return };
        self.open.retain(|(end, _)| {
            !which(*end) || post.send(Command::RemoveInlet((end.address, Some(end.port)))).is_err()
        });
    }

    /// Takes the answer of the engine: which one is spent.
    fn hear(&mut self, posts: &[Post]) {
        let Some((row, ..)) = self.asked.as_mut().and_then(|answer| answer.try_recv().ok()) else { return };
        self.row = row.spares;
        if let Some(spent) = self.row.spent {
            self.close(posts, |end| end.port == spent);
        }
    }

    /// Asks which of them are used, after the engines have them: an answer about a closed one would cost a second.
    pub(super) fn ask(&mut self, posts: &[Post]) {
        let (Some(_), Some(post)) = (self.at, posts.first()) else { return };
        let (answer, receiver) = oneshot::channel();
        self.asked = post.send(Command::TeredoPeers(self.index, 0, answer)).is_ok().then_some(receiver);
    }

    /// Their use, in words; `None`: there should be none.
    pub(super) fn words(&self, is_known: bool) -> Option<String> {
        if self.wanted == 0 {
            return None;
        }
        let SpareRow { in_use, .. } = self.row;
        let used = format!("{} spare ports, {in_use} in use", self.ports().count());
        Some(match (self.told.rule, &self.trouble) {
            (Some(_), Some(what)) => format!("{used}; another one cannot be opened: {what}"),
            (Some(PortRule::Preserved), None) => format!("{used}: the NAT maps each to its own number"),
            (Some(PortRule::Sequential { .. }), None) => {
                format!("{used}: the mapped port is expected between two that the server sees")
            }
            (None, _) if is_known => "not needed: the NAT is not symmetric".into(),
            (None, _) => "none: the kind of NAT is not known".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{Mailbox, mailbox};
    use sixway_dataplane::mechanism::teredo::TeredoRow;

    const BOUND: Endpoint4 = Endpoint4::new(Ipv4Addr::LOCALHOST, 4_000);
    const RULE: Option<PortRule> = Some(PortRule::Preserved);

    /// Takes what a worker gets: its sockets stay open.
    fn work(mailbox: &Mailbox, inlets: &mut Vec<Inlet>, spent: Option<u16>) {
        while let Some(command) = mailbox.waiting() {
            match command {
                Command::AddInlet(inlet) => inlets.push(inlet),
                Command::RemoveInlet(at) => inlets.retain(|inlet| inlet.at != at),
                Command::TeredoPeers(3, 0, answer) => {
                    let spares = SpareRow { spent, in_use: 1, open: 2 };
                    let _ = answer.send((TeredoRow { spares, ..TeredoRow::default() }, Vec::new(), None));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn spare_ports_are_open_behind_a_symmetric_nat_alone_and_a_spent_one_is_replaced() {
        let (post, mailbox) = mailbox().unwrap();
        let (posts, mut inlets) = ([post], Vec::new());
        let mut spares = TeredoSpares::new(3, 2);
        assert_eq!(spares.follow(Some(BOUND), None, |_| false, &posts), None);
        work(&mailbox, &mut inlets, None);
        assert!(inlets.is_empty());
        assert_eq!(spares.words(true).unwrap(), "not needed: the NAT is not symmetric");
        let told = spares.follow(Some(BOUND), RULE, |_| false, &posts).unwrap();
        assert_eq!((told.rule, told.ports.len()), (RULE, 2));
        spares.ask(&posts);
        work(&mailbox, &mut inlets, Some(told.ports[0]));
        assert_eq!(inlets.iter().filter_map(|inlet| inlet.at.1).collect::<Vec<_>>(), told.ports);
        // The answer of the engine is heard in the next second.
        let later = spares.follow(Some(BOUND), RULE, |_| false, &posts).unwrap();
        spares.ask(&posts);
        work(&mailbox, &mut inlets, None);
        assert_eq!((later.ports[0], later.ports.len(), inlets.len()), (told.ports[1], 2, 2));
        assert_ne!(later.ports[1], told.ports[0]);
        assert!(spares.words(true).unwrap().starts_with("2 spare ports, 1 in use: the NAT maps each"));
        assert_eq!(spares.follow(Some(BOUND), RULE, |_| false, &posts), None, "nothing is new");
        work(&mailbox, &mut inlets, None);
        // A socket failed.
        inlets.remove(0);
        assert_eq!(spares.follow(Some(BOUND), RULE, |_| false, &posts).unwrap().ports.len(), 2);
        work(&mailbox, &mut inlets, None);
        assert_eq!(spares.follow(None, RULE, |_| false, &posts).unwrap().ports, [0; 0]);
        work(&mailbox, &mut inlets, None);
        assert!(inlets.is_empty());
    }

    #[tokio::test]
    async fn a_port_of_a_pool_is_no_spare_port_and_without_the_option_there_is_none() {
        let (post, mailbox) = mailbox().unwrap();
        let posts = [post];
        let mut spares = TeredoSpares::new(3, 2);
        let told = spares.follow(Some(BOUND), RULE, |_| true, &posts).unwrap();
        assert_eq!(told.ports, [0; 0]);
        assert!(spares.words(true).unwrap().contains("a port of a pool"), "{:?}", spares.words(true));
        let mut none = TeredoSpares::new(3, 0);
        assert_eq!((none.follow(Some(BOUND), RULE, |_| false, &posts), none.words(true)), (None, None));
        work(&mailbox, &mut Vec::new(), None);
    }

    /// As the daemon does it: followed, the engine gets it, asked. The engine names the first one that it knows, all of which are spent.
    #[tokio::test]
    async fn of_many_spent_ports_one_is_replaced_each_second() {
        let (post, mailbox) = mailbox().unwrap();
        let (posts, mut inlets, mut known) = ([post], Vec::new(), Vec::new());
        let mut spares = TeredoSpares::new(3, 4);
        let mut first = Vec::new();
        for second in 0..5 {
            if let Some(told) = spares.follow(Some(BOUND), RULE, |_| false, &posts) {
                work(&mailbox, &mut inlets, None);
                known = told.ports;
            }
            first = if second == 0 { known.clone() } else { first };
            spares.ask(&posts);
            work(&mailbox, &mut inlets, known.iter().copied().find(|port| first.contains(port)));
            assert_eq!(known.iter().filter(|port| first.contains(port)).count(), 4 - second, "{second}");
            assert_eq!((known.len(), inlets.len()), (4, 4));
        }
    }

    #[tokio::test]
    async fn ports_of_a_former_address_that_could_not_be_closed_are_not_told_and_are_closed_later() {
        let (post, mailbox) = mailbox().unwrap();
        let (posts, mut inlets) = ([post], Vec::new());
        let mut spares = TeredoSpares::new(3, 2);
        let told = spares.follow(Some(BOUND), RULE, |_| false, &posts).unwrap();
        work(&mailbox, &mut inlets, None);
        // The worker has too much to do.
        while posts[0].send(Command::RemoveInlet((Ipv4Addr::UNSPECIFIED, None))).is_ok() {}
        let other = Endpoint4::new(Ipv4Addr::new(127, 0, 0, 2), 4_000);
        let during = spares.follow(Some(other), RULE, |_| false, &posts).unwrap();
        assert_eq!((during.ports.len(), told.ports.len()), (0, 2));
        work(&mailbox, &mut inlets, None);
        assert_eq!(inlets.len(), 2, "they are still open");
        assert_eq!(spares.follow(Some(other), RULE, |_| false, &posts).unwrap().ports.len(), 2);
        work(&mailbox, &mut inlets, None);
        assert!(inlets.len() == 2 && inlets.iter().all(|inlet| inlet.at.0 == other.address));
    }
}
