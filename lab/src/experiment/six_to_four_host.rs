//! Sixway as a 6to4 host, at the far end of what is measured.

use crate::device::{self, Host6to4, Place, Running, Task, TaskKind};
use crate::failure::{Failure, Result};
use crate::packet::six_to_four;

/// Starts it, with the first address of its prefix.
pub fn start(place: &Place, task: Host6to4) -> Result<Box<dyn Running>> {
    let sixway = device::all().into_iter().find(|it| it.tasks().contains(&TaskKind::Host6to4));
    let sixway = sixway.ok_or_else(|| Failure::Unexpected("no device is a 6to4 host".to_owned()))?;
    let running = sixway.start(place, &Task::Host6to4(task))?;
    let host = place.network.host(place.host)?;
    // The gateway may have set it already.
    let address = six_to_four(task.address, 1);
    if !host.ip("-6 address show")?.contains(&address.to_string()) {
        host.ip(&format!("address add {address}/128 dev lo nodad"))?;
    }
    Ok(running)
}
