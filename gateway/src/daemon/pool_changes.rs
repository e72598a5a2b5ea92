//! Pools that an operator changes while the gateway runs. The workers drain addresses; they are added and removed by a reload of the
//! configuration in force with another list.

use super::drain_log::Drained;
use super::gateway::Gateway;
use super::reload::Wanted;
use crate::admin::{AdminError, Edit, PoolPart, PoolVerb};
use crate::config::{Config, Pool, Sources};
use crate::show::plural;
use crate::view::DrainingRow;
use crate::worker::{Command, Edited, Position};
use sixway_dataplane::nat::Draining;
use std::collections::BTreeMap;
use std::sync::PoisonError;

impl Gateway {
    /// Changes a part of a pool.
    pub(super) async fn change_pool(&self, verb: PoolVerb, part: PoolPart) -> Result<(), AdminError> {
        match verb {
            PoolVerb::Drain | PoolVerb::Undrain => self.drain(&part, verb == PoolVerb::Drain).await,
            PoolVerb::Remove => {
                self.pool_of(&part.pool)?;
                self.must_be_drained(&part).await?;
                self.reloads.ask(Wanted::PoolWithout(part)).await
            }
            PoolVerb::Add => {
                self.pool_of(&part.pool)?;
                self.reloads.ask(Wanted::PoolWith(part)).await
            }
        }
    }

    /// The pool of this name, and the stateful mechanism that gives its addresses.
    fn pool_of(&self, name: &str) -> Result<(u16, &Pool), AdminError> {
        let mut pools = self.facts.translators.iter().enumerate();
        let found = pools.find(|(_, translator)| translator.pool.name == name);
        let Some((mechanism, translator)) = found else {
            let what = format!("no pool named {} is in use", name.escape_debug());
            return Err(AdminError::NotFound(what));
        };
        if translator.is_deterministic {
            let what = format!(
                "pool {name} is of a deterministic NAT: each subscriber's block follows from its list of addresses; change the configuration and reload, which ends the sessions of subscribers whose block becomes another one"
            );
            return Err(AdminError::Conflict(what));
        }
        Ok((mechanism as u16, &translator.pool))
    }

    async fn drain(&self, part: &PoolPart, drains: bool) -> Result<(), AdminError> {
        let (mechanism, pool) = self.pool_of(&part.pool)?;
        let prefix = part.prefix;
        if !pool.addresses.iter().any(|all| all.length() <= prefix.length() && all.overlaps(prefix)) {
            let what = format!("{prefix} is not a part of pool {}", pool.name);
            return Err(AdminError::Conflict(what));
        }
        let drains_noted = self.drains_noted.lock().await;
        if *drains_noted {
            return Err(AdminError::Busy("the gateway is being reloaded; retry".into()));
        }
        let mut draining = self.drained().remove(&pool.name).unwrap_or_else(|| Draining::of(&pool.draining));
        if drains {
            draining.add(prefix)
        } else {
            draining.remove(prefix)
        }
        let most = Draining::MOST;
        if draining.prefixes().len() > most {
            let what =
                format!("pool {} would have more than {most} prefixes that are being drained", pool.name);
            return Err(AdminError::Conflict(what));
        }
        // If a worker does not answer, the others have done it: the caller repeats the request.
        self.note_drained(|drained| drained.insert(pool.name.clone(), draining));
        for worker in 0..self.workers() {
            let edit = Edit::Drain(prefix, drains);
            match self.ask(worker, |answer| Command::Edit(mechanism, edit, answer)).await? {
                Edited::Done | Edited::More | Edited::Absent => {}
                Edited::Refused(what) => return Err(AdminError::Conflict(what)),
            }
        }
        tracing::info!(
            "pool {}: {prefix} {}",
            pool.name,
            if drains { "is being drained" } else { "is in use again" }
        );
        Ok(())
    }

    /// Further drains are refused from here on: the next process gets those made so far.
    pub(super) async fn note_drained_for_reload(&self) {
        *self.drains_noted.lock().await = true;
    }

    /// There is no reload after all.
    pub(super) async fn go_on_draining(&self) {
        *self.drains_noted.lock().await = false;
    }

