//! A device: the kernel's forwarding behind many rules of its packet filter.

use sixway_lab::device::{
    Card, CpuReading, CpuSource, Device, MemoryReading, Needs, Place, Realm, Running, Task, TaskKind,
};
use sixway_lab::failure::Result;
use sixway_lab::measure::core_time;
use sixway_lab::namespace;
use sixway_lab::results::Machine;
use std::time::Duration;

pub struct Filtered;

const CARD: Card = Card {
    name: "kernel-filtered",
    what: "this kernel's forwarding behind a thousand rules",
    realm: Realm::Here,
    needs: Needs { programs: &["ip", "nft"], ..Needs::NAMESPACE },
};

impl Device for Filtered {
    fn card(&self) -> &Card {
        &CARD
    }

    fn tasks(&self) -> &[TaskKind] {
        &[TaskKind::Forward]
    }

    // Others are not compared with it: it does more than to forward.
    fn is_plain(&self) -> bool {
        false
    }

    fn version(&self) -> Result<String> {
        Ok(format!("Linux {} with nftables", Machine::here().kernel))
    }

    fn start(&self, place: &Place, task: &Task) -> Result<Box<dyn Running>> {
        task.forward(CARD.name)?;
        place.network.forwards(place.host)?;
        let rule = |port: u32| format!("    udp dport {port} drop\n");
        let rules: String = (1..=1_000).map(rule).collect();
        let table = format!(
            "table inet lab {{\n  chain forward {{\n    type filter hook forward priority 0;\n{rules}  }}\n}}\n"
        );
        let file = place.network.file("rules.nft", &table)?;
        let mut nft = namespace::command("nft")?;
        nft.arg("-f").arg(file);
        place.network.host(place.host)?.run(nft, Duration::from_secs(20))?.succeeded()?;
        Ok(Box::new(Filtering { place: place.clone() }))
    }
}

struct Filtering {
    place: Place,
}

impl Running for Filtering {
    // A router remembers no packets, and these rules neither.
    fn restart(&mut self) -> Result<()> {
        self.place.network.host(self.place.host)?.ip("neigh flush all").map(drop)
    }

    fn cpu(&self) -> Result<CpuReading> {
        let spent = core_time(self.place.core)?.interrupts;
        Ok(CpuReading::of(spent, CpuSource::Interrupts))
    }

    fn memory(&self) -> Result<MemoryReading> {
        Ok(MemoryReading::NotMeasurable("the kernel stores nothing for a packet"))
    }

    fn commands(&self) -> Vec<String> {
        vec!["nft -f rules.nft".to_owned()]
    }
}
