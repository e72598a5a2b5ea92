//! Sixway with one worker on the device's core: on a TUN device alone, or with the fast path at one of its hooks.

use super::configuration::{FAST, TASKS, configuration};
use crate::device::card::{Card, Realm};
use crate::device::contract::{Device, Running};
use crate::device::needs::Needs;
use crate::device::place::Place;
use crate::device::program::{Program, Reception};
use crate::device::task::{Task, TaskKind};
use crate::failure::{Asking as _, Failure, Result};
use crate::fast_path::{Hook, make_ready_for_xdp};
use crate::gateway::{run_sixway_on, show_on};
use crate::measure::{Cores, ReceivingThreads};
use crate::results::Machine;
use crate::rootless;
use crate::sixway::{sha256, short, sixway};
use std::process::Command;

/// Sixway by one of its data paths.
pub struct Sixway {
    card: Card,
    hook: Option<Hook>,
    /// For how long its worker polls after a packet.
    busy_poll: &'static str,
}

/// On a TUN device.
pub const ON_TUN: Sixway = Sixway {
    card: Card {
        name: "sixway",
        what: "Sixway on a TUN device, one worker",
        realm: Realm::Here,
        needs: Needs::NAMESPACE,
    },
    hook: None,
    busy_poll: "0 s",
};

/// On a TUN device, with a worker that polls after a packet.
pub const POLLING: Sixway = Sixway {
    card: Card { name: "sixway-poll", what: "Sixway on a TUN device, busy_poll of 200 us", ..ON_TUN.card },
    busy_poll: "200 us",
    ..ON_TUN
};

/// With the fast path at tc ingress.
pub const AT_TC: Sixway = Sixway {
    card: Card {
        name: "sixway-tc",
        what: "Sixway, fast path at tc ingress",
        realm: Realm::Here,
        needs: Needs { bpf: true, ..Needs::NAMESPACE },
    },
    hook: Some(Hook::Tc),
    busy_poll: "0 s",
};

/// With the fast path at tc ingress, and a worker that polls after a packet.
pub const AT_TC_POLLING: Sixway = Sixway {
    card: Card {
        name: "sixway-tc-poll",
        what: "Sixway, fast path at tc ingress, busy_poll of 200 us",
        ..AT_TC.card
    },
    busy_poll: "200 us",
    ..AT_TC
};

/// With the fast path in the driver.
pub const AT_XDP: Sixway = Sixway {
    card: Card {
        name: "sixway-xdp",
        what: "Sixway, fast path in the driver (XDP)",
        realm: Realm::Here,
        needs: Needs { bpf: true, programs: &["ip", "ethtool"], ..Needs::NAMESPACE },
    },
    hook: Some(Hook::Xdp),
    busy_poll: "0 s",
};

/// With the fast path in the driver, and a worker that polls after a packet.
pub const AT_XDP_POLLING: Sixway = Sixway {
    card: Card {
        name: "sixway-xdp-poll",
        what: "Sixway, fast path in the driver (XDP), busy_poll of 200 us",
        ..AT_XDP.card
    },
    busy_poll: "200 us",
    ..AT_XDP
};

/// Room for this number of flows: that of an experiment with a million sessions. A device in an experiment has no packet filter that would have to
/// see SYNs.
const FLOWS: u32 = 1 << 20;

impl Device for Sixway {
    fn card(&self) -> &Card {
        &self.card
    }

    fn tasks(&self) -> &[TaskKind] {
        if self.hook.is_some() { FAST } else { TASKS }
    }

    fn cannot_run(&self, here: &Machine) -> Option<String> {
        self.card.needs.lacking(here).or_else(|| sixway().err().map(|failure| failure.to_string()))
    }

    fn version(&self) -> Result<String> {
        let program = sixway()?;
        let said =
            Command::new(&program).arg("--version").output().asking(|| "sixway --version".to_owned())?;
        let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        Ok(format!("{version}, SHA-256 {}", short(&sha256(&program)?)))
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        let configuration = configuration(place, task)? + &self.fast_path(place);
        let program = self.launch(place, configuration, place.core.into_iter().collect())?;
        let is_limited = matches!(task, Task::Nat64(task) if task.sessions.is_some());
        Ok(Box::new(if is_limited { program.with_counters(refused) } else { program }))
    }

    fn has_timers(&self) -> bool {
        true
    }

    /// Workers do not see what the fast path forwards.
    fn has_workers(&self) -> bool {
        self.hook.is_none()
    }

    fn start_workers(&self, place: &Place, task: &Task, cores: &[usize]) -> Result<Box<dyn Running>> {
        Ok(Box::new(self.launch(place, configuration(place, task)?, cores.to_vec())?))
    }
}

