//! What a validator must know.

use crate::wire::Wire;

/// DS or DNSKEY records that are wanted. To be asked with DO=1 and CD=1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lookup {
    /// The owner, in lower case.
    pub name: Wire,
    /// DS (43) or DNSKEY (48).
    pub qtype: u16,
}
