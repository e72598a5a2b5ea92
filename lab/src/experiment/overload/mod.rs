//! Overload: what a device forwards when more is offered than it can do, and what that does to others (RFC 8219 §10 asks for the first).

mod fairness;
mod findings;
mod heavy;
mod plan;
mod stage;
mod topology;
mod way;

pub use plan::Overload;
