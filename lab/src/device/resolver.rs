//! DNS64 by other resolvers: unbound, BIND and PowerDNS' recursor, one thread each.

use super::card::{Card, Realm};
use super::contract::{Device, Running};
use super::needs::Needs;
use super::place::Place;
use super::program::Program;
use super::task::{Task, TaskKind};
use crate::dns64::{Asker, Flags, Position, Server};
use crate::failure::{Asking as _, Result};
use crate::interrupt;
use crate::programs;
use std::net::{Ipv6Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

/// A resolver with DNS64.
pub struct Resolver {
    card: Card,
    server: Server,
    /// The option that shows its version.
    version: &'static str,
}

/// NLnet Labs' unbound.
pub const UNBOUND: Resolver = Resolver {
    card: Card {
        name: "unbound",
        what: "unbound, one thread",
        realm: Realm::Here,
        needs: needs(&["unbound"]),
    },
    server: Server::Unbound,
    version: "-V",
};

/// ISC's BIND.
pub const BIND: Resolver = Resolver {
    card: Card { name: "bind", what: "BIND, one thread", realm: Realm::Here, needs: needs(&["named"]) },
    server: Server::Bind,
    version: "-v",
};

/// PowerDNS' recursor.
pub const RECURSOR: Resolver = Resolver {
    card: Card {
        name: "pdns-recursor",
        what: "PowerDNS' recursor, one thread",
        realm: Realm::Here,
        needs: needs(&["pdns_recursor"]),
    },
    server: Server::Recursor,
    version: "--version",
};

const fn needs(programs: &'static [&'static str]) -> Needs {
    Needs { programs, ..Needs::NAMESPACE }
}

impl Device for Resolver {
    fn card(&self) -> &Card {
        &self.card
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Dns64]
    }

    /// Its first line that names a version; some write it to standard error.
    fn version(&self) -> Result<String> {
        let program = programs::require(self.server.program())?;
        let what = || format!("{} {}", program.display(), self.version);
        let said = Command::new(&program).arg(self.version).output().asking(what)?;
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        let line = text.lines().find(|line| line.contains(|digit: char| digit.is_ascii_digit()));
        Ok(line.unwrap_or_default().trim().to_owned())
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let task = task.dns64(self.card.name)?;
        let (server, listen) = (self.server, task.listen);
        let position = Position {
            listen: listen.to_string(),
            authority: task.authority.to_string(),
            prefix: task.prefix.clone(),
        };
        let commands = vec![format!("{} for {} with {}", server.program(), position.listen, position.prefix)];
        let launch = move |place: &Place| {
            let process = server.launch(&place.network, place.host, "", &position)?;
            wait(place, process, listen)?;
            Ok(process)
        };
        Ok(Box::new(Program::start(place, commands, Box::new(launch))?))
    }
}

/// Waits for any answer: its authority need not be there yet.
fn wait(place: &Place, process: u32, listen: Ipv6Addr) -> Result<()> {
    let asker = Asker::open(place.network.host(place.host)?, SocketAddr::new(listen.into(), 53))?;
    interrupt::wait_until(Duration::from_secs(20), "a resolver's first answer", || {
        place.network.with_process(process, |process| process.must_run())??;
        Ok(asker.ask_within("localhost", "A", Flags::default(), Duration::from_millis(300)).is_ok())
    })
}
