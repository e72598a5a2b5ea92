//! Which programs to load and where to attach them: from the configuration and the facts about the host.

use crate::config::NatProtocol;
use crate::config::{Config, FAST_PATH_INTERFACES, FastPath as Wanted, FastPathMode, Surroundings, Timeouts};
use crate::fast_path::{Facts, Interface};
use sixway_dataplane::engine::PathErrorJudge;
use sixway_fastpath::rules::{Offer, Surroundings as Around};
use sixway_fastpath::{Mode, Settings, Slots};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The constant inputs of the choice.
#[derive(Clone, Copy)]
pub(super) struct ProgramChoice<'c> {
    pub config: &'c Config,
    pub wanted: &'c Wanted,
    pub seed: [u64; 2],
    /// The slots of translators whose flows the previous process left.
    pub slots: Slots,
    /// Index of the gateway's device.
    pub tun: u32,
}

/// Programs, and the interfaces to attach them to.
#[derive(Clone)]
pub(super) struct ChosenPrograms {
    pub offer: Arc<Offer>,
    /// Checks ICMP errors about the paths of these tunnels.
    pub judge: Rc<PathErrorJudge>,
    pub interfaces: Vec<String>,
}

impl<'c> ProgramChoice<'c> {
    /// The choice, if the configuration has a fast path.
    pub fn of(config: &'c Config, seed: [u64; 2], tun: u32) -> Option<Self> {
        let wanted = config.fast_path.as_ref().filter(|_| config.is_offloaded())?;
        let slots = sixway_fastpath::slots(&wanted.pin_path, &config.gateway.name);
        Some(Self { config, wanted, seed, slots, tun })
    }

    /// Chooses programs and interfaces for these addresses, tunnels and facts.
    ///
    /// # Errors
    /// The configuration makes no engine.
    pub fn choose(&self, now: &Surroundings, facts: &Facts) -> Result<ChosenPrograms, String> {
        let engines = self.config.engines(self.seed, now);
        let engine = engines.first().ok_or("the configuration has no engine")?;
        let offer = Arc::new(Offer::of(engine, &self.around(facts)));
        let judge = Rc::new(PathErrorJudge::new(engine));
        Ok(ChosenPrograms { offer, judge, interfaces: interfaces(self.wanted, &facts.interfaces) })
    }

    fn around(&self, facts: &Facts) -> Around {
        let Self { config, wanted, .. } = self;
        let shortest = |of: fn(&Timeouts) -> Duration| {
            let nat64 = config.nat64.iter().map(|nat64| &nat64.timeouts);
            let all = nat64.chain(config.nat44s().map(|nat44| &nat44.timeouts.with_ports));
            all.map(of).min().map_or(0, ticks)
        };
        Around {
            tun: self.tun,
            tun_mtu: config.tun.mtu,
            ports: facts.ports.clone(),
            not_plain: facts.not_plain.clone(),
            sources4: facts.sources4.clone(),
            sources6: facts.sources6.clone(),
            idle_tcp: shortest(|timeouts| timeouts.shortest(NatProtocol::Tcp, timeouts.tcp_est)),
            idle_udp: shortest(|timeouts| timeouts.shortest(NatProtocol::Udp, timeouts.udp_default)),
            idle_icmp: shortest(|timeouts| timeouts.shortest(NatProtocol::Icmp, timeouts.icmp_default)),
            forwards_syn: wanted.forward_syn,
            absence: ticks(wanted.absence),
            slots: self.slots,
        }
    }

    /// Maximum number of flows.
    pub fn capacity(&self) -> u32 {
        self.wanted.flows(self.config.sessions())
    }

    /// The arguments for loading the programs.
    pub fn settings(&self, chosen: &ChosenPrograms) -> Settings {
        Settings {
            pin_path: self.wanted.pin_path.clone(),
            gateway: self.config.gateway.name.clone(),
            mode: match self.wanted.mode {
                FastPathMode::Auto | FastPathMode::Off => Mode::Auto,
                FastPathMode::Tc => Mode::Tc,
                FastPathMode::Xdp => Mode::Xdp,
            },
            clsact: false,
            capacity: self.capacity(),
            interfaces: chosen.interfaces.clone(),
            rules: chosen.offer.rules.clone(),
        }
    }
}

/// Whether an interface is one of those configured.
pub(super) fn wants(wanted: &Wanted, interface: &Interface) -> bool {
    wanted.interfaces.is_empty() || wanted.interfaces.contains(&interface.name)
}

/// The interfaces that programs may be attached to, by name.
pub(super) fn usable(wanted: &Wanted, there: &[Interface]) -> Vec<String> {
    let usable = there.iter().filter(|it| it.refused.is_none() && wants(wanted, it));
    let mut names: Vec<String> = usable.map(|it| it.name.clone()).collect();
    names.sort_unstable();
    names
}

/// The interfaces to attach programs to.
pub(super) fn interfaces(wanted: &Wanted, there: &[Interface]) -> Vec<String> {
    let mut names = usable(wanted, there);
    names.truncate(FAST_PATH_INTERFACES);
    names
}

/// A duration in the programs' ticks; they wrap after 52 days.
fn ticks(time: Duration) -> u32 {
    let ticks = time.as_nanos() >> sixway_fastpath::layout::TICK_SHIFT;
    u32::try_from(ticks).unwrap_or(u32::MAX).min(u32::MAX / 2)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn there(name: &str, refused: Option<&str>) -> Interface {
        Interface { ifindex: 1, name: name.into(), refused: refused.map(Into::into) }
    }

    fn config(keys: &str) -> Config {
        let text = format!("[siit]\nprefix = \"2001:db8:64::/96\"\n[fastpath]\n{keys}\n");
        let parsed =
            Config::parse("f", &text, &Default::default(), &mut |_| Err(std::io::ErrorKind::NotFound.into()));
        parsed.unwrap().0
    }

    /// The wanted state for a section `[fastpath]` with these keys.
    pub(in super::super) fn wanted(keys: &str) -> Wanted {
        config(keys).fast_path.unwrap()
    }

    #[test]
    fn syns_are_forwarded_by_the_programs_if_that_is_configured() {
        for (keys, expected) in [("", false), ("forward_syn = false", false), ("forward_syn = true", true)] {
            let config = config(keys);
            let choice = ProgramChoice::of(&config, [1, 2], 7).unwrap();
            let around = choice.around(&Facts::default());
            assert_eq!((around.forwards_syn, around.tun), (expected, 7), "{keys}");
        }
    }

    #[test]
    fn interfaces_that_must_not_be_used_and_those_that_are_not_meant_are_left_out() {
        let all = [there("eth1", None), there("eth0", None), there("eth2", Some("a part of br0"))];
        assert_eq!(interfaces(&wanted(""), &all), ["eth0", "eth1"]);
        assert_eq!(interfaces(&wanted("interfaces = [\"eth1\", \"eth2\", \"eth9\"]"), &all), ["eth1"]);
        let many: Vec<_> = (10..28).map(|number| there(&format!("port{number}"), None)).collect();
        assert_eq!(interfaces(&wanted(""), &many).len(), FAST_PATH_INTERFACES);
    }
}
