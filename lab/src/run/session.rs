//! Stages that are kept while other devices are measured in between: building one takes seconds.

use crate::experiment::Stage;
use crate::failure::{Failure, Result};
use crate::results::Cell;

/// Stages that exist at the same time. Each is a network with a device, which rests while it is not measured.
const KEPT: usize = 4;

/// The stages of a run.
#[derive(Default)]
pub(super) struct Session {
    /// The most recently used one is the last.
    stages: Vec<(String, Box<dyn Stage>)>,
}

impl Session {
    /// The stage of this cell's experiment, series and device; `build` makes it if it is not there.
    pub(super) fn stage(
        &mut self,
        cell: &Cell,
        build: impl FnOnce() -> Result<Box<dyn Stage>>,
    ) -> Result<&mut (dyn Stage + 'static)> {
        let name = name(cell);
        let stage = match self.stages.iter().position(|(of, _)| *of == name) {
            Some(at) => self.stages.remove(at).1,
            None => {
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
    pub(super) fn end(&mut self, cell: &Cell) {
        let name = name(cell);
        self.stages.retain(|(of, _)| *of != name);
    }
}

fn name(cell: &Cell) -> String {
    format!("{}/{}/{}", cell.experiment, cell.series, cell.device)
}
