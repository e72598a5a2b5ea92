//! Sixway's configuration for a task.

use crate::device::task::{Task, TaskKind};
use crate::failure::{Failure, Result};

/// Tasks that [`configuration`] has an answer for.
pub const TASKS: &[TaskKind] = &[TaskKind::Relay6to4];

/// The configuration for a task on one worker.
///
/// # Errors
/// Sixway does not play it: the kernel forwards.
pub fn configuration(task: &Task) -> Result<String> {
    match task {
        Task::Relay6to4(relay) => Ok(format!(
            "[tun]\nname = \"sixway0\"\n\n[six_to_four]\nrole = \"relay\"\naddress = \"{}\"\n\n{GATEWAY}",
            relay.address
        )),
        Task::Forward(_) => Err(Failure::Unexpected("sixway cannot be a plain forwarder".to_owned())),
    }
}

const GATEWAY: &str = "[gateway]
workers = 1
ipv4_address = \"192.0.2.254\"
ipv6_address = \"2001:db8::fe\"
";
