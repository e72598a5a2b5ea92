//! A cell: the description of a measurement.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A name of ours: lower case, digits, `-` and `_`.
pub type Name = String;

/// One measurement: an experiment's series with one device at one point, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The experiment, such as `relay-2013`.
    pub experiment: Name,
    /// What belongs into one table or plot, such as `icmp`.
    pub series: Name,
    /// The device under test.
    pub device: Name,
    /// Where on the axes, such as `hosts` = 4.
    pub point: BTreeMap<Name, f64>,
    /// Which repetition, from 0.
    pub repeat: u32,
}

impl Cell {
    /// Its name in results: `relay-2013/icmp/sixway/hosts=4#2`. A run is resumed by it, and its raw files lie in a folder of that name.
    pub fn key(&self) -> String {
        format!("{}#{}", key_of_group(self), self.repeat)
    }

    /// Its place on an axis; 0 if it has none there.
    pub fn at(&self, axis: &str) -> f64 {
        self.point.get(axis).copied().unwrap_or(0.0)
    }
}

/// What all repetitions of a cell have in common: its key without `#repeat`.
pub fn key_of_group(cell: &Cell) -> String {
    let mut key = format!("{}/{}/{}/", cell.experiment, cell.series, cell.device);
    for (index, (axis, value)) in cell.point.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(key, "{comma}{axis}={value}").ok();
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_everything_in_a_fixed_order() {
        let point = BTreeMap::from([("octets".to_owned(), 64.0), ("hosts".to_owned(), 4.0)]);
        let cell = Cell {
            experiment: "relay-2013".to_owned(),
            series: "icmp".to_owned(),
            device: "sixway".to_owned(),
            point,
            repeat: 2,
        };
        assert_eq!(cell.key(), "relay-2013/icmp/sixway/hosts=4,octets=64#2");
        assert_eq!(cell.at("hosts"), 4.0);
    }
}
