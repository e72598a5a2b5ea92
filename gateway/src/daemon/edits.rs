//! Changes at run time, passed to the workers that they concern.

use super::gateway::Gateway;
use crate::admin::{AdminError, Edit, Filter, Named};
use crate::config::StaticRules;
use crate::inside_endpoint;
use crate::worker::{Command, Dump, Edited, Position};
use sixway_dataplane::nat::{Inside, Named as InsideName, NatProtocol, StaticBinding};
use sixway_wire::{Prefix4, Prefix6};
use std::time::Duration;

/// How often removal of a binding is retried at a worker that does not answer, and the pause in between.
const TRIES: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(10);

impl Gateway {
    /// Makes a static binding in the first NAT64 whose pool has its outside address.
    pub(super) async fn make_binding(&self, named: &Named) -> Result<(), AdminError> {
        let binding = named.binding().map_err(AdminError::BadRequest)?;
        let _alone = self.edits.lock().await;
        let mut refusal = String::from("no [nat64] or [nat44] is configured");
        for mechanism in self.stateful() {
            if let Err(what) = self.may_bind(mechanism, &binding) {
                refusal = what;
                continue;
            }
            if self.static_inside(mechanism, named).await?.is_some() {
                return Err(AdminError::Conflict(
                    "the outside address and port belong to another binding".into(),
                ));
            }
            // The worker of the host makes the binding; the others send packets there, and do not use its endpoint.
            let mut refused = None;
            for worker in 0..self.workers() {
                refused = match self.edit(worker, mechanism, Edit::Bind(binding)).await {
                    Ok(Edited::Done | Edited::More | Edited::Absent) => None,
                    Ok(Edited::Refused(what)) => Some(AdminError::Conflict(what)),
                    Err(error) => Some(error),
                };
                if refused.is_some() {
                    // A worker that did not answer may still create the binding: undo it there, too.
                    self.take_back(0..=worker, mechanism, binding).await;
                    break;
                }
            }
            match refused {
                None => return Ok(()),
                Some(AdminError::Conflict(what)) => refusal = what,
                Some(error) => return Err(error),
            }
        }
        Err(AdminError::Conflict(refusal))
    }

    /// Whether a static binding can be one of this mechanism, as in a configuration file; else what is wrong.
    fn may_bind(&self, mechanism: u16, binding: &StaticBinding) -> Result<(), String> {
        let Some(translator) = self.facts.translators.get(usize::from(mechanism)) else { return Ok(()) };
        match (binding.softwire, translator.has_softwires) {
            (None, true) => return Err("inside hosts are behind softwires: name the B4 (--softwire)".into()),
            (Some(softwire), false) => {
                return Err(format!("softwire {softwire}: there are none here; leave --softwire out"));
            }
            (Some(_), true) | (None, false) => {}
        }
        let rules = translator.rules();
        let (inside, outside) = (binding.inside.0, binding.outside.0);
        let is_icmp = binding.protocol == NatProtocol::Icmp;
        let of = |endpoint: String| move |what: String| format!("{endpoint} {what}");
        rules.outside(outside).map_err(of(outside.to_string()))?;
        rules.inside(inside).map_err(of(inside_endpoint::text(inside)))?;
        StaticRules::port(inside.port, is_icmp).map_err(of(inside_endpoint::text(inside)))?;
        StaticRules::port(outside.port, is_icmp).map_err(of(outside.to_string()))
    }

