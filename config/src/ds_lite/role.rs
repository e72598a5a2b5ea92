//! The elements of DS-Lite.

use crate::word::words;

words! {
    /// An element of DS-Lite (RFC 6333 §4).
    DsLiteRole {
        /// The provider's: the end of all softwires, with a NAT.
        Aftr = "aftr",
        /// The customer's: one end of a softwire.
        B4 = "b4",
    }
}
