//! Services of the configuration that are reachable from the Internet, and the clients that they answer.

use sixway_dataplane::tunnel::address::embedded::is_public;

use crate::config::Config;

/// A socket that is open to the Internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The section's name.
    pub name: String,
    /// What is open, and to whom it answers.
    pub what: String,
    /// How to restrict it; `None`: it is restricted.
    pub restrict: Option<&'static str>,
}

impl Config {
    /// Teredo's server and relays at public addresses.
    pub fn exposed(&self) -> Vec<Exposed> {
        let server = self.teredo_server.iter().map(|server| Exposed {
            name: "teredo_server".into(),
            what: server.exposes(),
            restrict: (!server.required)
                .then_some("clients with a secret alone qualify with [[teredo_server.client]]"),
        });
        let relays = self.others.teredo_relay.iter();
        let public = relays.filter(|relay| relay.local.found.is_none_or(is_public));
        let relays = public.map(|relay| Exposed {
            name: relay.name.clone(),
            what: relay.exposes(),
            restrict: relay.serves.is_empty().then_some("serves = [\"your prefix\"] restricts it"),
        });
        server.chain(relays).collect()
    }
}
