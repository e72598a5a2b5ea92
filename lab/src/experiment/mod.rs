//! Experiments, most of them published papers replayed: each is a folder, and a line in [`all`].

mod calibration;
mod contract;
mod gateway_2012;
mod list;
mod live;
mod measured;
mod mechanisms_2006;
mod minimal;
mod nat64_2014;
mod overload;
mod peers;
mod relay_2013;
mod rfc8219;
mod series;
mod several;
mod sheet;
mod six_to_four_host;
pub mod tester;
mod three_routers;
mod tools;
mod tunnel_2012;

pub use contract::{Entry, Experiment, Line, Stage};
pub use gateway_2012::Gateway2012;
pub use list::{all, find};
pub use mechanisms_2006::Mechanisms2006;
pub use nat64_2014::Nat642014;
pub use overload::Overload;
pub use relay_2013::Relay2013;
pub use rfc8219::Rfc8219;
pub use sheet::Sheet;
pub use tools::Tools;
pub use tunnel_2012::Tunnel2012;
