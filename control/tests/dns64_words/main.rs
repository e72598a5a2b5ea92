//! What upstreams say and what clients are given of it.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod allocations;
mod belief;
mod captures;
mod hostile;
mod serving;
mod synthesis;
mod there_and_back;
mod upstream;
