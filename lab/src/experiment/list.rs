//! All experiments. A new one is a line here.

use super::contract::Experiment;
use super::gateway_2012::Gateway2012;
use super::mechanisms_2006::Mechanisms2006;
use super::nat64_2014::Nat642014;
use super::overload::Overload;
use super::relay_2013::Relay2013;
use super::rfc8219::Rfc8219;
use super::tester::Tester;
use super::tools::Tools;
use super::tunnel_2012::Tunnel2012;

/// All experiments, in the order in which `run all` measures them.
pub fn all() -> [&'static dyn Experiment; 9] {
    [&Relay2013, &Nat642014, &Tunnel2012, &Gateway2012, &Mechanisms2006, &Rfc8219, &Overload, &Tester, &Tools]
}

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    all().into_iter().find(|experiment| experiment.about().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_experiment_names_devices_that_exist() {
        for experiment in all() {
            let name = experiment.about().name;
            assert!(!experiment.about().tables.is_empty() && !experiment.lineup().is_empty(), "{name}");
            for entry in experiment.lineup() {
                for device in entry.usual {
                    let device = crate::device::find(device).unwrap_or_else(|| panic!("{name}: no {device}"));
                    assert!(device.tasks().contains(&entry.task), "{name}: {}", device.card().name);
                }
            }
        }
    }
}
