//! A domain name.

/// A domain name in wire form (RFC 1035 §3.1), without compression, in lower case, its root label included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wire(pub Box<[u8]>);
