//! A DNS64 resolver in fake time, between clients and upstreams that are made up here; answers are decoded by an independent library.

mod allocations;
mod answers;
mod authentic;
mod conserved;
mod crowds;
mod cut;
mod dnssec;
mod exchanged;
mod faults;
mod kept;
mod nat46;
mod patience;
mod reconfigured;
mod rfc2308;
mod rfc6147;
mod rfc7873;
mod rfc8020;
mod rfc8767;
mod rfc8914;
mod shares;
mod verdicts;
mod world;
