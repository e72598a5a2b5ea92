//! The command line of `sixway-lab run`.

use crate::device::{DeviceOptions, GuestKind};
use crate::failure::{Failure, Result};
use crate::results::{Asked, Name, shifted};
use crate::rootless;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to run, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Experiments, or "all"; `sixway-lab list` names them
    #[arg(required = true)]
    pub names: Vec<Name>,
    /// Share of the published count or duration, above 0 to 1 [default: 0.02, or what --minutes allows]
    #[arg(long)]
    pub scale: Option<f64>,
    /// How often each cell is measured; a ratio takes three
    #[arg(long, default_value_t = 3)]
    pub repeats: u32,
    /// A time budget: scale and repetitions are fitted to it [default with "all --quick": 14]
    #[arg(long)]
    pub minutes: Option<f64>,
    /// Fewer points and a scale of a tenth, to see that everything runs
    #[arg(long)]
    pub quick: bool,
    /// Devices, separated by commas [default: those of each experiment]
    #[arg(long, value_delimiter = ',')]
    pub devices: Vec<Name>,
    /// A setting of an experiment, such as hosts=1,4,10; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The folder for results; a run that was interrupted there is resumed
    #[arg(long, default_value = "results")]
    pub out: PathBuf,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run in a user namespace also as root: no BPF, and packets are received on the CPU that sends them
    #[arg(long)]
    pub rootless: bool,
    /// Measure at scale 1 although the machine does other work
    #[arg(long)]
    pub noisy: bool,
    /// Do not give device and tester a CPU each
    #[arg(long)]
    pub no_pin: bool,
    /// Of devices
    #[command(flatten)]
    pub device: DeviceOptions,
}

impl Options {
    /// The time budget in minutes: everything quickly has less than fifteen.
    pub fn budget(&self) -> Option<f64> {
        let is_all = self.names.iter().any(|name| name == "all");
        self.minutes.or((self.quick && is_all).then_some(14.0))
    }

    /// The highest scale that a budget may choose, and whether it was asked for.
    pub fn highest_scale(&self, asked: &Asked) -> (f64, bool) {
        match (self.scale, self.quick) {
            (None, false) => (1.0, false),
            (None, true) => (asked.scale, false),
            (Some(_), _) => (asked.scale, true),
        }
    }

    /// What is requested.
    ///
    /// # Errors
    /// A value that makes no sense.
    pub fn asked(&self, all: &[&str]) -> Result<Asked> {
        let wrong = |what: String| Err(Failure::Unexpected(what));
        let is_all = self.names.iter().any(|name| name == "all");
        let experiments: Vec<Name> =
            if is_all { all.iter().map(|name| (*name).to_owned()).collect() } else { self.names.clone() };
        if let Some(unknown) = experiments.iter().find(|name| !all.contains(&name.as_str())) {
            return wrong(format!("no experiment is named {unknown:?}; there are {}", all.join(", ")));
        }
        let scale = self.scale.unwrap_or(0.02);
        let scale = if self.quick { shifted(scale, -1) } else { scale };
        if !(scale > 0.0 && scale <= 1.0) {
            return wrong(format!("--scale {scale}: above 0 and at most 1"));
        }
        if self.minutes.is_some_and(|minutes| !(minutes > 0.0 && minutes.is_finite())) {
            return wrong("--minutes: a number above 0".to_owned());
        }
        const WITH_HOSTS: &str = "tunnel-2012";
        if !self.device.remote_host.is_empty() && !experiments.iter().any(|name| name == WITH_HOSTS) {
            return wrong(format!("--remote-host is for {WITH_HOSTS}, which is not to be run"));
        }
        self.reaches_other_machines()?;
        if self.repeats == 0 {
            return wrong("--repeats 0 measures nothing".to_owned());
        }
        let mut set = BTreeMap::new();
        for setting in &self.set {
            let Some((key, value)) = setting.split_once('=') else {
                return wrong(format!("--set {setting}: it is written KEY=VALUE"));
            };
            set.insert(key.to_owned(), value.to_owned());
        }
        Ok(Asked {
            experiments,
            devices: self.devices.clone(),
            scale,
            repeats: self.repeats,
            quick: self.quick,
            set,
            seed: self.seed,
            pin: !self.no_pin,
            guest: self.device.guest.clone().filter(|kind| kind != GuestKind::USUAL.name()),
            remote: self.device.remote.clone(),
            remote_hosts: self.device.remote_host.clone(),
            rootless: self.rootless || rootless::is_inside(),
        })
    }

    /// That other machines can be reached, and that each device there is to be measured.
    fn reaches_other_machines(&self) -> Result<()> {
        let DeviceOptions { remote, remote_host, .. } = &self.device;
        let options = [("--remote", remote), ("--remote-host", remote_host)];
        let given = options.into_iter().find(|(_, values)| !values.is_empty());
        if let Some((option, _)) = given.filter(|_| self.rootless || rootless::is_inside()) {
            return Err(Failure::Unexpected(format!(
                "{option} needs root: a user namespace has neither this machine's interfaces nor its network"
            )));
        }
        let names = remote.iter().filter_map(|text| text.split_once('=')).map(|(name, _)| name);
        let is_unnamed = |name: &&str| {
            let own = [(*name).to_owned(), format!("{name}-plain")];
            !self.devices.iter().any(|device| own.contains(device))
        };
        match names.into_iter().find(is_unnamed) {
            Some(name) => Err(Failure::Unexpected(format!(
                "--remote {name}=…: no device of it is measured: add --devices {name},{name}-plain"
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::results::Asked;
    use clap::{Args as _, FromArgMatches as _};

    const ALL: [&str; 2] = ["relay-2013", "tunnel-2012"];

    fn asked(line: &str) -> Result<Asked, String> {
        let command = Options::augment_args(clap::Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(line.split(' ')).unwrap();
        Options::from_arg_matches(&matches).unwrap().asked(&ALL).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_remote_device_that_is_not_to_be_measured_is_refused() {
        let said = asked("relay-2013 --remote bsd=script:r.sh").unwrap_err();
        assert_eq!(said, "--remote bsd=…: no device of it is measured: add --devices bsd,bsd-plain");
        assert!(asked("relay-2013 --remote bsd=script:r.sh --devices sixway").is_err());
        for devices in ["bsd", "sixway,bsd-plain"] {
            asked(&format!("relay-2013 --remote bsd=script:r.sh --devices {devices}")).unwrap();
        }
    }

    #[test]
    fn another_machine_needs_root() {
        let why = "a user namespace has neither this machine's interfaces nor its network";
        let said = asked("relay-2013 --rootless --devices bsd --remote bsd=script:r.sh").unwrap_err();
        assert_eq!(said, format!("--remote needs root: {why}"));
        let said = asked("tunnel-2012 --rootless --remote-host client=script:r.sh").unwrap_err();
        assert_eq!(said, format!("--remote-host needs root: {why}"));
        asked("tunnel-2012 --remote-host client=script:r.sh").unwrap();
    }
}