    /// Removes a partly created binding. Retries at busy workers until they answer.
    async fn take_back(
        &self,
        workers: std::ops::RangeInclusive<usize>,
        mechanism: u16,
        binding: StaticBinding,
    ) {
        for worker in workers {
            for _ in 0..TRIES {
                match self.edit(worker, mechanism, Edit::Unbind(binding)).await {
                    Ok(Edited::Done | Edited::Absent | Edited::Refused(_)) => break,
                    Ok(Edited::More) => {}
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        }
    }

    /// Ends a binding, static or dynamic, by its outside endpoint.
    pub(super) async fn end_binding(&self, named: &Named) -> Result<(), AdminError> {
        let bad = AdminError::BadRequest;
        let (protocol, outside) = (named.protocol().map_err(bad)?, named.outside().map_err(bad)?);
        let _alone = self.edits.lock().await;
        for mechanism in self.stateful() {
            for worker in 0..self.workers() {
                if self.edit_whole(worker, mechanism, Edit::EndBinding(protocol, outside)).await? {
                    return Ok(());
                }
            }
            let Some((owner, held)) = self.static_inside(mechanism, named).await? else { continue };
            let InsideName { softwire, inside } = held;
            let binding = StaticBinding { protocol, softwire, inside, outside };
            let others = (0..self.workers()).filter(|worker| *worker != owner);
            for worker in std::iter::once(owner).chain(others) {
                self.edit_whole(worker, mechanism, Edit::Unbind(binding)).await?;
            }
            return Ok(());
        }
        Err(AdminError::NotFound("no such binding".into()))
    }

    /// Ends a session.
    pub(super) async fn end_session(&self, named: &Named) -> Result<(), AdminError> {
        let bad = AdminError::BadRequest;
        let edit = match named.portless() {
            Some(ends) => {
                let (protocol, inside, remote) = ends.map_err(bad)?;
                Edit::EndPortless(protocol, inside, remote)
            }
            None => {
                let protocol = named.protocol().map_err(bad)?;
                Edit::EndSession(protocol, named.inside_name().map_err(bad)?, named.remote().map_err(bad)?)
            }
        };
        let host = match edit {
            Edit::EndSession(_, named, _) => Some(named.softwire.unwrap_or(named.inside.0.address)),
            Edit::EndPortless(_, inside, _) => Some(inside.to_ipv6_mapped()),
            Edit::Bind(_) | Edit::Unbind(_) | Edit::EndBinding(..) | Edit::Drain(..) => None,
        };
        let inside = host.map(|host| Prefix6::holding(host, 128));
        for mechanism in self.of_inside(named.mechanism.as_deref(), inside)? {
            for worker in 0..self.workers() {
                if self.edit_whole(worker, mechanism, edit).await? {
                    return Ok(());
                }
            }
        }
        Err(AdminError::NotFound("no such session".into()))
    }

    /// The stateful mechanisms, or the one of this name. Without a name, an inside host or prefix must not be of several.
    pub(super) fn of_inside(
        &self,
        name: Option<&str>,
        inside: Option<Prefix6>,
    ) -> Result<Vec<u16>, AdminError> {
        let all = self.stateful();
        if let Some(name) = name {
            let named: Vec<u16> = all.filter(|mechanism| self.mechanism(*mechanism) == name).collect();
            let why = || AdminError::NotFound(format!("no translator is called {}", name.escape_debug()));
            return if named.is_empty() { Err(why()) } else { Ok(named) };
        }
        let has = |mechanism: &u16| {
            let translator = self.facts.translators.get(usize::from(*mechanism));
            let hosts = translator.and_then(|it| it.inside4.as_ref()).into_iter().flatten();
            let mut hosts =
                hosts.map(|prefix| Prefix6::holding(prefix.address().to_ipv6_mapped(), prefix.length() + 96));
            inside.is_some_and(|inside| hosts.any(|prefix| prefix.overlaps(inside)))
        };
        let owners: Vec<String> =
            self.stateful().filter(has).map(|mechanism| self.mechanism(mechanism)).collect();
        match &owners[..] {
            [_, _, ..] => {
                let names = owners.join(", ");
                Err(AdminError::BadRequest(format!("{names} have such inside hosts: name one (--mechanism)")))
            }
            [_] | [] => Ok(all.collect()),
        }
    }

    async fn edit(&self, worker: usize, mechanism: u16, edit: Edit) -> Result<Edited, AdminError> {
        self.ask(worker, |answer| Command::Edit(mechanism, edit, answer)).await
    }

    /// Repeats a change until it is done; whether there was anything to change.
    pub(super) async fn edit_whole(
        &self,
        worker: usize,
        mechanism: u16,
        edit: Edit,
    ) -> Result<bool, AdminError> {
        loop {
            match self.edit(worker, mechanism, edit).await? {
                Edited::Done => return Ok(true),
                Edited::Absent => return Ok(false),
                Edited::More => {}
                Edited::Refused(what) => return Err(AdminError::Conflict(what)),
            }
        }
    }

    /// The inside endpoint of a static binding, and the worker that has it.
    async fn static_inside(
        &self,
        mechanism: u16,
        named: &Named,
    ) -> Result<Option<(usize, InsideName)>, AdminError> {
        let bad = AdminError::BadRequest;
        let (protocol, outside) = (named.protocol().map_err(bad)?, named.outside().map_err(bad)?.0);
        let filter = Filter {
            outside: Some((Prefix4::holding(outside.address, 32), Some(outside.port))),
            protocol: crate::admin::protocol_number(protocol.name()),
            ..Filter::default()
        };
        for worker in 0..self.workers() {
            let (filter, from) = (filter.clone(), Position { mechanism, slot: 0 });
            let page = self
                .ask(worker, |answer| {
                    Command::Bindings(Dump { filter, from, limit: 1, parts: None, rows: Vec::new(), answer })
                })
                .await?;
            let found = page.rows.first().filter(|row| row.mechanism == mechanism && row.kind == "static");
            if let Some(row) = found {
                return Ok(Some((worker, InsideName { softwire: row.softwire, inside: Inside(row.inside) })));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
pub(in crate::daemon) mod tests {
    use super::super::facts::{Facts, Mechanism, Translator};
    use super::*;
    use crate::config::{AlarmThresholds, Pool, Ports};
    use crate::worker::{DumpPage, Mailbox, Post, mailbox};
    use sixway_dataplane::mechanism::table::Kind;
    use std::sync::{Arc, Mutex};

    /// The changes that a worker got, in order.
    pub(in crate::daemon) type Told = Arc<Mutex<Vec<Edit>>>;

    /// A worker for tests: executes each change, and does not answer the first one if it is busy.
    pub(in crate::daemon) fn stand_in(mailbox: Mailbox, told: Told, mut busy: bool) {
        std::thread::spawn(move || {
            while let Some(command) = mailbox.next() {
                match command {
                    Command::Edit(_, edit, answer) => {
                        told.lock().unwrap().push(edit);
                        if !std::mem::take(&mut busy) {
                            let _ = answer.send(Edited::Done);
                        }
                    }
                    Command::Bindings(dump) => {
                        let _ = dump.answer.send(DumpPage { rows: Vec::new(), next: None });
                    }
                    _ => {}
                }
            }
        });
    }

    /// A gateway with a NAT64 for tests.
    pub(in crate::daemon) fn gateway(pool: Option<Pool>, posts: Vec<Post>) -> Gateway {
        let nat64 = Mechanism { name: "nat64".into(), serves: String::new(), kind: Kind::Nat64, pool: None };
        let translator = |pool| Translator {
            prefix: None,
            has_softwires: false,
            inside4: None,
            pool,
            is_deterministic: false,
        };
        let facts = Facts {
            name: "test".into(),
            device: None,
            mechanisms: vec![nat64],
            translators: pool.map(translator).into_iter().collect(),
            metrics: None,
            advertised: Vec::new(),
            named_remotes: Vec::new(),
            b4s: Vec::new(),
            without_fast_path: None,
            config: serde_json::Value::Null,
            config_text: String::new(),
        };
        Gateway::new(facts, posts, None)
    }

    fn named(outside: &str) -> Named {
        Named {
            protocol: "tcp".into(),
            inside: Some("[2001:db8::1]:80".into()),
            outside: Some(outside.into()),
            ..Named::default()
        }
    }

    /// A pool for tests.
    pub(in crate::daemon) fn pool(addresses: &str) -> Pool {
        Pool {
            name: "main".into(),
            addresses: vec![addresses.parse().unwrap()],
            interface: None,
            ports: Ports::parse("1024-65535").unwrap(),
            shared: false,
            proxy_arp: false,
            draining: Vec::new(),
            alarm: AlarmThresholds::default(),
            divided: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_binding_to_a_port_that_the_host_keeps_is_refused() {
        let pool = Pool {
            interface: Some("eth0".into()),
            ports: Ports::parse("61000-65535").unwrap(),
            shared: true,
            ..pool("192.0.2.1/32")
        };
        let (post, mailbox) = mailbox().unwrap();
        stand_in(mailbox, Told::default(), false);
        let gateway = gateway(Some(pool), vec![post]);
        let said = "192.0.2.1:80 is outside the ports of the shared pool main (61000-65535); write a port in this range";
        let refused = gateway.make_binding(&named("192.0.2.1:80")).await;
        assert_eq!(refused, Err(AdminError::Conflict(said.into())));
        assert_eq!(gateway.make_binding(&named("192.0.2.1:61080")).await, Ok(()));
    }

    #[tokio::test]
    async fn a_busy_worker_leaves_no_half_made_binding_behind() {
        let told: Vec<Told> = (0..3).map(|_| Told::default()).collect();
        let mut posts = Vec::new();
        for (number, told) in told.iter().enumerate() {
            let (post, mailbox) = mailbox().unwrap();
            posts.push(post);
            stand_in(mailbox, Arc::clone(told), number == 1);
        }
        let gateway = gateway(None, posts);
        let named = named("192.0.2.1:80");
        assert!(matches!(gateway.make_binding(&named).await, Err(AdminError::Busy(_))));
        let binding = named.binding().unwrap();
        let both = vec![Edit::Bind(binding), Edit::Unbind(binding)];
        let heard: Vec<Vec<Edit>> = told.iter().map(|told| told.lock().unwrap().clone()).collect();
        assert_eq!(heard, [both.clone(), both, Vec::new()]);
        assert_eq!(gateway.make_binding(&named).await, Ok(()));
    }
}
