//! One client queries 10,000 names a second in a zone that is silent. What does another client lose?

use crate::Interop;
use sixway_lab::dns64::Server;
use sixway_lab::dns64::crowding::{Crowded, Crowding};
use sixway_lab::failure::{Failure, Result};
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "ten_thousand_dead_names_a_second_cost_another_client_one_query_in_a_hundred_at_most",
        &["sixway"],
        ours,
    ),
    Interop::new("unbound_is_measured_with_dead_names_too", &["unbound"], || peer(Server::Unbound)),
    Interop::new("bind_is_measured_with_dead_names_too", &["named"], || peer(Server::Bind)),
    Interop::new("pdns_recursor_is_measured_with_dead_names_too", &["pdns_recursor"], || {
        peer(Server::Recursor)
    }),
];

/// Alone and together with the other client in turn, in one run.
fn ours() -> Result<()> {
    let crowding = Crowding::start(Server::Sixway)?;
    for round in 0..2 {
        let crowded = crowding.round(Duration::from_secs(1), Duration::from_secs(4))?;
        println!("round {round}: {crowded:?}");
        if crowded.alone.loss() > 1.0 || crowded.cost() > 1.0 {
            return Err(Failure::Unexpected(format!("round {round}: {crowded:?}")));
        }
    }
    Ok(())
}

/// The benchmark compares them; here they must serve at all, and be under the same load.
fn peer(server: Server) -> Result<()> {
    let crowding = Crowding::start(server)?;
    let crowded: Crowded = crowding.round(Duration::from_secs(1), Duration::from_secs(1))?;
    println!("{}: {crowded:?}", server.name());
    let served = crowded.alone.loss() <= 1.0 && crowded.together.asked > 0 && crowded.tries > 0.0;
    if served { Ok(()) } else { Err(Failure::Unexpected(format!("{}: {crowded:?}", server.name()))) }
}
