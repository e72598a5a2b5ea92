//! DNSSEC, without sockets or clocks: is an answer what its zone's owner signed, and which keys are trusted?
//!
//! [`Validate`] is the interface that a resolver uses, and [`Validator`] implements it. [`trust_anchor`] keeps the trust anchors up to date.
//!
//! ```
//! use sixway_dnssec::{Anchor, AnchorKey, CurrentTime, Reply, Security, Validate, Validator, Wire};
//! use std::time::Duration;
//!
//! let root = Anchor { zone: Wire([0].into()), key: AnchorKey::Ds([&[0, 1, 13, 2][..], &[7; 32]].concat().into()) };
//! let mut validator = Validator::new(vec![root], Vec::new());
//! let now = CurrentTime { monotonic: Duration::from_secs(1), wall: 1_800_000_000 };
//! let begun = validator.begin(now, b"\x03www\x07example\0", 1, Reply::default());
//!
//! // The resolver's loop: what the validator must know comes from a cache or from an upstream; here nothing does.
//! while let Some((_, lookup)) = validator.poll_lookup() {
//!     validator.handle_lookup(now, &lookup, None);
//! }
//! let (validation, verdict) = validator.poll_verdict().expect("nothing is waited for");
//! assert_eq!((validation, verdict.security), (begun, Security::Indeterminate));
//! ```

mod anchor;
mod current_time;
mod lookup;
mod name;
mod rdata;
mod reply;
mod security;
pub mod trust_anchor;
mod validate;
mod validation;
mod validator;
mod verdict;
mod wire;

pub use anchor::{Anchor, AnchorKey};
pub use current_time::CurrentTime;
pub use lookup::Lookup;
pub use reply::{Reply, ReplyBuilder, Rrset, Rrsig, Section, Unreadable};
pub use security::Security;
pub use validate::Validate;
pub use validation::Validation;
pub use validator::{MOST_LINKS, Validator};
pub use verdict::Verdict;
pub use wire::Wire;
