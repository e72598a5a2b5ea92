//! The effect of another configuration on the sessions of a running gateway: they are copied into an engine made from it, as a
//! reload does.

use crate::config::{Config, Surroundings};
use crate::trace::Offline;
use crate::view::SessionRow;
use serde_json::Value;
use sixway_dataplane::mechanism::identity::Identity;
use sixway_dataplane::nat::NotAdopted;

/// Sessions that continue or end.
pub struct Effect {
    engine: Option<Offline>,
    translators: Vec<(String, Identity)>,
    continued: u64,
    ended: Vec<(NotAdopted, u64)>,
}

impl Effect {
    /// Of a new configuration on sessions of a gateway that runs with another, as `GET /v1/config` writes it.
    ///
    /// # Errors
    /// The new configuration makes no engine.
    pub fn of(running: &Value, config: &Config, now: &Surroundings) -> Result<Self, String> {
        let nat44 = running["nat44"]["name"].as_str().map(|name| (name.to_owned(), Identity::of_nat44()));
        let realms = running["realm"].as_array().into_iter().flatten().filter_map(|section| {
            let name = section["name"].as_str()?;
            Some((name.to_owned(), Identity::of_realm(name)))
        });
        let translators = running["nat64"].as_array().into_iter().flatten().filter_map(|section| {
            let prefix = section["prefix"].as_str()?.parse().ok()?;
            Some((section["name"].as_str()?.to_owned(), Identity::of_nat64(prefix)))
        });
        // Of several AFTRs, the outside address tells which.
        let aftrs = running["ds_lite"].as_array().into_iter().flatten().filter_map(|section| {
            let name = section["name"].as_str().filter(|_| section["role"] == "aftr")?;
            Some((name.to_owned(), Identity::of_ds_lite()))
        });
        let engine = config.needs_device().then(|| Offline::new(config, now)).transpose()?;
        Ok(Self {
            engine,
            translators: translators.chain(nat44).chain(realms).chain(aftrs).collect(),
            continued: 0,
            ended: Vec::new(),
        })
    }

    /// Takes these sessions into account.
    pub fn add(&mut self, sessions: &[SessionRow]) {
        for session in sessions {
            let translator = self.translators.iter().find(|(name, _)| *name == session.mechanism);
            let adopted = match (&mut self.engine, translator) {
                (Some(engine), Some((_, translator))) => engine.adopt_as(*translator, session),
                (_, _) => Err(NotAdopted::NoTranslator),
            };
            match adopted {
                Ok(()) => self.continued += 1,
                Err(why) => match self.ended.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, count)) => *count += 1,
                    None => self.ended.push((why, 1)),
                },
            }
        }
    }

    /// Sessions that continue.
    pub fn continued(&self) -> u64 {
        self.continued
    }

    /// Sessions that end, by their reason.
    pub fn ended(&self) -> &[(NotAdopted, u64)] {
        &self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pool: &str) -> Config {
        crate::sample::config(&format!(
            "[gateway]\nipv4_address = \"198.51.100.1\"\nipv6_address = \"2001:db8::fe\"\n[[pool]]\nname = \"main\"\naddresses = [\"{pool}\"]\n\
             [nat64]\nprefix = \"64:ff9b::/96\"\ninside = [\"2001:db8:1::/64\"]\npool = \"main\"\ntranslate_non_global = true\n"
        ))
    }

    #[test]
    fn sessions_of_nat44_continue_with_its_pool() {
        let config = |pool: &str| {
            crate::sample::config(&format!(
                "[gateway]\nipv4_address = \"198.51.100.1\"\n[[pool]]\nname = \"main\"\naddresses = [\"{pool}\"]\n\
                 [nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"main\"\n"
            ))
        };
        let running = serde_json::to_value(config("192.0.2.1")).unwrap();
        let session = || {
            let inside = "10.0.0.1:5000".into();
            SessionRow { mechanism: "nat44".into(), inside, ..session("192.0.2.1:5000") }
        };
        let now = Surroundings::default();
        let mut same = Effect::of(&running, &config("192.0.2.0/28"), &now).unwrap();
        same.add(&[session()]);
        assert_eq!((same.continued(), same.ended()), (1, &[][..]));
        let mut other = Effect::of(&running, &config("192.0.2.16/28"), &now).unwrap();
        other.add(&[session()]);
        assert_eq!(other.ended(), [(NotAdopted::PortNotGiven, 1)]);
    }

    #[test]
    fn sessions_of_an_aftr_continue_with_other_limits() {
        let config = |limit: u32, pool: &str| {
            crate::sample::config(&format!(
                "[gateway]\nipv4_address = \"198.51.100.1\"\n[[pool]]\nname = \"main\"\naddresses = [\"{pool}\"]\n\
                 [ds_lite]\nrole = \"aftr\"\naddresses = [\"2001:db8:af::1\"]\nclients = [\"2001:db8::/44\"]\npool = \"main\"\n\
                 max_sessions_per_subscriber = {limit}\n"
            ))
        };
        let running = serde_json::to_value(config(4_096, "192.0.2.1")).unwrap();
        let session = |b4: &str| SessionRow {
            mechanism: "ds_lite".into(),
            softwire: Some(b4.into()),
            inside: "192.168.1.2:5000".into(),
            ..session("192.0.2.1:5000")
        };
        let now = Surroundings::default();
        let mut same = Effect::of(&running, &config(2_048, "192.0.2.0/28"), &now).unwrap();
        same.add(&[session("2001:db8:1::2")]);
        assert_eq!((same.continued(), same.ended()), (1, &[][..]));
        // The same inside address behind another B4.
        same.add(&[SessionRow { outside: "192.0.2.1:5001".into(), ..session("2001:db8:2::2") }]);
        assert_eq!((same.continued(), same.ended()), (2, &[][..]));
        let mut other = Effect::of(&running, &config(2_048, "192.0.2.16/28"), &now).unwrap();
        other.add(&[session("2001:db8:1::2")]);
        assert_eq!(other.ended(), [(NotAdopted::PortNotGiven, 1)]);
    }

    fn session(outside: &str) -> SessionRow {
        SessionRow {
            mechanism: "nat64".into(),
            protocol: "udp".into(),
            inside: "[2001:db8:1::2]:5000".into(),
            outside: outside.into(),
            remote: "203.0.113.2:53".into(),
            state: "open".into(),
            ..SessionRow::default()
        }
    }

    #[test]
    fn sessions_end_whose_address_leaves_the_pool_or_whose_translator_goes() {
        let running = serde_json::to_value(config("192.0.2.1")).unwrap();
        let now = Surroundings::default();
        let mut same = Effect::of(&running, &config("192.0.2.0/28"), &now).unwrap();
        same.add(&[session("192.0.2.1:5000")]);
        assert_eq!((same.continued(), same.ended()), (1, &[][..]));
        let mut other = Effect::of(&running, &config("192.0.2.16/28"), &now).unwrap();
        other.add(&[session("192.0.2.1:5000"), session("192.0.2.1:5001")]);
        assert_eq!((other.continued(), other.ended()), (0, &[(NotAdopted::PortNotGiven, 2)][..]));
        let mut gone = Effect::of(&Value::Null, &config("192.0.2.1"), &now).unwrap();
        gone.add(&[session("192.0.2.1:5000")]);
        assert_eq!(gone.ended(), [(NotAdopted::NoTranslator, 1)]);
    }
}
