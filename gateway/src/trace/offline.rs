//! A separate engine: made from a configuration, with copied sessions. It receives and sends nothing.

use crate::config::{Config, Surroundings};
use crate::inside_endpoint;
use crate::view::SessionRow;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::{Inside, NatProtocol, NotAdopted, Outside, SavedSession, SessionState};
use sixway_dataplane::{Counters, DropReason, Frame, Instant, Offload, Outbox, Verdict};
use sixway_wire::Endpoint4;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Frames that a packet may become, at most.
const OUTBOX: usize = 256;
/// The time at which an engine apart begins: sessions of a day's age fit before it.
const START: u32 = 1_000_000;

/// The handling of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Counters that grew, and by how much: `nat64.v6_to_v4`, `nat.sessions.made`.
    pub counted: Vec<(String, u64)>,
    /// Why it was dropped.
    pub dropped: Option<DropReason>,
    /// It is the host's.
    pub punted: bool,
    /// It waits: a fragment, or a SYN from outside.
    pub held: bool,
    /// What leaves.
    pub sent: Vec<Vec<u8>>,
}

/// The engine.
pub struct Offline {
    engine: Engine,
    now: Instant,
    out: Outbox,
}

impl Offline {
    /// With this configuration, at the addresses that this host has.
    ///
    /// # Errors
    /// What cannot be.
    pub fn new(config: &Config, now: &Surroundings) -> Result<Self, String> {
        let mut config = config.clone();
        config.gateway.workers = 1;
        let engines = config.engines([0x5117, 0x0ff1], now);
        let engine = engines.into_iter().next().ok_or("no engine")?;
        let engine = Engine::new(&engine).map_err(|fault| fault.to_string())?;
        Ok(Self { engine, now: Instant::from_secs(START.into()), out: Outbox::new(OUTBOX) })
    }

    /// Copies sessions of a running gateway. How many could be.
    pub fn adopt(&mut self, mechanisms: &[String], sessions: &[SessionRow]) -> usize {
        let now = self.now;
        let engine = &mut self.engine;
        let adopted = sessions.iter().filter(|row| {
            let place = mechanisms.iter().position(|name| *name == row.mechanism);
            let translator = place.and_then(|place| engine.stateful_at(place));
            match (translator, saved(row)) {
                (Some((it, counters)), Some(saved)) => it.restore(&saved, now, counters).is_ok(),
                (_, _) => false,
            }
        });
        adopted.count()
    }

    /// Copies a session into the translator that it is of.
    ///
    /// # Errors
    /// Why it cannot continue.
    pub fn adopt_as(&mut self, translator: Identity, session: &SessionRow) -> Result<(), NotAdopted> {
        let session = saved(session).ok_or(NotAdopted::NotCarried)?;
        let found = self.engine.stateful_of(translator, session.outside.0);
        let (translator, counters) = found.ok_or(NotAdopted::NoTranslator)?;
        translator.restore(&session, self.now, counters)
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    pub(super) const fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Lets a packet through.
    pub fn pass(&mut self, octets: &[u8]) -> Fate {
        let before = self.engine.counters().clone();
        let mut frame = Frame::with_capacity(octets.len().max(2_048) + 512);
        frame.fill(octets, Offload::default());
        self.engine.process(std::slice::from_mut(&mut frame), self.now, &mut self.out);
        self.now = self.now + Duration::from_millis(1);
        let mut sent: Vec<Vec<u8>> = Vec::new();
        if frame.verdict.leaves() {
            sent.push(frame.bytes().to_vec());
        }
        sent.extend(self.out.frames().iter().map(|frame| frame.bytes().to_vec()));
        self.out.clear();
        let dropped = match frame.verdict {
            Verdict::Dropped(reason) => Some(reason),
            _ => None,
        };
        Fate {
            counted: grown(&before, self.engine.counters()),
            dropped,
            punted: frame.verdict == Verdict::Punted,
            held: frame.verdict == Verdict::Held,
            sent,
        }
    }
}

/// The counters of mechanisms that grew.
fn grown(before: &Counters, after: &Counters) -> Vec<(String, u64)> {
    let pairs = before.named().zip(after.named());
    let grown = pairs.filter(|((name, _, was), (_, _, is))| is > was && name.contains('.'));
    grown.map(|((name, _, was), (_, _, is))| (name.to_owned(), is - was)).collect()
}

/// The session of a row; `None`: it has no inside host yet, or is of another kind.
fn saved(row: &SessionRow) -> Option<SavedSession> {
    let (protocol, plain) = match row.protocol.as_str() {
        "tcp" => (NatProtocol::Tcp, None),
        "udp" => (NatProtocol::Udp, Some(SessionState::Udp)),
        "icmp" => (NatProtocol::Icmp, Some(SessionState::Icmp)),
        _ => return None,
    };
    let named = SessionState::ALL.into_iter().find(|state| state.name() == row.state);
    let endpoint = |text: &str| text.parse::<SocketAddr>().ok();
    let inside = inside_endpoint::endpoint(&row.inside)?;
    let v4 = |text: &str| match endpoint(text)? {
        SocketAddr::V4(it) => Some(Endpoint4::new(*it.ip(), it.port())),
        SocketAddr::V6(_) => None,
    };
    Some(SavedSession {
        softwire: row.softwire.as_ref().and_then(|b4| b4.parse().ok()),
        // Whichever of the AFTR's addresses it was.
        local: None,
        protocol,
        state: plain.or(named)?,
        inside: Inside(inside),
        outside: Outside(v4(&row.outside)?),
        remote: v4(&row.remote)?,
        age: Duration::ZERO,
        idle: Duration::ZERO,
        packets: [row.packets_out.unwrap_or(0), row.packets_in.unwrap_or(0)],
        octets: [row.octets_out.unwrap_or(0), row.octets_in.unwrap_or(0)],
        from_outside: false,
    })
}

/// The destination of a packet.
pub(super) fn destination(octets: &[u8]) -> Option<IpAddr> {
    use sixway_dataplane::parse::{Addresses, parse};
    match parse(octets).ok()?.addresses {
        Addresses::V4 { destination, .. } => Some(destination.into()),
        Addresses::V6 { destination, .. } => Some(destination.into()),
    }
}

impl Fate {
    /// Where the first packet that leaves goes.
    pub fn destination(&self) -> Option<IpAddr> {
        destination(self.sent.first()?)
    }

