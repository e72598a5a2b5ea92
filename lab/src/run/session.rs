//! Stages that are kept while other devices are measured in between: building one takes seconds.

use crate::experiment::Stage;
use crate::failure::{Failure, Result};
use crate::results::Cell;

/// Stages that exist at the same time. Each is a network with a device, which rests while it is not measured.
const KEPT: usize = 8;

/// The stages of a run.
#[derive(Default)]
pub(super) struct Session {
    /// The most recently used one is the last.
    stages: Vec<(String, Box<dyn Stage>)>,
}

impl Session {
    /// The stage of this cell's experiment, series and device, and of its place on these axes; `build` makes it if it is not there. If `is_alone`, no other
    /// stage exists at the same time: there is one cable to another machine.
    pub(super) fn stage(
        &mut self,
        (cell, axes): (&Cell, &[&str]),
        is_alone: bool,
        build: impl FnOnce() -> Result<Box<dyn Stage>>,
    ) -> Result<&mut (dyn Stage + 'static)> {
        let name = name(cell, axes);
        let stage = match self.stages.iter().position(|(of, _)| *of == name) {
            Some(at) => self.stages.remove(at).1,
            None => {
                if is_alone {
                    self.stages.clear();
                }
                if self.stages.len() == KEPT {
                    self.stages.remove(0);
                }
                build()?
            }
        };
        self.stages.push((name, stage));
        let last = self.stages.last_mut();
        last.map(|(_, stage)| &mut **stage)
            .ok_or_else(|| Failure::Unexpected("a stage was not kept".to_owned()))
    }

    /// Ends the stage of this cell: after a failure another one is built.
    pub(super) fn end(&mut self, (cell, axes): (&Cell, &[&str])) {
        let name = name(cell, axes);
        self.stages.retain(|(of, _)| *of != name);
    }
}

/// The name of the stage of this cell.
pub(super) fn name(cell: &Cell, axes: &[&str]) -> String {
    let mut name = format!("{}/{}/{}", cell.experiment, cell.series, cell.device);
    axes.iter().for_each(|axis| name += &format!("/{axis}={}", cell.at(axis)));
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Sheet;
    use std::collections::BTreeMap;

    struct Nothing;

    impl Stage for Nothing {
        fn measure(&mut self, _: &Cell, _: &mut Sheet) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_network_that_was_built_for_another_point_is_not_taken() {
        let cell = |rules: f64| Cell {
            experiment: "e".to_owned(),
            series: "s".to_owned(),
            device: "d".to_owned(),
            point: BTreeMap::from([("rules".to_owned(), rules)]),
            repeat: 0,
        };
        for (axes, expected) in [(&["rules"][..], 2), (&[], 1)] {
            let (mut session, mut built) = (Session::default(), 0);
            for rules in [1.0, 100.0, 1.0] {
                let build = || {
                    built += 1;
                    Ok(Box::new(Nothing) as Box<dyn Stage>)
                };
                session.stage((&cell(rules), axes), false, build).map(drop).unwrap();
            }
            assert_eq!(built, expected, "{axes:?}");
        }
    }

    #[test]
    fn a_stage_with_a_cable_to_another_machine_is_alone() {
        let mut session = Session::default();
        let cell = |device: &str| Cell {
            experiment: "e".to_owned(),
            series: "s".to_owned(),
            device: device.to_owned(),
            point: BTreeMap::new(),
            repeat: 0,
        };
        for (device, is_alone, expected) in [("a", false, 1), ("b", false, 2), ("c", true, 1), ("c", true, 1)]
        {
            session
                .stage((&cell(device), &[]), is_alone, || Ok(Box::new(Nothing) as Box<dyn Stage>))
                .map(drop)
                .unwrap();
            assert_eq!(session.stages.len(), expected, "{device}");
        }
    }
}
