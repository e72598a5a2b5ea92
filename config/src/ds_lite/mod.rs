//! `[[ds_lite]]`: Dual-Stack Lite (RFC 6333), both of its elements.

mod aftr;
mod b4;
mod role;
mod section;
mod softwire_static;

pub use aftr::Aftr;
pub(crate) use aftr::AftrPools;
pub use b4::{AftrAt, B4, B4Local, ROUTE_METRIC};
pub use role::DsLiteRole;
pub use section::DsLite;
pub(crate) use section::check_together;
pub use softwire_static::SoftwireStatic;
