//! The tasks of devices: a task is a row in [`list`], and its data a type.

mod list;
mod softwires;
mod translators;
mod tunnels;

pub use list::{Forward, Task, TaskKind};
pub use softwires::{Aftr, B4, Concentrator, LeasingHost};
pub use translators::{Clat, Dns64, Nat44, Nat46, Nat64, Siit};
pub use tunnels::{
    Configured, Host6to4, IpInIp, IsatapHost, IsatapRouter, Relay6to4, Router6to4, SiteGateway, TeredoClient,
    TeredoRelay, TeredoServer,
};
