//! One measurement: a tool and our own load, one right after the other, through the same device.

use super::pair::{CLIENT4, CLIENT6, Paced, SERVER4, SERVER6, Seen, ours, theirs};
use crate::device::{Forward, Place, Running, Task};
use crate::experiment::contract::{Line, Stage};
use crate::experiment::measured::note_clock;
use crate::experiment::sheet::Sheet;
use crate::failure::{Failure, Result};
use crate::load::Outcome;
use crate::measure::{Cores, Meter, Reading};
use crate::probe::Tool;
use crate::probe::cpu::pin_thread;
use crate::process::recorded;
use crate::programs::package_version;
use crate::results::{Cell, TesterCost, Unit};
use crate::topology::Network;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Two hosts and the device between them.
pub struct Between {
    // Dropped first.
    device: Box<dyn Running>,
    network: Arc<Network>,
    cores: Cores,
    scale: f64,
}

impl Between {
    /// Builds it.
    pub fn build(line: &Line<'_>) -> Result<Self> {
        let network = Arc::new(network()?);
        let (inside, outside) = (vec!["in0"], vec!["out0"]);
        let place = Place {
            network: Arc::clone(&network),
            host: "gateway",
            inside,
            outside,
            core: line.cores.device,
        };
        let device = line.device.start(&place, &Task::Forward(Forward))?;
        Ok(Self { device, network, cores: line.cores, scale: line.asked.scale })
    }

    /// What a thread on a CPU starts runs there, too.
    fn on_testers_core<T: Send>(&self, work: impl FnOnce(&Network) -> Result<T> + Send) -> Result<T> {
        let (network, core) = (&*self.network, self.cores.tester);
        std::thread::scope(|scope| {
            let working = scope.spawn(move || {
                core.map_or(Ok(()), pin_thread)?;
                work(network)
            });
            working.join().unwrap_or_else(|_| Err(Failure::Unexpected("a tool's thread panicked".to_owned())))
        })
    }

    /// What a load has seen, and what it cost the tester.
    fn metered(&self, load: impl FnOnce() -> Result<Seen>) -> Result<(Seen, TesterCost)> {
        let meter = Meter::begin(self.cores, Reading::Ticks)?;
        let seen = load()?;
        Ok((seen, meter.end(&Outcome::default(), Duration::ZERO)?))
    }
}

/// Whether the tool runs before our own load in this round.
const fn is_tool_first(round: u32) -> bool {
    round.is_multiple_of(2)
}

fn network() -> Result<Network> {
    let network = Network::new(&["client", "gateway", "server"])?;
    network.link(("client", "up0"), ("gateway", "in0"))?;
    network.link(("gateway", "out0"), ("server", "up0"))?;
    for (host, link, address) in [
        ("client", "up0", format!("{CLIENT6}/64")),
        ("client", "up0", format!("{CLIENT4}/24")),
        ("gateway", "in0", "2001:db8:1::1/64".to_owned()),
        ("gateway", "in0", "192.0.2.1/24".to_owned()),
        ("gateway", "out0", "2001:db8:2::1/64".to_owned()),
        ("gateway", "out0", "198.51.100.1/24".to_owned()),
        ("server", "up0", format!("{SERVER6}/64")),
        ("server", "up0", format!("{SERVER4}/24")),
    ] {
        network.address(host, link, &address)?;
    }
    for (host, route) in [
        ("client", "default via 2001:db8:1::1"),
        ("client", "default via 192.0.2.1"),
        ("server", "default via 2001:db8:2::1"),
        ("server", "default via 198.51.100.1"),
    ] {
        network.route(host, route)?;
    }
    network.forwards("gateway")?;
    Ok(network)
}

impl Stage for Between {
    fn measure(&mut self, cell: &Cell, sheet: &mut Sheet) -> Result<()> {
        let number = cell.at("tool");
        let tool = Tool::ALL.into_iter().find(|tool| f64::from(*tool as u8) == number);
        let tool = tool.ok_or_else(|| Failure::Unexpected(format!("no tool has the number {number}")))?;
        if let Some(why) = tool.cannot_run() {
            return Err(Failure::Unexpected(format!("{} cannot run here: {why}", tool.name())));
        }
        let per_second = cell.at("per-s");
        let count = (5_000.0 * self.scale).clamp(20.0, 1_000.0) as u32;
        let paced = Paced { per_second, count };
        let tool_runs = || {
            let (seen, lines) =
                recorded(|| self.metered(|| self.on_testers_core(|network| theirs(tool, network, paced))));
            seen.map(|(seen, cost)| (seen, cost, lines))
        };
        let own_runs = || self.metered(|| ours(tool, &self.network, self.cores.tester, paced));
        // Which of them is the first one alternates: the second finds caches and neighbours as the first left them.
        let ((theirs, their_cost, lines), (ours, cost)) = if is_tool_first(cell.repeat) {
            (tool_runs()?, own_runs()?)
        } else {
            let own = own_runs()?;
            (tool_runs()?, own)
        };
        sheet.tester(cost);
        for (name, seen) in [("tool", theirs), ("own", ours)] {
            sheet.value(&format!("{name}-sent"), seen.sent as f64, Unit::Count);
            sheet.value(&format!("{name}-answered"), seen.count as f64, Unit::Count);
            if let Some(milliseconds) = seen.milliseconds {
                sheet.value(&format!("{name}-response"), milliseconds, Unit::Milliseconds);
            }
        }
        sheet.tester_of(&["tool-response"], &their_cost);
        note_clock(&*self.device, sheet)?;
        let version = |program: &&str| package_version(program).unwrap_or_else(|| (*program).to_owned());
        let versions: BTreeSet<String> = tool.programs().iter().map(version).collect();
        let versions: Vec<String> = versions.into_iter().collect();
        sheet.command(format!("{}: {}", tool.name(), versions.join(", ")));
        // Its folder and the names of its namespaces are other ones in each run.
        let folder = self.network.folder().display().to_string();
        lines.into_iter().for_each(|line| sheet.command(line.replace(&folder, "FOLDER")));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_alternates_by_rounds() {
        assert_eq!([0, 1, 2, 3].map(is_tool_first), [true, false, true, false]);
    }
}
