//! Records of continuing bindings, or of the port blocks with their ports.

use super::index::{self, Key};
use super::port_block::{PortBlock, PortMapping};
use super::record::{Binding, Event, Phase, Record};
use sixway_wire::Prefix6;
use std::collections::HashSet;
use std::sync::Arc;

/// Makes records of bindings that there are.
#[derive(Debug)]
pub(super) struct Continuing {
    /// How translators give port blocks, by their places; `None`: they do not.
    mappings: Vec<Option<PortMapping>>,
    /// Whether each binding is logged, also where subscribers have port blocks.
    each_binding: bool,
    /// Blocks that have a record already.
    known: HashSet<Key>,
}

impl Continuing {
    pub(super) fn new(mappings: Vec<Option<PortMapping>>, each_binding: bool) -> Self {
        Self { mappings, each_binding, known: HashSet::new() }
    }

    /// Whether dynamic bindings of the translator at this place have records, of their own or of their blocks.
    pub(super) fn has_records(&self, translator: usize) -> bool {
        let mapping = self.mappings.get(translator).and_then(Option::as_ref);
        self.each_binding || mapping.is_none_or(|mapping| !mapping.deterministic)
    }

    /// Forgets which blocks have a record.
    pub(super) fn end(&mut self) {
        self.known = HashSet::new();
    }

    /// Begins again with all blocks; records of how translators give them. Each has a time of its own, by which it is found.
    pub(super) fn begin(&mut self, micros: u64) -> Vec<Record> {
        self.end();
        let mappings = self.mappings.iter().flatten().zip(micros..);
        mappings.map(|(it, micros)| Record { micros, event: Event::Mapping(it.clone()) }).collect()
    }

    /// The records of a binding of the translator at this place.
    pub(super) fn records(&mut self, micros: u64, translator: usize, binding: Binding) -> Vec<Record> {
        let mut records = Vec::new();
        let mapping = self.mappings.get(translator).and_then(Option::as_ref).filter(|_| !binding.is_static);
        if let Some(mapping) = mapping.filter(|mapping| !mapping.deterministic) {
            let (address, first) = PortBlock::at(binding.outside, mapping.block_size);
            let block = PortBlock {
                translator: Arc::clone(&binding.translator),
                subscriber: Prefix6::holding(binding.inside.address, mapping.bits),
                address,
                first,
                size: mapping.block_size,
            };
            if self.known.insert(index::key_of_block((address, first), mapping.block_size)) {
                records.push(Record { micros, event: Event::Block(Phase::Continues, block) });
            }
        }
        if mapping.is_none() || self.each_binding {
            records.push(Record { micros, event: Event::Binding(Phase::Continues, binding) });
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{binding, mapping};
    use super::*;

    fn names(records: &[Record]) -> Vec<&'static str> {
        records.iter().map(|record| record.event.name()).collect()
    }

    #[test]
    fn a_block_has_one_record_however_many_of_its_ports_are_bound() {
        for (each, expected) in [
            (false, vec!["block_continues", "block_continues"]),
            (
                true,
                vec![
                    "block_continues",
                    "binding_continues",
                    "binding_continues",
                    "block_continues",
                    "binding_continues",
                ],
            ),
        ] {
            let mut continuing = Continuing::new(vec![Some(mapping(false)), None], each);
            assert_eq!(names(&continuing.begin(5)), ["port_mapping"]);
            let mut records = Vec::new();
            for outside in ["192.0.2.1:1600", "192.0.2.1:1601", "192.0.2.1:9000"] {
                records.extend(continuing.records(7, 0, binding("10.0.0.1:5", outside)));
            }
            assert_eq!(names(&records), expected);
            let Event::Block(_, block) = &records[0].event else { panic!() };
            assert_eq!((block.who().as_str(), block.first, block.last()), ("10.0.0.1", 1_536, 2_047));
            assert_eq!(
                names(&continuing.records(7, 1, binding("10.0.0.1:5", "192.0.2.1:1600"))),
                ["binding_continues"]
            );
            let fixed = Binding { is_static: true, ..binding("10.0.0.1:5", "192.0.2.1:1600") };
            assert_eq!(names(&continuing.records(7, 0, fixed)), ["binding_continues"]);
            assert_eq!(continuing.known.len(), 2);
            continuing.end();
            assert_eq!(continuing.known.capacity(), 0);
            assert_eq!(
                names(&continuing.records(9, 0, binding("10.0.0.1:5", "192.0.2.1:1601")))[0],
                "block_continues"
            );
        }
    }

    #[test]
    fn a_deterministic_mapping_needs_no_record_of_its_blocks() {
        let mut continuing = Continuing::new(vec![Some(mapping(true))], false);
        assert!(continuing.records(7, 0, binding("10.0.0.1:5", "192.0.2.1:1600")).is_empty());
        assert!(!continuing.has_records(0) && continuing.has_records(1));
        assert!(Continuing::new(vec![Some(mapping(true))], true).has_records(0));
    }
}
