//! The translators that the PCP server controls: by commands to the workers, or in their engines before they run.

use crate::config::Config;
use crate::worker::{Command, ExplicitAnswer, ExplicitRequest, Post, Translator as _};
use sixway_control::pcp::{
    Closed, ControlledNat, Existing, ExistingKind, Filter, Internal, Opened, Refusal, Transport, Wanted,
    WantedPeer,
};
use sixway_dataplane::engine::Engine;
use sixway_dataplane::nat::{
    BoundEndpoint, ExplicitBinding, Inside, Named, NatProtocol, NotBound, RemoteFilter, WantedOutside,
};
use sixway_dataplane::{Instant, WorkerId};
use sixway_wire::{Endpoint4, Endpoint6, Prefix4, Prefix6};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tokio::sync::oneshot;

/// Attempts to release a binding of a busy worker, …
const RELEASES: usize = 5;
/// … and the pause between them.
const PAUSE: Duration = Duration::from_millis(20);

/// The workers.
pub(super) enum Workers<'e> {
    /// They run.
    Running(Vec<Post>),
    /// Their engines at this time, before they run.
    Waiting(&'e mut [Engine], Instant),
}

impl Workers<'_> {
    const fn count(&self) -> usize {
        match self {
            Self::Running(posts) => posts.len(),
            Self::Waiting(engines, _) => engines.len(),
        }
    }

    /// The answer of a worker; `None`: it is busy, or has ended.
    fn ask(&mut self, worker: usize, translator: u16, request: &ExplicitRequest) -> Option<ExplicitAnswer> {
        match self {
            Self::Running(posts) => {
                let (answer, answered) = oneshot::channel();
                let command = Command::Explicit(translator, Box::new(request.clone()), answer);
                posts.get(worker)?.send(command).ok()?;
                answered.blocking_recv().ok()
            }
            Self::Waiting(engines, now) => Some(engines.get_mut(worker)?.explicit(translator, request, *now)),
        }
    }
}

impl Workers<'_> {
    /// Moves the block of a port to this worker, if the other one has enough spare blocks. Before the workers run, the port is one of a restored mapping.
    fn move_block(&mut self, translator: u16, port: u16, [to, from]: [WorkerId; 2]) {
        match self {
            Self::Running(posts) => {
                let (answer, answered) = oneshot::channel();
                let command = Command::GiveWanted(translator, to, port, answer);
                if posts.get(usize::from(from.0)).is_some_and(|post| post.send(command).is_ok()) {
                    // Without the block the host gets another port.
                    let _ = answered.blocking_recv();
                }
            }
            Self::Waiting(engines, _) => {
                let giver = engines.get_mut(usize::from(from.0));
                let nat = giver.and_then(|engine| engine.stateful().nth(translator.into()));
                let Some(moved) = nat.and_then(|nat| nat.give_spare(port, to)) else { return };
                for engine in engines.iter_mut() {
                    if let Some(nat) = engine.stateful().nth(translator.into()) {
                        nat.block_moved(moved);
                    }
                }
            }
        }
    }
}

/// The translators, each with its number and its inside hosts.
pub(super) struct WorkersNat<'e> {
    workers: Workers<'e>,
    nat64: Vec<(u16, Vec<Prefix6>)>,
    nat44: Option<(u16, Vec<Prefix4>)>,
    /// The bindings that are kept for the server. Bounded by its mappings.
    kept: BTreeSet<(Transport, Internal)>,
}

impl fmt::Debug for WorkersNat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkersNat").field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

impl<'e> WorkersNat<'e> {
    /// Those of a configuration: the workers number them in its order.
    pub(super) fn new(config: &Config, workers: Workers<'e>) -> Self {
        let nat64 = config.nat64.iter().zip(0..).map(|(nat64, number)| (number, nat64.inside.clone()));
        let nat64: Vec<_> = nat64.collect();
        let next = nat64.len() as u16;
        let nat44 = config.nat44.as_ref().map(|nat44| (next, nat44.inside.clone()));
        Self { workers, nat44, nat64, kept: BTreeSet::new() }
    }

