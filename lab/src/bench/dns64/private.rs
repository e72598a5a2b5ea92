//! 20,000 clients of private DNS that have sent a query and are idle.

use super::super::{Figure, Options, Section, Target};
use crate::dns64::private::{Privacy, idle_clients};
use crate::failure::Result;

/// Clients over each transport.
const CLIENTS: u32 = 20_000;
/// Megabytes of the process with all clients, over TLS and over HTTPS.
const MOST: [(Privacy, f64); 2] = [(Privacy::Tls, 400.0), (Privacy::Https, 800.0)];

/// Measures both transports, each once: a run takes as long as its handshakes.
///
/// # Errors
/// A client is not answered.
pub(super) fn run(options: &Options) -> Result<Section> {
    let clients = if options.quick { CLIENTS / 20 } else { CLIENTS };
    let mut figures = Vec::new();
    for (privacy, most) in MOST {
        options.say(&format!("dns64: {clients} clients over {}", privacy.name()));
        let cost = idle_clients(privacy, clients)?;
        let figure =
            |what: &str, unit, value| Figure::new(format!("{what}, {}", privacy.name()), unit, vec![value]);
        figures.extend([
            figure("clients", "", f64::from(cost.clients)),
            figure("an idle client", "kB", cost.each / 1e3),
            figure("the process with all of them", "MB", cost.memory as f64 / 1e6)
                .to_reach(Target::AtMost(most)),
            figure("closed meanwhile", "", f64::from(cost.closed)).to_reach(Target::AtMost(0.0)),
            figure("handshakes with a first query", "/s", cost.per_second),
        ]);
    }
    Ok(Section {
        title: "Idle clients of private DNS",
        how: format!(
            "{clients} clients, or as many as this process may have files open, each a subscriber of its own, agree on TLS 1.3, ask once, and keep the \
             connection. VmRSS of the gateway's process; the kernel's part of a connection is not in it. Afterwards, one more client must be answered."
        ),
        figures,
        skipped: Vec::new(),
    })
}
