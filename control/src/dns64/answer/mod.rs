//! An upstream's answer to one question: checked strictly, and stored in a form from which clients' answers are copied.

mod accepted_records;
mod allocation;
mod body;
mod bounds;
mod extended_error;
mod kept;
mod kind;
mod part;
mod raw_record;
mod rcode;
pub mod record;
mod rejection;
mod reply;
mod upstream_answer;

pub use accepted_records::LONGEST_CHAIN;
pub(crate) use allocation::allocated;
pub use bounds::Bounds;
pub use extended_error::ExtendedError;
pub use kind::Kind;
pub use part::Part;
pub(crate) use raw_record::RawRecord;
pub use rcode::{NOERROR, NXDOMAIN, REFUSED, SERVFAIL};
pub use record::{Record, rtype};
pub use rejection::Rejection;
pub use upstream_answer::{Answer, Origin};
