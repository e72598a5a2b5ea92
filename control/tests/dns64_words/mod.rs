//! What upstreams say and what clients are given of it.

mod accepted_records;
mod allocations;
mod captures;
mod hostile;
mod serving;
mod synthesis;
mod there_and_back;
mod upstream;