    /// Whether something else than an ICMP error about it leaves.
    pub fn is_forwarded(&self) -> bool {
        self.dropped.is_none() && !self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::packet::{Asked, Kind};
    use crate::trace::words::described;
    use sixway_dataplane::parse::{ACK, SYN};

    fn offline() -> Offline {
        let text = "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8::fe\"\n[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.1\"]\n\
                    [nat64]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8:1::/64\"]\npool = \"main\"\ntranslate_non_global = true\n";
        let config = crate::sample::config(text);
        Offline::new(&config, &Surroundings::default()).unwrap()
    }

    fn packet(from: &str, to: &str, kind: Kind) -> Vec<u8> {
        Asked { from: from.parse().unwrap(), to: to.parse().unwrap(), kind, size: 0 }.octets().unwrap()
    }

    const INSIDE: &str = "2001:db8:1::2";
    const SERVER: &str = "64:ff9b::203.0.113.2";

    #[test]
    fn a_new_flow_is_translated_and_says_what_was_made_for_it() {
        let fate = offline().pass(&packet(INSIDE, SERVER, Kind::Tcp(50_122, 443, SYN)));
        assert!(fate.is_forwarded());
        let names: Vec<&str> = fate.counted.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["nat.bindings.made", "nat.sessions.made", "nat64.v6_to_v4"]);
        assert_eq!(fate.destination(), "203.0.113.2".parse().ok());
        assert!(described(&fate.sent[0]).starts_with("IPv4, TCP, SYN, 40 octets, TTL 63, 192.0.2.1:"));
    }

    #[test]
    fn a_session_of_the_running_gateway_is_met_in_both_directions() {
        let mut offline = offline();
        let row = SessionRow {
            mechanism: "nat64".into(),
            protocol: "tcp".into(),
            inside: format!("[{INSIDE}]:50122"),
            outside: "192.0.2.1:41022".into(),
            remote: "203.0.113.2:443".into(),
            state: "established".into(),
            ..SessionRow::default()
        };
        assert_eq!(
            offline.adopt(&["nat64".into()], &[row.clone(), SessionRow { state: "–".into(), ..row }]),
            1
        );
        let fate = offline.pass(&packet("203.0.113.2", "192.0.2.1", Kind::Tcp(443, 41_022, ACK)));
        assert_eq!(fate.destination(), INSIDE.parse().ok(), "{fate:?}");
        let fate = offline.pass(&packet(INSIDE, SERVER, Kind::Tcp(50_122, 443, ACK)));
        assert!(described(&fate.sent[0]).contains("192.0.2.1:41022 > 203.0.113.2:443"), "{fate:?}");
    }

    #[test]
    fn a_drop_has_its_reason_and_its_answer() {
        let fate = offline().pass(&packet("203.0.113.2", "192.0.2.1", Kind::Udp(53, 4_000)));
        assert_eq!(fate.dropped, Some(DropReason::NoBinding));
        assert!(!fate.is_forwarded() && described(&fate.sent[0]).starts_with("IPv4, ICMP error"), "{fate:?}");
        let fate = offline().pass(&packet("2001:db8:2::2", SERVER, Kind::Udp(53, 4_000)));
        assert_eq!(fate.dropped, Some(DropReason::SourceNotInside));
    }
}