    /// Releases the bindings that are unknown to the server.
    pub(super) fn close_others(&mut self, is_known: impl Fn(Transport, Internal) -> bool) {
        let others: Vec<_> = self.kept.iter().copied().filter(|it| !is_known(it.0, it.1)).collect();
        for (transport, internal) in others {
            self.close(transport, internal);
        }
    }

    /// The same at the workers, now that they run.
    pub(super) fn running(self, posts: Vec<Post>) -> WorkersNat<'static> {
        WorkersNat { workers: Workers::Running(posts), nat64: self.nat64, nat44: self.nat44, kept: self.kept }
    }

    /// The translator of a host.
    fn translator(&self, host: IpAddr) -> Option<u16> {
        match host {
            IpAddr::V4(host) => {
                let (number, inside) = self.nat44.as_ref()?;
                inside.iter().any(|prefix| prefix.contains(host)).then_some(*number)
            }
            IpAddr::V6(host) => {
                let is_of = |inside: &[Prefix6]| {
                    inside.is_empty() && is_global(host) || inside.iter().any(|prefix| prefix.contains(host))
                };
                self.nat64.iter().find(|(_, inside)| is_of(inside)).map(|(number, _)| *number)
            }
        }
    }

    /// Moves the block of the requested port to the host's worker, if another worker has it.
    fn bring(&mut self, wanted: &Wanted<'_>) {
        let Internal { address: host, .. } = wanted.internal;
        let Some(translator) = self.translator(host).filter(|_| self.workers.count() > 1) else { return };
        if wanted.port == 0 {
            return;
        }
        let mapped = named(wanted.internal).inside.0.address;
        let request = ExplicitRequest::Workers(mapped, wanted.port);
        let Some(ExplicitAnswer::Workers(Some(workers))) = self.workers.ask(0, translator, &request) else {
            return;
        };
        let [to, from] = workers;
        // A binding that exists keeps its port.
        if to != from && self.find(wanted.transport, wanted.internal).is_none() {
            self.workers.move_block(translator, wanted.port, workers);
        }
    }

    /// The answer of the host's worker: the others do not have the host.
    fn ask_owner(&mut self, host: IpAddr, request: &ExplicitRequest) -> Result<ExplicitAnswer, Refusal> {
        let translator = self.translator(host).ok_or(Refusal::NotServed)?;
        for worker in 0..self.workers.count() {
            match self.workers.ask(worker, translator, request) {
                Some(ExplicitAnswer::NotBound(NotBound::OtherWorker) | ExplicitAnswer::Found(None)) => {}
                Some(ExplicitAnswer::Released(None) | ExplicitAnswer::Address(None)) => {}
                Some(ExplicitAnswer::HasStatic(false)) => {}
                Some(ExplicitAnswer::NotBound(reason)) => return Err(refusal(reason)),
                Some(answer) => return Ok(answer),
                None => return Err(Refusal::Full),
            }
        }
        Err(Refusal::NotServed)
    }
}

