//! `[[router_advertisement]]`: router advertisements on a link (RFC 4861 §6.2).

mod lifetime;
mod names;
mod rows;
mod section;

pub use lifetime::{Lifetime, RouterPreference};
pub(crate) use names::Names;
pub use rows::{AdvertisedPrefix, AdvertisedRoute};
pub use section::{Pref64, RouterAdvertisement};
