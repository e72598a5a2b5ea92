//! Any text is a table of address mappings or a list of bad lines; a table maps back what it maps.

use sixway_dataplane::translate::address::eam::EamTable;
use sixway_dataplane::translate::address::eam_file::parse_eam_file;

pub fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let lines = text.lines().count();
    let mut rows = Vec::new();
    for (line, row) in parse_eam_file(&text) {
        assert!((1..=lines).contains(&line), "line {line} of {lines}");
        match row {
            Ok(row) => rows.push(row),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    match EamTable::new(rows.iter().copied()) {
        Ok(table) => {
            assert_eq!(table.len(), rows.len());
            for (four, _) in rows {
                // The row itself or a longer one answers for it; where one answers, the answer leads back (RFC 7757 §3.3)
                // unless a longer row covers it on the other side.
                let six = table.to6(four.address());
                assert!(six.is_some(), "no row answers for {four}");
                let back = six.and_then(|six| table.to4(six));
                assert!(back.is_some(), "no row answers for what {four} becomes");
            }
        }
        Err(faults) => assert!(faults.iter().all(|fault| !fault.to_string().is_empty())),
    }
}