impl ControlledNat for WorkersNat<'_> {
    fn serves(&self, host: IpAddr) -> bool {
        self.translator(host).is_some()
    }

    fn open(&mut self, wanted: &Wanted<'_>) -> Result<Opened, Refusal> {
        self.bring(wanted);
        let filter = |filter: &Filter| RemoteFilter { remote: filter.remote, port: filter.port };
        let Named { softwire, inside } = named(wanted.internal);
        let binding = ExplicitBinding {
            protocol: protocol(wanted.transport),
            softwire,
            inside,
            wanted: WantedOutside { address: wanted.address, port: wanted.port, exactly: wanted.exactly },
            filters: wanted.filters.iter().map(filter).collect(),
        };
        let request = match wanted.companion {
            true => ExplicitRequest::KeepPair(binding),
            false => ExplicitRequest::Keep(binding),
        };
        match self.ask_owner(wanted.internal.address, &request)? {
            ExplicitAnswer::Bound(BoundEndpoint { outside, is_static, used_for, .. }) => {
                if !is_static {
                    self.kept.insert((wanted.transport, wanted.internal));
                }
                Ok(Opened { external: outside.0, is_static, used_for })
            }
            _ => Err(Refusal::Full),
        }
    }

    fn close(&mut self, transport: Transport, internal: Internal) -> Closed {
        self.kept.remove(&(transport, internal));
        let request = ExplicitRequest::Release(protocol(transport), named(internal));
        for _ in 0..RELEASES {
            match self.ask_owner(internal.address, &request) {
                Ok(ExplicitAnswer::Released(Some(used_for))) => return Closed { used_for },
                // Otherwise it would never be released.
                Err(Refusal::Full) => std::thread::sleep(PAUSE),
                Ok(_) | Err(_) => break,
            }
        }
        Closed::default()
    }

    fn end_host(&mut self, host: IpAddr) {
        let Some(translator) = self.translator(host) else { return };
        let address = named(Internal { address: host, port: 0 }).inside.0.address;
        for worker in 0..self.workers.count() {
            let (mut from, mut refusals) = (Some(0), 0);
            while let Some(place) = from {
                match self.workers.ask(worker, translator, &ExplicitRequest::End(address, place)) {
                    Some(ExplicitAnswer::Ended(next)) => from = next,
                    // It is busy, and its host's sessions would be the next host's.
                    None if refusals < RELEASES => {
                        refusals += 1;
                        std::thread::sleep(PAUSE);
                    }
                    Some(_) | None => break,
                }
            }
        }
    }

    fn find(&mut self, transport: Transport, internal: Internal) -> Option<Existing> {
        let request = ExplicitRequest::Find(protocol(transport), named(internal));
        let Ok(ExplicitAnswer::Found(Some(bound))) = self.ask_owner(internal.address, &request) else {
            return None;
        };
        let kind = match (bound.is_static, bound.is_explicit) {
            (true, _) => ExistingKind::Static,
            (false, true) => ExistingKind::Explicit,
            (false, false) => ExistingKind::Dynamic,
        };
        Some(Existing { external: bound.outside.0, kind })
    }

    fn has_static(&mut self, transport: Transport, host: IpAddr) -> bool {
        let address = named(Internal { address: host, port: 0 }).inside.0.address;
        let request = ExplicitRequest::HasStatic(protocol(transport), address);
        matches!(self.ask_owner(host, &request), Ok(ExplicitAnswer::HasStatic(true)))
    }

    fn peer(&mut self, wanted: &WantedPeer) -> Result<(Endpoint4, u32), Refusal> {
        let outside = WantedOutside { address: wanted.address, port: wanted.port, exactly: true };
        let (protocol, inside) = (protocol(wanted.transport), named(wanted.internal));
        let request = ExplicitRequest::Open(protocol, inside, wanted.remote, outside);
        match self.ask_owner(wanted.internal.address, &request)? {
            ExplicitAnswer::Opened(outside, lives) => Ok((outside.0, lives)),
            _ => Err(Refusal::Full),
        }
    }

    fn external_address(&mut self, host: IpAddr) -> Option<Ipv4Addr> {
        let mapped = named(Internal { address: host, port: 0 }).inside.0.address;
        match self.ask_owner(host, &ExplicitRequest::Address(mapped)) {
            Ok(ExplicitAnswer::Address(address)) => address,
            Ok(_) | Err(_) => None,
        }
    }
}

/// An inside endpoint in the workers' form.
fn named(internal: Internal) -> Named {
    let address = match internal.address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    Named { softwire: None, inside: Inside(Endpoint6::new(address, internal.port)) }
}