    /// # Errors
    /// A part of a pool that is to be removed is not drained.
    pub(super) async fn must_be_drained(&self, part: &PoolPart) -> Result<(), AdminError> {
        let PoolPart { pool, prefix } = part;
        let advice = format!("drain it first: sixway pool drain {pool} {prefix}");
        let holds = |row: &&DrainingRow| {
            row.pool == *pool && row.prefix.length() <= prefix.length() && row.prefix.overlaps(*prefix)
        };
        let rows = self.draining_rows().await?;
        let refused = match rows.iter().find(holds) {
            None => format!("{prefix} is not being drained; {advice}"),
            Some(row) if !row.is_empty() => {
                format!(
                    "{} has {}; wait until they have ended, or remove it in the configuration and reload",
                    row.prefix,
                    left(row)
                )
            }
            Some(_) => return Ok(()),
        };
        Err(AdminError::Conflict(refused))
    }

    /// The bindings left at the addresses that are being drained, of all workers together.
    pub(super) async fn draining_rows(&self) -> Result<Vec<DrainingRow>, AdminError> {
        let (mut rows, mut places) = (Vec::<DrainingRow>::new(), BTreeMap::new());
        for worker in 0..self.workers() {
            let mut from = Some(Position::default());
            while let Some(position) = from {
                let (part, next) = self.ask(worker, |answer| Command::Draining(position, answer)).await?;
                for (mechanism, of_worker) in part {
                    let Some(translator) = self.facts.translators.get(usize::from(mechanism)) else {
                        continue;
                    };
                    let (pool, prefix) = (&translator.pool.name, of_worker.prefix);
                    let key = (pool.clone(), prefix.address(), prefix.length());
                    let at = *places.entry(key).or_insert(rows.len());
                    if at == rows.len() {
                        let (mechanism, pool) = (self.mechanism(mechanism), pool.clone());
                        rows.push(DrainingRow {
                            mechanism,
                            pool,
                            prefix,
                            bindings: 0,
                            hosts: 0,
                            portless: 0,
                        });
                    }
                    rows[at].bindings += of_worker.bindings;
                    rows[at].hosts += of_worker.hosts;
                    rows[at].portless += of_worker.portless;
                }
                from = next;
            }
        }
        Ok(rows)
    }

