//! How the translators of a configuration give port blocks, for the event log and for `sixway nat who`.

use crate::config::{Config, InsidePrefix, Pool, Subscribers};
use crate::event_log::PortMapping;

/// In the engines' order; `None`: a translator does not give blocks.
pub(crate) fn port_mappings(config: &Config) -> Vec<Option<PortMapping>> {
    let nat64 =
        config.nat64.iter().map(|it| mapping(&it.name, &it.inside, &it.subscribers, config.pool(&it.pool)));
    let nat44 =
        config.nat44.iter().map(|it| mapping(&it.name, &it.inside, &it.subscribers, config.pool(&it.pool)));
    nat64.chain(nat44).collect()
}

fn mapping<P: InsidePrefix>(
    name: &str,
    inside: &[P],
    subscribers: &Subscribers<P>,
    pool: Option<&Pool>,
) -> Option<PortMapping> {
    let pool = pool?;
    let mapping = subscribers.mapping(inside, Some(pool));
    let block_size = mapping.as_ref().map_or(subscribers.blocks.size, |mapping| mapping.size());
    (block_size > 0).then(|| PortMapping {
        translator: name.into(),
        block_size,
        bits: P::mapped_length(subscribers.prefix_length),
        inside: inside.iter().map(|prefix| prefix.mapped()).collect(),
        pool: pool.addresses.clone(),
        ports: pool.ports.ranges().to_vec(),
        deterministic: mapping.is_some(),
    })
}