impl Sixway {
    /// With a worker for each of these CPUs, one at least.
    fn launch(&self, place: &Place, configuration: String, cores: Vec<usize>) -> Result<Program> {
        let own = format!("workers = {}\nbusy_poll = \"{}\"\n", cores.len().max(1), self.busy_poll);
        let configuration = configuration.replacen("workers = 1\n", &own, 1);
        place.network.forwards(place.host)?;
        // A shared pool has the other ports of this host's address.
        place.network.host(place.host)?.sysctl("ipv4/ip_local_port_range", "1024 4999")?;
        if self.hook == Some(Hook::Xdp) {
            make_ready_for_xdp(&place.network, place.host)?;
        }
        let reception = self.reception(place)?;
        let commands = vec![format!("sixway run -c - <<END\n{configuration}END")];
        let launch = move |place: &Place| run_sixway_on(&place.network, place.host, &configuration);
        Ok(Program::start_on(place, commands, Box::new(launch), cores)?.receiving(reception))
    }

    /// Who does the fast path's work. In the driver it is done before a received packet can be handed to another CPU: by threads on the device's core, or else
    /// by the CPU that sends. At tc it is done where a router's is.
    fn reception(&self, place: &Place) -> Result<Reception> {
        let core = place.core.filter(|_| !rootless::is_inside());
        Ok(match (self.hook, core) {
            (None, _) => Reception::NotCounted,
            (Some(Hook::Tc), _) | (Some(Hook::Xdp), None) => Reception::Interrupts(core),
            (Some(Hook::Xdp), Some(core)) => {
                let links: Vec<_> = place.links().collect();
                let threads =
                    ReceivingThreads::start_as_equals(&place.network, place.host, &links, Some(core))?;
                // GRO is on for the threads, and joins nothing, as at the other ends.
                let host = place.network.host(place.host)?;
                links
                    .iter()
                    .try_for_each(|link| host.ip(&format!("link set {link} gro_max_size 1")).map(drop))?;
                receive_for_tester(place)?;
                Reception::Threads(threads)
            }
        })
    }

    fn fast_path(&self, place: &Place) -> String {
        let Some(hook) = self.hook else { return String::new() };
        let links: Vec<_> = place.links().collect();
        format!(
            "\n[fastpath]\nmode = \"{}\"\ninterfaces = {links:?}\nflows = {FLOWS}\nforward_syn = true\n",
            hook.name()
        )
    }
}

/// Reasons for which a packet gets no session: a table has no room, or none beyond the share of its subscriber.
const FULL: [&str; 5] =
    ["SessionTableFull", "OutsideSessionsFull", "BindingTableFull", "SubscriberLimit", "SubscriberShare"];

/// Packets that were refused because a table was full.
fn refused(place: &Place) -> Result<Vec<(String, u64)>> {
    let mut show = show_on(&place.network, place.host, &["drops", "--json"])?;
    let said = show.output().asking(|| "sixway show drops".to_owned())?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        return Err(Failure::Program("sixway show drops".to_owned(), why));
    }
    Ok(vec![("refused".to_owned(), of_reasons(&said.stdout, &FULL)?)])
}

/// How many packets were dropped for one of these reasons, by `sixway show drops --json`.
fn of_reasons(drops: &[u8], reasons: &[&str]) -> Result<u64> {
    let rows: serde_json::Value = serde_json::from_slice(drops)
        .map_err(|error| Failure::Unexpected(format!("sixway show drops --json: {error}")))?;
    let is_meant = |row: &&serde_json::Value| row["reason"].as_str().is_some_and(|it| reasons.contains(&it));
    let rows = rows.as_array().into_iter().flatten().filter(is_meant);
    Ok(rows.filter_map(|row| row["count"].as_u64()).sum())
}

/// The tester's links receive on its core also what the driver redirects to them, which else the device's core would receive.
fn receive_for_tester(place: &Place) -> Result<()> {
    let Some(tester) = Cores::of_this_machine(true).tester else { return Ok(()) };
    for (host, link) in place.network.received_on(tester) {
        if host != place.host {
            ReceivingThreads::start(&place.network, host, &[&link], Some(tester))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_a_full_table_refuses_are_summed() {
        let row =
            |reason: &str, count: u64| serde_json::json!({ "reason": reason, "count": count, "help": "" });
        let rows = [row("SessionTableFull", 3), row("Truncated", 5), row("SubscriberShare", 4)];
        let said = serde_json::json!(rows).to_string();
        assert_eq!(of_reasons(said.as_bytes(), &FULL).unwrap(), 7);
        assert!(of_reasons(b"not JSON", &FULL).is_err(), "a question that failed is no count");
    }
}
