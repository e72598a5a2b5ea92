//! Answers of upstreams by question, in a bounded number of octets.
//!
//! ```text
//!   index: hash → place ──▶ on probation: │ answer │ used │ answer │ used │ …     without gaps: the last one fills a hole
//!                  │                                 ▲ hand: used ones go to the others, the rest goes
//!                  │
//!                  └──────▶ proven:       │ answer │ used │ answer │ used │ …
//!                                                    ▲ hand: used ones are spared once
//! ```
//!
//! A new entry is on probation. When the cache is full, a hand goes round those on probation as long as they have more than a tenth of the octets:
//! an entry that was used after it was fetched joins the proven ones, another is removed (as S3-FIFO does, Yang et al. 2023). Else the hand of the
//! proven ones moves (CLOCK). So names that are queried once evict each other, at whatever rate they come, and not names that are queried again.

mod clock;
mod name_errors;

pub use clock::Cache;
pub use name_errors::NameErrors;
