//! Port blocks of subscribers.

use super::*;
use sixway_dataplane::nat::BlockPolicy;
use std::time::Duration;

const PLAIN: &str = "[[pool]]\nname = \"main\"\naddresses = [\"192.0.2.0/30\"]\n";
const NAT44: &str = "[nat44]\ninside = [\"10.0.0.0/24\"]\npool = \"main\"\n";

fn read(keys: &str) -> Config {
    let text = format!("{OWN}{PLAIN}{NAT44}{keys}\n");
    let (config, _) = parse(&text).unwrap_or_else(|faults| panic!("{faults}\nin:\n{text}"));
    let again = parse(&config.to_string()).unwrap_or_else(|faults| panic!("{faults}\nin:\n{config}")).0;
    assert_eq!(again, config, "what is written is what was read");
    config
}

fn said(keys: &str) -> String {
    match parse(&format!("{OWN}{PLAIN}{NAT44}{keys}\n")) {
        Ok(_) => panic!("no fault: {keys}"),
        Err(faults) => faults.to_string(),
    }
}

#[test]
fn without_a_size_there_are_no_blocks() {
    let config = read("");
    let blocks = &config.nat44.as_ref().unwrap().subscribers.blocks;
    assert_eq!((blocks.size, blocks.most, blocks.idle), (0, 4, Duration::from_secs(600)));
    assert_eq!(config.ports_per_block(), 64);
}

#[test]
fn a_size_gives_blocks_to_subscribers_and_to_workers() {
    let config = read("block_size = 512\nmax_blocks_per_subscriber = 2\nblock_idle_timeout = \"1 min\"");
    assert_eq!(config.ports_per_block(), 512);
    let engine = config.engines([1, 2], &Surroundings::default()).remove(0);
    let subscribers = &engine.nat44[0].subscribers;
    assert_eq!(subscribers.blocks, Some(BlockPolicy { size: 512, most: 2, idle_seconds: 60 }));
    assert_eq!(subscribers.deterministic, None);
}

#[test]
fn sizes_that_make_no_blocks_are_refused() {
    assert!(said("block_size = 500").contains("500 is not a power of two from 64 to 16384; write 512"));
    assert!(said("block_size = 32").contains("write 64"));
    assert!(said("block_size = 32768").contains("block_size"));
    assert!(said("block_size = 512\nmax_blocks_per_subscriber = 17").contains("max_blocks_per_subscriber"));
    let narrow = format!("{OWN}{PLAIN}ports = \"2000-2500\"\n{NAT44}block_size = 512\n");
    let faults = parse(&narrow).unwrap_err().to_string();
    assert!(faults.contains("the pool has no complete block of 512 ports above 1023"), "{faults}");
}

#[test]
fn deterministic_blocks_are_the_largest_that_suffice_unless_a_size_is_given() {
    let config = read("deterministic = true");
    // 256 subscribers, and 4 addresses with 63 blocks of 1,024 ports: these are too few.
    assert_eq!(config.ports_per_block(), 512);
    let engine = config.engines([1, 2], &Surroundings::default()).remove(0);
    let subscribers = &engine.nat44[0].subscribers;
    assert_eq!(subscribers.blocks.map(|it| (it.size, it.most)), Some((512, 1)));
    let mapping = subscribers.deterministic.clone().unwrap();
    assert_eq!(mapping.subscribers(), 256);
    let block = mapping.block_of("::ffff:10.0.0.126".parse().unwrap());
    assert_eq!(block, Some(("192.0.2.1".parse().unwrap(), 1_024)));
    assert_eq!(read("deterministic = true\nblock_size = 256").ports_per_block(), 256);
}

#[test]
fn a_pool_that_is_too_small_for_all_subscribers_is_refused() {
    let faults = said("deterministic = true\nblock_size = 1024");
    let expected = "`inside` has 256 subscribers, but the pool has 252 port blocks for them";
    assert!(faults.contains(expected), "{faults}");
    let faults = said("deterministic = true\nsubscriber_prefix_length = 20");
    assert!(faults.contains("subscriber_prefix_length"), "{faults}");
    let nat64 = format!("{OWN}{POOL}{NAT64}deterministic = true\n");
    let faults = parse(&nat64).unwrap_err().to_string();
    assert!(faults.contains("needs `inside`"), "{faults}");
}
