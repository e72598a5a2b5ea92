//! Router advertisements (RFC 4861 §6.2), on a LAN and over ISATAP (RFC 5214 §8.2), with the options of RFC 4191, 8106, 8781 and 8910.
//!
//! A [`RouterAdvert`] is one advertising interface. It is driven with the time and with the messages that arrive, and returns what to send:
//!
//! - [`RouterAdvert::handle_message`] with every neighbour discovery message that arrives;
//! - [`RouterAdvert::poll_transmit`] after each call of anything, and when the time of [`RouterAdvert::poll_timeout`] has come, until it
//!   returns `None`.
//!
//! ```text
//!             new                    shut_down
//!              │                         │
//!              ▼    set_prefixes, …      ▼        goodbyes sent, or none wanted
//!           Running ◀──┐ fast again   Leaving ──────────────────────────────────▶ Over
//!              └───────┘
//! ```
//!
//! **Splitting.** An advertisement that does not fit the link's MTU is sent in up to [`MAX_PARTS`] packets, each with the whole header and
//! some of the options (RFC 4861 §6.2.3); multicast ones follow one another by MIN_DELAY_BETWEEN_RAS, 3 s. Settings that might need more
//! are refused by [`Settings::faults`].

mod answers;
mod check;
mod consistency;
mod contents;
mod interface;
mod prefixes;
mod schedule;
mod settings;

pub use answers::MAX_WAITING;
pub use check::MAX_PARTS;
pub use consistency::{Inconsistency, Parameter};
pub use interface::{Heard, RouterAdvert, RouterAdvertCounters};
pub use prefixes::{MAX_STALE, StalePrefix};
pub use schedule::{
    MAX_INITIAL_RTR_ADVERT_INTERVAL, MAX_INITIAL_RTR_ADVERTISEMENTS, MAX_RA_DELAY_TIME, MIN_DELAY_BETWEEN_RAS,
};
pub use settings::{
    AdvertisedPref64, AdvertisedPrefix, AdvertisedRoute, Link, Setting, Settings, SettingsFault, Solicited,
};
