//! A task and a place as a recipe's environment.

use super::recipe::Environment;
use crate::device::place::Place;
use crate::device::task::Task;
use crate::failure::Result;
use crate::topology::Network;

/// Everything that a recipe may want to know.
///
/// | Name | Value |
/// |---|---|
/// | `TASK` | the task's name with hyphens |
/// | `INSIDE`, `OUTSIDE` | the device's own interfaces |
/// | `INSIDE_ADDRESSES`, `OUTSIDE_ADDRESSES` | addresses with prefix lengths, separated by spaces |
/// | `ROUTES` | a destination and its gateway with a comma between them, separated by spaces |
/// | others | the task's data, each under its name in capitals; lists are separated by spaces |
///
/// # Errors
/// The host's addresses cannot be read.
pub fn environment(place: &Place, task: &Task, there: &[String; 2]) -> Result<Environment> {
    let mut all = data(task);
    all.insert("TASK".to_owned(), task.kind().key());
    let sides = [("INSIDE", &place.inside, &there[0]), ("OUTSIDE", &place.outside, &there[1])];
    for (name, links, own) in sides {
        all.insert(format!("{name}_ADDRESSES"), addresses(&place.network, place.host, links)?);
        all.insert(name.to_owned(), own.clone());
    }
    all.insert("ROUTES".to_owned(), routes(&place.network, place.host)?);
    Ok(all)
}

/// Addresses of these links of a host, with prefix lengths, separated by spaces.
pub(super) fn addresses(network: &Network, host: &str, links: &[&str]) -> Result<String> {
    let said = network.host(host)?.ip("-o address show scope global")?;
    let addresses = said.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        links.contains(words.get(1)?).then(|| words.get(3).copied())?
    });
    Ok(addresses.collect::<Vec<_>>().join(" "))
}

/// Routes of a host: a destination and its gateway with a comma between them, separated by spaces.
pub(super) fn routes(network: &Network, host: &str) -> Result<String> {
    let host = network.host(host)?;
    let mut routes = Vec::new();
    for family in ["-4", "-6"] {
        for line in host.ip(&format!("{family} route show"))?.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let [destination, "via", gateway, ..] = words[..] {
                routes.push(format!("{destination},{gateway}"));
            }
        }
    }
    Ok(routes.join(" "))
}

/// The task's data.
pub(super) fn data(task: &Task) -> Environment {
    let of = |pairs: &[(&str, String)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Environment>()
    };
    let maybe = |value: Option<std::net::Ipv4Addr>| value.map_or_else(String::new, |it| it.to_string());
    match task {
        Task::Forward(_) => Environment::new(),
        Task::Nat64(task) => {
            let mut all = of(&[("PREFIX", task.prefix.clone()), ("POOL", task.pool.join(" "))]);
            all.extend(task.sessions.map(|most| ("STATES".to_owned(), most.to_string())));
            all
        }
        Task::Siit(task) => {
            let hosts: Vec<_> = task.hosts.iter().map(|(four, six)| format!("{four},{six}")).collect();
            let pool = task.dynamic_pool.clone().unwrap_or_default();
            of(&[("PREFIX", task.prefix.clone()), ("HOSTS", hosts.join(" ")), ("POOL", pool)])
        }
        Task::Clat(task) => {
            let hosts: Vec<_> = task.hosts.iter().map(|(four, six)| format!("{four},{six}")).collect();
            of(&[("PREFIX", task.prefix.clone()), ("HOSTS", hosts.join(" "))])
        }
        Task::Nat44(task) => of(&[
            ("NETWORKS", task.inside.join(" ")),
            ("POOL", task.pool.join(" ")),
            ("TUNNEL_END", maybe(task.tunnel_end)),
        ]),
        Task::Nat46(task) => {
            let servers: Vec<_> = task.servers.iter().map(|(four, six)| format!("{four},{six}")).collect();
            of(&[
                ("CLIENTS", task.clients.clone()),
                ("POOL", task.pool.clone()),
                ("PREFIX", task.prefix.clone()),
                ("SERVERS", servers.join(" ")),
            ])
        }
        Task::Dns64(task) => of(&[
            ("LISTEN", task.listen.to_string()),
            ("AUTHORITY", task.authority.to_string()),
            ("PREFIX", task.prefix.clone()),
        ]),
        Task::Relay6to4(task) => of(&[("ADDRESS", task.address.to_string())]),
        Task::Router6to4(task) => of(&[
            ("ADDRESS", task.address.to_string()),
            ("RELAY", task.relay.to_string()),
            ("NAT", maybe(task.nat)),
        ]),
        Task::Host6to4(task) => {
            of(&[("ADDRESS", task.address.to_string()), ("RELAY", task.relay.to_string())])
        }
        Task::Configured(task) => of(&[
            ("LOCAL", task.local.to_string()),
            ("REMOTE", task.remote.to_string()),
            ("PREFIXES", task.prefixes.join(" ")),
        ]),
        Task::IpInIp(task) => of(&[
            ("LOCAL", task.local.to_string()),
            ("REMOTE", task.remote.to_string()),
            ("PREFIXES", task.prefixes.join(" ")),
        ]),
        Task::IsatapRouter(task) => {
            of(&[("ADDRESS", task.address.to_string()), ("PREFIX", task.prefix.clone())])
        }
        Task::IsatapHost(task) => {
            of(&[("ADDRESS", task.address.to_string()), ("ROUTER", task.router.to_string())])
        }
        Task::SiteGateway(task) => of(&[
            ("ADDRESS", task.address.to_string()),
            ("RELAY", task.relay.to_string()),
            ("NETWORKS", task.inside.join(" ")),
            ("NAT", maybe(task.nat)),
        ]),
        Task::Aftr(task) => of(&[
            ("ADDRESS", task.address.to_string()),
            ("CLIENTS", task.clients.clone()),
            ("POOL", task.pool.join(" ")),
        ]),
        Task::B4(task) => of(&[("AFTR", task.aftr.to_string())]),
        Task::Concentrator(task) => of(&[
            ("ADDRESS", task.address.to_string()),
            ("CLIENTS", task.clients.clone()),
            ("POOL", task.pool.join(" ")),
        ]),
        Task::LeasingHost(task) => of(&[
            ("LOCAL", task.local.to_string()),
            ("CONCENTRATOR", task.concentrator.to_string()),
            ("SERVER", task.server.to_string()),
        ]),
        Task::TeredoRelay(task) => {
            of(&[("ADDRESS", task.address.to_string()), ("ADDRESS6", task.address6.to_string())])
        }
        Task::TeredoServer(task) => of(&[("ADDRESS", task.address.to_string())]),
        Task::TeredoClient(task) => of(&[("SERVER", task.server.to_string())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::task::Nat64;

    #[test]
    fn a_recipe_is_told_how_many_states_there_may_be() {
        let task =
            |sessions| Task::Nat64(Nat64 { prefix: "64:ff9b::/96".to_owned(), pool: Vec::new(), sessions });
        assert_eq!(data(&task(Some(40_000)))["STATES"], "40000");
        assert!(!data(&task(None)).contains_key("STATES"));
    }
}
