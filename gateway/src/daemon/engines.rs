//! From the configuration to the workers' engines.

use crate::config::{self, Config};
use sixway_dataplane::engine::{Engine, EngineConfig};
use sixway_dataplane::mechanism::siit::dynamic_pool::DynamicPoolConfig;
use sixway_dataplane::mechanism::siit::{Hairpinning, SiitConfig};
use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::rfc6052::Rfc6052;
use sixway_dataplane::translate::{HeaderByte, Policy, UdpZeroChecksum};
use sixway_dataplane::{Limits, WorkerId};
use sixway_wire::Prefix4;
use std::io::{self, Read};
use std::sync::Arc;

/// An engine for each worker, with tables of their own and the same configuration.
///
/// # Errors
/// What cannot be, with the mechanism's name. The configuration was checked, so that this is a disagreement of ours.
pub(super) fn engines(config: &Config, seed: [u64; 2]) -> Result<Vec<Engine>, String> {
    let workers = config.gateway.workers;
    let siit = config.siit.iter().map(|siit| siit_config(config, siit)).collect::<Result<Vec<_>, _>>()?;
    let limits = Limits { mtu4: config.tun.mtu, mtu6: config.tun.mtu };
    let engine = |worker| {
        let config = EngineConfig {
            own4: config.gateway.ipv4_address,
            own6: config.gateway.ipv6_address,
            limits,
            siit: siit.clone(),
            icmp_errors_per_second: config.gateway.icmp_errors_per_second.div_ceil(workers.into()),
            worker: WorkerId(worker),
            workers,
            seed,
        };
        Engine::new(&config).map_err(|fault| fault.to_string())
    };
    (0..workers).map(engine).collect()
}

/// Randomness that nobody can guess.
///
/// # Errors
/// The kernel gave none.
pub(super) fn seed() -> io::Result<[u64; 2]> {
    let mut octets = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut octets)?;
    let number = u128::from_ne_bytes(octets);
    Ok([number as u64, (number >> 64) as u64])
}

fn siit_config(config: &Config, siit: &config::Siit) -> Result<SiitConfig, String> {
    let named = |what: String| format!("{}: {what}", siit.name);
    let prefix = siit.prefix.map(|prefix| Rfc6052::new(prefix, siit.translation.translate_non_global));
    let eam = EamTable::new(siit.mappings())
        .map_err(|errors| named(errors.first().map_or_else(String::new, ToString::to_string)))?;
    let dynamic_pool = siit.dynamic_pool.map(|prefix| DynamicPoolConfig {
        excluded: excluded(config, siit),
        lifetime: siit.dynamic_lifetime,
        remembered: siit.dynamic_memory.max(siit.dynamic_lifetime),
        ..DynamicPoolConfig::new(prefix)
    });
    Ok(SiitConfig {
        prefix: prefix.transpose().map_err(|error| named(error.to_string()))?,
        eam: Arc::new(eam),
        hairpinning: match siit.hairpinning {
            config::Hairpinning::Intrinsic => Hairpinning::Intrinsic,
            config::Hairpinning::Simple => Hairpinning::Simple,
            config::Hairpinning::Off => Hairpinning::Off,
        },
        icmp_source_pool: siit.icmp_sources().collect(),
        dynamic_pool,
        policy: policy(&siit.translation),
    })
}

/// What the dynamic pool must not give away.
fn excluded(config: &Config, siit: &config::Siit) -> Vec<Prefix4> {
    let own = config.gateway.ipv4_address.map(|address| Prefix4::holding(address, 32));
    let mapped = config.siit.iter().flat_map(config::Siit::mappings).map(|(v4, _)| v4);
    let pools = config.pools.iter().flat_map(|pool| pool.addresses.iter().copied());
    own.into_iter().chain(siit.icmp_source_pool.iter().copied()).chain(mapped).chain(pools).collect()
}

fn policy(translation: &config::Translation) -> Policy {
    let header_byte = |byte| match byte {
        config::HeaderByte::Copy => HeaderByte::Copy,
        config::HeaderByte::Set(value) => HeaderByte::Set(value),
    };
    Policy {
        traffic_class: header_byte(translation.traffic_class),
        tos: header_byte(translation.tos),
        udp_zero_checksum: match translation.udp_zero_checksum {
            config::UdpZeroChecksum::Compute => UdpZeroChecksum::Compute,
            config::UdpZeroChecksum::Drop => UdpZeroChecksum::Drop,
        },
        lowest_ipv6_mtu: translation.lowest_ipv6_mtu,
        clamp_mss: translation.clamp_mss,
    }
}
