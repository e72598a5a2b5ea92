//! What upstreams say and what clients are given of it.

mod allocations;
mod belief;
mod captures;
mod hostile;
mod serving;
mod synthesis;
mod there_and_back;
mod upstream;
