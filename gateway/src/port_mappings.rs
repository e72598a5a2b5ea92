//! How the translators of a configuration allocate port blocks, for the event log and for `sixway nat who`.

use crate::config::{Config, InsidePrefix, Pool, Subscribers};
use crate::event_log::PortMapping;

/// In the engines' order; `None`: a translator does not give blocks.
pub(crate) fn port_mappings(config: &Config) -> Vec<Option<PortMapping>> {
    let nat64 =
        config.nat64.iter().map(|it| mapping(&it.name, &it.inside, &it.subscribers, config.pool(&it.pool)));
    let nat44 =
        config.nat44s().map(|it| mapping(&it.name, &it.inside, &it.subscribers, config.pool(&it.pool)));
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
    // In the order in which they are counted: a record that has no room for all lacks the last ones.
    let mut inside: Vec<_> = inside.iter().map(|prefix| prefix.mapped()).collect();
    inside.sort_by_key(|prefix| (prefix.address(), prefix.length()));
    let mut addresses = pool.addresses.clone();
    addresses.sort_by_key(|prefix| (prefix.address(), prefix.length()));
    (block_size > 0).then(|| PortMapping {
        translator: name.into(),
        block_size,
        bits: P::mapped_length(subscribers.prefix_length),
        inside,
        pool: addresses,
        ports: pool.ports.ranges().to_vec(),
        deterministic: mapping.is_some(),
        is_cut: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_in_the_order_in_which_subscribers_are_counted() {
        let text = "[gateway]\nipv4_address = \"198.51.100.1\"\n\n[[pool]]\nname = \"p\"\naddresses = [\"192.0.2.8/29\", \"192.0.2.0/29\"]\n\n\
                    [nat44]\ninside = [\"10.0.1.0/28\", \"10.0.0.0/28\"]\npool = \"p\"\nblock_size = 512\ndeterministic = true\n";
        let mut no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let config = Config::parse("f", text, &Default::default(), &mut no_file).unwrap().0;
        let [Some(mapping)] = &port_mappings(&config)[..] else { panic!() };
        let texts = |mapping: &PortMapping| {
            let inside: Vec<String> = mapping.inside.iter().map(|it| it.address().to_string()).collect();
            let pool: Vec<String> = mapping.pool.iter().map(ToString::to_string).collect();
            (inside, pool)
        };
        let (inside, pool) = texts(mapping);
        assert_eq!(inside, ["::ffff:10.0.0.0", "::ffff:10.0.1.0"]);
        assert_eq!(pool, ["192.0.2.0/29", "192.0.2.8/29"]);
    }
}
