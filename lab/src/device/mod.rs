//! Devices under test: each is a file, and a line in [`all`].

mod card;
mod contract;
mod guest;
mod kernel;
mod list;
mod miredo;
mod needs;
mod options;
mod place;
mod program;
mod published;
mod reading;
pub mod remote;
mod resolver;
mod sixway;
mod task;
mod tayga;

pub use card::{Card, Realm};
pub use contract::{Device, Running};
pub use guest::{GUEST_CPU, GUEST_TICKS, GuestKind};
pub use list::{add_remote, all, find};
pub use needs::Needs;
pub use options::DeviceOptions;
pub use place::Place;
pub use reading::{Change, CpuReader, CpuReading, CpuSource, MemoryReading};
pub use task::{
    Aftr, B4, Clat, Concentrator, Configured, Dns64, Forward, Host6to4, IpInIp, IsatapHost, IsatapRouter,
    LeasingHost, Nat44, Nat46, Nat64, Relay6to4, Router6to4, Siit, SiteGateway, Task, TaskKind, TeredoClient,
    TeredoRelay, TeredoServer,
};
