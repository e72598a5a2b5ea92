//! Answers of upstreams by question, in a bounded number of octets.
//!
//! ```text
//!   index: hash → place ──▶ slots: │ answer │ used │ answer │ used │ …     without gaps: the last one fills a hole
//!                                      │       ▲
//!                                      ▼       hand
//!                              key, then records, in one allocation
//! ```
//!
//! Eviction (CLOCK): a hand goes round the slots; an entry used since its last visit is spared once, others are removed. A new entry
//! counts as unused, so names that are queried once evict each other, and not names that are queried often.

mod clock;

pub use clock::Cache;
