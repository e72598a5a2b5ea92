//! Protocols that the gateway speaks, as state machines without sockets or clocks.
//!
//! Messages come in by `handle_…`, with the time; `poll_…` returns what to send and when to poll again. A router on a LAN:
//!
//! ```
//! use sixway_control::Instant;
//! use sixway_control::neighbour_discovery::Received;
//! use sixway_control::router_advert::{AdvertisedPrefix, Heard, Link, RouterAdvert, Settings};
//!
//! let link = Link::Multicast { address: "fe80::1".parse()?, link_layer: Some([2, 0, 0, 0, 0, 1]), mtu: 1500 };
//! let prefixes = vec![AdvertisedPrefix::changing("2002:c000:201:1::/64".parse()?)];
//! let settings = Settings { prefixes, ..Settings::default() };
//! let mut now = Instant::from_secs(1);
//! let mut router = RouterAdvert::new(link, settings, 42, now).expect("good settings");
//!
//! // The daemon's loop: wait for the socket, or until poll_timeout; here time is a number.
//! for _ in 0..3 {
//!     // Something arrived: the ICMPv6 message, with addresses and hop limit from the socket's control messages.
//!     let (source, destination, message) = ("fe80::2".parse()?, "ff02::2".parse()?, [133, 0, 0, 0, 0, 0, 0, 0]);
//!     let received = Received { source, destination, hop_limit: 255, outer_source: None, message: &message };
//!     match router.handle_message(now, &received) {
//!         Ok(Heard::Router(inconsistencies)) => inconsistencies.iter().for_each(|found| println!("warning: {found}")),
//!         Ok(_) => {}
//!         Err(malformed) => println!("discarded: {malformed}"), // the checksum above is wrong
//!     }
//!     // After everything, and whenever the time has come: send what there is to send.
//!     while let Some(sent) = router.poll_transmit(now) {
//!         println!("{} > {}: {} octets of ICMPv6", sent.source, sent.destination, sent.message.len());
//!     }
//!     now = router.poll_timeout().unwrap_or(now);
//! }
//! // The IPv4 address has changed, and with it the site's 6to4 prefix: the old one is deprecated.
//! let prefixes = vec![AdvertisedPrefix::changing("2002:c000:202:1::/64".parse()?)];
//! router.set_prefixes(now, prefixes).expect("good prefixes");
//! router.shut_down(); // then poll as before until router.is_over()
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod b4;
pub mod dhcp4o6;
pub mod dhcpv6_lease;
pub mod dns64;
pub mod isatap_host;
mod neighbour_answer;
pub mod neighbour_discovery;
pub mod option_6rd;
pub mod pcp;
mod random;
pub mod router_advert;
pub mod teredo_client;
pub mod teredo_server;
pub mod tunnel_end;

pub use sixway_dataplane::Instant;
pub use sixway_dataplane::tunnel::address::isatap;
