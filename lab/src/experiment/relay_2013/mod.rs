//! "6to4 relays under rising load" (Lencse, Répás 2013): one to ten 6to4 hosts send echo requests through one relay to two responders,
//! which answer for every address of their half of a /104.

mod anycast;
mod findings;
mod load;
mod plan;
mod published;
mod puzzle;
mod real_hosts;
mod responders;
mod stage;
mod topology;

pub use plan::Relay2013;
