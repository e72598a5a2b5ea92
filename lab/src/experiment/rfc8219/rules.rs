//! Scalability by rules: a stateless translator with a number of explicit address mappings (RFC 7757).

use super::topology::{PREFIX, Scene, TRANSLATED, Tester, network};
use crate::device::{Place, Siit, Task};
use crate::experiment::contract::Line;
use crate::failure::Result;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Mappings of the usual series.
pub const RULES: [f64; 3] = [1.0, 100.0, 10_000.0];
/// At most, as many as 10.0.0.0/8 has room for in addition to the rest.
pub const MOST: f64 = 1_000_000.0;

/// The tester's near end: its address, and that which it is mapped to.
const NEAR: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(198, 19, 2, 1), Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2));

/// The near end's mapping behind others, that of no host: a linear search has to examine all of them.
fn mappings(count: u32) -> Vec<(Ipv4Addr, Ipv6Addr)> {
    let other = |number: u32| {
        let four = Ipv4Addr::from_bits((10 << 24) + number);
        (four, Ipv6Addr::from_bits((0x2001_0002_0000_0002 << 64) + u128::from(number)))
    };
    (1..count).map(other).chain([NEAR]).collect()
}

/// Builds the network, and starts the device with this number of mappings.
pub fn scene(line: &Line<'_>, count: u32) -> Result<Scene> {
    let network = Arc::new(network(line.cores)?);
    let place = Place {
        network: Arc::clone(&network),
        host: "device",
        inside: vec!["in0"],
        outside: vec!["out0"],
        core: line.cores.device,
    };
    let task = Siit { prefix: PREFIX.to_owned(), hosts: mappings(count), dynamic_pool: None };
    let running = line.device.start(&place, &Task::Siit(task))?;
    let any = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    Ok(Scene { running, ends: Tester { network, cores: line.cores, target: TRANSLATED.into(), any } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mapping_is_another_and_the_testers_is_the_last() {
        assert_eq!(mappings(1), [NEAR]);
        let all = mappings(10_000);
        assert_eq!((all.len(), all[9_999]), (10_000, NEAR));
        assert_eq!(all[9_998], ("10.0.39.15".parse().unwrap(), "2001:2:0:2::270f".parse().unwrap()));
    }
}