const fn protocol(transport: Transport) -> NatProtocol {
    match transport {
        Transport::Tcp => NatProtocol::Tcp,
        Transport::Udp => NatProtocol::Udp,
    }
}

const fn refusal(reason: NotBound) -> Refusal {
    match reason {
        NotBound::OtherWorker | NotBound::NotInside => Refusal::NotServed,
        NotBound::SubscriberLimit => Refusal::SubscriberLimit,
        NotBound::Full => Refusal::Full,
        NotBound::OutsideInUse => Refusal::ExternalTaken,
        NotBound::RemoteRefused => Refusal::RemoteInvalid,
    }
}

/// Whether an address is that of one host, on any link.
const fn is_global(address: Ipv6Addr) -> bool {
    !(address.is_multicast()
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::engines;
    use std::io;
    use std::path::Path;

    const TEXT: &str = r#"
[gateway]
ipv4_address = "192.0.2.254"
ipv6_address = "2001:db8:ffff::1"
[[pool]]
name = "public"
addresses = ["192.0.2.1"]
[[pool]]
name = "b4s"
addresses = ["192.0.2.2"]
[nat44]
inside = ["192.168.0.0/16"]
pool = "public"
[ds_lite]
role = "aftr"
addresses = ["2001:db8:ffff::2"]
clients = ["2001:db8:b4::/48"]
pool = "b4s"
[pcp]
interfaces = ["eth1"]
"#;

    /// RFC 6887 §15: the next host with the address gets none of these. Each host has its own worker.
    #[test]
    fn what_a_host_has_ends_at_its_worker_and_others_keep_theirs() {
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let text = TEXT.replace("[gateway]", "[gateway]\nworkers = 2");
        let config = Config::parse("f", &text, &Default::default(), &mut no_file).unwrap().0;
        let mut engines = engines::engines(&config, [1, 2], [3, 4], &Default::default(), None).unwrap();
        let mut nat = WorkersNat::new(&config, Workers::Waiting(&mut engines, Instant::from_secs(10)));
        let at = |last, port| Internal { address: Ipv4Addr::new(192, 168, 1, last).into(), port };
        for last in 1..=20 {
            let (transport, address, port, companion) = (Transport::Tcp, None, 0, false);
            let (internal, exactly, filters) = (at(last, 80), false, &[][..]);
            let wanted = Wanted { transport, internal, address, port, exactly, companion, filters };
            nat.open(&wanted).unwrap();
            let remote = Endpoint4::new(Ipv4Addr::new(203, 0, 113, 1), 443);
            let transport = Transport::Udp;
            nat.peer(&WantedPeer { transport, internal: at(last, 4_000), remote, address, port }).unwrap();
        }
        for last in (1..=20).step_by(2) {
            nat.end_host(at(last, 0).address);
        }
        for last in 1..=20 {
            let has = nat.find(Transport::Tcp, at(last, 80)).is_some();
            assert_eq!((has, nat.find(Transport::Udp, at(last, 4_000)).is_some()), (has, has), "{last}");
            assert_eq!(has, last % 2 == 0, "{last}");
            nat.close(Transport::Tcp, at(last, 80));
        }
        assert!(nat.kept.is_empty(), "{:?}", nat.kept);
    }

    /// RFC 6887 §11.3: the suggested port SHOULD be assigned, whatever worker has it. A host that suggests many does not exhaust other workers.
    #[test]
    fn a_suggested_port_is_given_although_its_block_is_another_workers_as_long_as_that_has_enough() {
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let text = TEXT.replace("[gateway]", "[gateway]\nworkers = 2");
        let config = Config::parse("f", &text, &Default::default(), &mut no_file).unwrap().0;
        let mut engines = engines::engines(&config, [1, 2], [3, 4], &Default::default(), None).unwrap();
        let mut nat = WorkersNat::new(&config, Workers::Waiting(&mut engines, Instant::from_secs(10)));
        for number in 0..200_u16 {
            let address = Ipv4Addr::new(192, 168, 2, number as u8).into();
            let internal = Internal { address, port: 80 };
            let (transport, port, companion) = (Transport::Tcp, 20_000 + number * 64, number % 2 == 0);
            let wanted =
                Wanted { transport, internal, address: None, port, exactly: false, companion, filters: &[] };
            assert_eq!(nat.open(&wanted).unwrap().external.port, port);
        }
        // A mapping that exists keeps its port, so that no further block moves for it.
        let translator = nat.nat44.as_ref().unwrap().0;
        let owned = |nat: &mut WorkersNat<'_>| {
            let Workers::Waiting(engines, _) = &mut nat.workers else { unreachable!() };
            let nat = engines[0].stateful().nth(translator.into()).unwrap();
            (16..1_024).map(|block| nat.worker_of_block(block * 64).0).collect::<Vec<_>>()
        };
        let before = owned(&mut nat);
        for port in (40_000..50_000).step_by(64) {
            let internal = Internal { address: Ipv4Addr::new(192, 168, 2, 0).into(), port: 80 };
            let (transport, address, exactly, companion) = (Transport::Tcp, None, false, false);
            nat.open(&Wanted { transport, internal, address, port, exactly, companion, filters: &[] })
                .unwrap();
        }
        assert_eq!(owned(&mut nat), before);
        // While they run, a worker keeps half of what it would have.
        let owner = |engine: &mut Engine, port| {
            engine.stateful().nth(translator.into()).unwrap().worker_of_block(port)
        };
        let Workers::Waiting(engines, _) = &mut nat.workers else { unreachable!() };
        let blocks: Vec<u16> = (16..1_024).map(|block| block * 64).collect();
        let of_second =
            |engine: &mut Engine| blocks.iter().filter(|port| owner(engine, **port).0 == 1).count();
        for port in &blocks {
            let second = engines[1].stateful().nth(translator.into()).unwrap();
            second.give_wanted(*port, WorkerId(0));
        }
        let (left, even) = (of_second(&mut engines[1]), blocks.len() / 2);
        assert!((even / 2..=even / 2 + 200).contains(&left), "{left} of {even}");
    }

    /// RFC 6887 §18.1.1: another administrative domain's hosts, which use softwires, are not served; nor do B4s.
    #[test]
    fn neither_b4s_nor_the_hosts_behind_them_are_served() {
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::parse("f", TEXT, &Default::default(), &mut no_file).unwrap().0;
        let nat = WorkersNat::new(&config, Workers::Running(Vec::new()));
        for host in ["2001:db8:b4:100::1", "192.0.0.2", "10.0.0.5", "2001:db8:ffff::2", "192.0.0.1"] {
            assert!(!nat.serves(host.parse().unwrap()), "{host}");
        }
        assert!(nat.serves("192.168.1.2".parse().unwrap()));
    }

    /// Without `inside`, a NAT64 serves all hosts, but not addresses that hosts of several links may have.
    #[test]
    fn without_inside_a_nat64_serves_addresses_of_one_host_each() {
        let text = "[gateway]\nipv4_address = \"192.0.2.254\"\nipv6_address = \"2001:db8:ffff::1\"\n[[pool]]\nname = \"p\"\naddresses = [\"192.0.2.1\"]\n[nat64]\nprefix = \"64:ff9b::/96\"\npool = \"p\"\n[pcp]\ninterfaces = [\"eth1\"]\n";
        let mut no_file = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let config = Config::parse("f", text, &Default::default(), &mut no_file).unwrap().0;
        let nat = WorkersNat::new(&config, Workers::Running(Vec::new()));
        for (host, is_served) in
            [("2001:db8::1", true), ("fd00::1", true), ("fe80::1", false), ("ff02::1", false), ("::1", false)]
        {
            assert_eq!(nat.serves(host.parse().unwrap()), is_served, "{host}");
        }
    }
}
