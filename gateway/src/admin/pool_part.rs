//! A part of a pool in a request, and the change to it.

use serde::{Deserialize, Serialize};
use sixway_wire::Prefix4;

/// A part of a pool as it is written in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPart {
    /// The pool's name.
    pub pool: String,
    /// `ADDRESS` or `PREFIX/LENGTH`, IPv4.
    pub prefix: String,
}

/// A part of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPart {
    /// The pool's name.
    pub pool: String,
    /// Its addresses.
    pub prefix: Prefix4,
}

/// A change of a part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolVerb {
    /// It becomes a part of the pool, by a reload.
    Add,
    /// It is not a part of the pool any more, by a reload.
    Remove,
    /// No further host gets its addresses.
    Drain,
    /// Hosts get its addresses again.
    Undrain,
}

impl NamedPart {
    /// The part.
    ///
    /// # Errors
    /// What is wrong.
    pub fn part(&self) -> Result<PoolPart, String> {
        let text = &self.prefix;
        let whole = if text.contains('/') { text.clone() } else { format!("{text}/32") };
        let prefix = whole.parse().map_err(|_| {
            format!(
                "prefix {}: not an IPv4 PREFIX/LENGTH; write one such as 192.0.2.4/30",
                text.escape_debug()
            )
        })?;
        Ok(PoolPart { pool: self.pool.clone(), prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_an_address_or_a_prefix_without_host_bits() {
        let part = |prefix: &str| NamedPart { pool: "main".into(), prefix: prefix.into() }.part();
        assert_eq!(part("192.0.2.4").unwrap().prefix.to_string(), "192.0.2.4/32");
        assert_eq!(part("192.0.2.4/30").unwrap().prefix.to_string(), "192.0.2.4/30");
        for wrong in ["", "192.0.2.5/30", "2001:db8::/32", "192.0.2.4/33", "main"] {
            assert!(part(wrong).unwrap_err().contains("192.0.2.4/30"), "{wrong}");
        }
    }
}
