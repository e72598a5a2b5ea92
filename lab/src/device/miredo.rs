//! Teredo by miredo: client, server and relay.

use super::card::{Card, Realm};
use super::contract::{Device, Running};
use super::needs::Needs;
use super::place::Place;
use super::program::Program;
use super::task::{Task, TaskKind};
use crate::failure::{Asking as _, Failure, Result};
use crate::programs;
use crate::teredo::{run_miredo, wait_for_relay};
use std::process::Command;

/// miredo.
pub struct Miredo;

const CARD: Card = Card {
    name: "miredo",
    what: "miredo",
    realm: Realm::Here,
    needs: Needs { programs: &["ip", "miredo", "miredo-server"], ..Needs::NAMESPACE },
};

impl Device for Miredo {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::TeredoRelay, TaskKind::TeredoServer, TaskKind::TeredoClient]
    }

    fn version(&self) -> Result<String> {
        let said = Command::new(programs::require("miredo")?).arg("--version").output();
        let said = said.asking(|| "miredo --version".to_owned())?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let (program, configuration) = configuration(task)?;
        place.network.forwards(place.host)?;
        let commands = vec![format!("{program} -f -c - <<END\n{configuration}END")];
        let is_relay = matches!(task, Task::TeredoRelay(_));
        let launch = move |place: &Place| {
            let process = run_miredo(&place.network, place.host, program, &configuration)?;
            if is_relay {
                wait_for_relay(&place.network, place.host)?;
            }
            Ok(process)
        };
        Ok(Box::new(Program::start(place, commands, Box::new(launch))?))
    }
}

fn configuration(task: &Task) -> Result<(&'static str, String)> {
    match task {
        Task::TeredoRelay(task) => {
            let keys = "RelayType relay\nInterfaceName teredo\nBindPort 3545\n";
            Ok(("miredo", format!("{keys}BindAddress {}\n", task.address)))
        }
        Task::TeredoServer(task) => Ok(("miredo-server", format!("ServerBindAddress {}\n", task.address))),
        Task::TeredoClient(task) => {
            Ok(("miredo", format!("InterfaceName teredo\nServerAddress {}\n", task.server)))
        }
        Task::Forward(_)
        | Task::Nat64(_)
        | Task::Siit(_)
        | Task::Clat(_)
        | Task::Nat44(_)
        | Task::Nat46(_)
        | Task::Dns64(_)
        | Task::Relay6to4(_)
        | Task::Router6to4(_)
        | Task::Host6to4(_)
        | Task::Configured(_)
        | Task::IpInIp(_)
        | Task::IsatapRouter(_)
        | Task::IsatapHost(_)
        | Task::SiteGateway(_)
        | Task::Aftr(_)
        | Task::B4(_)
        | Task::Concentrator(_)
        | Task::LeasingHost(_) => {
            Err(Failure::Unexpected(format!("{} cannot be {}", CARD.name, task.kind().text())))
        }
    }
}
