//! A worse path between the routers, asked for on the command line: a limited rate, loss and delay.

use crate::failure::{Failure, Result};
use crate::impair::{ImpairedWire, Impairment, program};
use crate::results::Asked;
use crate::topology::{Network, Shape};
use std::sync::Arc;

/// What the path does to packets, in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BadPath {
    /// Megabits a second of each link of the router in the middle; 0: as they are.
    rate: f64,
    /// The share of packets that is lost.
    loss: f64,
    /// Milliseconds that packets are delayed.
    delay: f64,
}

impl BadPath {
    /// That of `--set rate=100 --set loss=0.01 --set delay=20`.
    ///
    /// # Errors
    /// A value that makes no sense.
    pub fn of(asked: &Asked) -> std::result::Result<Self, String> {
        let one = |key: &str, most: f64| match asked.numbers(key, &[0.0])?[..] {
            [value] if (0.0..=most).contains(&value) => Ok(value),
            _ => Err(format!("--set {key}: not a number from 0 to {most}")),
        };
        Ok(Self { rate: one("rate", 10_000.0)?, loss: one("loss", 0.2)?, delay: one("delay", 1_000.0)? })
    }

    /// Begins it at a host that only forwards, between these devices of its own. It lasts as long as what is returned and the network.
    ///
    /// # Errors
    /// The kernel refuses a queue, or the process does not start.
    pub fn lay(
        asked: &Asked,
        network: &Arc<Network>,
        host: &str,
        devices: &[&str],
    ) -> Result<Option<ImpairedWire>> {
        let Self { rate, loss, delay } = Self::of(asked).map_err(Failure::Unexpected)?;
        if rate > 0.0 {
            let shape = Shape { megabits: rate, ..Shape::FAST_ETHERNET };
            devices.iter().try_for_each(|device| network.shape(host, device, shape))?;
        }
        if (loss, delay) == (0.0, 0.0) {
            return Ok(None);
        }
        let impairment = Impairment { loss, delay, seed: asked.seed, ..Impairment::default() };
        ImpairedWire::start(network, host, devices, (&program()?, impairment)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_as_bad_as_it_was_asked_for() {
        let of = |words: &[(&str, &str)]| {
            let set = words.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            BadPath::of(&Asked { set, ..Asked::default() })
        };
        assert_eq!(of(&[]), Ok(BadPath::default()));
        let path = of(&[("loss", "0.01"), ("delay", "20"), ("rate", "100")]);
        assert_eq!(path, Ok(BadPath { rate: 100.0, loss: 0.01, delay: 20.0 }));
        for (key, value) in [("loss", "0.5"), ("delay", "-1"), ("delay", "1,2"), ("rate", "fast")] {
            assert!(of(&[(key, value)]).is_err_and(|said| said.contains(key)), "{key}={value}");
        }
    }
}
