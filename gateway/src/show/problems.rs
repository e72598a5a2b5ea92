//! The problems at the beginning of `sixway show`; and `sixway show pools`.

use super::colour::Colour;
use super::quantity::{count, percent};
use super::table::Table;
use crate::view::{AddressBlocksRow, DrainingRow, PoolBlocksRow, PoolRow, ProblemRow, Severity};

/// A line for each problem, most serious first; nothing if there is none.
pub(super) fn problems(rows: &[ProblemRow], colour: Colour) -> String {
    let mut rows: Vec<&ProblemRow> = rows.iter().collect();
    rows.sort_by_key(|row| row.severity);
    rows.into_iter().map(|row| line(row, colour)).collect()
}

fn line(row: &ProblemRow, colour: Colour) -> String {
    let (word, number) = match row.severity {
        Severity::Error => ("ERROR", 31),
        Severity::Warning => ("WARNING", 33),
    };
    let word = match colour {
        Colour::Never => word.to_owned(),
        Colour::Ansi => format!("\x1b[1;{number}m{word}\x1b[0m"),
    };
    format!("{word}  {} → {}\n", row.text, row.advice)
}

/// How full each pool is, by protocol, and its fullest worker.
pub fn pools(rows: &[PoolRow], colour: Colour) -> String {
    if rows.is_empty() {
        return "No NAT64 is configured: there are no pools of ports.\n".into();
    }
    let mut table = Table::new(&["MECHANISM", "POOL", "PROTO", "USED", "FREE", "IN USE", "FULLEST WORKER"]);
    for row in rows {
        let fullest = row.fullest().map(|(worker, share)| format!("{worker}: {}", percent(share, 1.0)));
        table.row(vec![
            row.mechanism.clone(),
            row.pool.clone(),
            row.protocol.clone(),
            count(row.used),
            count(row.free),
            percent(row.share(), 1.0),
            fullest.unwrap_or_else(|| "–".into()),
        ]);
    }
    table.text(colour)
}

/// Addresses that are shown of a pool.
const ADDRESSES: usize = 20;

/// Port blocks of pools, and the addresses with the fewest free ones.
pub fn pool_blocks(rows: &[PoolBlocksRow], colour: Colour) -> String {
    let Some(_) = rows.first() else { return String::new() };
    let mut table = Table::new(&["POOL", "BLOCKS OF", "GIVEN", "UNUSED", "FREE", "IN USE"]);
    let mut addresses = Table::new(&["POOL", "ADDRESS", "BLOCKS GIVEN", "FREE"]);
    let mut more = String::new();
    for row in rows {
        let all = (row.given + row.free) as f64;
        table.row(vec![
            row.pool.clone(),
            format!("{} ports", count(row.block_size.into())),
            count(row.given),
            count(row.unused),
            count(row.free),
            percent(row.given as f64, all),
        ]);
        for AddressBlocksRow { address, given, free } in row.by_address.iter().take(ADDRESSES) {
            addresses.row(vec![row.pool.clone(), address.to_string(), count(*given), count(*free)]);
        }
        let rest = row.addresses.saturating_sub(ADDRESSES as u64);
        if rest > 0 {
            more.push_str(&format!(
                "{}: {} more, with more free blocks\n",
                row.pool,
                if rest == 1 { "1 address".into() } else { format!("{} addresses", count(rest)) }
            ));
        }
    }
    table.text(colour) + &addresses.text(colour) + &more
}

/// Addresses of pools that are being drained.
pub fn draining(rows: &[DrainingRow], colour: Colour) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["POOL", "DRAINING", "BINDINGS", "HOSTS", "WITHOUT PORTS", "STATE"]);
    for row in rows {
        table.row(vec![
            row.pool.clone(),
            row.prefix.to_string(),
            count(row.bindings),
            count(row.hosts),
            count(row.portless),
            if row.is_empty() { "drained" } else { "in use" }.into(),
        ]);
    }
    table.text(colour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{PoolShareRow, ProblemKind};

    #[test]
    fn blocks_are_shown_with_the_addresses_that_have_the_fewest_free_ones() {
        assert_eq!(pool_blocks(&[], Colour::Never), "");
        let address = |n: u8| AddressBlocksRow {
            address: std::net::Ipv4Addr::new(192, 0, 2, n),
            given: 126 - u64::from(n),
            free: n.into(),
        };
        let row = PoolBlocksRow {
            mechanism: "nat44".into(),
            pool: "public".into(),
            block_size: 512,
            given: 1_000,
            unused: 3,
            free: 3_000,
            by_address: (0..25).map(address).collect(),
            addresses: 32,
        };
        let text = pool_blocks(&[row], Colour::Never);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["public", "512", "ports", "1,000", "3", "3,000", "25.0", "%"]);
        assert_eq!(words[3], ["public", "192.0.2.0", "126", "0"]);
        assert_eq!(
            (words.len(), text.lines().last()),
            (24, Some("public: 12 addresses more, with more free blocks"))
        );
    }

    #[test]
    fn errors_come_before_warnings_and_nothing_is_said_when_all_is_well() {
        let rows = [
            ProblemRow::warning(ProblemKind::PoolPorts, "pool main is 81 % full", "add addresses"),
            ProblemRow::error(
                ProblemKind::SessionTableFull,
                "the session table is full",
                "raise nat64.max_sessions",
            ),
        ];
        assert_eq!(
            problems(&rows, Colour::Never),
            "ERROR  the session table is full → raise nat64.max_sessions\nWARNING  pool main is 81 % full → add addresses\n"
        );
        assert_eq!(problems(&[], Colour::Ansi), "");
    }

    #[test]
    fn a_pool_has_the_share_of_its_fullest_worker() {
        let part = |used, free| PoolShareRow { used, free };
        let row = PoolRow {
            mechanism: "nat64".into(),
            pool: "main".into(),
            protocol: "udp".into(),
            used: 1_100,
            free: 900,
            by_worker: vec![part(100, 900), part(1_000, 0)],
        };
        let text = pools(std::slice::from_ref(&row), Colour::Never);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "nat64      main  udp    1,100  900   55.0 %  1: 100.0 %");
        assert_eq!(PoolRow::default().fullest(), None);
        assert!(pools(&[], Colour::Never).starts_with("No NAT64"));
    }
}
