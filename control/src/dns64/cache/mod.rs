//! What upstreams said, by question, in a bounded number of octets.
//!
//! ```text
//!   index: hash → place ──▶ slots: │ answer │ used │ answer │ used │ …     without gaps: the last one fills a hole
//!                                      │       ▲
//!                                      ▼       hand
//!                              key, then records, in one allocation
//! ```
//!
//! Who makes way (CLOCK): a hand goes round the slots; what was used since it last came by is spared once, what was not is removed. A new entry
//! counts as unused, so names that are asked for once, in whatever number, push out each other and not what is asked for often.

mod clock;

pub use clock::Cache;
