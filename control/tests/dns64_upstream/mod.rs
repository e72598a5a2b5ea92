//! Questions to upstreams that are slow, dead, lying, old or overtaxed, in fake time.

mod abilities;
mod conserved;
mod failover;
mod network;
mod rejected_replies;
mod trying;
