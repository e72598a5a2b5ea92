//! How long a mechanism takes to end, and to begin again.

use crate::failure::Result;
use std::time::{Duration, Instant};

/// Times of an end and a new beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Until all that belonged to the mechanism had ended.
    pub deletion: Duration,
    /// From the beginning to the first answer.
    pub creation: Duration,
}

impl Renewal {
    /// Of something that is ended and begun again.
    pub fn of<T>(
        mechanism: &mut T,
        end: impl FnOnce(&mut T),
        begin: impl FnOnce(&mut T) -> Result<()>,
    ) -> Result<Self> {
        let start = Instant::now();
        end(mechanism);
        let deletion = start.elapsed();
        let start = Instant::now();
        begin(mechanism)?;
        Ok(Self { deletion, creation: start.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_deletion_and_the_beginning_the_creation() {
        let (short, long) = (Duration::ZERO, Duration::from_millis(30));
        for (end, begin) in [(short, long), (long, short)] {
            let mut order = Vec::new();
            let renewal = Renewal::of(
                &mut order,
                |order| {
                    std::thread::sleep(end);
                    order.push("end");
                },
                |order| {
                    std::thread::sleep(begin);
                    order.push("begin");
                    Ok(())
                },
            )
            .unwrap();
            assert!(renewal.deletion >= end && renewal.creation >= begin, "{renewal:?}");
            assert_eq!(renewal.deletion > renewal.creation, end > begin, "{renewal:?}");
            assert_eq!(order, ["end", "begin"]);
        }
    }
}
