//! Questions to upstreams that are slow, dead, lying, old or overtaxed, in fake time.

mod abilities;
mod conserved;
mod disbelief;
mod failover;
mod network;
mod trying;