    /// The addresses that are being drained, of pools for which this was changed at run time.
    pub(super) fn drained(&self) -> Drained {
        self.drained.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_drained<T>(&self, change: impl FnOnce(&mut Drained) -> T) {
        change(&mut self.drained.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn left(row: &DrainingRow) -> String {
    let mut text = format!("{} of {}", plural(row.bindings, "binding"), plural(row.hosts, "host"));
    if row.portless > 0 {
        text.push_str(&format!(" and {} without ports", plural(row.portless, "session")));
    }
    text
}

/// Another list of a pool's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relisted {
    /// With this part.
    With(PoolPart),
    /// Without it.
    Without(PoolPart),
}

/// The text of a configuration with the changes made at run time.
///
/// # Errors
/// Why the pool cannot have these addresses.
pub(super) fn amended(
    (config, sources): (&Config, &Sources),
    drained: &Drained,
    relisted: Option<&Relisted>,
) -> Result<Sources, String> {
    if drained.is_empty() && relisted.is_none() {
        return Ok(sources.clone());
    }
    let mut config = config.clone();
    for (name, draining) in drained {
        let pool = config.pools.iter_mut().find(|pool| pool.name == *name);
        pool.into_iter().for_each(|pool| pool.draining = draining.prefixes().to_vec());
    }
    if let Some(relisted) = relisted {
        let (Relisted::With(part) | Relisted::Without(part)) = relisted;
        let pool = config.pools.iter_mut().find(|pool| pool.name == part.pool);
        relist(pool.ok_or_else(|| format!("no pool named {}", part.pool.escape_debug()))?, relisted)?;
    }
    Ok(Sources { text: config.to_string(), ..sources.clone() })
}

fn relist(pool: &mut Pool, relisted: &Relisted) -> Result<(), String> {
    if let Some(interface) = &pool.interface {
        return Err(format!("pool {} has the address of {interface}, and no list of addresses", pool.name));
    }
    match relisted {
        Relisted::With(PoolPart { prefix, .. }) => {
            if pool.addresses.iter().any(|known| known.overlaps(*prefix)) {
                return Err(format!("addresses of {prefix} are in pool {} already", pool.name));
            }
            pool.addresses.push(*prefix);
        }
        Relisted::Without(PoolPart { prefix, .. }) => {
            let without = Draining::of(&[*prefix]);
            pool.addresses = without.rest_of(&pool.addresses);
            pool.draining = without.rest_of(&pool.draining);
            if pool.addresses.is_empty() {
                return Err(format!("pool {} would have no address left", pool.name));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::edits::tests::{gateway, pool, stand_in};
    use super::*;
    use crate::config::HostFacts;

    fn sources(pool: &str) -> (Config, Sources) {
        let text = format!(
            "[gateway]\nipv4_address = \"198.51.100.1\"\n[[pool]]\nname = \"main\"\n{pool}\n\
             [nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"main\"\n"
        );
        let sources = Sources { file: "sixway.toml".into(), text, others: Vec::new() };
        (sources.config(&HostFacts::default()).unwrap().0, sources)
    }

    fn part(prefix: &str) -> PoolPart {
        PoolPart { pool: "main".into(), prefix: prefix.parse().unwrap() }
    }

    /// The addresses and those that are being drained.
    fn lists(sources: &Sources) -> (Vec<String>, Vec<String>) {
        let config = sources.config(&HostFacts::default()).unwrap().0;
        let texts = |list: &[sixway_wire::Prefix4]| list.iter().map(ToString::to_string).collect();
        (texts(&config.pools[0].addresses), texts(&config.pools[0].draining))
    }

    #[test]
    fn the_configuration_in_force_has_what_was_changed_at_run_time_and_else_stays_as_it_was_written() {
        let (config, sources) =
            sources("addresses = [\"192.0.2.0/29\"] # ours\ndraining = [\"192.0.2.0/31\"]");
        let of = (&config, &sources);
        assert_eq!(amended(of, &Drained::new(), None), Ok(sources.clone()));
        let drained: Drained = [("main".to_owned(), Draining::of(&[part("192.0.2.4/30").prefix]))].into();
        let with = amended(of, &drained, Some(&Relisted::With(part("192.0.2.16/28")))).unwrap();
        let listed = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(lists(&with), (listed(&["192.0.2.0/29", "192.0.2.16/28"]), listed(&["192.0.2.4/30"])));
        let without = amended(of, &drained, Some(&Relisted::Without(part("192.0.2.4/30")))).unwrap();
        assert_eq!(lists(&without), (listed(&["192.0.2.0/30"]), listed(&[])));
        let kept = amended(of, &Drained::new(), Some(&Relisted::With(part("192.0.2.16/28")))).unwrap();
        assert_eq!(lists(&kept).1, listed(&["192.0.2.0/31"]), "what the file drains");
    }

    #[tokio::test]
    async fn what_is_drained_is_refused_once_a_reload_has_taken_note_of_it() {
        let (post, mailbox) = crate::worker::mailbox().unwrap();
        stand_in(mailbox, Default::default(), false);
        let gateway = gateway(Some(pool("192.0.2.0/29")), vec![post]);
        let drain = |verb, prefix| gateway.change_pool(verb, part(prefix));
        assert_eq!(drain(PoolVerb::Drain, "192.0.2.0/31").await, Ok(()));
        gateway.note_drained_for_reload().await;
        let noted = gateway.drained();
        for verb in [PoolVerb::Drain, PoolVerb::Undrain] {
            assert!(matches!(drain(verb, "192.0.2.0/30").await, Err(AdminError::Busy(_))));
        }
        assert_eq!(gateway.drained(), noted, "what the reload does not know of is not drained");
        gateway.go_on_draining().await;
        assert_eq!(drain(PoolVerb::Undrain, "192.0.2.0/31").await, Ok(()));
        assert_ne!(gateway.drained(), noted);
    }

    #[test]
    fn a_list_that_no_pool_can_have_is_refused() {
        let (config, sources) = sources("addresses = [\"192.0.2.0/29\"]");
        let refused = |relisted| amended((&config, &sources), &Drained::new(), Some(&relisted)).unwrap_err();
        assert!(refused(Relisted::With(part("192.0.2.4/31"))).contains("already"));
        assert!(refused(Relisted::Without(part("192.0.2.0/24"))).contains("no address left"));
        let other = PoolPart { pool: "other".into(), ..part("192.0.2.16/28") };
        assert!(refused(Relisted::With(other)).contains("no pool named other"));
    }
}
