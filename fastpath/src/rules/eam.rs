//! Explicit address mappings as the programs' tables have them.

use super::unoffered::UnofferedReason;
use crate::layout::Eam;
use crate::settings::{Rules, Table};
use crate::slots::SlotAssignment;
use sixway_dataplane::engine::EngineConfig;
use sixway_wire::{Prefix4, Prefix6};

/// Most rows, of all translators together.
pub const EAM_ROWS: usize = 131_072;

/// Key and value as a table has them.
type Row = (Vec<u8>, Vec<u8>);

pub(super) fn set_mappings(
    rules: &mut Rules,
    engine: &EngineConfig,
    places: &SlotAssignment,
) -> Result<(), UnofferedReason> {
    let count: usize = engine.siit.iter().map(|siit| siit.eam.len()).sum();
    if count > EAM_ROWS {
        return Err(UnofferedReason::TooMany { what: "explicit address mappings", room: EAM_ROWS });
    }
    let (mut eam4, mut eam6) = (Vec::new(), Vec::with_capacity(count));
    for (siit, slot) in engine.siit.iter().zip(&places.stateless) {
        let translator = *slot as u8;
        // The pool first: a mapping of the same prefix takes its place.
        eam4.extend(siit.dynamic_pool.iter().map(|pool| pool_row(translator, pool.prefix)));
        for (four, six) in siit.eam.iter() {
            eam4.push(row4(translator, four, six));
            eam6.push(row6(translator, four, six));
        }
    }
    rules.tables = vec![Table { map: "eam4", rows: eam4 }, Table { map: "eam6", rows: eam6 }];
    Ok(())
}

/// `struct eam4_key`, `struct eam6_key`: bits that count, the translator's number in four octets, the address.
fn key(translator: u8, address: &[u8], length: u8) -> Vec<u8> {
    let bits = 32 + u32::from(length);
    [&bits.to_ne_bytes(), &[translator, 0, 0, 0], address].concat()
}

fn row4(translator: u8, four: Prefix4, six: Prefix6) -> Row {
    let bits = six.address().to_bits();
    let value = Eam {
        high: (bits >> 64) as u64,
        low: bits as u64,
        length: four.length(),
        other_length: six.length(),
        ..Eam::zero()
    };
    (key(translator, &four.address().octets(), four.length()), value.octets().to_vec())
}

fn row6(translator: u8, four: Prefix4, six: Prefix6) -> Row {
    let value = Eam {
        low: four.address().to_bits().into(),
        length: six.length(),
        other_length: four.length(),
        ..Eam::zero()
    };
    (key(translator, &six.address().octets(), six.length()), value.octets().to_vec())
}

fn pool_row(translator: u8, pool: Prefix4) -> Row {
    // As though mapped one to one: nothing is shifted out, and the result is not read.
    let value = Eam { length: pool.length(), other_length: 96 + pool.length(), is_pool: 1, ..Eam::zero() };
    (key(translator, &pool.address().octets(), pool.length()), value.octets().to_vec())
}
