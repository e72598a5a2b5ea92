//! Data about the running process that a new one needs: its translators, and whether the flows in its fast path can continue.

use super::setup;
use crate::config::Config;
use serde_json::Value;
use sixway_dataplane::mechanism::identity::Identity;
use std::path::PathBuf;

/// The relevant part of its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Predecessor {
    /// Its stateful translators in the order of its configuration; `None`: one of another version's.
    pub translators: Vec<Option<Identity>>,
    device: String,
    /// Where its fast path is pinned; empty: it has none.
    pins: PathBuf,
}

impl Predecessor {
    /// A process with this configuration.
    pub fn with(config: &Config) -> Self {
        let identity = |prefix| Some(Identity::of_nat64(prefix));
        Self {
            translators: config.nat64.iter().map(|it| identity(it.prefix.prefix())).collect(),
            device: config.tun.name.clone(),
            pins: setup::pins(config),
        }
    }

    /// From the response to `GET /v1/config`, which may be of another version.
    pub fn that_says(config: &Value) -> Self {
        let identity = |section: &Value| Some(Identity::of_nat64(section["prefix"].as_str()?.parse().ok()?));
        let text = |section: &str, key: &str| config[section][key].as_str().unwrap_or_default().to_owned();
        let is_off = config["fastpath"]["mode"] == "off";
        Self {
            translators: config["nat64"].as_array().into_iter().flatten().map(identity).collect(),
            device: text("tun", "name"),
            pins: if is_off { PathBuf::new() } else { text("fastpath", "pin_path").into() },
        }
    }

    /// Why the flows in its fast path cannot continue under a process with this configuration; `None`: they can, or there are
    /// none.
    pub fn loses_flows_to(&self, config: &Config) -> Option<String> {
        if self.pins.as_os_str().is_empty() {
            return None;
        }
        let Some(wanted) = config.fast_path.as_ref().filter(|_| config.is_offloaded()) else {
            return Some("the new process has none".into());
        };
        if self.device != config.tun.name {
            return Some(format!("the new process has another device, {}", config.tun.name));
        }
        if self.pins != wanted.pin_path {
            return Some(format!("the new process pins its own in {}", wanted.pin_path.display()));
        }
        sixway_fastpath::unusable(&self.pins, &config.gateway.name, wanted.flows(config.sessions()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixway_wire::Prefix6;

    fn config(text: &str) -> Config {
        let nat64 = "[[nat64]]\nprefix = \"64:ff9b::/96\"\npool = \"a\"\n[[nat64]]\nprefix = \"2001:db8:64::/48\"\npool = \"b\"\n\
                     [[pool]]\nname = \"a\"\naddresses = [\"192.0.2.0/28\"]\n[[pool]]\nname = \"b\"\naddresses = [\"192.0.2.16/28\"]\n";
        let mut no_file = |_: &_| Err(std::io::ErrorKind::NotFound.into());
        Config::parse("f", &format!("{nat64}{text}"), &Default::default(), &mut no_file).unwrap().0
    }

    #[test]
    fn what_a_process_says_of_itself_is_what_its_configuration_is() {
        for text in [
            "",
            "[tun]\nname = \"six0\"\n[fastpath]\npin_path = \"/nowhere\"\n",
            "[fastpath]\nmode = \"off\"\n",
        ] {
            let config = config(text);
            let said = serde_json::to_value(&config).unwrap();
            assert_eq!(Predecessor::that_says(&said), Predecessor::with(&config), "{text}");
        }
        let prefixes = ["64:ff9b::/96", "2001:db8:64::/48"];
        let identities = prefixes.map(|prefix| Some(Identity::of_nat64(prefix.parse::<Prefix6>().unwrap())));
        assert_eq!(Predecessor::with(&config("")).translators, identities);
        assert_eq!(Predecessor::that_says(&Value::Null), Predecessor::default());
    }

    #[test]
    fn flows_go_on_where_the_maps_do() {
        let old = config("[fastpath]\npin_path = \"/nowhere\"\n");
        let loses = |text: &str| Predecessor::with(&old).loses_flows_to(&config(text));
        assert_eq!(loses("[fastpath]\npin_path = \"/nowhere\"\n"), None, "there are no maps");
        assert_eq!(loses("").unwrap(), "the new process has none");
        assert!(loses("[fastpath]\n").unwrap().contains("/run/sixway/bpf"));
        let elsewhere = "[tun]\nname = \"six0\"\n[fastpath]\npin_path = \"/nowhere\"\n";
        assert_eq!(loses(elsewhere).unwrap(), "the new process has another device, six0");
        assert_eq!(
            Predecessor::with(&config("")).loses_flows_to(&config("[fastpath]\n")),
            None,
            "it had none"
        );
    }
}
