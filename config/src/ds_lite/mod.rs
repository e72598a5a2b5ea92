//! `[[ds_lite]]`: Dual-Stack Lite (RFC 6333), both of its elements.

mod aftr;
mod b4;
mod section;

pub use aftr::Aftr;
pub use b4::{AftrAt, B4, B4Local, ROUTE_METRIC};
pub(crate) use section::check_together;
pub use section::{DsLite, DsLiteRole};
