//! A Teredo client (RFC 4380 §5.2, RFC 5991, RFC 6081): it finds out its mapped address and port, forms its IPv6 address, and maintains the mapping.
//!
//! The engine processes packets to and from peers; router advertisements and discovery bubbles are processed here. A [`Client`] is driven like this:
//!
//! ```
//! use sixway_control::Instant;
//! use sixway_control::teredo_client::{Action, Client, Local, ServerAddresses, Settings};
//! use sixway_wire::Endpoint4;
//!
//! let server = ServerAddresses { primary: "192.0.2.1".parse()?, secondary: Some("192.0.2.2".parse()?) };
//! let local = Local { endpoint: Endpoint4::new("10.0.0.5".parse()?, 40_001), subnets: vec!["10.0.0.0/24".parse()?] };
//! let mut now = Instant::from_secs(1);
//! let mut client = Client::new(Settings::new(vec![server]), Some(local), [7; 32]);
//! client.start(now);
//! for _ in 0..4 {
//!     while let Some(action) = client.step(now) {
//!         match action {
//!             Action::Send { from, to, octets } => println!("{from:?} > {to}: {} octets", octets.len()),
//!             Action::Use(state) => println!("ip -6 address replace {}/32", state.address.address()),
//!             Action::Stop(why) => println!("no address: {why}"),
//!             Action::Close(port) => println!("close {port:?}"),
//!             Action::LocalPeer(peer, endpoint) => println!("{peer} is at {endpoint}"),
//!         }
//!     }
//!     // Wait until then, or for a datagram: client.receive(Port::Service, from, payload, now)
//!     now = client.due().unwrap_or(now);
//! }
//! println!("{}", client.status(now));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
mod chance;
mod client;
mod discovery;
mod exchange;
mod interval;
mod qualification;
mod refused;
mod settings;
mod silence;
mod status;
mod why;

pub use action::{Action, ClientState, Port};
pub use client::{Client, DOUBT_INTERVAL, FIRST_PAUSE, LATE, LONGEST_PAUSE, SHORTEST_INTERVAL, SUSPENDED};
pub use discovery::DISCOVERY;
pub use exchange::{ATTEMPTS, TIMEOUT};
pub use refused::Refused;
pub use settings::{Local, Secret, ServerAddresses, Settings, Way};
pub use silence::SILENCE;
pub use status::{NatKind, Phase, PortChoice, Status};
pub use why::Why;
