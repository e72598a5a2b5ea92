//! The operator's policy: which clients may query, and how records are treated.
//!
//! A query's client and name give a [`Ruling`]; it then judges each A record. Nothing here allocates after [`Policy::new`].

mod clients;
mod compiled;
mod names;
mod not_synthesised;
mod ranges;
mod rules;
mod ruling;

#[cfg(test)]
mod tests;

pub(super) use compiled::Policy;
pub(super) use names::Names;
pub(super) use ruling::{Embedded, Ruling};
#[cfg(test)]
pub(super) use tests::{settings, wire};
