//! Thousands of clients of private DNS have asked and are idle: what they cost the gateway's process.

use crate::Interop;
use sixway_lab::dns64::private::{Privacy, idle_clients};
use sixway_lab::failure::{Failure, Result};

pub const TESTS: &[Interop] = &[
    Interop::new("idle_clients_over_tls_cost_20_kib_each_at_most", &["sixway", "openssl"], || {
        cost(Privacy::Tls, 20.0)
    })
    .busy(),
    Interop::new("idle_clients_over_https_cost_40_kib_each_at_most", &["sixway", "openssl"], || {
        cost(Privacy::Https, 40.0)
    })
    .busy(),
];

/// Clients; the benchmark has 20,000, which take a minute.
const CLIENTS: u32 = 1_000;

fn cost(privacy: Privacy, most: f64) -> Result<()> {
    let clients = std::env::var("SIXWAY_CLIENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(CLIENTS);
    let cost = idle_clients(privacy, clients)?;
    println!("{privacy:?}: {cost:?}");
    match cost.closed == 0 && cost.each <= most * 1_024.0 {
        true => Ok(()),
        false => Err(Failure::Unexpected(format!("{privacy:?}: {cost:?}"))),
    }
}
