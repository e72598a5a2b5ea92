//! Proofs that a name, or a type at a name, does not exist (RFC 4035 §5.4, RFC 5155 §8).
//!
//! NSEC and NSEC3 records count when they are signed by the zone in which the name would be; a record of a delegation, or with a DNAME record
//! next to it, says nothing of what is below its owner (RFC 6840 §4.1).

mod denied;
mod nsec;
mod nsec3;
mod proofs;
mod type_bitmap;

pub(super) use denied::{Denied, NoDs};
pub(super) use proofs::Proofs;
